"""What is wrong with a rule: checked when it is loaded, so that no bad rule ever runs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from relight.rules.families import FAMILIES
from relight.rules.patterns import CompiledRule, Pattern, PatternError
from relight.rules.schema import Rule

FEWEST_HITS = 2
FEWEST_MISSES = 1
MOST_PATTERN = 1_000
"""Characters of one expression. Both engines compile it to a table that grows with it."""

_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_OPEN_END = re.compile(r"(?<!\\)(?:[*+]|,\})\??\)*\$?\Z")
_CROSSES_LINES = re.compile(r"(?<!\\)\(\?[a-zA-Z]*[sm]")
_FROM_PREFIX = frozenset({"node", "rank"})
_REFUSED = (
    ("\\A", "use ^"),
    ("\\z", "use $"),
    ("\\Z", "use $"),
    ("\\C", "name the bytes"),
)


def lint(rule: Rule) -> list[str]:
    """Return the problems of one rule, each in one sentence; none when it can be used."""
    return [*_names(rule), *_expressions(rule), *_examples(rule)]


def hyperscan_refusal(expression: str) -> str:
    """Return why Hyperscan refuses an expression, empty when it does not or is not installed."""
    try:
        import hyperscan  # noqa: PLC0415 - absent on processors other than x86-64
    except ImportError:
        return ""
    try:
        hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK).compile(
            expressions=[expression.encode()], flags=hyperscan.HS_FLAG_MULTILINE
        )
    except hyperscan.HyperscanError as error:
        return str(error)
    return ""


def _names(rule: Rule) -> Iterator[str]:
    if not _ID.fullmatch(rule.id):
        yield f'the id "{rule.id}" is not kebab-case'
    if rule.family not in FAMILIES:
        yield f'the family "{rule.family}" is unknown; choose one of relight.rules.families'
    for field in ("title", "sentence", "evidence"):
        if not getattr(rule, field).strip():
            yield f"{field} is empty"
    captured: set[str] = set(_FROM_PREFIX)
    for expression in rule.patterns:
        captured |= set(re.findall(r"\(\?P<(\w+)>", expression))
    for name in _PLACEHOLDER.findall(rule.sentence):
        if name not in captured:
            yield f"the sentence names {{{name}}}, which no pattern captures"


def _expressions(rule: Rule) -> Iterator[str]:
    if not rule.patterns:
        yield "it has no pattern"
    for expression in (*rule.patterns, *rule.unless):
        for problem in _expression(expression):
            yield f"pattern {expression!r}: {problem}"


def _expression(expression: str) -> Iterator[str]:
    if not expression.isascii() or len(expression) > MOST_PATTERN:
        yield f"must be ASCII of at most {MOST_PATTERN} characters"
        return
    for written, advice in _REFUSED:
        if written in expression:
            yield f"must not use {written}: {advice}"
    if _CROSSES_LINES.search(expression):
        yield "must not set the flags s or m: a pattern sees one line"
    if _OPEN_END.search(expression):
        yield "ends in an unbounded repetition, which reports every byte of it; bound or cut it"
    try:
        if Pattern(expression).is_in(b""):
            yield "matches the empty line"
            return
    except PatternError as error:
        yield f"RE2 refuses it: {error}; write it without lookaround and back-references"
        return
    if refusal := hyperscan_refusal(expression):
        yield f"Hyperscan refuses it: {refusal}; write it more simply"


def _examples(rule: Rule) -> Iterator[str]:
    if len(rule.hits) < FEWEST_HITS or len(rule.misses) < FEWEST_MISSES:
        yield f"needs at least {FEWEST_HITS} hits and {FEWEST_MISSES} miss"
    try:
        compiled = CompiledRule(rule)
    except PatternError:
        return
    for hit in rule.hits:
        if compiled.captures(hit.encode()) is None:
            yield f"its own hit does not match: {hit!r}"
    for miss in rule.misses:
        if compiled.captures(miss.text.encode()) is not None:
            yield f"its own miss matches: {miss.text!r}"
        if not miss.why.strip():
            yield f"a miss lacks its why: {miss.text!r}"
