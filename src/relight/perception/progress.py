"""How far an attempt has come: a fold over the lines that have a shape of progress.

Only a completed step and a completed checkpoint count (law 8). Logs hold several counters at
once, so each shape keeps its own series, and the most trustworthy one that moves is believed:
a framework's own line before a progress bar before a guess.
"""

from __future__ import annotations

import re
from statistics import median

import msgspec

from relight.model.instants import Instant, in_seconds
from relight.model.progress import Progress
from relight.model.records import Record
from relight.perception.prefixes import listen
from relight.perception.shapes import READS, SHAPES, Says, Shape
from relight.rules.patterns import Pattern

MOST_SERIES = 40
MOST_DIGITS = 12
KEPT_TIMES = 9
"""Step times whose median is told: enough that one slow step does not show."""

_METRIC = Pattern(
    r"(?i)loss|\blr\b|learning|reward|ppl|tok|samples|it/s|grad|throughput|elapsed|time|acc"
)
_NO_STEP = Pattern(
    r"(?i)\bval|eval|\btest|\bsav|load|resum|start|begin|skip|\bmax[ _-]?(?:step|iter)|every"
    r"|interval|warmup|before"
)
_TRAINING_BAR = re.compile(r"(?i)train|epoch|step|iter")
_OTHER_BAR = re.compile(r"(?i)\bval|eval|\btest|sanity|load|download|map|predict|token|cach|shard")
GUESS = 2
"""The tier of a shape that any program might print."""
_GUESSED_IN = 400
_FEWEST_RISES = 2
_RISES_FOR_A_FALL = 5


class Series(Record, frozen=True, kw_only=True):
    """One counter of completed steps. A rise is a step above the one before, a fall one below."""

    tier: int
    total: int = 0
    first: int
    first_at: Instant
    best: int
    last: int
    last_at: Instant
    rises: int = 0
    falls: int = 0
    needs_rises: int = 0
    seconds: tuple[float, ...] = ()
    intervals: tuple[float, ...] = ()
    """Seconds between two lines that told a higher step."""
    is_printed: bool = False
    """The line itself tells the step's time, so differences of instants are not needed."""

    @property
    def is_believed(self) -> bool:
        """Return whether the counter behaves as a count of steps does."""
        if self.tier < GUESS:
            return True
        return self.rises >= max(self.needs_rises, self.falls * _RISES_FOR_A_FALL)


class ProgressState(Record, frozen=True, kw_only=True):
    """Everything needed to go on counting."""

    series: dict[str, Series] = msgspec.field(default_factory=dict)
    best_checkpoint: int | None = None
    saving: int | None = None
    staged: int | None = None
    resumed_from: int | None = None
    resumed_somewhere: bool = False

    @property
    def progress(self) -> Progress:
        """Return what the believed counter and the checkpoints amount to."""
        counter = self.counter
        told = Progress(best_checkpoint=self.best_checkpoint, resumed_from=self.resumed_from)
        if counter is None:
            return told
        if told.resumed_from is None and self.resumed_somewhere and counter.first > 0:
            told = msgspec.structs.replace(told, resumed_from=counter.first - 1)
        return msgspec.structs.replace(
            told,
            best_step=counter.best,
            last_step=counter.last,
            first_step=counter.first,
            first_step_at=counter.first_at,
            last_step_at=counter.last_at,
            step_seconds=round(median(counter.seconds), 6) if counter.seconds else None,
            report_seconds=round(median(counter.intervals), 6) if counter.intervals else None,
        )

    @property
    def counter(self) -> Series | None:
        """Return the series to believe: of the lowest tier the first that was seen.

        A counter that has reached its total gives way to one with a greater total: what came
        before training (reading shards) is over, what comes after it (an evaluation) is shorter.
        """
        chosen: Series | None = None
        for series in self.series.values():
            if not series.is_believed:
                continue
            if (
                chosen is None
                or series.tier < chosen.tier
                or (
                    series.tier == chosen.tier
                    and 0 < chosen.total <= chosen.best
                    and series.total > chosen.total
                )
            ):
                chosen = series
        return chosen


def advanced(
    state: ProgressState, numbers: tuple[int, ...], line: bytes, at: Instant
) -> ProgressState:
    """Return the state after a line that has the shapes ``numbers`` (indexes of ``SHAPES``).

    ``at`` is the line's own time, or when it was read.
    """
    told_step = False
    for number in numbers:
        shape = SHAPES[number]
        if shape.tier == GUESS and (told_step or len(numbers) > 1):
            continue
        captures: dict[str, str] = {}
        for pattern in READS[number]:
            captures = {**(pattern.captures(line) or {}), **captures}
        told_step = told_step or shape.says is Says.STEP
        state = _told(state, shape, captures, line, at)
    return state


