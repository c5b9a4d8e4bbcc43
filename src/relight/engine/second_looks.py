"""What one look at metrics shows may be a moment; what two looks show some time apart is a state.

While one rank writes a checkpoint or reads data its GPU is idle and all others wait for it: the
picture of a rank that is stuck. Only time tells the two apart, so a node is blamed for it no
sooner than a second look in the same silence agrees on the node.
"""

from __future__ import annotations

from collections.abc import Sequence

from relight.engine.cases import AttemptCase, Look, Occasion
from relight.engine.witnesses import newest, sights
from relight.model.findings import Finding, Provenance
from relight.model.instants import Instant, Span, between, later, seconds

IDLE_AMONG_BUSY = "gpu-idle-among-busy"
NEAREST, FARTHEST = seconds(15), seconds(300)
"""Bounds of the time between two looks that are to agree; within them it is the silence so far: a
rank that saves while the others wait has then twice as long as any pause before."""


def borne_out(
    attempt: AttemptCase, findings: Sequence[Finding], since: Instant
) -> tuple[Finding, ...]:
    """Return findings without those of idle GPUs among busy ones that only one look has shown."""
    return tuple(
        one for one in findings if not _is_fleeting(one) or _is_shown_twice(attempt, one, since)
    )


def second_look(
    attempt: AttemptCase, findings: Sequence[Finding], since: Instant
) -> Instant | None:
    """Return when a look is due that may bear findings out, None where none needs it."""
    asked = newest(attempt, Occasion.LIVING)
    if asked is None or len(borne_out(attempt, findings, since)) == len(findings):
        return None
    return later(asked, _apart(since, asked))


def _is_fleeting(one: Finding) -> bool:
    return one.rule == IDLE_AMONG_BUSY and one.provenance is Provenance.TELEMETRY


def _is_shown_twice(attempt: AttemptCase, one: Finding, since: Instant) -> bool:
    """Tell whether the last looks, far enough apart, all named the nodes that a finding names."""
    nodes = frozenset(one.nodes)
    last: Look | None = None
    for look in reversed(sights(attempt, since)):
        if _named(attempt, look) != nodes:
            return False
        last = last or look
        if between(look.asked_at, last.asked_at) >= _apart(since, look.asked_at):
            return True
    return False


def _named(attempt: AttemptCase, look: Look) -> frozenset[str]:
    return frozenset(
        node
        for one in attempt.findings
        if _is_fleeting(one) and one.id in look.found
        for node in one.nodes
    )


def _apart(since: Instant, asked: Instant) -> Span:
    return Span(min(max(between(since, asked), NEAREST), FARTHEST))
