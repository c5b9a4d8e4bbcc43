"""A hang or slowness that a person or the scheduler ends keeps its verdict."""

from __future__ import annotations

import pytest

from relight.model.advice import Decision, Disposition, Mode, StatusReason
from relight.model.evidence import Witness
from relight.model.findings import Domain, Kind, Remedy, Role
from relight.model.incidents import Incident, Phase
from relight.model.instants import seconds
from relight.model.jobs import JobState
from relight.policy.policies import Response
from relight.testing.witnessed import WitnessedStory, told, witnessed_book

XID = told("gpu-xid", Kind.NODE, nodes=("node-02",))


def hung(mode: Mode = Mode.MONITOR, **fields: object) -> WitnessedStory:
    life = WitnessedStory(
        policy_book=witnessed_book(mode, **fields),  # type: ignore[arg-type]  # fields of a policy
        testimony={Witness.TELEMETRY: (XID,)},
    )
    return life.begin().fall_silent()


def debris(life: WitnessedStory) -> None:
    life.find(
        "gloo-connection-closed",
        role=Role.EITHER,
        domain=Domain.NETWORK,
        remedy=Remedy.RESTART,
        offset=9000,
    )


def incident_of(life: WitnessedStory, number: int = 0) -> Incident:
    incident = life.attempt(number).incident
    assert incident is not None
    return incident


@pytest.mark.parametrize(
    ("state", "code", "reason"),
    [
        (JobState.CANCELLED, "ended-cancelled", StatusReason.CHANGED_BY_PERSON),
        (JobState.TIMEOUT, "ended-time-limit", StatusReason.SUPERSEDED),
        (JobState.PREEMPTED, "ended-preempted", StatusReason.SUPERSEDED),
    ],
)
@pytest.mark.parametrize("mode", list(Mode))
def test_who_ends_a_hang_closes_it_and_the_verdict_stays(
    mode: Mode, state: JobState, code: str, reason: StatusReason
) -> None:
    life = hung(mode)
    before = incident_of(life).verdict
    life.see(state)
    debris(life)
    life.progress(final=True).wait(700)
    incident = incident_of(life)
    assert incident.verdict == before
    assert before is not None
    assert [one.node for one in before.suspects] == ["node-02"]
    assert incident.phase is Phase.CLOSED
    assert incident.closed is not None
    assert incident.closed.code == code
    assert before.sentence in incident.closed.sentence
    assert life.advice().decision is Decision.RESTART_EXCLUDING_NODE, "what would have been done"
    assert life.advice().status.disposition is Disposition.ABANDONED
    assert life.advice().status.reason is reason
    assert sum(incident.closed.sentence == one for one in life.sentences) == 1


@pytest.mark.parametrize("is_early", [False, True])
def test_debris_of_a_requeue_is_no_cause_of_the_hang(is_early: bool) -> None:  # noqa: FBT001 - a case
    life = hung()
    if is_early:
        debris(life)
    life.see(JobState.PENDING, 1)
    if not is_early:
        debris(life)
    life.progress(final=True).wait(30)
    incident = incident_of(life)
    assert incident.verdict is not None
    assert incident.verdict.cause == "gpu-xid"
    assert incident.closed is not None
    assert incident.closed.code == "ended-by-requeue"


def test_an_unconfirmed_hang_that_debris_reached_first_is_told_as_the_hang() -> None:
    life = WitnessedStory(policy_book=witnessed_book(), testimony={Witness.TELEMETRY: ()})
    life.begin().fall_silent().wait(100)
    cause = incident_of(life).verdict
    debris(life)
    life.wait(2).see(JobState.CANCELLED)
    again = incident_of(life).verdict
    assert cause is not None
    assert again is not None
    assert again.cause == cause.cause == "no-progress"


def test_a_hang_whose_advice_nobody_followed_is_still_told_after_the_cancel() -> None:
    life = hung(expires=seconds(60))
    life.wait(61)
    assert incident_of(life).phase is Phase.CLOSED
    life.see(JobState.CANCELLED)
    assert incident_of(life).closed is not None
    assert incident_of(life).verdict is not None
    assert "A person cancelled the job while it stood still" in life.sentences[-1]


def test_slowness_that_debris_took_over_is_told_as_slowness() -> None:
    life = WitnessedStory(
        policy_book=witnessed_book(slow=Response.REPORT), testimony={Witness.TELEMETRY: ()}
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
    life.wait(100)
    debris(life)
    life.see(JobState.PENDING, 1).progress(final=True).wait(30)
    incident = incident_of(life)
    assert incident.kind is Kind.SLOW
    assert incident.closed is not None
    assert incident.closed.code == "ended-by-requeue"
    assert life.attempt().past_incidents == ()


def test_an_attempt_that_fails_by_itself_is_judged_anew() -> None:
    life = hung()
    life.see(JobState.FAILED, exit_status=1).progress(final=True).wait(30)
    assert incident_of(life).phase is not Phase.CLOSED
    assert life.advice().while_living is False


def test_a_lost_node_that_made_slurm_requeue_is_no_persons_word() -> None:
    life = hung()
    life.find("slurm-node-failure", kind=Kind.NODE, task_gone=True, offset=8000)
    life.see(JobState.PENDING, 1).progress(final=True).wait(30)
    closed = incident_of(life).closed
    assert closed is None or closed.code != "ended-by-requeue"
