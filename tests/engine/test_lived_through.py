"""What an attempt lived through: lines, silences, and signs from before its last step."""

from __future__ import annotations

import msgspec
import pytest

from relight.model.advice import Decision, Mode, StatusReason
from relight.model.evidence import Witness
from relight.model.findings import Domain, Finding, Kind, Provenance, Remedy, Role
from relight.model.incidents import Incident, Phase
from relight.model.instants import Instant, seconds
from relight.model.stimuli import FindingMade
from relight.policy.policies import Response
from relight.testing.stories import KEY, Story
from relight.testing.witnessed import WitnessedStory, told, witnessed_book

SPIN = told("gpus-spin", Kind.HANG, domain=Domain.UNKNOWN, remedy=Remedy.RESTART, role=Role.SYMPTOM)
XID = told(
    "gpu-xid", Kind.NODE, nodes=("node-02",), provenance=Provenance.KERNEL, detector="signatures"
)
GONE = told("telemetry-gone", Kind.HANG, nodes=("node-02",), role=Role.EITHER)
DOWN = told("node-rebooted", Kind.NODE, nodes=("node-02",), provenance=Provenance.SCHEDULER)
NUMERIC_LINES = (
    ("loss-nan", Kind.NUMERIC, Role.EITHER, Remedy.CONFIRM_THEN_STOP),
    ("result-rejected", Kind.NUMERIC, Role.EITHER, Remedy.RESTART),
    ("loss-scale-exhausted", Kind.NUMERIC, Role.ROOT, Remedy.CONFIRM_THEN_STOP),
    ("gpu-clocks-slowed", Kind.SLOW, Role.EITHER, Remedy.RESTART_EXCLUDING_NODE),
)


def story(*found: Finding, mode: Mode = Mode.ACT, **fields: object) -> WitnessedStory:
    life = WitnessedStory(
        policy_book=witnessed_book(mode, **fields),  # type: ignore[arg-type]  # fields of a policy
        testimony={Witness.TELEMETRY: found},
    )
    return life.begin()


def line(life: Story, which: tuple[str, Kind, Role, Remedy], count: int = 0) -> None:
    rule, kind, role, remedy = which
    life.find(
        rule, kind=kind, role=role, remedy=remedy, domain=Domain.APPLICATION, offset=8000 + count
    )


def compute_nonsense(life: Story, count: int = 0) -> None:
    life.find(
        "loss-not-a-number",
        kind=Kind.NUMERIC,
        role=Role.EITHER,
        domain=Domain.APPLICATION,
        remedy=Remedy.REPORT,
        detector="numerics",
        offset=7000 + count,
    )


def steps(life: Story, count: int, start: int = 300, apart: float = 10) -> None:
    for number in range(count):
        life.progress(best_step=start + number)
        life.wait(apart)


def incident_of(life: Story) -> Incident:
    incident = life.attempt().incident
    assert incident is not None
    return incident


@pytest.mark.parametrize("which", NUMERIC_LINES, ids=lambda one: one[0])
def test_a_line_of_bad_numbers_or_slowness_is_over_when_steps_go_on(
    which: tuple[str, Kind, Role, Remedy],
) -> None:
    life = story()
    line(life, which)
    steps(life, 60)
    assert incident_of(life).phase is Phase.CLOSED
    assert life.wait(100).attempt().advice is None, "a pause for a checkpoint"


@pytest.mark.parametrize("which", NUMERIC_LINES, ids=lambda one: one[0])
def test_a_line_of_bad_numbers_right_before_a_pause_restarts_nothing(
    which: tuple[str, Kind, Role, Remedy],
) -> None:
    life = story()
    line(life, which)
    assert life.wait(115).attempt().advice is None
    life.fall_silent()
    assert life.wait(620).advice().while_living, "silence is what tells"


@pytest.mark.parametrize(
    ("response", "decision"),
    [(Response.REPORT, Decision.NONE), (Response.STOP, Decision.STOP)],
)
def test_nonsense_in_every_line_is_judged_though_each_line_is_a_finding_too(
    response: Response, decision: Decision
) -> None:
    life = story(numeric=response, mode=Mode.APPROVE)
    for number in range(40):
        line(life, NUMERIC_LINES[0], number)
        if number == 1:
            compute_nonsense(life)
        steps(life, 1, start=300 + number)
    assert life.advice().decision is decision
    assert life.advice().is_active is (decision is Decision.STOP), "steps withdraw it not"


def test_nonsense_is_judged_when_a_line_that_came_with_it_was_recovered_from() -> None:
    life = WitnessedStory(policy_book=witnessed_book(numeric=Response.STOP)).begin()
    compute_nonsense(life)
    life.find("root-line", kind=Kind.CRASH, offset=8000)
    steps(life, 12)
    assert life.advice().decision is Decision.STOP
    assert life.advice().reason.code == "numeric-stop"


def test_an_advice_for_a_line_is_withdrawn_by_a_step_whatever_kind_it_opened_with() -> None:
    life = story(mode=Mode.APPROVE)
    line(life, NUMERIC_LINES[0])
    life.find("root-line", kind=Kind.CRASH, offset=9000)
    assert life.wait(70).advice().is_active
    life.progress(best_step=300)
    assert life.advice().status.reason is StatusReason.SUPERSEDED


def test_a_completed_checkpoint_starts_the_patience_anew() -> None:
    life = story().fall_silent()
    life.wait(590)
    life.progress(best_step=200, best_checkpoint=200)
    assert life.wait(30).attempt().advice is None
    life.fall_silent(count=1)
    assert life.wait(580).attempt().advice is None
    assert life.wait(30).advice().while_living


def test_a_completed_checkpoint_withdraws_what_was_advised_on_a_hang() -> None:
    life = story(SPIN, mode=Mode.APPROVE).fall_silent()
    assert life.advice().is_active
    life.progress(best_step=200, best_checkpoint=200)
    status = life.advice().status
    assert status.reason is StatusReason.SUPERSEDED
    assert status.sentence == "The checkpoint of step 200 was completed after all."


def seen(life: Story, one: Finding, at: Instant | None = None) -> None:
    made = msgspec.structs.replace(one, seen_at=life.now, at=at)
    life.take(FindingMade(job=KEY, seen_at=life.now, finding=made))


@pytest.mark.parametrize("sign", [XID, DOWN, GONE], ids=lambda one: one.rule)
def test_what_was_so_before_the_last_steps_confirms_no_silence(sign: Finding) -> None:
    life = story()
    seen(life, sign, life.now)
    steps(life, 14, apart=30)
    life.wait(125)
    life.fall_silent()
    assert life.wait(590).attempt().advice is None


def test_what_metrics_tell_only_now_of_long_ago_confirms_no_silence_either() -> None:
    life = story()
    began = life.now
    steps(life, 14, apart=30)
    life.testimony[Witness.TELEMETRY] = (msgspec.structs.replace(GONE, at=began),)
    life.wait(125)
    life.fall_silent()
    assert life.wait(590).attempt().advice is None


@pytest.mark.parametrize("ago", [-30, 0, 40])
def test_what_came_with_the_last_step_or_after_it_confirms(ago: float) -> None:
    life = story()
    stepped = life.now
    life.wait(125)
    seen(life, XID, Instant(stepped - seconds(ago)))
    assert life.fall_silent().advice().while_living
