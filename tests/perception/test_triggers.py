from __future__ import annotations

from collections import Counter

from relight.perception.triggers import Trigger, sharpened, triggers_of
from relight.rules.loading import load

LOSS = r"\bloss {1,4}(?:nan|inf)"
WEIGHTS = "weights of the loss|gradients explode"
SHORT = r"ab\d{1,3}"
EXPRESSIONS = (LOSS, WEIGHTS, SHORT, "(?i)Killed by|SIGKILL", "gradients explode")


def test_an_expression_begins_as_the_literals_that_every_match_holds() -> None:
    assert triggers_of(EXPRESSIONS) == (
        Trigger(wakes=(2,), expression=rb"ab\d"),
        Trigger(wakes=(0,), literals=(b"loss",)),
        Trigger(wakes=(1, 4), literals=(b"gradients explode",)),
        Trigger(wakes=(1,), literals=(b"weights of the loss",)),
        Trigger(wakes=(3,), literals=(b"killed by", b"sigkill"), is_caseless=True),
    )


def test_what_is_asked_in_vain_is_searched_for_itself() -> None:
    triggers = triggers_of(EXPRESSIONS)
    once = sharpened(triggers, EXPRESSIONS, Counter({1: 900, 4: 3}))
    assert once is not None
    assert once[-1] == Trigger(wakes=(1,), expression=WEIGHTS.encode())
    assert Trigger(wakes=(4,), literals=(b"gradients explode",)) in once
    assert not any(one.literals == (b"weights of the loss",) for one in once)
    assert {number for one in once for number in one.wakes} == set(range(5))


def test_nothing_is_changed_where_nothing_could_be_better() -> None:
    triggers = triggers_of(EXPRESSIONS)
    assert sharpened(triggers, EXPRESSIONS, Counter()) is None
    assert sharpened(triggers, EXPRESSIONS, Counter({2: 1000})) is None
    many = [f"literal {number} \\d" for number in range(100)]
    assert sharpened(triggers_of(many), many, Counter(dict.fromkeys(range(100), 10))) is None


def test_all_packaged_expressions_are_woken_and_nearly_all_by_literals() -> None:
    expressions = [one for rule in load() for one in rule.patterns]
    triggers = triggers_of(expressions)
    assert {number for one in triggers for number in one.wakes} == set(range(len(expressions)))
    assert not [one.expression for one in triggers if one.expression]
