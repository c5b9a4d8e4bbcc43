"""What is remembered of the rhythm of one attempt: windows of fixed size, whatever its length."""

from __future__ import annotations

from enum import StrEnum
from math import isfinite
from statistics import median

import msgspec

from relight.model.findings import Place
from relight.model.instants import Instant
from relight.model.records import Record

KEPT = 20
"""Times of which the usual one is the median, as PyTorch's and NVRx's monitors keep."""
SIGMA = 1.4826
"""Times the median absolute deviation, that is the standard deviation of a normal spread."""
_SEVERAL = 3
MOST_SECONDS = 1e8
"""What lies beyond is no time between two lines of one attempt."""


class Phase(StrEnum):
    """What an attempt is doing, as far as its log tells."""

    STARTUP = "startup"
    FIRST_STEPS = "first_steps"
    STEADY = "steady"
    CHECKPOINT = "checkpoint"
    EVALUATION = "evaluation"
    END_OF_EPOCH = "end_of_epoch"
    FINISHED = "finished"


class Pauses(Record, frozen=True, kw_only=True):
    """The longest pauses seen between two progress lines, in seconds beyond their steps.

    ``checkpoint`` and ``evaluation`` are those that the log announced; one that it did not
    announce counts as ``plain`` too, since nobody could know while it lasted.
    """

    plain: float = 0.0
    checkpoint: float = 0.0
    evaluation: float = 0.0


class StepMark(Record, frozen=True, kw_only=True):
    """The progress line from which the next difference of times is taken.

    ``heard_at`` is None where the line was not heard as it was written. ``lines`` are those
    that followed while the clock stood still: it may count whole seconds.
    """

    step: int
    at: Instant | None
    heard_at: Instant | None
    lines: int = 0


