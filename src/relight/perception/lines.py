"""From the bytes of a file to lines: whole ones only, bounded, each with its place.

A line ends at a line feed. A carriage return inside it (a progress bar) ends a *unit*, which
is what expressions are matched against, but does not count as a line. All that is kept of
what was read is one unfinished unit, one unfinished line and the last lines shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from relight.model.records import Record
from relight.model.signals import Mark
from relight.perception.cleaning import UNIT_HEAD, Cleaned, without_escapes
from relight.perception.progress.runs import RunsState
from relight.perception.progress.states import Density
from relight.perception.ranks import Hosts
from relight.perception.tracebacks import Traceback

SHOWN = 2 * 1024
"""Characters of one line that are kept to be shown."""
KEPT_LINES = 200
"""Last lines kept of each file."""
STRIDE = 1024 * 1024
"""Bytes worked on at a time, which bounds memory whatever the size of a reading."""

_UNSHOWN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class FileState(Record, frozen=True, kw_only=True):
    """Everything needed to go on reading one file.

    ``next_offset`` is the next byte expected; ``carry`` the head of the unfinished unit that
    began at ``carry_offset``; ``line`` the number of the unfinished line and ``overwritten``
    what that line showed before its last carriage return.
    """

    mark: Mark = Mark()
    next_offset: int = 0
    carry: bytes = b""
    carry_offset: int = 0
    line: int = 1
    overwritten: str = ""
    tail: tuple[str, ...] = ()
    tracebacks: dict[str, Traceback] = msgspec.field(default_factory=dict)
    runs: RunsState = RunsState()
    density: Density = Density()
    hosts: Hosts = Hosts()
    rank: int | None = None
    node: str | None = None

    @property
    def shown(self) -> tuple[str, ...]:
        """Return the last lines, oldest first, the unfinished one included."""
        unfinished = last_seen(self.carry) or self.overwritten
        return (*self.tail, unfinished) if unfinished else self.tail


class Unit(Record, frozen=True, kw_only=True):
    """One stretch between line ends or carriage returns, without escapes, and its place."""

    data: bytes
    offset: int
    line: int
    at: int
    """Where it begins in its block's raw bytes."""


class Block:
    """Whole units of one file, ready to be matched.

    ``text`` is what expressions see: escapes gone, envelopes opened, long units cut, every
    unit ended by a line feed. Offsets of ``text`` are mapped back to the file by ``unit``.
    """

    def __init__(self, raw: bytes, before: FileState, first_offset: int, shift: int) -> None:
        self.raw = raw
        self._before = before
        self._first_offset = first_offset
        self._shift = shift
        flat = raw.replace(b"\r", b"\n") if b"\r" in raw else raw
        flat = flat.replace(b"\x0b", b" ") if b"\x0b" in flat else flat
        self._cleaned = Cleaned(flat)
        self.text = self._cleaned.text
        self._counted = 0
        self._lines = 0

    def place_of(self, start: int) -> int:
        """Return where in the file the unit begins that begins at ``start`` of ``text``."""
        at = self._cleaned.origin(start)
        return self._first_offset if at == 0 else at + self._shift

    def unit(self, start: int) -> Unit:
        """Return the unit that begins at ``start`` of ``text``; ask in rising order."""
        at = self._cleaned.origin(start)
        self._lines += self.raw.count(b"\n", self._counted, at)
        self._counted = at
        return Unit(
            data=self.text[start : self.text.find(b"\n", start)],
            offset=self.place_of(start),
            line=self._before.line + self._lines,
            at=at,
        )

    def starts(self, first: int, last: int) -> Iterator[int]:
        """Yield where the units begin that lie in ``text[first:last]``."""
        at = first
        while at < last:
            yield at
            at = self.text.find(b"\n", at) + 1

    def lines_before(self, at: int, count: int) -> tuple[str, ...]:
        """Return up to ``count`` lines before the line of raw position ``at``, as shown."""
        found: list[str] = []
        end = self.raw.rfind(b"\n", 0, at)
        while end >= 0 and len(found) < count:
            start = self.raw.rfind(b"\n", 0, end) + 1
            found.append(self._shown(start, end))
            end = start - 1
        if len(found) < count:
            found += self._before.tail[::-1][: count - len(found)]
        return tuple(line for line in reversed(found) if line)

    def _shown(self, start: int, end: int) -> str:
        seen = last_seen(self.raw[start:end])
        return seen or (self._before.overwritten if start == 0 else "")

    def new_tail(self) -> tuple[tuple[str, ...], str]:
        """Return the last lines up to here, and what the unfinished line shows so far."""
        pieces = self.raw.rsplit(b"\n", KEPT_LINES + 1)
        begins_here = len(pieces) <= KEPT_LINES + 1
        complete = pieces[:-1] if begins_here else pieces[1:-1]
        shown = [last_seen(piece) for piece in complete]
        overwritten = last_seen(pieces[-1])
        if begins_here and shown:
            shown[0] = shown[0] or self._before.overwritten
        elif begins_here:
            overwritten = overwritten or self._before.overwritten
        return (*self._before.tail, *shown)[-KEPT_LINES:], overwritten

    def count_lines(self) -> int:
        """Return how many lines end in the block."""
        return self.raw.count(b"\n")


def readable(data: bytes) -> str:
    """Return bytes as text: bad UTF-8 replaced, escapes and control characters gone."""
    text = without_escapes(data).decode("utf-8", "replace")
    return _UNSHOWN.sub("\ufffd", text) if not text.isprintable() else text


def last_seen(line: bytes) -> str:
    """Return what a terminal would show of a line: the part after its last carriage return."""
    written = line.rstrip(b"\r")
    start = written.rfind(b"\r") + 1
    return readable(written[start : start + UNIT_HEAD])[:SHOWN]
