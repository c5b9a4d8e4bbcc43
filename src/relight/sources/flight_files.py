"""The files of a flight recorder: which they are, and what stands in them.

PyTorch writes one file for each rank, named by a prefix and the global rank, in one go and with no
rename (``DebugInfoWriter`` in ``torch/csrc/distributed/c10d/FlightRecorder.cpp``), so a file can be
met half-written.
"""

from __future__ import annotations

import glob
import itertools
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from relight.model.records import Record
from relight.model.seen import Unseen
from relight.perception.flights.decoding import decode, decode_briefly, is_dump
from relight.perception.flights.dumps import Dump, Refused
from relight.perception.flights.judging import late_ranks
from relight.perception.flights.pickles import MOST_BYTES
from relight.sources.owner_readers import Stuck

MOST_DUMPS = 4_096
"""Dumps of one look: as many ranks."""
MOST_AT_ONCE = 64
"""Dumps that are read in full in a few seconds: one takes up to 0.1 s."""
MOST_IN_ALL = 1 << 30
"""Bytes read in one look."""
MOST_UNREAD = 3
"""Dumps told of one by one that could not be read."""

_RANKED = re.compile(r"(?P<stem>.*?)(?P<rank>\d{1,7})(?:\.(?:json|pkl|pickle|bin|dump))?")
_GLOB = re.compile(r"[*?\[]")
_NO_DUMP = "it is no dump of a flight recorder"
_BY_PYTORCH = ("nccl_trace_rank_", "comm_lib_trace_rank_")
"""What PyTorch calls its dumps where nobody names them (``FlightRecorder.hpp``)."""


class Gathered(Record, frozen=True, kw_only=True):
    """The dumps of one look, by rank; what was refused, and what could not be read, in sentences.

    ``unread`` are the ranks whose file is there and could not be read. ``unseen`` is a sentence
    when no dump is there at all.
    """

    dumps: tuple[Dump, ...] = ()
    refused: tuple[Refused, ...] = ()
    unread: frozenset[int] = frozenset()
    blind: tuple[str, ...] = ()
    unseen: str = ""
    size: int = 0


class Files(Protocol):
    """Finds and reads files, with somebody's rights and without ever blocking."""

    def find(self, pattern: str) -> tuple[Sequence[str], str]:
        """Return the regular files that a glob names, and what is missing in a sentence."""
        ...

    def read(self, path: str) -> bytes | Unseen:
        """Return a whole file of at most ``MOST_BYTES``, or why it is not read."""
        ...


def gather_own(path: str) -> Gathered:
    """Return the dumps that a path means, read with the caller's own rights."""
    return gather(os.path.abspath(path), _Own(), lambda: True)  # noqa: PTH100 - it may hold a glob


def gather(
    path: str, files: Files, may_go_on: Callable[[], bool], *, is_hurried: bool = False
) -> Gathered:
    """Return the dumps that a path means: a folder, a prefix that ranks follow, or a glob.

    Of several dumps of one rank the one with the newest call counts. ``may_go_on`` is asked
    before each file. ``is_hurried`` says that many dumps are read briefly first, then in full as
    far as time allows, those of ranks that are found late before others.
    """
    named, blind = _named(path, files)
    if not named:
        why = "; ".join(blind) or "no file there is named by a rank"
        return Gathered(unseen=f"no dump at {_shown(path)}: {why}")
    reading = _Reading(files=files, is_folder=_is_folder(path, named), blind=list(blind))
    brief = is_hurried and len(named) > MOST_AT_ONCE
    left = reading.take_all(named, may_go_on, is_brief=brief)
    if left:
        reading.blind.append(f"{left} dumps were left unread in this look")
    elif brief:
        again = reading.in_question(named)
        reading.size = 0
        reading.take_all(again, may_go_on, is_brief=False)
    unread = {rank for _, rank in named[len(named) - left :]}
    return reading.gathered(path, unread)


