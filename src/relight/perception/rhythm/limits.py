"""How long an attempt may go without progress, by what it is doing and what it has shown."""

from __future__ import annotations

from typing import assert_never

from relight.model.allowances import Allowances
from relight.model.instants import Span, seconds, show_span
from relight.model.records import Record
from relight.perception.rhythm.states import Habits, Phase, Rhythm, spread

SIGMAS = 6.0
"""Robust standard deviations of the interval by which a progress line may be late."""
MOST_SPREAD = 2.0
"""The usual intervals that the spread may add: wilder ones are covered by the longest pause."""
TWICE = 2.0
"""A pause of a known kind may last twice the longest one seen."""
_FIRST = frozenset({Phase.STARTUP, Phase.FIRST_STEPS})
KNOWN_EVALUATIONS = 2
"""Evaluations after which the time behind one is known."""


class Limit(Record, frozen=True, kw_only=True):
    """How long no progress is no hang: the span, for which phase, and where it comes from."""

    span: Span
    phase: Phase
    sentence: str


def limit_of(rhythm: Rhythm, allowances: Allowances) -> Limit:
    """Return how long the attempt may go from its last sign of progress on.

    In its steady state the next line is due one interval after the last; it may be late by the
    steps allowed or by ``SIGMAS`` of the interval, and by the longest pause seen. Elsewhere the
    allowance of the phase holds, or twice the longest such pause where that is more.
    """
    pauses = rhythm.habits.pauses
    match rhythm.phase:
        case Phase.STARTUP | Phase.FIRST_STEPS:
            return _allowed(rhythm, allowances, allowances.startup, 0.0)
        case Phase.CHECKPOINT:
            return _allowed(rhythm, allowances, allowances.checkpoint, pauses.checkpoint)
        case Phase.EVALUATION if _is_behind_evaluation(rhythm):
            return _behind_evaluation(rhythm, allowances)
        case Phase.EVALUATION | Phase.END_OF_EPOCH | Phase.FINISHED:
            return _allowed(rhythm, allowances, allowances.evaluation, pauses.evaluation)
        case Phase.STEADY:
            return _steady(rhythm.habits, allowances)
        case _:
            assert_never(rhythm.phase)


def _allowed(rhythm: Rhythm, allowances: Allowances, allowance: Span, longest: float) -> Limit:
    """Return the limit of a phase: its allowance, and the time to the next line behind it.

    As long as it is not known how often lines come, that is what first steps may take.
    """
    learned = seconds(TWICE * longest)
    pause = max(allowances.floor, allowance, learned)
    span = Span(pause + _to_the_next_line(rhythm, allowances))
    words = rhythm.phase.value.replace("_", " ")
    if pause == learned:
        why = f"twice the longest pause seen for {words}, {show_span(seconds(longest))}"
    else:
        why = f"what the policy allows for {words}"
    return Limit(
        span=span,
        phase=rhythm.phase,
        sentence=f"The limit is {show_span(span)}: {why}, and the time to the next line.",
    )


def _is_behind_evaluation(rhythm: Rhythm) -> bool:
    known = rhythm.habits.evaluations >= KNOWN_EVALUATIONS
    return known and rhythm.seen == Phase.EVALUATION.value


def _behind_evaluation(rhythm: Rhythm, allowances: Allowances) -> Limit:
    """Return the limit after an evaluation that was told complete, once such are known."""
    span = max(
        _steady(rhythm.habits, allowances).span, seconds(TWICE * rhythm.habits.pauses.evaluation)
    )
    return Limit(
        span=span,
        phase=Phase.EVALUATION,
        sentence=f"The limit is {show_span(span)}: what evaluations have taken before.",
    )


def _steady(habits: Habits, allowances: Allowances) -> Limit:
    due = habits.due
    slack = _slack(habits, allowances)
    learned = seconds(due + slack + habits.pauses.plain)
    span = max(allowances.floor, learned)
    terms = (
        f"a line is due each {_show(due)}, may be late by {_show(slack)},"
        f" and the longest pause seen is {_show(habits.pauses.plain)}"
    )
    if span > learned:
        terms = f"the least that the policy allows, for {terms}"
    return Limit(
        span=span, phase=Phase.STEADY, sentence=f"The limit is {show_span(span)}: {terms}."
    )


def _to_the_next_line(rhythm: Rhythm, allowances: Allowances) -> Span:
    """Return how long after a pause the next line may take that only steps keep waiting."""
    if rhythm.phase in _FIRST:
        return Span(0)
    habits = rhythm.habits
    if not habits.reports:
        return allowances.startup
    return seconds(habits.due + _slack(habits, allowances))


def _slack(habits: Habits, allowances: Allowances) -> float:
    """Return by how many seconds the next line may be late.

    Where a line comes each so many steps, or many lines come at once, all of the steps may be
    slow: taking twice as long is a slowdown and no silence.
    """
    steps = (allowances.steps - 1) * (habits.usual or 0.0)
    strays = SIGMAS * max(spread(habits.reports), spread(habits.arrivals))
    return max(steps, habits.due, min(strays, MOST_SPREAD * habits.due))


def _show(count: float) -> str:
    return show_span(seconds(count))
