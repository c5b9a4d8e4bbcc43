"""Which kinds of action a ruling needs (law 3)."""

from __future__ import annotations

from relight.model.advice import Action, Decision
from relight.policy.advising import Ruling


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
