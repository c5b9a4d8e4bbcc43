"""Tells when an attempt has been silent for longer than it may be."""

from __future__ import annotations

from relight.model.allowances import Allowances
from relight.model.instants import Instant, Span, between, later, seconds, show_span
from relight.model.records import Record
from relight.perception.rhythm.limits import Limit, limit_of
from relight.perception.rhythm.states import Phase, Rhythm

JUST_NOW = seconds(30)
"""Files that were last read longer ago than this were not listened to."""
SETTLED = seconds(30)
"""After a gap in listening, this long it is listened again before anything is called silent."""
MOST_PATIENCE = 3
"""By how many limits signs of other work can put off that a silence is told; once steps have
come, by no more than the policy allows for an evaluation."""
_BEFORE_STEPS = frozenset({Phase.STARTUP, Phase.FIRST_STEPS})


class Silence(Record, frozen=True, kw_only=True):
    """No progress since ``since``, which is ``span`` ago and longer than ``limit`` allows.

    ``step`` is the last one completed, None when the attempt has not come to its first.
    """

    since: Instant
    span: Span
    step: int | None
    phase: Phase
    limit: Limit
    sentence: str


def silence(
    rhythm: Rhythm,
    allowances: Allowances,
    now: Instant,
    heard_at: Instant | None,
    *,
    tells_steps: bool = False,
) -> Silence | None:
    """Return the silence that has lasted too long by ``now``, None where there is none.

    ``heard_at`` is when the attempt's files were last read: where that is not just now, nothing
    is known of them, and no answer is not an answer. Other work that goes on (a bar, an
    evaluation) puts the end of patience off, but not for ever. An attempt that has never told a
    step may print them in a way that nobody knows: it is silent only when its log stands still
    altogether, unless ``tells_steps`` says that attempts before it have told theirs.
    """
    if rhythm.phase is Phase.FINISHED or rhythm.is_behind or rhythm.since is None:
        return None
    if heard_at is None or between(heard_at, now) > JUST_NOW:
        return None
    listening = rhythm.listening_since
    if listening is None or between(listening, now) < SETTLED:
        return None
    progressed = _last_progress(rhythm, rhythm.since)
    if now <= later(progressed, allowances.floor):
        return None
    limit = limit_of(rhythm, allowances)
    if now <= _deadline(rhythm, limit, progressed, allowances):
        return None
    if not rhythm.has_stepped and not tells_steps:
        grew = rhythm.since if rhythm.grew_at is None else rhythm.grew_at
        if now <= later(grew, limit.span):
            return None
    span = between(progressed, now)
    return Silence(
        since=progressed,
        span=span,
        step=rhythm.best,
        phase=rhythm.phase,
        limit=limit,
        sentence=_sentence(rhythm, limit, span),
    )


def _last_progress(rhythm: Rhythm, since: Instant) -> Instant:
    progressed = since if rhythm.progressed_at is None else rhythm.progressed_at
    return max(progressed, rhythm.excused_at or progressed)


def _deadline(rhythm: Rhythm, limit: Limit, progressed: Instant, allowances: Allowances) -> Instant:
    patient = max(progressed, rhythm.patient_at or progressed)
    began = max(progressed, rhythm.phase_since or progressed)
    most = Span(MOST_PATIENCE * limit.span)
    if rhythm.phase is Phase.EVALUATION:
        most = min(most, Span(limit.span + allowances.evaluation))
    elif rhythm.phase not in _BEFORE_STEPS:
        most = max(limit.span, min(most, allowances.evaluation))
    return min(later(patient, limit.span), later(began, most))


def _sentence(rhythm: Rhythm, limit: Limit, span: Span) -> str:
    allowed = show_span(limit.span)
    if rhythm.best is None:
        return f"No step completed in {show_span(span)} since the start (the limit is {allowed})."
    usual, pause = rhythm.habits.usual, rhythm.habits.pauses.plain
    known = ""
    if usual is not None:
        known = f"usually one each {show_span(seconds(usual))}, "
    if rhythm.phase is Phase.STEADY:
        known += f"longest pause {show_span(seconds(pause))}; "
    else:
        known += f"phase {rhythm.phase.value.replace('_', ' ')}; "
    return (
        f"No step completed for {show_span(span)} after step {rhythm.best}"
        f" ({known}the limit is {allowed})."
    )
