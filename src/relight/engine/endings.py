"""An attempt has ended: when enough is known of why, and what comes to light later."""

from __future__ import annotations

from relight.diagnosis.endings import Ending
from relight.diagnosis.verdicts import diagnose
from relight.engine.advising import give_advice
from relight.engine.cases import AttemptCase, Occasion, Requeuer
from relight.engine.numerics import with_history
from relight.engine.opening import TAKEN_OVER, findings_of_story
from relight.engine.recording import record_verdict
from relight.engine.requeuers import requeuer_by_evidence
from relight.engine.trouble import is_open
from relight.engine.turns import Turn, close
from relight.engine.witnesses import LATER_LOOK, ask, is_awaited, newest, witnesses_of
from relight.model.findings import Kind
from relight.model.incidents import Phase
from relight.model.instants import Instant, Span, later, seconds, show_span
from relight.model.jobs import ENDED, JobState
from relight.model.orders import OrderOutcome, Outcome
from relight.model.verdicts import Verdict
from relight.policy.policies import Policy

LONGEST_TROUBLE = seconds(3600)
"""Trouble that began longer than this before an end is not what witnesses are asked about."""

_NEEDS_NO_LOGS = frozenset({JobState.CANCELLED, JobState.TIMEOUT, JobState.PREEMPTED})


def judge_ended(turn: Turn, attempt: AttemptCase, policy: Policy, ended: Instant) -> None:
    """Give advice on an ended attempt, once its logs and the witnesses have said what they can."""
    if attempt.advice is not None and any(_may_have_ended_it(one) for one in attempt.orders):
        return
    if attempt.fact.state is JobState.COMPLETED:
        close(turn, attempt.number, "completed", "The attempt completed by itself.")
        return
    if turn.case.is_gone:
        close(turn, attempt.number, "job-gone", "The scheduler no longer knows the job.")
        return
    if attempt.incident is not None and attempt.incident.kind is Kind.SLOW:
        close(turn, attempt.number, TAKEN_OVER, "It was slow until it ended.")
        attempt = turn.case.attempt(attempt.number) or attempt
    if attempt.fact.state not in _NEEDS_NO_LOGS:
        heard = _heard_out(turn, attempt, policy, ended)
        if heard is None:
            return
        attempt = heard
    if attempt.requeued_by is Requeuer.PERSON:
        attempt = turn.change(attempt.number, requeued_by=requeuer_by_evidence(attempt))
    verdict = _verdict(turn, attempt)
    record_verdict(turn, attempt, verdict)
    give_advice(turn, attempt.number, verdict, policy)


def _heard_out(
    turn: Turn, attempt: AttemptCase, policy: Policy, ended: Instant
) -> AttemptCase | None:
    """Return the attempt when its logs and the witnesses have told what they can in their time.

    None while one of them is waited for.
    """
    if newest(attempt, Occasion.ENDED) is None:
        attempt = ask(turn, attempt, policy, Occasion.ENDED, _trouble_at(attempt, ended))
    if not attempt.logs_read:
        deadline = later(ended, policy.drain_logs)
        if turn.now < deadline:
            turn.wake(deadline)
            return None
        if not attempt.logs_unseen:
            why = f"they were not read to their end within {show_span(policy.drain_logs)}"
            attempt = turn.change(attempt.number, logs_unseen=why)
    return None if is_awaited(turn, attempt, policy) else attempt


def _verdict(turn: Turn, attempt: AttemptCase) -> Verdict:
    verdict = diagnose(
        findings_of_story(attempt), attempt.allocation, _ending(attempt), attempt.logs_unseen
    )
    return with_history(turn, attempt, verdict)


def look_again(turn: Turn, attempt: AttemptCase, policy: Policy, ended: Instant) -> None:
    """Ask witnesses once more some time after an end, and revise the verdict by what came late.

    What was advised already is another matter: it changes only while nothing was ordered.
    """
    incident = attempt.incident
    if incident is None or incident.phase is Phase.CLOSED or incident.verdict is None:
        return
    if attempt.fact.state in _NEEDS_NO_LOGS or not witnesses_of(turn, policy):
        return
    if newest(attempt, Occasion.LATER) is None:
        due = later(ended, LATER_LOOK)
        if turn.now < due:
            turn.wake(due)
        else:
            trouble = _trouble_at(attempt, ended)
            attempt = ask(turn, attempt, policy, Occasion.LATER, trouble)
    if is_awaited(turn, attempt, policy):
        return
    if not any(one.answered_at is not None and not one.is_weighed for one in attempt.looks):
        return
    record_verdict(turn, attempt, _verdict(turn, attempt), is_later=True)


def _trouble_at(attempt: AttemptCase, ended: Instant) -> Instant:
    """Return when the trouble began that an attempt ended with, within bounds."""
    at = _ended_at(attempt, ended) or ended
    incident = attempt.incident
    if incident is not None and is_open(incident) and incident.kind is not Kind.SLOW:
        at = min(at, incident.opened_at)
    return max(at, later(ended, Span(-LONGEST_TROUBLE)))


def _ended_at(attempt: AttemptCase, seen: Instant | None) -> Instant | None:
    """Return when it ended by the scheduler's clock, where that can be; else when it was seen."""
    began, at = attempt.running_at or attempt.first_seen_at, attempt.ended_at
    if at is None or seen is None:
        return seen
    return at if began <= at <= seen else seen


def _may_have_ended_it(outcome: OrderOutcome) -> bool:
    return outcome.outcome is not Outcome.REFUSED


def _ending(attempt: AttemptCase) -> Ending:
    """Return how the attempt ended; an end that nobody saw counts as a failure."""
    fact = attempt.fact
    state = fact.state if fact.state in ENDED else JobState.FAILED
    if attempt.requeued_by is Requeuer.SCHEDULER and attempt.gone_nodes:
        state = JobState.NODE_FAIL
    return Ending(
        state=state,
        exit_status=fact.exit_status,
        exit_signal=fact.exit_signal,
        gone_nodes=attempt.gone_nodes,
        at=_ended_at(attempt, attempt.ended_seen_at),
    )
