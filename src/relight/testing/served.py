"""A real ``relight serve`` beside a real Slurm cluster, for tests that prove things."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Self

from relight.clients.backend.backends import BackendClient
from relight.clients.backend.errors import NotFound
from relight.engine.cases import Case
from relight.model.advice import Advice
from relight.model.audit import AuditEntry
from relight.model.jobs import JobKey
from relight.testing.slurm import SlurmCluster
from relight.testing.workloads import TRAIN

COMMENT = '{"relight": {"max_restarts": 3}}'

_CHANGES = {
    "requeue": "Requeuing JobId={job}$",
    "update": "_slurm_rpc_update_job: complete JobId={job} ",
    "kill": "REQUEST_KILL_JOB JobId={job} ",
    "release": "release hold",
    "node": "update_node: ",
}
"""How slurmctld's log names a change that it accepted (Slurm 22.05 to 26.05)."""


_STOP_SECONDS = 30.0
"""Twice what relight gives itself for its end."""


class NeverHappened(AssertionError):  # noqa: N818 - named by what it says
    """What a test waited for did not come about in time."""


class Served:
    """``relight serve`` as a process of its own; killed and started again at will.

    ``shims`` is a folder that comes first on relight's PATH, so that a test can put a
    program of its own before one of Slurm's commands. ``beside`` are lines that follow
    those of ``[cluster.main]``.
    """

    def __init__(
        self,
        cluster: SlurmCluster,
        folder: Path,
        *,
        mode: str = "act",
        beside: str = "",
        **policy: str,
    ) -> None:
        self.cluster = cluster
        self.folder = folder
        self.shims = folder / "shims"
        self.shims.mkdir()
        for command in ("squeue", "scontrol", "scancel", "sinfo") if cluster.within else ():
            self.shim(command, 'exec $REAL "$@"')
        self._config = folder / "relight.toml"
        lines = "".join(f"{key} = {value}\n" for key, value in policy.items())
        self._config.write_text(
            f'[cluster.main]\nkind = "slurm"\nslurm_conf = "{cluster.conf}"\npoll = "500ms"\n'
            f'bin_dir = "{self.shims}"\n{beside}[policy.default]\nmode = "{mode}"\n{lines}'
            f'[store]\npath = "{folder}/state"\n[serve]\nport = 0\n'
        )
        self._log_start = len(cluster.log())
        self._process: subprocess.Popen[bytes] | None = None
        self._said = folder / "serve.log"
        self.url = ""

    def start(self, **environ: str) -> Self:
        """Start the process and wait until it answers."""
        before = self._said.stat().st_size if self._said.exists() else 0
        with self._said.open("ab") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "relight.cli.app", "serve", "--config", str(self._config)],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env={**os.environ, "PYTHONFAULTHANDLER": "1", **environ},
            )
        text = ""
        for _ in moments(30):
            text = self._said.read_bytes()[before:].decode(errors="replace")
            found = re.search(r"Listening on ([^\s;]+)", text)
            if found is not None:
                self.url = found[1]
                return self
            if self._process.poll() is not None:
                break
        raise NeverHappened(f"relight serve did not come up:\n{text[-2000:]}")

    def kill(self) -> None:
        """End the process as a crash does, in the middle of whatever it is doing."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """Ask the process to end and wait for it.

        Raises:
            AssertionError: it did not end by itself (with what its threads were doing), failed,
                or wrote of a failed turn.

        """
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGABRT)  # faulthandler writes where threads are
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_SECONDS)
            self.kill()
            raise NeverHappened(f"relight serve did not end:\n{self.said[-8000:]}") from None
        self._process = None
        assert code == 0, f"relight serve ended with {code}:\n{self.said[-8000:]}"
        assert "Traceback" not in self.said, self.said[-5000:]

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.stop()
        else:
            self.kill()

    @property
    def is_dead(self) -> bool:
        """Return whether the process has ended by itself."""
        return self._process is not None and self._process.poll() is not None

    @property
    def said(self) -> str:
        """Return everything that the process has written to its standard error."""
        return self._said.read_text(errors="replace")

    @property
    def token(self) -> str:
        """Return what a request has to carry."""
        return (self.folder / "state" / "token").read_text().strip()

    def case(self, job: str) -> Case:
        """Return the case of a job by its Slurm id.

        Raises:
            NotFound: relight does not know the job.

        """
        client = BackendClient(self.url, token=self.token)
        try:
            return client.job(JobKey(cluster="main", scheduler_id=job)).case
        finally:
            client.close()

    def find_case(self, job: str) -> Case | None:
        """Return the case of a job by its Slurm id, None while relight does not know it."""
        try:
            return self.case(job)
        except NotFound:
            return None

    def audit(self) -> list[AuditEntry]:
        """Return the whole audit."""
        client = BackendClient(self.url, token=self.token)
        try:
            return list(client.audit())
        finally:
            client.close()

    def sentences(self) -> str:
        """Return every sentence of the audit, a line each."""
        return "\n".join(entry.reason.sentence for entry in self.audit())

    def relight(self, *words: str) -> str:
        """Run a relight command against this server and return what it prints."""
        done = subprocess.run(
            [sys.executable, "-m", "relight.cli.app", *words],
            env={**os.environ, "RELIGHT_URL": self.url, "RELIGHT_CONFIG": str(self._config)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert not done.stderr, done.stderr
        return done.stdout

    def wait_for(self, what: str, is_so: Callable[[], bool], seconds: float = 30) -> None:
        """Wait until something is so.

        Raises:
            NeverHappened: it was not in time; carries what relight and Slurm said.

        """
        for _ in moments(seconds):
            if is_so():
                return
        raise NeverHappened(
            f"{what} did not happen within {seconds:g} s\n{self.said[-4000:]}\n"
            f"{self.cluster.log()[self._log_start :][-3000:]}"
        )

    def wait_state(self, job: str, states: str | set[str], seconds: float = 30) -> None:
        """Wait until Slurm says that a job is in one of ``states``."""
        wanted = {states} if isinstance(states, str) else states
        what = f"job {job} being {' or '.join(sorted(wanted))}"
        self.wait_for(what, lambda: self.cluster.state(job) in wanted, seconds)

    def advice(self, job: str, attempt: int = 0) -> Advice | None:
        """Return the newest generation of the advice on an attempt, None when there is none."""
        client = BackendClient(self.url, token=self.token)
        try:
            wanted = f"main:{job}-{attempt}"
            return next((one for one in client.advice() if one.id == wanted), None)
        finally:
            client.close()

    def wait_for_advice(self, job: str, attempt: int = 0, seconds: float = 30) -> Advice:
        """Wait until an attempt has been given its advice and return it."""
        self.wait_for(
            f"advice on {job}-{attempt}", lambda: self.advice(job, attempt) is not None, seconds
        )
        advice = self.advice(job, attempt)
        assert advice is not None
        return advice

    def changes(self, job: str) -> dict[str, int]:
        """Return how many changes of each kind slurmctld has accepted since this was made."""
        text = self.cluster.log()[self._log_start :]
        return {
            name: len(re.findall(pattern.format(job=job), text, re.MULTILINE))
            for name, pattern in _CHANGES.items()
        }

    def shim(self, command: str, script: str) -> None:
        """Put a shell script before one of Slurm's commands; ``$REAL`` is the real one.

        For a Slurm of another Debian release the real one runs in its root folder.
        """
        real = " ".join((*self.cluster.within, f"/usr/bin/{command}"))
        path = self.shims / command
        path.write_text(f"#!/bin/bash\nREAL='{real}'\n{script}\n")
        path.chmod(0o755)


def training(  # noqa: PLR0913 - what training jobs differ in
    cluster: SlurmCluster,
    name: str,
    *,
    fault: str = "",
    steps: int = 60,
    nodes: int = 3,
    options: Sequence[str] = (),
    comment: str = COMMENT,
    kill_on_bad_exit: bool = True,
    train: str = "",
) -> str:
    """Submit a real training job of one rank a node and return its id."""
    folder = cluster.jobs / name
    folder.mkdir()
    folder.chmod(0o777)
    for program in (TRAIN, TRAIN.with_name("launcher.py")):
        shutil.copy(program, folder / program.name)
    broken = f"--fault {fault}" if fault else ""
    kill = "--kill-on-bad-exit=1" if kill_on_bad_exit else "--kill-on-bad-exit=0"
    body = (
        f"srun -l {kill} /usr/bin/python3 -u {folder}/train.py --folder {folder} "
        f"--steps {steps} --step-seconds 0.05 --checkpoint-every 5 {broken} {train}"
    )
    return cluster.submit(
        body,
        options=(
            f"--nodes={nodes}",
            f"--ntasks={nodes}",
            f"--comment={comment}",
            f"--output={folder}/slurm-%j.out",
            f"--job-name={name}",
            *options,
        ),
    )


def moments(seconds: float) -> Iterator[None]:
    """Yield every tenth of a second, for at most so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(0.1)
