"""The backend for those who ask over HTTP: its health tells of the loops too."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from relight.clients.backend.answers import Health, SourceHealth, Trouble
from relight.daemon.backends import Backend
from relight.model.advice import Advice, ReconciliationStatus
from relight.model.jobs import AttemptKey
from relight.model.observations import Observation
from relight.model.orders import OrderOutcome
from relight.model.stimuli import Word


class WatchedBackend:
    """Hands everything on to the backend, and adds to its health what else is not well."""

    def __init__(
        self,
        backend: Backend,
        troubles: Callable[[], tuple[Trouble, ...]],
        sources: Callable[[], tuple[SourceHealth, ...]],
    ) -> None:
        self._backend = backend
        self._troubles = troubles
        self._sources = sources

    def health(self) -> Health:
        """Return how every cluster is, and what fails inside."""
        health = self._backend.health()
        return msgspec.structs.replace(
            health, troubles=(*health.troubles, *self._troubles()), sources=self._sources()
        )

    def person_said(
        self, attempt: AttemptKey, *, generation: int, word: Word, who: str, why: str
    ) -> None:
        """Take in a person's yes or no."""
        self._backend.person_said(attempt, generation=generation, word=word, who=who, why=why)

    def observe(self, observation: Observation) -> None:
        """Take in what a controller has seen."""
        self._backend.observe(observation)

    def active_advice(self, cluster: str) -> tuple[Advice, ...]:
        """Return the active advice of a cluster, of all where the name is empty."""
        return self._backend.active_advice(cluster)

    def reconciliation_status(self, attempt: AttemptKey, status: ReconciliationStatus) -> None:
        """Take in how far the world has followed an advice."""
        self._backend.reconciliation_status(attempt, status)

    def outcome(self, outcome: OrderOutcome) -> None:
        """Take in what became of an order."""
        self._backend.outcome(outcome)
