"""What an attribution service is asked, and what it can answer."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from relight.model.advice import Decision
from relight.model.findings import Domain
from relight.model.questions import AttributionAsked
from relight.model.records import Record


class Standing(StrEnum):
    """How far a service has come with a question."""

    PENDING = "pending"
    FINAL = "final"
    NO_OPINION = "no_opinion"


class Opinion(Record, frozen=True, kw_only=True):
    """One answer. A pending one may hold a first guess; ``session`` names what goes on there.

    ``decision`` is None where the service recommends nothing; ``confidence`` is from 0 to 1.
    """

    status: Standing
    domain: Domain = Domain.UNKNOWN
    cause: str = ""
    sentence: str = ""
    confidence: float = 0.0
    nodes: tuple[str, ...] = ()
    decision: Decision | None = None
    session: str = ""

    @property
    def says_something(self) -> bool:
        """Return whether there is anything in it to be told."""
        known = self.domain is not Domain.UNKNOWN or self.decision is not None
        return self.status is not Standing.NO_OPINION and (known or bool(self.sentence))


class Asked(Record, frozen=True, kw_only=True):
    """What a service is told: the core's question, and where the job's log lies."""

    question: AttributionAsked
    user: str = ""
    log_path: str = ""


class ServiceFailed(Exception):  # noqa: N818 - named by what it says
    """The service did not give a usable answer; the message says why and what to look at."""


class AttributionService(Protocol):
    """One outside service."""

    def ask(self, asked: Asked, session: str = "") -> Opinion:
        """Return what the service thinks now; ``session`` goes on with an earlier answer.

        Raises:
            ServiceFailed: it cannot be reached, or answers what is no answer.

        """
        ...
