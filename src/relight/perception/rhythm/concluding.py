"""From what the detectors tell to findings, with the figures that led to them."""

from __future__ import annotations

from collections.abc import Sequence

from relight.model.findings import Domain, Evidence, Finding, Kind, Place, Remedy, Role
from relight.model.instants import Instant, seconds, show_span
from relight.model.jobs import AttemptKey
from relight.model.records import digest
from relight.perception.rhythm.numerics import SPIKE
from relight.perception.rhythm.silences import Silence
from relight.perception.rhythm.slowdowns import Slowdown
from relight.perception.rhythm.states import Rhythm, Trouble

SILENCE = "silence"
SLOWDOWN = "slowdown"
NUMERICS = "numerics"
NO_PROGRESS = "no-progress"
SLOWER = "slowdown"
_LAST_LINES = 5
_NEAR = 100
"""Steps that count as the same one where a failure is said to repeat itself."""


def hang_of(
    rhythm: Rhythm, silent: Silence, attempt: AttemptKey, now: Instant, tails: Sequence[str]
) -> Finding:
    """Return the finding of a silence.

    Its id is that of the attempt, of the last step and of when the silence began: after a pause
    that was allowed, the same step may be followed by a second one.
    """
    return Finding(
        id=_id(attempt, NO_PROGRESS, rhythm.place, silent.since),
        detector=SILENCE,
        rule=NO_PROGRESS,
        family="hang",
        kind=Kind.HANG,
        role=Role.EITHER,
        domain=Domain.UNKNOWN,
        remedy=Remedy.RESTART,
        attempt=attempt,
        seen_at=now,
        at=rhythm.step_at,
        place=rhythm.place,
        sentence=silent.sentence,
        evidence=(
            *_last_step(rhythm),
            Evidence(text=_learned(rhythm)),
            Evidence(text=silent.limit.sentence),
            *(Evidence(text=line) for line in list(tails)[-_LAST_LINES:]),
        ),
        step=silent.step,
        fingerprint=f"{NO_PROGRESS}|phase={silent.phase}",
    )


def slow_of(rhythm: Rhythm, slow: Slowdown, attempt: AttemptKey, now: Instant) -> Finding:
    """Return the finding of a slowdown; of storage, where it is data that is waited for."""
    domain = Domain.STORAGE if slow.waits_for_data else Domain.UNKNOWN
    return Finding(
        id=_id(attempt, SLOWER, None, slow.since),
        detector=SLOWDOWN,
        rule=SLOWER,
        family="slowdown",
        kind=Kind.SLOW,
        role=Role.EITHER,
        domain=domain,
        remedy=Remedy.REPORT,
        attempt=attempt,
        seen_at=now,
        at=slow.since,
        place=rhythm.place,
        sentence=slow.sentence,
        evidence=(
            *_last_step(rhythm),
            Evidence(text=f"Slow since step {slow.onset_step}.", at=slow.since),
        ),
        step=slow.onset_step,
        fingerprint=f"{SLOWER}|domain={domain}",
    )


def trouble_of(trouble: Trouble, attempt: AttemptKey, now: Instant) -> Finding:
    """Return the finding of numeric trouble.

    Its fingerprint holds the step as a count of hundreds, so that 'again at the same step' can
    be told; a spike is only reported, since many pass.
    """
    near = "unknown" if trouble.step is None else str(round(trouble.step / _NEAR))
    return Finding(
        id=_id(attempt, trouble.rule, trouble.place, trouble.step or 0),
        detector=NUMERICS,
        rule=trouble.rule,
        family=_FAMILIES.get(trouble.rule, "loss_spike"),
        kind=Kind.NUMERIC,
        role=Role.EITHER,
        domain=Domain.APPLICATION,
        remedy=Remedy.REPORT if trouble.rule == SPIKE else Remedy.CONFIRM_THEN_STOP,
        attempt=attempt,
        seen_at=now,
        at=trouble.at,
        place=trouble.place,
        sentence=trouble.sentence,
        evidence=(Evidence(text=trouble.text, place=trouble.place, at=trouble.at, is_root=True),)
        if trouble.text
        else (),
        step=trouble.step,
        fingerprint=f"{trouble.rule}|hundreds={near}",
    )


_FAMILIES = {
    "loss-not-a-number": "loss_nan",
    "loss-scale-floor": "loss_scale_exhausted",
    "loss-spike": "loss_spike",
}


def _id(attempt: AttemptKey, rule: str, place: Place | None, number: int) -> str:
    where = ("", "") if place is None else (place.file, str(place.offset))
    return digest(str(attempt), rule, *where, str(number))


def _last_step(rhythm: Rhythm) -> tuple[Evidence, ...]:
    if not rhythm.text:
        return ()
    return (Evidence(text=rhythm.text, place=rhythm.place, at=rhythm.step_at, is_root=True),)


def _learned(rhythm: Rhythm) -> str:
    habits = rhythm.habits
    usual = "unknown" if habits.usual is None else show_span(seconds(habits.usual))
    report = "unknown" if habits.report is None else show_span(seconds(habits.report))
    pauses = habits.pauses
    return (
        f"Learned from the last {len(habits.times)} times: a step takes {usual}, a progress line"
        f" comes each {report}; longest pauses {show_span(seconds(pauses.plain))} unannounced,"
        f" {show_span(seconds(pauses.checkpoint))} for a checkpoint,"
        f" {show_span(seconds(pauses.evaluation))} for an evaluation."
    )
