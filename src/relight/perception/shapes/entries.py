"""What a shape of progress lines is: an entry of the tables in this package."""

from __future__ import annotations

from enum import StrEnum

from relight.model.progress import StepUnit
from relight.model.records import Record

OWN = 0
"""The line that a framework prints for its own main counter."""
ENGINE = 1
"""A counter of a layer below the training loop: DeepSpeed's beside Megatron's."""
SUMMARY = 2
"""A counter that is told rarely: at the end of an epoch or of a block of steps."""
BAR = 3
"""A progress bar, which any program may draw."""
GUESS = 4
"""A word and a number, which any program may print."""
CHECKPOINT = 5
"""The step in the name of a checkpoint, where nothing else tells the step."""
EPOCH = 6
"""Only epochs are counted."""


class Says(StrEnum):
    """What a line of progress tells."""

    STEP = "step"
    MEASURED = "measured"
    """How long a step takes or its loss, on a line of its own beside the step's."""
    LENGTH = "length"
    """How many steps an epoch has."""
    BATCH = "batch"
    """How many samples a step takes in."""
    SAVED = "saved"
    """A checkpoint is durable."""
    SAVING = "saving"
    """A checkpoint is being written; durable once a later step is completed."""
    STAGED = "staged"
    """A checkpoint may be only in memory; durable once the next one begins."""
    BEGUN = "begun"
    """A checkpoint is being written, and another line will tell when it is durable."""
    SAVES = "saves"
    """A checkpoint is about to be written, of which nothing else is known."""
    RESUMED = "resumed"
    FRESH = "fresh"
    """Training begins from nothing."""
    EVALUATING = "evaluating"
    """An evaluation has begun, or goes on."""
    EVALUATED = "evaluated"
    SKIPPED = "skipped"
    """A step's update was left out: its gradients overflowed."""
    NAN = "nan"
    """A loss or a gradient norm is no number, or infinite."""
    FINISHED = "finished"
    LAUNCHED = "launched"
    """A launcher or the scheduler starts the processes: printed once a start."""
    SET_UP = "set_up"
    """A process starts: printed once a start, perhaps by every rank."""
    MILESTONE = "milestone"
    """A stage of the beginning is done: a model built, a program compiled."""
    ENDED = "ended"
    """Processes of the run are gone, by the words of whoever started them."""


class Example(Record, frozen=True, kw_only=True):
    """A line of the shape and what is read in it."""

    line: str
    step: int | None = None
    seconds: float | None = None
    total: int | None = None


class Shape(Record, frozen=True, kw_only=True):
    """One shape of a line.

    ``patterns`` find the line and are short, since they run over every byte; ``reads`` take
    the values from the few lines found, as named groups: ``step``, ``total``, ``epoch``;
    the time of one step as ``s``, ``ms``, ``rate`` (steps a second) or ``span_s`` for ``span``
    steps; ``since_s``, the time since the line before; a running clock as ``clock_s``,
    ``clock_ms`` or ``unix``. Values of the groups of ``sums`` are added up to the time of one
    step. ``tier`` orders what to believe, the lowest first.

    ``epoch_from`` is set where the counter starts again each epoch, to the number of the first
    epoch. ``only_rises`` marks lines that other counters share, whose lower numbers are not
    heard; ``counts_more``, that the counter may count samples or tokens instead of steps.
    """

    name: str
    says: Says
    patterns: tuple[str, ...]
    framework: str = ""
    reads: tuple[str, ...] = ()
    sums: str = ""
    tier: int = OWN
    unit: StepUnit = StepUnit.STEP
    epoch_from: int | None = None
    only_rises: bool = False
    counts_more: bool = False
    examples: tuple[Example, ...] = ()


N = r"\d{1,12}"
"""A number of steps."""


BEGIN = r"(?:^|[ \]:>|])"
"""Where a line may begin behind what launchers and loggers write in front of it."""


def counter(  # noqa: PLR0913 - a row of a table has its columns
    name: str,
    framework: str,
    pattern: str,
    *reads: str,
    example: tuple[str, int, float | None],
    tier: int = OWN,
    unit: StepUnit = StepUnit.STEP,
    epoch_from: int | None = None,
) -> Shape:
    """Return the shape of a line that tells a completed step, with one example."""
    line, step, seconds = example
    return Shape(
        name=name,
        framework=framework,
        says=Says.STEP,
        patterns=(pattern,),
        reads=reads,
        tier=tier,
        unit=unit,
        epoch_from=epoch_from,
        examples=(Example(line=line, step=step, seconds=seconds),),
    )
