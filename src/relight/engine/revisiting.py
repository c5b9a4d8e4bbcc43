"""Stories that are closed but may not be over: looked at again, or taken up where they were left.

A silence is found once, and a person's suspension, or an advice that nobody followed in time, does
not end it. What steps do not make well, slowness and bad numbers, is there still when the graver
trouble that came in between is over.
"""

from __future__ import annotations

import msgspec

from relight.engine.cases import AttemptCase
from relight.engine.opening import (
    EXPIRED,
    NUMERICS,
    RECOVERED_IN_PLACE,
    SILENCE,
    SLOWNESS,
    STEPPED_AFTER_ALL,
    SUSPENDED,
    TAKEN_OVER,
    WORK_GOES_ON,
    open_incident,
    was_told,
)
from relight.engine.trouble import may_have_stopped, silence_of, silent_since
from relight.engine.turns import Turn, close
from relight.engine.witnesses import is_testimony
from relight.model.findings import Finding, Kind
from relight.model.incidents import Incident, Phase
from relight.model.instants import EPOCH, Instant, between, later, seconds
from relight.policy.living import NUMERIC_REPORTED
from relight.policy.policies import Policy

SHORTEST_PAUSE, LONGEST_PAUSE = seconds(120), seconds(86_400)
"""Between an advice that expired and the next about the same trouble."""

_LEAVES_REST = frozenset(
    {RECOVERED_IN_PLACE, STEPPED_AFTER_ALL, WORK_GOES_ON, SUSPENDED, NUMERIC_REPORTED, EXPIRED}
)
_IS_NOT_OVER = frozenset({SUSPENDED, EXPIRED})
_NOT_OF_STEPS = frozenset({SLOWNESS, NUMERICS})


def set_aside(turn: Turn, number: int) -> None:
    """Close a story that time alone has told, as the attempt was suspended in it.

    Whatever was advised on ends with the advice; a line that tells of trouble stays.
    """
    attempt = turn.case.attempt(number)
    incident = attempt.incident if attempt is not None else None
    if attempt is None or incident is None or incident.phase is Phase.CLOSED:
        return
    is_advised = attempt.advice is not None and attempt.advice.is_active
    lines = any(may_have_stopped(one) or one.task_gone for one in incident.findings)
    if is_advised or (silence_of(incident) and not lines and not incident.gone_nodes):
        sentence = "The job was suspended: what its pace or its silence meant is open again."
        close(turn, number, SUSPENDED, sentence)


def is_resting(turn: Turn, attempt: AttemptCase, silence: Finding, policy: Policy) -> bool:
    """Tell whether a silence tells nothing yet, as the attempt was suspended in it; wake then."""
    until = _rested_at(attempt, silence, policy)
    if until is None or turn.now >= until:
        return False
    turn.wake(until)
    return True


def revisit(turn: Turn, attempt: AttemptCase, incident: Incident, policy: Policy) -> None:
    """Open what a closed incident of a living attempt has left, or what is not over in it."""
    if incident.gone_nodes and _code(incident) in _IS_NOT_OVER:
        _look_at_nodes_again(turn, attempt, incident)
        return
    told = silence_of(incident) or _lines_of(incident)
    if told and (attempt.stepped_at is None or attempt.stepped_at <= told[-1].seen_at):
        _look_again(turn, attempt, incident, told, policy)
    elif not told and _code(incident) == EXPIRED:
        _look_again(turn, attempt, incident, _left_in(incident), policy)
    else:
        _take_up_again(turn, attempt, incident)


def _rested_at(attempt: AttemptCase, silence: Finding, policy: Policy) -> Instant | None:
    """Return when a silence that began before a suspension counts, None where it does anyway.

    Going on, the attempt has as long for its next step as the policy grants one of its own pace.
    """
    resumed, began, stepped = attempt.resumed_at, silence.at, attempt.stepped_at
    if resumed is None or max(began or EPOCH, stepped or EPOCH) >= resumed:
        return None
    usual = max(attempt.progress.step_seconds or 0, attempt.progress.report_seconds or 0)
    return later(resumed, max(policy.hang_floor, seconds(policy.hang_steps * usual)))