@dataclass(slots=True)
class _Reading:
    """What has been read so far; ``is_folder`` says that other files may lie beside the dumps."""

    files: Files
    is_folder: bool
    blind: list[str]
    dumps: dict[int, Dump] = field(default_factory=dict)
    refused: list[Refused] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    unread_ranks: set[int] = field(default_factory=set)
    others: dict[str, int] = field(default_factory=dict)
    stems: set[str] = field(default_factory=set)
    briefly: set[str] = field(default_factory=set)
    size: int = 0
    is_stuck: bool = False

    def take_all(
        self, named: Sequence[tuple[str, int]], may_go_on: Callable[[], bool], *, is_brief: bool
    ) -> int:
        """Read files one after another, and return how many were left."""
        for number, (name, rank) in enumerate(named):
            is_full = number >= MOST_DUMPS or self.size >= MOST_IN_ALL
            if is_full or self.is_stuck or not may_go_on():
                return len(named) - number
            self.take(name, rank, is_brief=is_brief)
        return 0

    def in_question(self, named: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
        """Return the files that were read briefly, those of ranks that are found late first."""
        late = late_ranks(tuple(self.dumps.values()))
        brief = [one for one in named if one[0] in self.briefly]
        return sorted(brief, key=lambda one: one[1] not in late)

    def take(self, name: str, rank: int, *, is_brief: bool) -> None:
        """Read one file."""
        data = self.files.read(name)
        if isinstance(data, Unseen):
            self.unread.append(f"{_shown(name)}: {data.why}")
            self.unread_ranks.add(rank)
            self.is_stuck = isinstance(data, Stuck)
            return
        self.size += len(data)
        if self.is_folder and data and not is_dump(data):
            self.others[name] = rank
            return
        self.stems.add(_stem(name))
        brief = decode_briefly(data, rank, _shown(name)) if is_brief else None
        if brief is not None:
            self.briefly.add(name)
        told = brief or decode(data, rank, _shown(name))
        if isinstance(told, Dump):
            before = self.dumps.get(rank)
            if before is None or before.newest_ns <= told.newest_ns or before.file == told.file:
                self.dumps[rank] = told
            return
        self.refused.append(told)
        self.unread_ranks.add(rank)
        if told.is_cut:
            self.unread.append(f"{told.file}: {told.why}; it may still be being written")

    def gathered(self, path: str, left: Iterable[int]) -> Gathered:
        """Return what was read; ``left`` are the ranks that time or room did not allow for."""
        for name, rank in self.others.items():
            if self._is_named_as_dump(name):
                self.refused.append(Refused(rank=rank, file=_shown(name), why=_NO_DUMP))
                self.unread_ranks.add(rank)
        more = len(self.unread) - MOST_UNREAD
        told = [*self.blind, *self.unread[:MOST_UNREAD]]
        if more > 0:
            told.append(f"{more} more dumps could not be read")
        is_nothing = not self.dumps and not any(not one.is_cut for one in self.refused)
        why = "; ".join(told) or "no file there is a dump of a flight recorder"
        return Gathered(
            dumps=tuple(self.dumps[rank] for rank in sorted(self.dumps)),
            refused=tuple(self.refused),
            unread=frozenset({*self.unread_ranks, *left} - self.dumps.keys()),
            blind=tuple(told),
            unseen=f"no dump at {_shown(path)}: {why}" if is_nothing else "",
            size=self.size,
        )

    def _is_named_as_dump(self, name: str) -> bool:
        """Tell whether a file bears the name of a dump, and is none: the ranks' name beside it."""
        stem = _stem(name)
        return bool(stem) and (stem in self.stems or stem.endswith(_BY_PYTORCH))


def _named(path: str, files: Files) -> tuple[list[tuple[str, int]], tuple[str, ...]]:
    """Return the files that bear a rank's number, by rank, and what could not be looked for."""
    blind: dict[str, None] = {}
    for pattern in _patterns(path):
        names, left_out = files.find(pattern)
        if left_out:
            blind[left_out] = None
        ranked = [(name, rank) for name in names if (rank := _rank_in(name)) is not None]
        if ranked:
            return sorted(ranked, key=lambda one: (one[1], one[0])), tuple(blind)
    return [], tuple(blind)


def _patterns(path: str) -> Iterator[str]:
    if _GLOB.search(path):
        yield path
        return
    yield f"{path.rstrip('/')}/*"
    if not path.endswith("/"):
        yield f"{path}*"


def _rank_in(name: str) -> int | None:
    match = _RANKED.fullmatch(name.rpartition("/")[2])
    return int(match["rank"]) if match is not None else None


def _stem(name: str) -> str:
    """Return what stands in a file's name before the rank; nothing where it is a rank alone."""
    match = _RANKED.fullmatch(name.rpartition("/")[2])
    return match["stem"] if match is not None else ""


def _is_folder(path: str, named: Sequence[tuple[str, int]]) -> bool:
    return not _GLOB.search(path) and named[0][0].startswith(path.rstrip("/") + "/")


class _Own:
    """Reads with the caller's rights; a named pipe or a device is passed over."""

    def find(self, pattern: str) -> tuple[Sequence[str], str]:
        try:
            found = sorted(itertools.islice(glob.iglob(pattern), MOST_DUMPS + 1))  # noqa: PTH207 - absolute
        except re.error:
            return (), "it is no glob: look at what stands in brackets"
        return [name for name in found if os.path.isfile(name)], ""  # noqa: PTH113 - as above

    def read(self, path: str) -> bytes | Unseen:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError as error:
            return Unseen(f"it could not be opened: {error.strerror}")
        try:
            with open(descriptor, "rb") as file:  # noqa: PTH123 - of a descriptor
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    return Unseen("it is not a regular file")
                data = file.read(MOST_BYTES + 1)
        except OSError as error:
            return Unseen(f"it could not be read: {error.strerror}")
        return data if len(data) <= MOST_BYTES else Unseen(f"it has more than {MOST_BYTES:,} bytes")


def _shown(name: str) -> str:
    return name.encode(errors="backslashreplace").decode()
