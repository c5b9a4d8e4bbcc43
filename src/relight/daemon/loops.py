"""A supervised loop: an error is told, waited out, and does not end it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import structlog

from relight.clients.backend.answers import SourceHealth, Trouble
from relight.model.instants import Instant

LONGEST_BACKOFF = 30.0
_FIRST_BACKOFF = 0.4
_MOST_DOUBLINGS = 10
_LONGEST_MESSAGE = 500

_log = structlog.get_logger("relight.service")


class Loop:
    """Does one turn after the other in a thread of its own.

    ``task`` says in words what a turn does; while turns fail, ``trouble`` tells of it.
    """

    longest_wait = LONGEST_BACKOFF
    """Seconds between two turns that fail, at most."""

    def __init__(self, name: str, task: str, clock: Callable[[], Instant]) -> None:
        self.trouble: Trouble | None = None
        self.source: SourceHealth | None = None
        """How somebody outside is who is asked in this loop; None where nobody is, or not yet."""
        self.name = name
        self._task = task
        self._clock = clock
        self._stopped = threading.Event()
        self._hurried = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"relight-{name}", daemon=True)

    def start(self) -> None:
        """Begin with the first turn."""
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Let the present turn be the last."""
        self._stopped.set()
        self._hurried.set()

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end of the last turn, for at most so many seconds; return whether it came.

        A loop that never started has ended.
        """
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def hurry(self) -> None:
        """Let the next turn come at once."""
        self._hurried.set()

    def rest(self, seconds: float) -> None:
        """Wait within a turn, however much others hurry; the end alone cuts it short."""
        self._stopped.wait(seconds)

    def turn(self) -> float:
        """Do one turn and return how many seconds to wait before the next."""
        raise NotImplementedError

    def _run(self) -> None:
        failures = 0
        while not self._stopped.is_set():
            self._hurried.clear()
            try:
                wait = self.turn()
            except Exception as error:  # noqa: BLE001 - supervision: the loop must not die silently
                wait = min(self.longest_wait, _FIRST_BACKOFF * 2 ** min(failures, _MOST_DOUBLINGS))
                failures += 1
                self._note(error, wait)
                self.rest(wait)
                continue
            if failures:
                _log.info("turns succeed again", loop=self.name, failed=failures)
            failures = 0
            self.trouble = None
            if not self._stopped.is_set():  # the hurry of a stop may have been cleared above
                self._hurried.wait(wait)

    def _note(self, error: Exception, wait: float) -> None:
        """Keep what fails for those who ask; log the same error's traceback once, not each turn."""
        before = self.trouble
        kind, message = _told(error)
        since = before.since if before is not None else self._clock()
        self.trouble = Trouble(name=self._task, since=since, error=kind, message=message)
        _log.error(
            "a turn failed and is tried again",
            loop=self.name,
            wait=wait,
            error=f"{kind}: {message}",
            exc_info=error if self.trouble != before else None,
        )


def _told(error: Exception) -> tuple[str, str]:
    """Return the kind and the message of an error; of several, those of the first."""
    first, *others = _leaves(error)
    more = f" (and {len(others)} more)" if others else ""
    return type(first).__name__, f"{str(first)[:_LONGEST_MESSAGE]}{more}"


def _leaves(error: Exception) -> Iterator[Exception]:
    if isinstance(error, ExceptionGroup):
        for one in error.exceptions:
            yield from _leaves(one)
    else:
        yield error
