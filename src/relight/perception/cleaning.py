"""Bytes as they stand in a file, made into what expressions see, and the way back.

Escape sequences go, envelopes are opened, long units cut. Most lines hold nothing of the kind:
those that may are found by a few searches over the whole block, and only they are worked on.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from relight.perception.envelopes import MOST_BYTES, SIGNS, may_open, unwrapped

UNIT_HEAD = 8 * 1024
"""Bytes of one unit that are looked at; what lies beyond is skipped."""
MOST_CARRIED = MOST_BYTES + 1
"""Bytes kept of an unfinished unit: enough to open an envelope, or to see that it is too long."""

_WINDOW = UNIT_HEAD // 2
_ESCAPE = b"\x1b"
_ESCAPES = re.compile(
    rb"\x1b(?:\[[0-?]{0,32}[ -/]{0,4}[@-~]|\][^\x07\x1b\n\r]{0,500}(?:\x07|\x1b\\)?|[@-Z\\^_])"
)


class Cleaned:
    """The text that a block of whole units amounts to, and where each of its units comes from."""

    def __init__(self, flat: bytes) -> None:
        """Clean ``flat``, of which every unit ends in a line feed."""
        self._texts = [0]
        self._origins = [0]
        self._runs_on = [True]
        self.text = self._worked_on(flat)

    def origin(self, start: int) -> int:
        """Return where in ``flat`` the unit begins that begins at ``start`` of ``text``."""
        mark = bisect_right(self._texts, start) - 1
        beyond = start - self._texts[mark] if self._runs_on[mark] else 0
        return self._origins[mark] + beyond

    def _worked_on(self, flat: bytes) -> bytes:
        starts = sorted(set(_starts(flat)))
        if not starts:
            return flat
        parts: list[bytes] = []
        done = length = 0
        for start in starts:
            parts.append(flat[done:start])
            length += start - done
            done = flat.find(b"\n", start) + 1
            for piece in unwrapped(flat[start : done - 1]):
                self._mark(length, start, runs_on=False)
                parts += (without_escapes(piece[:UNIT_HEAD]), b"\n")
                length += len(parts[-2]) + 1
            self._mark(length, done, runs_on=True)
        parts.append(flat[done:])
        return b"".join(parts)

    def _mark(self, start: int, origin: int, *, runs_on: bool) -> None:
        self._texts.append(start)
        self._origins.append(origin)
        self._runs_on.append(runs_on)


def without_escapes(data: bytes) -> bytes:
    """Return ``data`` without terminal escape sequences."""
    return _ESCAPES.sub(b"", data) if _ESCAPE in data else data


def _starts(flat: bytes) -> Iterator[int]:
    """Yield where the units begin that may have to be changed."""
    for sign in SIGNS:
        at = flat.find(sign)
        while at >= 0:
            if may_open(flat, at):
                yield flat.rfind(b"\n", 0, at) + 1
                at = flat.find(b"\n", at)
            at = flat.find(sign, at + 1)
    at = flat.find(_ESCAPE)
    while at >= 0:
        yield flat.rfind(b"\n", 0, at) + 1
        at = flat.find(_ESCAPE, flat.find(b"\n", at))
    done = 0
    for window in range(0, len(flat) - _WINDOW, _WINDOW):
        if window >= done and flat.find(b"\n", window, window + _WINDOW) < 0:
            done = flat.find(b"\n", window)
            yield flat.rfind(b"\n", 0, window) + 1
