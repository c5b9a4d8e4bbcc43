"""Same job or a reused id? Scheduler ids wrap and are reset (design, section 8)."""

from __future__ import annotations

from enum import StrEnum

from relight.model.jobs import JobFact, JobState

_NOT_BEGUN = frozenset({JobState.COMPLETING, JobState.PENDING, JobState.HELD, JobState.UNKNOWN})


class Identity(StrEnum):
    """How a fact relates to the newest known job of the same scheduler id."""

    SAME_ATTEMPT = "same_attempt"
    NEXT_ATTEMPT = "next_attempt"
    NEW_JOB = "new_job"
    STALE = "stale"


def identify(known: JobFact | None, fact: JobFact) -> Identity:
    """Return whether ``fact`` is of the known job, its next attempt, or a new job.

    A higher restart count of the same user is the next attempt. Another user, or a newer
    submit time with a restart count that is lower, or equal although the known attempt had
    begun, is a new job. A requeued job keeps its old submit time while it is COMPLETING and
    takes the new one when its nodes are free (measured on 22.05): until it runs, a newer
    submit time tells nothing. An older submit time is an answer that was overtaken.
    """
    if known is None:
        return Identity.NEW_JOB
    if known.user and fact.user and known.user != fact.user:
        return Identity.NEW_JOB
    if fact.restart_count > known.restart_count:
        return Identity.NEXT_ATTEMPT
    newer = _order(known.submitted_at, fact.submitted_at)
    if newer > 0:
        is_requeue_settling = (
            fact.restart_count == known.restart_count > 0 and known.state in _NOT_BEGUN
        )
        return Identity.SAME_ATTEMPT if is_requeue_settling else Identity.NEW_JOB
    if newer < 0 or fact.restart_count < known.restart_count:
        return Identity.STALE
    return Identity.SAME_ATTEMPT


def _order(before: int | None, after: int | None) -> int:
    if before is None or after is None:
        return 0
    return (after > before) - (after < before)
