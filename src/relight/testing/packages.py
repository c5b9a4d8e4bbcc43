"""Installing Debian's packages of real servers, for tests that run beside them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_INSTALL_SECONDS = 600


class InstallError(Exception):
    """Packages could not be installed."""


def install_packages(*packages: str) -> None:
    """Install packages with apt-get.

    Raises:
        InstallError: this is no Debian, the user is not root, or apt-get failed.

    """
    if not Path("/etc/debian_version").exists():
        raise InstallError("real servers are installed by apt-get alone: use a Debian machine")
    if os.geteuid() != 0:
        raise InstallError("apt-get installs packages as root only: run as root")
    _apt("update")
    _apt("install", "-y", "--no-install-recommends", *packages)


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
