"""The pool of reader processes: one for each owner whose files are read."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self, TypeVar

from relight.model.records import Record
from relight.model.seen import Seen, Unseen
from relight.model.signals import Mark
from relight.sources.reader_process import (
    Answer,
    ReaderGoneError,
    ReaderProcess,
    ReaderRefusedError,
    ReaderStuckError,
)

MOST_DYING = 2
"""Killed readers of one owner that a hanging file system has not let go yet."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Stuck(Unseen):
    """The read hung and was given up; ``why`` is one sentence."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """The next bytes of one file, and the reader's words about them."""

    answer: Answer
    data: bytes


@dataclass(slots=True)
class _Seat:
    """One owner's place in the pool; ``lock`` is held while its process is used."""

    used_at: float
    lock: threading.Lock = field(default_factory=threading.Lock)
    process: ReaderProcess | None = None
    dying: list[ReaderProcess] = field(default_factory=list)


class ReaderLimits(Record, frozen=True, kw_only=True):
    """How many seconds one read may take before its process is killed (``patience``).

    ``idle`` is how many seconds a process lives without work, ``most_alive`` how many live at
    once. A read of a healthy network folder takes milliseconds; 5 s outlast its short stalls.
    """

    patience: float = 5.0
    idle: float = 300.0
    most_alive: int = 32


_USUAL = ReaderLimits()


class OwnerReaders:
    """Reads files with the rights of their owners, through one process for each.

    ``roots`` are the folders below which a file must lie after every link is resolved. When
    relight is not root (``is_root``), it reads with the rights it has, whoever the owner is.
    Safe for use by several threads. Close it, or use it as a context manager.
    """

    def __init__(
        self,
        roots: tuple[str, ...],
        limits: ReaderLimits = _USUAL,
        *,
        is_root: bool | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._roots = roots
        self._limits = limits
        self._is_root = os.geteuid() == 0 if is_root is None else is_root
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._seats: dict[int | None, _Seat] = {}
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pids(self) -> dict[int | None, int]:
        """Return the process id of each owner's living reader; None is relight's own rights."""
        with self._lock:
            seats = list(self._seats.items())
        return {uid: process.pid for uid, seat in seats if (process := seat.process)}

    def read(self, uid: int | None, path: str, mark: Mark, limit: int) -> Seen[Chunk] | Unseen:
        """Return what lies after ``mark`` in a file of ``uid``, at most ``limit`` bytes."""

        def ask(process: ReaderProcess) -> Seen[Chunk] | Unseen:
            answer, data = process.read(path, mark, limit)
            return Unseen(answer.why) if answer.why else Seen(Chunk(answer, data))

        return self._use(uid, ask)

    def find(self, uid: int | None, pattern: str) -> Seen[Answer] | Unseen:
        """Return the paths that ``uid`` can find under a glob, and what was left out."""

        def ask(process: ReaderProcess) -> Seen[Answer] | Unseen:
            answer = process.find(pattern)
            return Unseen(answer.why) if answer.why else Seen(answer)

        return self._use(uid, ask)

    def end_idle(self) -> None:
        """End the processes that have had no work for ``idle`` seconds."""
        oldest = self._monotonic() - self._limits.idle
        with self._lock:
            seats = [seat for seat in self._seats.values() if seat.used_at < oldest]
        for seat in seats:
            self._vacate(seat)

    def close(self) -> None:
        """End every process; wait for reads that are under way. Later reads are refused."""
        with self._lock:
            self._is_closed = True
            seats = list(self._seats.values())
        for seat in seats:
            with seat.lock:
                if seat.process is not None:
                    seat.process.close()
                    seat.process = None

    def _use(
        self, uid: int | None, ask: Callable[[ReaderProcess], Seen[Result] | Unseen]
    ) -> Seen[Result] | Unseen:
        if self._is_root and uid is None:
            return Unseen("the scheduler did not say whose job it is, and root reads for nobody")
        owner = uid if self._is_root else None
        self.end_idle()
        with self._lock:
            seat = self._seats.setdefault(owner, _Seat(used_at=self._monotonic()))
        with seat.lock:
            seat.used_at = self._monotonic()
            return self._try(owner, seat, ask)

    def _try(
        self,
        owner: int | None,
        seat: _Seat,
        ask: Callable[[ReaderProcess], Seen[Result] | Unseen],
    ) -> Seen[Result] | Unseen:
        why = ""
        for _ in range(2):  # a process that was killed is replaced once
            try:
                process = seat.process or self._start(owner, seat)
                if isinstance(process, Unseen):
                    return process
                return ask(process)
            except ReaderStuckError as error:
                if seat.process is not None:
                    seat.dying.append(seat.process)
                seat.process = None
                return Stuck(str(error))
            except ReaderGoneError as error:
                seat.process = None
                why = str(error)
            except ReaderRefusedError as error:
                return Unseen(str(error))
        return Unseen(why)

    def _start(self, owner: int | None, seat: _Seat) -> ReaderProcess | Unseen:
        seat.dying = [process for process in seat.dying if not process.is_dead]
        if len(seat.dying) >= MOST_DYING:
            return Stuck("earlier reads still hang in their file system")
        if self._is_closed:
            return Unseen("relight is ending")
        if not self._make_room(seat):
            return Unseen(f"all {self._limits.most_alive} reader processes are busy")
        seat.process = ReaderProcess(
            uid=owner, roots=self._roots, patience=self._limits.patience, monotonic=self._monotonic
        )
        return seat.process

    def _make_room(self, mine: _Seat) -> bool:
        with self._lock:
            alive = [seat for seat in self._seats.values() if seat.process and seat is not mine]
        alive.sort(key=lambda seat: seat.used_at)
        surplus = len(alive) + 1 - self._limits.most_alive
        for seat in alive:
            if surplus <= 0:
                break
            surplus -= self._vacate(seat)
        return surplus <= 0

    def _vacate(self, seat: _Seat) -> bool:
        """End a seat's process unless it is in use; return whether it has none now."""
        if not seat.lock.acquire(blocking=False):
            return False
        try:
            if seat.process is not None:
                seat.process.close()
                seat.process = None
            return True
        finally:
            seat.lock.release()
