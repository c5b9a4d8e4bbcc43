"""The protocol of relight's own: one POST, answered by an opinion.

The request has the shape that NVIDIA Recovery's adapter sends (schema_version, workload_id, phase,
scope, failure_context, workload_context, timeout_ms, continue_session), as its documentation
names the fields. That documentation gives no shape of the answer: ours is
``relight.clients.attribution.opinions.Opinion``, and unknown fields in it are passed over.
"""

from __future__ import annotations

import msgspec

from relight.clients.attribution.exchanges import Exchange
from relight.clients.attribution.opinions import Asked, Opinion
from relight.model.evidence import Window
from relight.model.instants import Instant, to_iso
from relight.model.records import Record
from relight.model.verdicts import Verdict

SCHEMA_VERSION = "1"
PATH = "/v1/attribution"
_MOST_LINES = 40


class Scope(Record, frozen=True, kw_only=True):
    """Where and when: nodes, ranks, and a window of time in ISO 8601."""

    nodes: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    start_time: str = ""
    end_time: str = ""


class Request(Record, frozen=True, kw_only=True):
    """What is sent; ``phase`` is fast for the first look and slow for those that follow."""

    schema_version: str
    workload_id: str
    phase: str
    scope: Scope
    failure_context: dict[str, object]
    workload_context: dict[str, object]
    timeout_ms: int
    continue_session: str = ""
    user_id: str = ""


class OwnProtocol:
    """Implements ``AttributionService``; one request waits for at most ``timeout`` seconds."""

    def __init__(self, exchange: Exchange, timeout: float) -> None:
        self._exchange = exchange
        self._timeout = timeout

    def ask(self, asked: Asked, session: str = "") -> Opinion:
        """Return what the service thinks now."""
        request = request_of(asked, session, self._timeout)
        opinion = self._exchange.post(PATH, request, Opinion)
        sure = min(max(opinion.confidence, 0.0), 1.0)
        return msgspec.structs.replace(opinion, confidence=sure)


def request_of(asked: Asked, session: str, timeout: float) -> Request:
    """Return the request for one look."""
    question = asked.question
    ours = question.ours
    return Request(
        schema_version=SCHEMA_VERSION,
        workload_id=f"{question.job}-{question.attempt}",
        phase="slow" if session else "fast",
        scope=_scope(question.window, ours),
        failure_context=_failure(ours),
        workload_context={"is_living": question.is_living, "log_path": asked.log_path},
        timeout_ms=round(timeout * 1000),
        continue_session=session,
        user_id=asked.user,
    )


def _scope(window: Window | None, ours: Verdict | None) -> Scope:
    return Scope(
        nodes=window.allocation.nodes if window else (),
        ranks=ours.ranks if ours else (),
        start_time=_iso(window.since if window else None),
        end_time=_iso(window.until if window else None),
    )


def _failure(ours: Verdict | None) -> dict[str, object]:
    if ours is None:
        return {}
    return {
        "cause": ours.cause,
        "family": ours.family,
        "domain": ours.domain,
        "kind": ours.kind,
        "sentence": ours.sentence,
        "confidence": ours.confidence,
        "suspects": [one.node for one in ours.suspects],
        "evidence": [one.text for one in ours.evidence][:_MOST_LINES],
    }


def _iso(at: Instant | None) -> str:
    return "" if at is None else to_iso(at)
