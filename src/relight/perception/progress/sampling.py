"""Finds the lines of a block that tell a step, and leaves most of them unread when they flood.

Where counters stand on few lines, every such line is read. Where a log tells a step on most of
its lines, three sorts of them are enough: those in *frames*, short stretches at fixed offsets
of the file, for the usual time of a step; the first and the last of a block and those around
every other line that matters, so that each finding, checkpoint and beginning of a run knows
its step; and all lines between two read ones when the counter fell or its epoch changed.

What is read for its time is chosen by the offset in the file alone, so that it does not matter
how the bytes were cut into blocks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from relight.model.records import Record
from relight.perception.lines import Block
from relight.perception.matching import HAS_HYPERSCAN, LateMatcher, build_matcher
from relight.perception.progress.readings import Told, read_line
from relight.perception.progress.states import Density
from relight.perception.shapes import COUNTERS
from relight.perception.shapes.entries import GUESS

if HAS_HYPERSCAN:
    import hyperscan

_AROUND = 2
"""Lines with a counter that are read before and after every other line that matters."""


class Grid(Record, frozen=True, kw_only=True):
    """Which lines of a flood are read for their time, by their place in the file.

    ``slot`` are bytes over which the lines with a counter are counted, ``flood`` such lines in
    one slot from which on the next one is sampled, ``read_whole`` the slots at the begin of a
    file of which every line is read: most logs are no longer. In a flood, those lines are read
    for their time that begin in the first ``head`` bytes of each ``frame``, which divides a slot.
    """

    slot: int = 1 << 20
    flood: int = 512
    read_whole: int = 2
    frame: int = 1 << 18
    head: int = 1 << 12

    def frame_of(self, place: int) -> int | None:
        """Return the frame that a line at ``place`` lies in, None outside of all."""
        return 1 + place // self.frame if place % self.frame < self.head else None

    def passed(self, density: Density, slot: int, lines: int) -> Density:
        """Return the density with more lines in ``slot``."""
        if slot == density.slot:
            return Density(slot=slot, lines=density.lines + lines, is_flood=density.is_flood)
        is_next = slot == density.slot + 1 and slot >= self.read_whole
        return Density(slot=slot, lines=lines, is_flood=is_next and density.lines > self.flood)


GRID = Grid()
"""Where a line is read for its time, unless something else is asked for."""


class Step(NamedTuple):
    """A line that may tell a step: the counters found in it, and what was read in it.

    ``frame`` is the stretch of the file within which differences of times are taken, None for
    a line that is read but for its step. ``was_read`` tells a line in which nothing was found
    from one that nobody has read yet.
    """

    numbers: tuple[int, ...]
    frame: int | None = 0
    told: Told | None = None
    was_read: bool = False


@cache
def counters() -> LateMatcher:
    """Return the matcher of ``COUNTERS``, made once a process."""
    return build_matcher(COUNTERS)


class _Places:
    """Where the counters that need no guess end, in one pass and unconfirmed."""

    def __init__(self) -> None:
        self._owners: list[int] = []
        expressions: list[bytes] = []
        for number, shape in enumerate(COUNTERS):
            if shape.tier < GUESS:
                self._owners += [number] * len(shape.patterns)
                expressions += [pattern.encode() for pattern in shape.patterns]
        self._database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        self._database.compile(
            expressions=expressions,
            ids=list(range(len(expressions))),
            elements=len(expressions),
            flags=[hyperscan.HS_FLAG_MULTILINE] * len(expressions),
        )
        self._scratch = hyperscan.Scratch(self._database)

    def of(self, text: bytes) -> list[tuple[int, int]]:
        """Return (end of a match, number of its counter), in the order of the text."""
        found: list[tuple[int, int]] = []
        owners = self._owners

        def heard(number: int, _start: int, end: int, _flags: int, _context: object) -> None:
            found.append((end, owners[number]))

        self._database.scan(text, match_event_handler=heard, scratch=self._scratch.clone())
        found.sort()
        return found


@cache
def _places() -> _Places:
    return _Places()


class Sample(NamedTuple):
    """The lines of a block to be read, by their start, and the density after it."""

    steps: dict[int, Step]
    density: Density


def steps_of(
    block: Block, others: Sequence[int], density: Density, grid: Grid | None, *, is_known: bool
) -> Sample:
    """Return which lines of a block are to be read for their step.

    ``others`` are where the other lines that matter begin, in order. ``is_known`` says that a
    counter is believed that was not guessed: then a flood is sampled, and nothing guessed in
    it. Without a ``grid``, or without Hyperscan, every line with a counter is read.
    """
    if grid is not None and is_known and HAS_HYPERSCAN and density.is_flood:
        return _sampled(block, others, density, grid)
    found: dict[int, tuple[int, ...]] = {}
    for start, number in counters().scan(block.text):
        found[start] = (*found.get(start, ()), number)
    steps: dict[int, Step] = {}
    for start, numbers in found.items():
        place = block.place_of(start)
        if grid is not None and min(COUNTERS[number].tier for number in numbers) < GUESS:
            density = grid.passed(density, place // grid.slot, 1)
        frame = grid.frame_of(place) if grid is not None and density.is_flood else 0
        steps[start] = Step(numbers, frame)
    return Sample(steps, density)


class _Lines:
    """The lines of a block in which counters were found, read when they are asked for."""

    def __init__(self, block: Block) -> None:
        self._text = text = block.text
        self._ends = _places().of(text)
        self._read: dict[int, Told | None] = {}
        self.starts: list[int] = []
        self._first: list[int] = []
        begins, indexes, find, find_back = (
            self.starts.append,
            self._first.append,
            text.find,
            text.rfind,
        )
        line_end = 0
        for index, (end, _) in enumerate(self._ends):
            if end > line_end:
                begins(find_back(b"\n", line_end, end - 1) + 1 or line_end)
                indexes(index)
                line_end = find(b"\n", end - 1)
        self.places = [block.place_of(start) for start in self.starts]

    def between(self, first: int, last: int) -> range:
        """Return the indexes of the lines from one place of the file up to before another."""
        return range(bisect_left(self.places, first), bisect_left(self.places, last))

    def numbers(self, index: int) -> tuple[int, ...]:
        """Return the counters found in a line, each once."""
        last = self._first[index + 1] if index + 1 < len(self._first) else len(self._ends)
        return tuple(sorted({number for _, number in self._ends[self._first[index] : last]}))

    def ends_of_each(self) -> set[int]:
        """Return the indexes of the first and the last line that each counter tells a step on."""
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        for end, number in self._ends:
            first.setdefault(number, end)
            last[number] = end
        found: set[int] = set()
        for ends, stride in ((first, 1), (last, -1)):
            for number, end in ends.items():
                at = bisect_left(self.starts, end) - 1
                found.update(self.telling(at, stride, 1, number))
        return found

    def telling(self, at: int, stride: int, count: int, number: int | None = None) -> list[int]:
        """Return the indexes of the next lines from ``at`` on that tell a step.

        Those on the way that tell none are among them, and count for nothing.
        """
        found: list[int] = []
        while count and 0 <= at < len(self.starts):
            if number is None or number in self.numbers(at):
                found.append(at)
                count -= self.read(at) is not None
            at += stride
        return found

    def read(self, index: int) -> Told | None:
        """Return what a line tells."""
        if index not in self._read:
            start = self.starts[index]
            line = self._text[start : self._text.find(b"\n", start)]
            self._read[index] = read_line(self.numbers(index), line, is_failure=False)
        return self._read[index]


def _sampled(block: Block, others: Sequence[int], density: Density, grid: Grid) -> Sample:
    lines = _Lines(block)
    wanted: dict[int, int | None] = dict.fromkeys(lines.ends_of_each())
    for other in others:
        here = bisect_left(lines.starts, other)
        wanted.update(dict.fromkeys(lines.telling(here - 1, -1, _AROUND)))
        wanted.update(dict.fromkeys(lines.telling(here, 1, _AROUND)))
    for slot in _across(lines.places, grid.slot):
        inside = lines.between(slot * grid.slot, (slot + 1) * grid.slot)
        if inside:
            density = grid.passed(density, slot, len(inside))
            if density.is_flood:
                wanted.update(_timed(lines, inside, grid))
            else:
                wanted.update(dict.fromkeys(inside, 0))
    return Sample(_read(lines, wanted), density)


def _timed(lines: _Lines, inside: range, grid: Grid) -> dict[int, int | None]:
    """Return the lines of a flooded slot that are read for their time, with their frame."""
    found: dict[int, int | None] = {}
    for frame in _across(lines.places[inside.start : inside.stop], grid.frame):
        at = frame * grid.frame
        found.update(dict.fromkeys(lines.between(at, at + grid.head), frame + 1))
    return found


def _across(places: Sequence[int], stretch: int) -> range:
    """Return the numbers of the stretches of the file that ``places`` lie in."""
    return range(places[0] // stretch, places[-1] // stretch + 1) if places else range(0)


def _read(lines: _Lines, wanted: Mapping[int, int | None]) -> dict[int, Step]:
    """Return the wanted lines, and those between two of which the counter or its epoch turned."""
    steps: dict[int, Step] = {}
    before: dict[str, tuple[int, Told]] = {}
    for index in sorted(wanted):
        told = lines.read(index)
        if told is not None:
            last, old = before.get(told.key, (index, told))
            if old.epoch != told.epoch or (told.step < old.step and not told.shape.only_rises):
                for turned in range(last + 1, index):
                    if turned not in wanted:
                        steps[lines.starts[turned]] = Step(lines.numbers(turned), None)
            before[told.key] = index, told
        start = lines.starts[index]
        steps[start] = Step(lines.numbers(index), wanted[index], told, was_read=True)
    return steps
