"""The scheduler itself could not start an attempt: it has put the job back, and holds it.

Slurm does so when a prolog fails or a node takes no batch script ("launch failed requeued held"),
which may be over before anybody has seen the attempt run, and when it has requeued a job as often
as it may (JobHoldMaxRequeue). Such a hold is nobody's word.
"""

from __future__ import annotations

import msgspec

from relight.engine.cases import AttemptCase
from relight.engine.turns import Turn
from relight.model.findings import Domain, Kind, Remedy
from relight.model.jobs import Holder, JobFact, JobState
from relight.model.verdicts import Verdict

OWN_HOLDS = frozenset({Holder.LAUNCH_FAILURE, Holder.MAX_REQUEUE})
"""Holds that the scheduler places by itself."""

_UNEXPLAINED = frozenset({"unknown-failure", "logs-unseen"})


def note_own_hold(turn: Turn, fact: JobFact) -> None:
    """Note on the attempt before that the scheduler holds the job after it, seen or not."""
    number = fact.restart_count - 1
    if fact.held_by not in OWN_HOLDS or number < 0:
        return
    attempt = turn.case.attempt(number)
    if attempt is not None:
        turn.change(number, own_hold=fact.held_by)
        return
    before = AttemptCase(
        number=number,
        fact=_of_attempt(fact, number),
        first_seen_at=turn.now,
        ended_seen_at=turn.now,
        logs_read=True,
        own_hold=fact.held_by,
    )
    turn.put(before)


def explained(attempt: AttemptCase, verdict: Verdict) -> Verdict:
    """Return the verdict on an ended attempt, by the hold that followed where nothing else tells.

    A node that the scheduler names, or a line of the log, stands above it.
    """
    if attempt.own_hold not in OWN_HOLDS or verdict.cause not in _UNEXPLAINED:
        return verdict
    if attempt.own_hold is Holder.MAX_REQUEUE:
        return _verdict(
            "requeued-too-often",
            Remedy.REPORT,
            "the scheduler has requeued the job as often as it may, and holds it",
        )
    return _verdict(
        "launch-failed",
        Remedy.RESTART,
        "the scheduler could not launch the job on its nodes, as when a prolog fails, and holds it",
    )


def _verdict(cause: str, remedy: Remedy, sentence: str) -> Verdict:
    return Verdict(
        domain=Domain.SCHEDULER,
        cause=cause,
        family="node_failure",
        kind=Kind.CRASH,
        remedy=remedy,
        sentence=sentence,
        fingerprint=cause,
        confidence=0.7,
    )


def _of_attempt(fact: JobFact, number: int) -> JobFact:
    """Return what is known of the attempt before the one that a fact is of: the job, no more."""
    return msgspec.structs.replace(
        fact,
        restart_count=number,
        state=JobState.UNKNOWN,
        scheduler_state="",
        reason="",
        nodes=(),
        submitted_at=None,
        eligible_at=None,
        started_at=None,
        held_by=Holder.NOBODY,
    )
