"""Seeded draws: the same seed, the same lives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

from relight.testing.frameworks.writing import Dice

_Thing = TypeVar("_Thing")


class Chances(Dice):
    """Draws from the distributions that step times and pauses follow."""

    def between(self, low: float, high: float) -> float:
        """Return a number from ``low`` up to ``high``, each as likely."""
        return low + (high - low) * self.next()

    def log_between(self, low: float, high: float) -> float:
        """Return a number from ``low`` up to ``high``, each order of magnitude as likely."""
        return math.exp(self.between(math.log(low), math.log(high)))

    def normal(self) -> float:
        """Return a number of mean 0 and deviation 1, by Box and Muller's transformation."""
        radius = math.sqrt(-2.0 * math.log(1.0 - self.next()))
        return radius * math.cos(2.0 * math.pi * self.next())

    def scatter(self, sigma: float) -> float:
        """Return a factor around 1 whose logarithm has the deviation ``sigma``."""
        return math.exp(sigma * self.normal())

    def happens(self, probability: float) -> bool:
        """Return True with that probability."""
        return self.next() < probability

    def pick(self, things: Sequence[_Thing]) -> _Thing:
        """Return one of ``things``; one that is named twice is twice as likely."""
        return things[int(self.next() * len(things))]
