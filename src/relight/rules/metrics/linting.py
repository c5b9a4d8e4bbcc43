"""What is wrong with a rule over metrics: its names, its expression, and its own cases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from relight.model.evidence import Window
from relight.model.findings import Role
from relight.model.instants import EPOCH, Instant, Span, parse_span
from relight.model.jobs import Allocation, AttemptKey, JobKey
from relight.model.telemetry import Series
from relight.rules.families import FAMILIES
from relight.rules.metrics.judging import PLACEHOLDER, findings_of, instants
from relight.rules.metrics.notation import read_series
from relight.rules.metrics.schema import Case, MetricRule
from relight.rules.schema import Status

MOST_EXPRESSION = 4_000
"""Characters of an expression: it is sent with each question."""
MOST_CASES = 100
NODE_LABEL = "node"
"""The label that names the node in the cases of a rule that leaves it to the settings."""

_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|`[^`]*`')
_PAIRS = {")": "(", "]": "[", "}": "{"}
_FROM_RULE = frozenset({"node", "device", "value"})


def lint(rule: MetricRule) -> list[str]:
    """Return the problems of one rule, each in one sentence; none when it can be used."""
    if rule.status is Status.RETIRED:
        return []
    problems = [*_names(rule), *_limits(rule), *_expression(rule.expr)]
    return problems or [*_cases(rule)]


def _names(rule: MetricRule) -> Iterator[str]:
    if not _ID.fullmatch(rule.id):
        yield f'the id "{rule.id}" is not kebab-case'
    if rule.family not in FAMILIES:
        near = get_close_matches(rule.family, FAMILIES, n=1)
        hint = f'did you mean "{near[0]}"?' if near else f"known are {', '.join(sorted(FAMILIES))}"
        yield f'the family "{rule.family}" is unknown; {hint}'
    if rule.role is Role.BENIGN:
        yield "a metric silences no line, so no rule over metrics is benign; do without it"
    for field in ("title", "sentence", "evidence", "why", "expr"):
        if not getattr(rule, field).strip():
            yield f"{field} is empty"
    for field in ("node_label", "device_label"):
        label = getattr(rule, field)
        if label and not _LABEL.fullmatch(label):
            yield f'{field} "{label}" is no name of a label'


def _limits(rule: MetricRule) -> Iterator[str]:
    if rule.above is not None and rule.below is not None:
        yield "has both above and below; a sample is held against one of them"
    if isinstance(rule.lasting, int):
        if rule.lasting < 1:
            yield f"for = {rule.lasting}: a rule holds for one scrape at least"
        return
    try:
        parse_span(rule.lasting)
    except ValueError as error:
        yield f"for: {error}"


def _expression(text: str) -> Iterator[str]:
    if len(text) > MOST_EXPRESSION:
        yield f"expr is longer than {MOST_EXPRESSION} characters"
        return
    if any(not character.isprintable() and character not in "\n\t" for character in text):
        yield "expr holds characters that cannot be printed"
    opened: list[str] = []
    for character in _QUOTED.sub("", text):
        if character in "\"'`":
            yield "expr opens a quotation that it does not close"
            return
        if character in _PAIRS.values():
            opened.append(character)
        elif character in _PAIRS and (not opened or opened.pop() != _PAIRS[character]):
            yield f'expr closes a "{character}" that it did not open'
            return
    if opened:
        yield f'expr does not close its "{opened[-1]}"'


def _cases(rule: MetricRule) -> Iterator[str]:
    if not any(case.names for case in rule.test) or all(case.names for case in rule.test):
        yield "needs a test that names a node, and one in which it stays silent"
    if len(rule.test) > MOST_CASES:
        yield f"has more than {MOST_CASES} tests; leave some out"
        return
    for number, case in enumerate(rule.test, 1):
        place = f"test {number} ({case.what or 'which lacks its what'})"
        yield from (f"{place}: {problem}" for problem in _case(rule, case))


def _case(rule: MetricRule, case: Case) -> Iterator[str]:
    label = rule.node_label or NODE_LABEL
    used = set(PLACEHOLDER.findall(rule.sentence)) - _FROM_RULE
    for one in case.series:
        if label not in one.labels:
            yield f"a series lacks the label {label}, which names its node"
        if lacking := sorted(used - one.labels.keys()):
            yield f"the sentence names {{{lacking[0]}}}, and a series has no such label"
    try:
        named = _named(rule, case, label)
    except ValueError as error:
        yield str(error)
        return
    if named != set(case.names):
        yield (
            f"names {', '.join(sorted(named)) or 'no node'}, "
            f"and ought to name {', '.join(sorted(case.names)) or 'none'}"
        )


def _named(rule: MetricRule, case: Case, label: str) -> set[str]:
    """Return the nodes that the rule names in a case.

    Raises:
        ValueError: its interval or one of its series cannot be read.

    """
    step = parse_span(case.interval)
    series = [
        Series(
            metric=rule.id,
            node=one.labels.get(label, ""),
            device=one.labels.get(rule.device_label, "") if rule.device_label else "",
            labels=one.labels,
            samples=instants(EPOCH, step, read_series(one.values)),
        )
        for one in case.series
    ]
    nodes = tuple(dict.fromkeys(one.node for one in series if one.node))
    return {
        node
        for one in findings_of(rule, series, _window(nodes, series, step))
        for node in one.nodes
    }


def _window(nodes: tuple[str, ...], series: list[Series], step: Span) -> Window:
    ends = [sample.at for one in series for sample in one.samples]
    return Window(
        attempt=AttemptKey(job=JobKey(cluster="main", scheduler_id="1"), attempt=0),
        allocation=Allocation(nodes=nodes),
        since=EPOCH,
        until=Instant(max(ends, default=EPOCH) + step),
    )
