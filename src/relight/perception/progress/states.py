"""What is remembered of the counters that a log holds, and the figures that they amount to.

Logs hold several counters at once, so each shape keeps its own series, and the most
trustworthy one that moves is believed: a framework's own line before a progress bar before a
guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from statistics import median

import msgspec

from relight.model.instants import Instant
from relight.model.progress import Progress, StepUnit
from relight.model.records import Record
from relight.perception.progress.timings import Class, median_of
from relight.perception.shapes.entries import GUESS

_RISES_FOR_A_FALL = 5
_SAMPLES_FROM = 10_000
_TOKENS_FROM = 20_000_000
"""MLPerf's ``epoch_num`` counts epochs, samples or tokens; the largest data set in samples has
24 million, trained by tens of epochs at most, the smallest report in tokens 50 million."""
_SAMPLES_A_STEP = 1.8
_TOKENS_A_STEP = 16_384
"""Units that one step adds: from here on they are samples, or tokens."""

_NUMBER = r"(-?\d[\d.]*(?:[eE][-+]?\d{1,3})?)"
_LOSS = re.compile(
    rf"(?i)(?:\blm loss|\bloss/tok|\"train_loss\", \"value|total_loss|train_loss|train/loss"
    rf"|\bact_loss|\bloss|\bcost|\btrl)"
    rf"[\"')]{{0,2}}[:=\s|]{{1,4}}[\"'(]?{_NUMBER}"
)
_GRAD_NORM = re.compile(
    rf"(?i)(?:grad(?:ient)?[_ /]?norm|\bg?norm)[\"')]{{0,2}}[:=\s|]{{1,4}}[\"'(]?{_NUMBER}"
)
_THROUGHPUT = (
    (re.compile(r"throughput per GPU \(TFLOP/s/GPU\): ([\d.]+)"), "TFLOP/s/GPU"),
    (re.compile(r"\btps: ([\d,.]+)"), "tokens/s/GPU"),
    (re.compile(r"Tokens/s/device: ([\d,.]+)"), "tokens/s/device"),
    (re.compile(r"([\d,.]+) tok(?:ens)?/s"), "tokens/s"),
    (re.compile(r"tok/s(?:ec)?:? ([\d,.]+)", re.IGNORECASE), "tokens/s"),
    (re.compile(r"ips: ([\d.]+) ([a-z]+/s(?:ec)?)"), ""),
    (re.compile(r"([\d.]+) ((?:samples|sequences|images|imgs|img|words|examples)/s(?:ec)?)"), ""),
    (re.compile(r"samples (?:per second|/sec): ([\d.]+)"), "samples/s"),
    (re.compile(r"\bwps[=:] ?([\d,.]+)"), "words/s"),
    (re.compile(r"CurrSamplesPerSec=([\d.]+)"), "samples/s"),
    (re.compile(r"([\d.]+) ?it/s"), "it/s"),
    (re.compile(r'"throughput": ([\d.]+)'), "samples/s"),
)


class Series(Record, frozen=True, kw_only=True):
    """One counter of completed steps. A rise is a step above the one before, a fall one below.

    ``last`` counts on over epochs, ``shown`` is as printed, and ``counts_on`` says that the log
    holds every epoch up to here, so that ``last`` is what the run has come to. ``base`` are
    the steps of the epochs before, ``peak`` the highest step of this one, ``length`` the steps
    of an epoch where the log tells them. ``mark_step`` and ``mark_clock`` (seconds) are from
    where the next difference of times is taken, and ``mark_frame`` the stretch of the file that
    they lie in.
    """

    tier: int
    unit: StepUnit = StepUnit.STEP
    total: int = 0
    first: int
    first_at: Instant | None
    best: int
    last: int
    shown: int
    last_at: Instant | None
    counts_on: bool = False
    epoch: int | None = None
    base: int = 0
    peak: int = 0
    length: int = 0
    rises: int = 0
    falls: int = 0
    needs_rises: int = 0
    mark_step: int
    mark_clock: float
    mark_frame: int = 0
    intervals: tuple[float, ...] = ()
    """Seconds between two lines that told a higher step."""
    strides: tuple[int, ...] = ()
    """By how much those lines differed."""
    is_printed: bool = False
    """The line itself tells the step's time, so differences of instants are not needed."""
    is_bar: bool = False
    counts_more: bool = False
    average: float | None = None
    line: str = ""
    """The last line that told a step."""

    @property
    def is_believed(self) -> bool:
        """Return whether the counter behaves as a count of steps does."""
        if self.tier < GUESS:
            return True
        return self.rises >= max(self.needs_rises, self.falls * _RISES_FOR_A_FALL)


class Density(Record, frozen=True, kw_only=True):
    """How thick a file's lines with a counter stand, from slot to slot."""

    slot: int = 0
    lines: int = 0
    is_flood: bool = False
    """The slot before was flooded."""


