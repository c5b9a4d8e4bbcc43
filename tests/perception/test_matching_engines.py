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
from relight.perception.shapes import COUNTERS, SHAPES
from relight.rules.loading import load

RULES = load()
THINGS: list[Patterned] = [*RULES, *SHAPES, *COUNTERS]
HITS = [hit.encode() for rule in RULES for hit in rule.hits]
MISSES = [miss.text.encode() for rule in RULES for miss in rule.misses]
BY_SET = SetMatcher(THINGS)
BY_BLOCK: Matcher = HyperscanMatcher(THINGS) if HAS_HYPERSCAN else BY_SET
LEARNING: Matcher = HyperscanMatcher(THINGS, patience=100) if HAS_HYPERSCAN else BY_SET
needs_hyperscan = pytest.mark.skipif(not HAS_HYPERSCAN, reason="Hyperscan exists for x86-64 only")

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
    found = BY_SET.scan(block)
    assert BY_BLOCK.scan(block) == found
    assert LEARNING.scan(block) == found


@pytest.mark.parametrize("matcher", [BY_BLOCK, LEARNING, BY_SET], ids=["block", "learnt", "set"])
def test_each_rule_is_found_on_its_own_hits_whatever_stands_around(matcher: Matcher) -> None:
    block, expected = b"before\n", []
    for index, rule in enumerate(RULES):
        for hit in rule.hits:
            expected.append((len(block), index))
            block += hit.encode() + b"\nbetween\n"
    assert set(expected) - set(matcher.scan(block)) == set()


CASES = [
    ("a match does not run over a line end", ["foo[^x]{1,9}bar"], b"foo\nbar\n", []),
    ("white space does not run over a line end", [r"foo\s{1,4}bar"], b"foo \n bar\n", []),
    ("many ends in one line are one match", ["a.{0,50}b"], b"abbbbbbb\n", [(0, 0)]),
    ("every line of a flood is found", ["foo"], b"foo\n" * 3, [(0, 0), (4, 0), (8, 0)]),
    ("start and end are those of the line", ["^foo$"], b"xfoo\nfoo\nfoox\n", [(5, 0)]),
    ("the last line may lack its end", ["foo"], b"x\nfoo", [(2, 0)]),
    ("an empty block holds nothing", ["foo"], b"", []),
    ("zero bytes are bytes", ["foo.bar"], b"foo\x00bar\n", [(0, 0)]),
    ("bytes beyond ASCII are bytes", [r"caf\xe9 \d"], b"caf\xe9 1\n", [(0, 0)]),
    ("text beyond ASCII is UTF-8", ["caf\xe9 \\d"], "caf\xe9 1\n".encode(), [(0, 0)]),
    ("signs are no syntax", [r"\[a\.b\*c\] \d"], b"[a.b*c] 1\n[axb*c] 1\n", [(0, 0)]),
    ("a literal may hold a zero byte", [r"foo\x00bar \d"], b"foo\x00bar 1\nfoo 1\n", [(0, 0)]),
    ("case may not matter", [r"(?i)Out Of Memory"], b"OUT of memory\n", [(0, 0)]),
    ("case may not matter in a part", [r"foo(?i:bar)\d"], b"fooBAR1\nFOObar1\n", [(0, 0)]),
    ("short literals are found", [r"ab\d"], b"ab\nab1\n", [(3, 0)]),
    ("no literal is needed", [r"\d{3}x"], b"12x\n123x\n", [(4, 0)]),
    ("one line may match both", ["foo bar", "bar foo"], b"foo bar foo\n", [(0, 0)]),
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


@needs_hyperscan
@pytest.mark.parametrize(("_name", "patterns", "block", "expected"), CASES)
def test_what_is_found_stays_the_same_once_it_is_learnt_what_is_common(
    _name: str, patterns: list[str], block: bytes, expected: list[tuple[int, int]]
) -> None:
    matcher = HyperscanMatcher([Thing(tuple(patterns))], patience=1)
    for _ in range(4):
        assert matcher.scan(block) == expected


@needs_hyperscan
def test_what_was_kept_finds_the_same_and_rubbish_is_not_taken() -> None:
    block = b"\n".join(HITS) + b"\n"
    matcher = HyperscanMatcher(THINGS)
    expected = matcher.scan(block)
    kept = matcher.kept()
    again = HyperscanMatcher.of_kept(THINGS, kept)
    assert again is not None
    assert again.scan(block) == expected
    for rubbish in (b"", b"x", kept[:-1], kept[: len(kept) // 2], b"\x82\xa1"):
        assert HyperscanMatcher.of_kept(THINGS, rubbish) is None


def test_threads_may_share_a_matcher() -> None:
    matcher = build_matcher(RULES)
    block = b"\n".join(HITS) + b"\n"
    expected = matcher.scan(block)
    with ThreadPoolExecutor(8) as pool:
        assert all(found == expected for found in pool.map(matcher.scan, [block] * 16))
