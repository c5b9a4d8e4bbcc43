"""When each line of a real log was written, by the time that the log itself tells.

Lines that print an instant give it. Where those that tell steps print none, the step time that
they print is added up, and the pauses that the log's index lists. This reads logs by its own few
expressions and not by relight's, so that the clock does not depend on what it is to test.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from relight.model.instants import Instant, from_iso, from_unix, in_seconds, later, seconds
from relight.model.records import Record
from relight.perception.lines import readable
from relight.perception.times import printed_time

UNTOLD = from_iso("2026-03-01T00:00:00Z")
"""When a log begins that prints no date at all."""
_PIECE = re.compile(rb"[^\r\n]*(?:\r?\n|\r)|[^\r\n]+")
_SHOWN = 400
_AHEAD = 60.0
"""Seconds by which a stamp may be ahead of the next ones before it is no time of its line."""
_OTHER_RUN = 6 * 3600.0
"""A gap of more is the begin of another day's run, appended to the same file."""
_DIGITS = re.compile(rb"\d\d:\d\d|time_ms|\d{10}\.\d")
_UNIX = re.compile(rb"'timestamp': (\d{10}\.\d+)")
_SECOND = seconds(1)
_CUT = b"[collector: "
"""How a line begins that stands for what was cut out."""

_PRINTED = tuple(
    re.compile(expression)
    for expression in (
        rb"iteration +(?P<step>\d+)/.*elapsed time per iteration \(ms\): (?P<ms>[\d.]+)",
        rb"Epoch: \[\d+\] +\[ *(?P<step>\d+)/\d+\].* time: (?P<s>[\d.]+)",
        rb"Test: +\[ *(?P<step>\d+)/\d+\].* time: (?P<s>[\d.]+)",
        rb"TRAIN \[\d+\]\[(?P<step>\d+)/\d+\]\tTime (?P<s>[\d.]+)",
        rb"Finished training it (?P<step>\d+)/\d+ .*?(?P<ms>[\d.]+) ms/it",
        rb"step:(?P<step>\d+)/\d+ .*train_time:(?P<elapsed_ms>\d+)ms",
        rb"num_updates[= ](?P<step>\d+).* wall[= ](?P<elapsed>\d+)",
        rb"\|E2E latency=(?P<s>[\d.]+)s",
        rb"step:(?P<step>\d+) - .*timing/gen:",
    )
)
_TIMINGS = re.compile(rb"timing/\w+:([\d.]+)")


class Piece(Record, frozen=True, kw_only=True):
    """A line, or what a bar wrote up to a carriage return, and when; offsets count bytes."""

    offset: int
    end: int
    at: Instant


def pieces(data: bytes, *, stamped: bool, pauses: dict[int, float]) -> list[Piece]:
    """Return the pieces of a log in order with their instants, which never go back.

    ``stamped`` says that the lines that tell steps print instants; else ``pauses`` holds, by the
    number of its line, what a pause took beyond its step.
    """
    spans = [match.span() for match in _PIECE.finditer(data)]
    stamps = _stamps(data, spans)
    first = next((one for one in stamps if one is not None), UNTOLD)
    if stamped:
        cut = {number for number, (start, _) in enumerate(spans) if data.startswith(_CUT, start)}
        return _forward(spans, _sane(stamps), first, cut)
    found: list[Piece] = []
    now = first
    number = 1
    told = _Told()
    for start, end in spans:
        now = later(now, seconds(told.took(data[start:end], pauses.pop(number, 0.0))))
        found.append(Piece(offset=start, end=end, at=now))
        number += data[end - 1 : end] == b"\n"
    return found


class _Told:
    """Adds up what lines print of the time of steps."""

    def __init__(self) -> None:
        self._last: dict[int, int] = {}
        self._elapsed = 0.0

    def took(self, line: bytes, pause: float) -> float:
        """Return the seconds between the step before and this line."""
        for number, expression in enumerate(_PRINTED):
            match = expression.search(line)
            if match is not None:
                return max(self._printed(number, match, line), pause)
        return pause

    def _printed(self, number: int, match: re.Match[bytes], line: bytes) -> float:
        told = match.groupdict()
        if "elapsed" in told or "elapsed_ms" in told:
            elapsed = float(told.get("elapsed") or 0) + float(told.get("elapsed_ms") or 0) / 1000
            before, self._elapsed = self._elapsed, elapsed
            return max(elapsed - before, 0.0)
        if "s" in told or "ms" in told:
            each = float(told.get("s") or 0) + float(told.get("ms") or 0) / 1000
        else:
            each = sum(float(one) for one in _TIMINGS.findall(line))
        if told.get("step") is None:
            return each
        step = int(told["step"])
        before_it = self._last.get(number)
        self._last[number] = step
        if before_it is None or step < before_it:
            return each
        return each * (step - before_it)


def _stamps(data: bytes, spans: Sequence[tuple[int, int]]) -> list[Instant | None]:
    """Return what the pieces print, of the clock that tells the most seconds.

    MLPerf's logger prints UTC beside others' local time.
    """
    found: list[tuple[bool, Instant] | None] = []
    for start, end in spans:
        line = data[start : min(end, start + _SHOWN)]
        at = _stamp(line) if _DIGITS.search(line) else None
        found.append(None if at is None else (b'"time_ms"' in line, at))
    mllog = {one[1] // _SECOND for one in found if one is not None and one[0]}
    others = {one[1] // _SECOND for one in found if one is not None and not one[0]}
    wanted = len(mllog) >= len(others)
    return [one[1] if one is not None and one[0] == wanted else None for one in found]


def _stamp(line: bytes) -> Instant | None:
    unix = _UNIX.search(line)
    return from_unix(float(unix[1])) if unix else printed_time(readable(line))


def _sane(stamps: Sequence[Instant | None]) -> list[Instant | None]:
    """Drop what is ahead of both stamps after it: a date that the line only speaks of."""
    known = [(number, at) for number, at in enumerate(stamps) if at is not None]
    sane = list(stamps)
    for (number, at), (_, one), (_, two) in zip(known, known[1:], known[2:], strict=False):
        if in_seconds(at - max(one, two)) > _AHEAD:
            sane[number] = None
    return sane


def _forward(
    spans: Sequence[tuple[int, int]],
    stamps: Sequence[Instant | None],
    first: Instant,
    cut: AbstractSet[int],
) -> list[Piece]:
    """Give every piece the latest instant up to it; what follows a cut follows at once."""
    found: list[Piece] = []
    now = latest = first
    is_cut = False
    for number, ((start, end), at) in enumerate(zip(spans, stamps, strict=True)):
        is_cut = is_cut or number in cut
        if at is not None and at > latest:
            gap = in_seconds(at - latest)
            latest = at
            now = later(now, seconds(gap if gap < _OTHER_RUN and not is_cut else 1.0))
            is_cut = False
        found.append(Piece(offset=start, end=end, at=now))
    return found


def polls(found: Sequence[Piece], every: float) -> Iterator[tuple[Instant, int, int]]:
    """Yield what a reader meets that looks each ``every`` seconds: when, and which bytes."""
    span = seconds(every)
    begin = 0
    due: Instant | None = None
    for piece in found:
        polled = Instant(-(-piece.at // span) * span)
        if due is not None and polled > due:
            yield due, begin, piece.offset
            begin = piece.offset
        due = polled
    if due is not None:
        yield due, begin, found[-1].end
