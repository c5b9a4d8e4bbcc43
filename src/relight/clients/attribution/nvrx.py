"""The protocol of ``nvrx-attrsvc``, the service of nvidia-resiliency-ext.

A log is handed in by its path with ``POST /logs`` and asked for with ``GET /logs?wait=false`` until
its status is no longer pending or in_flight; ``recommendation.action`` is then STOP, RESTART,
CONTINUE, UNKNOWN or TIMEOUT. It names no domain and no node. The service has to see the same
file system. Source: its specification (services/attrsvc/ATTRSVC_SPEC.md) and its tests.
"""

from __future__ import annotations

from relight.clients.attribution.exchanges import Exchange
from relight.clients.attribution.opinions import Asked, Opinion, ServiceFailed, Standing
from relight.model.advice import Decision
from relight.model.records import Record

PATH = "/logs"
_UNFINISHED = frozenset({"pending", "in_flight"})
_DECISIONS = {
    "STOP": Decision.STOP,
    "RESTART": Decision.RESTART,
    "CONTINUE": Decision.NONE,
}
_LONGEST = 400


class Submission(Record, frozen=True, kw_only=True):
    """What is handed in."""

    log_path: str
    user: str
    job_id: str
    cycle_id: int
    analysis_intent: str


class Submitted(Record, frozen=True, kw_only=True):
    """What comes back for it."""

    submitted: bool = True


class Recommendation(Record, frozen=True, kw_only=True):
    """The normalised part of a result."""

    action: str = "UNKNOWN"
    reason: str = ""
    source: str = ""


class Result(Record, frozen=True, kw_only=True):
    """What a look gives."""

    status: str = ""
    recommendation: Recommendation | None = None


class NvrxProtocol:
    """Implements ``AttributionService`` over nvrx-attrsvc."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def ask(self, asked: Asked, session: str = "") -> Opinion:
        """Hand the log in at first, then look how far the service has come."""
        if not asked.log_path:
            raise ServiceFailed("nvrx-attrsvc is asked by the path of a log, which is not known")
        if not session:
            self._hand_in(asked)
        query = {"log_path": asked.log_path, "wait": "false"}
        result = self._exchange.get(PATH, query, Result)
        told = result.recommendation
        if result.status in _UNFINISHED or told is None:
            return Opinion(status=Standing.PENDING, session=asked.log_path)
        decision = _DECISIONS.get(told.action.upper())
        if decision is None:
            return Opinion(status=Standing.NO_OPINION, sentence=_sentence(told))
        return Opinion(status=Standing.FINAL, decision=decision, sentence=_sentence(told))

    def _hand_in(self, asked: Asked) -> None:
        question = asked.question
        handed = Submission(
            log_path=asked.log_path,
            user=asked.user,
            job_id=question.job.scheduler_id,
            cycle_id=question.attempt,
            analysis_intent="progressive" if question.is_living else "terminal",
        )
        self._exchange.post(PATH, handed, Submitted)


def _sentence(told: Recommendation) -> str:
    why = f": {told.reason}" if told.reason else ""
    by = f" ({told.source})" if told.source else ""
    return f"{told.action}{why}{by}"[:_LONGEST]