class ProgressState(Record, frozen=True, kw_only=True):
    """Everything needed to go on counting."""

    series: dict[str, Series] = msgspec.field(default_factory=dict)
    times: dict[str, dict[int, Class]] = msgspec.field(default_factory=dict)
    """The times of a step that each series has told."""
    waiting: tuple[str, ...] = ()
    """Bars that stand at nought."""
    best_checkpoint: int | None = None
    saving: int | None = None
    begun: int | None = None
    """The step of a checkpoint that another line will tell to be durable."""
    staged: int | None = None
    resumed_from: int | None = None
    resumed_somewhere: bool = False
    batch: int = 0
    """Samples that a step takes in, where the log tells them."""
    loss: float | None = None
    """Told beside the step's line."""
    skipped: int = 0
    nan_losses: int = 0
    evaluated_at: int | None = None
    is_finished: bool = False

    @property
    def counter(self) -> Series | None:
        """Return the series to believe."""
        return believed(self.series.values())

    @property
    def progress(self) -> Progress:
        """Return what the believed counter and the checkpoints amount to."""
        key = next((one for one, kept in self.series.items() if kept is self.counter), None)
        told = Progress(
            best_checkpoint=self.best_checkpoint,
            resumed_from=self.resumed_from,
            skipped=self.skipped,
            nan_losses=self.nan_losses,
            last_evaluation_at_step=self.evaluated_at,
            saving=self.saving if self.begun is None else self.begun,
            is_finished=self.is_finished,
        )
        if key is None:
            return msgspec.structs.replace(told, last_step=0) if self.waiting else told
        counter = self.series[key]
        if told.resumed_from is None and self.resumed_somewhere and counter.first > 0:
            told = msgspec.structs.replace(told, resumed_from=counter.first - 1)
        usual = median_of(self.times.get(key, {}))
        return msgspec.structs.replace(
            told,
            best_step=counter.best,
            last_step=counter.last if counter.counts_on else counter.shown,
            first_step=counter.first,
            first_step_at=counter.first_at,
            last_step_at=counter.last_at,
            step_seconds=_seconds(counter, usual, self.batch),
            report_seconds=round(median(counter.intervals), 6) if counter.intervals else None,
            unit=_unit(counter, usual),
            total=counter.total or None if counter.epoch is None else None,
            epoch=counter.epoch,
            throughput=throughput_in(counter.line),
            loss=_found(_LOSS, counter.line, self.loss),
            grad_norm=_found(_GRAD_NORM, counter.line, None),
        )


def believed(many: Iterable[Series]) -> Series | None:
    """Return the series to believe: of the lowest tier the first that was seen.

    A counter that has reached its total gives way to one with a greater total: what came
    before training (reading shards) is over, what comes after it (an evaluation) is shorter.
    """
    chosen: Series | None = None
    for series in many:
        if not series.is_believed:
            continue
        if (
            chosen is None
            or series.tier < chosen.tier
            or (
                series.tier == chosen.tier
                and 0 < chosen.total <= chosen.shown
                and series.total > chosen.total
            )
        ):
            chosen = series
    return chosen


def throughput_in(line: str) -> str:
    """Return the throughput that a line prints, with its unit, or nothing."""
    for expression, unit in _THROUGHPUT:
        match = expression.search(line)
        if match is not None:
            return f"{match[1].rstrip(',.')} {unit or match[2]}"
    return ""


def _found(expression: re.Pattern[str], line: str, otherwise: float | None) -> float | None:
    match = expression.search(line)
    try:
        return otherwise if match is None else float(match[1])
    except ValueError:
        return otherwise


def _seconds(counter: Series, usual: float | None, batch: int) -> float | None:
    if usual is None:
        return None if counter.average is None else round(counter.average, 6)
    if counter.unit is StepUnit.SAMPLE and not counter.is_printed:
        return round(usual * batch, 6) if batch else None
    if counter.unit is StepUnit.EPOCH and not counter.is_printed:
        return None
    return round(usual, 6)


def _unit(counter: Series, usual: float | None) -> StepUnit:
    """Return what the counter counts, judged by its size and its speed where it does not say."""
    if counter.unit is StepUnit.EPOCH:
        if counter.best >= _TOKENS_FROM:
            return StepUnit.TOKEN
        return StepUnit.SAMPLE if counter.best >= _SAMPLES_FROM else StepUnit.EPOCH
    if counter.counts_more and counter.is_printed and usual and counter.intervals:
        a_step = median(counter.strides) * usual / median(counter.intervals)
        if a_step >= _TOKENS_A_STEP:
            return StepUnit.TOKEN
        if a_step >= _SAMPLES_A_STEP:
            return StepUnit.SAMPLE
    return counter.unit
