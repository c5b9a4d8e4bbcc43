"""Opens one file without ever blocking, and gives its text in pieces.

Only regular files are read, and of a growing one what it held when it was opened. A pipe is
read where it was handed over by the caller: standard input, and the ``/dev/fd/63`` that a
shell makes of ``<(command)``.
"""

from __future__ import annotations

import os
import re
import select
import stat
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from relight.sources.archives.compressed import (
    LONGEST_MAGIC,
    PIECE,
    DamagedError,
    kind_of,
    plain_bytes,
)
from relight.sources.archives.texts import SNIFFED, no_log

STANDARD_INPUT = "-"

_HANDED_OVER = re.compile(r"/dev/stdin|(?:/dev/fd|/proc/self/fd)/\d{1,9}")
_KINDS = {
    stat.S_IFIFO: "a named pipe; read it with cat and a pipe into relight diagnose",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a directory",
}
_KERNELS_OWN = ("/proc/", "/sys/")


class RefusedError(Exception):
    """A file that is not read; the message says why, as the rest of a sentence."""


class Source:
    """One opened file. ``trouble`` says after reading what could not be read of it.

    ``is_binary`` is set when it turned out to be no text: then it gives nothing.
    ``is_seekable`` tells whether offsets of the text are offsets of the file.
    """

    def __init__(self, descriptor: int, size: int | None, seen: Callable[[int], None]) -> None:
        self._descriptor = descriptor
        self._left = size
        self._seen = seen
        self.trouble = ""
        self.is_binary = False
        self.is_seekable = False

    def pieces(self) -> Iterator[bytes]:
        """Yield the text, decompressed, in pieces of at most about 1 MiB; read it once."""
        try:
            yield from _gathered(self._checked(self._plain()))
        except DamagedError as error:
            self.trouble = f"it is damaged: {error}; what came before was read"
        except OSError as error:
            self.trouble = f"reading it failed: {error.strerror}; what came before was read"

    def part(self, offset: int, most: int) -> bytes:
        """Return bytes as they are stored; raises OSError when that fails."""
        return os.pread(self._descriptor, most, offset)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _plain(self) -> Iterator[bytes]:
        raw = self._raw()
        head = b""
        for piece in raw:
            head += piece
            if len(head) >= LONGEST_MAGIC:
                break
        kind = kind_of(head)
        self.is_seekable = not kind and self._left is not None
        whole = chain([head], raw)
        return plain_bytes(kind, whole) if kind else whole

    def _raw(self) -> Iterator[bytes]:
        while self._left is None or self._left > 0:
            most = PIECE if self._left is None else min(PIECE, self._left)
            try:
                piece = os.read(self._descriptor, most)
            except BlockingIOError:  # a pipe that its other users made non-blocking
                select.select([self._descriptor], [], [])
                continue
            if not piece:
                if self._left:
                    self.trouble = "it became shorter while it was read; what was there was read"
                return
            if self._left is not None:
                self._left -= len(piece)
            self._seen(len(piece))
            yield piece

    def _checked(self, plain: Iterator[bytes]) -> Iterator[bytes]:
        """Pass text on; give nothing of what is no text by its first bytes."""
        head: list[bytes] = []
        size = 0
        ended: DamagedError | None = None
        try:
            for piece in plain:
                head.append(piece)
                size += len(piece)
                if size >= SNIFFED:
                    break
        except DamagedError as error:
            ended = error
        start = b"".join(head)
        if what := no_log(start[:SNIFFED]):
            self.is_binary = True
            self.trouble = f"it is not a log but {what}"
            return
        yield start
        if ended is not None:
            raise ended
        yield from plain


def open_source(path: str, seen: Callable[[int], None]) -> Source:
    """Open a file for reading; ``seen`` is called with the number of bytes of each read.

    ``path`` may hold bytes that are not UTF-8, as Python writes them.

    Raises:
        RefusedError: it cannot be opened, or is of a kind that is not read.

    """
    if is_handed_over(path):
        return _handed_over(path, seen)
    try:
        # A device does things when it is opened: it is looked at first.
        _refuse_kinds(os.stat(path))  # noqa: PTH116 - a path here is what the system takes
        if os.path.realpath(path).startswith(_KERNELS_OWN):
            raise RefusedError("it is not a file on a disk but made by the kernel")
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        descriptor = os.open(path, flags)
    except ValueError as error:
        raise RefusedError(f"its name is none: {error}") from error
    except OSError as error:
        raise RefusedError(_why(error)) from error
    found = os.fstat(descriptor)
    try:
        _refuse_kinds(found)
    except RefusedError:
        os.close(descriptor)
        raise
    return Source(descriptor, found.st_size, seen)


def is_handed_over(path: str) -> bool:
    """Return whether only this process can read it: it names an open descriptor."""
    return path == STANDARD_INPUT or _HANDED_OVER.fullmatch(path) is not None


def part_of(path: str, offset: int, most: int) -> bytes:
    """Return bytes of a regular file as they are stored, from ``offset`` on.

    Raises:
        RefusedError: as ``open_source``.
        OSError: it cannot be read.

    """
    source = open_source(path, lambda _: None)
    try:
        return source.part(offset, most)
    finally:
        source.close()


def _handed_over(path: str, seen: Callable[[int], None]) -> Source:
    number = path.rpartition("/")[2]
    try:
        descriptor = os.dup(int(number) if number.isdigit() else 0)
    except OSError as error:
        raise RefusedError(_why(error)) from error
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode):
        left = found.st_size - os.lseek(descriptor, 0, os.SEEK_CUR)
        return Source(descriptor, left, seen)
    if stat.S_ISCHR(found.st_mode) and not (_is_null(found) or os.isatty(descriptor)):
        os.close(descriptor)
        raise RefusedError("it is a device")
    return Source(descriptor, None, seen)


def _is_null(found: os.stat_result) -> bool:
    return found.st_rdev == os.stat(os.devnull).st_rdev  # noqa: PTH116 - as above


def _refuse_kinds(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise RefusedError(f"it is {_KINDS.get(stat.S_IFMT(found.st_mode), 'no file')}")


def _why(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Join small pieces, so that what works on them is called less often."""
    held: list[bytes] = []
    size = 0
    try:
        for piece in pieces:
            held.append(piece)
            size += len(piece)
            if size >= PIECE:
                yield b"".join(held)
                held, size = [], 0
    except (DamagedError, OSError):
        if held:
            yield b"".join(held)
        raise
    if size:
        yield b"".join(held)