def _look_again(
    turn: Turn,
    attempt: AttemptCase,
    incident: Incident,
    told: tuple[Finding, ...],
    policy: Policy,
) -> None:
    """Open the story of an attempt that still stands still, though nobody says so again."""
    due = _due(attempt, incident, told, policy) if told else None
    if due is None:
        return
    if turn.now < due:
        turn.wake(due)
        return
    since = attempt.stepped_at or EPOCH
    still = tuple(one for one in incident.findings if one.seen_at >= since or one in told)
    is_silent = any(one.detector == SILENCE for one in told)
    open_incident(turn, attempt.number, still, Kind.HANG if is_silent else incident.kind)


def _look_at_nodes_again(turn: Turn, attempt: AttemptCase, incident: Incident) -> None:
    """Open the story of lost nodes again: steps tell nothing of them, nor does a suspension."""
    began = incident.gone_since or incident.opened_at
    due = _after_expiry(attempt, incident, began) or turn.now
    if turn.now < due:
        turn.wake(due)
        return
    since = attempt.stepped_at or EPOCH
    still = tuple(one for one in incident.findings if one.seen_at >= since)
    opened = open_incident(turn, attempt.number, still, incident.kind)
    opened = msgspec.structs.replace(opened, gone_nodes=incident.gone_nodes, gone_since=began)
    turn.change(attempt.number, incident=opened)


def _due(
    attempt: AttemptCase, incident: Incident, told: tuple[Finding, ...], policy: Policy
) -> Instant | None:
    """Return when a closed story is looked at again, None where it is over."""
    if _code(incident) == SUSPENDED:
        return _rested_at(attempt, told[0], policy)
    goes_on = told[0].detector in _NOT_OF_STEPS
    began = told[0].seen_at if goes_on else silent_since(attempt, told[0])
    return _after_expiry(attempt, incident, began)


def _after_expiry(attempt: AttemptCase, incident: Incident, began: Instant) -> Instant | None:
    """Return when trouble counts again after an advice that expired, None where none did.

    It waits as long again as the trouble has lasted: ever longer.
    """
    advice = attempt.advice
    expired = advice.status.at if _code(incident) == EXPIRED and advice is not None else None
    if expired is None:
        return None
    return later(expired, min(max(between(began, expired), SHORTEST_PAUSE), LONGEST_PAUSE))


def _take_up_again(turn: Turn, attempt: AttemptCase, incident: Incident) -> None:
    """Open the story of slowness or bad numbers that was left for one that is over."""
    if _code(incident) not in _LEAVES_REST:
        return
    left: dict[str, Finding] = {}
    for story in _with_those_left(attempt, incident):
        left.update({one.id: one for one in _left_in(story)})
    found = tuple(
        one
        for one in sorted(left.values(), key=lambda one: one.seen_at)
        if one.detector == SLOWNESS or not was_told(turn, attempt, one)
    )
    if found:
        is_numeric = any(one.detector == NUMERICS for one in found)
        open_incident(turn, attempt.number, found, Kind.NUMERIC if is_numeric else Kind.SLOW)


def _left_in(incident: Incident) -> tuple[Finding, ...]:
    return tuple(one for one in incident.findings if one.detector in _NOT_OF_STEPS)


def _with_those_left(attempt: AttemptCase, incident: Incident) -> list[Incident]:
    stories = [incident]
    for past in reversed(attempt.past_incidents):
        if _code(past) != TAKEN_OVER and _code(past) not in _LEAVES_REST:
            break
        stories.append(past)
    return stories


def _lines_of(incident: Incident) -> tuple[Finding, ...]:
    """Return the lines that a story rests on which no silence was found in."""
    told = (one for one in incident.findings if may_have_stopped(one) or one.task_gone)
    return tuple(one for one in told if not is_testimony(one))


def _code(incident: Incident) -> str:
    return incident.closed.code if incident.closed is not None else ""
