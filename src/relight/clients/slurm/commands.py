"""How Slurm's commands are started: environment, place, time limit, and death with relight."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from relight.clients.running import NotRun, Ran, run

MOST_OUTPUT = 256 << 20
"""Bytes that a listing may have: 30,000 jobs of 8 kB each, as 24.11 prints them."""

_CHANGES_THE_ANSWER = ("SQUEUE_", "SINFO_", "SCONTROL_", "SCANCEL_", "SLURM_JSON", "SLURM_YAML")
_CHANGES_THE_ANSWER_TOO = frozenset({"SLURM_CLUSTERS", "SLURM_TIME_FORMAT", "SLURM_BITSTR_LEN"})


class Commands:
    """Runs Slurm's commands as argument lists, each for at most ``timeout`` seconds.

    ``env`` is the environment to start from (SLURM_CONF, PATH), this process's own when None;
    variables that would filter or reformat answers, such as SQUEUE_PARTITION, are left out.
    ``prefix`` is put before every command, for a Slurm that is reached through another
    program. ``bin_dir`` comes first on the PATH.
    """

    def __init__(
        self,
        env: Mapping[str, str] | None = None,
        prefix: tuple[str, ...] = (),
        timeout: float = 10.0,
        bin_dir: Path | None = None,
    ) -> None:
        self._env = {
            key: value
            for key, value in (os.environ if env is None else env).items()
            if not key.startswith(_CHANGES_THE_ANSWER) and key not in _CHANGES_THE_ANSWER_TOO
        }
        self._env["LC_ALL"] = "C"
        path = self._env.get("PATH", os.defpath)
        self._env["PATH"] = path if bin_dir is None else f"{bin_dir}{os.pathsep}{path}"
        self._prefix = prefix
        self._timeout = timeout
        setpriv = shutil.which("setpriv", path=self._env["PATH"])
        self._mortal = () if setpriv is None else (setpriv, "--pdeathsig", "KILL")

    def look(self, *command: str) -> Ran | NotRun:
        """Run a command that only reads."""
        return self._run((*self._prefix, *command))

    def change(self, *command: str) -> Ran | NotRun:
        """Run a command that changes something, so that it dies with this thread (law 2).

        Without ``setpriv`` on the PATH a command of a former life can outlast it by the time
        limit.
        """
        return self._run((*self._mortal, *self._prefix, *command))

    def _run(self, arguments: tuple[str, ...]) -> Ran | NotRun:
        return run(arguments, env=self._env, timeout=self._timeout, most_output=MOST_OUTPUT)


def last_words(ran: Ran) -> str:
    """Return what a command said when it failed, in one line of at most 400 characters."""
    text = (ran.errors or ran.output).decode(errors="replace")
    words = " ".join(text.split())
    return words[-400:] or f"it ended with status {ran.status} and no word"
