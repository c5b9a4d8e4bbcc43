"""Passes on what a child writes into files, byte for byte, as it grows."""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Callable, Sequence
from pathlib import Path

PIECE = 1 << 16
"""Bytes read at once."""

MOST_PIECES = 16
"""Pieces passed on in one call, so that a flood does not keep signals and decisions waiting."""


class Stream:
    """One growing file, and the descriptor that its bytes are passed on to."""

    def __init__(self, file: Path, sink: int) -> None:
        self._source = os.open(file, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.sink = sink
        self.is_cut = False
        """Whether nobody reads the other end any more."""
        self.ends_line = True
        """Whether the last byte that was passed on ended a line."""

    def pass_on(self) -> bool:
        """Pass on what is new, up to a bound; return whether there may be more."""
        for _ in range(MOST_PIECES):
            data = os.read(self._source, PIECE)
            if not data:
                return False
            self.ends_line = data.endswith(b"\n")
            self._write(data)
        return True

    def close(self) -> None:
        """Close the file."""
        os.close(self._source)

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left and not self.is_cut:
            try:
                left = left[os.write(self.sink, left) :]
            except BlockingIOError:
                select.select([], [self.sink], [])
            except OSError:  # a closed pipe, or a terminal that is gone
                self.is_cut = True


class Passage:
    """The output streams of a child, and relight's own lines between them."""

    def __init__(self, streams: Sequence[Stream], say: Callable[[str], None]) -> None:
        self._streams = streams
        self._say = say

    @property
    def is_cut(self) -> bool:
        """Return whether nobody reads one of the streams any more."""
        return any(stream.is_cut for stream in self._streams)

    def pass_on(self) -> bool:
        """Pass on what is new in every stream; return whether there may be more."""
        more = [stream.pass_on() for stream in self._streams]
        return any(more)

    def drain(self) -> None:
        """Pass on everything that is there."""
        while self.pass_on():
            pass

    def say(self, sentence: str) -> None:
        """Say a sentence of relight's own, on a line of its own, after what is there already."""
        self.drain()
        for stream in self._streams:
            if not stream.ends_line and os.isatty(stream.sink):
                stream.ends_line = True
                with contextlib.suppress(OSError):
                    os.write(stream.sink, b"\n")
        with contextlib.suppress(OSError):
            self._say(sentence)

    def close(self) -> None:
        """Close every file."""
        for stream in self._streams:
            stream.close()
