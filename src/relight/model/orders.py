"""Orders: one concrete scheduler command carrying out an advice."""

from __future__ import annotations

from enum import StrEnum

from relight.model.instants import Instant
from relight.model.jobs import AttemptKey
from relight.model.records import Record


class Verb(StrEnum):
    """What a scheduler can be told about one job."""

    REQUEUE = "requeue"
    START = "start"
    """One update of the waiting job: note, exclusions and start time together."""
    CANCEL = "cancel"
    SIGNAL = "signal"
    """A signal to the processes of a running job, so that it can write a checkpoint."""


class Order(Record, frozen=True, kw_only=True):
    """One scheduler command with its idempotency key.

    ``incomplete_only`` asks the scheduler itself to refuse when the job no longer runs, so
    that a person's cancel or a success that lands in between wins. ``start_at`` None means now.
    ``signal`` is the name of the signal to send, as ``USR1``; ``batch_only`` sends it to the batch
    script alone.
    """

    attempt: AttemptKey
    generation: int
    verb: Verb
    target: str = ""
    incomplete_only: bool = False
    exclude: tuple[str, ...] = ()
    note: str = ""
    start_at: Instant | None = None
    signal: str = ""
    batch_only: bool = False

    @property
    def key(self) -> str:
        """Return (cluster, job, attempt, verb, target) as one text (law 2)."""
        return f"{self.attempt.job}/{self.attempt.attempt}/{self.verb}/{self.target}"


class Outcome(StrEnum):
    """What became of an order. Unclear is never repeated by itself: look first."""

    DONE = "done"
    REFUSED = "refused"
    UNCLEAR = "unclear"


class OrderOutcome(Record, frozen=True, kw_only=True):
    """What became of an order, in the scheduler's own words, and when it was asked and answered."""

    order: Order
    outcome: Outcome
    answer: str
    ordered_at: Instant
    answered_at: Instant
