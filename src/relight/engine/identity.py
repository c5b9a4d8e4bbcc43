"""Same job or a reused id? Scheduler ids wrap and are reset (design, section 8)."""

from __future__ import annotations

from enum import StrEnum

from relight.model.jobs import JobFact


class Identity(StrEnum):
    """How a fact relates to the newest known job of the same scheduler id."""

    SAME_ATTEMPT = "same_attempt"
    NEXT_ATTEMPT = "next_attempt"
    NEW_JOB = "new_job"
    STALE = "stale"


def identify(known: JobFact | None, fact: JobFact) -> Identity:
    """Return whether ``fact`` is of the known job, its next attempt, or a new job.

    A higher restart count of the same user is the next attempt (submit time changes at each
    requeue). A restart count that is not higher with a newer submit time, or another user,
    is a new job. An older submit time is an answer that was overtaken by a later one.
    """
    if known is None:
        return Identity.NEW_JOB
    if known.user and fact.user and known.user != fact.user:
        return Identity.NEW_JOB
    if fact.restart_count > known.restart_count:
        return Identity.NEXT_ATTEMPT
    newer = _order(known.submitted_at, fact.submitted_at)
    if newer > 0:
        return Identity.NEW_JOB
    if newer < 0 or fact.restart_count < known.restart_count:
        return Identity.STALE
    return Identity.SAME_ATTEMPT


def _order(before: int | None, after: int | None) -> int:
    if before is None or after is None:
        return 0
    return (after > before) - (after < before)