def without_guesses(numbers: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shapes that no other program prints: a failure's line may hold any number."""
    return tuple(number for number in numbers if SHAPES[number].tier < GUESS)


def _told(
    state: ProgressState, shape: Shape, captures: dict[str, str], line: bytes, at: Instant
) -> ProgressState:
    step = _count(captures.get("step"))
    counter = state.counter
    current = counter.best if counter else None
    match shape.says:
        case Says.STEP:
            return _stepped(state, shape, captures, line, at)
        case Says.SAVED:
            return _durable(state, step if step is not None else current)
        case Says.SAVING:
            return msgspec.structs.replace(_durable(state, state.saving), saving=step)
        case Says.STAGED:
            return msgspec.structs.replace(_durable(state, state.staged), staged=current)
        case Says.RESUMED:
            resumed = state.resumed_from if step is None else step
            return msgspec.structs.replace(state, resumed_from=resumed, resumed_somewhere=True)
        case Says.FRESH:
            if state.resumed_somewhere:
                return state
            return msgspec.structs.replace(state, resumed_from=0)


def _durable(state: ProgressState, step: int | None) -> ProgressState:
    if step is None or (state.best_checkpoint is not None and step <= state.best_checkpoint):
        return state
    return msgspec.structs.replace(state, best_checkpoint=step)


def _stepped(
    state: ProgressState, shape: Shape, captures: dict[str, str], line: bytes, at: Instant
) -> ProgressState:
    read = _read_step(shape, captures, line)
    if read is None:
        return state
    key, step, needs_rises = read
    old = state.series.get(key)
    if old is None and len(state.series) >= MOST_SERIES:
        return state
    seconds = _printed_seconds(captures)
    if old is None:
        new = Series(
            tier=shape.tier,
            total=_count(captures.get("total")) or 0,
            first=step,
            first_at=at,
            best=step,
            last=step,
            last_at=at,
            needs_rises=needs_rises,
            seconds=() if seconds is None else (seconds,),
            is_printed=seconds is not None,
        )
    elif step == old.last:
        return state
    else:
        new = _moved(old, step, at, seconds, needs_rises)
    state = msgspec.structs.replace(state, series={**state.series, key: new})
    if state.saving is not None and step > state.saving:
        state = msgspec.structs.replace(_durable(state, state.saving), saving=None)
    return state


def _moved(old: Series, step: int, at: Instant, seconds: float | None, needs_rises: int) -> Series:
    has_risen = step > old.last
    intervals = old.intervals
    if has_risen and at > old.last_at:
        intervals = (*intervals, in_seconds(at - old.last_at))[-KEPT_TIMES:]
    if seconds is None and not old.is_printed and has_risen and at > old.last_at:
        seconds = in_seconds(at - old.last_at) / (step - old.last)
    return msgspec.structs.replace(
        old,
        best=max(old.best, step),
        last=step,
        last_at=max(at, old.last_at),
        rises=old.rises + has_risen,
        falls=old.falls + (not has_risen),
        needs_rises=min(old.needs_rises, needs_rises),
        intervals=intervals,
        seconds=old.seconds if seconds is None else (*old.seconds, seconds)[-KEPT_TIMES:],
    )


def _read_step(shape: Shape, captures: dict[str, str], line: bytes) -> tuple[str, int, int] | None:
    """Return the series' key, the step, and how many rises make a guess believed."""
    step = _count(captures.get("global") or captures.get("step"))
    if step is None:
        return None
    if shape.tier == 0:
        return shape.name, step, 0
    if shape.tier == 1:
        return _read_bar(shape, captures, step)
    head = line[:_GUESSED_IN]
    if _NO_STEP.is_in(head):
        return None
    word = captures["word"].lower().replace(" ", "_")
    return f"{shape.name} {word}", step, 0 if _METRIC.is_in(head) else _FEWEST_RISES


def _read_bar(shape: Shape, captures: dict[str, str], step: int) -> tuple[str, int, int] | None:
    title = captures.get("title", "").strip()
    if step == 0 or _OTHER_BAR.search(title) or not _is_training(title):
        return None
    total = _count(captures.get("total"))
    if total is None:
        return None
    if "epoch" in captures:
        return shape.name, (_count(captures["epoch"]) or 0) * total + step, 0
    return f"{shape.name} {total}", step, 0


def _is_training(title: str) -> bool:
    """Return whether a bar's title speaks of training, or is but a prefix of rank or time."""
    return _TRAINING_BAR.search(title) is not None or not listen(title + ":").body.strip(" :")


def _count(text: str | None) -> int | None:
    """Return a number of steps, None where there is none or none that can be one."""
    if text is None or len(text) > MOST_DIGITS:
        return None
    return int(text)


def _printed_seconds(captures: dict[str, str]) -> float | None:
    try:
        if "ms" in captures:
            return float(captures["ms"]) / 1000
        if "s" in captures:
            return float(captures["s"])
        if "rate" in captures and float(captures["rate"]) > 0:
            return 1 / float(captures["rate"])
    except ValueError:
        return None
    return None
