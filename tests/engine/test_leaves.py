"""A permit to end a living attempt holds only while what it rests on is still seen."""

from __future__ import annotations

import pytest

from relight.model.advice import Advice, Disposition, Mode
from relight.model.evidence import Witness
from relight.model.findings import Domain, Kind, Remedy, Role
from relight.model.incidents import Phase
from relight.model.jobs import JobState, NodeFact, NodeState
from relight.model.orders import Order, OrderOutcome, Outcome, Verb
from relight.model.stimuli import NodeSeen, OrderDone, PersonSaid, Word
from relight.policy.policies import Response
from relight.testing.stories import KEY
from relight.testing.witnessed import WitnessedStory, told, witnessed_book

SPIN = told("gpus-spin", Kind.HANG, domain=Domain.UNKNOWN, remedy=Remedy.RESTART, role=Role.SYMPTOM)
WORK = told("gpus-work", Kind.HANG, role=Role.BENIGN, domain=Domain.NONE, remedy=Remedy.REPORT)


def hung(mode: Mode = Mode.ACT, **fields: object) -> WitnessedStory:
    book = witnessed_book(mode, **fields)  # type: ignore[arg-type]  # fields of a policy
    life = WitnessedStory(policy_book=book, testimony={Witness.TELEMETRY: (SPIN,)})
    life.begin().wait(130)
    return life.fall_silent()


def lose_sight(life: WitnessedStory) -> None:
    life.progress(logs_unseen="the disk is gone")


def find_again(life: WitnessedStory) -> None:
    life.progress()


def approve(life: WitnessedStory) -> Advice:
    said = PersonSaid(
        job=KEY,
        seen_at=life.now,
        attempt=0,
        generation=life.advice().generation,
        word=Word.APPROVE,
        who="olivia",
    )
    life.take(said)
    return life.advice()


def test_a_permit_is_withheld_while_the_logs_are_not_seen_and_given_when_they_are() -> None:
    life = hung()
    assert life.advice().permit is not None
    lose_sight(life)
    assert life.advice().permit is None
    assert life.wait(600).advice().is_active
    asked = len(life.asked)
    find_again(life)
    assert life.advice().permit is not None
    assert len(life.asked) == asked + 1, "witnesses are asked anew before"


def test_a_permit_is_withheld_when_nobody_has_listened_for_a_while() -> None:
    life = hung()
    life.is_listened_to = False
    assert life.wait(14).advice().permit is not None
    assert life.wait(3).advice().permit is None
    assert sum("nothing is done until they are" in one for one in life.sentences) == 1


def test_a_yes_after_an_hour_is_followed_only_once_witnesses_looked_anew() -> None:
    life = hung(Mode.APPROVE)
    life.wait(3000)
    count = len(life.asked)
    del life.testimony[Witness.TELEMETRY]
    assert approve(life).permit is None
    assert [one.window.silent_since for one in life.asked[count:]] == [
        life.asked[0].window.silent_since
    ]
    life.answer(Witness.TELEMETRY, 0, life.now)
    assert life.advice().permit is not None


def test_a_yes_to_what_works_by_now_is_withdrawn_and_it_is_looked_at_again() -> None:
    life = hung(Mode.APPROVE)
    life.wait(3000)
    life.testimony[Witness.TELEMETRY] = (WORK,)
    advice = approve(life)
    assert advice.status.disposition is Disposition.ABANDONED
    assert advice.permit is None
    life.testimony[Witness.TELEMETRY] = (SPIN,)
    assert life.wait(2000).advice().is_active


def test_a_yes_while_the_logs_are_not_seen_waits_until_they_are() -> None:
    life = hung(Mode.APPROVE)
    lose_sight(life)
    life.wait(3000)
    assert approve(life).permit is None
    assert life.wait(60).advice().permit is None
    find_again(life)
    assert life.advice().permit is not None


def test_a_yes_right_away_needs_no_new_look() -> None:
    life = hung(Mode.APPROVE)
    count = len(life.asked)
    assert approve(life).permit is not None
    assert len(life.asked) == count


