"""The ranks of a pretend training that run on this machine, to be stopped and slowed for real."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Self

from relight.testing.workloads.gpu_exporter import ranks

TURN = 0.4
"""Seconds of one turn of running and standing still: longer than a step, so that steps differ."""


def pid_of(folder: Path, job: str, node: str) -> int:
    """Return the process of a job's rank on a node; its command names ``folder``.

    Raises:
        LookupError: no such rank runs.

    """
    for pid, rank in ranks(str(folder)).items():
        if (rank.job, rank.node) == (job, node):
            return pid
    raise LookupError(f"job {job} has no rank on {node}")


def stop(folder: Path, job: str, node: str) -> int:
    """Stop a rank as a debugger does: it neither computes nor ends. Return its process."""
    pid = pid_of(folder, job, node)
    os.kill(pid, signal.SIGSTOP)
    return pid


class Slowed:
    """Lets a rank run for only a share of the time, until it is gone or this is left."""

    def __init__(self, folder: Path, job: str, node: str, share: float) -> None:
        self._pid = pid_of(folder, job, node)
        self._share = share
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._over.is_set():
                os.kill(self._pid, signal.SIGSTOP)
                time.sleep(TURN * (1 - self._share))
                os.kill(self._pid, signal.SIGCONT)
                time.sleep(TURN * self._share)
        except ProcessLookupError:
            return
