"""Learns what is usual for an attempt from one progress line to the next.

The time of one step is the one that the line prints, else the difference of the printed
instants, else that of the moments at which lines were heard. The last says something only
while the log is heard as it is written.
"""

from __future__ import annotations

from statistics import median
from typing import NamedTuple

from relight.model.instants import Instant, in_seconds
from relight.model.pulses import Pulse
from relight.perception.rhythm.states import (
    KEPT,
    Habits,
    Pauses,
    Phase,
    StepMark,
    is_time,
)

_MANY = 3
"""Usual strides beyond which lines were left out: no pause can be told in between."""
_FEWEST = 3


class Stretch(NamedTuple):
    """What lies between two progress lines: steps, seconds of one, seconds from line to line.

    ``lines`` are those that it holds. ``is_whole`` tells that none was left out in between.
    """

    steps: int
    lines: int
    step_seconds: float | None
    interval: float | None
    is_whole: bool


class HabitsTally:
    """Learns on from habits."""

    def __init__(self, habits: Habits, mark: StepMark | None) -> None:
        self._times = list(habits.times)
        self._reports = list(habits.reports)
        self._strides = list(habits.strides)
        self._arrivals = list(habits.arrivals)
        self._bursts = list(habits.bursts)
        self._plain = habits.pauses.plain
        self._checkpoint = habits.pauses.checkpoint
        self._evaluation = habits.pauses.evaluation
        self._evaluations = habits.evaluations
        self._mark = mark
        self._usual = habits.usual

    def frozen(self) -> Habits:
        """Return the habits to go on from."""
        return Habits(
            times=tuple(self._times),
            reports=tuple(self._reports),
            strides=tuple(self._strides),
            arrivals=tuple(self._arrivals),
            bursts=tuple(self._bursts),
            pauses=Pauses(
                plain=self._plain, checkpoint=self._checkpoint, evaluation=self._evaluation
            ),
            evaluations=self._evaluations,
        )

    @property
    def mark(self) -> StepMark | None:
        """Return from where the next difference is taken."""
        return self._mark

    def forget_mark(self) -> None:
        """Take no difference over what has just been heard."""
        self._mark = None

    def step(self, pulse: Pulse, step: int, *, is_live: bool) -> Stretch | None:
        """Take in a progress line; return what lies between it and the one marked before.

        None where there is no such line, or where the clock has stood still since.
        """
        mark = self._mark
        heard = pulse.heard_at if is_live else None
        if mark is None:
            self._mark = StepMark(step=step, at=pulse.at, heard_at=heard)
            return None
        steps = step - mark.step
        interval = _interval(mark, pulse, heard)
        if interval == 0:
            self._mark = StepMark(
                step=mark.step, at=mark.at, heard_at=mark.heard_at, lines=mark.lines + 1
            )
            if is_time(pulse.seconds):
                self._time(pulse.seconds or 0.0)
            return None
        lines = mark.lines + 1
        self._mark = StepMark(step=step, at=pulse.at, heard_at=heard)
        usual_stride = median(self._strides) if len(self._strides) >= _FEWEST else steps
        is_whole = steps <= _MANY * max(usual_stride, 1) * lines
        if interval is not None:
            _keep(self._strides, steps / lines)
        return Stretch(steps, lines, _step_seconds(pulse, steps, interval), interval, is_whole)

    def learn(self, stretch: Stretch, pulse: Pulse, *, is_clean: bool) -> None:
        """Learn the time of a step, and that of a line where nothing else lay between.

        Where a checkpoint is written before each line, nothing cleaner is to be had.
        """
        is_wanted = is_clean or not self.are_known
        if stretch.step_seconds is not None and (is_wanted or is_time(pulse.seconds)):
            self._time(stretch.step_seconds)
        if is_wanted and stretch.interval is not None and stretch.is_whole:
            _keep(self._reports, stretch.interval / stretch.lines)

    def _time(self, seconds: float) -> None:
        _keep(self._times, seconds)
        self._usual = None

    @property
    def are_known(self) -> bool:
        """Return whether the time of a step and that between two lines are known well enough."""
        return len(self._times) >= _FEWEST and len(self._reports) >= _FEWEST - 1

    @property
    def usual(self) -> float | None:
        """Return the usual seconds of one step, None before a few are known."""
        if self._usual is None and len(self._times) >= _FEWEST:
            self._usual = median(self._times)
        return self._usual

    def saved(self, seconds: float) -> None:
        """Learn the length of a checkpoint of which both ends were heard."""
        self._checkpoint = max(self._checkpoint, seconds)

    def restarted(self, seconds: float) -> None:
        """Learn how long it took until the log told of a start in place."""
        if is_time(seconds):
            self._plain = max(self._plain, seconds)

    def paused(self, stretch: Stretch, announced: str, seen: str, covered: float) -> None:
        """Learn the pause in a stretch: by what was announced, else by what it turned out to be.

        ``covered`` are seconds of it of which both ends were told.
        """
        usual = self.usual
        if stretch.interval is None or usual is None or not stretch.is_whole:
            return
        beyond = stretch.interval - stretch.steps * usual
        if Phase.CHECKPOINT in (announced, seen):
            self._checkpoint = max(self._checkpoint, beyond)
        if Phase.EVALUATION in (announced, seen):
            self._evaluation = max(self._evaluation, beyond)
        if not announced:
            self._plain = max(self._plain, beyond - covered)

    def evaluated(self) -> None:
        """Count an evaluation that was seen to be over."""
        self._evaluations += 1

    def arrived(self, gap: float | None, steps: int, *, is_steady: bool) -> None:
        """Take in that ``steps`` are heard at once, ``gap`` seconds after those before.

        ``gap`` is None where something else was waited for meanwhile. Where it was not, and the
        gap is longer than what a program buffers, that is a pause nobody had announced.
        """
        if is_steady and is_time(gap):
            self._plain = max(self._plain, (gap or 0.0) - self.frozen().due)
        if is_time(gap):
            _keep(self._arrivals, gap or 0.0)
        self._bursts.append(steps)
        del self._bursts[:-KEPT]

    def arrives_with(self, steps: int) -> None:
        """Take in that more steps are heard at the same moment."""
        if self._bursts:
            self._bursts[-1] += steps


def _keep(values: list[float], value: float) -> None:
    values.append(value)
    del values[:-KEPT]


def _interval(mark: StepMark, pulse: Pulse, heard: Instant | None) -> float | None:
    """Return the seconds since the marked line, nought while the clock stands, None unknown."""
    if mark.at is not None and pulse.at is not None:
        return _seconds(pulse.at - mark.at)
    if mark.heard_at is not None and heard is not None:
        return _seconds(heard - mark.heard_at)
    if is_time(pulse.seconds):
        return (pulse.seconds or 0.0) * ((pulse.step or 0) - mark.step)
    return None


def _step_seconds(pulse: Pulse, steps: int, interval: float | None) -> float | None:
    if is_time(pulse.seconds):
        return pulse.seconds
    return None if interval is None else interval / steps


def _seconds(span: int) -> float | None:
    count = in_seconds(span)
    return count if count == 0 or is_time(count) else None
