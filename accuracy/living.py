"""Lets a life pass: steps, pauses when they are due, and the lines that tell of them or do not."""

from __future__ import annotations

import math
from collections.abc import Sequence

from accuracy.chances import Chances
from accuracy.losses import Losses
from accuracy.traits import Habit, Told, Traits
from accuracy.troubles import HANGS, Injected, Trouble
from accuracy.written import Written
from relight.model.pulses import Beat
from relight.model.records import Record

WATCHED_ON = 7_200.0
"""Seconds that a life is watched after it stopped."""
_AT_ONCE = 5.0
"""Seconds of steps of one pace."""
_BURST = 1.8
"""How many times as long a step takes while a neighbour keeps the fabric busy."""
_LONG = 0.02
"""Pauses that take much longer than usual: a file system that is busy with others."""


class Pause(Record, frozen=True, kw_only=True):
    """A time without steps that belongs to healthy work, in seconds since the start."""

    kind: str
    began: float
    ended: float
    told: Told


class Living:
    """Lets one life pass; ``now`` is its clock, in seconds since the start."""

    def __init__(self, kind: Traits, chances: Chances, wrong: Injected, end: float) -> None:
        self.now = 0.0
        self.written: list[Written] = []
        self.pauses: list[Pause] = []
        self.bursts: list[Pause] = []
        self.first_step = 0.0
        self.stopped_at = wrong.at
        self._kind = kind
        self._chances = chances
        self._wrong = wrong
        self._end = end
        self._step = 0
        self._saved = 0
        self._epoch = 0
        self._losses = Losses(kind, chances)
        self._compiles = list(kind.compiles)
        self._restarts = [kind.start_up + part * (end - kind.start_up) for part in kind.restarts]
        self._due = {
            name: kind.start_up + habit.every
            for name, habit in self._habits.items()
            if habit is not None and not habit.by_steps
        }
        self._due_step = {
            name: self._steps_between(habit)
            for name, habit in self._habits.items()
            if habit is not None and habit.by_steps
        }
        self._burst_until = 0.0

    @property
    def _habits(self) -> dict[str, Habit | None]:
        kind = self._kind
        return {
            "checkpoint": kind.saving,
            "evaluation": kind.evaluation,
            "epoch": kind.epoch,
            "burst": kind.burst,
        }

    def live(self) -> None:
        """Let it pass up to its end, or to where it stops for good."""
        self._start_up("start-up", self._kind.start_up, Told.END, since=self.now)
        hangs = self._wrong.trouble in HANGS
        while self.now < self._end:
            self._report()
            for name in self._due_now():
                self._pause(name)
            if self._restarts and self.now >= self._restarts[0]:
                self._restart()
            if hangs and self._is_over():
                break

    def _due_now(self) -> list[str]:
        by_clock = [name for name, due in self._due.items() if self.now >= due]
        return by_clock + [name for name, due in self._due_step.items() if self._step >= due]

    def _steps_between(self, habit: Habit) -> int:
        """Return in how many steps a pause returns that comes by steps: whole reports of them."""
        each = self._kind.every
        return max(round(habit.every / self._kind.step / each), 1) * each

    def _is_over(self) -> bool:
        """Cut off what was written after the life stopped, and tell whether it did."""
        wrong = self._wrong
        if self.now < wrong.at:
            return False
        if wrong.trouble is Trouble.STOPS_SAVING:
            return self._stopped_saving()
        self._cut(wrong.at)
        if wrong.trouble is Trouble.COUNTS_ON:
            at = wrong.at
            while at < wrong.at + WATCHED_ON:
                at += self._chances.between(2, 40)
                self._write(Beat.MOVED, at=at)
        return True

    def _stopped_saving(self) -> bool:
        """Stop in the first checkpoint after trouble began; elsewhere where there is none."""
        late = self.now > self._wrong.at + WATCHED_ON / 2 or self._kind.saving is None
        for pause in self.pauses:
            if pause.kind == "checkpoint" and pause.began >= self._wrong.at:
                self.stopped_at = pause.began + 0.5 * (pause.ended - pause.began)
                self._cut(self.stopped_at)
                return True
        if late:
            self.stopped_at = self.now
        return late

    def _cut(self, at: float) -> None:
        self.written = [one for one in self.written if one.at <= at]
        self.pauses = [one for one in self.pauses if one.began <= at]

    def _write(self, what: Beat, *, at: float | None = None, **values: object) -> None:
        self.written.append(Written(self.now if at is None else at, what, values))

    def _start_up(self, kind: str, lasts: float, told: Told, *, since: float) -> None:
        """Start for so long; no step was completed ``since``."""
        began = self.now
        for number in range(self._kind.milestones):
            part = (number + self._chances.next()) / self._kind.milestones
            self._write(Beat.SET_UP, at=began + lasts * part)
        self.now += lasts
        self.pauses.append(Pause(kind=kind, began=since, ended=self.now, told=told))

    def _report(self) -> None:
        """Complete as many steps as one report tells of, and write it."""
        kind = self._kind
        took = self._steps_take() * self._chances.scatter(kind.jitter / kind.every**0.5)
        if self._compiles:
            extra = self._compiles.pop(0)
            self.pauses.append(
                Pause(kind="compile", began=self.now, ended=self.now + took + extra, told=Told.END)
            )
            took += extra
        self.now += took
        self._step += kind.every
        self.first_step = self.first_step or self.now
        seconds = took / kind.every if kind.tells_seconds else None
        values = self._losses.at(self._step, self._wrong, self.now)
        what = Beat.SKIPPED if self._losses.is_skipped else Beat.STEP
        if what is Beat.SKIPPED:
            self._write(what, **values)
        self._write(Beat.STEP, step=self._step, seconds=seconds, epoch=self._epoch, **values)

    def _steps_take(self) -> float:
        """Return what the steps of one report take: the pace may change in between."""
        kind = self._kind
        at_once = max(1, int(_AT_ONCE / kind.step))
        at, left = self.now, kind.every
        while left > 0:
            steps = min(at_once, left)
            at += steps * kind.step * self._pace(at)
            left -= steps
        return at - self.now + kind.step * self._pace(at) * self._extra_steps()

    def _pace(self, at: float) -> float:
        kind = self._kind
        wave = 1 + kind.wave * math.sin(2 * math.pi * at / kind.wave_period)
        drift = 1 + kind.drift * min(at / self._end, 1)
        burst = _BURST if at < self._burst_until else 1.0
        return wave * drift * burst * self._wrong.factor(at)

    def _extra_steps(self) -> float:
        """Return the steps' worth of time that slow and stray steps of a report add."""
        kind = self._kind
        extra = 0.0
        if kind.slow_each:
            before, after = (
                self._step // kind.slow_each,
                (self._step + kind.every) // kind.slow_each,
            )
            extra += (after - before) * (kind.slow_by - 1)
        if self._chances.happens(min(kind.hiccup * kind.every, 1)):
            stray = self._chances.between(1, 7)
            ended = self.now + kind.step * (kind.every + stray)
            self.pauses.append(
                Pause(kind="stray step", began=self.now, ended=ended, told=Told.NOTHING)
            )
            extra += stray
        return extra

    def _pause(self, name: str) -> None:
        habit = self._habits[name]
        if habit is None:
            return
        lasts = habit.lasts * self._chances.scatter(habit.scatter)
        if name != "burst" and self._chances.happens(_LONG):
            lasts *= self._chances.between(1.5, 3)
        if habit.by_steps:
            self._due_step[name] = self._step + self._steps_between(habit)
        else:
            self._due[name] = self.now + lasts + habit.every * self._chances.between(0.98, 1.02)
        began, ended = self.now, self.now + lasts
        if name == "burst":
            self._burst_until = ended
            self.bursts.append(Pause(kind=name, began=began, ended=ended, told=habit.told))
            return
        if name == "epoch":
            self._epoch += 1
        self._tell(name, habit.told, began, ended)
        if name == "checkpoint":
            self._saved = self._step
        if habit.told is Told.BESIDE:
            return
        self.now = ended
        self.pauses.append(Pause(kind=name, began=began, ended=ended, told=habit.told))

    def _tell(self, name: str, told: Told, began: float, ended: float) -> None:
        if name == "epoch":
            return
        is_saving = name == "checkpoint"
        first, last = (Beat.SAVING, Beat.SAVED) if is_saving else (Beat.EVALUATING, Beat.EVALUATED)
        if told in (Told.BOTH, Told.BEGIN, Told.COUNTED, Told.BESIDE):
            self._write(first, at=began, step=self._step)
        if told is Told.COUNTED:
            at = began + 8
            while at < ended:
                self._write(Beat.MOVED, at=at)
                at += self._chances.between(4, 12)
        if told in (Told.BOTH, Told.END, Told.COUNTED, Told.BESIDE):
            self._write(last, at=ended, step=self._step)

    def _restart(self) -> None:
        """Start again in place, from the last checkpoint."""
        self._restarts.pop(0)
        self._step = self._saved
        self._due_step = {
            name: self._saved + self._steps_between(habit)
            for name, habit in self._habits.items()
            if habit is not None and habit.by_steps
        }
        told = Told.END if self._kind.restart_told else Told.NOTHING
        self._compiles = list(self._kind.compiles)
        stopped = self.now
        self.now += self._chances.between(10, 60)
        lasts = 0.7 * self._kind.start_up
        began = self.now
        self._start_up("restart", lasts, told, since=stopped)
        if self._kind.restart_told:
            self._write(Beat.RESUMED, at=began + 0.9 * lasts, step=self._step)


def longest(pauses: Sequence[Pause]) -> float:
    """Return the longest of some pauses in seconds, 0 where there is none."""
    return max((one.ended - one.began for one in pauses), default=0.0)
