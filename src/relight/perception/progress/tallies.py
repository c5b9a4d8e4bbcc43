"""Counts what the lines of a log tell, one after the other.

A tally is taken up from a state and gives a state back; in between it changes in place, since
a log can tell a step on every line.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import msgspec

from relight.model.instants import Instant
from relight.model.progress import StepUnit
from relight.perception.progress.readings import (
    Measured,
    Told,
    captured,
    step_of,
)
from relight.perception.progress.states import ProgressState, Series, believed
from relight.perception.progress.timings import Class, with_time
from relight.perception.shapes import SHAPES
from relight.perception.shapes.entries import BAR, EPOCH, Says
from relight.rules.patterns import Pattern

MOST_SERIES = 40
MOST_STEPS = 10**15
"""A step beyond is none; what is kept fits into 64 bits."""
KEPT_INTERVALS = 9
_KEPT_LINE = 1_000
_OF_CHECKPOINTS = frozenset({Says.SAVED, Says.SAVING, Says.BEGUN, Says.STAGED})
_FULL = 0.9
_EMPTY = 0.2
"""A bar that falls from nearly full to nearly empty has begun its next epoch."""


class Moment(NamedTuple):
    """When a line was written.

    ``at`` is the time that it prints with a date, or when it was read where that is wanted
    instead; ``clock`` are seconds
    of a clock that runs on from line to line. ``frame`` numbers the stretches of the file whose
    lines are all read: only in these are times taken as differences, elsewhere it is None.
    """

    at: Instant | None
    clock: float
    frame: int | None = 0


class Counted(NamedTuple):
    """What a line has done to a counter: where it stands now, counted on over the epochs.

    ``seconds`` is the time of one step as far as lines print it: by itself, or on a clock that
    they print in place of the time of day.
    """

    key: str
    step: int
    total: int
    epoch: int | None
    seconds: float | None
    is_believed: bool


class Stepped(NamedTuple):
    """A counter before a line, None before its first one, and after it."""

    old: Series | None
    new: Series


class Tally:
    """Counts on from a state."""

    def __init__(self, state: ProgressState) -> None:
        self._state = state
        self._series = dict(state.series)
        self._times: dict[str, dict[int, Class]] = {}
        self._waiting = dict.fromkeys(state.waiting)

    def frozen(self) -> ProgressState:
        """Return the state to go on from."""
        return msgspec.structs.replace(
            self._state,
            series=dict(self._series),
            times={**self._state.times, **{key: dict(one) for key, one in self._times.items()}},
            waiting=tuple(self._waiting),
        )

    @property
    def counter(self) -> Series | None:
        """Return the series to believe."""
        return believed(self._series.values())

    @property
    def last_step(self) -> int | None:
        """Return the step completed last, counted on over the epochs."""
        counter = self.counter
        if counter is not None:
            return counter.last
        return 0 if self._waiting else None

    def series_of(self, told: Told) -> Series | None:
        """Return the series that a line belongs to, None before its first line."""
        return self._series.get(told.key)

    def step(self, told: Told, moment: Moment, line: str) -> Stepped | None:
        """Take in a line that tells a step; return its counter, None where it tells nothing new."""
        old = self._series.get(told.key)
        new = self._begun(told, moment) if old is None else _moved(old, told, moment)
        if new is None or new.last > MOST_STEPS:
            return None
        marks: dict[str, object] = {}
        if moment.frame is not None:
            self._timed(old, new, told, moment)
            marks = {} if old is None else _marks(old, new, moment)
        new = msgspec.structs.replace(new, line=line[:_KEPT_LINE], **marks)
        self._series[told.key] = new
        if old is None or new.last > old.last:
            self._completed(told, new)
        return Stepped(old, new)

    def counted(self, stepped: Stepped, told: Told, moment: Moment) -> Counted:
        """Return what the line has counted that was taken in last."""
        old, new = stepped
        return Counted(
            told.key,
            new.last,
            told.total,
            told.epoch,
            _seconds_between(old, new, told, moment),
            self.counter is new,
        )

    def _begun(self, told: Told, moment: Moment) -> Series | None:
        if told.shape.tier == BAR and told.step == 0:
            if len(self._waiting) < MOST_SERIES:
                self._waiting[told.key] = None
            return None
        if len(self._series) >= MOST_SERIES:
            return None
        new = _first(told, moment)
        if told.key in self._waiting and told.step == 1:
            return msgspec.structs.replace(new, first=0)
        return new

    def _timed(self, old: Series | None, new: Series, told: Told, moment: Moment) -> None:
        """Count the time of a step, as printed or as the difference to the line before."""
        if told.seconds is not None:
            self._time(told.key, told.seconds)
            return
        if old is None or new.is_printed or new.last <= old.last:
            return
        if told.since is not None:
            self._time(told.key, told.since / (new.last - old.last))
        elif (
            old.mark_frame == moment.frame
            and moment.clock > old.mark_clock
            and new.last > old.mark_step
        ):
            stride = new.last - old.mark_step
            self._time(told.key, (moment.clock - old.mark_clock) / stride)

    def _time(self, key: str, seconds: float) -> None:
        classes = self._times.get(key)
        if classes is None:
            classes = self._times[key] = dict(self._state.times.get(key, {}))
        with_time(classes, seconds)

    def _completed(self, told: Told, new: Series) -> None:
        state = self._state
        if state.saving is not None and new.last > state.saving:
            self._durable(state.saving)
            self._state = msgspec.structs.replace(self._state, saving=None)
        is_more = not told.total or told.step < told.total
        if state.is_finished and is_more and told.shape.tier <= BAR:
            self._state = msgspec.structs.replace(self._state, is_finished=False)

    def measured(self, told: Measured, moment: Moment) -> None:
        """Take in a line beside the step's: the time of a step, its loss."""
        counter = self.counter
        if told.loss is not None:
            self._state = msgspec.structs.replace(self._state, loss=told.loss)
        if told.seconds is None or moment.frame is None:
            return
        if counter is None:
            return
        key = next(key for key, one in self._series.items() if one is counter)
        if not counter.intervals or counter.is_printed:
            self._series[key] = msgspec.structs.replace(counter, is_printed=True)
            self._time(key, told.seconds)

    def epoch_has(self, length: int) -> None:
        """Take in how many steps an epoch has; of rounded figures the smallest is right."""
        for key, series in self._series.items():
            if series.epoch is None or series.total or series.peak > length:
                continue
            least = min(length, series.length or length)
            self._series[key] = msgspec.structs.replace(series, length=least)

    def step_takes_in(self, samples: int) -> None:
        """Take in how many samples a step takes in."""
        self._state = msgspec.structs.replace(self._state, batch=samples)

    def heard(self, number: int, line: bytes) -> None:
        """Take in a line of the shape of that number in ``SHAPES``."""
        step = step_named(number, line)
        says = SHAPES[number].says
        if says in _OF_CHECKPOINTS:
            self._checkpoint(says, step)
        elif says is Says.RESUMED:
            resumed = self._state.resumed_from if step is None else step
            self._set(resumed_from=resumed, resumed_somewhere=True)
        elif says is Says.FRESH and not self._state.resumed_somewhere:
            self._set(resumed_from=0)
        elif says is Says.EVALUATED:
            self._set(evaluated_at=self._best)
        elif says is Says.SKIPPED:
            self._set(skipped=self._state.skipped + 1)
        elif says is Says.NAN:
            self._set(nan_losses=self._state.nan_losses + 1)
        elif says is Says.FINISHED:
            self._set(is_finished=True)

    def _checkpoint(self, says: Says, step: int | None) -> None:
        if says is Says.SAVED:
            self._durable(step if step is not None else self._best)
            self._set(saving=None, begun=None)
        elif says is Says.SAVING:
            self._durable(self._state.saving)
            self._set(saving=step)
        elif says is Says.BEGUN:
            self._set(begun=step)
        elif says is Says.STAGED:
            self._durable(self._state.staged)
            self._set(staged=self._best)

    @property
    def _best(self) -> int | None:
        counter = self.counter
        return counter.best if counter else None

    def _set(self, **values: int | bool | None) -> None:
        self._state = msgspec.structs.replace(self._state, **values)

    def _durable(self, step: int | None) -> None:
        best = self._state.best_checkpoint
        if step is not None and (best is None or step > best):
            self._state = msgspec.structs.replace(self._state, best_checkpoint=step)


