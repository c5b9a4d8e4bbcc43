"""All pages on what relight knows: rules over lines, rules over metrics, causes of detectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from relight.rules.causes import Cause
from relight.rules.loading import PACKAGED, Entry
from relight.rules.metrics.loading import MetricEntry
from relight.rules.pages import STATUS, cell, index, page, reach_of, role_of
from relight.rules.schema import Status


def book(
    entries: Sequence[Entry], metrics: Sequence[MetricEntry], causes: Sequence[Cause]
) -> dict[str, str]:
    """Return every page by the name of its file, as Markdown; ``README.md`` lists them all.

    A detector may tell by the id of a rule over lines what that line tells: then they share a page.
    """
    pages = {f"{entry.rule.id}.md": page(entry) for entry in entries}
    pages |= {f"{entry.rule.id}.md": metric_page(entry) for entry in metrics}
    for cause in causes:
        name = f"{cause.id}.md"
        pages[name] = f"{pages[name]}\n{_beside(cause)}" if name in pages else cause_page(cause)
    heard = [entry for entry in entries if entry.rule.status is not Status.RETIRED]
    asked = [entry for entry in metrics if entry.rule.status is not Status.RETIRED]
    sections = "\n".join([*_metric_section(asked), *_cause_section(causes)])
    pages["README.md"] = f"{index(heard)}{sections}\n"
    return pages


def metric_facts(entry: MetricEntry) -> list[tuple[str, str]]:
    """Return what a rule over metrics says of itself, as (name, words)."""
    rule = entry.rule
    limit = f"below {rule.below:g}" if rule.below is not None else f"above {rule.above or 0.0:g}"
    lasting = f"{rule.lasting} scrapes in a row" if isinstance(rule.lasting, int) else rule.lasting
    is_ours = entry.origin == PACKAGED
    return [
        ("family", rule.family),
        ("kind", rule.kind.value),
        ("role", role_of(rule.role)),
        ("domain", rule.domain.value),
        ("remedy", rule.remedy.value),
        *reach_of(rule.reach),
        ("holds", f"{limit}, for {lasting}"),
        ("status", STATUS[rule.status]),
        ("file", f"metrics/{entry.file}" if is_ours else f"{entry.origin} (the site's)"),
    ]


def metric_page(entry: MetricEntry) -> str:
    """Return the page of one rule over metrics as Markdown."""
    rule = entry.rule
    lines = [f"# {rule.title}", "", f"`{rule.id}`: {rule.sentence}", ""]
    lines += ["| Field | Meaning |", "| --- | --- |"]
    lines += [f"| {name} | {cell(words)} |" for name, words in metric_facts(entry)]
    lines += ["", "## Why", "", rule.why, "", "## Source", "", rule.evidence]
    lines += ["", "## Expression", "", "```text", rule.expr.strip(), "```"]
    lines += ["", "## Tests", "", "| Shown | Named |", "| --- | --- |"]
    lines += [f"| {cell(one.what)} | {', '.join(one.names) or 'nobody'} |" for one in rule.test]
    return "\n".join(lines) + "\n"


def cause_facts(cause: Cause) -> list[tuple[str, str]]:
    """Return what is said of a cause, as (name, words)."""
    return [("family", cause.family), ("told by", cause.told_by), ("what is done", cause.done)]


def cause_page(cause: Cause) -> str:
    """Return the page of what a detector tells as Markdown."""
    lines = [f"# {cause.title}", "", f"`{cause.id}`: {cause.means}", ""]
    lines += ["| Field | Meaning |", "| --- | --- |"]
    lines += [f"| {name} | {cell(words)} |" for name, words in cause_facts(cause)]
    return "\n".join([*lines, "", "## Source", "", cause.source]) + "\n"


def _beside(cause: Cause) -> str:
    lines = [f"## Also told by {cause.told_by}", "", cause.means]
    return "\n".join([*lines, "", f"{cause.done} Source: {cause.source}"]) + "\n"


def _metric_section(entries: Iterable[MetricEntry]) -> Iterator[str]:
    yield from ("", "## Rules over metrics", "")
    yield "They are TOML in `src/relight/rules/metrics`, and asked of a metrics server."
    yield from ("", "| rule | role | domain | remedy | what |", "| --- | --- | --- | --- | --- |")
    for rule in sorted((entry.rule for entry in entries), key=lambda rule: rule.id):
        yield (
            f"| [{rule.id}]({rule.id}.md) | {rule.role} | {rule.domain} | {rule.remedy} "
            f"| {cell(rule.title)} |"
        )


def _cause_section(causes: Iterable[Cause]) -> Iterator[str]:
    yield from ("", "## What detectors tell", "")
    yield "No single line tells these: they follow from silence, from numbers, from many samples."
    yield from ("", "| cause | told by | what |", "| --- | --- | --- |")
    for cause in sorted(causes, key=lambda one: one.id):
        yield f"| [{cause.id}]({cause.id}.md) | {cell(cause.told_by)} | {cell(cause.title)} |"
