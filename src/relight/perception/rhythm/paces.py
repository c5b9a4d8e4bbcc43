"""Keeps the pace of an attempt in bins of half a minute of steps, or less where policy wants.

Pauses of known kinds, first steps and lines left out are not in it, and a bin averages over
what comes each few steps, so that bins of a steady attempt are alike.
"""

from __future__ import annotations

from math import log

from relight.model.allowances import Allowances
from relight.model.instants import Instant, in_seconds
from relight.perception.rhythm.states import Bin, Episode, Pace

BIN = 30.0
"""Seconds of steps in one bin at most."""
BINS = 10
"""Bins in the time that a slowdown has to last, at least."""
MOST_BINS = 128
CLASSES = 100
"""Classes of the history for each factor of e: each is one per cent wide."""
MOST_CLASSES = 500


def width_of(allowances: Allowances) -> float:
    """Return the seconds of steps in one bin, so that enough lie in a slowdown to be told."""
    return min(BIN, in_seconds(allowances.slow_for) / BINS)


class PaceTally:
    """Takes steps into bins, on from a pace."""

    def __init__(self, pace: Pace, width: float) -> None:
        self._width = width
        self._bins = list(pace.bins)
        self._open = pace.open
        self._history = pace.history
        self._is_own = False
        self._episode = pace.episode

    def frozen(self) -> Pace:
        """Return the pace to go on from."""
        return Pace(
            bins=tuple(self._bins), open=self._open, history=self._history, episode=self._episode
        )

    def step(self, at: Instant, step: int, steps: int, seconds: float, waited: float) -> None:
        """Take in ``steps`` up to ``step`` that took ``seconds``, ``waited`` of them for data."""
        old = self._open or Bin(at=at, step=step)
        new = Bin(
            at=at,
            step=step,
            steps=old.steps + steps,
            seconds=old.seconds + seconds,
            waited=old.waited + waited,
        )
        if new.seconds < self._width:
            self._open = new
            return
        self._open = None
        self._bins.append(new)
        if len(self._bins) > MOST_BINS:
            self._passed(self._bins.pop(0))

    def waited(self, seconds: float) -> None:
        """Take in that the steps just told have waited for data for ``seconds`` in all."""
        old = self._open
        if old is not None:
            self._open = Bin(
                at=old.at,
                step=old.step,
                steps=old.steps,
                seconds=old.seconds,
                waited=old.waited + seconds,
            )
        elif self._bins:
            last = self._bins[-1]
            self._bins[-1] = Bin(
                at=last.at,
                step=last.step,
                steps=last.steps,
                seconds=last.seconds,
                waited=last.waited + seconds,
            )

    def cut(self) -> None:
        """Drop the unfinished bin: what follows is another stretch of the run."""
        self._open = None

    def _passed(self, old: Bin) -> None:
        """Count a bin into the history, unless it belongs to a slowdown that lasts."""
        if self._episode is not None and old.at >= self._episode.since:
            return
        if not self._is_own:
            self._history = dict(self._history)
            self._is_own = True
        number = round(CLASSES * log(old.pace))
        if number in self._history or len(self._history) < MOST_CLASSES:
            self._history[number] = self._history.get(number, 0) + 1


def in_episode(pace: Pace, episode: Episode | None) -> Pace:
    """Return ``pace`` with a slowdown begun, or with none."""
    return Pace(bins=pace.bins, open=pace.open, history=pace.history, episode=episode)
