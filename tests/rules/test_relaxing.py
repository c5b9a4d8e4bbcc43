from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relight.perception.shapes import COUNTERS, SHAPES
from relight.rules.loading import load
from relight.rules.patterns import Pattern, one_expression
from relight.rules.relaxing import relaxed

RULES = load()
OF_RULES = {one for rule in RULES for one in rule.patterns}
EXPRESSIONS = sorted(OF_RULES | {one for shape in (*SHAPES, *COUNTERS) for one in shape.patterns})


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("CUDA error", "CUDA error"),
        (r"[^\n]{0,60}failed: (?P<why>\w{1,40})(?: in \w+)?", r"failed: (?:\w)"),
        (r"\d{3,5} of x{2,}", r"\d{3} of x{2}"),
        (r"a[^\n]{0,80}?b", r"a[^\n]{0,80}b"),
        (r"(?:a?b|c+)d", r"(?:b|c)d"),
        (r"(?:a?|b)c", "c"),
        (r"(?:a|b){2,4}c", "(?:a|b){2}c"),
        (r"^ *x+$", "^ *x+$"),
        (r"\bx{1,3}\b", r"\bx{1,3}\b"),
        (r"(?i) *loss", "(?i)loss"),
        (r" *(?i: *nan|inf *)", "(?i:nan|inf)"),
        (r" *first|second *", "first|second"),
        (r"a *|b", "a|b"),
        (r"a*|b", "a*|b"),
        (r"a*", "a*"),
        (r"x{'loss'", r"x{'loss'"),
        (r"[]x]{1,4}y[^]]", r"[]x]y[^]]"),
        (r"[[:alpha:]]{1,9}\x41\]{1,2}", r"[[:alpha:]]\x41\]"),
        (r"a+b*c?d{2}e{2,}f", r"a+b*c?d{2}e{2,}f".replace("a+", "a")),
    ],
)
def test_what_may_be_missing_at_the_ends_is_left_out(expression: str, expected: str) -> None:
    assert relaxed(expression) == expected


def test_a_group_that_no_rule_may_use_is_refused() -> None:
    with pytest.raises(ValueError, match="no rule may use"):
        relaxed("a(?=b)")


def test_every_example_of_a_rule_is_found_by_the_relaxed_expressions_too() -> None:
    for rule in RULES:
        exact = [Pattern(one) for one in rule.patterns]
        loose = [Pattern(relaxed(one)) for one in rule.patterns]
        for hit in rule.hits:
            line = hit.encode()
            for one, other in zip(exact, loose, strict=True):
                assert not one.is_in(line) or other.is_in(line), (one.text, other.text)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_where_an_expression_matches_the_relaxed_one_does(data: st.DataObject) -> None:
    expression = data.draw(st.sampled_from(EXPRESSIONS))
    alike = re.compile(one_expression([expression]), re.ASCII)
    text = data.draw(st.from_regex(alike, alphabet=st.characters(max_codepoint=127)))
    line = text.replace("\n", " ").encode()
    if Pattern(expression).is_in(line):
        assert Pattern(relaxed(expression)).is_in(line), (expression, line)


atoms = st.sampled_from(["a", "b", ".", "[ab]", r"\d", r"\b", "^", "$", r"[^b]"])
counts = st.sampled_from(["", "*", "+", "?", "{0,3}", "{1,2}", "{2}", "{2,}", "{1,4}?"])


def _grouped(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    sequences = st.lists(inner, min_size=1, max_size=4).map("".join)
    branches = st.lists(sequences, min_size=1, max_size=3).map("|".join)
    return st.builds("(?{}{}){}".format, st.sampled_from([":", "i:", "P<x>"]), branches, counts)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(
        st.recursive(st.builds("{}{}".format, atoms, counts), _grouped, max_leaves=8),
        min_size=1,
        max_size=5,
    ).map("".join),
    st.text("abAB1 ", max_size=12),
)
def test_so_it_does_for_any_expression(expression: str, text: str) -> None:
    unnamed = expression.replace("(?P<x>", "(?:")
    if Pattern(unnamed).is_in(text.encode()):
        assert Pattern(relaxed(expression)).is_in(text.encode())
