"""Follows the pulses of an attempt: what it does, when it last got on, what is usual for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import msgspec

from relight.model.instants import Instant, between, in_seconds, seconds
from relight.model.pulses import Beat, Pulse
from relight.perception.rhythm.habits import HabitsTally, Stretch
from relight.perception.rhythm.numerics import NumbersTally
from relight.perception.rhythm.paces import BIN, PaceTally
from relight.perception.rhythm.states import Phase, Rhythm, is_time

GAP = seconds(60)
"""Without being followed for this long, what is heard next says nothing of when it happened."""
FIRST_STEPS = 5
"""Steps of a start that compile, fill caches and find a loss scale, as NVRx leaves them out."""
FIRST_LINES = 3
_FAR = 5
"""Reports by which a counter must fall to have started again: ranks overlap by one or two."""
_SOON = 0.5
"""Of the usual interval: a step that is told sooner was over before the pause began."""
_LATE = 2
"""Usual intervals after which no rank tells a step that another one has told before."""
MOST_TROUBLES = 8
_UNANNOUNCED = frozenset({Phase.STEADY, Phase.FIRST_STEPS})
"""Phases in which nothing but steps is waited for."""


def follow(  # noqa: PLR0913 - how it was listened, beside what was heard
    rhythm: Rhythm,
    pulses: Sequence[Pulse],
    now: Instant,
    *,
    is_behind: bool = False,
    has_grown: bool = False,
    width: float = BIN,
) -> Rhythm:
    """Return the rhythm after ``pulses``, in their order.

    It is to be called at each round of listening, without pulses too: that is how it is known
    that there was nothing to hear. ``is_behind`` says that what was read did not reach the end
    of its files: then, and for what comes right after it, the moment of hearing is not that of
    writing. ``has_grown`` says that the log has grown, whatever it told.
    ``width`` is that of the bins of its pace, in seconds.
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
    tally = _Tally(rhythm, now, PaceTally(rhythm.pace, width), is_live=is_live)
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

    def __init__(self, rhythm: Rhythm, now: Instant, pace: PaceTally, *, is_live: bool) -> None:
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
        self._paused_after = rhythm.paused_after
        self._paused_at = rhythm.paused_at
        self._paused_printed_at = rhythm.paused_printed_at
        self._covered = rhythm.covered
        self._restarted_after = rhythm.restarted_after
        self._arrived_at = rhythm.arrived_at
        self._heard_at = rhythm.heard_at
        self._waited_in = rhythm.waited_in
        self._last: Pulse | None = None
        self._total = rhythm.total
        self._habits = HabitsTally(rhythm.habits, rhythm.mark)
        self._pace = pace
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
            paused_after=self._paused_after,
            paused_at=self._paused_at,
            paused_printed_at=self._paused_printed_at,
            covered=self._covered,
            restarted_after=self._restarted_after,
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
        self._is_restarted(pulse)
        is_pausing = self._is_before_pause(pulse, step)
        stretch = self._habits.step(pulse, step, is_live=self._is_live)
        if stretch is not None:
            self._between(pulse, step, stretch, is_pausing=is_pausing)
        self._last_steps = 1 if self._best is None else step - self._best
        self._first = step if self._first is None else self._first
        self._best = step
        self._lines += 1
        self._last = pulse
        self._total = pulse.total
        self._progressed_at = pulse.heard_at
        if not is_pausing:
            self._pauses_no_more()
            self._enter(self._usual_phase(), pulse)

    def _is_restarted(self, pulse: Pulse) -> None:
        """Learn how long the log may stay silent before it tells of a start in place.

        What was seen of it once may be twice as long, but not longer than the whole start.
        """
        if self._restarted_after and self._is_live and self._progressed_at is not None:
            whole = in_seconds(pulse.heard_at - self._progressed_at)
            self._habits.restarted(min(2 * self._restarted_after, whole))
        self._restarted_after = 0.0

    def _is_before_pause(self, pulse: Pulse, step: int) -> bool:
        """Return whether a step was completed before the pause that was told before it.

        Ranks write to one file: one says that a checkpoint of a step begins, before or after
        another tells the step. Where the pause names no step, what is heard sooner than a step
        can be over came before it.
        """
        if self._paused_after is None or not (self._announced or self._seen):
            return False
        if step <= self._paused_after:
            return True
        is_next = self._best is None or self._best <= self._paused_after
        if not (is_next and self._is_live) or self._paused_at is None:
            return False
        report = self._habits.frozen().report or 0.0
        since = pulse.heard_at - self._paused_at
        if pulse.at is not None and self._paused_printed_at is not None:
            since = pulse.at - self._paused_printed_at
        return in_seconds(since) <= _SOON * report

    def _pauses(self, pulse: Pulse) -> None:
        """Note after which step a pause was told."""
        self._paused_after = self._best if pulse.step is None else pulse.step
        self._paused_at = pulse.heard_at
        self._paused_printed_at = pulse.at

    def _pauses_no_more(self) -> None:
        self._announced = self._seen = ""
        self._paused_after = self._paused_at = self._paused_printed_at = None
        self._covered = 0.0

    def _behind(self, pulse: Pulse, step: int, fall: int) -> None:
        """Take in a step that is not above the best: told again, or after a restart in place."""
        if fall == 0:
            self._numbers.measured(pulse)
            if pulse.data_seconds is not None:
                self._pace.waited(pulse.data_seconds * self._last_steps)
        elif fall > _FAR * self._last_steps or self._has_stood_still(pulse):
            self._start(pulse)
            self._numbers.forget()
            self._step(pulse, step)

    def _has_stood_still(self, pulse: Pulse) -> bool:
        """Return whether a lower step is told later than any rank of the same start would."""
        if not self._is_live or self._phase not in _UNANNOUNCED or self._progressed_at is None:
            return False
        due = self._habits.frozen().due
        return due > 0 and in_seconds(pulse.heard_at - self._progressed_at) > _LATE * due

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

    def _between(self, pulse: Pulse, step: int, stretch: Stretch, *, is_pausing: bool) -> None:
        """Learn from what lay between two progress lines.

        ``is_pausing`` says that the pause that was told comes after both.
        """
        said, seen = ("", "") if is_pausing else (self._announced, self._seen)
        if Phase.EVALUATION in (seen, said):
            self._habits.evaluated()
        ends_epoch = self._phase is Phase.END_OF_EPOCH
        is_clean = not (said or seen or ends_epoch)
        if self._is_warm:
            announced = Phase.EVALUATION if ends_epoch and not said else said
            covered = 0.0 if is_pausing else self._covered
            self._habits.paused(stretch, announced, seen, covered)
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
        self._pauses(pulse)
        self._enter(phase, pulse)

    def _saved(self, pulse: Pulse) -> None:
        self._patient_at = pulse.heard_at
        if not self._lines:
            return
        self._seen = Phase.CHECKPOINT.value
        self._progressed_at = pulse.heard_at
        self._pauses(pulse)
        if self._phase is Phase.CHECKPOINT:
            self._announced = ""
            if self._is_live and self._phase_since is not None:
                took = in_seconds(pulse.heard_at - self._phase_since)
                self._covered += took
                self._habits.saved(took)
            self._enter(self._usual_phase(), pulse)

    def _evaluated(self, pulse: Pulse) -> None:
        self._patient_at = pulse.heard_at
        if not self._lines:
            return
        self._seen = Phase.EVALUATION.value
        self._pauses(pulse)
        self._enter(Phase.EVALUATION, pulse)

    def _start(self, pulse: Pulse) -> None:
        """Begin anew where processes start in place or a checkpoint is taken up."""
        if self._is_live and self._phase is Phase.STEADY and self._progressed_at is not None:
            self._restarted_after = in_seconds(pulse.heard_at - self._progressed_at)
            self._habits.restarted(self._restarted_after)
        self._patient_at = pulse.heard_at
        self._enter(Phase.STARTUP, pulse)
        self._lines = 0
        self._first = self._best = None
        self._last_steps = 1
        self._pauses_no_more()
        self._habits.forget_mark()
        self._pace.cut()

    def _enter(self, phase: Phase, pulse: Pulse) -> None:
        if phase is not self._phase:
            self._phase = phase
            self._phase_since = pulse.heard_at
