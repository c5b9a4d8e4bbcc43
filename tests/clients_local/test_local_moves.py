from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relight.clients.local.jobs import LocalJob, is_shared, output_path
from relight.clients.local.placements import Start, Wait, place
from relight.clients.local.standings import (
    Refused,
    Standing,
    cancel,
    completing,
    ended,
    requeue,
    started,
    submitted,
    update,
)
from relight.model.instants import Instant, later, seconds
from relight.model.jobs import ENDED, JobFact, JobState

NODES = ("a", "b", "c", "d")
MOVES = ("requeue", "requeue_incomplete", "update", "cancel", "start", "finish", "fail", "end")


def move(standing: Standing, word: str, now: Instant) -> Standing | Refused:
    state = standing.fact.state
    match word:
        case "requeue" | "requeue_incomplete":
            only = word == "requeue_incomplete"
            return requeue(standing, incomplete_only=only, at=now, wait=seconds(121))
        case "update":
            return update(standing, note="n", exclude=("a",), begin=now)
        case "cancel":
            return cancel(standing, now)
        case "start" if state is JobState.PENDING:
            return started(standing, ("a",), now)
        case "finish" | "fail" if state is JobState.RUNNING:
            return completing(standing, JobState.FAILED if word == "fail" else JobState.COMPLETED)
        case "end" if state is JobState.COMPLETING:
            return ended(standing, now)
        case _:
            return standing


@given(st.lists(st.sampled_from(MOVES), max_size=30))
def test_any_moves_keep_a_job_whole(words: list[str]) -> None:
    now = Instant(0)
    job = LocalJob(name="j", command=("true",))
    standing = submitted(JobFact(cluster="l", scheduler_id="1"), job, now)
    for word in words:
        now = later(now, seconds(1))
        moved = move(standing, word, now)
        if isinstance(moved, Refused):
            assert moved.text
            continue
        before, after = standing.fact, moved.fact
        assert after.restart_count - before.restart_count in (0, 1)
        if after.restart_count > before.restart_count:
            assert word.startswith("requeue")
            assert before.state is not JobState.PENDING
        if before.state in ENDED and after != before:
            assert word == "requeue"
        if after.state is JobState.PENDING:
            assert (after.nodes, after.ended_at, after.exit_status) == ((), None, None)
        if after.state is JobState.COMPLETING:
            assert moved.follows is not JobState.UNKNOWN
        assert (after.ended_at is not None) == (after.state in ENDED)
        standing = moved


facts = st.builds(
    JobFact,
    cluster=st.just("l"),
    scheduler_id=st.uuids().map(str),
    expected_nodes=st.integers(1, 4),
    eligible_at=st.integers(0, 2).map(Instant),
    excluded_nodes=st.lists(st.sampled_from(NODES), unique=True).map(tuple),
)


@given(st.lists(facts, max_size=6), st.frozensets(st.sampled_from(NODES)))
def test_no_node_is_given_twice_or_against_an_exclusion(
    waiting: list[JobFact], busy: frozenset[str]
) -> None:
    decided = place(waiting, NODES, busy, Instant(1))
    given_out: list[str] = []
    for fact, one in zip(waiting, decided, strict=True):
        assert one.scheduler_id == fact.scheduler_id
        if isinstance(one, Start):
            assert len(one.nodes) == fact.expected_nodes
            assert not set(one.nodes) & set(fact.excluded_nodes)
            given_out += one.nodes
    assert len(given_out) == len(set(given_out))
    assert not set(given_out) & busy


def test_a_job_that_may_not_begin_or_never_could_blocks_nobody() -> None:
    def job(name: str, nodes: int, begin: int = 0, *exclude: str) -> JobFact:
        return JobFact(
            cluster="l",
            scheduler_id=name,
            expected_nodes=nodes,
            eligible_at=Instant(begin),
            excluded_nodes=exclude,
        )

    waiting = [job("later", 1, 9), job("never", 4, 0, "a"), job("fits", 2), job("big", 3)]
    assert place([*waiting, job("small", 1)], NODES, frozenset("d"), Instant(1)) == [
        Wait("later", "BeginTime"),
        Wait("never", "BadConstraints"),
        Start("fits", ("a", "b")),
        Wait("big", "Resources"),
        Wait("small", "Priority"),
    ]


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("job-%j.out", "/w/job-7.out"),
        ("%x/%N-%n-%t", "/w/na_me/node-02-1-3"),
        ("100%%t", "/w/100%t"),
        ("%z%", "/w/%z%"),
        ("/abs/%j", "/abs/7"),
    ],
)
def test_a_pattern_names_a_file(pattern: str, path: str) -> None:
    named = output_path(
        pattern, work_dir="/w", job_id="7", name="na/me", task=3, place=1, node="node-02"
    )
    assert str(named) == path


@pytest.mark.parametrize(
    ("pattern", "tasks", "shared"),
    [("%j", 1, False), ("%j", 2, True), ("%j-%t", 2, False), ("%%t", 2, True)],
)
def test_several_tasks_share_a_file_without_a_task_in_its_name(
    pattern: str, tasks: int, *, shared: bool
) -> None:
    assert is_shared(pattern, tasks) is shared
