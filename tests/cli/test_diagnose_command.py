from __future__ import annotations

import gzip
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from relight.cli import app
from relight.cli.diagnosing import CODES
from relight.model.advice import Decision

Said = tuple[int, str, str]
Say = Callable[..., Said]
RELIGHT = [sys.executable, "-m", "relight.cli.app"]
STEPS = "".join(f"step {number}/100 loss 2.5\n" for number in range(1, 50))
MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.35 GiB. GPU 3 has a total\n"
)
KEYS = {
    *("kind", "ending", "domain", "cause", "family", "decision", "confidence", "sentence", "root"),
    *("ranks", "nodes", "last_step", "step_unit", "step_seconds", "attempts"),
    *("last_checkpoint_step", "set_aside", "alternatives"),
    *("job", "why", "exclude", "suspects", "terms", "progress", "likely", "read", "troubles"),
    "passed_over",
}


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Give an environment in which what is compiled is kept for the tests of this module."""
    cache = tmp_path_factory.mktemp("cache")
    return {**os.environ, "XDG_CACHE_HOME": str(cache), "COLUMNS": "100"}


@pytest.fixture
def say(
    environ: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Say:
    monkeypatch.chdir(tmp_path)
    for name in ("XDG_CACHE_HOME", "COLUMNS"):
        monkeypatch.setenv(name, environ[name])
    (tmp_path / "well.log").write_text(STEPS)
    (tmp_path / "bad.log").write_text(STEPS + MEMORY)

    def run(*words: str) -> Said:
        code = app.run(("diagnose", *words))
        seen = capsys.readouterr()
        return code, seen.out, seen.err

    return run


def relight(
    *words: str, environ: dict[str, str], data: bytes = b"", cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*RELIGHT, "diagnose", *words],
        input=data,
        capture_output=True,
        timeout=60,
        check=False,
        env=environ,
        cwd=cwd,
    )


def test_a_failure_is_told_with_its_line_its_context_and_what_to_do(say: Say) -> None:
    code, out, err = say("bad.log")
    assert code in (10, 11, 12, 13)
    assert err == ""
    order = ["Crash", "domain", "cause", "confidence", "advice", "The line that tells it: bad.log"]
    places = [out.find(word) for word in [*order, "line 50", "step 49/100", "» torch.OutOfMemory"]]
    assert -1 not in places
    assert places == sorted(places)
    assert "The last step was 49" in out
    assert "Read 1 file, 50 lines" in out
    assert max(map(len, out.splitlines())) <= 100
    assert not re.search(r"[ \t]$", out, re.MULTILINE)


def test_a_healthy_log_is_told_to_be_one(say: Say) -> None:
    code, out, _ = say("well.log")
    assert code == 0
    assert out.startswith("Nothing wrong")
    assert "The last step was 49" in out


def test_json_has_every_key_always(say: Say, tmp_path: Path) -> None:
    for words in (("bad.log",), ("well.log",), ("none.log",)):
        code, out, _ = say(*words, "--json")
        found = json.loads(out)
        assert set(found) == KEYS
        assert out.isascii()
    code, out, _ = say("bad.log", "--json")
    found = json.loads(out)
    assert code == CODES[Decision(found["decision"])]
    assert (found["kind"], found["domain"], found["family"]) == (
        "crash",
        "application",
        "device_oom",
    )
    size = len(STEPS + MEMORY)
    assert found["root"]["file"] == "bad.log"
    assert found["root"]["line"] == 50
    assert found["root"]["text"] == MEMORY.strip()
    assert (found["last_step"], found["step_unit"], found["ending"]) == (49, "step", None)
    assert found["read"] == {"files": 1, "bytes": size, "lines": 50, "left_out": 0}
    (tmp_path / "slurm-1.out").write_text(STEPS)
    (tmp_path / "slurm-2.out").write_text(STEPS + MEMORY)
    code, out, _ = say("slurm-1.out", "slurm-2.out", "--json")
    several = json.loads(out)
    assert code == CODES[Decision(several["reports"][1]["decision"])]
    assert [report["job"] for report in several["reports"]] == ["1", "2"]
    assert all(set(report) == KEYS - {"passed_over"} for report in several["reports"])


def test_several_jobs_are_shown_one_after_another(say: Say, tmp_path: Path) -> None:
    (tmp_path / "slurm-1_1.out").write_text(STEPS)
    (tmp_path / "slurm-1_2.out").write_text(STEPS + MEMORY)
    code, out, _ = say("slurm-*.out")
    assert code in (10, 11, 12, 13)
    assert out.index("Job 1_1\n") < out.index("Nothing wrong") < out.index("Job 1_2\n")


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("none.log",), 3, "none.log: no such file"),
        (("none.log", "well.log"), 3, "none.log: no such file"),
        (("empty.log",), 3, "empty.log: it is empty"),
        (("cut.gz",), 3, "cut.gz: it is damaged: it ends in the middle"),
        (("model.pt",), 3, "model.pt: it is not a log but a zip archive"),
        (("pipe",), 3, "pipe: it is a named pipe"),
        (("/dev/zero",), 3, "/dev/zero: it is a device"),
        (("folder",), 2, "folder: there is no log in this directory"),
        (("*.nothing",), 2, "*.nothing: no file has such a name"),
        (("folder", "well.log"), 3, "folder: there is no log"),
        (("a\n\x1b]0;\udcff",), 3, r"a\n\x1b]0;\udcff: no such file"),
    ],
)
def test_what_cannot_be_read_is_told_and_the_rest_is_read(
    say: Say, words: tuple[str, ...], code: int, sentence: str, tmp_path: Path
) -> None:
    (tmp_path / "empty.log").touch()
    (tmp_path / "cut.gz").write_bytes(gzip.compress(os.urandom(10) + STEPS.encode())[:100])
    (tmp_path / "model.pt").write_bytes(b"PK\x03\x04" + bytes(100))
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    got, out, err = say(*words)
    assert (got, len(err.splitlines())) == (code, 1)
    assert err.startswith("relight: ")
    assert sentence in err
    assert ("rests on what could" in out) is ("well.log" in words or "cut.gz" in words)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("well.log", "--nodes", "n[1-"), "--nodes"),
        (("well.log", "--tasks-per-node", "8"), "needs --nodes"),
        (("well.log", "--nodes", "n1", "--tasks-per-node", "-1"), "--tasks-per-node"),
        (("well.log", "--colour"), "--colour"),
    ],
)
def test_a_wrong_command_line_ends_with_2(say: Say, words: tuple[str, ...], sentence: str) -> None:
    code, out, err = say(*words)
    assert (code, out) == (2, "")
    assert sentence in err


def test_rules_of_a_site_are_heard_and_wrong_ones_are_told(say: Say, tmp_path: Path) -> None:
    code, _, err = say("well.log", "--rules", str(tmp_path / "none"))
    assert code == 1
    assert "the rules cannot be used" in err


def test_the_allocation_names_the_node_of_a_rank(say: Say, tmp_path: Path) -> None:
    (tmp_path / "ranks.log").write_text(STEPS + "[rank11]: " + MEMORY)
    nodes = ("--nodes", "node-[001-004]", "--tasks-per-node", "8")
    _, out, _ = say("ranks.log", *nodes, "--json")
    found = json.loads(out)
    assert found["ranks"] == [11]
    assert found["nodes"] == ["node-002"]


def test_a_job_that_nobody_can_be_asked_about_is_told(
    say: Say, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    code, out, err = say("--job", "123", "--url", "http://127.0.0.1:1")
    assert (code, out) == (5, "")
    assert "nobody knows where job 123 ran" in err
    assert "no backend answers" in err


def test_a_job_that_the_service_knows_gives_its_nodes(
    say: Say, url: str, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELIGHT_TOKEN", token)
    _, out, _ = say("bad.log", "--job", "main:123", "--url", url, "--json")
    assert json.loads(out)["family"] == "device_oom"
    code, _, err = say("--job", "main:123", "--url", url)
    assert code == 2
    assert "the logs of job 123 are not known" in re.sub(r"[\s│]+", " ", err)


HOSTILE = ("\x1b", "\x9b", "\x07", "\u202e")


@pytest.mark.parametrize("extra", [(), ("--json",)])
def test_a_log_cannot_act_on_the_terminal(say: Say, extra: tuple[str, ...], tmp_path: Path) -> None:
    evil = "\x1b]0;title\x07\u202e[bold]\x9b2J"
    (tmp_path / f"{evil}.log").write_text(f"{evil}\n{evil} {MEMORY}{evil}\n")
    code, out, _ = say(f"{evil}.log", *extra)
    assert code in (10, 11, 12, 13)
    assert "[bold]" in out
    assert not [mark for mark in HOSTILE if mark in out]


def test_standard_input_is_read_compressed_or_not(environ: dict[str, str], tmp_path: Path) -> None:
    log = (STEPS + MEMORY).encode()
    for words, data in (((), log), (("-",), gzip.compress(log))):
        done = relight(*words, "--json", environ=environ, data=data, cwd=tmp_path)
        found = json.loads(done.stdout)
        assert (found["family"], found["root"]["file"]) == ("device_oom", "-")
        assert done.returncode == CODES[Decision(found["decision"])]
    done = relight(environ=environ, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, b"")
    assert done.stderr == b"relight: standard input: it is empty\n"


def test_who_stops_reading_hears_no_complaint(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "bad.log").write_text(STEPS + MEMORY)
    for words in ((), ("--json",)):
        reading, writing = os.pipe()
        os.close(reading)
        command = [*RELIGHT, "diagnose", str(tmp_path / "bad.log"), *words]
        done = subprocess.run(
            command, stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False, env=environ
        )
        os.close(writing)
        assert done.stderr == b""
        assert done.returncode in (10, 11, 12, 13)


def test_an_interrupt_ends_it_quietly(environ: dict[str, str]) -> None:
    command = [*RELIGHT, "diagnose", "-"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ,
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdin.write(STEPS.encode() * 1_000)
        running.stdin.flush()
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=30) == 130
        assert running.stdout.read() == b""
        assert running.stderr.read() == b""


def test_it_fits_a_terminal_and_is_coloured_there(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "bad.log").write_text(STEPS + MEMORY)
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [*RELIGHT, "diagnose", str(tmp_path / "bad.log")],
        stdout=theirs,
        stderr=theirs,
        timeout=60,
        check=False,
        env={**environ, "COLUMNS": "60", "TERM": "xterm"},
    )
    os.close(theirs)
    text = os.read(ours, 65_536).decode()
    os.close(ours)
    assert done.returncode in (10, 11, 12, 13)
    assert "\x1b[1" in text
    bare = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert max(len(line.rstrip("\r")) for line in bare.split("\n")) <= 60


def test_it_starts_fast_and_loads_no_server(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "bad.log").write_text(STEPS + MEMORY)
    words = ["diagnose", str(tmp_path / "bad.log"), "--json"]
    relight(*words[1:], environ=environ)
    code = (
        "import sys; from relight.cli import app; app.run(sys.argv[1:]);"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env=environ,
    )
    loaded = set(done.stderr.split())
    slow = {"litestar", "sqlalchemy", "grpc", "rich", "urllib3", "structlog", "multiprocessing"}
    assert not loaded & slow
    took = []
    for _ in range(5):
        before = os.times()
        relight(*words[1:], environ=environ)
        after = os.times()
        user = after.children_user - before.children_user
        took.append(user + after.children_system - before.children_system)
    assert min(took) < 0.6


def test_a_report_that_cannot_be_written_is_told_and_never_looks_like_well(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    (tmp_path / "well.log").write_text(STEPS)
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [*RELIGHT, "diagnose", str(tmp_path / "well.log")],
            stdout=full,
            stderr=subprocess.PIPE,
            env=environ,
            check=False,
        )
    assert (ended.returncode, ended.stderr) == (
        1,
        b"relight: the report could not be written: no space left on device\n",
    )
