"""The state that a decision is made from: one case a job, one record an attempt.

A case is a value. ``relight.engine.step`` is the only place that makes a new one, and the
journal alone is enough to make it again.
"""

from __future__ import annotations

from enum import StrEnum

from relight.model.advice import Advice
from relight.model.findings import Finding
from relight.model.incidents import Incident
from relight.model.instants import Instant
from relight.model.jobs import Allocation, AttemptKey, JobFact, JobKey
from relight.model.orders import OrderOutcome
from relight.model.progress import Progress
from relight.model.records import Record
from relight.model.stimuli import CapacitySeen
from relight.policy.opt_in import Choice


class Requeuer(StrEnum):
    """Who put the job back into the queue after an attempt."""

    NOBODY = "nobody"
    RELIGHT = "relight"
    SCHEDULER = "scheduler"
    PERSON = "person"


class AttemptCase(Record, frozen=True, kw_only=True):
    """All that is known of one execution of a job.

    ``ended_at`` is the scheduler's instant, ``ended_seen_at`` when relight saw it.
    ``gone_nodes`` are nodes of its allocation that the scheduler called down while it lived.
    ``logs_read`` says that the ended attempt's files were read to their end, ``heard_at``
    when its files were last listened to, as far as that was told.
    """

    number: int
    fact: JobFact
    first_seen_at: Instant
    allocation: Allocation = Allocation()
    running_at: Instant | None = None
    ended_at: Instant | None = None
    ended_seen_at: Instant | None = None
    nodes_free_at: Instant | None = None
    gone_nodes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    progress: Progress = Progress()
    logs_read: bool = False
    logs_unseen: str = ""
    heard_at: Instant | None = None
    requeued_by: Requeuer = Requeuer.NOBODY
    incident: Incident | None = None
    past_incidents: tuple[Incident, ...] = ()
    advice: Advice | None = None
    orders: tuple[OrderOutcome, ...] = ()


class Case(Record, frozen=True, kw_only=True):
    """All that is known of one job; ``wake_at`` is the next instant at which it wants a Tick."""

    key: JobKey
    choice: Choice = Choice()
    attempts: tuple[AttemptCase, ...] = ()
    successors: tuple[str, ...] = ()
    is_gone: bool = False
    asked_without: tuple[str, ...] = ()
    asked_at: Instant | None = None
    capacity: CapacitySeen | None = None
    wake_at: Instant | None = None

    @property
    def latest(self) -> AttemptCase | None:
        """Return the last attempt, None before the first was seen."""
        return self.attempts[-1] if self.attempts else None

    def attempt(self, number: int) -> AttemptCase | None:
        """Return the attempt of that number, None when it was never seen."""
        return next((attempt for attempt in self.attempts if attempt.number == number), None)

    def key_of(self, number: int) -> AttemptKey:
        """Return what names the attempt of that number."""
        return AttemptKey(job=self.key, attempt=number)
