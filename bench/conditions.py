"""Where and when something was measured, so that nobody takes the numbers for another machine's."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PROGRAMS = (("slurmctld", "-V"), ("rg", "--version"), ("grep", "--version"))
_LIBRARIES = ("hyperscan", "google-re2")


def conditions() -> dict[str, str]:
    """Return what the numbers depend on: processor, cores, load, versions."""
    known = {
        "processor": _processor(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') >> 30} GiB",
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load average": " ".join(f"{load:.2f}" for load in os.getloadavg()),
    }
    known |= {name: _library(name) for name in _LIBRARIES}
    return known | {command[0]: _said(*command) for command in _PROGRAMS}


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def _library(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def _said(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "absent"
    return done.stdout.partition("\n")[0].strip()
