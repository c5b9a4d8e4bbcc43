"""Hangs that come one after another: the same one again, or another that only looks alike."""

from __future__ import annotations

import msgspec
import pytest

from relight.model.advice import (
    Advice,
    Decision,
    Disposition,
    ReconciliationStatus,
    StatusReason,
)
from relight.model.evidence import Witness
from relight.model.findings import Domain, Finding, Kind, Remedy, Role
from relight.model.jobs import JobState
from relight.model.orders import Order, OrderOutcome, Outcome, Verb
from relight.model.stimuli import OrderDone, StatusSeen
from relight.testing.stories import KEY
from relight.testing.witnessed import WitnessedStory, told, witnessed_book

IDLE = told("gpu-idle-among-busy", Kind.HANG, nodes=("node-02",))
ELSEWHERE = msgspec.structs.replace(IDLE, id="elsewhere", nodes=("node-04",))
UNNAMED = msgspec.structs.replace(IDLE, id="unnamed", nodes=())
SPIN = told("gpus-spin", Kind.HANG, domain=Domain.UNKNOWN, remedy=Remedy.RESTART, role=Role.SYMPTOM)
AGAIN = msgspec.structs.replace(SPIN, id="spin-again")
STORAGE = told(
    "storage-wait", Kind.SLOW, role=Role.EITHER, domain=Domain.STORAGE, remedy=Remedy.HOLD
)
OTHERS = ("node-01", "node-03", "node-04")


def lived(first: Finding, second: Finding) -> Advice:
    """Return the advice on a second hang, at the same step and on other nodes."""
    life = WitnessedStory(
        policy_book=witnessed_book(), testimony={Witness.TELEMETRY: (first,)}
    ).begin()
    life.fall_silent().wait(700)
    follow(life)
    life.testimony[Witness.TELEMETRY] = (second,)
    for number in range(10):
        life.wait(10)
        life.progress(1, best_step=10 * number + 100, first_step=100, resumed_from=100)
    life.fall_silent(1, count=50).wait(700)
    return life.advice(1)


def follow(life: WitnessedStory) -> None:
    """Let the advice on the first attempt be carried out, and the second one run elsewhere."""
    advice = life.advice()
    for verb in (Verb.REQUEUE, Verb.START):
        given = Order(attempt=advice.attempt, generation=advice.generation, verb=verb)
        done = OrderOutcome(
            order=given,
            outcome=Outcome.DONE,
            answer="",
            ordered_at=life.now,
            answered_at=life.now,
        )
        life.take(OrderDone(job=KEY, seen_at=life.now, outcome=done))
    life.see(JobState.PENDING, 1)
    life.progress(0, final=True)
    life.see(JobState.RUNNING, 1, nodes=OTHERS)
    status = ReconciliationStatus(
        disposition=Disposition.CONVERGED,
        reason=StatusReason.DESIRED_STATE_OBSERVED,
        generation=life.advice().generation,
    )
    life.take(StatusSeen(job=KEY, seen_at=life.now, attempt=0, status=status))


@pytest.mark.parametrize(
    ("first", "second"),
    [(IDLE, SPIN), (STORAGE, SPIN), (SPIN, STORAGE), (IDLE, STORAGE)],
    ids=lambda one: one.rule,
)
def test_a_hang_of_another_cause_is_another_failure(first: Finding, second: Finding) -> None:
    advice = lived(first, second)
    assert advice.decision in (Decision.RESTART, Decision.HOLD)
    assert advice.given_back == ()


def test_the_node_that_was_left_out_stays_out_when_another_hang_names_none() -> None:
    advice = lived(IDLE, SPIN)
    assert advice.earlier_exclusions == ("node-02",)


def test_the_node_that_was_left_out_stays_out_when_another_one_fails_alike() -> None:
    advice = lived(IDLE, ELSEWHERE)
    assert advice.decision is Decision.RESTART_EXCLUDING_NODE
    assert advice.exclusions == ("node-04",)
    assert advice.earlier_exclusions == ("node-02",)
    assert advice.given_back == ()


def test_the_same_hang_on_other_nodes_that_names_nobody_is_the_same() -> None:
    assert lived(SPIN, AGAIN).reason.code == "same-failure-again"
