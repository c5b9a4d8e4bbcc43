"""Finds which expressions match which lines of a block, in one pass over the bytes.

Two engines, one answer. Hyperscan scans the whole block at once for ``triggers`` and says only
where one ended; it does not know lines. Each line that it points at is therefore asked with
RE2, and only what RE2 confirms counts. Where Hyperscan is not installed (it exists for x86-64
only), RE2's set looks at every line.

Hyperscan is ready in a fifth of a second, and in a fiftieth where a ``Shelf`` has kept what it
compiled at an earlier start.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Protocol

import msgspec
import re2

from relight.model.records import Record, digest
from relight.perception.triggers import PATIENCE, Trigger, sharpened, triggers_of
from relight.rules.patterns import Pattern

try:
    import hyperscan
except ImportError:
    HAS_HYPERSCAN = False
else:
    HAS_HYPERSCAN = True

FEW_BYTES = 4 * 1024 * 1024
"""After so many bytes there is time to put on the shelf what was compiled."""

_SET_MEMORY = 256 * 1024 * 1024
"""RE2's set answers 'nothing' when its table outgrows this; a tenth was seen to be used."""
_LAYOUT = "triggers/1"
"""Names how triggers are found and kept; to be changed with either."""


class Patterned(Protocol):
    """Something with expressions, of which any may match: a rule, a shape of progress."""

    @property
    def patterns(self) -> tuple[str, ...]:
        """Return the expressions."""


class Shelf(Protocol):
    """Keeps bytes from one start to the next.

    It may lose them. It must not give back others than were put: a compiled database is run,
    not read.
    """

    def get(self, key: str) -> bytes | None:
        """Return what was put under ``key``, None when there is nothing."""

    def put(self, key: str, data: bytes) -> bool:
        """Keep ``data`` under ``key``; return whether it was kept."""

    def can_put(self) -> bool:
        """Return whether it is worth while to make something for it."""


class Matcher(Protocol):
    """The compiled expressions of many things."""

    def scan(self, block: bytes) -> list[tuple[int, int]]:
        """Return (offset of the line's start, index of the thing), sorted, each pair once.

        ``block`` holds lines that end in a line feed; the last may lack it.
        """


class LateMatcher:
    """A matcher that costs nothing before it is used, and less where a shelf has it ready.

    Threads may share it: at worst two of them compile the same.
    """

    def __init__(self, things: Sequence[Patterned]) -> None:
        self._things = tuple(things)
        self._shelf: Shelf | None = None
        self._engine: Matcher | None = None
        self._has_stocked = False
        self._scanned = 0

    def use_shelf(self, shelf: Shelf) -> None:
        """Take from the shelf what was compiled before, and put there what is compiled now."""
        self._shelf = shelf

    def stock(self) -> None:
        """Put on the shelf what it lacks; see ``would_stock``.

        For when the answer is out, so that the next start finds it there, or when several
        processes are about to look.
        """
        if self.would_stock() and self._shelf is not None:
            engine = self._ready()
            if isinstance(engine, HyperscanMatcher):
                self._shelf.put(shelf_key(self._things), engine.kept())
        self._has_stocked = True

    def would_stock(self) -> bool:
        """Return whether ``stock`` has something to put where it can be put."""
        if not HAS_HYPERSCAN or self._shelf is None:
            return False
        self._ready()
        return not self._has_stocked and self._shelf.can_put()

    def scan(self, block: bytes) -> list[tuple[int, int]]:
        """Return (offset of the line's start, index of the thing), sorted, each pair once."""
        engine = self._ready()
        if self._scanned >= FEW_BYTES and not self._has_stocked:
            self.stock()
        self._scanned += len(block)
        return engine.scan(block)

    def _ready(self) -> Matcher:
        if self._engine is None:
            self._engine = self._first()
        return self._engine

    def _first(self) -> Matcher:
        if not HAS_HYPERSCAN:
            return SetMatcher(self._things)
        kept = self._shelf.get(shelf_key(self._things)) if self._shelf is not None else None
        engine = HyperscanMatcher.of_kept(self._things, kept) if kept else None
        self._has_stocked = engine is not None
        return engine or HyperscanMatcher(self._things)


def build_matcher(things: Sequence[Patterned]) -> LateMatcher:
    """Return the fastest matcher that this machine can run; it is compiled when first used."""
    return LateMatcher(things)


def shelf_key(things: Sequence[Patterned]) -> str:
    """Return what names these expressions, compiled by this Hyperscan for this processor.

    Hyperscan compiles for the processor it runs on. Its description of a small database
    names its own version and the processor's features that it makes use of.
    """
    small = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    small.compile(expressions=[b"relight"], flags=[hyperscan.HS_FLAG_MULTILINE])
    made_by = f"{_LAYOUT} {small.info()!r}"
    return digest(made_by, *(text for _, text in _flatten(things)))


class _Kept(Record, frozen=True, kw_only=True):
    """What stands on a shelf: the triggers, and the database made of them."""

    triggers: tuple[Trigger, ...]
    database: bytes


