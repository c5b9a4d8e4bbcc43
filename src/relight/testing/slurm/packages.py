"""Whether a real Slurm can be had on this machine, and how to get one."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

PACKAGES = ("slurm-wlm", "slurm-wlm-basic-plugins", "munge")
PROGRAMS = ("slurmctld", "slurmd", "munged", "squeue", "scontrol", "sbatch", "setpriv")
_INSTALL_SECONDS = 600


class InstallError(Exception):
    """Slurm's packages could not be installed."""


def unavailable() -> str | None:
    """Return why no real Slurm can be started here, None when it can."""
    if os.geteuid() != 0:
        return "a real Slurm runs jobs as other users: run as root"
    missing = [program for program in PROGRAMS if shutil.which(program, path=_path()) is None]
    if missing:
        return (
            f"{', '.join(missing)} not found: run `python -m relight.testing.slurm` as root "
            "on Debian to install Slurm"
        )
    return None


def install() -> None:
    """Install Debian's Slurm packages.

    Raises:
        InstallError: this is no Debian, the user is not root, or apt-get failed.

    """
    if not Path("/etc/debian_version").exists():
        raise InstallError("Slurm is installed here by apt-get alone: use a Debian machine")
    if os.geteuid() != 0:
        raise InstallError("apt-get installs packages as root only: run as root")
    _apt("update")
    _apt("install", "-y", "--no-install-recommends", *PACKAGES)


def _apt(*arguments: str) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        subprocess.run(
            ["apt-get", "-q", *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_INSTALL_SECONDS,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        last = error.stderr.decode(errors="replace").strip()[-400:]
        raise InstallError(f"apt-get {arguments[0]} failed: {last}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InstallError(f"apt-get {arguments[0]} did not end: {error}") from error


def _path() -> str:
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