class Habits(Record, frozen=True, kw_only=True):
    """The last times of an attempt, oldest first, in seconds.

    ``times`` are those of one step, ``reports`` those between two progress lines, ``strides`` by
    how many steps these differ. ``arrivals`` are the times between two moments at which progress
    was heard, ``bursts`` how many steps came at each: what a program buffers arrives at once.
    """

    times: tuple[float, ...] = ()
    reports: tuple[float, ...] = ()
    strides: tuple[float, ...] = ()
    arrivals: tuple[float, ...] = ()
    bursts: tuple[int, ...] = ()
    pauses: Pauses = Pauses()
    evaluations: int = 0
    """Evaluations seen from their begin or end to the next step."""

    @property
    def usual(self) -> float | None:
        """Return the usual seconds of one step, None before any is known."""
        return median(self.times) if self.times else None

    @property
    def report(self) -> float | None:
        """Return the usual seconds between two progress lines."""
        return median(self.reports) if self.reports else None

    @property
    def due(self) -> float:
        """Return in how many seconds after a progress line the next one is usually heard.

        A program that buffers what it prints shows many steps at once, and then none for as
        long as these took. One burst among several is a reader that came late.
        """
        arrival = median(self.arrivals) if self.arrivals else 0.0
        largest = sorted(self.bursts, reverse=True)
        lines = largest[min(len(largest) // _SEVERAL, 1)] if largest else 0
        burst = (self.usual or 0.0) * lines
        return max(self.report or 0.0, burst, arrival)


class Bin(Record, frozen=True, kw_only=True, array_like=True):
    """Half a minute of steps: until when and which step, how many, in what time.

    ``waited`` are the seconds spent on waiting for data, as far as the log tells.
    """

    at: Instant
    step: int
    steps: float = 0.0
    seconds: float = 0.0
    waited: float = 0.0

    @property
    def pace(self) -> float:
        """Return the seconds of one step."""
        return self.seconds / self.steps


class Episode(Record, frozen=True, kw_only=True):
    """A slowdown that was told and has not passed: since when, and the pace before it."""

    since: Instant
    usual: float


class Pace(Record, frozen=True, kw_only=True):
    """The pace of an attempt over its whole life: the last bins, and the classes of older ones.

    A class is one per cent wide: ``history`` counts bins by the hundredfold logarithm of their
    pace.
    """

    bins: tuple[Bin, ...] = ()
    open: Bin | None = None
    history: dict[int, int] = msgspec.field(default_factory=dict)
    episode: Episode | None = None


class Trouble(Record, frozen=True, kw_only=True):
    """Numeric trouble that has not been told yet: its rule, where it began and what it is."""

    rule: str
    step: int | None
    at: Instant | None
    sentence: str
    text: str = ""
    place: Place | None = None


class Numbers(Record, frozen=True, kw_only=True):
    """What is remembered of losses, gradient norms and loss scales; all numbers are finite.

    The counts are of lines in a row: ``bad_losses`` without a number for a loss, ``bad_norms``
    for a gradient norm, ``overflows`` skipped at the least loss scale, ``above`` far above the
    usual loss. ``first`` are the steps at which each row began.
    """

    losses: tuple[float, ...] = ()
    highest: float = 0.0
    """The highest usual loss, without its sign."""
    scale: float | None = None
    was_skipped: bool = False
    bad_losses: int = 0
    bad_norms: int = 0
    overflows: int = 0
    above: int = 0
    below: int = 0
    is_spiking: bool = False
    first: dict[str, int] = msgspec.field(default_factory=dict)


class Rhythm(Record, frozen=True, kw_only=True):
    """The rhythm of one attempt. Instants are ours, but for ``step_at``, which the log prints.

    ``since`` is when the attempt was first listened to, ``listening_since`` since when without
    a gap, ``followed_at`` when last. ``progressed_at`` is when the last step or checkpoint was
    heard of, ``patient_at`` the last sign that something else went on, ``phase_since`` when the
    phase began. ``best`` is the highest step and ``lines`` how many progress lines there were
    since the last start in place. ``place`` and ``text`` are those of the last progress line.
    """

    since: Instant | None = None
    followed_at: Instant | None = None
    listening_since: Instant | None = None
    is_behind: bool = False
    """What was read last did not reach the end of its files."""
    is_live: bool = False
    """What was read last was heard as it was written."""
    grew_at: Instant | None = None
    phase: Phase = Phase.STARTUP
    phase_since: Instant | None = None
    progressed_at: Instant | None = None
    patient_at: Instant | None = None
    excused_at: Instant | None = None
    """Until when nobody wanted to know: a suspended job completes no step."""
    mark: StepMark | None = None
    first: int | None = None
    best: int | None = None
    lines: int = 0
    announced: str = ""
    """What the log has said since the last step to be going to wait for."""
    seen: str = ""
    """What it has said since then to be over."""
    paused_after: int | None = None
    """The step after which that was said; other ranks may tell this step later."""
    paused_at: Instant | None = None
    """When that was heard."""
    paused_printed_at: Instant | None = None
    """When that was, as the line prints."""
    restarted_after: float = 0.0
    """Seconds without progress until the log told of a start in place, nought after its steps."""
    covered: float = 0.0
    """Seconds since the last step of pauses of which both ends were heard."""
    arrived_at: Instant | None = None
    """When progress was last heard as it was written."""
    heard_at: Instant | None = None
    """When the last pulse was heard, and in which phase it had been waited for."""
    waited_in: Phase = Phase.STARTUP
    step_at: Instant | None = None
    place: Place | None = None
    text: str = ""
    total: int | None = None
    has_stepped: bool = False
    habits: Habits = Habits()
    pace: Pace = Pace()
    numbers: Numbers = Numbers()
    troubles: tuple[Trouble, ...] = ()
    """Numeric trouble that has not been told."""
    judged_at: Instant | None = None
    """The newest bin of the pace when it was last judged."""
    told_silence: Instant | None = None
    """The last progress before the silence that was told; another silence has another one."""


def spread(values: tuple[float, ...]) -> float:
    """Return the robust standard deviation of ``values``, nought for fewer than two."""
    if len(values) < 2:  # noqa: PLR2004 - one value has no spread
        return 0.0
    middle = median(values)
    return SIGMA * median(abs(value - middle) for value in values)


def is_time(seconds: float | None) -> bool:
    """Return whether ``seconds`` can be a time between two lines."""
    return seconds is not None and isfinite(seconds) and 0 < seconds < MOST_SECONDS
