from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from bench.logs import MATCHING_EVERY, write_log
from bench.posix import for_grep, for_ripgrep
from bench.processes import children, cpu_seconds, memory
from bench.scanning import METHODS, all_at_once, count_ends, scan
from bench.slurm_logs import restarted
from bench.tables import Measured, Result, Row, cheaper, faster, table

from bench import rhythms
from relight.model.instants import in_seconds
from relight.perception.matching import HAS_HYPERSCAN
from relight.rules.loading import load
from relight.rules.patterns import Pattern

ROOT = Path(__file__).parents[2]
RULES = load()
TINY = ("--megabytes=1", "--repeats=1")
HITS = [hit for rule in RULES for hit in rule.hits]


def test_the_same_log_is_written_each_time_with_the_promised_matching_lines(
    tmp_path: Path,
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    lines, planted = write_log(first, size=100_000, matching=HITS, progress=1)
    write_log(second, size=100_000, matching=HITS, progress=1)
    content = first.read_bytes()
    assert content == second.read_bytes()
    assert content.count(b"\n") == lines
    assert planted == lines // MATCHING_EVERY


@pytest.mark.parametrize("progress", [1, 70])
def test_as_many_lines_tell_a_step_as_are_asked_for_and_the_steps_rise_by_one(
    tmp_path: Path, progress: int
) -> None:
    log = tmp_path / "log"
    lines, planted = write_log(log, size=100_000, matching=["x"], progress=progress)
    steps = [int(one) for one in re.findall(rb" iteration +(\d+)/", log.read_bytes())]
    assert lines * progress // 100 - planted <= len(steps) <= lines * progress // 100
    assert steps[0] == 1
    assert {later - earlier for earlier, later in pairwise(steps)} <= {1, 2}


def test_where_every_line_is_to_match_every_line_does(tmp_path: Path) -> None:
    log = tmp_path / "log"
    lines, planted = write_log(log, size=300_000, matching=HITS, progress=1, matching_every=1)
    assert planted == lines
    assert set(log.read_text().splitlines()) == set(HITS)


def test_every_method_finds_exactly_the_lines_that_were_written_to_match(tmp_path: Path) -> None:
    log = tmp_path / "log"
    _, planted = write_log(log, size=100_000, matching=HITS, progress=1)
    assert scan("matcher", log).found == planted
    assert scan("fallback", log).found == planted
    report = scan("report", log)
    assert report.found > 0
    assert report.step == 10
    assert scan("read", log).found == 0
    assert len(METHODS) == 5


@pytest.mark.skipif(not HAS_HYPERSCAN, reason="Hyperscan exists for x86-64 only")
def test_hyperscan_alone_is_given_every_expression() -> None:
    rules = RULES[:20]
    block = "".join(f"{hit}\n" for rule in rules for hit in rule.hits).encode()
    assert count_ends(all_at_once(rules), block) >= block.count(b"\n")


@pytest.mark.parametrize(
    ("expression", "for_others"),
    [
        (r"Xid \(PCI:(?P<pci>[0-9a-fA-F:.]{1,20})\)", r"Xid \(PCI:([0-9a-fA-F:.]{1,20})\)"),
        (r"(?i)oom \d+", "[oO][oO][mM] [0-9]+"),
        (r"a(?i:b(?P<x>c))d", "a([bB]([cC]))d"),
        (r"x\r?$", "x\r?$"),
        (r"[\w.-]+\s\S*?", "[[:alnum:]_.-]+[[:space:]][^[:space:]]*"),
        (r"[\w.\[\]-]{1,9}", "[][:alnum:]_.-]{1,9}".replace("[][:alnum:]_.-", "[][:alnum:]_.[-")),
        (r"a[^\n]{0,20}b", "a.{0,20}b"),
        (r"[^'\n]*(?:x|y)?\bz\W", r"[^']*(x|y)?\bz[^[:alnum:]_]"),
    ],
)
def test_an_expression_is_put_into_the_words_of_grep(expression: str, for_others: str) -> None:
    assert for_grep(expression) == for_others


def test_an_expression_that_grep_cannot_say_is_refused() -> None:
    for expression in (r"\pL+", r"\x1b"):
        with pytest.raises(ValueError, match="no form that grep -E knows"):
            for_grep(expression)


def test_ripgrep_gets_neither_names_nor_needless_escapes() -> None:
    assert for_ripgrep(r"(?P<a>x)(?:y)(?P<b>\d)\"\.") == r"""(?:x)(?:y)(?:\d)"\."""


@pytest.mark.parametrize("part", range(4))
def test_grep_matches_the_same_lines_with_every_packaged_expression(
    tmp_path: Path, part: int
) -> None:
    for number, rule in enumerate(RULES):
        if number % 4 != part or not rule.patterns:
            continue
        texts = [*rule.hits, *(miss.text for miss in rule.misses)]
        file = tmp_path / "patterns"
        file.write_text("".join(f"{for_grep(one)}\n" for one in rule.patterns))
        done = subprocess.run(
            ["grep", "-a", "-n", "-E", "-f", str(file)],
            input="\n".join(texts).encode(),
            env={**os.environ, "LC_ALL": "C"},
            capture_output=True,
            check=True,
        )
        found = {int(line.partition(b":")[0]) - 1 for line in done.stdout.splitlines()}
        compiled = [Pattern(expression) for expression in rule.patterns]
        wanted = {
            at for at, text in enumerate(texts) if any(one.is_in(text.encode()) for one in compiled)
        }
        assert found == wanted, rule.id
        assert not done.stderr, rule.id


def test_the_command_measures_a_tiny_log_and_leaves_nothing_behind(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "matching", "--json", "--no-slow", *TINY],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        check=True,
    )
    said = json.loads(done.stdout)
    (result,) = said["results"]
    rows = {row["what"]: row for row in result["rows"]}
    assert result["part"] == "matching"
    assert rows["matching, beside the limit"]["ratio"] > 0
    assert rows["the whole, 70 % do"]["ours"]["value"] > 0
    assert said["conditions"]["processor"]
    assert list(tmp_path.iterdir()) == []


