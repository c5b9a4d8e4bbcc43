"""The processes of a cluster: the daemons started here, and the strays that those start.

A daemon is a child of this process and is told by its pid. Step daemons and jobs leave their
parent on purpose (a job outlives a restart of ``slurmd``), so they are told by the cluster's
folder, which their environment (``CLUSTER_VARIABLE``) or a step daemon's open log names, and
whatever descends from such a process belongs to the cluster too.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

CLUSTER_VARIABLE = "RELIGHT_TEST_CLUSTER"
"""The environment variable that tells a cluster's processes: its value is the folder."""

_STOP_SECONDS = 5.0


class Daemon:
    """One program in the foreground, with its output in a file, that dies with this process.

    ``setpriv --pdeathsig`` ties it to the thread that calls ``start``.
    """

    def __init__(
        self,
        name: str,
        command: Iterable[str],
        *,
        env: Mapping[str, str],
        output: Path,
        within: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.output = output
        self._command = [*within, "setpriv", "--pdeathsig", "KILL", *command]
        self._env = dict(env)
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Return its pid, None when it does not run."""
        return None if self._child is None or self._child.poll() is not None else self._child.pid

    def start(self) -> None:
        """Start it, unless it runs."""
        if self.pid is not None:
            return
        with self.output.open("ab") as output:
            self._child = subprocess.Popen(
                self._command,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                cwd="/",
            )

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it, if it runs."""
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(number)

    def kill(self) -> None:
        """Kill it, stopped or not, and reap it."""
        self.signal(signal.SIGKILL)
        if self._child is not None:
            self._child.wait(_STOP_SECONDS)

    def last_words(self) -> str:
        """Return the end of its output, for an error message."""
        with contextlib.suppress(OSError):
            return self.output.read_bytes()[-600:].decode(errors="replace").strip()
        return ""


def kill_strays(folder: Path) -> None:
    """Kill every process that names ``folder`` as its cluster, and its descendants.

    Repeats until none is left, since a step daemon may be starting a job meanwhile.
    """
    deadline = time.monotonic() + _STOP_SECONDS
    while time.monotonic() < deadline:
        strays = _with_descendants({pid for pid in _pids() if _names(pid, folder)})
        if not strays:
            return
        for pid in strays:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def _pids() -> list[int]:
    return [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdecimal()]


def _names(pid: int, folder: Path) -> bool:
    if pid == os.getpid():
        return False
    marker = f"{CLUSTER_VARIABLE}={folder}".encode()
    with contextlib.suppress(OSError):
        if _state_and_parent(pid)[0] == "Z":
            return False
        environment = Path(f"/proc/{pid}/environ").read_bytes()
        if marker in environment.split(b"\0"):
            return True
        return any(
            str(entry.readlink()).startswith(f"{folder.resolve()}/slurmd-")
            for entry in Path(f"/proc/{pid}/fd").iterdir()
        )
    return False


def _with_descendants(roots: set[int]) -> set[int]:
    parents = {pid: parent for pid in _pids() if (parent := _state_and_parent(pid)[1])}
    found = set(roots)
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        found |= more
        grown = bool(more)
    return found - {os.getpid()}


def _state_and_parent(pid: int) -> tuple[str, int]:
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(") ")[2].split()
        return fields[0], int(fields[1])
    return "Z", 0
