"""What is done to a life, and what is true of it from then on."""

from __future__ import annotations

from enum import StrEnum

from accuracy.chances import Chances
from relight.model.records import Record

TOLD_DROP = 0.15
"""From this drop of the throughput on, a slowdown is to be told."""
_GRADUALLY = 600.0
"""Seconds in which a gradual slowdown comes."""
_STRIDE = 5.0


class Trouble(StrEnum):
    """What goes wrong."""

    NONE = "none"
    STOPS = "the log stops"
    CHATTERS = "the log goes on without steps"
    COUNTS_ON = "another counter goes on"
    STOPS_SAVING = "stops in a checkpoint"
    NEVER_STEPS = "no step is ever completed"
    SLOWS = "slow at once"
    SLOWS_GRADUALLY = "slow within 10 minutes"
    SLOWS_A_WHILE = "slow for a while"
    NOT_A_NUMBER = "loss is no number"
    SPIKE = "loss jumps and stays"
    OVERFLOWS = "the loss scale falls to its floor"


HANGS = (
    Trouble.STOPS,
    Trouble.CHATTERS,
    Trouble.COUNTS_ON,
    Trouble.STOPS_SAVING,
    Trouble.NEVER_STEPS,
)
SLOWDOWNS = (Trouble.SLOWS, Trouble.SLOWS_GRADUALLY, Trouble.SLOWS_A_WHILE)
NUMERIC = (Trouble.NOT_A_NUMBER, Trouble.SPIKE, Trouble.OVERFLOWS)


class Injected(Record, frozen=True, kw_only=True):
    """Trouble from ``at`` on, in seconds since the start of the life.

    ``drop`` is the share of the throughput that a slowdown takes in the end, ``lasts`` how long
    one that passes goes on.
    """

    trouble: Trouble = Trouble.NONE
    at: float = 0.0
    drop: float = 0.0
    lasts: float = 0.0

    def factor(self, now: float) -> float:
        """Return how many times as long a step takes at ``now``."""
        since = now - self.at
        if self.trouble not in SLOWDOWNS or since < 0:
            return 1.0
        whole = 1.0 / (1.0 - self.drop)
        if self.trouble is Trouble.SLOWS_GRADUALLY:
            return 1.0 + (whole - 1.0) * min(since / _GRADUALLY, 1.0)
        if self.trouble is Trouble.SLOWS_A_WHILE and since > self.lasts:
            return 1.0
        return whole

    @property
    def reached(self) -> float:
        """Return when a slowdown reaches the drop that is to be told."""
        if self.trouble is not Trouble.SLOWS_GRADUALLY:
            return self.at
        wanted = 1.0 / (1.0 - TOLD_DROP) - 1.0
        return self.at + _GRADUALLY * wanted / (1.0 / (1.0 - self.drop) - 1.0)

    def minutes_lost(self, now: float) -> float:
        """Return the minutes that were lost up to ``now`` against the usual throughput."""
        lost, at = 0.0, self.at
        while at < now:
            stretch = min(_STRIDE, now - at)
            lost += stretch * (1.0 - 1.0 / self.factor(at + stretch / 2))
            at += stretch
        return lost / 60


def injected(trouble: Trouble, at: float, chances: Chances) -> Injected:
    """Return trouble of random strength: a drop of 15 to 60 %, passing within 15 to 40 minutes."""
    return Injected(
        trouble=trouble,
        at=at,
        drop=chances.between(TOLD_DROP, 0.6),
        lasts=chances.between(900, 2400),
    )
