"""The scheduler itself could not start an attempt, and holds the job."""

from __future__ import annotations

import msgspec
import pytest

from relight.engine.cases import Requeuer
from relight.model.advice import Decision, Mode
from relight.model.findings import Domain, Finding, Kind, Provenance
from relight.model.jobs import Holder, JobState
from relight.model.stimuli import FindingMade
from relight.model.verdicts import Verdict
from relight.testing.stories import KEY, Story, book
from relight.testing.witnessed import told

HELD_REASON = "launch failed requeued held"
PROLOG = told(
    "node-failed-prolog",
    Kind.NODE,
    nodes=("node-02",),
    provenance=Provenance.SCHEDULER,
    detector="scheduler",
    domain=Domain.SYSTEM_SOFTWARE,
)


def held(story: Story, attempt: int, holder: Holder = Holder.LAUNCH_FAILURE) -> Story:
    reason = HELD_REASON if holder is Holder.LAUNCH_FAILURE else "JobHoldMaxRequeue"
    return story.see(JobState.HELD, attempt, held_by=holder, reason=reason)


def tell(story: Story, finding: Finding) -> Story:
    made = msgspec.structs.replace(finding, seen_at=story.now, at=story.now)
    story.take(FindingMade(job=KEY, seen_at=story.now, finding=made))
    return story


def verdict_of(story: Story, attempt: int = 0) -> Verdict:
    incident = story.attempt(attempt).incident
    assert incident is not None
    assert incident.verdict is not None
    return incident.verdict


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("was_seen", [True, False])
def test_a_launch_that_failed_is_the_schedulers_and_is_tried_again(
    mode: Mode, *, was_seen: bool
) -> None:
    story = Story(policy_book=book(mode))
    if was_seen:
        story.see(JobState.PENDING)
    held(story, 1).wait(12)
    assert story.attempt().requeued_by is Requeuer.SCHEDULER
    verdict = verdict_of(story)
    assert (verdict.domain, verdict.cause) == (Domain.SCHEDULER, "launch-failed")
    assert story.advice().decision is Decision.RESTART
    assert story.advice().already_requeued
    assert "could not launch the job" in story.advice().reason.sentence


def test_a_node_that_the_scheduler_names_is_blamed_also_when_it_is_named_late() -> None:
    story = Story().see(JobState.RUNNING)
    held(story, 1).progress(final=True)
    assert verdict_of(story).cause == "launch-failed"
    story.wait(2)
    tell(story, PROLOG)
    assert verdict_of(story).cause == "node-failed-prolog"
    assert verdict_of(story).domain is Domain.SYSTEM_SOFTWARE
    assert story.advice().exclusions == ("node-02",)
    story.see(JobState.PENDING, 1)
    assert verdict_of(story).cause == "node-failed-prolog"
    assert story.attempt().requeued_by is Requeuer.SCHEDULER


def test_a_line_of_the_log_stands_above_that_the_job_is_held() -> None:
    story = Story().see(JobState.RUNNING).find("ecc", ranks=(1,), tasks=(1,))
    held(story, 1).progress(final=True)
    assert verdict_of(story).cause == "ecc"


def test_launches_that_fail_again_and_again_are_not_tried_for_ever() -> None:
    story = Story().see(JobState.PENDING)
    for attempt in range(1, 6):
        held(story, attempt).wait(12)
    assert story.advice(4).decision is Decision.STOP
    assert story.advice(4).reason.code == "restarts-used-up"


def test_a_job_that_was_requeued_as_often_as_slurm_may_is_left_to_a_person() -> None:
    story = held(Story().see(JobState.PENDING), 6, Holder.MAX_REQUEUE).wait(12)
    assert verdict_of(story, 5).cause == "requeued-too-often"
    assert story.advice(5).decision is Decision.NONE
    assert "as often as it may" in story.advice(5).reason.sentence


def test_a_persons_hold_makes_nothing_of_an_attempt_that_nobody_saw() -> None:
    story = Story()
    story.see(JobState.HELD, 1, held_by=Holder.USER, reason="JobHeldUser").wait(12)
    assert story.case.attempt(0) is None