def test_a_restart_is_read_from_the_log_of_slurmctld() -> None:
    log = """\
[2026-01-31T10:00:00.000] sched: Allocate JobId=7 NodeList=node-[01-03] #CPUs=3 Partition=main
[2026-01-31T10:00:05.100] _job_complete: JobId=77 WEXITSTATUS 1
[2026-01-31T10:00:05.500] _job_complete: JobId=7 WEXITSTATUS 143
[2026-01-31T10:00:05.500] _job_complete: JobId=7 done
no stamp
[2026-01-31T10:00:06.250] Requeuing JobId=7
[2026-01-31T10:00:06.500] _slurm_rpc_update_job: complete JobId=7 uid=0 usec=265
[2026-01-31T10:00:08.500] sched/backfill: _start_job: Started JobId=7 in main on node-[01,03-04]
[2026-01-31T10:00:09.500] _job_complete: JobId=7 WEXITSTATUS 0
"""
    turns = restarted(log, "7")
    assert turns.ended is not None
    later = [turns.requeued, turns.updated, turns.started]
    assert [in_seconds((one or 0) - turns.ended) for one in later] == [0.75, 1.0, 3.0]
    assert restarted("", "7").started is None


def test_costs_of_a_process_are_read_from_proc() -> None:
    child = subprocess.Popen(["sleep", "20"])
    try:
        assert child.pid in children(os.getpid())
        assert cpu_seconds(child.pid) >= 0
        size = memory(child.pid)
        assert 0 < size.pss <= size.rss
    finally:
        child.kill()
        child.wait()
    with pytest.raises(OSError, match="No such"):
        memory(child.pid)


def test_following_a_few_jobs_costs_something_and_each_remembers_its_own_rhythm() -> None:
    result = rhythms.measure(jobs=12, rounds=3)
    rows = {row.what: row.ours for row in result.rows}
    assert rows["one look"].value > 0
    assert 0 < rows["size of a rhythm in the store"].value < 64
    assert "12 jobs" in table([result])


def test_ratios_above_one_are_in_our_favour() -> None:
    fast, slow = (Measured(of="x", value=value, unit="MB/s") for value in (200.0, 50.0))
    assert faster("speed", fast, slow).ratio == 4
    assert cheaper("cost", slow, fast).ratio == 4
    assert cheaper("cost", slow, None).ratio is None


def test_a_table_tells_each_row_and_fact() -> None:
    ours = Measured(of="ours", value=1234.5, unit="s")
    rows = (Row(what="a", ours=ours, ratio=0.5, note="why"), cheaper("b", ours, ours))
    text = table([Result(part="p", rows=rows, facts=("It is so.",))])
    assert "| a (why) | 1,234 s (ours) | none | 0.50x |" in text
    assert "| b | 1,234 s (ours) | 1,234 s (ours) | 1.00x |" in text
    assert text.endswith("- It is so.")
    assert msgspec.json.encode(rows)
