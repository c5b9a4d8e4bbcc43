"""One reader process seen from relight: started, asked, and killed when it does not answer."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import subprocess
import sys
from collections.abc import Callable
from typing import IO

import msgspec

from relight.model.records import Record
from relight.model.signals import Mark
from relight.sources import reader

_LONGEST_ANSWER = 16 << 20
"""Bytes: 2,000 names of 4,096 bytes fit; more is not an answer of a reader."""


class ReaderError(Exception):
    """A reader process that cannot be used any more; the message is one sentence."""


class ReaderStuckError(ReaderError):
    """It did not answer in time, as when a network folder hangs."""


class ReaderGoneError(ReaderError):
    """It ended, or sent what no reader sends: a new one may answer."""


class ReaderRefusedError(ReaderError):
    """It could not take on the user's rights: a new one would not either."""


class Answer(Record, frozen=True, kw_only=True):
    """What a reader says: ``why`` it read nothing, or bytes with their place, or paths."""

    why: str = ""
    ready: bool = False
    offset: int = 0
    restarted: bool = False
    at_end: bool = True
    size: int = 0
    mark: Mark = Mark()
    paths: tuple[str, ...] = ()
    left_out: str = ""


class ReaderProcess:
    """A child that reads with the rights of ``uid``, or with relight's own when that is None.

    ``patience`` is how many seconds one answer may take. Not safe for use by several threads at
    once. After any ``ReaderError`` the process has been killed; ``is_dead`` tells when it is
    gone (a process inside a hanging file system may outlive its kill).

    Raises:
        ReaderError: it did not start; see the three kinds.

    """

    def __init__(
        self,
        *,
        uid: int | None,
        roots: tuple[str, ...],
        patience: float,
        monotonic: Callable[[], float],
    ) -> None:
        self._patience = patience
        self._monotonic = monotonic
        self._process = _started("own" if uid is None else str(uid), roots)
        self._pipes = (_pipe(self._process.stdin), _pipe(self._process.stdout))
        for pipe in self._pipes:
            os.set_blocking(pipe.fileno(), False)
        with contextlib.suppress(OSError):  # the user's share of pipe memory may be used up
            fcntl.fcntl(self._pipes[1].fileno(), fcntl.F_SETPIPE_SZ, reader.MOST_BYTES)
        hello, _ = self._await(monotonic() + patience)
        if not hello.ready:
            self.kill()
            raise ReaderRefusedError(hello.why or "the reader did not say that it is ready")

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self._process.pid

    @property
    def is_dead(self) -> bool:
        """Return whether the process has ended; collects it."""
        return self._process.poll() is not None

    def read(self, path: str, mark: Mark, limit: int) -> tuple[Answer, bytes]:
        """Return what lies after ``mark``, at most ``limit`` bytes.

        Raises:
            ReaderError: no usable answer came in time.

        """
        spot = msgspec.structs.asdict(mark)
        return self._ask({"path": path, "mark": spot, "limit": limit})

    def find(self, pattern: str) -> Answer:
        """Return the paths of the regular files that a glob names.

        Raises:
            ReaderError: no usable answer came in time.

        """
        answer, _ = self._ask({"pattern": pattern})
        return answer

    def close(self) -> None:
        """End the process: its input ends, and what does not heed that is killed."""
        self._pipes[0].close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=0.5)
        self.kill()

    def kill(self) -> None:
        """Kill the process; wait for its end only as long as an ordinary one takes."""
        self._process.kill()
        for pipe in self._pipes:
            pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=0.5)

    def _ask(self, request: dict[str, object]) -> tuple[Answer, bytes]:
        deadline = self._monotonic() + self._patience
        text = json.dumps(request).encode()
        rest = memoryview(reader.LENGTH.pack(len(text)) + text)
        while rest:
            self._ready(self._pipes[0], select.POLLOUT, deadline)
            try:
                rest = rest[os.write(self._pipes[0].fileno(), rest) :]
            except BrokenPipeError:
                raise self._gone() from None
        return self._await(deadline)

    def _await(self, deadline: float) -> tuple[Answer, bytes]:
        (length,) = reader.LENGTH.unpack(self._take(reader.LENGTH.size, deadline))
        if length > _LONGEST_ANSWER:
            raise self._gone()
        try:
            answer = msgspec.json.decode(self._take(length, deadline), type=Answer)
        except msgspec.DecodeError:
            raise self._gone() from None
        if not 0 <= answer.size <= reader.MOST_BYTES:
            raise self._gone()
        return answer, self._take(answer.size, deadline)

    def _take(self, size: int, deadline: float) -> bytes:
        taken = bytearray()
        while len(taken) < size:
            self._ready(self._pipes[1], select.POLLIN, deadline)
            part = os.read(self._pipes[1].fileno(), size - len(taken))
            if not part:
                raise self._gone()
            taken += part
        return bytes(taken)

    def _ready(self, pipe: IO[bytes], event: int, deadline: float) -> None:
        poll = select.poll()
        poll.register(pipe.fileno(), event)
        left = deadline - self._monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            self.kill()
            raise ReaderStuckError(f"nothing answered within {self._patience:g} s")

    def _gone(self) -> ReaderGoneError:
        self.kill()
        return ReaderGoneError(f"the reader process ended (status {self._process.returncode})")


def _started(who: str, roots: tuple[str, ...]) -> subprocess.Popen[bytes]:
    # Isolated and without site-packages; no environment, so that /proc shows nothing of ours.
    command = [sys.executable, "-I", "-S", "-X", "utf8", reader.__file__, who, str(os.getpid())]
    try:
        return subprocess.Popen(  # noqa: S603  our own file, run by our own interpreter
            [*command, *roots],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            bufsize=0,
            start_new_session=True,
        )
    except OSError as error:
        raise ReaderRefusedError(f"the reader process did not start: {error.strerror}") from error


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise ReaderGoneError("the reader process has no pipes")
    return pipe
