"""A person ends a run by a signal: it goes to the child, and nothing is restarted after it."""

from __future__ import annotations

import contextlib
import os
import signal
from types import FrameType
from typing import Self

from relight.clients.schedulers import Answer, Hands
from relight.model.instants import Span
from relight.model.orders import Outcome

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_STOPPED = Answer(outcome=Outcome.REFUSED, text="A person has ended the run.")


class Person:
    """Takes the signals of this process and gives them to the child's process group.

    The first goes on as it is, every further one as SIGKILL. One that was ignored before, as
    ``nohup`` arranges it, stays ignored. Use it in a ``with``, in the main thread.
    """

    def __init__(self) -> None:
        self.first: int | None = None
        """The first signal that came."""
        self._waiting: list[int] = []
        self._child: int | None = None
        self._before: dict[int, signal._HANDLER] = {}

    @property
    def has_stopped(self) -> bool:
        """Return whether the run is to end."""
        return self.first is not None

    def __enter__(self) -> Self:
        for number in FORWARDED:
            before = signal.getsignal(number)
            if before is not signal.SIG_IGN:
                self._before[number] = before
                signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def has_child(self, child: int | None) -> None:
        """Note the process group that runs now, None when none does; give it what waited."""
        self._child = child
        self._deliver()

    def stop(self, number: int) -> None:
        """End the run as if that signal had come."""
        self._waiting.append(signal.SIGKILL if self.has_stopped else number)
        self.first = self.first or number
        self._deliver()

    def _take(self, number: int, _: FrameType | None) -> None:
        self.stop(number)

    def _deliver(self) -> None:
        while self._child is not None and self._waiting:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._child, self._waiting.pop(0))


class HandsUntilStopped:
    """Hands that refuse everything once a person has ended the run: a person wins (law 5)."""

    def __init__(self, hands: Hands, person: Person) -> None:
        self._hands = hands
        self._person = person

    def requeue(self, scheduler_id: str, *, incomplete_only: bool) -> Answer:
        """Put a job back into the queue as its next attempt."""
        if self._person.has_stopped:
            return _STOPPED
        return self._hands.requeue(scheduler_id, incomplete_only=incomplete_only)

    def start(
        self, scheduler_id: str, *, note: str, exclude: tuple[str, ...], delay: Span | None
    ) -> Answer:
        """Write note, exclusions and start time of a waiting job in one change."""
        if self._person.has_stopped:
            return _STOPPED
        return self._hands.start(scheduler_id, note=note, exclude=exclude, delay=delay)

    def cancel(self, scheduler_id: str) -> Answer:
        """Cancel a job."""
        if self._person.has_stopped:
            return _STOPPED
        return self._hands.cancel(scheduler_id)

    def signal(self, scheduler_id: str, *, name: str, batch_only: bool) -> Answer:
        """Send a signal to the processes of a running job."""
        if self._person.has_stopped:
            return _STOPPED
        return self._hands.signal(scheduler_id, name=name, batch_only=batch_only)
