"""Follows an attempt and tells of each silence, slowdown and numeric trouble once."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from relight.model.allowances import Allowances
from relight.model.findings import Finding
from relight.model.instants import Instant
from relight.model.jobs import AttemptKey
from relight.model.pulses import Pulse
from relight.model.records import Record
from relight.perception.rhythm.concluding import hang_of, slow_of, trouble_of
from relight.perception.rhythm.following import follow
from relight.perception.rhythm.paces import in_episode, width_of
from relight.perception.rhythm.silences import silence
from relight.perception.rhythm.slowdowns import has_recovered, slowdown
from relight.perception.rhythm.states import Episode, Rhythm


class Watched(Record, frozen=True, kw_only=True):
    """The rhythm to go on from, and what was found."""

    rhythm: Rhythm
    findings: tuple[Finding, ...]


def watch(  # noqa: PLR0913 - the surroundings of one round of listening
    rhythm: Rhythm,
    pulses: Sequence[Pulse],
    now: Instant,
    *,
    attempt: AttemptKey,
    allowances: Allowances,
    heard_at: Instant | None,
    earlier: float | None = None,
    is_behind: bool = False,
    has_grown: bool = False,
    tails: Sequence[str] = (),
) -> Watched:
    """Return the rhythm after ``pulses``, and findings for what is new in it by ``now``.

    The arguments are those of ``follow``, ``silence`` and ``slowdown``; ``tails`` are the last
    lines of the log, to be shown.
    """
    width = width_of(allowances)
    rhythm = follow(rhythm, pulses, now, is_behind=is_behind, has_grown=has_grown, width=width)
    return judge(
        rhythm,
        now,
        attempt=attempt,
        allowances=allowances,
        heard_at=heard_at,
        earlier=earlier,
        tails=tails,
    )


def judge(  # noqa: PLR0913 - likewise
    rhythm: Rhythm,
    now: Instant,
    *,
    attempt: AttemptKey,
    allowances: Allowances,
    heard_at: Instant | None,
    earlier: float | None = None,
    tails: Sequence[str] = (),
) -> Watched:
    """Return findings for what is new in a rhythm by ``now``, and the rhythm that knows of them."""
    findings = [trouble_of(one, attempt, now) for one in rhythm.troubles]
    if rhythm.troubles:
        rhythm = msgspec.structs.replace(rhythm, troubles=())
    silent = silence(rhythm, allowances, now, heard_at, tells_steps=earlier is not None)
    if silent is not None and rhythm.told_silence != silent.since:
        findings.append(hang_of(rhythm, silent, attempt, now, tails))
        rhythm = msgspec.structs.replace(rhythm, told_silence=silent.since)
    newest = rhythm.pace.bins[-1].at if rhythm.pace.bins else None
    if newest == rhythm.judged_at:
        return Watched(rhythm=rhythm, findings=tuple(findings))
    rhythm = msgspec.structs.replace(rhythm, judged_at=newest)
    episode = rhythm.pace.episode
    if episode is not None:
        if has_recovered(rhythm.pace, episode.usual, allowances):
            rhythm = msgspec.structs.replace(rhythm, pace=in_episode(rhythm.pace, None))
        return Watched(rhythm=rhythm, findings=tuple(findings))
    slow = slowdown(rhythm, allowances, now, earlier=earlier)
    if slow is not None:
        findings.append(slow_of(rhythm, slow, attempt, now))
        begun = in_episode(rhythm.pace, Episode(since=slow.since, usual=slow.usual))
        rhythm = msgspec.structs.replace(rhythm, pace=begun)
    return Watched(rhythm=rhythm, findings=tuple(findings))
