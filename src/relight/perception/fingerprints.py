"""What 'the same failure again' means, as one short text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from relight.model.records import Record

_VARYING = re.compile(
    r"0x[0-9a-fA-F]+|\b[0-9a-fA-F]{12,}\b|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b|\d+"
)
_LIBRARY = re.compile(r"site-packages|dist-packages|lib/python|lib64/python|<frozen|<string>")
_LEFT_OUT = frozenset({"node", "rank", "pid", "peer", "time", "error"})
_KEPT = frozenset({"code", "signal", "device"})
LONGEST = 300


class Frame(Record, frozen=True, kw_only=True):
    """One frame of a traceback."""

    file: str
    function: str

    @property
    def is_users(self) -> bool:
        """Return whether the frame lies outside installed libraries."""
        return _LIBRARY.search(self.file) is None

    def __str__(self) -> str:
        """Return the last two parts of the path and the function, without numbers."""
        return without_varying("/".join(self.file.split("/")[-2:])) + ":" + self.function


def without_varying(text: str) -> str:
    """Return ``text`` with numbers, addresses and hexadecimal ids written as ``#``."""
    return _VARYING.sub("#", text)


def fingerprint(rule: str, captures: Mapping[str, str], frame: Frame | None = None) -> str:
    """Return rule, the captures that do not vary from run to run, and the innermost user frame.

    Hosts, ranks, process ids and peers are left out, numbers inside texts become ``#``; codes,
    signals and devices stay, since they are what tells one failure from another.
    """
    parts = [rule]
    for name, value in sorted(captures.items()):
        if name in _LEFT_OUT or not value:
            continue
        parts.append(f"{name}={value if name in _KEPT else without_varying(value)}")
    if frame is not None:
        parts.append(f"at={frame}")
    return "|".join(parts)[:LONGEST]
