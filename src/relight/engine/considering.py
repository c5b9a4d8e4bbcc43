"""After each stimulus: what follows from the case as it now is.

Level-triggered: whatever the order in which facts came, the same case leads to the same
next move. Every wait is an instant that the case asks to be woken at; nothing is counted.
"""

from __future__ import annotations

import msgspec

from relight.diagnosis.cascades import CLOCK_SLACK
from relight.diagnosis.endings import Ending
from relight.diagnosis.verdicts import diagnose
from relight.engine.advising import give_advice, keep_advice
from relight.engine.cases import AttemptCase, Requeuer
from relight.engine.opening import findings_of_story, open_incident
from relight.engine.outcomes import withdraw
from relight.engine.recovering import follow_recovery
from relight.engine.requeuers import requeuer_by_evidence
from relight.engine.turns import Turn, close, moved
from relight.model.advice import StatusReason
from relight.model.audit import Topic
from relight.model.findings import Finding, Remedy, Role
from relight.model.incidents import Incident, Phase
from relight.model.instants import Instant, Span, later, seconds, show_span
from relight.model.jobs import ENDED, JobState
from relight.model.orders import OrderOutcome, Outcome
from relight.model.verdicts import Verdict
from relight.policy.policies import Policy

NODE_GONE_GRACE = seconds(5)
"""After the scheduler's word that a node is gone, it has this long to end the job itself."""
HEARD_LATELY = seconds(15)
"""Silence counts only while the files were listened to within this time."""

_NEEDS_NO_LOGS = frozenset({JobState.CANCELLED, JobState.TIMEOUT, JobState.PREEMPTED})
TRACEBACKS = "tracebacks"
"""The detector of exceptions that no rule knows better."""

_CAN_BE_CAUSE = frozenset({Role.ROOT, Role.EITHER})
_STEPS_MISSED = 3
"""A step or a progress line may be late by this factor before its absence means anything."""


def consider(turn: Turn) -> None:
    """Draw every conclusion that the case allows, and set when it wants to be woken."""
    choice = turn.case.choice
    policy = turn.book.policy(choice.policy) if choice.opted_in and not choice.errors else None
    for attempt in turn.case.attempts[-2:]:
        if policy is not None:
            _consider_attempt(turn, attempt.number, policy)
        else:
            withdraw(
                turn,
                attempt.number,
                StatusReason.CHANGED_BY_PERSON,
                "The job is no longer opted in, or its comment is in error.",
            )
    turn.case = msgspec.structs.replace(turn.case, wake_at=min(turn.wakes, default=None))


def _consider_attempt(turn: Turn, number: int, policy: Policy) -> None:
    attempt = turn.case.attempt(number)
    if attempt is None:
        return
    is_active = attempt.advice is not None and attempt.advice.is_active
    if is_active:
        keep_advice(turn, attempt)
        attempt = turn.case.attempt(number) or attempt
    if attempt.ended_seen_at is None:
        if not is_active:
            _judge_living(turn, attempt, policy)
    elif attempt.advice is None or attempt.advice.while_living:
        _judge_ended(turn, attempt, policy, attempt.ended_seen_at)
    follow_recovery(turn, number)


def _judge_ended(turn: Turn, attempt: AttemptCase, policy: Policy, ended: Instant) -> None:
    if attempt.advice is not None and any(_may_have_ended_it(one) for one in attempt.orders):
        return
    if attempt.fact.state is JobState.COMPLETED:
        close(turn, attempt.number, "completed", "The attempt completed by itself.")
        return
    if turn.case.is_gone:
        close(turn, attempt.number, "job-gone", "The scheduler no longer knows the job.")
        return
    if attempt.fact.state not in _NEEDS_NO_LOGS and not attempt.logs_read:
        deadline = later(ended, policy.drain_logs)
        if turn.now < deadline:
            turn.wake(deadline)
            return
        if not attempt.logs_unseen:
            why = f"they were not read to their end within {show_span(policy.drain_logs)}"
            attempt = turn.change(attempt.number, logs_unseen=why)
    if attempt.requeued_by is Requeuer.PERSON:
        attempt = turn.change(attempt.number, requeued_by=requeuer_by_evidence(attempt))
    verdict = diagnose(
        findings_of_story(attempt), attempt.allocation, _ending(attempt), attempt.logs_unseen
    )
    _record_verdict(turn, attempt, verdict)
    give_advice(turn, attempt.number, verdict, policy)


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
    )


