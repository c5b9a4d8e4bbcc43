"""Where the kernel log of one node lies, and where its older part went when it was rotated."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import islice

NODE = "%N"
MOST_ENTRIES = 100_000
"""Names of one folder that are looked at in search of a rotated file."""
_COMPRESSED = ("", ".gz", ".xz", ".zst", ".bz2")
_DATED = re.compile(r"[-.]\d{8}(?:[-.T]?\d{2,11})?(?:\.(?:gz|xz|zst|bz2))?")
"""What logrotate's ``dateext`` puts behind a name."""


def names_of(pattern: str, node: str) -> tuple[str, ...]:
    """Return the paths that ``pattern`` may mean for ``node``, the likeliest first.

    A relay names hosts in full or in short, whichever the scheduler does. None for a name
    that would lead out of its folder.
    """
    short = node.partition(".")[0]
    return tuple(
        dict.fromkeys(pattern.replace(NODE, name) for name in (node, short) if _is_plain(name))
    )


def _is_plain(name: str) -> bool:
    return bool(name.strip(".")) and "/" not in name and "\0" not in name


def older_of(path: str) -> str | None:
    """Return the file that ``path`` was last rotated to, None where there is none.

    logrotate calls it ``x.1``, perhaps compressed, or ``x-20260330``.
    """
    numbered = [f"{path}.1{ending}" for ending in _COMPRESSED]
    for name in numbered:
        if os.path.isfile(name):  # noqa: PTH113 - a path here is what the system takes
            return name
    folder, _, base = path.rpartition("/")
    try:
        with os.scandir(folder or "/") as entries:
            found = [one.name for one in islice(entries, MOST_ENTRIES)]
    except OSError:
        return None
    return _newest_of(folder, base, found)


def _newest_of(folder: str, base: str, names: Sequence[str]) -> str | None:
    dated = [
        name
        for name in names
        if name.startswith(base) and _DATED.fullmatch(name[len(base) :]) is not None
    ]
    return f"{folder}/{max(dated)}" if dated else None
