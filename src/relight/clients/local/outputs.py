"""Files that tasks write to, and the pump that labels lines of a file they share."""

from __future__ import annotations

import os
import selectors
import threading
import time
from pathlib import Path

LONGEST_LINE = 1 << 16
"""Bytes. A longer line of a shared file is broken up, so that a task without line feeds
neither fills the memory nor mixes with the lines of another."""

_LOOK_SECONDS = 0.05
_DRAIN_SECONDS = 1.0


def open_output(path: Path) -> int:
    """Open a file to append to, creating it; return its descriptor.

    A named pipe that nobody reads is an error, never a wait.

    Raises:
        OSError: it cannot be opened.

    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o644)
    os.set_blocking(descriptor, True)
    return descriptor


def append_line(path: Path, line: str) -> None:
    """Append one line in one piece; a file that cannot be written keeps the job from nothing."""
    try:
        descriptor = open_output(path)
    except OSError:
        return
    try:
        write_all(descriptor, line.encode(errors="replace") + b"\n")
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of ``data``, or as much of it as the disk takes."""
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError:
        return  # a full disk must not end the scheduler; the tasks meet it by themselves


class LabelPump(threading.Thread):
    """Copies what tasks write into shared files, each line behind its task's number."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._selector = selectors.DefaultSelector()
        self._left: dict[int, bytes] = {}
        self._ending = threading.Event()

    def attach(self, task: int, sink: int) -> int:
        """Return the descriptor that a task is to write to; the caller closes it.

        Call it before the thread starts. ``sink`` is closed when the task's side is.
        """
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        self._left[reading] = b""
        self._selector.register(reading, selectors.EVENT_READ, (b"%d: " % task, sink))
        return writing

    def run(self) -> None:
        """Copy until every task has closed its side, or until told to end."""
        end: float | None = None
        while self._selector.get_map():
            ready = self._selector.select(_LOOK_SECONDS)
            if self._ending.is_set():
                end = end or time.monotonic() + _DRAIN_SECONDS
                if not ready or time.monotonic() > end:
                    break
            for key, _ in ready:
                self._copy(key)
        for key in list(self._selector.get_map().values()):
            self._detach(key)
        self._selector.close()

    def end(self) -> None:
        """Copy what is left for at most a second, then close everything and return."""
        self._ending.set()
        self.join()

    def _copy(self, key: selectors.SelectorKey) -> None:
        label, sink = key.data
        data = os.read(key.fd, LONGEST_LINE)
        if not data:
            self._detach(key)
            return
        *lines, left = (self._left[key.fd] + data).split(b"\n")
        if len(left) >= LONGEST_LINE:
            lines.append(left)
            left = b""
        self._left[key.fd] = left
        write_all(sink, b"".join(label + line + b"\n" for line in lines))

    def _detach(self, key: selectors.SelectorKey) -> None:
        label, sink = key.data
        left = self._left.pop(key.fd)
        if left:
            write_all(sink, label + left + b"\n")
        self._selector.unregister(key.fd)
        os.close(key.fd)
        os.close(sink)
