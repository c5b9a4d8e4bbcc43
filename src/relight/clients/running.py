"""Run one program with bounded time and bounded output, never through a shell.

A program that hangs is killed with its whole process group. What it printed comes back only
when it ended by itself within its limits: half an answer is none (law 1).
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO

_CHUNK = 1 << 16
_MOST_ERRORS = 1 << 16


@dataclass(frozen=True, slots=True)
class Ran:
    """A program that ended: its exit status (negative for a signal) and what it printed."""

    status: int
    output: bytes
    errors: bytes


@dataclass(frozen=True, slots=True)
class NotRun:
    """A program that could not be started, or did not end within its limits, and why.

    ``started`` says that it may have had an effect.
    """

    why: str
    started: bool


def run(
    arguments: Sequence[str], *, env: Mapping[str, str], timeout: float, most_output: int
) -> Ran | NotRun:
    """Run a program with empty input and return what came of it.

    ``timeout`` is in seconds, ``most_output`` in bytes of standard output; beyond either the
    program and its process group are killed. Of standard error the first 64 KiB are kept. The
    program is looked up on the PATH of ``env``.
    """
    try:
        child = subprocess.Popen(  # noqa: S603 - an argument list, never a shell
            list(arguments),
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return NotRun(why=f"{arguments[0]} could not be started: {error}", started=False)
    try:
        return _collect(child, arguments[0], timeout, most_output)
    finally:
        _end(child)


def _collect(
    child: subprocess.Popen[bytes], name: str, timeout: float, most_output: int
) -> Ran | NotRun:
    deadline = time.monotonic() + timeout
    output, errors = bytearray(), bytearray()
    with selectors.DefaultSelector() as selector:
        for stream, kept in ((child.stdout, output), (child.stderr, errors)):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ, kept)
        while selector.get_map():
            ready = selector.select(max(deadline - time.monotonic(), 0))
            if not ready:
                return NotRun(why=f"{name} did not end within {timeout:g} s", started=True)
            for key, _ in ready:
                chunk = os.read(key.fd, _CHUNK)
                if not chunk:
                    selector.unregister(key.fileobj)
                elif key.data is output or len(errors) < _MOST_ERRORS:
                    key.data.extend(chunk)
            if len(output) > most_output:
                return NotRun(why=f"{name} printed more than {most_output} bytes", started=True)
    try:
        status = child.wait(max(deadline - time.monotonic(), 0))
    except subprocess.TimeoutExpired:
        return NotRun(why=f"{name} did not end within {timeout:g} s", started=True)
    return Ran(status=status, output=bytes(output), errors=bytes(errors))


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill the group unless the child was waited for: until then its number is taken by nobody."""
    if child.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    streams: tuple[IO[bytes] | None, ...] = (child.stdout, child.stderr)
    for stream in streams:
        if stream is not None:
            stream.close()
