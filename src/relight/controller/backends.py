"""What a controller asks of the backend; the same over HTTP, gRPC or in one process."""

from __future__ import annotations

from typing import Protocol

from relight.model.advice import Advice, ReconciliationStatus
from relight.model.jobs import AttemptKey
from relight.model.observations import Observation
from relight.model.orders import OrderOutcome


class Backend(Protocol):
    """The calls of a controller. Any of them may be repeated with the same effect."""

    def observe(self, observation: Observation) -> None:
        """Hand over what was seen."""
        ...

    def active_advice(self, cluster: str) -> tuple[Advice, ...]:
        """Return the advice that the scheduler has not followed yet."""
        ...

    def reconciliation_status(self, attempt: AttemptKey, status: ReconciliationStatus) -> None:
        """Tell how far the world has followed an advice, for the generation named."""
        ...

    def outcome(self, outcome: OrderOutcome) -> None:
        """Tell what became of an order; its key makes a repetition harmless."""
        ...
