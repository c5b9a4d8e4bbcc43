"""Lives of training jobs as pulses: what their logs show, and the truth about each.

A life is generated from a seed: ``traits`` says what the job is like, ``troubles`` what befalls
it, ``living`` lets it pass, and ``written`` takes its lines to the reader.
"""

from __future__ import annotations

import msgspec

from accuracy.chances import Chances
from accuracy.living import WATCHED_ON, Living, Pause
from accuracy.traits import Traits, traits
from accuracy.troubles import HANGS, NUMERIC, Injected, Trouble, injected
from accuracy.written import heard
from relight.model.pulses import Pulse
from relight.model.records import Record

_MOST_REPORTS = 8_000
"""A life ends after so many reports, so that fast ones are as cheap as slow ones."""
_SLOW_ON = 3_600.0
"""Seconds that it goes on with other trouble."""
_LEAST_REPORTS = 40
"""So many reports are waited for where that takes longer."""
_LEAST_BEFORE = 0.15
"""Trouble begins after this share of a life at the earliest."""


class Life(Record, frozen=True, kw_only=True):
    """One life: its pulses by when they are heard, and what is true of it.

    ``bursts`` are times of slow steps. ``first_step`` is when the first step was completed,
    ``watched`` until when it is watched.
    """

    seed: int
    traits: Traits
    injected: Injected
    pulses: tuple[Pulse, ...]
    pauses: tuple[Pause, ...]
    bursts: tuple[Pause, ...]
    first_step: float
    watched: float


def life(seed: int, hours: float, trouble: Trouble = Trouble.NONE) -> Life:
    """Return the life of that seed: about ``hours`` long, then with ``trouble`` where any.

    The same arguments give the same life.
    """
    chances = Chances(seed)
    kind = traits(chances)
    if trouble in NUMERIC:  # only a loss that has a usual size can stand out
        kind = msgspec.structs.replace(kind, loss=kind.loss or 5.0, around_zero=False)
    length = min(3600 * hours * chances.log_between(0.3, 3), _MOST_REPORTS * kind.step * kind.every)
    earliest = kind.start_up + sum(kind.compiles) + _LEAST_BEFORE * length
    at = chances.between(earliest, kind.start_up + length)
    if trouble is Trouble.NEVER_STEPS:
        at = chances.between(0, kind.start_up)
    wrong = injected(trouble, at, chances)
    reports = _LEAST_REPORTS * kind.step * kind.every
    watched = WATCHED_ON if trouble in HANGS else max(_SLOW_ON, reports)
    end = kind.start_up + length if trouble is Trouble.NONE else at + watched
    living = Living(kind, chances, wrong, end)
    living.live()
    return Life(
        seed=seed,
        traits=kind,
        injected=msgspec.structs.replace(wrong, at=living.stopped_at),
        pulses=heard(living.written, kind, chances),
        pauses=tuple(living.pauses),
        bursts=tuple(living.bursts),
        first_step=living.first_step,
        watched=living.stopped_at + WATCHED_ON if trouble in HANGS else living.now,
    )
