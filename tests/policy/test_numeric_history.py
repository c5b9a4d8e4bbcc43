"""Numeric trouble over the attempts of one job: the code's, a node's, or nobody knows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relight.model.findings import Domain, Kind, Remedy
from relight.model.verdicts import Verdict
from relight.policy.numerics import Clean, Course, Repeated, Trouble, judged, repeated

ABC, DEF, AEF = ("a", "b", "c"), ("d", "e", "f"), ("a", "e", "f")
NAN = "loss-not-a-number"


def trouble(
    attempt: int, step: int | None, nodes: tuple[str, ...], rule: str = NAN, made: int = 100
) -> Trouble:
    return Trouble(attempt=attempt, rule=rule, step=step, nodes=nodes, steps_made=made)


CLEAN = Clean(nodes=DEF, steps_made=500)
CASES: list[tuple[str, Trouble, list[Trouble], list[Clean], Course]] = [
    ("first time", trouble(0, 100, ABC), [], [], Course.UNKNOWN),
    ("same step", trouble(1, 100, DEF), [trouble(0, 100, ABC)], [], Course.SAME_STEP),
    ("nearly the same step", trouble(1, 105, DEF), [trouble(0, 100, ABC)], [], Course.SAME_STEP),
    ("a node in common", trouble(1, 100, AEF), [trouble(0, 100, ABC)], [], Course.SAME_STEP),
    ("the same nodes", trouble(1, 100, ABC), [trouble(0, 100, ABC)], [], Course.UNKNOWN),
    (
        "another rule",
        trouble(1, 100, DEF, "loss-spike"),
        [trouble(0, 100, ABC)],
        [],
        Course.UNKNOWN,
    ),
    ("no step known", trouble(1, None, DEF), [trouble(0, 100, ABC)], [CLEAN], Course.UNKNOWN),
    ("with a node", trouble(2, 300, AEF), [trouble(0, 100, ABC)], [CLEAN], Course.SAME_NODE),
    ("never without it seen", trouble(2, 300, AEF), [trouble(0, 100, ABC)], [], Course.UNKNOWN),
    (
        "clean with it too",
        trouble(2, 300, AEF),
        [trouble(0, 100, ABC)],
        [CLEAN, Clean(nodes=ABC, steps_made=500)],
        Course.UNKNOWN,
    ),
    (
        "clean for too few steps",
        trouble(2, 300, AEF),
        [trouble(0, 100, ABC)],
        [Clean(nodes=DEF, steps_made=20)],
        Course.UNKNOWN,
    ),
    (
        "several nodes in common",
        trouble(2, 300, ("a", "b", "f")),
        [trouble(0, 100, ABC)],
        [CLEAN],
        Course.UNKNOWN,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_what_numeric_trouble_follows(
    case: tuple[str, Trouble, list[Trouble], list[Clean], Course],
) -> None:
    _, now, before, clean, course = case
    found = repeated(now, before, clean)
    assert found.course is course
    assert found.nodes == (("a",) if course is Course.SAME_NODE else ())


VERDICT = Verdict(
    domain=Domain.APPLICATION,
    cause=NAN,
    family="numeric",
    kind=Kind.NUMERIC,
    remedy=Remedy.CONFIRM_THEN_STOP,
    sentence="the loss is no number",
)


def test_a_verdict_takes_up_what_the_history_shows() -> None:
    same = judged(VERDICT, Repeated(course=Course.SAME_STEP, attempts=(0, 1)))
    assert (same.domain, same.remedy, same.suspects) == (Domain.APPLICATION, Remedy.STOP, ())
    assert "attempt 0, 1" in same.sentence
    moved = judged(VERDICT, Repeated(course=Course.SAME_NODE, attempts=(0,), nodes=("a",)))
    assert moved.domain is Domain.HARDWARE
    assert moved.remedy is Remedy.RESTART_EXCLUDING_NODE
    assert [one.node for one in moved.suspects] == ["a"]
    assert judged(VERDICT, Repeated()) == VERDICT


NODES = st.lists(st.sampled_from("abcdef"), unique=True, max_size=4).map(tuple)
TROUBLES = st.builds(
    Trouble,
    attempt=st.integers(0, 3),
    rule=st.sampled_from([NAN, "loss-spike"]),
    step=st.none() | st.integers(0, 50),
    nodes=NODES,
    steps_made=st.integers(0, 50),
)
CLEANS = st.builds(Clean, nodes=NODES, steps_made=st.integers(0, 60))


@given(TROUBLES, st.lists(TROUBLES, max_size=4), st.lists(CLEANS, max_size=3))
def test_only_a_node_of_its_own_that_is_never_clean_is_suspected(
    now: Trouble, before: list[Trouble], clean: list[Clean]
) -> None:
    found = repeated(now, before, clean)
    for node in found.nodes:
        assert node in now.nodes
        assert any(node in one.nodes for one in before)
        assert clean, "absent without it must have been seen"
    assert bool(found.attempts) is (found.course is not Course.UNKNOWN)
