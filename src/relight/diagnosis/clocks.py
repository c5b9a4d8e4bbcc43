"""Which finding came first, when some lines print a time and others do not."""

from __future__ import annotations

from collections.abc import Sequence

from relight.model.findings import Finding
from relight.model.instants import Instant, later, seconds

CLOCK_SLACK = seconds(60)
"""A line's clock may be ahead of ours by this much."""


def in_time_order(findings: Sequence[Finding]) -> list[Finding]:
    """Return findings by time: by the lines' own clocks where these can be believed.

    Else by when they were read. Within one file the place decides; it needs no clock.
    """
    at_once = len({one.seen_at for one in findings}) <= 1
    clock = _clocks_of_files(findings) if at_once else _clock_of_all(findings)

    def when(one: Finding) -> tuple[int, str, int, str]:
        return (clock.get(one.id, one.seen_at), *_place(one), one.id)

    return sorted(findings, key=when)


def _clocks_of_files(findings: Sequence[Finding]) -> dict[str, Instant]:
    """Return the instants to order by of findings that were all read at once.

    A time without a zone is read as UTC: one zone for all keeps the order, two do not. Lines
    without a time take that of the line before them in their file, the first ones that of the
    line after. Writers of one file may be a little apart; a file whose times run back by more
    has two clocks, and none that can be believed: it comes after those that have one.
    """
    ordered = sorted(findings, key=_place)
    first = {_file(one): one.at for one in reversed(ordered) if one.at is not None}
    latest: dict[str, Instant] = {}
    clock: dict[str, Instant] = {}
    torn: set[str] = set()
    for one in ordered:
        file = _file(one)
        before = latest.get(file, first.get(file))
        at = before if one.at is None else one.at
        if at is None or before is None:
            torn.add(file)
            continue
        if later(at, CLOCK_SLACK) < latest.get(file, at):
            torn.add(file)
        clock[one.id] = latest[file] = max(at, before) if file in latest else at
    return {one.id: clock[one.id] for one in ordered if _file(one) not in torn}


def _clock_of_all(findings: Sequence[Finding]) -> dict[str, Instant]:
    """Return the instants to order by of findings that were read one by one.

    Empty where one prints no time, one that lies ahead of when it was read, or one that runs
    against its file: then relight's own clock orders all.
    """
    latest: dict[str, Instant] = {}
    clock: dict[str, Instant] = {}
    for one in sorted(findings, key=_place):
        file, at = _file(one), one.at
        if at is None or at > later(one.seen_at, CLOCK_SLACK) or at < latest.get(file, at):
            return {}
        clock[one.id] = latest[file] = at
    return clock


def _file(one: Finding) -> str:
    return one.place.file if one.place else one.id


def _place(one: Finding) -> tuple[str, int]:
    return (one.place.file, one.place.offset) if one.place else ("", 0)
