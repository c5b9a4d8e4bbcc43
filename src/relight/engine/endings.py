"""An attempt has ended: when enough is known of why, and what comes to light later."""

from __future__ import annotations

from relight.diagnosis.endings import Ending
from relight.diagnosis.verdicts import diagnose
from relight.engine.advising import give_advice
from relight.engine.cases import AttemptCase, Occasion, Requeuer
from relight.engine.interruptions import keep_story
from relight.engine.launches import explained
from relight.engine.numerics import with_history
from relight.engine.opening import TAKEN_OVER, findings_of_story
from relight.engine.outcomes import withdraw
from relight.engine.recording import record_verdict
from relight.engine.requeuers import requeuer_by_evidence
from relight.engine.trouble import is_open
from relight.engine.turns import Turn, close
from relight.engine.witnesses import LATER_LOOK, ask, is_awaited, newest, witnesses_of
from relight.model.advice import StatusReason
from relight.model.findings import Kind, Provenance
from relight.model.incidents import Incident, Phase
from relight.model.instants import Instant, Span, later, seconds, show_span
from relight.model.jobs import ENDED, JobState
from relight.model.orders import Outcome
from relight.model.verdicts import Verdict
from relight.policy.advising import REPORT_ONLY
from relight.policy.policies import Policy

LONGEST_TROUBLE = seconds(3600)
"""Trouble that began longer than this before an end is not what witnesses are asked about."""

_NEEDS_NO_LOGS = frozenset({JobState.CANCELLED, JobState.TIMEOUT, JobState.PREEMPTED})


def judge_ended(turn: Turn, attempt: AttemptCase, policy: Policy, ended: Instant) -> None:
    """Give advice on an ended attempt, once its logs and the witnesses have said what they can."""
    if _is_followed(attempt):
        return
    if attempt.fact.state is JobState.COMPLETED:
        sentence = "The attempt completed by itself."
        close(turn, attempt.number, "completed", sentence)
        withdraw(turn, attempt.number, StatusReason.SUPERSEDED, sentence)
        return
    if turn.case.is_gone:
        close(turn, attempt.number, "job-gone", "The scheduler no longer knows the job.")
        return
    if attempt.fact.state in _NEEDS_NO_LOGS:
        if keep_story(turn, attempt):
            return
    else:
        if attempt.requeued_by is not Requeuer.PERSON:
            attempt = _no_longer_slow(turn, attempt)
        heard = _heard_out(turn, attempt, policy, ended)
        if heard is None:
            return
        attempt = heard
    if attempt.requeued_by is Requeuer.PERSON:
        attempt = turn.change(attempt.number, requeued_by=requeuer_by_evidence(attempt))
        if keep_story(turn, attempt):
            return
    attempt = _no_longer_slow(turn, attempt)
    verdict = _verdict(turn, attempt)
    record_verdict(turn, attempt, verdict)
    give_advice(turn, attempt.number, verdict, policy)


def _no_longer_slow(turn: Turn, attempt: AttemptCase) -> AttemptCase:
    """Return the attempt with a story of slowness closed: that it was slow did not end it."""
    if attempt.incident is None or attempt.incident.kind is not Kind.SLOW:
        return attempt
    close(turn, attempt.number, TAKEN_OVER, "It was slow until it ended.")
    return turn.case.attempt(attempt.number) or attempt


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
    return with_history(turn, attempt, explained(attempt, verdict))


def look_again(turn: Turn, attempt: AttemptCase, policy: Policy, ended: Instant) -> None:
    """Ask witnesses once more some time after an end, and revise the verdict by what came late.

    What was advised already is another matter: it changes only while nothing was ordered.
    """
    incident = attempt.incident
    if incident is None or incident.verdict is None or attempt.fact.state in _NEEDS_NO_LOGS:
        return
    if incident.phase is Phase.CLOSED:
        incident = _explained_after_all(turn, attempt, incident)
    if incident.phase is Phase.DIAGNOSED and incident.verdict is not None:
        give_advice(turn, attempt.number, incident.verdict, policy)
    if incident.phase in (Phase.CLOSED, Phase.DIAGNOSED):
        return
    if newest(attempt, Occasion.LATER) is None and witnesses_of(turn, policy):
        due = later(ended, LATER_LOOK)
        if turn.now < due:
            turn.wake(due)
        else:
            trouble = _trouble_at(attempt, ended)
            attempt = ask(turn, attempt, policy, Occasion.LATER, trouble)
    if is_awaited(turn, attempt, policy):
        return
    if not _has_heard_more(attempt):
        return
    record_verdict(turn, attempt, _verdict(turn, attempt), is_later=True)


def _explained_after_all(turn: Turn, attempt: AttemptCase, incident: Incident) -> Incident:
    """Return the story of an end that was left to a person, anew when the scheduler explains it."""
    is_left = incident.closed is not None and incident.closed.code == REPORT_ONLY
    is_over = turn.case.attempt(attempt.number + 1) is not None or turn.case.is_gone
    if is_over or not is_left or not _scheduler_spoke(attempt):
        return incident
    verdict = _verdict(turn, attempt)
    if incident.verdict is None or verdict.cause == incident.verdict.cause:
        return incident
    record_verdict(turn, attempt, verdict, is_later=True)
    return (turn.case.attempt(attempt.number) or attempt).incident or incident


def _has_heard_more(attempt: AttemptCase) -> bool:
    """Tell whether a witness has answered since the last verdict, or the scheduler has spoken.

    Slurm finds a lost node out minutes after the end (SlurmdTimeout).
    """
    answered = (one for one in attempt.looks if one.answered_at is not None)
    return any(not one.is_weighed for one in answered) or _scheduler_spoke(attempt)


def _scheduler_spoke(attempt: AttemptCase) -> bool:
    judged = attempt.judged_at
    return any(
        one.provenance is Provenance.SCHEDULER and (judged is None or one.seen_at >= judged)
        for one in attempt.findings
    )


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


def _is_followed(attempt: AttemptCase) -> bool:
    """Tell whether an advice given while it lived is being followed, or was.

    A requeue may have ended it. A signal is followed by one as long as its advice holds, and by
    nothing after that.
    """
    advice = attempt.advice
    if advice is None:
        return False
    if any(one.outcome is Outcome.DONE for one in attempt.orders_given):
        return True
    return advice.is_active and any(one.outcome is not Outcome.REFUSED for one in attempt.orders)


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
