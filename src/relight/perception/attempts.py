"""Perception: a fold from the bytes of an attempt's files to findings and progress.

The same bytes give the same findings and the same progress, however they were cut into
readings. What must be remembered between readings is one value, which can be stored with the
findings and taken up by another process.

A flood is thinned: of each (rule, fingerprint) the first ``FIRST_FINDINGS`` lines each make a
finding, after that the lines whose count is a power of two, and their ``count`` says how many
lines they stand for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import msgspec

from relight.model.findings import Finding
from relight.model.instants import Instant
from relight.model.progress import Progress
from relight.model.records import Record
from relight.model.signals import FileUnseen, Mark, Reading
from relight.perception.ears import Ears
from relight.perception.lines import FileState
from relight.perception.listening import Listener
from relight.perception.memories import Memory
from relight.perception.progress.sampling import GRID, Grid
from relight.perception.progress.states import ProgressState
from relight.perception.progress.tallies import Tally


class PerceptionState(Record, frozen=True, kw_only=True):
    """Everything needed to go on perceiving one attempt."""

    files: dict[str, FileState] = msgspec.field(default_factory=dict)
    counts: dict[str, int] = msgspec.field(default_factory=dict)
    """Lines heard of each (rule, fingerprint), told or not."""
    progress_state: ProgressState = ProgressState()
    unseen: dict[str, str] = msgspec.field(default_factory=dict)
    """Files that could not be read when last tried, and why."""

    @property
    def marks(self) -> dict[str, Mark]:
        """Return where to go on reading each file."""
        return {file: state.mark for file, state in self.files.items()}

    @property
    def tails(self) -> dict[str, tuple[str, ...]]:
        """Return the last lines of each file, oldest first, the unfinished one included."""
        return {file: state.shown for file, state in self.files.items()}

    @property
    def progress(self) -> Progress:
        """Return how far the attempt has come."""
        return self.progress_state.progress


class Perceived(Record, frozen=True, kw_only=True):
    """What readings led to: the state to go on from, what was found, how far the attempt is."""

    state: PerceptionState
    findings: tuple[Finding, ...]
    progress: Progress
    progress_changed: bool


def perceive(
    state: PerceptionState,
    readings: Sequence[Reading | FileUnseen],
    now: Instant,
    ears: Ears,
    *,
    grid: Grid | None = GRID,
) -> Perceived:
    """Return what ``readings`` tell, in their order.

    Where a log tells a step on most of its lines, some of them are enough; ``grid`` says
    which; without one none is left out, which shows that the figures are the same.

    A line is heard when it is complete: at its line feed, or at the carriage return of a
    progress bar. Bytes that were read before are passed over; after a gap the unfinished line
    is dropped. ``now`` stands in where a line prints no time.
    """
    files = dict(state.files)
    unseen = dict(state.unseen)
    memory = Memory(counts=dict(state.counts), progress=Tally(state.progress_state), grid=grid)
    for reading in readings:
        match reading:
            case Reading():
                unseen.pop(reading.file, None)
                listener = Listener(files.get(reading.file, FileState()), memory, ears, now)
                files[reading.file] = listener.read(reading)
            case FileUnseen():
                unseen[reading.file] = reading.why
            case _:
                assert_never(reading)
    return _perceived(state, files, unseen, memory)


def conclude(state: PerceptionState, now: Instant, ears: Ears) -> Perceived:
    """Return what the unfinished last line of each file tells, once nothing more is to come."""
    files = dict(state.files)
    memory = Memory(counts=dict(state.counts), progress=Tally(state.progress_state), grid=GRID)
    for name, file in state.files.items():
        files[name] = Listener(file, memory, ears, now).finish(name)
    return _perceived(state, files, dict(state.unseen), memory)


def _perceived(
    before: PerceptionState, files: dict[str, FileState], unseen: dict[str, str], memory: Memory
) -> Perceived:
    after = PerceptionState(
        files=files, counts=memory.counts, progress_state=memory.progress.frozen(), unseen=unseen
    )
    progress = after.progress
    return Perceived(
        state=after,
        findings=tuple(memory.findings),
        progress=progress,
        progress_changed=progress != before.progress,
    )
