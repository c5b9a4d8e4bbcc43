"""Which kinds of action a ruling needs (law 3)."""

from __future__ import annotations

from relight.model.advice import Action, Decision
from relight.policy.advising import Ruling
from relight.policy.policies import Policy


def actions_needed(ruling: Ruling, *, is_living: bool, is_requeued: bool) -> tuple[Action, ...]:
    """Return the kinds of action that carry out a ruling; none where nothing is to be done."""
    match ruling.decision:
        case Decision.NONE:
            return ()
        case Decision.STOP:
            return (Action.CANCEL,) if is_living or is_requeued else ()
        case Decision.RESTART | Decision.HOLD:
            return (Action.REQUEUE,)
        case Decision.RESTART_EXCLUDING_NODE:
            return (Action.REQUEUE, Action.EXCLUDE)


def granted(policy: Policy) -> tuple[Action, ...]:
    """Return the kinds of action that a permit under this policy gives leave for.

    A policy that names a signal and may requeue may send it: who allows the end of an attempt
    allows the word before it.
    """
    if policy.signal_first and Action.REQUEUE in policy.may and Action.SIGNAL not in policy.may:
        return (*policy.may, Action.SIGNAL)
    return policy.may
