"""Tells when an attempt has become slower than it was, and for how long.

The newest bins are compared with all before them, in logarithms, so that the noise of a fast
and of a slow attempt look alike. What counts is the mean of the middle half of a stretch of
bins, in both halves of the stretch: single slow steps, and those that come each so many, do not
change it, and it is not as coarse as a median of bins that hold few steps. How far a stretch
strays by itself is learned from the bins before: from their spread, from how much each is like
the one before it, and from stretches of the same length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import exp, log, sqrt
from statistics import median
from typing import NamedTuple

from relight.model.allowances import Allowances
from relight.model.instants import Instant, between, in_seconds, seconds, show_span
from relight.model.records import Record
from relight.perception.rhythm.paces import CLASSES
from relight.perception.rhythm.states import SIGMA, Bin, Pace, Rhythm

FEWEST_BEFORE = 8
"""Bins that make a baseline: four minutes of steps."""
_MORE = 1.5
"""A baseline is longer than what is compared with it, by this factor at least."""
SHARE = 0.92
"""Of the logarithm of what is asked for: a slowdown of just that much is not lost in noise."""
SIGMAS = 4.0
"""Standard errors: by chance a stretch is that far off once in 30,000."""
OF_MIDDLE = 1.1
"""The standard error of the mean of the middle half, in that of a mean of all normal values."""
LONGER = 1.8
"""Where bins differ much, this many times the stretch is judged: nine minutes for five."""
_FEW = 3.0
"""By so many in the count the spread of few values is told too small."""
_MOST_ALIKE = 0.9
_BLOCKS = 6
_RECURS = 3
"""Slow stretches before, with usual ones between them: this attempt does so by itself."""
_HALF = 0.5
_PASSED = 3
"""Bins in a row that are not slow: a slowdown before them is over."""
_HIGHEST = 2.0
"""A bin counts as slow that is half as slow as the newest, or as slow as what is asked for."""
_FEWEST = 4
_MOSTLY = 0.7
"""Of the newest bins are slow, and four at least: one long pause may fill a whole stretch."""
_EARLIER = "its earlier attempts"
_OWN = "its own usual pace"


class Slowdown(Record, frozen=True, kw_only=True):
    """A drop of throughput that lasts.

    ``usual`` and ``current`` are seconds of one step, ``ratio`` is ``current / usual``, ``since``
    and ``onset_step`` are where it began. ``lost`` are the seconds lost since then,
    ``lost_per_hour`` those that each further hour loses. ``waits_for_data`` tells that the
    wait for data, by ``waits_longer`` seconds a step, makes up half of it or more.
    """

    ratio: float
    usual: float
    current: float
    since: Instant
    onset_step: int
    lost: float
    lost_per_hour: float
    waits_for_data: bool
    waits_longer: float
    against: str

    @property
    def sentence(self) -> str:
        """Return what has happened and what it costs."""
        told = (
            f"A step takes {show_span(seconds(self.current))} instead of"
            f" {show_span(seconds(self.usual))} ({self.ratio - 1:.0%} more than {self.against});"
            f" {show_span(seconds(self.lost))} lost so far,"
            f" {show_span(seconds(self.lost_per_hour))} each hour."
        )
        if self.waits_for_data:
            rise = show_span(seconds(self.waits_longer))
            told += f" The wait for data has risen by {rise} a step."
        return told


class _Base(NamedTuple):
    """What is compared with: the logarithm of the usual pace, and by how much a stretch strays."""

    pace: float
    error: float
    against: str


def slowdown(
    rhythm: Rhythm, allowances: Allowances, now: Instant, *, earlier: float | None = None
) -> Slowdown | None:
    """Return the slowdown that lasts at ``now``, None where there is none.

    ``earlier`` are the usual seconds of one step of the attempts before: an attempt that is slow
    from its first steps on has no better pace of its own.
    """
    heard = rhythm.progressed_at
    if heard is None or between(heard, now) > allowances.slow_for:
        return None  # it stands still, which is another trouble
    asked = log(1 + allowances.slow_percent / 100)
    least = in_seconds(allowances.slow_for)
    for stretch in (least, LONGER * least):
        told = _judged(rhythm.pace, stretch, least, asked, earlier)
        if told is not None:
            return told
    return None


def has_recovered(pace: Pace, usual: float, allowances: Allowances) -> bool:
    """Return whether the newest stretch is at its usual pace again."""
    recent = _newest(pace.bins, in_seconds(allowances.slow_for))
    if not recent:
        return False
    return _middle(recent) - log(usual) < _HALF * log(1 + allowances.slow_percent / 100)


def _judged(
    pace: Pace, stretch: float, lasting: float, asked: float, earlier: float | None
) -> Slowdown | None:
    recent = _newest(pace.bins, stretch)
    if not recent:
        return None
    before = pace.bins[: len(pace.bins) - len(recent)]
    if pace.episode is not None:
        before = tuple(one for one in before if one.at < pace.episode.since)
    for base in (
        _own_base(before, pace.history, len(recent), asked),
        _earlier_base(recent, earlier),
    ):
        if base is None or not _is_slow(recent, base, asked):
            continue
        slow = pace.bins[_onset(pace.bins, base.pace, asked) :]
        height = _HALF * min(max(asked, _middle(recent) - base.pace), _HIGHEST * asked)
        if _lasts(slow, base.pace + height) >= lasting:
            return _told(slow, recent, before, base)
    return None


def _newest(bins: Sequence[Bin], stretch: float) -> tuple[Bin, ...]:
    """Return the newest bins that hold ``stretch`` seconds, none when there are too few."""
    total = 0.0
    for index in range(len(bins) - 1, -1, -1):
        total += bins[index].seconds
        if total >= stretch and len(bins) - index >= _FEWEST:
            return tuple(bins[index:])
    return ()


def _own_base(
    before: Sequence[Bin], history: Mapping[int, int], count: int, asked: float
) -> _Base | None:
    """Return the attempt's own pace before the newest bins, None before it is known.

    A stretch strays by what its bins do, and by what stretches of the same length have done
    before: bins that follow each other may have the same reason to be slow.
    """
    if len(before) < max(FEWEST_BEFORE, _MORE * count):
        return None
    paces = [log(one.pace) for one in before]
    counted = [(number / CLASSES, count) for number, count in history.items()]
    usual = _middle_of([*counted, *((one, 1) for one in paces)])
    off = [one - usual for one in paces]
    sigma = SIGMA * median(abs(one) for one in off) * (1 + _FEW / len(off))
    alike = _likeness(off, sigma)
    error = OF_MIDDLE * sigma * sqrt((1 / count + 1 / len(off)) * (1 + alike) / (1 - alike))
    blocks = [
        _middle_of([(one, 1) for one in paces[at : at + count]])
        for at in range(0, len(paces) - count + 1, count)
    ]
    if len(blocks) >= _BLOCKS:
        error = max(error, SIGMA * median(abs(one - usual) for one in blocks))
    if _runs_above(blocks, usual + SHARE * asked) >= _RECURS:
        return None
    return _Base(usual, error, _OWN)


def _likeness(off: Sequence[float], sigma: float) -> float:
    """Return how much each value is like the one before it, from nought to ``_MOST_ALIKE``.

    Values far off count as three sigmas, so that a single pause says nothing of the rest.
    """
    most = 3 * sigma
    near = [min(max(one, -most), most) for one in off]
    total = sum(one * one for one in near)
    if not total:
        return 0.0
    alike = sum(one * other for one, other in pairwise(near)) / total
    return min(max(alike, 0.0), _MOST_ALIKE)


def _earlier_base(recent: Sequence[Bin], earlier: float | None) -> _Base | None:
    if earlier is None or not 0 < earlier < float("inf"):
        return None
    paces = [log(one.pace) for one in recent]
    middle = median(paces)
    sigma = SIGMA * median(abs(one - middle) for one in paces)
    return _Base(log(earlier), OF_MIDDLE * sigma / sqrt(len(paces)), _EARLIER)


def _middle_of(counted: Sequence[tuple[float, int]]) -> float:
    """Return the mean of the middle half of values that are each given with their count."""
    total = sum(count for _, count in counted)
    low, high = total / 4, total * 3 / 4
    passed = weighed = 0.0
    for value, count in sorted(counted):
        inside = min(passed + count, high) - max(passed, low)
        if inside > 0:
            weighed += value * inside
        passed += count
    return weighed / (high - low)


def _runs_above(blocks: Sequence[float], height: float) -> int:
    """Return how many times the blocks went above a height."""
    above = [block > height for block in blocks]
    return sum(now and not was for was, now in zip([False, *above], above, strict=False))


def _is_slow(recent: Sequence[Bin], base: _Base, asked: float) -> bool:
    drop = _middle(recent) - base.pace
    if drop < max(SHARE * asked, SIGMAS * base.error):
        return False
    slow = sum(log(one.pace) - base.pace >= _HALF * asked for one in recent)
    if slow < max(_MOSTLY * len(recent), _FEWEST):
        return False
    half = (len(recent) + 1) // 2
    return all(
        _middle(part) - base.pace >= _HALF * asked for part in (recent[:half], recent[-half:])
    )


def _middle(bins: Sequence[Bin]) -> float:
    return _middle_of([(log(one.pace), 1) for one in bins])


def _told(
    slow: Sequence[Bin], recent: Sequence[Bin], before: Sequence[Bin], base: _Base
) -> Slowdown:
    usual, current = exp(base.pace), exp(_middle(recent))
    ratio = current / usual
    lost = max(0.0, sum(one.seconds - one.steps * usual for one in slow))
    rise = _waited(recent) - _waited(before or recent)
    first = slow[0]
    return Slowdown(
        ratio=ratio,
        usual=usual,
        current=current,
        since=Instant(first.at - seconds(first.seconds)),
        onset_step=max(0, round(first.step - first.steps)),
        lost=lost,
        lost_per_hour=3_600 * (1 - 1 / ratio),
        waits_for_data=rise >= _HALF * (current - usual),
        waits_longer=rise,
        against=base.against,
    )


def _is_above(one: Bin, usual: float, asked: float) -> bool:
    return log(one.pace) - usual >= _HALF * asked


def _onset(bins: Sequence[Bin], usual: float, asked: float) -> int:
    """Return the bin with which the slowdown began that has not passed, their count if it has."""
    first = len(bins)
    for index in range(len(bins) - 1, -1, -1):
        if _is_above(bins[index], usual, asked):
            first = index
        elif min(first, len(bins)) - index >= _PASSED:
            break
    return first


def _lasts(slow: Sequence[Bin], height: float) -> float:
    """Return the seconds of slow steps; those of the first bin may have been slow at its end."""
    return sum(one.seconds for one in slow[1:] if log(one.pace) >= height)


def _waited(bins: Sequence[Bin]) -> float:
    """Return the seconds that a step has waited for data."""
    steps = sum(one.steps for one in bins)
    return sum(one.waited for one in bins) / steps if steps else 0.0