def step_named(number: int, line: bytes) -> int | None:
    """Return the step that a line of the shape of that number in ``SHAPES`` names."""
    return step_of(captured(_reads(number), line))


@cache
def _reads(number: int) -> tuple[Pattern, ...]:
    """Return the compiled ``reads`` of one of ``SHAPES``, made when it is first met."""
    return tuple(Pattern(expression) for expression in SHAPES[number].reads)


def _first(told: Told, moment: Moment) -> Series:
    shape = told.shape
    step = told.step
    if shape.epoch_from is not None and told.epoch is not None and told.total:
        step += max(told.epoch - shape.epoch_from, 0) * told.total
    return Series(
        tier=EPOCH if told.counts_epochs else shape.tier,
        unit=StepUnit.EPOCH if told.counts_epochs else shape.unit,
        total=told.total,
        first=step,
        first_at=moment.at,
        best=step,
        last=step,
        shown=told.step,
        last_at=moment.at,
        epoch=told.epoch,
        peak=told.step,
        needs_rises=told.rises,
        mark_step=step,
        mark_clock=moment.clock,
        mark_frame=-1 if moment.frame is None else moment.frame,
        is_printed=told.seconds is not None,
        is_bar=shape.tier == BAR,
        counts_more=shape.counts_more,
        average=told.average,
    )


