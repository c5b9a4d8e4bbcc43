"""Which actions a ruling needs, and whether they may be taken (law 3)."""

from __future__ import annotations

from relight.model.advice import Action, Decision, Mode
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


def may_act(needed: tuple[Action, ...], policy: Policy) -> bool:
    """Tell whether policy allows acting at all, a person's yes aside."""
    return policy.mode is not Mode.MONITOR and all(action in policy.may for action in needed)
