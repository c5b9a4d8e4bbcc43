"""Whether real metrics servers can be had on this machine, and how to get them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

PACKAGES = ("prometheus", "victoria-metrics")
PROGRAMS = ("prometheus", "promtool", "victoria-metrics", "setpriv")
_INSTALL_SECONDS = 600


class InstallError(Exception):
    """The packages of the metrics servers could not be installed."""


def unavailable() -> str | None:
    """Return why no metrics server can be started here, None when they can."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        return (
            f"{', '.join(missing)} not found: run `python -m relight.testing.metrics` as root "
            "on Debian to install Prometheus and VictoriaMetrics"
        )
    return None


def install() -> None:
    """Install Debian's packages of both servers, unless they are there.

    Raises:
        InstallError: this is no Debian, the user is not root, or apt-get failed.

    """
    if unavailable() is None:
        return
    if not Path("/etc/debian_version").exists():
        raise InstallError("they are installed here by apt-get alone: use a Debian machine")
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
