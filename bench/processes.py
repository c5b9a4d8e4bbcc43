"""What processes cost, from /proc: processor time and resident memory."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

_TICKS = os.sysconf("SC_CLK_TCK")


class Memory(NamedTuple):
    """Resident memory in MiB; ``pss`` counts pages shared by several processes once in all."""

    pss: float
    rss: float


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process and of its children that have ended.

    Raises:
        OSError: there is no such process.

    """
    fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(") ")[2].split()
    return sum(int(field) for field in fields[11:15]) / _TICKS


def children(pid: int) -> tuple[int, ...]:
    """Return the living children of a process, of whichever thread."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # a thread may end meanwhile
            found += (int(child) for child in (task / "children").read_text().split())
    return tuple(found)


def memory(pid: int) -> Memory:
    """Return the resident memory of one process.

    Raises:
        OSError: there is no such process, or it may not be looked at.

    """
    sizes: dict[str, int] = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, _, rest = line.partition(":")
        sizes[name] = int(rest.split()[0])
    return Memory(pss=sizes["Pss"] / 1024, rss=sizes["Rss"] / 1024)
