"""How a job of the local scheduler stands, and every move from one standing to the next.

Pure: time is an argument. The words of refusals are Slurm's own, measured on 22.05 and later.
"""

from __future__ import annotations

import msgspec

from relight.clients.local.jobs import LocalJob
from relight.model.instants import Instant, Span, later
from relight.model.jobs import ENDED, JobFact, JobState, OutputPaths
from relight.model.records import Record

PENDING_ALREADY = "Job is pending execution"
CHANGING = "Job can not be altered now, try again later"
REQUEUE_DISABLED = "Requested operation is presently disabled"
FINISHED = "Job has already finished"
NOT_PENDING = "Job is no longer pending execution"
DONE_ALREADY = "Job/step already completing or completed"


class Standing(Record, frozen=True, kw_only=True):
    """What the scheduler says of a job, and what a completing one is about to become."""

    fact: JobFact
    follows: JobState = JobState.UNKNOWN
    exit_status: int | None = None
    exit_signal: int | None = None


class Refused(Record, frozen=True, kw_only=True):
    """The scheduler's answer to a change that it does not make."""

    text: str


def submitted(fact: JobFact, job: LocalJob, at: Instant) -> Standing:
    """Return the standing of a new job; ``fact`` says whose it is and how it is called."""
    return Standing(
        fact=msgspec.structs.replace(
            fact,
            name=job.name,
            comment=job.comment,
            partition=job.partition,
            state=JobState.PENDING,
            scheduler_state="PENDING",
            reason="None",
            expected_nodes=job.nodes,
            tasks=job.tasks,
            tasks_per_node=job.tasks_per_node,
            gpus_per_node=job.gpus_per_node,
            submitted_at=at,
            eligible_at=at,
            requeue_allowed=job.requeue_allowed,
            excluded_nodes=job.exclude,
            output=OutputPaths(stdout=job.stdout, stderr=job.stderr, work_dir=job.work_dir),
        )
    )


def waits(standing: Standing, reason: str) -> Standing:
    """Return a pending job with the reason why it still waits."""
    return Standing(fact=msgspec.structs.replace(standing.fact, reason=reason))


def started(standing: Standing, nodes: tuple[str, ...], at: Instant) -> Standing:
    """Return a pending job as it runs on ``nodes``."""
    return Standing(
        fact=msgspec.structs.replace(
            standing.fact,
            state=JobState.RUNNING,
            scheduler_state="RUNNING",
            reason="None",
            nodes=nodes,
            started_at=at,
        )
    )


def failing(standing: Standing, status: int, signal: int | None) -> Standing:
    """Return a running job of which a task failed; the first failure is the one that counts."""
    if standing.exit_status is not None or standing.follows in _BY_ORDER:
        return standing
    return msgspec.structs.replace(standing, exit_status=status, exit_signal=signal)


_BY_ORDER = frozenset({JobState.PENDING, JobState.CANCELLED})


def completing(standing: Standing, follows: JobState) -> Standing:
    """Return a job whose processes are being ended, and what it becomes then."""
    fact = msgspec.structs.replace(
        standing.fact, state=JobState.COMPLETING, scheduler_state="COMPLETING"
    )
    return msgspec.structs.replace(standing, fact=fact, follows=follows)


def requeue(
    standing: Standing, *, incomplete_only: bool, at: Instant, wait: Span
) -> Standing | Refused:
    """Return the job on its way to its next attempt, which waits at least ``wait``."""
    state = standing.fact.state
    if state is JobState.PENDING:
        return Refused(text=PENDING_ALREADY)
    if not standing.fact.requeue_allowed:
        return Refused(text=REQUEUE_DISABLED)
    if state is JobState.COMPLETING and standing.follows is JobState.PENDING:
        return Refused(text=CHANGING)
    if incomplete_only and state is not JobState.RUNNING:
        return standing
    fact = msgspec.structs.replace(
        standing.fact,
        restart_count=standing.fact.restart_count + 1,
        submitted_at=at,
        eligible_at=later(at, wait),
    )
    moved = completing(Standing(fact=fact), JobState.PENDING)
    return ended(moved, at) if state in ENDED else moved


def update(
    standing: Standing, *, note: str, exclude: tuple[str, ...], begin: Instant
) -> Standing | Refused:
    """Return a waiting job with another note, other exclusions and another start time.

    While the processes of the attempt before are still ending the start time is lost without
    a word, as in Slurm.
    """
    state = standing.fact.state
    going_to_wait = state is JobState.COMPLETING and standing.follows is JobState.PENDING
    if state is not JobState.PENDING and not going_to_wait:
        return Refused(text=NOT_PENDING if state is JobState.RUNNING else FINISHED)
    eligible_at = standing.fact.eligible_at if going_to_wait else begin
    fact = msgspec.structs.replace(
        standing.fact, note=note, excluded_nodes=exclude, eligible_at=eligible_at
    )
    return msgspec.structs.replace(standing, fact=fact)


def cancel(standing: Standing, at: Instant) -> Standing | Refused:
    """Return the job cancelled, or about to be when processes of it have to end first."""
    state = standing.fact.state
    ends_by_itself = state is JobState.COMPLETING and standing.follows is not JobState.PENDING
    if state in ENDED or ends_by_itself:
        return Refused(text=DONE_ALREADY)
    moved = completing(standing, JobState.CANCELLED)
    return ended(moved, at) if state is JobState.PENDING else moved


def ended(standing: Standing, at: Instant) -> Standing:
    """Return the job once no process of it is left."""
    follows = standing.follows
    status, signal = standing.exit_status, standing.exit_signal
    fact = msgspec.structs.replace(standing.fact, state=follows, scheduler_state=follows.upper())
    if follows is JobState.PENDING:
        return Standing(
            fact=msgspec.structs.replace(
                fact,
                reason="BeginTime",
                nodes=(),
                started_at=None,
                ended_at=None,
                exit_status=None,
                exit_signal=None,
            )
        )
    if follows is JobState.CANCELLED:
        status, signal = None, 15
    return Standing(
        fact=msgspec.structs.replace(
            fact,
            reason="NonZeroExitCode" if follows is JobState.FAILED else "None",
            ended_at=at,
            exit_status=status,
            exit_signal=signal,
        )
    )
