from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relight.perception.matching import (
    HAS_HYPERSCAN,
    HyperscanMatcher,
    Matcher,
    Patterned,
    SetMatcher,
    build_matcher,
)
from relight.perception.shapes import SHAPES
from relight.rules.loading import load

RULES = load()
THINGS: list[Patterned] = [*RULES, *SHAPES]
HITS = [hit.encode() for rule in RULES for hit in rule.hits]
MISSES = [miss.text.encode() for rule in RULES for miss in rule.misses]
BY_SET = SetMatcher(THINGS)
BY_BLOCK: Matcher = HyperscanMatcher(THINGS) if HAS_HYPERSCAN else BY_SET

noise = st.binary(max_size=60).map(lambda data: data.replace(b"\n", b" ").replace(b"\x0b", b" "))
lines = st.one_of(st.sampled_from(HITS), st.sampled_from(MISSES), noise)
glued = st.tuples(noise, lines, noise).map(b"".join)
blocks = st.lists(st.one_of(lines, glued), max_size=30).map(lambda rows: b"\n".join(rows) + b"\n")


@dataclass
class Thing:
    """Something with expressions."""

    patterns: tuple[str, ...]


@settings(max_examples=150, deadline=None)
@given(blocks)
def test_both_engines_give_the_same_answer(block: bytes) -> None:
    assert BY_BLOCK.scan(block) == BY_SET.scan(block)


@pytest.mark.parametrize("matcher", [BY_BLOCK, BY_SET], ids=["block", "set"])
def test_each_rule_is_found_on_its_own_hits_whatever_stands_around(matcher: Matcher) -> None:
    for index, rule in enumerate(RULES):
        for hit in rule.hits:
            block = b"before\n" + hit.encode() + b"\nafter\n"
            assert (7, index) in matcher.scan(block), (rule.id, hit)


CASES = [
    ("a match does not run over a line end", ["foo[^x]{1,9}bar"], b"foo\nbar\n", []),
    ("white space does not run over a line end", [r"foo\s{1,4}bar"], b"foo \n bar\n", []),
    ("many ends in one line are one match", ["a.{0,50}b"], b"abbbbbbb\n", [(0, 0)]),
    ("every line of a flood is found", ["foo"], b"foo\n" * 3, [(0, 0), (4, 0), (8, 0)]),
    ("start and end are those of the line", ["^foo$"], b"xfoo\nfoo\nfoox\n", [(5, 0)]),
    ("the last line may lack its end", ["foo"], b"x\nfoo", [(2, 0)]),
    ("an empty block holds nothing", ["foo"], b"", []),
    ("zero bytes are bytes", ["foo.bar"], b"foo\x00bar\n", [(0, 0)]),
]


@pytest.mark.parametrize(("_name", "patterns", "block", "expected"), CASES)
@pytest.mark.parametrize("kind", [HyperscanMatcher, SetMatcher])
def test_lines_are_told_apart(
    _name: str,
    patterns: list[str],
    block: bytes,
    expected: list[tuple[int, int]],
    kind: type[HyperscanMatcher | SetMatcher],
) -> None:
    if kind is HyperscanMatcher and not HAS_HYPERSCAN:
        pytest.skip("Hyperscan exists for x86-64 only")
    assert kind([Thing(tuple(patterns))]).scan(block) == expected


def test_threads_may_share_a_matcher() -> None:
    matcher = build_matcher(RULES)
    block = b"\n".join(HITS) + b"\n"
    expected = matcher.scan(block)
    with ThreadPoolExecutor(8) as pool:
        assert all(found == expected for found in pool.map(matcher.scan, [block] * 64))
