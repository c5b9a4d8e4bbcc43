from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relight.model.advice import DISPOSITION_MOVES, Disposition
from relight.model.incidents import PHASE_MOVES, Phase
from relight.model.jobs import ENDED, WAITING, Allocation, AttemptKey, JobFact, JobKey, JobState
from relight.model.orders import Order, Verb
from relight.model.records import digest

CLUSTERS = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)
IDS = st.from_regex(r"[1-9][0-9]{0,6}(?:[_+][0-9]{1,4})?", fullmatch=True)
KEYS = st.builds(JobKey, cluster=CLUSTERS, scheduler_id=IDS, reuse=st.integers(0, 300))


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (JobKey(cluster="main", scheduler_id="123"), "main:123"),
        (JobKey(cluster="main", scheduler_id="8_1"), "main:8_1"),
        (JobKey(cluster="main", scheduler_id="9+0"), "main:9+0"),
        (JobKey(cluster="main", scheduler_id="123", reuse=1), "main:123~1"),
        (JobKey(cluster="lab-2", scheduler_id="8_11", reuse=12), "lab-2:8_11~12"),
    ],
)
def test_a_job_is_named_by_cluster_id_and_reuse(key: JobKey, text: str) -> None:
    assert str(key) == text
    assert JobKey.parse(text) == key
    attempt = AttemptKey(job=key, attempt=3)
    assert str(attempt) == f"{text}-3"
    assert AttemptKey.parse(f"{text}-3") == attempt


@given(KEYS, st.integers(0, 10_000))
def test_every_name_is_read_back(key: JobKey, attempt: int) -> None:
    named = AttemptKey(job=key, attempt=attempt)
    assert JobKey.parse(str(key)) == key
    assert AttemptKey.parse(str(named)) == named


@given(KEYS, KEYS, st.integers(0, 30), st.integers(0, 30))
def test_no_two_attempts_bear_one_name(one: JobKey, other: JobKey, first: int, second: int) -> None:
    left, right = AttemptKey(job=one, attempt=first), AttemptKey(job=other, attempt=second)
    assert (str(left) == str(right)) is (left == right)


@pytest.mark.parametrize(
    "text",
    ["", "123", "main:", ":1", "main:1~", "main:1~x", "main:1~2~3", "a:b:c", "a/b:1", "a:1/2"],
)
def test_another_text_names_no_job(text: str) -> None:
    with pytest.raises(ValueError, match="does not name a job"):
        JobKey.parse(text)


@pytest.mark.parametrize("text", ["", "main:1", "main:1-", "main:1-x", "1-0"])
def test_another_text_names_no_attempt(text: str) -> None:
    with pytest.raises(ValueError, match="does not name a"):
        AttemptKey.parse(text)


FOUR = Allocation(nodes=("n3", "n1", "n2", "n4"), tasks_per_node=2)


@pytest.mark.parametrize(
    ("allocation", "task", "node"),
    [
        (FOUR, 0, "n3"),
        (FOUR, 1, "n3"),
        (FOUR, 2, "n1"),
        (FOUR, 7, "n4"),
        (FOUR, 8, None),
        (FOUR, -1, None),
        (FOUR, 10**30, None),
        (Allocation(nodes=("a", "b")), 0, None),
        (Allocation(), 0, None),
    ],
)
def test_tasks_lie_in_blocks_on_the_nodes_in_allocation_order(
    allocation: Allocation, task: int, node: str | None
) -> None:
    assert allocation.node_of_task(task) == node


LONG = Allocation(nodes=("n1.rack1.example", "n1.rack2.example", "n2.rack2.example"))


@pytest.mark.parametrize(
    ("allocation", "host", "node"),
    [
        (FOUR, "n1", "n1"),
        (FOUR, "n1.example.org", "n1"),
        (FOUR, "n10", None),
        (FOUR, "n", None),
        (FOUR, "", None),
        (FOUR, ".", None),
        (LONG, "n2", "n2.rack2.example"),
        (LONG, "n1.rack2.example", "n1.rack2.example"),
        (LONG, "n1", None),
        (Allocation(nodes=("10.0.0.1", "10.0.0.2")), "10.0.0.2", "10.0.0.2"),
        (Allocation(nodes=("10.0.0.1", "10.0.0.2")), "10.9.9.9", None),
        (Allocation(nodes=("10.9.9.9",)), "10.20.4.15", None),
        (Allocation(nodes=("10.9.9.9",)), "10.9.9.9", "10.9.9.9"),
        (Allocation(nodes=("10.9.9.9",)), "10", None),
        (Allocation(nodes=("10.rack.example",)), "10.20.4.15", None),
        (Allocation(nodes=("fe80::1",)), "fe80::2", None),
        (Allocation(), "n1", None),
    ],
)
def test_a_host_is_known_by_its_full_or_short_name_where_that_is_one_node(
    allocation: Allocation, host: str, node: str | None
) -> None:
    assert allocation.member(host) == node


def test_every_state_is_over_waiting_or_going_on() -> None:
    going_on = {JobState.RUNNING, JobState.COMPLETING, JobState.SUSPENDED, JobState.UNKNOWN}
    assert not ENDED & WAITING
    assert set(JobState) == ENDED | WAITING | going_on


def test_the_tables_of_moves_know_every_state_and_end() -> None:
    assert set(PHASE_MOVES) == set(Phase)
    assert set(DISPOSITION_MOVES) == set(Disposition)
    assert not PHASE_MOVES[Phase.CLOSED]
    assert not DISPOSITION_MOVES[Disposition.CONVERGED]
    assert not DISPOSITION_MOVES[Disposition.ABANDONED]


def test_an_orders_key_differs_with_job_attempt_verb_and_target_and_nothing_else() -> None:
    first = AttemptKey(job=JobKey(cluster="main", scheduler_id="1"), attempt=1)
    base = Order(attempt=first, generation=1, verb=Verb.START, target="generation-1")
    replace = msgspec.structs.replace
    others = [
        replace(base, attempt=AttemptKey(job=first.job, attempt=11)),
        replace(base, attempt=AttemptKey(job=replace(first.job, scheduler_id="11"), attempt=1)),
        replace(base, attempt=AttemptKey(job=replace(first.job, reuse=1), attempt=1)),
        replace(base, verb=Verb.CANCEL),
        replace(base, target="generation-2"),
    ]
    assert len({base.key, *(one.key for one in others)}) == 6
    assert replace(base, note="x", generation=2, exclude=("n1",)).key == base.key


def test_a_digest_tells_where_its_parts_end() -> None:
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("a", "b") == digest("a", "b")
    assert len(digest()) == 12


@given(st.text(max_size=30), st.sampled_from(JobState))
def test_a_fact_comes_back_from_json_as_it_was(comment: str, state: JobState) -> None:
    fact = JobFact(cluster="main", scheduler_id="1", comment=comment, state=state)
    assert msgspec.json.decode(msgspec.json.encode(fact), type=JobFact) == fact
