"""Counters that rose inside a window, and gauges that changed; resets are no rise."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from relight.model.instants import Instant
from relight.model.records import Record
from relight.model.telemetry import Sample


class Rise(Record, frozen=True, kw_only=True):
    """By how much a counter rose over its samples, in how many of the scrapes, and since when."""

    amount: float
    scrapes: int
    at: Instant


def rise_of(samples: Sequence[Sample]) -> Rise | None:
    """Return how much a counter rose, None when it did not.

    What it counted before the first sample is history, and so is all that it shows right after
    a reset: then nobody knows how much of it is new.
    """
    steps = [
        (now.value - was.value, now.at) for was, now in pairwise(samples) if now.value > was.value
    ]
    if not steps:
        return None
    return Rise(amount=sum(amount for amount, _ in steps), scrapes=len(steps), at=steps[0][1])


def reset_of(samples: Sequence[Sample]) -> Instant | None:
    """Return when a counter first fell, None when it never did."""
    for was, now in pairwise(samples):
        if now.value < was.value:
            return now.at
    return None
