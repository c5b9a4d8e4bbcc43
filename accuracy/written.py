"""From written to heard: the clock that lines print, the writer's buffer, the reader's poll."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from accuracy.chances import Chances
from accuracy.traits import Stamps, Traits
from relight.model.instants import Instant, from_iso, later, seconds
from relight.model.pulses import Beat, Pulse

BEGUN = from_iso("2026-03-01T00:00:00Z")
"""When every life starts."""
_STALL = 0.002
"""Polls that come late: the daemon is busy, or NFS hides what was written for a minute."""
_SLOW_BY, _WRONG_BY = 1e-3, -137.0


class Written(NamedTuple):
    """A line as it is printed: when, what it tells, and its numbers."""

    at: float
    what: Beat
    values: dict[str, Any]


def instant(at: float) -> Instant:
    """Return the instant ``at`` seconds after a life's start."""
    return later(BEGUN, seconds(at))


def heard(lines: Sequence[Written], kind: Traits, chances: Chances) -> tuple[Pulse, ...]:
    """Return the pulses of ``lines`` in the order and at the time in which they are heard.

    A buffer that is not full when its writer stops is never heard.
    """
    ordered = sorted(lines, key=lambda one: one.at)
    zone = 3600 * int(chances.between(-11, 13))
    pulses: list[Pulse] = []
    turn, reached = -1, 0.0
    for first in range(0, len(ordered), kind.buffered):
        block = ordered[first : first + kind.buffered]
        if len(block) < kind.buffered:
            break
        if (next_turn := math.ceil(block[-1].at / kind.poll)) != turn:
            turn = next_turn
            late = chances.between(3, 60) if chances.happens(_STALL) else chances.between(0, 0.3)
            reached = max(reached, turn * kind.poll + late)
        pulses += (
            Pulse(
                what=line.what,
                heard_at=instant(reached),
                at=_stamp(line.at, kind.stamps, zone),
                **line.values,
            )
            for line in block
        )
    return tuple(pulses)


def _stamp(at: float, stamps: Stamps, zone: int) -> Instant | None:
    match stamps:
        case Stamps.NONE:
            return None
        case Stamps.EXACT:
            return instant(at)
        case Stamps.SECONDS:
            return instant(math.floor(at))
        case Stamps.ELSEWHERE:
            return instant(at + zone)
        case Stamps.SLOW:
            return instant(at * (1 - _SLOW_BY) + _WRONG_BY)