class _Net:
    """Triggers, compiled, and what happened since."""

    def __init__(
        self, triggers: tuple[Trigger, ...], database: hyperscan.Database | None = None
    ) -> None:
        self.triggers = triggers
        self.database = database or _compiled(triggers)
        self.in_vain: Counter[int] = Counter()
        self._model = hyperscan.Scratch(self.database)
        self._idle = [self._model.clone()]

    def cast(self, block: bytes) -> list[tuple[int, int]]:
        """Return (offset of a line's start, number of a trigger on it), sorted, each once."""
        found: set[tuple[int, int]] = set()
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
                found.add(pair)
                last = pair

        try:
            scratch = self._idle.pop()
        except IndexError:
            scratch = self._model.clone()
        try:
            self.database.scan(block, match_event_handler=heard, scratch=scratch)
        finally:
            self._idle.append(scratch)
        return sorted(found)


class HyperscanMatcher:
    """One scan a block. Threads may share it: each scan takes a scratch space of its own.

    It learns which literals are common in what it reads, and then searches for more than
    these; what it finds stays the same. ``patience`` is explained at its default, and ``net``
    given where one was made before.
    """

    def __init__(
        self, things: Sequence[Patterned], *, patience: int = PATIENCE, net: _Net | None = None
    ) -> None:
        flat = _flatten(things)
        self._owners = [owner for owner, _ in flat]
        self._expressions = [text for _, text in flat]
        self._patterns: dict[int, Pattern] = {}
        self._first = self._net = net or _Net(triggers_of(self._expressions))
        self._patience = patience

    @classmethod
    def of_kept(cls, things: Sequence[Patterned], kept: bytes) -> HyperscanMatcher | None:
        """Return a matcher from what ``kept`` of one with the same ``shelf_key`` gave.

        None when it is something else, or Hyperscan does not take it.
        """
        try:
            found = msgspec.msgpack.decode(kept, type=_Kept)
            database = hyperscan.loadb(found.database, hyperscan.HS_MODE_BLOCK)
        except (msgspec.MsgspecError, hyperscan.HyperscanError):
            return None
        return cls(things, net=_Net(found.triggers, database))

    def kept(self) -> bytes:
        """Return what was compiled at first as bytes, to be kept.

        Not what was learnt: the next log is another.
        """
        database = bytes(hyperscan.dumpb(self._first.database))
        return msgspec.msgpack.encode(_Kept(triggers=self._first.triggers, database=database))

    def scan(self, block: bytes) -> list[tuple[int, int]]:
        """Return (offset of the line's start, index of the thing), sorted, each pair once."""
        if not self._expressions:
            return []
        net = self._net
        found = self._confirmed(block, net)
        if net.in_vain.total() >= self._patience:
            self._learn(net)
        return found

    def _confirmed(self, block: bytes, net: _Net) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        for start, pairs in groupby(net.cast(block), key=itemgetter(0)):
            end = block.find(b"\n", start)
            line = block[start : end if end >= 0 else len(block)]
            woken = {number for _, one in pairs for number in net.triggers[one].wakes}
            owners: set[int] = set()
            for number in woken:
                if self._owners[number] in owners:
                    continue
                if self._pattern(number).is_in(line):
                    owners.add(self._owners[number])
                else:
                    net.in_vain[number] += 1
            found += [(start, owner) for owner in sorted(owners)]
        return found

    def _learn(self, net: _Net) -> None:
        """Make a sharper net of one that catches too much, twice as patient each time.

        A log made to wear it out thus only makes it compile a few times.
        """
        triggers = sharpened(net.triggers, self._expressions, net.in_vain)
        net.in_vain.clear()
        if triggers is not None:
            self._net = _Net(triggers)
        self._patience *= 2

    def _pattern(self, number: int) -> Pattern:
        """Return the expression for RE2, compiled when it is first asked for."""
        pattern = self._patterns.get(number)
        if pattern is None:
            pattern = self._patterns[number] = Pattern(self._expressions[number])
        return pattern


class SetMatcher:
    """RE2's set over one line at a time: slower, on every processor, with the same answers."""

    def __init__(self, things: Sequence[Patterned]) -> None:
        flat = _flatten(things)
        self._owners = [owner for owner, _ in flat]
        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.max_mem = _SET_MEMORY
        self._set = re2.Set.SearchSet(options)
        for _, text in flat:
            self._set.Add(text.encode())
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


def _flatten(things: Sequence[Patterned]) -> list[tuple[int, str]]:
    return [(index, text) for index, thing in enumerate(things) for text in thing.patterns]


def _compiled(triggers: Iterable[Trigger]) -> hyperscan.Database:
    expressions: list[bytes] = []
    ids: list[int] = []
    flags: list[int] = []
    for number, trigger in enumerate(triggers):
        found = [_escaped(literal) for literal in trigger.literals] or [trigger.expression]
        expressions += found
        ids += [number] * len(found)
        caseless = hyperscan.HS_FLAG_CASELESS if trigger.is_caseless else 0
        flags += [caseless if trigger.literals else hyperscan.HS_FLAG_MULTILINE] * len(found)
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(expressions=expressions, ids=ids, elements=len(ids), flags=flags)
    return database


def _escaped(literal: bytes) -> bytes:
    """Return an expression for a literal; a zero byte would end it early."""
    return re.escape(literal).replace(b"\0", rb"\x00")
