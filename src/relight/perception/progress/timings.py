"""The usual time of one step, from any number of them in bounded memory.

Times are counted in classes of one per cent. What is told is the mean of the class that holds
the median, so that times which are all alike come out exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log

from relight.model.records import Record

MOST_KINDS = 500
"""Classes kept of one counter: times that spread further are no times of its steps."""
_CLASSES = 100
"""Classes for each factor of e: each is one per cent wide."""
LEAST = 1e-7
MOST = 1e8
"""Seconds; what lies beyond is no time of a step."""


class Class(Record, frozen=True, kw_only=True):
    """Times that differ by less than one per cent: how many they are, and their sum."""

    count: int
    seconds: float

    @property
    def mean(self) -> float:
        """Return the mean of the class in seconds."""
        return self.seconds / self.count


def with_time(classes: dict[int, Class], seconds: float) -> None:
    """Count one time into ``classes``, unless it is none that a step can take."""
    if not LEAST < seconds < MOST:
        return
    number = round(log(seconds) * _CLASSES)
    old = classes.get(number)
    if old is None and len(classes) < MOST_KINDS:
        classes[number] = Class(count=1, seconds=seconds)
    elif old is not None:
        classes[number] = Class(count=old.count + 1, seconds=old.seconds + seconds)


def median_of(classes: Mapping[int, Class]) -> float | None:
    """Return the median time in seconds, None when none was counted."""
    total = sum(one.count for one in classes.values())
    if not total:
        return None
    below = (total - 1) // 2, total // 2
    found: list[float] = []
    passed = 0
    for number in sorted(classes):
        one = classes[number]
        passed += one.count
        while len(found) < len(below) and below[len(found)] < passed:
            found.append(one.mean)
    return sum(found) / len(found)
