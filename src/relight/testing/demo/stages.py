"""Where the demo plays: four pretend nodes of real processes, or four nodes of a real Slurm."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from relight.clients.local.cluster import LocalCluster
from relight.clients.local.jobs import LocalJob
from relight.clients.local.scheduler import LocalEyes, LocalHands
from relight.clients.schedulers import Eyes, Hands
from relight.clients.slurm.commands import Commands
from relight.clients.slurm.eyes import SlurmEyes
from relight.clients.slurm.hands import SlurmHands
from relight.daemon.clock import now
from relight.model.records import Record
from relight.testing.demo.faults import Fault, Pace
from relight.testing.slurm import SlurmCluster, install, unavailable
from relight.testing.workloads import TRAIN

NODES = ("node-01", "node-02", "node-03", "node-04")
RANKS = 3
"""One node stays free, to take the place of the one that is excluded."""

_SYSTEM_PATH = "/usr/bin:/bin:/usr/local/bin"
"""Where a ``python3`` lies that every user may run."""


class Posted(Record, frozen=True, kw_only=True):
    """A job that was submitted: its id, and the file that all its ranks write to."""

    job_id: str
    log: str


class Stage(Protocol):
    """A scheduler with four nodes on which the demo's jobs run."""

    cluster: str
    """The name under which relight knows it."""
    called: str
    """What a newcomer is told that it is."""
    look_seconds: float
    """How often it can be looked at."""

    def eyes(self) -> Eyes:
        """Return something that can only look."""
        ...

    def hands(self) -> Hands:
        """Return something that can change jobs."""
        ...

    def submit(self, name: str, fault: Fault, pace: Pace) -> Posted:
        """Start the training as a job of that name."""
        ...


def training(folder: Path, fault: Fault, pace: Pace) -> tuple[str, ...]:
    """Return the training program's options for a run in ``folder``."""
    return (
        *("--folder", str(folder), "--steps", str(pace.steps)),
        *("--step-seconds", str(pace.step_seconds)),
        *("--checkpoint-every", str(pace.checkpoint_every), "--most-seconds", "180"),
        *fault.arguments(pace.fault_step),
    )


class LocalStage:
    """Four pretend nodes: every rank is a real process of this machine."""

    cluster = "demo"
    called = "four pretend nodes (real processes on this machine)"
    look_seconds = 0.1

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._scheduler = LocalCluster(self.cluster, NODES, now)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._scheduler.close()

    def eyes(self) -> Eyes:
        """Return something that can only look."""
        return LocalEyes(self._scheduler)

    def hands(self) -> Hands:
        """Return something that can change jobs."""
        return LocalHands(self._scheduler)

    def submit(self, name: str, fault: Fault, pace: Pace) -> Posted:
        """Start the training as a job of that name."""
        run = self._folder / name
        run.mkdir()
        job_id = self._scheduler.submit(
            LocalJob(
                name=name,
                command=(sys.executable, "-u", str(TRAIN), *training(run, fault, pace)),
                nodes=RANKS,
                stdout="job-%j.out",
                work_dir=str(run),
                kill_on_bad_exit=fault.kill_on_bad_exit,
            )
        )
        return Posted(job_id=job_id, log=str(run / f"job-{job_id}.out"))


class SlurmStage:
    """A real Slurm with four nodes, started for the demo alone and stopped after it.

    Where Slurm is not installed, Debian's packages are, if the user is root.

    Raises:
        ClusterError: no Slurm can be started here; the message says why.
        InstallError: its packages could not be installed.

    """

    cluster = "demo"
    called = "the four nodes of a real Slurm, started for this alone"
    look_seconds = 0.5

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        if unavailable() is not None:
            say("Slurm is not installed here: installing Debian's packages. This takes a minute.")
            install()
        say("Starting slurmctld and four slurmd.")
        self._slurm = SlurmCluster.start(folder / "slurm", nodes=len(NODES))
        self._program = self._slurm.jobs / TRAIN.name
        for file in (TRAIN, TRAIN.with_name("launcher.py")):
            shutil.copy(file, self._slurm.jobs / file.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._slurm.stop()

    def eyes(self) -> Eyes:
        """Return something that can only look."""
        return SlurmEyes(self.cluster, Commands(self._slurm.env))

    def hands(self) -> Hands:
        """Return something that can change jobs."""
        return SlurmHands(Commands(self._slurm.env))

    def submit(self, name: str, fault: Fault, pace: Pace) -> Posted:
        """Start the training as a job of that name."""
        run = self._slurm.jobs / name
        run.mkdir()
        run.chmod(0o777)
        python = shutil.which("python3", path=_SYSTEM_PATH) or sys.executable
        kill = f"--kill-on-bad-exit={int(fault.kill_on_bad_exit)}"
        words = (python, "-u", str(self._program), *training(run, fault, pace))
        job_id = self._slurm.submit(
            f"#!/bin/sh\nexec srun -l {kill} {shlex.join(words)}\n",
            options=(
                *(f"-N{RANKS}", f"-n{RANKS}", f"--job-name={name}"),
                *(f"--output={run}/job-%j.out", "--open-mode=append"),
            ),
        )
        return Posted(job_id=job_id, log=str(run / f"job-{job_id}.out"))
