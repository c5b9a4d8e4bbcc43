"""Incidents: the findings of one attempt that tell one story, with phases and a time split."""

from __future__ import annotations

from enum import StrEnum

from relight.model.findings import Finding, Kind
from relight.model.instants import Instant
from relight.model.reasons import Reason
from relight.model.records import Record
from relight.model.verdicts import Verdict


class Phase(StrEnum):
    """How far the story has come."""

    OPEN = "open"
    DIAGNOSED = "diagnosed"
    ADVISED = "advised"
    ACTING = "acting"
    RECOVERING = "recovering"
    CLOSED = "closed"


PHASE_MOVES: dict[Phase, frozenset[Phase]] = {
    Phase.OPEN: frozenset({Phase.DIAGNOSED, Phase.CLOSED}),
    Phase.DIAGNOSED: frozenset({Phase.ADVISED, Phase.CLOSED}),
    Phase.ADVISED: frozenset({Phase.ACTING, Phase.RECOVERING, Phase.CLOSED}),
    Phase.ACTING: frozenset({Phase.RECOVERING, Phase.CLOSED}),
    Phase.RECOVERING: frozenset({Phase.CLOSED}),
    Phase.CLOSED: frozenset(),
}
"""The only moves of a phase. From advised straight to recovering: a person did what was advised."""


class TimeSplit(Record, frozen=True, kw_only=True):
    """The instants of one recovery; None where not reached or not known.

    ``fault`` is the time of the root evidence, ``first_step`` the first completed step after
    resuming from an earlier attempt's checkpoint, ``caught_up`` the first step beyond the
    failed attempt's last.
    """

    fault: Instant | None = None
    ended: Instant | None = None
    detected: Instant | None = None
    settled: Instant | None = None
    advised: Instant | None = None
    ordered: Instant | None = None
    nodes_free: Instant | None = None
    running: Instant | None = None
    first_step: Instant | None = None
    caught_up: Instant | None = None


class Plan(Record, frozen=True, kw_only=True):
    """A restart that waits for the next completed checkpoint, one above ``checkpoint``."""

    made_at: Instant
    checkpoint: int | None = None


class Incident(Record, frozen=True, kw_only=True):
    """The story of what went wrong in one attempt.

    ``kind`` is that of the finding it began with. ``plan`` is set while a slow attempt goes on
    until its next checkpoint.

    ``steps_after`` counts the reports of a higher step since it opened, the last of them at
    ``stepped_at``: some may have been on their way when the fault struck.

    ``gone_nodes`` are nodes that the scheduler called down and that this story tells of, the first
    of them since ``gone_since``: no other story opens for them.
    """

    id: str
    phase: Phase
    opened_at: Instant
    findings: tuple[Finding, ...] = ()
    verdict: Verdict | None = None
    times: TimeSplit = TimeSplit()
    closed: Reason | None = None
    steps_after: int = 0
    stepped_at: Instant | None = None
    gone_nodes: tuple[str, ...] = ()
    gone_since: Instant | None = None
    false_recovery: bool = False
    kind: Kind = Kind.CRASH
    plan: Plan | None = None
