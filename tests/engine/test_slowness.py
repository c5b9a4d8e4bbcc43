"""A living attempt that has become slow: told, moved at a checkpoint, or well again."""

from __future__ import annotations

import msgspec
import pytest

from relight.model.advice import Action, Decision, Forewarning, StatusReason
from relight.model.evidence import Witness
from relight.model.findings import Domain, Finding, Kind, Remedy, Role
from relight.model.incidents import Incident, Phase
from relight.model.instants import Instant, later, seconds
from relight.model.jobs import JobState
from relight.model.orders import Order, OrderOutcome, Outcome, Verb
from relight.model.stimuli import FindingMade, OrderDone
from relight.model.verdicts import Suspect, Verdict
from relight.policy.living import forewarning_of, names_slow_node
from relight.policy.policies import Policy, Response
from relight.testing.stories import KEY, Story
from relight.testing.witnessed import WitnessedStory, told, witnessed_book

THROTTLED = told("gpu-throttled", Kind.SLOW, nodes=("node-02",))


def story(*found: Finding, slow: Response = Response.RESTART, **fields: object) -> WitnessedStory:
    life = WitnessedStory(
        policy_book=witnessed_book(slow=slow, **fields),  # type: ignore[arg-type]  # fields of a policy
        testimony={Witness.TELEMETRY: found},
    )
    return life.begin()


def become_slow(life: WitnessedStory, *, count: int = 0) -> WitnessedStory:
    """Let the detector of slowness speak; where telemetry blames a node, it is the cause."""
    life.find(
        "slowdown",
        kind=Kind.SLOW,
        role=Role.EITHER,
        domain=Domain.UNKNOWN,
        remedy=Remedy.REPORT,
        detector="slowdown",
        offset=3000 + count,
    )
    return life


def step(life: Story, first: int, last: int, pause: float, checkpoint: int | None = None) -> None:
    for number in range(first, last + 1):
        life.wait(pause)
        life.progress(best_step=number, best_checkpoint=checkpoint)


def incident_of(life: Story) -> Incident:
    incident = life.attempt().incident
    assert incident is not None
    return incident


def test_a_slow_job_is_told_and_goes_on_with_its_incident_open() -> None:
    life = become_slow(story(slow=Response.REPORT))
    advice = life.advice()
    assert (advice.decision, advice.reason.code) == (Decision.NONE, "slowdown-reported")
    assert not advice.is_active
    assert incident_of(life).kind is Kind.SLOW
    assert incident_of(life).phase is Phase.ADVISED
    step(life, 201, 230, 8)
    assert life.advice().generation == 1


def test_the_question_says_since_when_it_is_slow() -> None:
    life = become_slow(story())
    window = life.asked[0].window
    assert window.silent_since is None
    assert window.slow_since is not None
    assert window.since == window.slow_since - seconds(600)


def test_where_no_node_is_named_nothing_is_restarted_though_the_policy_would() -> None:
    life = become_slow(story())
    step(life, 201, 300, 8, checkpoint=250)
    assert life.advice().decision is Decision.NONE
    assert "No node is surely the slow one" in life.advice().reason.sentence


def planned(**fields: object) -> WitnessedStory:
    life = story(THROTTLED, **fields)  # type: ignore[arg-type]  # fields of a policy
    become_slow(life)
    assert names_slow_node(verdict_of(life)), verdict_of(life)
    return life


def verdict_of(life: Story) -> Verdict:
    verdict = incident_of(life).verdict
    assert verdict is not None
    return verdict


def test_a_named_slow_node_is_left_at_the_next_completed_checkpoint_and_no_earlier() -> None:
    life = planned()
    step(life, 201, 260, 8)
    assert life.attempt().advice is None
    assert incident_of(life).plan is not None
    life.progress(best_step=261, best_checkpoint=100)
    assert life.attempt().advice is None, "that checkpoint was known"
    life.progress(best_step=262, best_checkpoint=260)
    assert life.advice().decision is Decision.RESTART_EXCLUDING_NODE
    assert life.advice().exclusions == ("node-02",)
    assert life.advice().while_living
    assert len(life.asked) == 2, "looked at again: the first look was minutes old"


def test_a_node_that_is_no_longer_slow_at_the_checkpoint_is_kept() -> None:
    life = planned()
    step(life, 201, 220, 8)
    life.testimony[Witness.TELEMETRY] = ()
    life.progress(best_step=221, best_checkpoint=220)
    assert life.advice().decision is Decision.NONE
    assert incident_of(life).plan is None


def test_steps_that_go_on_do_not_withdraw_the_restart_of_a_slow_job() -> None:
    life = planned()
    life.progress(best_step=201, best_checkpoint=201)
    assert life.advice().is_active
    step(life, 202, 220, 8)
    assert life.advice().is_active


def test_slowness_that_ends_closes_the_incident() -> None:
    life = become_slow(story(slow=Response.REPORT))
    step(life, 201, 240, 8)
    assert incident_of(life).phase is Phase.ADVISED
    step(life, 241, 400, 3)
    closed = incident_of(life).closed
    assert closed is not None
    assert closed.code == "pace-regained"
    become_slow(life, count=1)
    assert incident_of(life).id.endswith(".2")
    assert life.advice().generation == 2


def test_a_checkpoint_now_and_then_does_not_hide_that_the_pace_is_the_old_one() -> None:
    life = become_slow(story(slow=Response.REPORT))
    for number in range(201, 400):
        life.wait(63 if number % 40 == 0 else 3)
        life.progress(best_step=number)
    closed = incident_of(life).closed
    assert closed is not None
    assert closed.code == "pace-regained"


