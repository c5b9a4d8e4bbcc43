"""Reads one line that has a shape of progress: which step, of how many, in what time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from relight.perception.prefixes import listen
from relight.perception.shapes import COUNTERS
from relight.perception.shapes.entries import BAR, GUESS, Says, Shape
from relight.rules.patterns import Pattern

MOST_DIGITS = 15
"""Tokens of the largest runs have fourteen digits."""
MOST_EPOCH_DIGITS = 6
_GUESSED_IN = 400
"""Bytes of a line in which a bare word and number may be a step."""
_FEWEST_RISES = 2

_METRIC = Pattern(
    r"(?i)loss|\blr\b|learning|reward|ppl|perplex|tok|samples|it/s|grad[_ ]?norm|throughput|elapsed"
    r"|time|acc\b|accuracy|\bips\b|img/s|images/s|tflop|mfu|speed|xent|\bce\b|\bnll\b|sec/step"
    r"|\btrain(?:ing)?\b\W{1,4}(?:global[ _]?)?(?:step|iter|update)|[ =(]\d+\.\d{2,}(?:[ ,;|)]|$)"
)
_NO_STEP = Pattern(
    r"(?i)\bsav|load|resum|start|begin|skip|\bmax[ _-]?(?:step|iter|epoch)|every"
    r"|interval|warmup|before|restor|\bbest\b[^|]|wait|remov|delet|oom|out of memory|slurm|srun"
    r"|error|fail|abort|launch|accumul|number of|\btotal[ _](?:step|iter|train|opt)|cancel"
    r"|\bstep \d+\.\d+ on |\bjob ?(?:id|\d)|\bexit"
    r"|: (?:RUN|COPY|FROM|ENV|ADD|WORKDIR|CMD|ENTRYPOINT|ARG|USER) "
)
_FIGURE = re.compile(rb"\b[\w/]{1,60}=-?\d[\w.+-]{0,30}")
"""What a report of a step tells beside it, such as ``error_rate=0.01``."""
_STEP_WORD = re.compile(rb"(?i)step|iter|epoch|batch|update|train")
_EVALUATION = Pattern(r"(?i)\bval|eval|\btest")
_TRAINING = Pattern(r"(?i)train")
_TRAINING_BAR = re.compile(
    r"(?i)train|epoch|step|iter|episode|update|progress|optimi[sz]|round|learn|\bfit"
)
_OTHER_BAR = re.compile(
    r"(?i)\bval|eval|\btest|sanity|load|download|\bmap\b|predict|token|cach|shard|fetch|generat"
    r"|rollout|infer|process|filter|prepar|build|convert|\bread|scor|extract|index|captur|compil"
    r"|warm.?up|calib|quanti|merg|\bsav|upload|flatten|pack|plot|verif|split|resolv|copy|import"
)
_EVALUATION_BAR = re.compile(r"(?i)\bval|eval|\btest|sanity|predict|infer")
_EPOCHS_BAR = re.compile(r"(?i)\bepochs?:?$")
_CLOCK = re.compile(rb"(?<![\d:.])([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:[.,](\d{1,6}))?(?!\d)")
_CLOCK_IN = 80


class Told(NamedTuple):
    """What a line tells of a counter.

    ``step`` stands as printed, inside ``epoch`` where the shape counts so. ``seconds`` is the
    time of one step, ``clock`` a running clock in seconds, ``since`` the seconds since the
    line before of the same counter, ``average`` the mean time of all
    steps so far. ``rises`` is how often a guess must rise to be believed.
    """

    shape: Shape
    key: str
    step: int
    total: int = 0
    epoch: int | None = None
    seconds: float | None = None
    clock: float | None = None
    since: float | None = None
    average: float | None = None
    rises: int = 0
    counts_epochs: bool = False


_SUMS = tuple(re.compile(shape.sums.encode()) if shape.sums else None for shape in COUNTERS)
_RANK = tuple((shape.tier, number) for number, shape in enumerate(COUNTERS))


@cache
def _reads(number: int) -> tuple[Pattern, ...]:
    """Return the compiled ``reads`` of a counter, made when it is first met."""
    return tuple(Pattern(expression) for expression in COUNTERS[number].reads)


def captured(patterns: Sequence[Pattern], line: bytes) -> dict[str, str]:
    """Return the named groups of all ``patterns``; of one name the first that took part."""
    found: dict[str, str] = {}
    for pattern in patterns:
        captures = pattern.captures(line)
        if captures:
            found = {**captures, **found} if found else captures
    return found


def step_of(captures: dict[str, str]) -> int | None:
    """Return the step that was captured, None without one."""
    return count_of(captures.get("step"))


def count_of(text: str | None, digits: int = MOST_DIGITS) -> int | None:
    """Return a number of steps, None where there is none or none that can be one."""
    text = None if text is None else text.replace(",", "")
    if text is None or not 0 < len(text) <= digits or not text.isascii() or not text.isdigit():
        return None
    return int(text)


def read_line(numbers: Sequence[int], line: bytes, *, is_failure: bool) -> Told | None:
    """Return what a line tells by the most trustworthy counter of those found in it.

    A line that tells of a failure may hold any number, so nothing is guessed from it.
    """
    for number in sorted(numbers, key=_RANK.__getitem__):
        shape = COUNTERS[number]
        if shape.says is not Says.STEP or (is_failure and shape.tier >= GUESS):
            continue
        told = read_step(number, line)
        if told is not None:
            return told
    return None


def read_step(number: int, line: bytes) -> Told | None:
    """Return what ``line`` tells by the counter of that number, None when it tells nothing."""
    shape = COUNTERS[number]
    captures = captured(_reads(number), line)
    step = count_of(captures.get("global") or captures.get("step"))
    if step is None:
        return None
    total = count_of(captures.get("total")) or 0
    told = Told(
        shape=shape,
        key=shape.name,
        step=step,
        total=total,
        epoch=count_of(captures.get("epoch"), MOST_EPOCH_DIGITS),
        seconds=_seconds(number, captures, line),
        clock=_clock(captures),
        since=_float(captures.get("since_s")),
        average=_milliseconds(captures.get("average_ms")),
    )
    if shape.tier == BAR:
        return _bar(told, captures)
    if "word" in captures:
        return _guess(told, captures["word"], line)
    return told


class Moved(NamedTuple):
    """Where a bar stands that does not count steps, and whether it is that of an evaluation."""

    key: str
    at: int
    is_evaluation: bool


_LONGEST_KEY = 60


def read_other(numbers: Sequence[int], line: bytes) -> Moved | None:
    """Return where a bar stands that counts something else than steps, None without one."""
    for number in numbers:
        shape = COUNTERS[number]
        if shape.tier != BAR:
            continue
        captures = captured(_reads(number), line)
        count = step_of(captures)
        if count:
            title = listen(captures.get("title", "")).body.strip(" :\x08")[:_LONGEST_KEY]
            total = captures.get("total", "")
            is_evaluation = _EVALUATION_BAR.search(title) is not None
            return Moved(f"{title} {total}", count, is_evaluation)
    return None


def _bar(told: Told, captures: dict[str, str]) -> Told | None:
    title = listen(captures.get("title", "")).body.strip(" :\x08")
    if not told.total or told.step > told.total:
        return None
    if told.epoch is not None:
        return told
    if _OTHER_BAR.search(title) or (title and not _TRAINING_BAR.search(title)):
        return None
    counts_epochs = _EPOCHS_BAR.search(title) is not None
    return told._replace(key=f"{told.key} {told.total}", counts_epochs=counts_epochs)


def _guess(told: Told, word: str, line: bytes) -> Told | None:
    body = listen(line[:_GUESSED_IN].decode("latin-1")).body.encode("latin-1")
    if _NO_STEP.is_in(_FIGURE.sub(_without_figure, body)):
        return None
    if _EVALUATION.is_in(body) and not _TRAINING.is_in(body):
        return None
    key = f"{told.key} {word.lower().replace(' ', '_')}"
    is_sure = told.epoch is not None or _METRIC.is_in(body)
    return told._replace(key=key, rises=0 if is_sure else _FEWEST_RISES)


def _without_figure(found: re.Match[bytes]) -> bytes:
    return found[0] if _STEP_WORD.search(found[0]) else b""


def _float(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _milliseconds(text: str | None) -> float | None:
    number = _float(text)
    return None if number is None else number / 1000


def _seconds(number: int, captures: dict[str, str], line: bytes) -> float | None:
    seconds = _printed_seconds(captures)
    sums = _SUMS[number]
    if seconds is None and sums is not None:
        parts = [_float(part.decode()) or 0.0 for part in sums.findall(line)]
        seconds = sum(parts) if parts else None
    return seconds if seconds is not None and seconds > 0 else None


class Measured(NamedTuple):
    """What a line beside the step's tells: the seconds of one step, the loss."""

    seconds: float | None = None
    loss: float | None = None


