"""What the HTTP interface needs from the rest of relight; the daemon provides it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from relight.clients.backend.answers import Health
from relight.engine.cases import Case
from relight.model.advice import Advice, ReconciliationStatus
from relight.model.audit import AuditEntry
from relight.model.jobs import AttemptKey, JobKey
from relight.model.observations import Observation
from relight.model.orders import OrderOutcome
from relight.model.stimuli import Word
from relight.store.filters import AuditFilters, CaseFilters
from relight.store.pages import Page


class Declined(Exception):  # noqa: N818 - named by what it says: a port said no, with its reason
    """The daemon understood and says no; shown as 409 with its three parts."""

    def __init__(self, code: str, sentence: str, next_step: str = "") -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
        self.next_step = next_step


class Records(Protocol):
    """The reading half of the store."""

    def case(self, key: JobKey) -> Case | None:
        """Return the case of one job."""
        ...

    def cases(self, filters: CaseFilters, limit: int = 100, cursor: str = "") -> Page[Case]:
        """Return the cases that match, open ones first, then newest first."""
        ...

    def advice(
        self, *, active_only: bool = False, cluster: str = "", limit: int = 100, cursor: str = ""
    ) -> Page[Advice]:
        """Return advice, newest first."""
        ...

    def generations(self, attempt: AttemptKey) -> tuple[Advice, ...]:
        """Return every generation of the advice on an attempt, oldest first."""
        ...

    def audit(
        self,
        filters: AuditFilters,
        limit: int = 100,
        cursor: str = "",
        *,
        newest_first: bool = False,
    ) -> Page[AuditEntry]:
        """Return the audit entries that match."""
        ...


class Daemon(Protocol):
    """The living half: what takes in what people and controllers say.

    Every method may be called from any thread and may raise Declined.
    """

    def health(self) -> Health:
        """Return how every cluster and source is; must not block."""
        ...

    def person_said(
        self, attempt: AttemptKey, *, generation: int, word: Word, who: str, why: str
    ) -> None:
        """Take in a person's yes or no, durably, before this returns."""
        ...

    def observe(self, observation: Observation) -> None:
        """Take in what a controller has seen; the same one may come again."""
        ...

    def active_advice(self, cluster: str) -> tuple[Advice, ...]:
        """Return the active advice of a cluster, of all where the name is empty."""
        ...

    def reconciliation_status(self, attempt: AttemptKey, status: ReconciliationStatus) -> None:
        """Take in how far the world has followed an advice."""
        ...

    def outcome(self, outcome: OrderOutcome) -> None:
        """Take in what became of an order; its key makes a repetition harmless."""
        ...


@dataclass(frozen=True, slots=True)
class Ports:
    """All that the HTTP interface stands on."""

    records: Records
    daemon: Daemon