def test_a_witness_that_does_not_answer_is_waited_for_no_longer_than_the_policy_says() -> None:
    life = hung(Mode.APPROVE)
    life.wait(3000)
    del life.testimony[Witness.TELEMETRY]
    assert approve(life).permit is None
    assert life.wait(16).advice().permit is not None, "the silence itself was listened to"


def test_where_a_node_is_gone_nothing_is_withheld() -> None:
    life = WitnessedStory(policy_book=witnessed_book()).begin()
    down = NodeFact(cluster="main", name="node-02", state=NodeState.DOWN)
    life.take(NodeSeen(job=KEY, seen_at=life.now, fact=down))
    life.wait(30)
    assert life.advice().permit is not None
    lose_sight(life)
    assert life.wait(60).advice().permit is not None


def test_nothing_is_withheld_any_more_once_an_order_was_given() -> None:
    life = hung()
    advice = life.advice()
    order = Order(attempt=advice.attempt, generation=advice.generation, verb=Verb.REQUEUE)
    done = OrderOutcome(
        order=order,
        outcome=Outcome.DONE,
        answer="",
        ordered_at=life.now,
        answered_at=life.now,
    )
    life.take(OrderDone(job=KEY, seen_at=life.now, outcome=done))
    lose_sight(life)
    assert life.advice().permit is not None


def ordered(life: WitnessedStory, outcome: Outcome) -> None:
    """Let the controller order the requeue that is advised."""
    advice = life.advice()
    order = Order(attempt=advice.attempt, generation=advice.generation, verb=Verb.REQUEUE)
    told = OrderOutcome(
        order=order, outcome=outcome, answer="", ordered_at=life.now, answered_at=life.now
    )
    life.take(OrderDone(job=KEY, seen_at=life.now, outcome=told))


@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.UNCLEAR])
def test_an_order_that_may_not_have_happened_lets_steps_end_the_advice(outcome: Outcome) -> None:
    life = hung()
    ordered(life, outcome)
    for step in (500, 510, 520):
        life.progress(best_step=step).wait(5)
    assert not life.advice().is_active
    incident = life.attempt().incident
    assert incident is not None
    assert incident.phase is Phase.CLOSED


@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.UNCLEAR])
def test_an_attempt_that_fails_long_after_such_an_order_is_judged(outcome: Outcome) -> None:
    life = hung()
    ordered(life, outcome)
    for step in range(500, 900, 10):
        life.progress(best_step=step).wait(30)
    life.see(JobState.FAILED, exit_status=1)
    life.progress(final=True)
    assert life.wait(60).advice().is_active


def test_an_attempt_that_completes_takes_its_advice_with_it() -> None:
    life = hung()
    life.see(JobState.COMPLETED)
    assert not life.advice().is_active


def test_an_attempt_that_ends_meanwhile_is_judged_and_restarted() -> None:
    life = hung()
    lose_sight(life)
    life.see(JobState.FAILED, exit_status=1)
    life.progress(final=True)
    assert life.wait(60).advice().permit is not None


@pytest.mark.parametrize("mode", [Mode.MONITOR, Mode.APPROVE])
def test_where_nobody_said_yes_none_is_ever_given(mode: Mode) -> None:
    life = hung(mode)
    lose_sight(life)
    life.wait(60)
    find_again(life)
    assert life.advice().permit is None


def test_none_is_given_any_more_where_the_policy_has_changed_to_monitor() -> None:
    life = hung()
    lose_sight(life)
    life.policy_book = witnessed_book(Mode.MONITOR)
    find_again(life)
    assert life.advice().permit is None


def test_a_stop_of_nonsense_is_held_back_too() -> None:
    life = WitnessedStory(
        policy_book=witnessed_book(numeric=Response.STOP), testimony={Witness.TELEMETRY: ()}
    ).begin()
    life.find(
        "loss-not-a-number",
        kind=Kind.NUMERIC,
        role=Role.EITHER,
        domain=Domain.APPLICATION,
        remedy=Remedy.REPORT,
        detector="numerics",
        offset=7000,
    )
    assert life.advice().permit is not None
    lose_sight(life)
    assert life.advice().permit is None


def test_that_it_is_withheld_is_told_once() -> None:
    life = hung()
    lose_sight(life)
    told_so_far = len(life.sentences)
    lose_sight(life)
    assert len(life.sentences) == told_so_far