def test_a_crash_of_a_slow_job_is_another_story() -> None:
    life = become_slow(story(slow=Response.REPORT))
    life.find("ecc", ranks=(2,), tasks=(2,), offset=9000)
    assert incident_of(life).kind is Kind.CRASH
    assert life.attempt().past_incidents[-1].closed is not None
    life.see(JobState.FAILED, exit_status=1).progress(final=True)
    assert life.advice().exclusions == ("node-03",)
    assert verdict_of(life).cause == "ecc"


def test_that_a_job_was_slow_never_explains_why_it_ended() -> None:
    life = become_slow(story(slow=Response.REPORT))
    life.see(JobState.FAILED, exit_status=1).progress(final=True)
    assert verdict_of(life).cause == "unknown-failure"


def test_a_slow_job_that_falls_silent_is_a_hang() -> None:
    life = become_slow(story(slow=Response.REPORT)).fall_silent()
    assert incident_of(life).kind is Kind.HANG


def test_a_slow_job_that_completes_closes_its_incident() -> None:
    life = become_slow(story(slow=Response.REPORT))
    life.see(JobState.COMPLETED)
    closed = incident_of(life).closed
    assert closed is not None
    assert closed.code == "completed"


def test_a_planned_restart_sends_the_policys_signal_first() -> None:
    life = planned(signal_first="B:USR1@120")
    life.progress(best_step=201, best_checkpoint=201)
    advice = life.advice()
    assert advice.forewarning == Forewarning(
        name="USR1", batch_only=True, wait=seconds(120), checkpoint=201
    )
    assert advice.permit is not None
    assert Action.SIGNAL in advice.permit.actions
    assert advice.expires_at == later(advice.made_at, seconds(3600 + 120))


def signalled(life: WitnessedStory, outcome: Outcome = Outcome.DONE) -> Instant:
    advice = life.advice()
    order = Order(
        attempt=advice.attempt, generation=advice.generation, verb=Verb.SIGNAL, signal="USR1"
    )
    done = OrderOutcome(
        order=order, outcome=outcome, answer="", ordered_at=life.now, answered_at=life.now
    )
    life.take(OrderDone(job=KEY, seen_at=life.now, outcome=done))
    return life.now


@pytest.mark.parametrize("outcome", Outcome)
def test_when_the_signal_was_sent_is_written_into_the_advice(outcome: Outcome) -> None:
    life = planned(signal_first="USR1@120")
    life.progress(best_step=201, best_checkpoint=201)
    at = signalled(life, outcome)
    ahead = life.advice().forewarning
    assert ahead is not None
    assert ahead.sent_at == at
    assert life.advice().generation == 1
    assert incident_of(life).phase is Phase.ADVISED, "a signal carries nothing out"


def test_a_checkpoint_after_the_signal_ends_the_wait() -> None:
    life = planned(signal_first="USR1@120")
    life.progress(best_step=201, best_checkpoint=201)
    signalled(life)
    life.progress(best_step=202, best_checkpoint=201)
    ahead = life.advice().forewarning
    assert ahead is not None
    assert not ahead.is_heeded
    life.progress(best_step=203, best_checkpoint=203)
    ahead = life.advice().forewarning
    assert ahead is not None
    assert ahead.is_heeded
    assert sum("After the signal" in one for one in life.sentences) == 1


def test_a_hang_is_never_signalled_first() -> None:
    life = story(told("gpus-spin", Kind.HANG, remedy=Remedy.RESTART), signal_first="USR1@9")
    assert life.fall_silent().advice().forewarning is None


def test_a_slow_job_that_a_person_cancels_is_left_alone() -> None:
    life = planned()
    life.progress(best_step=201, best_checkpoint=201)
    life.see(JobState.CANCELLED)
    assert not life.advice().is_active
    assert life.advice().status.reason is StatusReason.CHANGED_BY_PERSON


def test_a_job_that_is_no_longer_known_ends_the_restart() -> None:
    life = planned()
    life.progress(best_step=201, best_checkpoint=201).see(JobState.RUNNING, comment="")
    assert life.advice().status.reason is StatusReason.CHANGED_BY_PERSON


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("", None),
        ("USR1", None),
        ("USR1@soon", None),
        ("USR1@120", Forewarning(name="USR1", wait=seconds(120), checkpoint=7)),
        ("B:TERM@5", Forewarning(name="TERM", wait=seconds(5), checkpoint=7, batch_only=True)),
    ],
)
def test_a_signal_is_written_as_for_sbatch(written: str, expected: Forewarning | None) -> None:
    assert forewarning_of(Policy(name="p", signal_first=written), 7) == expected


NAMED = Verdict(
    domain=Domain.HARDWARE,
    cause="gpu-throttled",
    family="slow",
    kind=Kind.SLOW,
    remedy=Remedy.RESTART_EXCLUDING_NODE,
    sentence="node-02 is slow",
    suspects=(Suspect(node="node-02", share=1.0, why="throttled"),),
    confidence=0.8,
)


@pytest.mark.parametrize(
    ("changed", "is_named"),
    [
        ({}, True),
        ({"confidence": 0.5}, False),
        ({"suspects": ()}, False),
        ({"domain": Domain.STORAGE}, False),
        ({"remedy": Remedy.REPORT}, False),
    ],
)
def test_a_slow_node_is_named_only_by_hardware_a_remedy_and_enough_confidence(
    changed: dict[str, object], *, is_named: bool
) -> None:
    assert names_slow_node(msgspec.structs.replace(NAMED, **changed)) is is_named


def test_a_straggler_that_telemetry_tells_of_without_slowness_opens_nothing() -> None:
    life = story()
    made = msgspec.structs.replace(THROTTLED, seen_at=life.now)
    life.take(FindingMade(job=KEY, seen_at=life.now, finding=made))
    assert life.attempt().incident is None
