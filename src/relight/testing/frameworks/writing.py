"""Fills in a framework's templates, and keeps count of what is true of the log."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from statistics import median

from relight.model.progress import StepUnit
from relight.model.records import Record
from relight.testing.frameworks.dressing import Dress, dressed
from relight.testing.frameworks.entries import Framework

_BEGIN = datetime(2026, 1, 31, 10, 0, 0, tzinfo=UTC)
_CHECKPOINTS = 4
_EVALUATIONS = 3
_WOBBLE = 0.04
"""By how much of itself a step may be slower or faster."""
_MULTIPLIER, _INCREMENT, _MODULUS = 6364136223846793005, 1442695040888963407, 1 << 64
"""Knuth's linear congruential generator of 64 bits."""


class Truth(Record, frozen=True, kw_only=True):
    """What a reader should find in a log; ``step_seconds`` is None where no line tells it."""

    first_step: int
    last_step: int
    unit: StepUnit
    step_seconds: float | None
    last_checkpoint_step: int | None
    is_finished: bool


class Generated(Record, frozen=True, kw_only=True):
    """The bytes of a log and the truth about it."""

    data: bytes
    truth: Truth


class Dice:
    """Numbers that look random and are the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._state = (seed * 2 + 1) * _INCREMENT % _MODULUS
        for _ in range(4):
            self.next()

    def next(self) -> float:
        """Return the next number from 0 up to 1."""
        self._state = (self._state * _MULTIPLIER + _INCREMENT) % _MODULUS
        return (self._state >> 11) / (1 << 53)


class Moment(Record, frozen=True, kw_only=True):
    """The fields of a template."""

    step: int
    """As the framework counts: from its first step, samples where it counts samples."""
    steps: int
    """Steps completed, counted from one."""
    total: int
    s: float
    at: datetime
    elapsed: float
    loss: float
    norm: float
    epoch: int = 0
    inner: int = 0
    per_epoch: int = 0
    every: int = 1

    @property
    def ms(self) -> float:
        """Return the time of a step in milliseconds."""
        return self.s * 1000

    @property
    def elapsed_ms(self) -> float:
        """Return the milliseconds since the first step began."""
        return self.elapsed * 1000

    @property
    def rate(self) -> float:
        """Return steps a second."""
        return 1 / self.s

    @property
    def span(self) -> float:
        """Return the seconds since the last report."""
        return self.s * self.every

    @property
    def stamp(self) -> str:
        """Return the time as Python's logging writes it."""
        return f"{self.at:%Y-%m-%d %H:%M:%S},{self.at.microsecond // 1000:03d}"

    @property
    def clock(self) -> str:
        """Return the elapsed time as tqdm writes it."""
        whole = int(self.elapsed)
        hours, rest = divmod(whole, 3600)
        short = f"{rest // 60:02d}:{rest % 60:02d}"
        return f"{hours}:{short}" if hours else short

    @property
    def speed(self) -> str:
        """Return the rate as tqdm writes it."""
        return f"{self.rate:5.2f}it/s" if self.s < 1 else f"{self.s:5.2f}s/it"

    @property
    def percent(self) -> int:
        """Return how much is done, of the epoch where there are epochs."""
        return 100 * self.inner // self.per_epoch if self.per_epoch else self.part

    @property
    def part(self) -> int:
        """Return how much of all is done."""
        return 100 * self.steps // self.total

    @property
    def bar(self) -> str:
        """Return ten characters of a bar."""
        return ("\u2588" * (self.percent // 10)).ljust(10)

    @property
    def unix_ms(self) -> int:
        """Return milliseconds since 1970."""
        return round(self.at.timestamp() * 1000)

    @property
    def unix_s(self) -> float:
        """Return seconds since 1970."""
        return self.at.timestamp()

    @property
    def before_inner(self) -> int:
        """Return the first step of this report inside its epoch."""
        return self.inner - self.every + 1

    @property
    def before(self) -> int:
        """Return the step of the last report."""
        return self.step - self.every


def write(
    framework: Framework, *, seed: int, steps: int, seconds: float, dress: Dress
) -> Generated:
    """Return the log of ``steps`` completed steps and the truth about it.

    Raises:
        ValueError: ``steps`` are fewer than the framework lets pass between two reports.

    """
    if steps < framework.every:
        raise ValueError(
            f"{framework.name} reports each {framework.every} steps; ask for no fewer than these"
        )
    moments = list(_moments(framework, seed, steps, seconds))
    lines = list(_lines(framework, moments))
    saved = _saved_at(framework, moments)
    last, first = moments[-1], moments[0]
    data = "".join(dressed(lines, dress)).encode()
    return Generated(
        data=data,
        truth=Truth(
            first_step=0 if framework.stands_at_nought else first.step,
            last_step=last.inner if framework.shows_epoch_steps else last.step,
            unit=framework.unit,
            step_seconds=median(one.s for one in moments) if framework.tells_time else None,
            last_checkpoint_step=saved[-1].step if saved and framework.saved else None,
            is_finished=framework.finishes,
        ),
    )


def _moments(framework: Framework, seed: int, steps: int, seconds: float) -> Iterator[Moment]:
    dice = Dice(seed)
    at = _BEGIN + timedelta(seconds=seed % 86_400)
    elapsed = 0.0
    every = framework.every
    for done in range(every, steps + 1, every):
        usual = seconds * (1 + _WOBBLE * (2 * dice.next() - 1))
        at += timedelta(seconds=usual * every)
        elapsed += usual * every
        per = framework.per_epoch
        epoch, inner = divmod(done - (1 - framework.first), per) if per else (0, done)
        if per and inner == 0 and framework.first == 1:
            epoch, inner = epoch - 1, per
        yield Moment(
            step=(done - 1 + framework.first) * framework.samples_a_step,
            steps=done,
            total=steps,
            s=usual,
            at=at,
            elapsed=elapsed,
            loss=2 + 8 / (1 + done / 50) + dice.next() / 10,
            norm=0.5 + dice.next(),
            epoch=epoch + framework.epoch_from,
            inner=inner,
            per_epoch=per,
            every=every,
        )


def _saved_at(framework: Framework, moments: list[Moment]) -> list[Moment]:
    each = max(len(moments) // _CHECKPOINTS, 1)
    return moments[each - 1 : -1 : each] if framework.saved else []


def _lines(framework: Framework, moments: list[Moment]) -> Iterator[str]:
    saves = {one.steps for one in _saved_at(framework, moments)}
    each = max(len(moments) // _EVALUATIONS, 1)
    yield from (_filled(one, moments[0]) for one in framework.head)
    bar = ""
    for number, moment in enumerate(moments, 1):
        shown = [_filled(one, moment) for one in framework.step]
        if framework.is_bar:
            bar += "".join("\r" + one for one in shown)
        else:
            yield from shown
        if moment.steps in saves:
            if bar:
                yield bar
                bar = ""
            yield from (_filled(one, moment) for one in framework.saved)
        if number % each == 0:
            if framework.evaluated and bar:
                yield bar
                bar = ""
            yield from (_filled(one, moment) for one in framework.evaluated)
    if bar:
        yield bar
    yield from (_filled(one, moments[-1]) for one in framework.tail)


def _filled(template: str, moment: Moment) -> str:
    return template.format(m=moment)
