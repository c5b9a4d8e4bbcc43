"""All of it in one process: controllers, perception and the clock, each a supervised loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import structlog

from relight.clients.backend.answers import SourceHealth, Trouble
from relight.controller.cycles import Controller
from relight.controller.outbox import Outbox
from relight.daemon.asking import Asking
from relight.daemon.backends import Backend
from relight.daemon.last_looks import EyesUntilStopped
from relight.daemon.lexicons import lexicon_of
from relight.daemon.loops import LONGEST_BACKOFF, Loop
from relight.daemon.parts import ClusterParts
from relight.daemon.perceiving import Perceiver
from relight.daemon.watched import WatchedBackend
from relight.daemon.witnesses import Means, loops_of
from relight.model.instants import Instant
from relight.model.records import Record
from relight.rules.loading import revision
from relight.sources.owner_readers import OwnerReaders
from relight.store.stores import Store

AT_ONCE = 0.02
"""Seconds to the next look after an order: it is usually done by then."""
BRISK = 0.2
"""Seconds between two looks while something is under way."""
CLOCK_EVERY = 0.2
TRY_STORE_EVERY = 5.0

_log = structlog.get_logger("relight.service")


class Habits(Record, frozen=True, kw_only=True):
    """How a service runs: which rules it hears beside its own, and how long it takes to end.

    ``last_turn`` is how many seconds the turns that are under way at the end may take, None
    for as long as they do.
    """

    rule_directories: tuple[str, ...] = ()
    last_turn: float | None = None


class Service:
    """The backend with its loops. Start it, use ``backend``, stop it.

    ``daemon`` is the same backend for those who ask how all is: its health tells of the loops.
    ``folder`` holds what controllers write down for themselves: one outbox a cluster.
    ``is_cut_off`` tells after the end whether a turn took longer than its ``habits`` allow.
    """

    def __init__(
        self,
        parts: Sequence[ClusterParts],
        store: Store,
        folder: Path,
        clock: Callable[[], Instant],
        *,
        habits: Habits | None = None,
    ) -> None:
        self.is_cut_off = False
        habits = habits or Habits()
        self._last_turn = habits.last_turn
        lexicon = lexicon_of(habits.rule_directories)
        asking = Asking({part.name: [one.name for one in part.attribution] for part in parts})
        books = {part.name: part.book for part in parts}
        self.backend = Backend(store, books, revision(lexicon.rules), clock, asking)
        self._readers = {part.name: OwnerReaders(part.log_roots) for part in parts}
        self._outboxes = [Outbox(folder / f"outbox-{part.name}.jsonl") for part in parts]
        self._perceiver = Perceiver(self.backend, store, lexicon, self._readers, clock, books=books)
        eyes = [EyesUntilStopped(part.eyes) for part in parts]
        controllers = [
            Controller(
                cluster=part.name,
                eyes=seeing,
                hands=part.hands,
                backend=self.backend,
                outbox=outbox,
                clock=clock,
                allowance=part.allowance,
            )
            for part, seeing, outbox in zip(parts, eyes, self._outboxes, strict=True)
        ]
        self._loops = [
            *(
                _ControllerLoop(part, controller, seeing, clock)
                for part, controller, seeing in zip(parts, controllers, eyes, strict=True)
            ),
            _PerceptionLoop(self._perceiver, clock),
            _ClockLoop(self.backend, clock),
            _StoreLoop(store, clock),
            *loops_of(
                parts,
                Means(lexicon, habits.rule_directories, self._readers, clock),
                self.backend,
                asking,
            ),
        ]
        self.daemon = WatchedBackend(self.backend, self.troubles, self.sources)
        self.backend.when_stirred(self._stir)

    def start(self) -> None:
        """Start every loop."""
        for loop in self._loops:
            loop.start()

    def troubles(self) -> tuple[Trouble, ...]:
        """Return what the loops cannot do now, since when and why."""
        return tuple(found for loop in self._loops if (found := loop.trouble) is not None)

    def sources(self) -> tuple[SourceHealth, ...]:
        """Return how those are who are asked beside logs and scheduler, as far as was seen."""
        return tuple(found for loop in self._loops if (found := loop.source) is not None)

    def ask_to_stop(self) -> None:
        """Let the present turn of every loop be its last; give no order that is not under way."""
        for loop in self._loops:
            loop.ask_to_stop()

    def close(self) -> None:
        """End every loop after its present turn, then the readers and outboxes.

        A turn that takes longer than ``last_turn``, as when the scheduler or a disk does not
        answer, is left alone, and what it uses open: it ends with the process, as in a crash.
        """
        self.ask_to_stop()
        left = self._join()
        if left:
            self.is_cut_off = True
            _log.warning("some turns take too long and are cut off by the end", loops=left)
            return
        for readers in self._readers.values():
            readers.close()
        for outbox in self._outboxes:
            outbox.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _join(self) -> list[str]:
        """Wait for every last turn; return the names of the loops of which it takes too long."""
        if self._last_turn is None:
            return [loop.name for loop in self._loops if not loop.join()]
        end = time.monotonic() + self._last_turn
        return [loop.name for loop in self._loops if not loop.join(max(0, end - time.monotonic()))]

    def _stir(self) -> None:
        for loop in self._loops:
            loop.hurry()


class _ControllerLoop(Loop):
    def __init__(
        self,
        part: ClusterParts,
        controller: Controller,
        eyes: EyesUntilStopped,
        clock: Callable[[], Instant],
    ) -> None:
        super().__init__(f"controller-{part.name}", f"following cluster {part.name}", clock)
        self._controller = controller
        self._eyes = eyes
        self._poll = part.poll_seconds
        self._unseen = 0

    def ask_to_stop(self) -> None:
        self._eyes.stop()
        super().ask_to_stop()

    def turn(self) -> float:
        cycle = self._controller.cycle()
        if not cycle.is_complete:
            self._unseen += 1
            if self._unseen == 1:
                _log.warning("the scheduler does not answer; nothing is done", why=cycle.unseen)
            wait = min(LONGEST_BACKOFF, self._poll * 2 ** min(self._unseen, 10))
            self.rest(wait)
            return 0.0
        if self._unseen:
            _log.info("the scheduler answers again", looks_missed=self._unseen)
        self._unseen = 0
        if cycle.has_ordered:
            return AT_ONCE
        return min(BRISK, self._poll) if cycle.is_busy else self._poll


class _PerceptionLoop(Loop):
    def __init__(self, perceiver: Perceiver, clock: Callable[[], Instant]) -> None:
        super().__init__("perception", "reading the logs of jobs", clock)
        self._perceiver = perceiver

    def ask_to_stop(self) -> None:
        self._perceiver.ask_to_stop()
        super().ask_to_stop()

    def turn(self) -> float:
        return self._perceiver.round()


class _ClockLoop(Loop):
    def __init__(self, backend: Backend, clock: Callable[[], Instant]) -> None:
        super().__init__("clock", "taking up what was to wait", clock)
        self._backend = backend

    def turn(self) -> float:
        self._backend.wake_due()
        return CLOCK_EVERY


class _StoreLoop(Loop):
    """Tries the database out, so that its trouble is known before there is something to write."""

    def __init__(self, store: Store, clock: Callable[[], Instant]) -> None:
        super().__init__("store", "trying the database", clock)
        self.longest_wait = TRY_STORE_EVERY
        self._store = store

    def turn(self) -> float:
        self._store.try_out()
        self.rest(TRY_STORE_EVERY)
        return 0.0
