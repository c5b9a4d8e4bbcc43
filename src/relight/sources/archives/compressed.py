"""Decompresses a stream by its first bytes, whatever its name says, in bounded pieces.

A stream that ends early or is damaged gives all that came before; then the reason is told.
"""

from __future__ import annotations

import bz2
import lzma
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import zstandard

PIECE = 1024 * 1024
"""Bytes of one piece that is given out, at most."""

_FEED = 4 * 1024
"""Compressed bytes worked on at a time: what a damaged place can take with it."""
_ZSTD_FEED = 1024
"""For zstd, whose pieces cannot be bounded otherwise: 256 blocks of 128 KiB at most."""
_LARGEST_WINDOW = 1 << 27
"""Bytes that a stream may ask to be remembered: what ``zstd`` itself takes without --memory."""
_LARGEST_XZ = 256 * 1024 * 1024
"""Bytes of memory for xz, whose highest preset needs 65 MiB."""


class DamagedError(Exception):
    """A compressed stream that cannot be read further; the message says why."""


class Inflater(Protocol):
    """Takes compressed bytes of one member, gives plain ones."""

    feed: int
    """How many compressed bytes to hand over at a time."""

    def more(self, data: bytes) -> bytes:
        """Return the next bytes of at most about ``PIECE``; ``data`` is what to read next.

        Raises:
            DamagedError: the bytes are no such stream.

        """

    @property
    def is_hungry(self) -> bool:
        """Return whether it has nothing more to give without further bytes."""

    @property
    def is_at_end(self) -> bool:
        """Return whether the member ended; ``rest`` is then what follows it."""

    @property
    def rest(self) -> bytes:
        """Return the bytes behind the end of the member."""


class _Gzip:
    feed = _FEED

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)

    def more(self, data: bytes) -> bytes:
        try:
            return self._inner.decompress(self._inner.unconsumed_tail + data, PIECE)
        except zlib.error as error:
            raise DamagedError(str(error)) from error

    @property
    def is_hungry(self) -> bool:
        return not self._inner.unconsumed_tail

    @property
    def is_at_end(self) -> bool:
        return self._inner.eof

    @property
    def rest(self) -> bytes:
        return self._inner.unused_data


class _Zstandard:
    feed = _ZSTD_FEED
    is_hungry = True

    def __init__(self) -> None:
        self._inner = zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW).decompressobj()

    def more(self, data: bytes) -> bytes:
        try:
            return self._inner.decompress(data)
        except zstandard.ZstdError as error:
            raise DamagedError(str(error)) from error

    @property
    def is_at_end(self) -> bool:
        return self._inner.eof

    @property
    def rest(self) -> bytes:
        return self._inner.unused_data


class _Library:
    """The shape that Python's own lzma and bz2 share."""

    feed = _FEED

    def __init__(self, inner: lzma.LZMADecompressor | bz2.BZ2Decompressor) -> None:
        self._inner = inner

    def more(self, data: bytes) -> bytes:
        try:
            return self._inner.decompress(data, PIECE)
        except (lzma.LZMAError, OSError, EOFError, ValueError) as error:
            raise DamagedError(str(error)) from error

    @property
    def is_hungry(self) -> bool:
        return self._inner.needs_input

    @property
    def is_at_end(self) -> bool:
        return self._inner.eof

    @property
    def rest(self) -> bytes:
        return self._inner.unused_data


_KINDS: tuple[tuple[bytes, str, Callable[[], Inflater]], ...] = (
    (b"\x1f\x8b\x08", "gzip", _Gzip),
    (b"\x28\xb5\x2f\xfd", "zstd", _Zstandard),
    (
        b"\xfd7zXZ\x00",
        "xz",
        lambda: _Library(lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_LARGEST_XZ)),
    ),
    (b"BZh", "bzip2", lambda: _Library(bz2.BZ2Decompressor())),
)
_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18[\s\S]{4}")
"""A frame of zstd that holds no text: its magic number and its length (RFC 8878, 3.1.2)."""
_SKIPPABLE_MAGIC = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
_FRAME_HEAD = 8
LONGEST_MAGIC = max(len(magic) for magic, _, _ in _KINDS)


def kind_of(head: bytes) -> str:
    """Return how a stream that begins with ``head`` is compressed, empty for not at all."""
    if _SKIPPABLE_MAGIC.match(head):
        return "zstd"
    return next((kind for magic, kind, _ in _KINDS if head.startswith(magic)), "")


def plain_bytes(kind: str, raw: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the plain bytes of a compressed stream, all its members one after another.

    Zeros behind a member are padding, and zstd's skippable frames hold no text.

    Raises:
        DamagedError: after all that could be read was given: it ends early, is damaged, or
            something else follows.

    """
    opened = next(one for _, name, one in _KINDS if name == kind)
    supply = _Supply(raw)
    while head := supply.peek(_FRAME_HEAD):
        if _SKIPPABLE.match(head):
            supply.skip(_FRAME_HEAD + int.from_bytes(head[4:], "little"))
        elif kind_of(head) == kind:
            inflater = opened()
            yield from _member(inflater, supply)
            supply.give_back(inflater.rest)
        elif head.startswith(b"\0"):
            supply.give_back(supply.take(_FEED).lstrip(b"\0"))
        else:
            raise DamagedError("something else follows what is compressed")


def _member(inflater: Inflater, supply: _Supply) -> Iterator[bytes]:
    while not inflater.is_at_end:
        data = supply.take(inflater.feed)
        if not data:
            raise DamagedError("it ends in the middle")
        yield inflater.more(data)
        while not (inflater.is_hungry or inflater.is_at_end):
            yield inflater.more(b"")


class _Supply:
    """Bytes of a stream in amounts as they are wanted; some may be given back."""

    def __init__(self, raw: Iterable[bytes]) -> None:
        self._raw = iter(raw)
        self._held = b""
        self._at = 0

    def take(self, most: int) -> bytes:
        """Return the next bytes, at most ``most``; none at the end of the stream."""
        if self._at >= len(self._held):
            self._held, self._at = next(self._raw, b""), 0
        taken = self._held[self._at : self._at + most]
        self._at += len(taken)
        return taken

    def peek(self, count: int) -> bytes:
        """Return the next ``count`` bytes, fewer at the end of the stream, and keep them."""
        while len(self._held) - self._at < count and (more := next(self._raw, b"")):
            self._held, self._at = self._held[self._at :] + more, 0
        return self._held[self._at : self._at + count]

    def skip(self, count: int) -> None:
        """Pass over ``count`` bytes, or what is left."""
        while count > 0 and (taken := self.take(count)):
            count -= len(taken)

    def give_back(self, data: bytes) -> None:
        """Put bytes in front again; those taken last cost nothing."""
        begin = self._at - len(data)
        if begin >= 0 and self._held[begin : self._at] == data:
            self._at = begin
        else:
            self._held, self._at = data + self._held[self._at :], 0
