"""Follows the pulses of an attempt: what it does, when it last got on, what is usual for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import msgspec

from relight.model.instants import Instant, between, in_seconds, seconds
from relight.model.pulses import Beat, Pulse
from relight.perception.rhythm.habits import HabitsTally, Stretch
from relight.perception.rhythm.numerics import NumbersTally
from relight.perception.rhythm.paces import PaceTally
from relight.perception.rhythm.states import Phase, Rhythm, is_time

GAP = seconds(60)
"""Without being followed for this long, what is heard next says nothing of when it happened."""
FIRST_STEPS = 5
"""Steps of a start that compile, fill caches and find a loss scale, as NVRx leaves them out."""
FIRST_LINES = 3
_FAR = 5
"""Reports by which a counter must fall to have started again: ranks overlap by one or two."""
MOST_TROUBLES = 8
_UNANNOUNCED = frozenset({Phase.STEADY, Phase.FIRST_STEPS})
"""Phases in which nothing but steps is waited for."""


def follow(
    rhythm: Rhythm,
    pulses: Sequence[Pulse],
    now: Instant,
    *,
    is_behind: bool = False,
    has_grown: bool = False,
) -> Rhythm:
    """Return the rhythm after ``pulses``, in their order.

    It is to be called at each round of listening, without pulses too: that is how it is known
    that there was nothing to hear. ``is_behind`` says that what was read did not reach the end
    of its files: then, and for what comes right after it, the moment of hearing is not that of
    writing. ``has_grown`` says that the log has grown, whatever it told.
    """
    last = rhythm.followed_at
    is_unbroken = last is not None and between(last, now) <= GAP
    is_live = rhythm.is_live if last == now else is_unbroken and not rhythm.is_behind
    is_live = is_live and not is_behind
    if not pulses and rhythm.since is not None:
        return msgspec.structs.replace(
            rhythm,
            followed_at=now,
            listening_since=rhythm.listening_since if is_unbroken else now,
            is_behind=is_behind,
            is_live=is_live,
            grew_at=now if has_grown else rhythm.grew_at,
        )
    tally = _Tally(rhythm, now, is_live=is_live)
    for pulse in pulses:
        tally.take(pulse)
    return tally.frozen(is_behind=is_behind, has_grown=has_grown, is_unbroken=is_unbroken)


def excuse(rhythm: Rhythm, now: Instant) -> Rhythm:
    """Return the rhythm of an attempt of which up to ``now`` nothing is expected.

    What it did not do until then is no silence, and no time is taken over it. Numeric trouble
    that nobody wanted to know of is forgotten.
    """
    return msgspec.structs.replace(rhythm, excused_at=now, mark=None, arrived_at=None, troubles=())


class _Tally:
    """Follows on from a rhythm; in between it changes in place, since pulses may be many."""

    def __init__(self, rhythm: Rhythm, now: Instant, *, is_live: bool) -> None:
        self._old = rhythm
        self._now = now
        self._is_live = is_live
        self._phase = rhythm.phase
        self._phase_since = rhythm.phase_since or now
        self._progressed_at = rhythm.progressed_at
        self._patient_at = rhythm.patient_at
        self._first = rhythm.first
        self._best = rhythm.best
        self._last_steps = 1
        self._lines = rhythm.lines
        self._announced = rhythm.announced
        self._seen = rhythm.seen
        self._arrived_at = rhythm.arrived_at
        self._heard_at = rhythm.heard_at
        self._waited_in = rhythm.waited_in
        self._last: Pulse | None = None
        self._total = rhythm.total
        self._habits = HabitsTally(rhythm.habits, rhythm.mark)
        self._pace = PaceTally(rhythm.pace)
        self._numbers = NumbersTally(rhythm.numbers)

    def frozen(self, *, is_behind: bool, has_grown: bool, is_unbroken: bool) -> Rhythm:
        old, now, last = self._old, self._now, self._last
        troubles = (*old.troubles, *self._numbers.troubles)[-MOST_TROUBLES:]
        return Rhythm(
            since=old.since or now,
            followed_at=now,
            listening_since=old.listening_since if is_unbroken else now,
            is_behind=is_behind,
            is_live=self._is_live,
            grew_at=now if has_grown else old.grew_at,
            phase=self._phase,
            phase_since=self._phase_since,
            progressed_at=self._progressed_at,
            patient_at=self._patient_at,
            excused_at=old.excused_at,
            mark=self._habits.mark,
            first=self._first,
            best=self._best,
            lines=self._lines,
            announced=self._announced,
            seen=self._seen,
            arrived_at=self._arrived_at,
            heard_at=self._heard_at,
            waited_in=self._waited_in,
            step_at=old.step_at if last is None else last.at,
            place=old.place if last is None else last.place,
            text=old.text if last is None else last.text,
            total=self._total,
            has_stepped=old.has_stepped or last is not None,
            habits=self._habits.frozen(),
            pace=self._pace.frozen(),
            numbers=self._numbers.frozen(),
            troubles=troubles,
            judged_at=old.judged_at,
            told_silence=old.told_silence,
        )

    def take(self, pulse: Pulse) -> None:
        """Take in one pulse."""
        if pulse.heard_at != self._heard_at:
            self._heard_at = pulse.heard_at
            self._waited_in = self._phase
        match pulse.what:
            case Beat.STEP if pulse.step is None:
                self._numbers.measured(pulse)
            case Beat.STEP:
                self._step(pulse, pulse.step or 0)
            case Beat.SAVING:
                self._announce(Phase.CHECKPOINT, pulse)
            case Beat.EVALUATING:
                self._announce(Phase.EVALUATION, pulse)
            case Beat.SAVED:
                self._saved(pulse)
            case Beat.EVALUATED:
                self._evaluated(pulse)
            case Beat.SET_UP | Beat.RESUMED:
                self._start(pulse)
            case Beat.MOVED | Beat.SKIPPED | Beat.FINISHED:
                self._beside(pulse)
            case _:
                assert_never(pulse.what)

    def _beside(self, pulse: Pulse) -> None:
        """Take in a sign that something goes on which is neither a step nor a pause."""
        self._patient_at = pulse.heard_at
        if pulse.what is Beat.SKIPPED:
            self._numbers.skipped(pulse)
        elif pulse.what is Beat.FINISHED:
            self._enter(Phase.FINISHED, pulse)

    def _step(self, pulse: Pulse, step: int) -> None:
        if self._best is not None and step <= self._best:
            self._behind(pulse, step, self._best - step)
            return
        self._numbers.stepped()
        self._numbers.measured(pulse)
        self._arrives(pulse, step)
        stretch = self._habits.step(pulse, step, is_live=self._is_live)
        if stretch is not None:
            self._between(pulse, step, stretch)
        self._last_steps = 1 if self._best is None else step - self._best
        self._first = step if self._first is None else self._first
        self._best = step
        self._lines += 1
        self._last = pulse
        self._total = pulse.total
        self._progressed_at = pulse.heard_at
        self._announced = self._seen = ""
        self._enter(self._usual_phase(), pulse)

    def _behind(self, pulse: Pulse, step: int, fall: int) -> None:
        """Take in a step that is not above the best: told again, or after a restart in place."""
        if fall == 0:
            self._numbers.measured(pulse)
            if pulse.data_seconds is not None:
                self._pace.waited(pulse.data_seconds * self._last_steps)
        elif fall > _FAR * self._last_steps:
            self._start(pulse)
            self._numbers.forget()
            self._step(pulse, step)

    def _arrives(self, pulse: Pulse, step: int) -> None:
        if not self._is_live:
            self._arrived_at = None
            return
        steps = 0 if self._best is None else step - self._best
        if self._arrived_at == pulse.heard_at:
            self._habits.arrives_with(steps)
            return
        gap = None
        if self._arrived_at is not None and self._waited_in in _UNANNOUNCED:
            gap = in_seconds(pulse.heard_at - self._arrived_at)
        self._habits.arrived(gap, steps, is_steady=self._waited_in is Phase.STEADY)
        self._arrived_at = pulse.heard_at

    @property
    def _is_warm(self) -> bool:
        """Return whether the first steps of this start are over."""
        done = (self._best or 0) - (self._first or 0) + 1
        return self._lines >= FIRST_LINES and done >= FIRST_STEPS

    def _between(self, pulse: Pulse, step: int, stretch: Stretch) -> None:
        """Learn from what lay between two progress lines."""
        if Phase.EVALUATION in (self._seen, self._announced):
            self._habits.evaluated()
        ends_epoch = self._phase is Phase.END_OF_EPOCH
        is_clean = not (self._announced or self._seen or ends_epoch)
        if self._is_warm:
            announced = Phase.EVALUATION if ends_epoch and not self._announced else self._announced
            self._habits.paused(stretch, announced, self._seen)
        self._habits.learn(stretch, pulse, is_clean=is_clean)
        if self._is_warm and is_clean and stretch.is_whole and is_time(stretch.step_seconds):
            took = (stretch.step_seconds or 0.0) * stretch.steps
            waited = 0.0 if pulse.data_seconds is None else pulse.data_seconds * stretch.steps
            self._pace.step(pulse.at or pulse.heard_at, step, stretch.steps, took, waited)

    def _usual_phase(self) -> Phase:
        """Return what an attempt does that waits for nothing special."""
        if not self._lines:
            return Phase.STARTUP
        if self._is_at_end:
            return Phase.END_OF_EPOCH
        is_known = self._is_warm and self._habits.are_known
        return Phase.STEADY if is_known else Phase.FIRST_STEPS

    @property
    def _is_at_end(self) -> bool:
        """Return whether no further line is due before the end of the epoch, or of the run."""
        if not self._total or self._best is None:
            return False
        left = -self._best % self._total
        return left < self._last_steps

    def _announce(self, phase: Phase, pulse: Pulse) -> None:
        self._patient_at = pulse.heard_at
        if not self._lines:
            return
        self._announced = phase.value
        self._seen = ""
        self._enter(phase, pulse)

    def _saved(self, pulse: Pulse) -> None:
        self._patient_at = pulse.heard_at
        if not self._lines:
            return
        self._seen = Phase.CHECKPOINT.value
        self._progressed_at = pulse.heard_at
        if self._phase is Phase.CHECKPOINT:
            self._enter(self._usual_phase(), pulse)

    def _evaluated(self, pulse: Pulse) -> None:
        self._patient_at = pulse.heard_at
        if not self._lines:
            return
        self._seen = Phase.EVALUATION.value
        self._enter(Phase.EVALUATION, pulse)

    def _start(self, pulse: Pulse) -> None:
        """Begin anew where processes start in place or a checkpoint is taken up."""
        self._patient_at = pulse.heard_at
        self._enter(Phase.STARTUP, pulse)
        self._lines = 0
        self._first = self._best = None
        self._last_steps = 1
        self._announced = self._seen = ""
        self._habits.forget_mark()
        self._pace.cut()

    def _enter(self, phase: Phase, pulse: Pulse) -> None:
        if phase is not self._phase:
            self._phase = phase
            self._phase_since = pulse.heard_at
