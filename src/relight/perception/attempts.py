"""Perception: a fold from the bytes of an attempt's files to findings and progress.

The same bytes give the same findings and the same progress, however they were cut into
readings. What must be remembered between readings is one value, which can be stored with the
findings and taken up by another process.

A flood is thinned: of each (rule, fingerprint) the first ``FIRST_FINDINGS`` lines each make a
finding, after that the lines whose count is a power of two, and their ``count`` says how many
lines they stand for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

import msgspec

from relight.model.allowances import Allowances
from relight.model.findings import Finding
from relight.model.instants import Instant
from relight.model.progress import Progress
from relight.model.pulses import Pulse
from relight.model.records import Record
from relight.model.signals import FileUnseen, Mark, Reading
from relight.perception.ears import Ears
from relight.perception.lines import FileState
from relight.perception.listening import Listener
from relight.perception.memories import Memory
from relight.perception.progress.sampling import GRID, Grid
from relight.perception.progress.states import ProgressState
from relight.perception.progress.tallies import Tally
from relight.perception.rhythm.beats import MOST_PULSES, Beats, BeatsState
from relight.perception.rhythm.following import excuse, follow
from relight.perception.rhythm.paces import width_of
from relight.perception.rhythm.states import Rhythm
from relight.perception.rhythm.watching import judge


class PerceptionState(Record, frozen=True, kw_only=True):
    """Everything needed to go on perceiving one attempt."""

    files: dict[str, FileState] = msgspec.field(default_factory=dict)
    counts: dict[str, int] = msgspec.field(default_factory=dict)
    """Lines heard of each (rule, fingerprint), told or not."""
    progress_state: ProgressState = ProgressState()
    unseen: dict[str, str] = msgspec.field(default_factory=dict)
    """Files that could not be read when last tried, and why."""
    beats: BeatsState = BeatsState()
    rhythm: Rhythm = Rhythm()

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
    """What readings led to: the state to go on from, what was found, how far the attempt is.

    ``pulses`` are the last of those that the readings held.
    """

    state: PerceptionState
    findings: tuple[Finding, ...]
    progress: Progress
    progress_changed: bool
    pulses: tuple[Pulse, ...] = ()


def perceive(  # noqa: PLR0913 - what is heard, with what ears, and what is made of it
    state: PerceptionState,
    readings: Sequence[Reading | FileUnseen],
    now: Instant,
    ears: Ears,
    *,
    grid: Grid | None = GRID,
    allowances: Allowances | None = None,
    earlier: float | None = None,
) -> Perceived:
    """Return what ``readings`` tell, in their order, and by ``now`` what they have not told.

    With ``allowances`` it is judged whether the attempt is silent, slow or in numeric trouble:
    for that, it is to be called at each round, without readings too when files were looked at
    and held nothing new. ``earlier`` are the usual seconds of one step of the attempts before.
    Without ``allowances`` nobody waits for the attempt: no pulses are made, and up to ``now``
    nothing is expected of it.

    Where a log tells a step on most of its lines, some of them are enough; ``grid`` says
    which; without one none is left out, which shows that the figures are the same.

    A line is heard when it is complete: at its line feed, or at the carriage return of a
    progress bar. Bytes that were read before are passed over; after a gap the unfinished line
    is dropped. ``now`` stands in where a line prints no time.
    """
    files = dict(state.files)
    unseen = dict(state.unseen)
    beats = None if allowances is None else Beats(state.beats, now)
    memory = _memory(state, grid, beats)
    ends: dict[str, bool] = {}
    has_grown = False
    for reading in readings:
        match reading:
            case Reading():
                unseen.pop(reading.file, None)
                listener = Listener(files.get(reading.file, FileState()), memory, ears, now)
                files[reading.file] = listener.read(reading)
                ends[reading.file] = reading.at_end
                has_grown = has_grown or bool(reading.data)
            case FileUnseen():
                unseen[reading.file] = reading.why
            case _:
                assert_never(reading)
    if allowances is None or beats is None:
        begun = state.rhythm.since is not None
        rhythm = excuse(state.rhythm, now) if begun else state.rhythm
        return _perceived(state, files, unseen, memory, rhythm)
    rhythm = follow(
        state.rhythm,
        beats.pulses,
        now,
        is_behind=not all(ends.values()),
        has_grown=has_grown,
        width=width_of(allowances),
    )
    found = judge(
        rhythm,
        now,
        attempt=ears.attempt,
        allowances=allowances,
        heard_at=now if _were_heard(rhythm, ends) else None,
        earlier=earlier,
        tails=_last_lines(rhythm, files),
    )
    memory.findings += found.findings
    return _perceived(state, files, unseen, memory, found.rhythm)


def conclude(state: PerceptionState, now: Instant, ears: Ears) -> Perceived:
    """Return what the unfinished last line of each file tells, once nothing more is to come."""
    files = dict(state.files)
    memory = _memory(state, GRID, None)
    for name, file in state.files.items():
        files[name] = Listener(file, memory, ears, now).finish(name)
    return _perceived(state, files, dict(state.unseen), memory, state.rhythm)


def _memory(state: PerceptionState, grid: Grid | None, beats: Beats | None) -> Memory:
    return Memory(
        counts=dict(state.counts), progress=Tally(state.progress_state), grid=grid, beats=beats
    )


def _were_heard(rhythm: Rhythm, ends: Mapping[str, bool]) -> bool:
    """Return whether the files were read to their end, above all the one that tells steps."""
    if rhythm.place is not None and rhythm.place.file not in ends:
        return False
    return bool(ends) and all(ends.values())


def _last_lines(rhythm: Rhythm, files: Mapping[str, FileState]) -> tuple[str, ...]:
    """Return the last lines of the file that tells steps, else of the first one."""
    name = rhythm.place.file if rhythm.place is not None else min(files, default="")
    return files[name].shown if name in files else ()


def _perceived(
    before: PerceptionState,
    files: dict[str, FileState],
    unseen: dict[str, str],
    memory: Memory,
    rhythm: Rhythm,
) -> Perceived:
    beats = memory.beats
    after = PerceptionState(
        files=files,
        counts=memory.counts,
        progress_state=memory.progress.frozen(),
        unseen=unseen,
        beats=before.beats if beats is None else beats.frozen(),
        rhythm=rhythm,
    )
    progress = after.progress
    return Perceived(
        state=after,
        findings=tuple(memory.findings),
        progress=progress,
        progress_changed=progress != before.progress,
        pulses=() if beats is None else tuple(beats.pulses[-MOST_PULSES:]),
    )
