from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relight.model.jobs import JobFact, OutputPaths
from relight.sources.log_globs import log_glob, name_files
from relight.sources.output_patterns import LogFile, UnknownNameError

NODES = ("node-01", "node-02")
FACT = JobFact(cluster="main", scheduler_id="15", name="run[1]", output=OutputPaths(work_dir="/w*"))


@pytest.mark.parametrize(
    ("logs", "glob"),
    [
        ("logs/*.log", "/w[*]/logs/*.log"),
        ("/a/%j/**/x?[ab].txt", "/a/15/**/x?[ab].txt"),
        ("/a/%x-%t.out", "/a/run[[]1]-*.out"),
        ("/a/%J-%4t-%N-%s", "/a/15.*-*-*-*"),
        ("/a/%%t", "/a/%t"),
        ("/a/\x00t", "/a/t"),
    ],
)
def test_a_pattern_becomes_a_glob(logs: str, glob: str) -> None:
    assert log_glob(logs, FACT).pattern == glob


@pytest.mark.parametrize(
    ("logs", "path", "rank", "node"),
    [
        ("/a/log-%t.out", "/a/log-0012.out", 12, None),
        ("/a/%N/%t", "/a/node-02.lab/3", 3, "node-02"),
        ("/a/%n/%t", "/a/1/3", 3, "node-02"),
        ("/a/%n", "/a/7", None, None),
        ("/a/%N", "/a/other", None, None),
        ("/a/%t-%t", "/a/3-3", 3, None),
        ("/a/**/%t", "/a/3", 3, None),
        ("/a/**/%t", "/a/b/c/3", 3, None),
        ("/a/%t", "/a/99999999999", None, None),
        ("/a/[x]?*\n%t", "/a/xyz\n3", 3, None),
    ],
)
def test_a_found_name_tells_rank_and_node(
    logs: str, path: str, rank: int | None, node: str | None
) -> None:
    files = name_files(log_glob(logs, FACT), [path], NODES)
    assert files == (LogFile(path=path, rank=rank, node=node),)


def test_a_file_with_something_else_in_the_place_of_the_rank_is_left_out() -> None:
    assert name_files(log_glob("/a/log-%t.out", FACT), ["/a/log-old.out"], NODES) == ()


@pytest.mark.parametrize("logs", ["/a/" + "x" * 2000, "/a/%u.log"])
def test_what_cannot_be_worked_out_is_refused(logs: str) -> None:
    with pytest.raises(UnknownNameError):
        log_glob(logs, FACT)


@given(st.text(alphabet="*?[]!%tnNsj/\\\x00a\n(.+é", max_size=60), st.text(max_size=30))
def test_no_pattern_breaks_the_naming(logs: str, path: str) -> None:
    name_files(log_glob(logs, FACT), [path], NODES)


def test_a_pattern_made_to_backtrack_takes_no_time() -> None:
    glob = log_glob("/a/" + "*a" * 200 + "b", FACT)
    assert name_files(glob, ["/a/" + "a" * 4000], NODES) == ()
