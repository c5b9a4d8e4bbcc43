"""A running Slurm cluster: start, stop, submit, wait, and hurt it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from relight.testing.slurm import configuration
from relight.testing.slurm.packages import unavailable
from relight.testing.slurm.ports import free_ports
from relight.testing.slurm.processes import CLUSTER_VARIABLE, Daemon, kill_strays

JOB_USER = "nobody"
"""The unprivileged user that jobs run as unless a test names another."""

_READY_SECONDS = 30.0
_SAVED_SECONDS = 6.0
"""slurmctld writes a change of its state within 5 s (SAVE_MAX_WAIT in its state_save.c)."""

_COMMAND_SECONDS = 30.0
_DISABLED_CGROUPS_SINCE = (23, 11)


class ClusterError(Exception):
    """The cluster, or a command on it, did not do what a test needs."""


class SlurmCluster:
    """A Slurm cluster below ``folder`` (an absolute path); made by ``start``, ended by ``stop``.

    ``env`` is what a command needs to reach it (SLURM_CONF, PATH and a neutral locale),
    ``conf`` its slurm.conf, ``jobs`` a folder that every user may write to, ``nodes`` the
    node names. ``root`` is a folder with another Debian, ``proc`` and ``dev`` mounted in it,
    whose Slurm is run; ``within`` is what comes before each command then.
    """

    def __init__(
        self,
        folder: Path,
        *,
        nodes: int = 4,
        settings: Mapping[str, str] | None = None,
        root: Path | None = None,
    ) -> None:
        self.folder = folder
        self.root = root
        self.nodes = configuration.node_names(nodes)
        self.jobs = folder / "jobs"
        self.conf = folder / "slurm.conf"
        self.within = () if root is None else ("chroot", str(root))
        self.env = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "SLURM_CONF": str(self.conf),
            "LC_ALL": "C",
            CLUSTER_VARIABLE: str(folder),
        }
        self.slurmctld_log = folder / "slurmctld.log"
        self._settings = dict(settings or {})
        self._scripts = 0
        self._ports: tuple[int, ...] = ()
        self._munged = self._daemon("munged", self._munged_command())
        self._slurmctld = self._daemon("slurmctld", ("slurmctld", "-D", "-f", str(self.conf)))
        self._slurmds = {
            name: self._daemon(f"slurmd-{name}", ("slurmd", "-D", "-N", name, "-f", str(self.conf)))
            for name in self.nodes
        }

    @classmethod
    def start(
        cls,
        folder: Path,
        *,
        nodes: int = 4,
        settings: Mapping[str, str] | None = None,
        root: Path | None = None,
    ) -> Self:
        """Start a cluster in ``folder`` (made when missing) and wait until every node is idle.

        ``settings`` replace or add keys of slurm.conf. Whatever was started is stopped again
        when this fails, and also when the calling thread ends.

        Raises:
            ClusterError: no Slurm here, the job user may not read ``folder``, or a daemon
                did not come up; with its last words.

        """
        if root is None and (why := unavailable()) is not None:
            raise ClusterError(f"no Slurm cluster can be started: {why}")
        cluster = cls(folder, nodes=nodes, settings=settings, root=root)
        try:
            cluster._start()
        except BaseException:
            cluster.stop()
            raise
        return cluster

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Kill every process of the cluster and reap it; jobs too. The folder stays."""
        for daemon in (self._slurmctld, *self._slurmds.values(), self._munged):
            daemon.kill()
        kill_strays(self.folder)

    def run(self, *command: str, user: str = "root", check: bool = True) -> str:
        """Run a Slurm command as ``user`` and return its standard output.

        Raises:
            ClusterError: it failed and ``check`` is set, or hung.

        """
        as_user = ("setpriv", "--reuid", user, "--regid", user_group(user), "--clear-groups")
        whole = [*self.within, *(as_user if user != "root" else ()), *command]
        try:
            done = subprocess.run(
                whole,
                env=self.env,
                cwd=self.jobs,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_COMMAND_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ClusterError(f"{' '.join(command)} hung for {_COMMAND_SECONDS:g} s") from error
        if check and done.returncode:
            raise ClusterError(f"{' '.join(command)} failed: {done.stderr.strip()}")
        return done.stdout.strip()

    def submit(
        self, script: str | Path, *, user: str = JOB_USER, options: Collection[str] = ()
    ) -> str:
        """Submit a batch script, a path or its body (a shebang is added), and return the job id.

        ``options`` are sbatch's. The job runs in ``jobs`` and writes ``slurm-ID.out`` there.

        Raises:
            ClusterError: sbatch refused it.

        """
        if isinstance(script, Path):
            path = script
        else:
            self._scripts += 1
            path = self.folder / "scripts" / f"{self._scripts}.sh"
            path.write_text(script if script.startswith("#!") else f"#!/bin/sh\n{script}\n")
            path.chmod(0o755)
        command = ("sbatch", "--parsable", f"--chdir={self.jobs}", *options, str(path))
        return self.run(*command, user=user).partition(";")[0]

    def state(self, job: str) -> str:
        """Return a job's state in Slurm's words, such as ``RUNNING``; empty when it is not known.

        An array's tasks are named ``8_1``; of a whole array it is the first line's.
        """
        text = self.run("squeue", "-h", "-r", "-t", "all", "-o", "%T", "-j", job, check=False)
        return text.partition("\n")[0]

    def wait_state(self, job: str, states: str | Collection[str], timeout: float = 30.0) -> str:
        """Wait until a job is in one of ``states`` (Slurm's words) and return which.

        Raises:
            ClusterError: it was not within ``timeout`` seconds; says what it is instead.

        """
        wanted = {states} if isinstance(states, str) else set(states)
        last = ""
        for _ in _until(timeout):
            last = self.state(job)
            if last in wanted:
                return last
        reason = self.run("squeue", "-h", "-t", "all", "-o", "%T %r %N", "-j", job, check=False)
        names = " or ".join(sorted(wanted))
        raise ClusterError(f"job {job} was not {names} within {timeout:g} s: {reason or last}")

    def node_down(self, node: str, reason: str = "test") -> None:
        """Mark a node DOWN at once: its jobs fail, or are requeued, as on a node failure."""
        self.run("scontrol", "update", f"NodeName={node}", "State=DOWN", f"Reason={reason}")

    def node_up(self, node: str) -> None:
        """Bring a node back, start its slurmd if it was killed, and wait until it is idle."""
        self.resume(node)
        self._slurmds[node].start()
        for _ in _until(_READY_SECONDS):
            state = self.node_state(node)
            if state.startswith(("down", "drain", "drng")):
                command = ("scontrol", "update", f"NodeName={node}", "State=RESUME")
                self.run(*command, check=False)
            elif state.isalpha():
                return
        raise ClusterError(f"node {node} did not come back: {self.node_state(node)}")

    def node_state(self, node: str) -> str:
        """Return a node's state in sinfo's compact words, such as ``idle`` or ``down*``."""
        return self.run("sinfo", "-h", "-N", "-n", node, "-o", "%t").partition("\n")[0]

    def kill_node(self, node: str) -> None:
        """Kill a node's slurmd with SIGKILL; jobs on it live on until Slurm finds out."""
        self._slurmds[node].kill()

    def pause(self, name: str) -> None:
        """Stop ``slurmctld``, or a node's slurmd, with SIGSTOP."""
        self._named(name).signal(signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """Let ``slurmctld``, or a node's slurmd, go on with SIGCONT."""
        self._named(name).signal(signal.SIGCONT)

    def kill_slurmctld(self, *, saved: bool = True) -> None:
        """Kill slurmctld with SIGKILL; nodes and jobs live on.

        Slurm writes its state some seconds late, and forgets jobs, requeues and ids newer than
        that when it is killed. With ``saved`` the kill waits for the next writing, 6 s at most.
        """
        if saved:
            self._wait_saved()
        self._slurmctld.kill()

    def start_slurmctld(self) -> None:
        """Start slurmctld, from its saved state if there is one, and wait until it answers."""
        self._slurmctld.start()
        self._wait("slurmctld listens", self._listens, self._slurmctld)
        self._wait("slurmctld answers", self._answers, self._slurmctld)

    @contextlib.contextmanager
    def paused(self, name: str) -> Iterator[None]:
        """Stop ``slurmctld``, or a node's slurmd, for the length of a ``with``."""
        self.pause(name)
        try:
            yield
        finally:
            self.resume(name)

    def log(self) -> str:
        """Return what slurmctld has logged: it names every change that it accepted."""
        with contextlib.suppress(FileNotFoundError):
            return self.slurmctld_log.read_text(errors="replace")
        return ""

    def reset(self) -> None:
        """Cancel every job, lift what tests did to nodes, and wait until all nodes are idle."""
        self.resume("slurmctld")
        self.start_slurmctld()
        if jobs := self.run("squeue", "-h", "-o", "%A").split():
            self.run("scancel", "--quiet", *jobs, check=False)
        for node in self.nodes:
            self.node_up(node)
        self._wait("all nodes are idle", self._all_idle, self._slurmctld)

    def _start(self) -> None:
        self._prepare()
        self._munged.start()
        self._wait("munged listens", (self.folder / "munge" / "socket").exists, self._munged)
        self.start_slurmctld()
        for daemon in self._slurmds.values():
            daemon.start()
        self._wait("all nodes are idle", self._all_idle, *self._slurmds.values(), self._slurmctld)

    def _prepare(self) -> None:
        self._make_folder()
        for name in ("munge", "state", "spool", "jobs", "scripts"):
            (self.folder / name).mkdir()
        for folder in (self.folder, self.folder / "spool", self.folder / "scripts"):
            folder.chmod(0o755)
        self.jobs.chmod(0o1777)
        key = self.folder / "munge" / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        (self.folder / "munge").chmod(0o755)
        self.run("chown", "-R", "munge:munge", str(self.folder / "munge"))
        self._check_readable()
        self._ports = free_ports(len(self.nodes) + 1)
        configuration.write(
            self.folder,
            ports=self._ports,
            nodes=len(self.nodes),
            settings=self._settings,
            old=self.version() < _DISABLED_CGROUPS_SINCE,
        )

    def _make_folder(self) -> None:
        """Make the folder; inside another root, with a link that gives it the same path here."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.root is not None:
            inside = self.root / self.folder.relative_to("/")
            inside.mkdir(parents=True)
            self.folder.rmdir()
            self.folder.symlink_to(inside)

    def version(self) -> tuple[int, int]:
        """Return Slurm's version, such as (22, 5).

        Raises:
            ClusterError: ``slurmctld -V`` said something else.

        """
        text = self.run("slurmctld", "-V")
        numbers = text.removeprefix("slurm-wlm ").removeprefix("slurm ").split(".")
        try:
            return int(numbers[0]), int(numbers[1])
        except (ValueError, IndexError) as error:
            raise ClusterError(f'"{text}" is not the version of a Slurm') from error

    def _check_readable(self) -> None:
        try:
            self.run("test", "-w", str(self.jobs), "-a", "-r", str(self.folder), user=JOB_USER)
        except ClusterError as error:
            raise ClusterError(
                f"{self.folder} cannot be reached by {JOB_USER}, as whom jobs run: "
                "choose a folder below one that everybody may enter, such as /tmp"
            ) from error

    def _wait_saved(self) -> None:
        """Wait until the jobs as they are now are on disk: without changes nothing is written."""
        state = self.folder / "state" / "job_state"
        before = state.stat().st_mtime_ns if state.exists() else 0
        for _ in _until(_SAVED_SECONDS):
            if state.exists() and state.stat().st_mtime_ns > before:
                return

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((configuration.address(), self._ports[0])) == 0

    def _answers(self) -> bool:
        return "UP" in self.run("scontrol", "ping", check=False)

    def _all_idle(self) -> bool:
        states = set(self.run("sinfo", "-h", "-N", "-o", "%N %t", check=False).splitlines())
        return states == {f"{name} idle" for name in self.nodes}

    def _wait(self, what: str, is_so: Callable[[], bool], *daemons: Daemon) -> None:
        for _ in _until(_READY_SECONDS):
            for daemon in daemons:
                if daemon.pid is None:
                    raise ClusterError(f"{daemon.name} ended: {daemon.last_words()}")
            if is_so():
                return
        words = "; ".join(f"{daemon.name}: {daemon.last_words()[-200:]}" for daemon in daemons)
        raise ClusterError(f"not within {_READY_SECONDS:g} s: {what}. {words}")

    def _named(self, name: str) -> Daemon:
        return self._slurmctld if name == "slurmctld" else self._slurmds[name]

    def _daemon(self, name: str, command: tuple[str, ...]) -> Daemon:
        output = self.folder / f"{name}.out"
        return Daemon(name, command, env=self.env, output=output, within=self.within)

    def _munged_command(self) -> tuple[str, ...]:
        place = self.folder / "munge"
        return (
            *("setpriv", "--reuid", "munge", "--regid", "munge", "--clear-groups"),
            *("--pdeathsig", "KILL", "munged", "--foreground", "--force"),
            *(f"--socket={place}/socket", f"--key-file={place}/key", f"--pid-file={place}/pid"),
            *(f"--log-file={place}/log", f"--seed-file={place}/seed"),
        )


def user_group(user: str) -> str:
    """Return the group that a test's user belongs to: Debian gives nobody no group of its name."""
    return "nogroup" if user == "nobody" else user


def _until(timeout: float) -> Iterator[None]:
    deadline = time.monotonic() + timeout
    pause = 0.02
    while True:
        yield
        if time.monotonic() >= deadline:
            return
        time.sleep(pause)
        pause = min(pause * 1.5, 0.25)
