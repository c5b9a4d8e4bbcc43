"""What the training jobs of a cluster are like: drawn at random, as wide as real logs vary.

The ranges are those of public logs: steps of 50 ms (ResNet on eight GPUs) to minutes (models of
hundreds of billions of parameters, reinforcement learning), reports each step to each 500 steps,
start-up and first evaluations of half an hour, checkpoints of a second to ten minutes, Python's
output buffered by 8 KiB, frameworks that say that they save and frameworks that do not.
"""

from __future__ import annotations

from enum import StrEnum

from accuracy.chances import Chances
from relight.model.records import Record

_MOST_REPORT = 900.0
"""Seconds between two reports of steps: beyond it, frameworks report each step."""


_BY_STEPS = 0.75


class Told(StrEnum):
    """Which ends of a pause its log tells."""

    BOTH = "both"
    BEGIN = "begin"
    END = "end"
    NOTHING = "nothing"
    COUNTED = "counted"
    """Both ends, and a counter of its own goes on meanwhile."""
    BESIDE = "beside"
    """Both ends, while steps go on: nothing waits for it."""


class Stamps(StrEnum):
    """What time the lines print."""

    EXACT = "exact"
    SECONDS = "seconds"
    ELSEWHERE = "elsewhere"
    """The local time of another zone."""
    SLOW = "slow"
    """Of a clock that loses a second in a thousand and began wrong."""
    NONE = "none"


class Habit(Record, frozen=True, kw_only=True):
    """A pause that returns: about each ``every`` seconds, for about ``lasts``.

    ``scatter`` is the deviation of the logarithm of its length. ``by_steps`` tells that it comes
    each so many steps, as most frameworks do it, and not by the clock.
    """

    every: float
    lasts: float
    scatter: float
    told: Told
    by_steps: bool = False


class Traits(Record, frozen=True, kw_only=True):
    """What one job is like; times in seconds.

    ``jitter`` is the deviation of the logarithm of one step's time, ``wave`` the amplitude of
    slow changes from outside (neighbours on the fabric) with their ``wave_period``, ``drift`` by
    which share steps grow over the whole life (longer sequences), ``hiccup`` the probability
    that a step takes some times as long. Each ``slow_each`` steps one takes ``slow_by`` times as
    long (garbage collection, a new shard). ``buffered`` lines reach the file at once.
    """

    step: float
    every: int
    jitter: float
    wave: float
    wave_period: float
    drift: float
    hiccup: float
    slow_each: int
    slow_by: float
    start_up: float
    milestones: int
    compiles: tuple[float, ...]
    burst: Habit | None
    """Times of slow steps too short to be told: a neighbour's checkpoint."""
    saving: Habit | None
    evaluation: Habit | None
    epoch: Habit | None
    restarts: tuple[float, ...]
    """How far through its life it starts again in place."""
    restart_told: bool
    stamps: Stamps
    tells_seconds: bool
    buffered: int
    poll: float
    loss: float | None
    """The loss at the start; None where none is told."""
    loss_scatter: float
    around_zero: bool
    """A loss such as that of a policy gradient, of either sign."""
    scale: float | None
    """The loss scale at the start; None where there is none."""


def traits(chances: Chances) -> Traits:
    """Return a job of the cluster."""
    step = chances.log_between(0.05, 300)
    every = chances.pick((1, 1, 1, 5, 10, 10, 20, 50, 100, 500))
    return Traits(
        step=step,
        every=every if every * step <= _MOST_REPORT else 1,
        jitter=chances.log_between(0.003, 0.3),
        wave=chances.between(0, 0.04),
        wave_period=chances.between(600, 5400),
        drift=chances.pick((0, 0, chances.between(-0.2, 0.1))),
        hiccup=chances.pick((0, 1e-4, 2e-3)),
        slow_each=chances.pick((0, 0, 10, 50, 90, 764, 1000)),
        slow_by=chances.between(1.3, 4),
        start_up=chances.log_between(5, 1200),
        milestones=chances.pick((0, 1, 2, 4)),
        compiles=_compiles(chances),
        burst=_burst(chances),
        saving=_saving(chances),
        evaluation=_evaluation(chances),
        epoch=_epoch(chances),
        restarts=_restarts(chances),
        restart_told=chances.happens(0.7),
        stamps=chances.pick((*Stamps, Stamps.EXACT, Stamps.SECONDS, Stamps.NONE)),
        tells_seconds=chances.happens(0.5),
        buffered=chances.pick((1, 1, 1, 1, 1, 1, 1, 16, 40)) if step * every < 20 else 1,  # noqa: PLR2004 - who reports rarely flushes
        poll=chances.pick((1.0, 1.0, 2.0, 5.0)),
        loss=None if chances.happens(0.1) else chances.between(1, 12),
        loss_scatter=chances.log_between(0.003, 0.12),
        around_zero=chances.happens(0.1),
        scale=2.0**16 if chances.happens(0.2) else None,
    )


def _compiles(chances: Chances) -> tuple[float, ...]:
    """Return what the first steps take more than the others."""
    if chances.happens(0.3):
        return ()
    first = chances.log_between(0.5, 180)
    again = chances.log_between(0.5, 90)
    return (first, again) if chances.happens(0.2) else (first,)


def _burst(chances: Chances) -> Habit | None:
    if chances.happens(0.8):
        return None
    every, lasts = chances.log_between(1800, 14_400), chances.between(30, 200)
    return Habit(every=every, lasts=lasts, scatter=0.1, told=Told.NOTHING)


def _saving(chances: Chances) -> Habit | None:
    if chances.happens(0.15):
        return None
    return Habit(
        every=chances.log_between(300, 7200),
        lasts=chances.log_between(1, 600),
        scatter=chances.pick((0.03, 0.1, 0.3)),
        told=chances.pick((Told.BOTH, Told.BOTH, Told.END, Told.BEGIN, Told.NOTHING, Told.BESIDE)),
        by_steps=chances.happens(_BY_STEPS),
    )


def _evaluation(chances: Chances) -> Habit | None:
    if chances.happens(0.5):
        return None
    return Habit(
        every=chances.log_between(600, 10_800),
        lasts=chances.log_between(5, 1200),
        scatter=chances.pick((0.02, 0.1)),
        told=chances.pick((Told.BOTH, Told.COUNTED, Told.END, Told.END, Told.BEGIN, Told.NOTHING)),
        by_steps=chances.happens(_BY_STEPS),
    )


def _epoch(chances: Chances) -> Habit | None:
    if chances.happens(0.5):
        return None
    return Habit(
        every=chances.log_between(600, 14_400),
        lasts=chances.log_between(1, 120),
        scatter=0.2,
        told=Told.NOTHING,
        by_steps=True,
    )


def _restarts(chances: Chances) -> tuple[float, ...]:
    if chances.happens(0.9):
        return ()
    return tuple(sorted(chances.next() for _ in range(chances.pick((1, 1, 2, 3)))))
