"""A signal warns a job and ends nothing: what comes after it is judged as if none was sent."""

from __future__ import annotations

import pytest

from relight.model.advice import Advice, Approval, Decision, Disposition, Mode, StatusReason
from relight.model.evidence import Witness
from relight.model.findings import Domain, Kind, Remedy, Role
from relight.model.incidents import Phase
from relight.model.instants import seconds
from relight.model.jobs import JobState
from relight.model.orders import Order, OrderOutcome, Outcome, Verb
from relight.model.stimuli import OrderDone, PersonSaid, Word
from relight.policy.policies import Response
from relight.testing.stories import KEY, Story
from relight.testing.witnessed import WitnessedStory, told, witnessed_book

THROTTLED = told("gpu-throttled", Kind.SLOW, nodes=("node-02",))


def warned(mode: Mode = Mode.ACT, **fields: object) -> WitnessedStory:
    """Return a slow job that is to be moved, and was sent the signal before (in act mode)."""
    book = witnessed_book(
        mode,
        slow=Response.RESTART,
        signal_first="USR1@120",
        **fields,  # type: ignore[arg-type]  # fields of a policy
    )
    life = WitnessedStory(policy_book=book, testimony={Witness.TELEMETRY: (THROTTLED,)}).begin()
    life.find(
        "slowdown",
        kind=Kind.SLOW,
        role=Role.EITHER,
        domain=Domain.UNKNOWN,
        remedy=Remedy.REPORT,
        detector="slowdown",
        offset=3000,
    )
    life.progress(best_step=210, best_checkpoint=200)
    assert life.advice().forewarning is not None
    if mode is Mode.ACT:
        order(life, Verb.SIGNAL)
    return life


def order(life: Story, verb: Verb, outcome: Outcome = Outcome.DONE) -> None:
    advice = life.advice()
    given = Order(attempt=advice.attempt, generation=advice.generation, verb=verb)
    done = OrderOutcome(
        order=given, outcome=outcome, answer="", ordered_at=life.now, answered_at=life.now
    )
    life.take(OrderDone(job=KEY, seen_at=life.now, outcome=done))


def fail(life: Story) -> Advice:
    life.see(JobState.FAILED, exit_status=1)
    life.progress(final=True)
    life.wait(60)
    return life.advice()


def test_a_job_that_fails_after_the_advice_was_withdrawn_is_restarted() -> None:
    life = warned()
    life.see(JobState.SUSPENDED)
    assert life.advice().status.disposition is Disposition.ABANDONED
    life.see(JobState.RUNNING).wait(60)
    life.progress(best_step=230)
    life.find("ecc", ranks=(1,), tasks=(1,), offset=9000)
    advice = fail(life)
    assert advice.is_active
    assert not advice.while_living
    assert advice.decision is not Decision.NONE


def test_a_job_that_fails_after_the_advice_expired_is_restarted() -> None:
    life = warned(expires=seconds(300))
    life.wait(1000)
    assert life.advice().status.reason is StatusReason.ADVICE_EXPIRED
    assert fail(life).is_active


def test_a_job_that_fails_while_it_saves_is_left_to_the_advice_that_it_was_warned_of() -> None:
    life = warned()
    generation = life.advice().generation
    advice = fail(life)
    assert (advice.generation, advice.is_active) == (generation, True)
    assert advice.permit is not None


def test_an_attempt_that_was_requeued_is_not_judged_again_though_the_advice_is_over() -> None:
    life = warned(expires=seconds(300))
    order(life, Verb.REQUEUE)
    life.wait(1000)
    generation = life.advice().generation
    assert fail(life).generation == generation


def test_a_line_after_a_signal_restarts_nothing_while_steps_go_on() -> None:
    life = warned(expires=seconds(300))
    life.wait(1000)
    life.find("ecc", ranks=(1,), tasks=(1,), offset=9000)
    for step in range(300, 312):
        life.wait(10)
        life.progress(best_step=step)
    assert life.wait(40).advice().status.reason is StatusReason.ADVICE_EXPIRED
    incident = life.attempt().incident
    assert incident is not None
    assert incident.phase is Phase.CLOSED or incident.kind is Kind.SLOW


def test_a_signal_alone_makes_no_exclusion_of_an_earlier_attempt() -> None:
    life = warned(expires=seconds(300))
    life.wait(1000)
    life.see(JobState.RUNNING, 1)
    life.progress(0, final=True)
    life.find("bug", attempt=1, domain=Domain.APPLICATION, remedy=Remedy.RESTART)
    life.see(JobState.FAILED, 1, exit_status=1)
    life.progress(1, final=True)
    life.wait(60)
    assert life.advice(1).earlier_exclusions == ()


@pytest.mark.parametrize("before", [20, 1])
def test_an_approval_just_before_the_end_leaves_the_time_that_the_signal_gives(
    before: float,
) -> None:
    life = warned(Mode.APPROVE, expires=seconds(600))
    expires = life.advice().expires_at
    assert expires is not None
    while life.now < expires - seconds(before):
        life.wait(min(30, (expires - seconds(before) - life.now) / 1_000_000))
        life.progress(best_step=210 + (life.now - expires + seconds(720)) // seconds(30))
    said = PersonSaid(
        job=KEY,
        seen_at=life.now,
        attempt=0,
        generation=life.advice().generation,
        word=Word.APPROVE,
        who="olivia",
    )
    life.take(said)
    order(life, Verb.SIGNAL)
    life.wait(119)
    assert life.advice().is_active
    assert life.advice().approval is Approval.APPROVED


def test_a_job_that_fails_unseen_while_it_saves_is_restarted_all_the_same() -> None:
    life = warned()
    life.progress(logs_unseen="the disk is gone")
    assert life.advice().permit is None
    assert fail(life).permit is not None


def test_a_line_beside_an_advice_on_slowness_does_not_make_steps_speak_against_it() -> None:
    life = warned(Mode.APPROVE)
    life.wait(10)
    life.find("ecc", ranks=(1,), tasks=(1,), offset=9000)
    life.progress(best_step=220)
    assert life.advice().is_active
