"""What it costs to follow the rhythms of 10,000 running jobs on one core."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from time import process_time
from typing import NamedTuple

import msgspec
from accuracy.lives import life
from accuracy.watching import ALLOWANCES, ATTEMPT
from accuracy.written import instant

from bench.tables import Measured, Result, Row
from relight.model.instants import Instant, later, seconds
from relight.model.pulses import Pulse
from relight.perception.rhythm.states import Rhythm
from relight.perception.rhythm.watching import watch

_WARM = 3_600.0
"""Seconds that a job has been followed before the measurement begins."""
_KINDS = 50
"""Different lives; each stands for as many jobs."""
_HOURS = 2.0
_ROUND = seconds(1)
"""The daemon looks at each job once a second."""
_KIB = 1024


class _Job(NamedTuple):
    """A job that has been followed for a while, and what is heard of it from then on."""

    state: bytes
    begun: Instant
    heard: dict[Instant, tuple[Pulse, ...]]


def measure(*, jobs: int = 10_000, rounds: int = 60) -> Result:
    """Return the processor time and memory that following ``jobs`` takes, over ``rounds`` seconds.

    Each job has a rhythm of its own, learned over an hour, and is looked at once a second,
    whether its log has grown or not.
    """
    kinds = [_warmed(seed) for seed in range(min(_KINDS, jobs))]
    before = _resident()
    rhythms = [
        msgspec.json.decode(kinds[number % len(kinds)].state, type=Rhythm) for number in range(jobs)
    ]
    kib = (_resident() - before) / jobs
    pulses = 0
    begun = process_time()
    for turn in range(rounds):
        for number in range(jobs):
            kind = kinds[number % len(kinds)]
            now = later(kind.begun, seconds(turn))
            heard = kind.heard.get(now, ())
            pulses += len(heard)
            rhythms[number] = _round(rhythms[number], heard, now)
    spent = process_time() - begun
    return Result(
        part="rhythms",
        rows=_rows(jobs, rounds, spent, kib, kinds),
        facts=(
            (
                f"{jobs:,} jobs of {len(kinds)} different generated lives, each followed for an "
                f"hour, then looked at once a second for {rounds} s: {pulses:,} pulses. Processor "
                "time of one process, so of one core; reading and matching log lines is not in it."
            ),
        ),
    )


def _rows(jobs: int, rounds: int, spent: float, kib: float, kinds: list[_Job]) -> tuple[Row, ...]:
    hour = Measured(
        of=f"{jobs:,} jobs, each looked at once a second",
        value=spent * 3600 / rounds,
        unit="s of processor time an hour",
    )
    share = Measured(of=f"{jobs:,} jobs", value=100 * spent / rounds, unit="% of a core")
    each = Measured(of="one job", value=1e6 * spent / rounds / jobs, unit="µs a look")
    resident = Measured(of="one job, resident", value=kib, unit="KiB")
    stored = Measured(
        of="one job, as it is stored, on average",
        value=sum(len(one.state) for one in kinds) / len(kinds) / _KIB,
        unit="KiB",
    )
    return (
        Row(what="following rhythms", ours=hour),
        Row(what="the same as a share", ours=share),
        Row(what="one look", ours=each),
        Row(what="memory of a rhythm", ours=resident),
        Row(what="size of a rhythm in the store", ours=stored),
    )


def _warmed(seed: int) -> _Job:
    """Return a job after an hour, or after half of a shorter life, looked at each ten seconds."""
    one = life(seed, _HOURS)
    begun = instant(round(min(_WARM, one.watched / 2)))
    span = seconds(1)
    rhythm = Rhythm()
    heard = {
        Instant(-(-at // span) * span): tuple(group)
        for at, group in groupby(one.pulses, key=lambda pulse: pulse.heard_at)
    }
    at = instant(0.0)
    while at < begun:
        if at in heard or at % seconds(10) == 0:
            rhythm = _round(rhythm, heard.get(at, ()), at)
        at = later(at, _ROUND)
    return _Job(state=msgspec.json.encode(rhythm), begun=begun, heard=heard)


def _round(rhythm: Rhythm, heard: tuple[Pulse, ...], now: Instant) -> Rhythm:
    return watch(
        rhythm,
        heard,
        now,
        attempt=ATTEMPT,
        allowances=ALLOWANCES,
        heard_at=now,
        has_grown=bool(heard),
    ).rhythm


def _resident() -> float:
    """Return the resident memory of this process in KiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return float(line.split()[1])
    return 0.0
