"""The state that a decision is made from: one case a job, one record an attempt.

A case is a value. ``relight.engine.step`` is the only place that makes a new one, and the
journal alone is enough to make it again.
"""

from __future__ import annotations

from enum import StrEnum

from relight.model.advice import Advice
from relight.model.evidence import Witness
from relight.model.findings import Finding
from relight.model.incidents import Incident
from relight.model.instants import Instant
from relight.model.jobs import Allocation, AttemptKey, Holder, JobFact, JobKey
from relight.model.orders import OrderOutcome, Outcome, Verb
from relight.model.progress import Progress
from relight.model.records import Record
from relight.model.stimuli import AttributionGiven, CapacitySeen
from relight.policy.opt_in import Choice


class Requeuer(StrEnum):
    """Who put the job back into the queue after an attempt."""

    NOBODY = "nobody"
    RELIGHT = "relight"
    SCHEDULER = "scheduler"
    PERSON = "person"


class Occasion(StrEnum):
    """Why a witness was asked: trouble of a living attempt, its end, or some time after that."""

    LIVING = "living"
    ENDED = "ended"
    LATER = "later"


class Look(Record, frozen=True, kw_only=True):
    """One question to one witness about one window of time, and what came of it.

    ``found`` are the ids of the findings that came in answer. ``is_weighed`` says that a verdict
    has been made since it was answered.
    """

    witness: Witness
    occasion: Occasion
    asked_at: Instant
    since: Instant
    answered_at: Instant | None = None
    found: tuple[str, ...] = ()
    unseen: str = ""
    is_weighed: bool = False


class Mark(Record, frozen=True, kw_only=True):
    """How far an attempt had come at an instant: two of them tell its pace."""

    at: Instant
    step: int


class Restarts(Record, frozen=True, kw_only=True):
    """How many restarts without progress are used, and how many the policy and the job allow."""

    used: int
    allowed: int


class AttemptCase(Record, frozen=True, kw_only=True):
    """All that is known of one execution of a job.

    ``ended_at`` is the scheduler's instant, ``ended_seen_at`` when relight saw it.
    ``gone_nodes`` are nodes of its allocation that the scheduler called down while it lived.
    ``logs_read`` says that the ended attempt's files were read to their end, ``heard_at``
    when its files were last listened to, as far as that was told; ``stepped_at`` when a step was
    last told of. ``marks`` and ``checkpoints`` are its last ones, oldest first. ``looks`` are the
    last questions to witnesses, ``blind`` what those cannot see, ``attributions`` the last answers
    of outside services, and ``asked_cause`` the cause that those were last asked about.
    ``resumed_at`` is when it last went on after it had been suspended, ``judged_at`` when findings
    were last made a verdict of. ``past_incidents`` are its last ones; of older ones that it lived
    through only the ids of their findings are left, in ``survived``. ``own_hold`` says which hold
    of its own the scheduler placed on the job after it. ``planned`` is what was last said to come,
    as an advice of generation 0 that nobody follows; ``restarts`` how many were left when advice
    was last given.
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
    stepped_at: Instant | None = None
    marks: tuple[Mark, ...] = ()
    checkpoints: tuple[int, ...] = ()
    looks: tuple[Look, ...] = ()
    blind: tuple[str, ...] = ()
    attributions: tuple[AttributionGiven, ...] = ()
    asked_cause: str = ""
    requeued_by: Requeuer = Requeuer.NOBODY
    incident: Incident | None = None
    own_hold: Holder = Holder.NOBODY
    past_incidents: tuple[Incident, ...] = ()
    survived: tuple[str, ...] = ()
    resumed_at: Instant | None = None
    judged_at: Instant | None = None
    advice: Advice | None = None
    planned: Advice | None = None
    restarts: Restarts | None = None
    orders: tuple[OrderOutcome, ...] = ()

    @property
    def orders_given(self) -> tuple[OrderOutcome, ...]:
        """Return the orders that change what becomes of the job: a signal only forewarns it."""
        return tuple(one for one in self.orders if one.order.verb is not Verb.SIGNAL)

    @property
    def is_being_ended(self) -> bool:
        """Return whether the advice that is active now was carried out already.

        What was refused, or may not have happened, ends nothing: such an attempt may go on.
        """
        advice = self.advice
        return (
            advice is not None
            and advice.is_active
            and any(
                one.outcome is Outcome.DONE and one.order.generation == advice.generation
                for one in self.orders_given
            )
        )


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