def measured(number: int, line: bytes) -> Measured:
    """Return what a line tells of the step that another line counts."""
    captures = captured(_reads(number), line)
    return Measured(seconds=_seconds(number, captures, line), loss=_float(captures.get("loss")))


def epoch_length(number: int, line: bytes) -> int | None:
    """Return how many steps an epoch has, from the time of one and of all of them."""
    captures = captured(_reads(number), line)
    one, all_of_them = _float(captures.get("s")), _float(captures.get("sum_s"))
    if not one or not all_of_them:
        return None
    return round(all_of_them / one)


def batch_size(number: int, line: bytes) -> int | None:
    """Return how many samples a step takes in."""
    return step_of(captured(_reads(number), line))


def _printed_seconds(captures: dict[str, str]) -> float | None:
    seconds = _float(captures.get("s"))
    if seconds is not None:
        return seconds
    ms = _float(captures.get("ms"))
    if ms is not None:
        return ms / 1000
    rate = _float(captures.get("rate"))
    if rate:
        return 1 / rate
    span, span_s = _float(captures.get("span")), _float(captures.get("span_s"))
    if span_s is not None:
        begin, end = _float(captures.get("from")), _float(captures.get("step"))
        if begin is not None and end is not None:
            span = end - begin
        return span_s / span if span else None
    micro_ms, micro = _float(captures.get("micro_ms")), _float(captures.get("micro"))
    step = _float(captures.get("step"))
    if micro_ms is not None and micro and step:
        return micro_ms / 1000 * micro / step
    return None


def _clock(captures: dict[str, str]) -> float | None:
    for name, unit in (("clock_s", 1.0), ("clock_ms", 0.001), ("unix", 1.0)):
        value = _float(captures.get(name))
        if value is not None:
            return value * unit
    return None


def time_of_day(line: bytes) -> float | None:
    """Return the time of day at the head of a line in seconds, for want of a whole date."""
    match = _CLOCK.search(line, 0, _CLOCK_IN)
    if match is None:
        return None
    hours, minutes, seconds, fraction = match.groups(b"")
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds) + float(b"0." + fraction + b"0")
