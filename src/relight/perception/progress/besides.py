"""Takes in what lines tell of steps without telling one, and the clock that they run on."""

from __future__ import annotations

from collections.abc import Iterable

from relight.model.instants import Instant, in_seconds
from relight.perception.progress.readings import batch_size, epoch_length, measured
from relight.perception.progress.tallies import Moment, Tally
from relight.perception.shapes import COUNTERS
from relight.perception.shapes.entries import Says


def take_beside(number: int, line: bytes, moment: Moment, tallies: Iterable[Tally]) -> bool:
    """Take in what a line tells of steps without telling one; return whether it measures one."""
    says = COUNTERS[number].says
    if says is Says.STEP:
        return False
    for tally in tallies:
        if says is Says.MEASURED:
            tally.measured(measured(number, line), moment)
        elif says is Says.LENGTH and (length := epoch_length(number, line)):
            tally.epoch_has(length)
        elif says is Says.BATCH and (size := batch_size(number, line)):
            tally.step_takes_in(size)
    return says is Says.MEASURED


def clock_of(at: Instant | None, of_day: float | None, now: Instant) -> float:
    """Return the seconds of a clock that runs on from line to line of one writer."""
    if at is not None:
        return in_seconds(at)
    return in_seconds(now) if of_day is None else of_day
