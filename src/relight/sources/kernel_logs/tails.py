"""Reads the end of a file backwards, as far back as is asked and as a bound allows."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Callable, Iterator

import msgspec

from relight.model.instants import EPOCH, Instant
from relight.model.records import Record
from relight.model.seen import Seen, Unseen
from relight.sources.archives.compressed import (
    LONGEST_MAGIC,
    DamagedError,
    kind_of,
    plain_bytes,
)

PIECE = 256 * 1024
"""Bytes that are read at a time."""
MOST_UNPACKED = 64 * 1024 * 1024
"""Bytes of a compressed file that are unpacked on the way to its end."""


class Tail(Record, frozen=True, kw_only=True):
    """The last whole lines of a file; the first byte of ``data`` stands at ``offset``.

    ``is_whole`` says that the file begins there; ``is_cut`` that more would have been wanted
    and was not read. ``changed_at`` is when the file was last written to.
    """

    data: bytes
    offset: int
    is_whole: bool
    is_cut: bool
    path: str = ""
    changed_at: Instant = EPOCH


def tail_of(path: str, most: int, is_enough: Callable[[bytes], bool]) -> Seen[Tail] | Unseen:
    """Return the end of a file: at most ``most`` bytes, no more once ``is_enough`` says so.

    ``is_enough`` is asked of each piece that was read, from its first whole line on. A
    compressed file is unpacked from its start, and its end is kept. An unfinished last line
    is left for the next look.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        return Unseen(f"{path} cannot be opened: {_why(error)}")
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            return Unseen(f"{path} is no regular file")
        kind = kind_of(os.pread(descriptor, LONGEST_MAGIC, 0))
        if kind:
            tail = _unpacked(kind, descriptor, most)
        else:
            tail = _read_back(descriptor, found.st_size, most, is_enough)
    except OSError as error:
        return Unseen(f"{path} cannot be read: {_why(error)}")
    finally:
        os.close(descriptor)
    changed_at = Instant(found.st_mtime_ns // 1_000)
    return Seen(msgspec.structs.replace(tail, path=path, changed_at=changed_at))


def _read_back(descriptor: int, size: int, most: int, is_enough: Callable[[bytes], bool]) -> Tail:
    pieces: deque[bytes] = deque()
    begin = size
    least = max(size - most, 0)
    is_done = False
    while begin > least and not is_done:
        end, begin = begin, max(begin - PIECE, least)
        piece = os.pread(descriptor, end - begin, begin)
        pieces.appendleft(piece)
        is_done = is_enough(piece if begin == 0 else piece.partition(b"\n")[2])
    return _whole_lines(b"".join(pieces), begin, is_cut=not is_done and begin > 0)


def _unpacked(kind: str, descriptor: int, most: int) -> Tail:
    kept: deque[bytes] = deque()
    held = unpacked = 0
    is_damaged = False
    try:
        for piece in plain_bytes(kind, _raw(descriptor)):
            kept.append(piece)
            held += len(piece)
            unpacked += len(piece)
            while held - len(kept[0]) >= most:
                held -= len(kept.popleft())
            if unpacked > MOST_UNPACKED:
                is_damaged = True
                break
    except DamagedError:
        is_damaged = True
    offset = unpacked - held
    return _whole_lines(b"".join(kept), offset, is_cut=is_damaged or offset > 0)


def _raw(descriptor: int) -> Iterator[bytes]:
    at = 0
    while piece := os.pread(descriptor, PIECE, at):
        at += len(piece)
        yield piece


def _whole_lines(data: bytes, offset: int, *, is_cut: bool) -> Tail:
    begin = 0 if offset == 0 else data.find(b"\n") + 1
    end = data.rfind(b"\n") + 1
    return Tail(data=data[begin:end], offset=offset + begin, is_whole=offset == 0, is_cut=is_cut)


def _why(error: OSError | ValueError) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error)
