"""After each stimulus: what follows from the case as it now is.

Level-triggered: whatever the order in which facts came, the same case leads to the same
next move. Every wait is an instant that the case asks to be woken at; nothing is counted.
"""

from __future__ import annotations

import msgspec

from relight.engine.advising import keep_advice, revise_advice
from relight.engine.cases import AttemptCase
from relight.engine.endings import judge_ended, look_again
from relight.engine.leaves import keep_leave
from relight.engine.living import judge_living
from relight.engine.outcomes import withdraw
from relight.engine.recovering import follow_recovery
from relight.engine.slowness import withdraw_if_well
from relight.engine.trouble import is_open
from relight.engine.turns import Turn
from relight.model.advice import StatusReason
from relight.model.instants import Instant
from relight.policy.policies import Policy


def consider(turn: Turn) -> None:
    """Draw every conclusion that the case allows, and set when it wants to be woken."""
    choice = turn.case.choice
    policy = turn.book.policy(choice.policy) if choice.opted_in and not choice.errors else None
    for attempt in turn.case.attempts[:-2]:
        sentence = "Two attempts have begun since: there is nothing left to follow."
        withdraw(turn, attempt.number, StatusReason.SUPERSEDED, sentence)
    for attempt in turn.case.attempts[-2:]:
        if policy is not None:
            _consider_attempt(turn, attempt.number, policy)
        else:
            withdraw(
                turn,
                attempt.number,
                StatusReason.CHANGED_BY_PERSON,
                "The job is no longer opted in, or its comment is in error.",
            )
    turn.case = msgspec.structs.replace(turn.case, wake_at=min(turn.wakes, default=None))


def _consider_attempt(turn: Turn, number: int, policy: Policy) -> None:
    attempt = turn.case.attempt(number)
    if attempt is None:
        return
    if _is_advised(attempt):
        keep_advice(turn, attempt)
        attempt = turn.case.attempt(number) or attempt
    if attempt.ended_seen_at is not None:
        _consider_ended(turn, attempt, policy, attempt.ended_seen_at)
    elif _is_advised(attempt):
        if not withdraw_if_well(turn, attempt, policy):
            revise_advice(turn, attempt, policy)
    else:
        _consider_living(turn, attempt, policy)
    keep_leave(turn, number, policy)
    follow_recovery(turn, number)


def _is_advised(attempt: AttemptCase) -> bool:
    return attempt.advice is not None and attempt.advice.is_active


def _consider_living(turn: Turn, attempt: AttemptCase, policy: Policy) -> None:
    was_open = is_open(attempt.incident)
    judge_living(turn, attempt, policy)
    attempt = turn.case.attempt(attempt.number) or attempt
    if was_open and not is_open(attempt.incident):
        judge_living(turn, attempt, policy)  # what it left, and when to look at it again


def _consider_ended(turn: Turn, attempt: AttemptCase, policy: Policy, ended: Instant) -> None:
    if attempt.advice is None or attempt.advice.while_living:
        judge_ended(turn, attempt, policy, ended)
        attempt = turn.case.attempt(attempt.number) or attempt
    if attempt.advice is None or attempt.advice.while_living:
        return
    look_again(turn, attempt, policy, ended)
    revise_advice(turn, turn.case.attempt(attempt.number) or attempt, policy)
