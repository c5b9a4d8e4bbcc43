"""Finds which expressions match which lines of a block, in one pass over the bytes.

Two engines, one answer. Hyperscan scans the whole block at once and says only where a match
ended; it does not know lines, so an expression may run over a line feed. Each line that it
points at is therefore asked again with RE2, and only what RE2 confirms counts. Where
Hyperscan is not installed (it exists for x86-64 only), RE2's set looks at every line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Protocol

import re2

from relight.rules.patterns import Pattern

try:
    import hyperscan
except ImportError:
    HAS_HYPERSCAN = False
else:
    HAS_HYPERSCAN = True

_SET_MEMORY = 256 * 1024 * 1024
"""RE2's set answers 'nothing' when its table outgrows this; a tenth was seen to be used."""


class Patterned(Protocol):
    """Something with expressions, of which any may match: a rule, a shape of progress."""

    @property
    def patterns(self) -> tuple[str, ...]:
        """Return the expressions."""


class Matcher(Protocol):
    """The compiled expressions of many things."""

    def scan(self, block: bytes) -> list[tuple[int, int]]:
        """Return (offset of the line's start, index of the thing), sorted, each pair once.

        ``block`` holds lines that end in a line feed; the last may lack it.
        """


def build_matcher(things: Sequence[Patterned]) -> Matcher:
    """Return the fastest matcher that this machine can run."""
    return HyperscanMatcher(things) if HAS_HYPERSCAN else SetMatcher(things)


class HyperscanMatcher:
    """One scan a block. Threads may share it: each scan takes a scratch space of its own."""

    def __init__(self, things: Sequence[Patterned]) -> None:
        self._owners, self._patterns = _flatten(things)
        self._database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        self._database.compile(
            expressions=[pattern.text.encode() for pattern in self._patterns],
            ids=list(range(len(self._patterns))),
            elements=len(self._patterns),
            flags=[hyperscan.HS_FLAG_MULTILINE] * len(self._patterns),
        )
        self._idle = [hyperscan.Scratch(self._database)]
        self._model = hyperscan.Scratch(self._database)

    def scan(self, block: bytes) -> list[tuple[int, int]]:
        """Return (offset of the line's start, index of the thing), sorted, each pair once."""
        if not self._patterns:
            return []
        ends: set[tuple[int, int]] = set()
        last = (-1, -1)
        line_start = line_end = 0

        def heard(number: int, _start: int, end: int, _flags: int, _context: object) -> None:
            nonlocal last, line_start, line_end
            at = end - 1
            if not line_start <= at < line_end:
                line_start = block.rfind(b"\n", 0, at) + 1 if at > 0 else 0
                line_end = block.find(b"\n", at) + 1 or len(block)
            pair = (line_start, number)
            if pair != last:
                ends.add(pair)
                last = pair

        try:
            scratch = self._idle.pop()
        except IndexError:
            scratch = self._model.clone()
        try:
            self._database.scan(block, match_event_handler=heard, scratch=scratch)
        finally:
            self._idle.append(scratch)
        return self._confirmed(block, ends)

    def _confirmed(self, block: bytes, pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        found: set[tuple[int, int]] = set()
        line, line_at = b"", -1
        for start, number in sorted(pairs):
            pair = (start, self._owners[number])
            if pair in found:
                continue
            if start != line_at:
                end = block.find(b"\n", start)
                line, line_at = block[start : end if end >= 0 else len(block)], start
            if self._patterns[number].is_in(line):
                found.add(pair)
        return sorted(found)


class SetMatcher:
    """RE2's set over one line at a time: slower, on every processor, with the same answers."""

    def __init__(self, things: Sequence[Patterned]) -> None:
        self._owners, patterns = _flatten(things)
        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.max_mem = _SET_MEMORY
        self._set = re2.Set.SearchSet(options)
        for pattern in patterns:
            self._set.Add(pattern.text.encode())
        self._set.Compile()

    def scan(self, block: bytes) -> list[tuple[int, int]]:
        """Return (offset of the line's start, index of the thing), sorted, each pair once."""
        if not self._owners:
            return []
        lines = block.split(b"\n")
        starts = accumulate((len(line) + 1 for line in lines), initial=0)
        found: set[tuple[int, int]] = set()
        for start, line in zip(starts, lines, strict=False):
            if line:
                found.update(
                    (start, self._owners[number]) for number in self._set.Match(line) or ()
                )
        return sorted(found)


def _flatten(things: Sequence[Patterned]) -> tuple[list[int], list[Pattern]]:
    owners: list[int] = []
    patterns: list[Pattern] = []
    for index, thing in enumerate(things):
        for expression in thing.patterns:
            owners.append(index)
            patterns.append(Pattern(expression))
    return owners, patterns
