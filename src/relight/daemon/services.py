"""All of it in one process: controllers, perception and the clock, each a supervised loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import structlog

from relight.clients.backend.answers import Trouble
from relight.controller.cycles import Controller
from relight.controller.outbox import Outbox
from relight.daemon.backends import Backend
from relight.daemon.loops import LONGEST_BACKOFF, Loop
from relight.daemon.parts import ClusterParts
from relight.daemon.perceiving import Perceiver
from relight.daemon.watched import WatchedBackend
from relight.model.instants import Instant
from relight.perception.ears import Lexicon
from relight.rules.loading import load, revision
from relight.sources.owner_readers import OwnerReaders
from relight.store.stores import Store

AT_ONCE = 0.02
"""Seconds to the next look after an order: it is usually done by then."""
BRISK = 0.2
"""Seconds between two looks while something is under way."""
CLOCK_EVERY = 0.2
TRY_STORE_EVERY = 5.0

_log = structlog.get_logger("relight.service")


class Service:
    """The backend with its loops. Start it, use ``backend``, stop it.

    ``daemon`` is the same backend for those who ask how all is: its health tells of the loops.
    ``folder`` holds what controllers write down for themselves: one outbox a cluster.
    """

    def __init__(
        self,
        parts: Sequence[ClusterParts],
        store: Store,
        folder: Path,
        clock: Callable[[], Instant],
    ) -> None:
        rules = load()
        self.backend = Backend(
            store, {part.name: part.book for part in parts}, revision(rules), clock
        )
        self._readers = {part.name: OwnerReaders(part.log_roots) for part in parts}
        self._outboxes = [Outbox(folder / f"outbox-{part.name}.jsonl") for part in parts]
        self._perceiver = Perceiver(self.backend, store, Lexicon(rules), self._readers, clock)
        controllers = [
            Controller(
                cluster=part.name,
                eyes=part.eyes,
                hands=part.hands,
                backend=self.backend,
                outbox=outbox,
                clock=clock,
                allowance=part.allowance,
            )
            for part, outbox in zip(parts, self._outboxes, strict=True)
        ]
        self._loops = [
            *(
                _ControllerLoop(part.name, controller, part.poll_seconds, clock)
                for part, controller in zip(parts, controllers, strict=True)
            ),
            _PerceptionLoop(self._perceiver, clock),
            _ClockLoop(self.backend, clock),
            _StoreLoop(store, clock),
        ]
        self.daemon = WatchedBackend(self.backend, self.troubles)
        self.backend.when_stirred(self._stir)

    def start(self) -> None:
        """Start every loop."""
        for loop in self._loops:
            loop.start()

    def troubles(self) -> tuple[Trouble, ...]:
        """Return what the loops cannot do now, since when and why."""
        return tuple(found for loop in self._loops if (found := loop.trouble) is not None)

    def close(self) -> None:
        """End every loop after its present turn, then the readers and outboxes."""
        for loop in self._loops:
            loop.ask_to_stop()
        for loop in self._loops:
            loop.join()
        for readers in self._readers.values():
            readers.close()
        for outbox in self._outboxes:
            outbox.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _stir(self) -> None:
        for loop in self._loops:
            loop.hurry()


class _ControllerLoop(Loop):
    def __init__(
        self, cluster: str, controller: Controller, poll: float, clock: Callable[[], Instant]
    ) -> None:
        super().__init__(f"controller-{cluster}", f"following cluster {cluster}", clock)
        self._controller = controller
        self._poll = poll
        self._unseen = 0

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
