"""What is coming is said before it is done: what, when at the latest, and how to prevent it."""

from __future__ import annotations

import msgspec
import pytest

from relight.engine.plans import plan_of
from relight.model.advice import Advice, Decision, Mode, StatusReason
from relight.model.evidence import Witness
from relight.model.findings import Domain, Finding, Kind, Remedy, Role
from relight.model.instants import later, seconds, to_iso
from relight.model.jobs import JobState
from relight.policy.policies import Response
from relight.testing.witnessed import WitnessedStory, told, witnessed_book

GONE = told("telemetry-gone", Kind.HANG, nodes=("node-02",), role=Role.SYMPTOM)
THROTTLED = told("gpu-throttled", Kind.SLOW, nodes=("node-02",))


def silent(mode: Mode = Mode.ACT, *found: Finding, **fields: object) -> WitnessedStory:
    life = WitnessedStory(
        policy_book=witnessed_book(mode, **fields),  # type: ignore[arg-type]  # fields of a policy
        testimony={Witness.TELEMETRY: found},
    )
    return life.begin().fall_silent()


def slow() -> WitnessedStory:
    life = WitnessedStory(
        policy_book=witnessed_book(slow=Response.RESTART),
        testimony={Witness.TELEMETRY: (THROTTLED,)},
    ).begin()
    life.find(
        "slowdown",
        kind=Kind.SLOW,
        role=Role.EITHER,
        domain=Domain.UNKNOWN,
        remedy=Remedy.REPORT,
        detector="slowdown",
        offset=3000,
    )
    return life


def planned(life: WitnessedStory) -> Advice:
    plan = plan_of(life.attempt())
    assert plan is not None
    return plan


@pytest.mark.parametrize(
    ("mode", "word"),
    [
        (Mode.MONITOR, "mode monitor: nothing is done"),
        (Mode.APPROVE, "once a person agrees"),
        (Mode.ACT, "it is restarted at"),
    ],
)
def test_an_unconfirmed_hang_says_what_comes_when_and_how_to_prevent_it(
    mode: Mode, word: str
) -> None:
    life = silent(mode)
    plan = planned(life)
    due = later(life.now, seconds(600))
    assert (plan.generation, plan.decision, plan.not_before) == (0, Decision.RESTART, due)
    assert f"at {to_iso(due)[:19]}Z at the latest" in plan.reason.sentence
    assert 'set hang to "report" in policy default' in plan.reason.sentence
    assert word in plan.reason.sentence
    assert plan.permit is None
    assert life.attempt().advice is None
    life.wait(500)
    assert planned(life).not_before == due, "looking again does not put it off"
    assert sum("It may hang" in one for one in life.sentences) == 1


def test_a_hang_that_is_only_told_promises_no_restart() -> None:
    plan = planned(silent(hang=Response.REPORT))
    assert plan.decision is Decision.NONE
    assert "nothing is done" in plan.reason.sentence


@pytest.mark.parametrize("change", ["step", "advice", "end"])
def test_a_plan_holds_no_longer_than_its_trouble(change: str) -> None:
    life = silent()
    if change == "step":
        life.wait(5).progress(best_step=300)
    elif change == "advice":
        life.wait(610)
    else:
        life.see(JobState.CANCELLED)
    assert plan_of(life.attempt()) is None


def test_a_slow_restart_is_planned_for_the_next_checkpoint() -> None:
    life = slow()
    plan = planned(life)
    assert plan.decision is Decision.RESTART_EXCLUDING_NODE
    assert plan.exclusions == ("node-02",)
    assert plan.not_before is None
    assert "at the next completed checkpoint after that of step 100" in plan.reason.sentence
    assert 'set slow to "report" in policy default' in plan.reason.sentence
    life.progress(best_step=201, best_checkpoint=201)
    assert life.attempt().advice is not None
    assert plan_of(life.attempt()) is None


def test_a_plan_is_stored_and_read_back() -> None:
    attempt = slow().attempt()
    assert msgspec.json.decode(msgspec.json.encode(attempt), type=type(attempt)) == attempt


def test_witnesses_that_saw_too_little_are_asked_until_they_confirm() -> None:
    life = silent()
    life.testimony[Witness.TELEMETRY] = (told("gpus-spin", Kind.HANG),)
    life.wait(35)
    assert len(life.asked) == 2
    assert life.advice().while_living


def test_a_silence_before_the_first_step_is_not_looked_at_for_ever() -> None:
    life = WitnessedStory(policy_book=witnessed_book(), testimony={Witness.TELEMETRY: ()})
    life.see(JobState.RUNNING)
    life.fall_silent().wait(4000)
    assert len(life.asked) == 1


def test_an_exporter_that_stopped_confirms_no_hang() -> None:
    assert silent(Mode.ACT, GONE).wait(100).attempt().advice is None


def test_the_fault_of_a_hang_is_its_last_step_and_not_the_look_at_metrics() -> None:
    life = WitnessedStory(policy_book=witnessed_book())
    life.begin()
    stepped = life.now
    life.wait(40)
    late = msgspec.structs.replace(told("gpus-spin", Kind.HANG), at=life.now - seconds(5))
    life.testimony[Witness.TELEMETRY] = (late,)
    life.fall_silent()
    incident = life.attempt().incident
    assert incident is not None
    assert incident.verdict is not None
    assert incident.verdict.cause == "gpus-spin"
    assert incident.times.fault == stepped


def test_the_fault_of_slowness_is_its_onset() -> None:
    life = slow()
    incident = life.attempt().incident
    assert incident is not None
    assert incident.times.fault == life.now - seconds(300)


def test_an_advice_ends_once_two_attempts_have_begun_since() -> None:
    life = WitnessedStory(policy_book=witnessed_book(Mode.MONITOR)).begin()
    life.see(JobState.NODE_FAIL).progress(final=True).wait(60)
    assert life.advice().is_active
    life.see(JobState.RUNNING, 1).see(JobState.RUNNING, 2)
    assert life.advice().status.reason is StatusReason.SUPERSEDED


def test_how_many_restarts_are_left_is_noted_with_the_advice() -> None:
    life = silent().wait(610)
    restarts = life.attempt().restarts
    assert restarts is not None
    assert (restarts.used, restarts.allowed) == (0, 3)
