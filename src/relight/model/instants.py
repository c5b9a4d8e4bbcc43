"""Instants and spans: whole microseconds, UTC, as plain integers.

A float loses microseconds after 2004 and a ``datetime`` is slow to compare and to store;
an integer is exact, ordered and cheap. ``Instant`` counts from 1970-01-01T00:00:00Z.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import NewType

Instant = NewType("Instant", int)
Span = NewType("Span", int)

EPOCH = Instant(0)
"""1970-01-01T00:00:00Z: before anything that relight has seen."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SPAN = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*(us|ms|s|m|h|d)")
_UNIT_US = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}


def seconds(count: float) -> Span:
    """Return a span of ``count`` seconds, rounded to a microsecond."""
    return Span(round(count * 1_000_000))


def from_unix(count: float) -> Instant:
    """Return the instant ``count`` seconds after 1970-01-01T00:00:00Z."""
    return Instant(round(count * 1_000_000))


def later(at: Instant, span: Span) -> Instant:
    """Return the instant ``span`` after ``at``."""
    return Instant(at + span)


def between(start: Instant, end: Instant) -> Span:
    """Return the span from ``start`` to ``end``, negative when ``end`` comes first."""
    return Span(end - start)


def in_seconds(span: int) -> float:
    """Return a span, or an instant since 1970, in seconds."""
    return span / 1_000_000


def to_iso(at: Instant) -> str:
    """Return ``at`` as ISO 8601 in UTC with microseconds, ending in ``Z``."""
    return (_EPOCH + timedelta(microseconds=at)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def from_iso(text: str) -> Instant:
    """Return the instant that an ISO 8601 text names; a text without zone is UTC.

    Raises:
        ValueError: the text is not ISO 8601.

    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return Instant((moment - _EPOCH) // timedelta(microseconds=1))


def parse_span(text: str) -> Span:
    """Return the span that ``"90s"``, ``"1.5h"`` or ``"1h 30m"`` names.

    Raises:
        ValueError: the text has no unit or holds something else.

    """
    rest = _SPAN.sub("", text).strip()
    parts = _SPAN.findall(text)
    if rest or not parts:
        raise ValueError(
            f'"{text}" is not a span: write a number and a unit, such as "60s" or "2h"'
        )
    return Span(sum(round(float(number) * _UNIT_US[unit]) for number, unit in parts))


def show_span(span: int) -> str:
    """Return a span for a person: ``"850 ms"``, ``"12.4 s"``, ``"3m 05s"``, ``"2h 14m"``."""
    if span < 0:
        return "-" + show_span(-span)
    if span < _UNIT_US["s"]:
        return f"{span // 1_000} ms"
    if span < 100 * _UNIT_US["s"]:
        return f"{span / 1_000_000:.1f} s"
    if span < 100 * _UNIT_US["m"]:
        return f"{span // _UNIT_US['m']}m {span % _UNIT_US['m'] // _UNIT_US['s']:02d}s"
    return f"{span // _UNIT_US['h']}h {span % _UNIT_US['h'] // _UNIT_US['m']:02d}m"
