"""The real processes of one attempt: started, watched, ended, and nothing left of them."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from relight.clients.local.jobs import LocalJob, is_shared, output_path
from relight.clients.local.outputs import LabelPump, append_line, open_output
from relight.model.instants import in_seconds

SIGNALS = {
    one.name.removeprefix("SIG"): one
    for one in (
        signal.SIGHUP,
        signal.SIGINT,
        signal.SIGQUIT,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGTERM,
        signal.SIGCONT,
        signal.SIGURG,
    )
}
"""Signals that a task can be sent by order, by their names without ``SIG``."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How one task ended: an exit code, or the signal that killed it."""

    rank: int
    node: str
    code: int
    signal: int | None = None

    @property
    def status(self) -> int:
        """Return what ``srun`` makes of it: the code, or 128 and the signal."""
        return 128 + self.signal if self.signal else self.code

    @property
    def words(self) -> str:
        """Return what ``srun`` prints of it."""
        if self.signal is None:
            return f"Exited with exit code {self.code}"
        return signal.strsignal(self.signal) or f"Signal {self.signal}"


@dataclass(frozen=True, slots=True)
class _Task:
    rank: int
    node: str
    process: subprocess.Popen[bytes]


class Attempt:
    """One execution of a job on its nodes. Used by one thread at a time."""

    def __init__(
        self, job: LocalJob, job_id: str, nodes: tuple[str, ...], restart_count: int
    ) -> None:
        self.job = job
        self.nodes = nodes
        self._job_id = job_id
        self._restart_count = restart_count
        self._tasks: list[_Task] = []
        self._unstarted: list[Exit] = []
        self._pump = LabelPump(name=f"relight-local-{job_id}-output")
        self._kill_at: float | None = None

    @property
    def is_stopping(self) -> bool:
        """Return whether its processes have been told to end."""
        return self._kill_at is not None

    @property
    def is_over(self) -> bool:
        """Return whether every exit of a task has been told by ``poll``."""
        return not self._tasks and not self._unstarted

    def start(self) -> None:
        """Start every task; one that cannot be started counts as failed."""
        for rank in range(self.job.tasks):
            try:
                self._tasks.append(self._spawn(rank))
            except OSError as error:
                self.say(f"slurmstepd-{self._node(rank)}: error: execve(): {error}")
                code = error.errno or errno.ENOEXEC
                self._unstarted.append(Exit(rank, self._node(rank), code))
        self._pump.start()

    def poll(self) -> list[Exit]:
        """Return the tasks that have ended since the last call; kill what outstayed its grace.

        What a task leaves behind in its process group dies with it, as under Slurm.
        """
        if self._kill_at is not None and time.monotonic() >= self._kill_at:
            self._signal(signal.SIGKILL)
        exits, self._unstarted = self._unstarted, []
        for task in [task for task in self._tasks if _has_exited(task.process.pid)]:
            _signal_group(task.process.pid, signal.SIGKILL)  # not reaped yet: still its own id
            code = task.process.wait()
            self._tasks.remove(task)
            exits.append(Exit(task.rank, task.node, max(code, 0), -code if code < 0 else None))
        if self.is_over:
            self._pump.end()
        return exits

    def stop(self) -> None:
        """Ask every process to end; whatever lives after the job's grace is killed."""
        if self._kill_at is None:
            self._kill_at = time.monotonic() + in_seconds(self.job.kill_grace)
            self._signal(signal.SIGTERM)
            self._signal(signal.SIGCONT)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to every task, which may catch it and go on."""
        self._signal(number)

    def say(self, line: str) -> None:
        """Write a line of the scheduler's own into the job's file."""
        append_line(self._path(self.job.stderr or self.job.stdout, 0), line)

    def say_cancelled(self, at: str, why: str = "") -> None:
        """Write the line that Slurm's step daemon writes when a step is ended by order."""
        head = f"slurmstepd-{self.nodes[0]}: error: *** STEP {self._job_id}.0 ON {self.nodes[0]}"
        self.say(f"{head} CANCELLED AT {at}{why} ***")

    def _node(self, rank: int) -> str:
        return self.nodes[rank // self.job.tasks_per_node]

    def _path(self, pattern: str, rank: int) -> Path:
        return output_path(
            pattern,
            work_dir=self.job.work_dir,
            job_id=self._job_id,
            name=self.job.name,
            task=rank,
            place=rank // self.job.tasks_per_node,
            node=self._node(rank),
        )

    def _spawn(self, rank: int) -> _Task:
        with contextlib.ExitStack() as opened:
            stdout = self._open(self.job.stdout, rank)
            opened.callback(os.close, stdout)
            stderr = stdout
            if self.job.stderr:
                stderr = self._open(self.job.stderr, rank)
                opened.callback(os.close, stderr)
            process = subprocess.Popen(  # noqa: S603 - running the user's command is the purpose
                self.job.command,
                cwd=self.job.work_dir,
                env=self._environment(rank),
                stdin=None if self.job.inherit_stdin else subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        return _Task(rank, self._node(rank), process)

    def _open(self, pattern: str, rank: int) -> int:
        descriptor = open_output(self._path(pattern, rank))
        if is_shared(pattern, self.job.tasks):
            return self._pump.attach(rank, descriptor)
        return descriptor

    def _environment(self, rank: int) -> dict[str, str]:
        return {
            **os.environ,
            **self.job.env,
            "RELIGHT_RANK": str(rank),
            "RELIGHT_WORLD": str(self.job.tasks),
            "RELIGHT_NODE": self._node(rank),
            "RELIGHT_RESTART_COUNT": str(self._restart_count),
            "RELIGHT_JOB_ID": self._job_id,
        }

    def _signal(self, number: signal.Signals) -> None:
        for task in self._tasks:
            _signal_group(task.process.pid, number)


def _has_exited(pid: int) -> bool:
    """Return whether a child has ended, leaving it unreaped so that its id stays its own."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # reaped by the program that the scheduler is embedded in
        return True


def _signal_group(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
