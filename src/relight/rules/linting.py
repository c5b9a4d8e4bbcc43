"""What is wrong with a rule: checked when it is loaded, so that no bad rule ever runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from relight.model.findings import Kind, Role
from relight.rules.families import FAMILIES
from relight.rules.needles import FEWEST_CHARACTERS, needles, shortest
from relight.rules.patterns import CompiledRule, Pattern, PatternError
from relight.rules.schema import Rule, Status

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
    if rule.status is Status.RETIRED:
        return []
    return [*_names(rule), *_roles(rule), *_expressions(rule), *_examples(rule)]


def shadowed(rule: Rule, rules: Iterable[Rule]) -> str:
    """Return why ``rule`` is never needed beside ``rules``, empty when it is.

    It is shadowed when another rule hears each of its hits and says as much: its role is as
    strong and its family the same, or it silences those lines.
    """
    if rule.status is Status.RETIRED:
        return ""
    hits = [hit.encode() for hit in rule.hits]
    for other in rules:
        if other.id == rule.id or other.status is Status.RETIRED or not _says_as_much(other, rule):
            continue
        compiled = _compiled(other)
        if compiled and hits and all(compiled.captures(hit) is not None for hit in hits):
            return (
                f"is shadowed by {other.id}, which hears every hit of it: narrow or override that "
                "one, or do without this one"
            )
    return ""


def _says_as_much(other: Rule, rule: Rule) -> bool:
    if other.role is Role.BENIGN:
        return True
    return other.family == rule.family and _STRENGTH[other.role] >= _STRENGTH[rule.role]


_STRENGTH = {Role.ROOT: 3, Role.EITHER: 2, Role.SYMPTOM: 1, Role.BENIGN: 0}


def hyperscan_refusal(*expressions: str) -> str:
    """Return why Hyperscan refuses any of them, empty when it takes all or is not installed."""
    try:
        import hyperscan  # noqa: PLC0415 - absent on processors other than x86-64
    except ImportError:
        return ""
    try:
        hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK).compile(
            expressions=[expression.encode() for expression in expressions],
            flags=[hyperscan.HS_FLAG_MULTILINE] * len(expressions),
        )
    except hyperscan.HyperscanError as error:
        return str(error)
    return ""


def _names(rule: Rule) -> Iterator[str]:
    if not _ID.fullmatch(rule.id):
        yield f'the id "{rule.id}" is not kebab-case'
    if rule.family not in FAMILIES:
        near = get_close_matches(rule.family, FAMILIES, n=1)
        hint = f'did you mean "{near[0]}"?' if near else f"known are {', '.join(sorted(FAMILIES))}"
        yield f'the family "{rule.family}" is unknown; {hint}'
    for field in ("title", "sentence", "evidence", "why"):
        if not getattr(rule, field).strip():
            yield f"{field} is empty"
    captured: set[str] = set(_FROM_PREFIX)
    for expression in rule.patterns:
        captured |= set(re.findall(r"\(\?P<(\w+)>", expression))
    for name in _PLACEHOLDER.findall(rule.sentence):
        if name not in captured:
            yield f"the sentence names {{{name}}}, which no pattern captures"


def _roles(rule: Rule) -> Iterator[str]:
    if rule.ending is not None and rule.kind is not Kind.ENDING:
        yield f'it tells of the ending {rule.ending}, so its kind is "ending"'
    if rule.role is Role.BENIGN and rule.ending is not None:
        yield "a benign line tells of no ending; choose another role"


def _expressions(rule: Rule) -> Iterator[str]:
    if not rule.patterns:
        yield "it has no pattern"
    expressions = (*rule.patterns, *rule.unless)
    problems = [(one, problem) for one in expressions for problem in _expression(one)]
    yield from (f"pattern {one!r}: {problem}" for one, problem in problems)
    if problems or not hyperscan_refusal(*expressions):
        return
    for one in expressions:  # which of them it is
        if refusal := hyperscan_refusal(one):
            yield f"pattern {one!r}: Hyperscan refuses it: {refusal}; write it more simply"


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
        hint = "; lookaround and back-references cannot be had" if "perl" in str(error) else ""
        yield f"RE2 refuses it: {error}{hint}"
        return
    if shortest(needles(expression)) < FEWEST_CHARACTERS:
        yield f"has no literal of {FEWEST_CHARACTERS} characters that every match holds"


def _examples(rule: Rule) -> Iterator[str]:
    if len(rule.hits) < FEWEST_HITS or len(rule.misses) < FEWEST_MISSES:
        yield f"needs at least {FEWEST_HITS} hits and {FEWEST_MISSES} miss"
    for miss in (*rule.misses, *rule.known_misses):
        if not miss.why.strip():
            yield f"a miss lacks its why: {miss.text!r}"
    compiled = _compiled(rule)
    if compiled is None:
        return
    heard = {
        line: compiled.captures(line.encode()) is not None
        for line in (*rule.hits, *(one.text for one in (*rule.misses, *rule.known_misses)))
    }
    yield from (f"its own hit does not match: {hit!r}" for hit in rule.hits if not heard[hit])
    yield from (f"its own miss matches: {one.text!r}" for one in rule.misses if heard[one.text])
    for known in rule.known_misses:
        if heard[known.text]:
            yield f"a known miss matches by now, make it a hit: {known.text!r}"


def _compiled(rule: Rule) -> CompiledRule | None:
    try:
        return CompiledRule(rule)
    except PatternError:
        return None
