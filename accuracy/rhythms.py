"""How soon hangs and slowdowns are found and how often wrongly: on generated lives, in numbers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

from accuracy.judging import Outcome, Worth, outcome
from accuracy.lives import life
from accuracy.troubles import Trouble
from accuracy.watching import lived
from relight.model.findings import Kind

HOURS = 2.5
"""About how long a life is."""


class Task(NamedTuple):
    """One life to be lived: seed, what befalls it, and about how long it is."""

    seed: int
    trouble: Trouble
    hours: float = HOURS


def tasks(count: int, seed: int, hours: float = HOURS) -> list[Task]:
    """Return ``count`` lives: half of them healthy, the others of every trouble in turn."""
    troubles = [one for one in Trouble if one is not Trouble.NONE]
    return [
        Task(
            seed * 1_000_003 + number,
            Trouble.NONE if number % 2 else troubles[number // 2 % len(troubles)],
            hours,
        )
        for number in range(count)
    ]


def live(task: Task) -> Outcome:
    """Let one life be lived and watched; return what became of it."""
    one = life(task.seed, task.hours, task.trouble)
    return outcome(one, lived(one))


def live_all(wanted: Sequence[Task], workers: int) -> list[Outcome]:
    """Return what became of all, lived by so many processes; in the order of the tasks."""
    if workers == 1:
        return [live(one) for one in wanted]
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(live, wanted, chunksize=8))


def cores() -> int:
    """Return on how many cores this process may run."""
    return len(os.sched_getaffinity(0))


def upper_bound(count: int, hours: float) -> float:
    """Return below which rate for 1,000 hours the truth lies with 95 %: Poisson's upper limit.

    For no event this is 3 divided by the hours; for more, Wilson's and Hilferty's approximation
    of the chi-squared quantile.
    """
    if not hours:
        return float("inf")
    if not count:
        return 1000 * 3.0 / hours
    events = count + 1
    most: float = events * (1 - 1 / (9 * events) + 1.645 / (3 * events**0.5)) ** 3
    return 1000 * most / hours


def false_alarms(outcomes: Iterable[Outcome], kind: Kind, worth: Worth) -> int:
    """Return how many alarms of a kind were worth that."""
    return sum(one.kind is kind and said is worth for ours in outcomes for said, one in ours.alarms)


def quantile(values: Sequence[float], part: float) -> float:
    """Return the value below which ``part`` of all lie; 0 of none."""
    ordered = sorted(values)
    return ordered[min(int(part * len(ordered)), len(ordered) - 1)] if ordered else 0.0


def of(outcomes: Iterable[Outcome], troubles: Sequence[Trouble]) -> list[Outcome]:
    """Return those that one of ``troubles`` befell."""
    return [one for one in outcomes if one.trouble in troubles]
