"""Watches a life or a log with virtual time, as the daemon would, and keeps every alarm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from accuracy.lives import Life
from accuracy.troubles import HANGS, Trouble
from accuracy.written import BEGUN, instant
from relight.model.allowances import Allowances
from relight.model.findings import Finding, Kind
from relight.model.instants import Instant, between, in_seconds, later, seconds
from relight.model.jobs import AttemptKey, JobKey
from relight.model.pulses import Pulse
from relight.model.records import Record
from relight.perception.rhythm.following import follow
from relight.perception.rhythm.limits import limit_of
from relight.perception.rhythm.silences import silence
from relight.perception.rhythm.slowdowns import slowdown
from relight.perception.rhythm.states import Rhythm
from relight.perception.rhythm.watching import watch

ATTEMPT = AttemptKey(job=JobKey(cluster="accuracy", scheduler_id="1"), attempt=0)
ALLOWANCES = Allowances()
IDLE = seconds(10)
"""A round without news is as long as this: what it would tell is then looked for by seconds."""
_POLL = seconds(1)


class Alarm(Record, frozen=True, kw_only=True):
    """One alarm of a watched life or log.

    ``at`` is in seconds since its start. Of a silence, ``limit`` is how long it might last in
    its ``phase`` and ``beyond`` how much later it was told; of a slowdown, ``minutes_lost`` is
    what was told.
    """

    kind: Kind
    rule: str
    at: float
    sentence: str
    phase: str = ""
    limit: float = 0.0
    beyond: float = 0.0
    minutes_lost: float = 0.0


def rounds(life: Life) -> Iterator[tuple[Instant, Sequence[Pulse]]]:
    """Yield when the reader looks and what it hears: at each poll with news, else now and then."""
    end = instant(life.watched)
    before = BEGUN
    for heard_at, group in groupby(life.pulses, key=lambda one: one.heard_at):
        if heard_at > end:
            break
        yield from _idle(before, heard_at)
        yield heard_at, tuple(group)
        before = heard_at
    yield from _idle(before, end)


def _idle(since: Instant, until: Instant) -> Iterator[tuple[Instant, Sequence[Pulse]]]:
    """Yield the rounds between two with news; the last one just before the news."""
    at = later(since, IDLE)
    while at < until - _POLL:
        yield at, ()
        at = later(at, IDLE)
    if until - since > 2 * _POLL:
        yield Instant(until - _POLL), ()


def lived(life: Life) -> list[Alarm]:
    """Return every alarm that a life raises; after a hang was told it is watched no more."""
    rhythm = Rhythm()
    alarms: list[Alarm] = []
    stops = instant(life.injected.at)
    hangs = life.injected.trouble in HANGS
    for now, pulses in rounds(life):
        chatters = life.injected.trouble is Trouble.CHATTERS and now >= stops
        before = rhythm
        watched = watch(
            rhythm,
            pulses,
            now,
            attempt=ATTEMPT,
            allowances=ALLOWANCES,
            heard_at=now,
            has_grown=bool(pulses) or chatters,
        )
        rhythm = watched.rhythm
        for finding in watched.findings:
            alarms.append(_alarm(finding, before, pulses, now))
            if finding.kind is Kind.HANG and hangs and now >= stops:
                return alarms
    return alarms


def _alarm(finding: Finding, before: Rhythm, pulses: Sequence[Pulse], now: Instant) -> Alarm:
    at = now
    limit = beyond = lost = 0.0
    phase = ""
    if finding.kind is Kind.HANG:
        at = _first_told(before, now)
        told = silence(before, ALLOWANCES, at, at)
        limit = in_seconds(limit_of(before, ALLOWANCES).span)
        phase = told.phase.value if told is not None else ""
        beyond = in_seconds(between(told.since, at)) - limit if told is not None else 0.0
    if finding.kind is Kind.SLOW:
        slow = slowdown(follow(before, pulses, now, has_grown=True), ALLOWANCES, now)
        lost = slow.lost / 60 if slow is not None else 0.0
    return Alarm(
        kind=finding.kind,
        rule=finding.rule,
        at=in_seconds(between(BEGUN, at)),
        sentence=finding.sentence,
        phase=phase,
        limit=limit,
        beyond=beyond,
        minutes_lost=lost,
    )


def _first_told(before: Rhythm, now: Instant) -> Instant:
    """Return the poll within the last idle round at which the silence would have been told."""
    at = Instant(now - IDLE)
    while at < now and silence(before, ALLOWANCES, at, at) is None:
        at = later(at, _POLL)
    return at
