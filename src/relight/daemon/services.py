"""All of it in one process: controllers, perception and the clock, each a supervised loop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import structlog

from relight.controller.cycles import Controller
from relight.controller.outbox import Outbox
from relight.daemon.backends import Backend
from relight.daemon.parts import ClusterParts
from relight.daemon.perceiving import Perceiver
from relight.model.instants import Instant
from relight.perception.ears import Lexicon
from relight.rules.loading import load, revision
from relight.sources.owner_readers import OwnerReaders
from relight.store.stores import Store

AT_ONCE = 0.02
"""Seconds to the next look after an order: it is usually done by then."""
BRISK = 0.2
"""Seconds between two looks while something is under way."""
LONGEST_BACKOFF = 30.0
CLOCK_EVERY = 0.2

_log = structlog.get_logger("relight.service")


class Service:
    """The backend with its loops. Start it, use ``backend``, stop it.

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
                _ControllerLoop(part.name, controller, part.poll_seconds)
                for part, controller in zip(parts, controllers, strict=True)
            ),
            _PerceptionLoop(self._perceiver),
            _ClockLoop(self.backend),
        ]
        self.backend.when_stirred(self._stir)

    def start(self) -> None:
        """Start every loop."""
        for loop in self._loops:
            loop.start()

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


class _Loop:
    """One supervised loop in a thread: an error is told, waited out, and does not end it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._stopped = threading.Event()
        self._hurried = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"relight-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def ask_to_stop(self) -> None:
        self._stopped.set()
        self._hurried.set()

    def join(self) -> None:
        if self._thread.ident is not None:
            self._thread.join()

    def hurry(self) -> None:
        self._hurried.set()

    def turn(self) -> float:
        """Do one turn and return how many seconds to wait before the next."""
        raise NotImplementedError

    def _run(self) -> None:
        failures = 0
        while not self._stopped.is_set():
            self._hurried.clear()
            try:
                wait = self.turn()
                failures = 0
            except Exception:  # noqa: BLE001 - supervision: the loop must not die silently
                failures += 1
                wait = min(LONGEST_BACKOFF, BRISK * 2**failures)
                _log.exception("a turn failed and is tried again", loop=self._name, wait=wait)
                self._stopped.wait(wait)
                continue
            self._hurried.wait(wait)


class _ControllerLoop(_Loop):
    def __init__(self, cluster: str, controller: Controller, poll: float) -> None:
        super().__init__(f"controller-{cluster}")
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
            self._stopped.wait(wait)
            return 0.0
        if self._unseen:
            _log.info("the scheduler answers again", looks_missed=self._unseen)
        self._unseen = 0
        if cycle.has_ordered:
            return AT_ONCE
        return min(BRISK, self._poll) if cycle.is_busy else self._poll


class _PerceptionLoop(_Loop):
    def __init__(self, perceiver: Perceiver) -> None:
        super().__init__("perception")
        self._perceiver = perceiver

    def turn(self) -> float:
        return self._perceiver.round()


class _ClockLoop(_Loop):
    def __init__(self, backend: Backend) -> None:
        super().__init__("clock")
        self._backend = backend

    def turn(self) -> float:
        self._backend.wake_due()
        return CLOCK_EVERY
