"""Reads several logs at once, each in a process of its own that this one outlives.

A process that dies (out of memory, killed) costs the file that it was reading, and no other.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

import msgspec

from relight.model.reports import FileReport
from relight.sources.archives.jobs import Wanted
from relight.sources.archives.reading import Listener, Seen, most_kept, read_log, stored_size

_TOLD_EVERY = 16 * 1024 * 1024
"""Bytes between two words of a reader about how far it is."""
_MOST_DEATHS = 3
"""Readers that die without a single report in between: then the rest is given up."""
_PATIENCE = 2.0
"""Seconds that an ended reader is waited for."""
_READ = b"+"
_REPORT = b"="


def read_at_once(
    files: Sequence[Wanted], places: Sequence[int], listener: Listener, seen: Seen, processes: int
) -> dict[int, FileReport]:
    """Return the reports of those of ``files`` that are at ``places``, by their place."""
    crew = _Crew(files, listener, seen)
    try:
        return crew.read(places, processes)
    finally:
        crew.end()


@dataclass(slots=True)
class _Reader:
    """One process, and the place of the file that it is reading."""

    process: BaseProcess
    place: int | None = None


class _Crew:
    def __init__(self, files: Sequence[Wanted], listener: Listener, seen: Seen) -> None:
        self._files = files
        self._listener = listener
        self._seen = seen
        self._readers: dict[Connection, _Reader] = {}
        self._reports: dict[int, FileReport] = {}
        self._deaths = 0
        self._waiting: list[int] = []

    def read(self, places: Sequence[int], processes: int) -> dict[int, FileReport]:
        # The largest first, so that none of them is left alone at the end.
        self._waiting = sorted(places, key=lambda place: stored_size(self._files[place].path))
        for _ in range(processes):
            self._start()
        while self._readers:
            for connection in wait(list(self._readers)):
                self._hear(connection)  # type: ignore[arg-type]  # only connections were given
        return self._reports

    def end(self) -> None:
        for connection, reader in self._readers.items():
            reader.process.terminate()
            connection.close()
        for reader in self._readers.values():
            reader.process.join(_PATIENCE)
            if reader.process.is_alive():
                reader.process.kill()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        most = most_kept(len(self._files))
        process = context.Process(
            target=_work, args=(theirs, self._listener, most), daemon=True, name="relight reader"
        )
        process.start()
        theirs.close()
        self._readers[ours] = reader = _Reader(process)
        self._hand_over(ours, reader)

    def _hand_over(self, connection: Connection, reader: _Reader) -> None:
        """Give the next file to a reader, or let it go when there is none."""
        reader.place = self._waiting.pop() if self._waiting else None
        if reader.place is None:
            connection.close()
            del self._readers[connection]
            reader.process.join(_PATIENCE)
            return
        try:
            connection.send(self._files[reader.place])
        except OSError:
            self._lost(connection, reader)

    def _hear(self, connection: Connection) -> None:
        reader = self._readers[connection]
        try:
            message = connection.recv_bytes()
        except (EOFError, OSError):
            self._lost(connection, reader)
            return
        if message.startswith(_READ):
            self._seen(int(message[1:]))
        elif reader.place is not None:
            self._deaths = 0
            self._reports[reader.place] = msgspec.msgpack.decode(message[1:], type=FileReport)
            self._hand_over(connection, reader)

    def _lost(self, connection: Connection, reader: _Reader) -> None:
        connection.close()
        del self._readers[connection]
        reader.process.join(_PATIENCE)
        why = f"the process that read it ended ({_end(reader.process.exitcode)})"
        lost = [] if reader.place is None else [reader.place]
        self._deaths += 1
        if self._deaths >= _MOST_DEATHS:
            lost += self._waiting
            self._waiting = []
        for place in lost:
            self._reports[place] = FileReport(file=self._files[place].log.file, trouble=why)
        if self._waiting:
            self._start()


def _work(connection: Connection, listener: Listener, most: int) -> None:
    """Read what comes through the connection until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    ears = listener.ears()
    unsaid = 0

    def seen(count: int) -> None:
        nonlocal unsaid
        unsaid += count
        if unsaid >= _TOLD_EVERY:
            connection.send_bytes(_READ + str(unsaid).encode())
            unsaid = 0

    while True:
        try:
            wanted = connection.recv()
        except EOFError:
            return
        report = read_log(wanted, ears, listener.now, seen, most)
        connection.send_bytes(_REPORT + msgspec.msgpack.encode(report))


def _end(code: int | None) -> str:
    if code is None:
        return "it does not answer"
    return f"signal {-code}" if code < 0 else f"exit code {code}"
