"""Whether a real Slurm can be had on this machine, and how to get one."""

from __future__ import annotations

import os
import shutil

from relight.testing.packages import install_packages

PACKAGES = ("slurm-wlm", "slurm-wlm-basic-plugins", "munge")
PROGRAMS = ("slurmctld", "slurmd", "munged", "squeue", "scontrol", "sbatch", "setpriv")


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
    install_packages(*PACKAGES)


def _path() -> str:
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
