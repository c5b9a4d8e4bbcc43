"""Asks outside attribution services, a quick look first and then until they are done."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import structlog

from relight.clients.attribution.exchanges import Exchange
from relight.clients.attribution.nvrx import NvrxProtocol
from relight.clients.attribution.opinions import (
    Asked,
    AttributionService,
    Opinion,
    ServiceFailed,
    Standing,
)
from relight.clients.attribution.own_protocol import OwnProtocol
from relight.clients.backend.answers import SourceHealth
from relight.daemon.asking import Asking
from relight.daemon.backends import Backend
from relight.daemon.loops import Loop
from relight.daemon.witnessing import IDLE
from relight.model.instants import Instant, in_seconds, show_span
from relight.model.jobs import JobKey
from relight.model.questions import AttributionAsked
from relight.model.stimuli import AttributionGiven
from relight.settings.records import Attribution
from relight.sources.files import AttemptLogs
from relight.sources.owner_readers import OwnerReaders

FIRST_LOOK = 10.0
"""Seconds that one request may take; a service that needs longer answers that it is pending."""
LOOK_EVERY = 2.0

_log = structlog.get_logger("relight.attributing")


@dataclass(frozen=True, slots=True)
class Desk:
    """One outside service and the clusters whose jobs it is asked about."""

    settings: Attribution
    service: AttributionService
    clusters: frozenset[str]


def service_of(settings: Attribution) -> AttributionService:
    """Return what speaks the service's protocol."""
    patience = min(FIRST_LOOK, in_seconds(settings.timeout))
    exchange = Exchange(settings.url, token_file=settings.token_file, timeout=patience)
    return NvrxProtocol(exchange) if settings.kind == "nvrx" else OwnProtocol(exchange, patience)


class AttributionLoop(Loop):
    """Answers the core's questions by what one service says. A failure or delay changes nothing."""

    def __init__(
        self,
        desk: Desk,
        backend: Backend,
        asking: Asking,
        readers: Mapping[str, OwnerReaders],
        clock: Callable[[], Instant],
    ) -> None:
        name = desk.settings.name
        super().__init__(f"attribution-{name}", f"asking attribution service {name}", clock)
        self._words = f"attribution service {name}"
        self._desk = desk
        self._backend = backend
        self._asking = asking
        self._readers = readers
        self._now = clock

    def turn(self) -> float:
        """Answer one question, if there is one; the loop stays with it until it is done."""
        question = self._asking.take(self._desk.settings.name, self._desk.clusters)
        if not isinstance(question, AttributionAsked):
            return IDLE
        asked = self._asked(question)
        until = time.monotonic() + in_seconds(self._desk.settings.timeout)
        session, phase = "", "fast"
        while not self._stopped.is_set():
            try:
                opinion = self._desk.service.ask(asked, session)
            except ServiceFailed as error:
                self.source = SourceHealth(name=self._words, why=str(error))
                self._tell(question, Opinion(status=Standing.NO_OPINION), phase, str(error))
                return 0.0
            self.source = SourceHealth(name=self._words, seen=True, last_seen_at=self._now())
            is_over = opinion.status is not Standing.PENDING
            if is_over or (phase == "fast" and opinion.says_something):
                self._tell(question, opinion, phase)
            if is_over:
                return 0.0
            if time.monotonic() > until:
                waited = show_span(self._desk.settings.timeout)
                why = f"no answer within {waited}"
                self._tell(question, Opinion(status=Standing.NO_OPINION), phase, why)
                return 0.0
            session, phase = opinion.session or session or "-", "slow"
            self.rest(LOOK_EVERY)
        return 0.0

    def _asked(self, question: AttributionAsked) -> Asked:
        case = next((one for one in self._backend.open_cases() if one.key == question.job), None)
        attempt = case.attempt(question.attempt) if case is not None else None
        if case is None or attempt is None:
            return Asked(question=question)
        logs = self._logs(question.job, attempt.fact.uid)
        if logs is None:
            return Asked(question=question, user=attempt.fact.user)
        named = logs.files(attempt.fact, attempt.allocation.nodes, case.choice.logs)
        first = named.files[0].path if named.files else ""
        return Asked(question=question, user=attempt.fact.user, log_path=first)

    def _logs(self, job: JobKey, uid: int | None) -> AttemptLogs | None:
        readers = self._readers.get(job.cluster)
        return None if readers is None else AttemptLogs(readers, uid)

    def _tell(
        self, question: AttributionAsked, opinion: Opinion, phase: str, unseen: str = ""
    ) -> None:
        name = self._desk.settings.name
        if unseen:
            _log.warning("an attribution service told nothing", service=name, why=unseen)
        elif opinion.status is Standing.NO_OPINION:
            unseen = f"it has no opinion. {opinion.sentence}".strip()
        self._backend.take(
            AttributionGiven(
                job=question.job,
                seen_at=self._now(),
                source=f"attribution:{name}",
                attempt=question.attempt,
                domain=opinion.domain,
                nodes=opinion.nodes,
                sentence=opinion.sentence,
                provider=name,
                cause=opinion.cause,
                decision=opinion.decision,
                confidence=opinion.confidence,
                phase=phase,
                unseen=unseen,
            )
        )
