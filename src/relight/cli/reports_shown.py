"""The diagnosis for a person: what happened, the line that tells it, what relight would do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import assert_never

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from relight.cli.reports_said import (
    advice,
    confidence,
    headline,
    how_far,
    place,
    rest,
    set_aside,
    suspects,
    where,
)
from relight.cli.screens import plain
from relight.model.advice import Decision
from relight.model.findings import Domain
from relight.model.reports import Happened, Report, RootLine
from relight.rules.schema import Rule
from relight.sources.archives.diagnosing import Diagnosed, Diagnoses

MOST_ALTERNATIVES = 3
MOST_LIKELY = 8

_LONGEST_ROOT = 1_200
_LONGEST_CONTEXT = 240
"""Characters of a line that are shown: a flood on one line is no help."""


def pages(diagnoses: Diagnoses, rules: Mapping[str, Rule]) -> Iterator[RenderableType]:
    """Yield what is printed of each job; ``rules`` are those that were heard, by id."""
    for number, one in enumerate(diagnoses.jobs):
        if len(diagnoses.jobs) > 1:
            name = f"Job {one.job}" if one.job else "Logs without a job's number"
            yield Text(("\n" if number else "") + plain(name), style="bold underline")
        yield from page(one, rules)
    if diagnoses.is_partial:
        yield Text(
            "\nPart of the input could not be read, as standard error says: "
            "this rests on what could.",
            style="bold",
        )


def page(one: Diagnosed, rules: Mapping[str, Rule]) -> Iterator[RenderableType]:
    """Yield what is printed of one job, part by part."""
    report = one.report
    word, sentence = headline(report)
    colour = f"bold {_colour(report)}"
    if sentence.startswith(word):
        yield Text(plain(sentence), style=colour)
    else:
        yield Text.assemble((word, colour), "  ", (plain(sentence), "bold"))
    yield Padding(_facts(report, rules), (1, 0, 0, 2))
    if report.root is not None:
        is_known = report.domain is not Domain.UNKNOWN or report.cause in rules
        title = "The line that tells it" if is_known else "The likeliest line"
        yield from _part(f"{title}: {place(report.root)}", _root(report.root))
    if report.likely:
        lines = [
            (f"{plain(line.file)}:{line.line}", _cut(line.text, _LONGEST_CONTEXT))
            for line in report.likely[:MOST_LIKELY]
        ]
        yield from _part("Worth a look", _grid(lines))
    if report.set_aside and not _is_well(report):
        yield from _part("Set aside", _set_aside(report))
    if progress := list(how_far(report)):
        yield from _part("How far it came", *map(Text, progress))
    if report.alternatives:
        rows = [
            (f"{other.confidence:.0%}", f"{_cause(other.cause, rules)}: {other.why}")
            for other in report.alternatives[:MOST_ALTERNATIVES]
        ]
        yield from _part("It could also be", _grid(rows))
    yield Text("\n" + rest(one), style="dim")


def _is_well(report: Report) -> bool:
    """Return whether nothing is wrong, so that nobody asks what was set aside."""
    return report.kind is Happened.NONE and report.decision is Decision.NONE


def _part(title: str, *content: RenderableType) -> Iterator[RenderableType]:
    yield Text("\n" + plain(title), style="bold")
    yield Padding(Group(*content), (0, 0, 0, 2))


def _facts(report: Report, rules: Mapping[str, Rule]) -> RenderableType:
    rows = [("domain", report.domain.value.replace("_", " "))]
    if report.cause:
        rows.append(("cause", _cause(report.cause, rules)))
    rows.append(("confidence", confidence(report)))
    if told := where(report):
        rows.append(("where", told))
    rows += [("suspect", told) for told in suspects(report)]
    if report.cause in rules and report.kind is not Happened.NONE:
        rows.append(("why", rules[report.cause].why))
    rows.append(("advice", advice(report)))
    return _grid(rows, bold_last=True)


def _cause(rule: str, rules: Mapping[str, Rule]) -> str:
    return f"{rule} ({rules[rule].title})" if rule in rules else rule


def _root(root: RootLine) -> RenderableType:
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for line in root.before:
        table.add_row("", _one_row(line))
    table.add_row(Text("»", style="bold red"), Text(_cut(root.text, _LONGEST_ROOT), style="bold"))
    for line in root.after:
        table.add_row("", _one_row(line))
    return table


def _set_aside(report: Report) -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(justify="right")
    table.add_column(overflow="fold")
    for times, said, example in set_aside(report.set_aside):
        table.add_row(times, Text(plain(said)))
        if example:
            table.add_row("", _one_row(example))
    return table


def _one_row(text: str) -> Text:
    return Text(_cut(text, _LONGEST_CONTEXT), style="dim", no_wrap=True, overflow="ellipsis")


def _grid(rows: Iterable[Sequence[str]], *, bold_last: bool = False) -> RenderableType:
    listed = list(rows)
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold", style="dim")
    table.add_column(overflow="fold")
    for number, (name, value) in enumerate(listed):
        is_bold = bold_last and number == len(listed) - 1
        table.add_row(Text(plain(name)), Text(plain(value), style="bold" if is_bold else ""))
    return table


def _cut(text: str, most: int) -> str:
    shown = plain(text)
    return shown if len(shown) <= most else f"{shown[:most]}… ({len(shown) - most} more)"


def _colour(report: Report) -> str:
    match report.kind:
        case Happened.CRASH | Happened.HANG:
            return "red"
        case Happened.STRAGGLER:
            return "magenta"
        case Happened.NONE:
            return "green" if report.attempts else "magenta"
    assert_never(report.kind)
