"""Whether real metrics servers can be had on this machine, and how to get them."""

from __future__ import annotations

import shutil

from relight.testing.packages import install_packages

PACKAGES = ("prometheus", "victoria-metrics")
PROGRAMS = ("prometheus", "promtool", "victoria-metrics", "setpriv")


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
    if unavailable() is not None:
        install_packages(*PACKAGES)