def _judge_living(turn: Turn, attempt: AttemptCase, policy: Policy) -> None:
    if attempt.running_at is None or attempt.fact.state is JobState.SUSPENDED:
        return
    if attempt.gone_nodes and not _has_open_incident(attempt):
        open_incident(turn, attempt.number)
        attempt = turn.case.attempt(attempt.number) or attempt
    incident = attempt.incident
    if incident is None or incident.phase is Phase.CLOSED or not _is_substantial(attempt, incident):
        return
    ending = Ending(gone_nodes=attempt.gone_nodes)
    verdict = diagnose(incident.findings, attempt.allocation, ending, attempt.logs_unseen)
    _record_verdict(turn, attempt, verdict)
    if attempt.progress.best_step is None and not attempt.gone_nodes:
        _tell_once(turn, attempt)
        return
    due = _settled_at(attempt, incident, policy)
    if turn.now < due:
        turn.wake(due)
        return
    if not attempt.gone_nodes and not _was_heard_lately(turn, attempt):
        turn.wake(later(turn.now, HEARD_LATELY))
        return
    give_advice(turn, attempt.number, verdict, policy)


def _tell_once(turn: Turn, attempt: AttemptCase) -> None:
    """Say that silence proves nothing here: unknown never justifies an act (law 1)."""
    incident = attempt.incident
    if incident is not None and incident.opened_at == turn.now and len(incident.findings) == 1:
        turn.tell(
            attempt.number,
            Topic.INCIDENT,
            "no-step-seen",
            "No step of this attempt was ever seen, so its silence proves nothing: it is left "
            "alone until it ends or the scheduler says that a node of it is gone.",
        )


def _was_heard_lately(turn: Turn, attempt: AttemptCase) -> bool:
    return (
        attempt.heard_at is not None
        and not attempt.logs_unseen
        and turn.now - attempt.heard_at <= HEARD_LATELY
    )


def _has_open_incident(attempt: AttemptCase) -> bool:
    return attempt.incident is not None and attempt.incident.phase is not Phase.CLOSED


def _is_substantial(attempt: AttemptCase, incident: Incident) -> bool:
    """Tell whether a living attempt shows more than symptoms."""
    return _lost_part(attempt, incident) or any(map(_may_have_stopped, incident.findings))


def _lost_part(attempt: AttemptCase, incident: Incident) -> bool:
    """Tell whether the scheduler itself says that a task or node of the attempt is gone."""
    return bool(attempt.gone_nodes) or any(one.task_gone for one in incident.findings)


def _may_have_stopped(finding: Finding) -> bool:
    """Tell whether a line alone may have stopped a living attempt for good.

    A traceback may have been caught and printed, and what is shared may come back: of these
    only an ending tells.
    """
    return (
        finding.role in _CAN_BE_CAUSE
        and finding.remedy is not Remedy.HOLD
        and finding.detector != TRACEBACKS
    )


def _settled_at(attempt: AttemptCase, incident: Incident, policy: Policy) -> Instant:
    """Return when a living attempt that goes on without a step is given up (law 7)."""
    told = max((one.seen_at for one in incident.findings), default=incident.opened_at)
    told = max(told, incident.stepped_at or told)
    if attempt.gone_nodes:
        return later(incident.opened_at, min(policy.settle, NODE_GONE_GRACE))
    slowest = max(attempt.progress.step_seconds or 0, attempt.progress.report_seconds or 0)
    return later(told, max(policy.settle, Span(seconds(slowest * _STEPS_MISSED))))


def _fault(root: Finding, attempt: AttemptCase) -> Instant:
    """Return when the root line was written: its own clock, where that can be this attempt's."""
    began = attempt.running_at or attempt.first_seen_at
    if root.at is None or not later(began, Span(-CLOCK_SLACK)) <= root.at <= later(
        root.seen_at, CLOCK_SLACK
    ):
        return root.seen_at
    return root.at


def _record_verdict(turn: Turn, attempt: AttemptCase, verdict: Verdict) -> None:
    incident = open_incident(turn, attempt.number, findings_of_story(attempt))
    if incident.verdict is not None:
        verdict = msgspec.structs.replace(verdict, revision=incident.verdict.revision)
        if verdict == incident.verdict:
            return
        verdict = msgspec.structs.replace(verdict, revision=incident.verdict.revision + 1)
    root = next((one for one in attempt.findings if one.id == verdict.root), None)
    times = msgspec.structs.replace(
        incident.times,
        fault=_fault(root, attempt) if root is not None else incident.times.fault,
        ended=attempt.ended_at or attempt.ended_seen_at,
        detected=incident.times.detected or turn.now,
    )
    phase = Phase.DIAGNOSED if incident.phase is Phase.OPEN else incident.phase
    turn.change(attempt.number, incident=moved(incident, phase, verdict=verdict, times=times))
    turn.tell(
        attempt.number,
        Topic.VERDICT,
        verdict.cause,
        f"Verdict: {verdict.sentence} ({verdict.domain}, confidence {verdict.confidence:.2f}).",
        suspects=", ".join(one.node for one in verdict.suspects),
        revision=str(verdict.revision),
    )
