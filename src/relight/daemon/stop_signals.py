"""How ``relight serve`` is told to end, and what ends it when it does not end by itself."""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Self

LONGEST_STOP = 15.0
"""Seconds for an orderly end, below the 90 s of systemd and the 30 s of Kubernetes.

One takes a third of a second; 8 s were seen on two cores that were busy with a dozen others.
"""

CUT_OFF = 6
"""The exit code of a process that did not end in time and left with its work cut off."""

_LAST_WORDS = 2.0
"""Seconds for saying where it hangs: standard error may be a pipe that nobody reads."""

_STANDARD_ERROR = 2
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSignal:
    """Takes SIGINT and SIGTERM, whichever thread the system gives them to.

    A handler in Python runs in the main thread, and only when that thread comes back from
    the system. But a signal to a process may be taken by any of its threads, as by one that
    starts a child just then: the main thread is not woken, and the handler waits with it.
    Only the interpreter's wake-up descriptor is written by the very thread that was
    interrupted (https://docs.python.org/3.11/library/signal.html#signal.set_wakeup_fd).

    ``when_it_comes`` is called once, at the first signal, in a thread of its own: also when the
    main thread is busy. Use it in a ``with``, in the main thread; after a signal has come,
    further ones are ignored until the process is gone.
    """

    def __init__(self, when_it_comes: Callable[[], None]) -> None:
        self._when_it_comes = when_it_comes
        self._came = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="relight-stop", daemon=True)

    @property
    def has_come(self) -> bool:
        """Return whether the process has been told to end."""
        return self._came.is_set()

    def wait(self) -> None:
        """Return when one of the signals has come, be it before this was called."""
        self._came.wait()

    def __enter__(self) -> Self:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._wakeup_before = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        self._before = {number: signal.signal(number, lambda *_: None) for number in _SIGNALS}
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, signal.SIG_IGN if self.has_come else before)
        signal.set_wakeup_fd(self._wakeup_before)
        os.close(self._writer)  # ends the watcher's read, unless a signal has
        if not self.has_come:
            self._watcher.join()
        os.close(self._reader)

    def _watch(self) -> None:
        if os.read(self._reader, 1):
            self._came.set()
            self._when_it_comes()


def cut_off_late_end(longest: float = LONGEST_STOP, last_words: float = _LAST_WORDS) -> None:
    """Wait ``longest`` seconds; if the process still lives then, say where it hangs and end it.

    Nothing calls this off: the end of the interpreter can hang too. It costs no state:
    everything is committed as it happens, and a process may die on any line (law 2). Where even
    the last words hang, the system ends the process by SIGALRM ``last_words`` seconds later.
    """
    signal.setitimer(signal.ITIMER_REAL, longest + last_words)
    time.sleep(longest)
    threads = ", ".join(thread.name for thread in threading.enumerate())
    words = (
        f"relight did not end within {longest:g} s of being told to, and leaves with its work cut "
        f"off; nothing is lost. It still ran {threads}. Please report where they hang:\n"
    )
    try:
        os.write(_STANDARD_ERROR, words.encode())  # not the stream: its lock may be what hangs
        faulthandler.dump_traceback(_STANDARD_ERROR)
    finally:
        os._exit(CUT_OFF)
