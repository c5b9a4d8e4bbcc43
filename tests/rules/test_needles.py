from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relight.rules.loading import load
from relight.rules.needles import needles
from relight.rules.patterns import Pattern, one_expression

EXPRESSIONS = sorted({one for rule in load() for one in rule.patterns})


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("CUDA error", ("CUDA error",)),
        ("abc[de]fg|xyz+foo", ("abcdfg", "abcefg", "foo")),
        (r"(?:in|out) of (?P<x>memory|disk)\b", None),
        (r"a?bcde(?:f{2}ghij)*", ("abcde", "bcde")),
        (r"(?i)Out of Memory", ("out of memory",)),
        (r"status=(?P<code>\d{1,3}) opcode", ("status=",)),
        (r"\[rank\d{1,3}\]: died", ("]: died",)),
        (r"\w{1,9}", ()),
        (r"(?:abcd)?", ()),
        (r"abcd|\d", ()),
        (r"x{'loss': nan", ("x{'loss': nan",)),
        (r"(?:abcd){1}efgh", ("abcdefgh",)),
        (r"\x41bcd", ("Abcd",)),
        (r"[[:alpha:]]{1,9}abcd", ("abcd",)),
        (r"[^]abc]defg", ("defg",)),
    ],
)
def test_the_literals_of_an_expression_are_those_that_every_match_holds(
    expression: str, expected: tuple[str, ...] | None
) -> None:
    if expected is None:
        expected = ("in of disk", "in of memory", "out of disk", "out of memory")
    assert needles(expression) == expected


@settings(max_examples=300)
@given(st.data())
def test_no_match_of_a_packaged_expression_lacks_its_literals(data: st.DataObject) -> None:
    expression = data.draw(st.sampled_from(EXPRESSIONS))
    exact = re.compile(one_expression([expression]), re.ASCII)
    text = data.draw(st.from_regex(exact, alphabet=st.characters(max_codepoint=127)))
    line = text.replace("\n", " ").encode()
    if not Pattern(expression).is_in(line):
        return
    shown = line.decode("latin-1")
    shown = shown.lower() if "(?i" in expression else shown
    assert any(needle in shown for needle in needles(expression)), (expression, line)


def test_several_expressions_become_one_that_matches_what_any_does() -> None:
    joined = Pattern(one_expression([r"(?P<a>one) thing", r"(?i)(?P<a>two) THINGS"]))
    assert joined.is_in(b"one thing")
    assert joined.is_in(b"Two things")
    assert not joined.is_in(b"One thing")
