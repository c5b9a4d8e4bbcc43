"""Replays real logs with virtual time through the whole of perception."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from accuracy.clocks import pieces, polls
from accuracy.labels import LabelError
from accuracy.watching import ALLOWANCES, IDLE, Alarm
from relight.model.findings import Finding, Kind
from relight.model.instants import Instant, between, in_seconds, later, seconds
from relight.model.records import Record
from relight.model.signals import Mark, Reading
from relight.perception.attempts import PerceptionState, perceive
from relight.perception.ears import Ears

_POLL = 1.0
_ALARMS = frozenset(
    {"no-progress", "slowdown", "loss-not-a-number", "loss-spike", "loss-scale-floor"}
)
"""What detectors of rhythm tell; what signatures find is measured elsewhere."""


class Stretch(Record, frozen=True, kw_only=True):
    """A time in which a log shows no step, beyond what a step takes: by its line and length."""

    line: int
    why: str
    seconds: float


class Run(Record, frozen=True, kw_only=True):
    """One log, as the index of timelines tells of it."""

    id: str
    kind: str
    lines: int = 0
    has_timestamps: bool = False
    pauses: tuple[Stretch, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Return whether the index tells what a replay needs, not just the label."""
        return bool(self.lines)


class Replayed(Record, frozen=True, kw_only=True):
    """One log that was replayed: how many hours it lasted, and each alarm."""

    run: Run
    hours: float
    alarms: tuple[Alarm, ...]


def runs_of(folder: Path) -> list[Run]:
    """Return the runs that ``timelines/index.jsonl`` of a corpus lists; none where it is missing.

    Raises:
        LabelError: a line of the index cannot be read, or a log is missing.

    """
    index = folder / "timelines" / "index.jsonl"
    if not index.is_file():
        return []
    runs: list[Run] = []
    for number, line in enumerate(index.read_bytes().splitlines(), 1):
        try:
            run = msgspec.json.decode(line, type=Run)
        except msgspec.MsgspecError as error:
            raise LabelError(f"{index}, line {number}: {error}") from error
        if not log_of(folder, run).is_file():
            raise LabelError(f"{run.id}.log is missing: add it, or take it out of {index}")
        runs.append(run)
    return runs


def log_of(folder: Path, run: Run) -> Path:
    """Return where the log of a run lies."""
    return folder / "timelines" / f"{run.id}.log"


def replayed(run: Run, data: bytes, ears: Ears) -> Replayed:
    """Return what a reader would have been told that looked once a second while ``data`` grew."""
    pauses = {one.line: one.seconds for one in run.pauses}
    found = pieces(data, stamped=run.has_timestamps, pauses=pauses)
    state = PerceptionState()
    alarms: list[Alarm] = []
    if not found:
        return Replayed(run=run, hours=0.0, alarms=())
    begun = found[0].at
    for now, start, end in _rounds(list(polls(found, _POLL))):
        reading = Reading(
            file=run.id, offset=start, data=data[start:end], mark=Mark(offset=end), at_end=True
        )
        perceived = perceive(state, [reading], now, ears, allowances=ALLOWANCES)
        state = perceived.state
        alarms += (_alarm(one, begun, now) for one in perceived.findings if one.rule in _ALARMS)
    hours = in_seconds(between(begun, found[-1].at)) / 3600
    return Replayed(run=run, hours=hours, alarms=tuple(alarms))


def _rounds(news: list[tuple[Instant, int, int]]) -> Iterator[tuple[Instant, int, int]]:
    """Yield the polls with news, and between them rounds without, the last just before news."""
    before: tuple[Instant, int] | None = None
    for at, start, end in news:
        if before is not None:
            idle = later(before[0], IDLE)
            while idle < at - seconds(_POLL):
                yield idle, start, start
                idle = later(idle, IDLE)
            if at - before[0] > 2 * seconds(_POLL):
                yield later(at, seconds(-_POLL)), start, start
        yield at, start, end
        before = at, end


def _alarm(finding: Finding, begun: Instant, now: Instant) -> Alarm:
    return Alarm(
        kind=Kind(finding.kind),
        rule=finding.rule,
        at=in_seconds(between(begun, now)),
        sentence=finding.sentence,
    )