def _moved(old: Series, told: Told, moment: Moment) -> Series | None:
    """Return the series after a line, None when the line tells nothing new."""
    step, base = _globally(old, told)
    if step == old.last or (told.step == 0 and old.is_bar):
        return None
    if told.shape.only_rises and step < old.best:
        return None
    has_risen = step > old.last
    is_same_epoch = told.epoch == old.epoch
    return msgspec.structs.replace(
        old,
        total=told.total or old.total,
        best=max(old.best, step),
        last=step,
        shown=told.step,
        counts_on=old.counts_on or _has_counted_an_epoch(old, told),
        last_at=_later(moment.at, old.last_at),
        epoch=told.epoch,
        base=base,
        peak=max(old.peak, told.step) if is_same_epoch else told.step,
        rises=old.rises + has_risen,
        falls=old.falls + (not has_risen),
        needs_rises=min(old.needs_rises, told.rises),
        is_printed=old.is_printed or told.seconds is not None,
        average=told.average or old.average,
    )


def _has_counted_an_epoch(old: Series, told: Told) -> bool:
    """Return whether the first epoch is over with a line, and was seen from its first half on."""
    first = told.shape.epoch_from
    if first is None or old.is_bar or told.epoch is None or old.epoch is None:
        return False
    return old.epoch <= first < told.epoch and 2 * old.first <= old.peak and told.step < old.peak


def _later(one: Instant | None, other: Instant | None) -> Instant | None:
    if one is None or other is None:
        return one if other is None else other
    return max(one, other)


def _globally(old: Series, told: Told) -> tuple[int, int]:
    """Return the step counted on over epochs, and the steps of the epochs before."""
    first = told.shape.epoch_from
    if first is not None and told.epoch is not None:
        if told.total:
            return max(told.epoch - first, 0) * told.total + told.step, 0
        if old.length:
            base = old.length * max(told.epoch - first, 0)
        elif old.epoch is not None and told.epoch > old.epoch and told.step <= old.peak:
            base = old.base + old.peak * (told.epoch - old.epoch)
        else:
            base = old.base
        return base + told.step, base
    if not old.is_bar:
        return told.step, 0
    base = old.base
    if told.step <= _EMPTY * told.total and old.shown >= _FULL * told.total:
        base += told.total
    return base + told.step, base


def _seconds_between(old: Series | None, new: Series, told: Told, moment: Moment) -> float | None:
    """Return the time of one step by what lines print, where they print no date."""
    if told.seconds is not None:
        return told.seconds
    if old is None or new.last <= old.last:
        return None
    if told.since is not None:
        return told.since / (new.last - old.last)
    runs_on = old.mark_frame == moment.frame and new.last > old.mark_step
    if told.clock is None or not runs_on or moment.clock <= old.mark_clock:
        return None
    return (moment.clock - old.mark_clock) / (new.last - old.mark_step)


def _marks(old: Series, new: Series, moment: Moment) -> dict[str, object]:
    """Return from where the next difference of times is taken, and the last differences.

    A clock that counts whole seconds may stand still over several steps: the mark waits.
    """
    goes_on = old.mark_frame == moment.frame and new.last > old.last
    if goes_on and moment.clock == old.mark_clock:
        return {}
    marks: dict[str, object] = {
        "mark_step": new.last,
        "mark_clock": moment.clock,
        "mark_frame": moment.frame,
    }
    if goes_on and moment.clock > old.mark_clock:
        interval = round(moment.clock - old.mark_clock, 6)
        marks["intervals"] = (*old.intervals, interval)[-KEPT_INTERVALS:]
        marks["strides"] = (*old.strides, new.last - old.mark_step)[-KEPT_INTERVALS:]
    return marks
