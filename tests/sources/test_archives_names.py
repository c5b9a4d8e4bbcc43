from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relight.model.jobs import Allocation
from relight.sources.archives.jobs import by_job
from relight.sources.archives.names import Named, named

NODES = ("node-001", "node-002", "gpu7.cluster")


def told(path: str, *nodes: str) -> Named:
    return named([path], Allocation(nodes=nodes))[0]


@pytest.mark.parametrize(
    ("path", "job"),
    [
        ("slurm-123.out", "123"),
        ("logs/slurm-123.out.gz", "123"),
        ("slurm-123_4.out", "123_4"),
        ("job_77.err", "77"),
        ("job-77/rank_0.log", "77"),
        ("llama-1234567.out", "1234567"),
        ("train.o12345", "12345"),
        ("train-20240501.log", ""),
        ("rank_3.log", ""),
        ("train-2.log", ""),
        ("checkpoint-5000.txt", ""),
        ("myjob2/out.log", ""),
    ],
)
def test_a_name_tells_its_job(path: str, job: str) -> None:
    assert told(path).job == job


@pytest.mark.parametrize(
    ("path", "rank"),
    [
        ("rank_3.log", 3),
        ("rank3.out", 3),
        ("rank-003.err.zst", 3),
        ("global_rank_12.log", 12),
        ("log.rank7", 7),
        ("task_5.out", 5),
        ("run/1/rank.4/stdout", 4),
        ("run/attempt_0/3/stdout.log", 3),
        ("local_rank_2.log", 2),
        ("rank_10000.log", 10000),
        ("node_rank_2.log", None),
        ("crank3.log", None),
        ("test_of_rank_3_alone/train.log", None),
        ("train.log.3", None),
        ("out_3.log", None),
    ],
)
def test_a_name_tells_its_rank(path: str, rank: int | None) -> None:
    assert told(path).rank == rank


@pytest.mark.parametrize(
    ("path", "nodes", "node"),
    [
        ("slurm-9-node-017.out", (), "node-017"),
        ("node-017/rank_3.log", (), "node-017"),
        ("node-017-rank-3.log", (), "node-017"),
        ("ip-10-0-1-23.log", (), "ip-10-0-1-23"),
        ("compute-permanent-node-7.err", (), "compute-permanent-node-7"),
        ("rank_3.log", (), None),
        ("node.log", (), None),
        ("9-node-001.out", NODES, "node-001"),
        ("9_gpu7.out", NODES, "gpu7.cluster"),
        ("node-017.out", NODES, None),
        ("node_rank_1.log", NODES, "node-002"),
        ("node_rank_9.log", NODES, None),
        ("tests_on_node-001_alone/x.log", NODES, None),
    ],
)
def test_a_name_tells_its_node(path: str, nodes: tuple[str, ...], node: str | None) -> None:
    assert told(path, *nodes).node == node


def test_a_large_rank_is_no_job() -> None:
    assert told("rank_10000.log").job == ""


def test_numbers_that_count_from_0_are_ranks() -> None:
    paths = ["a/out_0.txt", "a/out_1.txt", "a/err_0.txt", "b/1.log", "b/0.log", "c/0.log"]
    assert [one.rank for one in named(paths, Allocation())] == [0, 1, None, 1, 0, None]
    rotated = ["train.log.1", "train.log.2"]
    assert [one.rank for one in named(rotated, Allocation())] == [None, None]


def test_a_local_rank_is_a_rank_only_where_that_is_certain() -> None:
    two = ["a/attempt_0/1/stderr.log", "b/attempt_0/1/stderr.log"]
    assert [one.rank for one in named(two, Allocation())] == [None, None]
    one_of_many = Allocation(nodes=("n1", "n2"))
    assert named(two[:1], one_of_many)[0].rank is None
    placed = ["node-001/attempt_0/1/stderr.log", "node-002/attempt_0/1/stderr.log"]
    known = Allocation(nodes=("node-001", "node-002"), tasks_per_node=8)
    assert [one.rank for one in named(placed, known)] == [1, 9]


def test_all_files_are_one_job_unless_their_names_tell_several() -> None:
    [one] = by_job(["slurm-5.out", "rank_0.log", "rank_1.log"], Allocation())
    assert (one.job, len(one.files)) == ("5", 3)
    several = by_job(["slurm-5_1.out", "slurm-5_2.out", "x.log", "slurm-5_1.err"], Allocation())
    assert [(job.job, len(job.files)) for job in several] == [("5_1", 2), ("5_2", 1), ("", 1)]
    assert by_job([], Allocation()) == []


def test_only_the_last_attempt_of_a_launcher_is_read() -> None:
    paths = [f"run/attempt_{attempt}/{rank}/stdout.log" for attempt in (0, 1) for rank in (0, 1)]
    [job] = by_job([*paths, "launcher.log"], Allocation())
    assert [file.path for file in job.files] == [*paths[2:], "launcher.log"]
    assert (job.attempts, job.left_out) == (2, 2)


names = st.binary(max_size=60).map(os.fsdecode) | st.text(max_size=60)


@given(st.lists(names, max_size=5), st.lists(st.sampled_from(NODES)))
def test_no_name_is_too_strange(paths: list[str], nodes: list[str]) -> None:
    allocation = Allocation(nodes=tuple(nodes))
    assert len(named(paths, allocation)) == len(paths)
    for job in by_job(paths, allocation):
        for file in job.files:
            assert file.log.file.encode().decode() == file.log.file
