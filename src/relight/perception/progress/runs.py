"""Tells apart the runs that one file holds one after the other.

Requeued jobs append to their file, loops in a script start the same program again, launchers
restart workers in place. A new run begins

- where a line that only a start prints follows a completed step, or a failure or an end when
  the run before had printed the same line: all ranks print theirs before anybody steps;
- where the main counter falls back after a failure or an end, or to where it began without
  having counted epochs. A step back alone is none: frameworks roll back in place.

What comes after training (an evaluation by a program of its own) is no run: a last run without
a step and without a finding belongs to the one before, when that one had come to its end.
"""

from __future__ import annotations

import msgspec

from relight.model.records import Record
from relight.model.reports import Run
from relight.perception.progress.readings import Told
from relight.perception.progress.states import ProgressState, Series
from relight.perception.progress.tallies import Tally
from relight.perception.shapes import SHAPES
from relight.perception.shapes.entries import EPOCH, GUESS, OWN, Says

MOST_RUNS = 400
"""Runs kept of one file; of more, those in the middle are left out."""
_FAR = 5
"""Reports by which a counter must fall to have fallen for good: ranks overlap by one or two."""
_WHOLE_EPOCHS = 1 << 40


class RunsState(Record, frozen=True, kw_only=True):
    """The runs that are over, and what is known of the one that goes on."""

    done: tuple[Run, ...] = ()
    number: int = 0
    first_line: int = 1
    state: ProgressState = ProgressState()
    is_hurt: bool = False
    """A failure was told after the last step."""
    has_ended: bool = False
    """The processes were told to be gone after the last step."""
    has_failed: bool = False
    banners: tuple[str, ...] = ()
    """Lines of a start that this run has printed, by their shapes and expressions."""

    def closed(self, last_line: int) -> tuple[Run, ...]:
        """Return all runs of a file that ends with that line, the first one first."""
        last = Run(
            number=self.number,
            first_line=self.first_line,
            last_line=max(last_line, self.first_line),
            progress=self.state.progress,
        )
        if not self.done or not self._is_aftermath(self.done[-1]):
            return (*self.done, last)
        before = msgspec.structs.replace(
            self.done[-1],
            last_line=last.last_line,
            progress=msgspec.structs.replace(self.done[-1].progress, is_finished=True),
        )
        return (*self.done[:-1], before)

    def _is_aftermath(self, before: Run) -> bool:
        counter = self.state.counter
        has_stepped = bool(self.state.waiting) or (counter is not None and counter.tier < EPOCH)
        is_over = before.progress.is_finished or self.state.is_finished
        return is_over and not (has_stepped or self.has_failed)


class RunTally:
    """Counts on from the runs of one file."""

    def __init__(self, state: RunsState) -> None:
        self._state = state
        self._tally = Tally(state.state)

    def frozen(self) -> RunsState:
        """Return the state to go on from."""
        return msgspec.structs.replace(self._state, state=self._tally.frozen())

    @property
    def number(self) -> int:
        """Return the number of the run that goes on, from 0."""
        return self._state.number

    @property
    def knows_its_counter(self) -> bool:
        """Return whether a counter is believed that was not guessed."""
        counter = self._tally.counter
        return counter is not None and counter.tier < GUESS

    @property
    def tally(self) -> Tally:
        """Return the counts of the run that goes on."""
        return self._tally

    def found(self, *, is_failure: bool) -> None:
        """Take note of a finding in this run."""
        if is_failure:
            self._note(has_failed=True, is_hurt=True)

    def stepping(self, told: Told, line: int) -> None:
        """Take note of a step that is about to be counted; it may begin a new run."""
        old = self._tally.series_of(told)
        if old is not None and self._begins_anew(old, told):
            self._new_run(line)
        if self._state.is_hurt or self._state.has_ended:
            is_step = old is None or told.step > old.shown
            if is_step and told.shape.tier <= GUESS:
                self._note(is_hurt=False, has_ended=False)

    def marked(self, number: int, line: int) -> None:
        """Take note of a line of ``SHAPES`` that may begin or end a run."""
        shape = SHAPES[number]
        match shape.says:
            case Says.LAUNCHED | Says.SET_UP:
                self._started(shape.name, line, is_launcher=shape.says is Says.LAUNCHED)
            case Says.ENDED:
                self._note(has_ended=True)
            case _:
                pass

    def _started(self, banner: str, line: int, *, is_launcher: bool) -> None:
        state = self._state
        counter = self._tally.counter
        has_stepped = counter is not None and (counter.tier < GUESS or counter.rises > 0)
        was_seen = banner in state.banners
        is_over = state.has_ended or (state.is_hurt and is_launcher)
        if has_stepped or (was_seen and is_over):
            self._new_run(line)
        if banner not in self._state.banners:
            self._note(banners=(*self._state.banners, banner))

    def _begins_anew(self, old: Series, told: Told) -> bool:
        fall = _fall(old, told)
        stride = max(old.strides, default=1)
        if fall <= 0:
            return False
        if self._state.has_ended:
            return fall > stride
        if old.falls or fall <= _FAR * stride:
            return False
        is_own = told.shape.tier == OWN and told.epoch is None and not told.shape.only_rises
        return self._state.is_hurt or (is_own and told.step <= old.first)

    def _new_run(self, line: int) -> None:
        state = self._state
        over = Run(
            number=state.number,
            first_line=state.first_line,
            last_line=max(line - 1, state.first_line),
            progress=self._tally.frozen().progress,
        )
        done = (*state.done, over)
        if len(done) > MOST_RUNS:
            half = MOST_RUNS // 2
            done = (*done[:half], *done[-half:])
        self._state = RunsState(done=done, number=state.number + 1, first_line=line)
        self._tally = Tally(ProgressState())

    def _note(self, **values: bool | tuple[str, ...]) -> None:
        self._state = msgspec.structs.replace(self._state, **values)


def _fall(old: Series, told: Told) -> int:
    """Return by how much a counter is below where it was; the next epoch is no fall."""
    if told.shape.epoch_from is None or told.epoch is None or old.epoch is None:
        return old.shown - told.step
    if told.epoch == old.epoch:
        return old.peak - told.step
    return -1 if told.epoch > old.epoch else _WHOLE_EPOCHS
