from __future__ import annotations

import msgspec
import pytest

from relight.model.advice import Action, Decision, Mode
from relight.model.reasons import Reason
from relight.policy.advising import Ruling
from relight.policy.permits import actions_needed, granted
from relight.policy.policies import Policy, PolicyBook

RESTART = (Action.REQUEUE,)


@pytest.mark.parametrize(
    ("decision", "is_living", "is_requeued", "expected"),
    [
        *((Decision.NONE, living, back, ()) for living in (False, True) for back in (False, True)),
        (Decision.STOP, False, False, ()),
        (Decision.STOP, True, False, (Action.CANCEL,)),
        (Decision.STOP, False, True, (Action.CANCEL,)),
        (Decision.STOP, True, True, (Action.CANCEL,)),
        (Decision.RESTART, False, False, RESTART),
        (Decision.RESTART, True, True, RESTART),
        (Decision.HOLD, False, False, RESTART),
        (Decision.RESTART_EXCLUDING_NODE, False, False, (Action.REQUEUE, Action.EXCLUDE)),
        (Decision.RESTART_EXCLUDING_NODE, True, True, (Action.REQUEUE, Action.EXCLUDE)),
    ],
)
def test_a_ruling_needs_leave_for_what_carries_it_out(
    *, decision: Decision, is_living: bool, is_requeued: bool, expected: tuple[Action, ...]
) -> None:
    ruling = Ruling(decision=decision, reason=Reason(code="c", sentence="s."))
    needed = actions_needed(ruling, is_living=is_living, is_requeued=is_requeued)
    assert needed == expected


@pytest.mark.parametrize(
    ("may", "signal_first", "has_signal"),
    [
        ((Action.REQUEUE,), "USR1@60", True),
        ((Action.REQUEUE,), "", False),
        ((Action.EXCLUDE,), "USR1@60", False),
        ((), "USR1@60", False),
        ((Action.REQUEUE, Action.SIGNAL), "USR1@60", True),
    ],
)
def test_a_policy_that_names_a_signal_and_may_requeue_may_send_it(
    *, may: tuple[Action, ...], signal_first: str, has_signal: bool
) -> None:
    leave = granted(Policy(name="default", may=may, signal_first=signal_first))
    assert (Action.SIGNAL in leave) is has_signal
    assert len(set(leave)) == len(leave)
    assert set(may) <= set(leave)


def test_a_policy_is_named_by_its_content() -> None:
    policy = Policy(name="default")
    changes: list[dict[str, object]] = [
        {"name": "bold"},
        {"mode": Mode.ACT},
        {"max_restarts": 4},
        {"may": (Action.REQUEUE,)},
        {"settle": 1},
    ]
    others = [msgspec.structs.replace(policy, **change) for change in changes]
    assert len({policy.revision, *(one.revision for one in others)}) == 6
    assert Policy(name="default").revision == policy.revision


def test_a_book_knows_its_policies_by_name_and_begins_with_one_that_only_watches() -> None:
    book = PolicyBook()
    only = book.policy("default")
    assert only is not None
    assert only.mode is Mode.MONITOR
    assert book.policy("bold") is None
    changed = PolicyBook(policies=(Policy(name="default", mode=Mode.ACT),))
    assert changed.revision != book.revision
