"""The page of a rule: what it hears, what follows and why, and where the fact was learnt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from relight.model.findings import Reach, Role
from relight.rules.loading import PACKAGED, Entry
from relight.rules.needles import needles
from relight.rules.schema import Miss, Rule, Status

_ROLES = {
    "root": "can be the cause",
    "either": "can be the cause, and needs company",
    "symptom": "only shows that something else broke",
    "benign": "looks alarming and means nothing; other rules do not hear its line",
}
STATUS = {
    Status.PROVEN: "proven: seen in a real log, or read in the source of the program",
    Status.ASSUMED: "assumed: general knowledge, not yet seen in a real log",
    Status.RETIRED: "retired: no longer heard; the id is not given again",
}


def index(entries: Iterable[Entry]) -> str:
    """Return the page that lists all rules, grouped by family."""
    families: dict[str, list[Entry]] = {}
    for entry in entries:
        families.setdefault(entry.rule.family, []).append(entry)
    lines = [
        "# Rules",
        "",
        "Each failure that relight knows, by family. These pages are written by",
        "`relight rules pages`; the rules themselves are TOML in `src/relight/rules/signatures`.",
    ]
    for family, members in sorted(families.items()):
        lines += ["", f"## {family}", "", "| rule | role | domain | remedy | what |"]
        lines += ["| --- | --- | --- | --- | --- |"]
        for rule in sorted((entry.rule for entry in members), key=lambda rule: rule.id):
            lines.append(
                f"| [{rule.id}]({rule.id}.md) | {rule.role} | {rule.domain} "
                f"| {rule.remedy} | {cell(rule.title)} |"
            )
    return "\n".join(lines) + "\n"


def page(entry: Entry) -> str:
    """Return the page of one rule as Markdown."""
    return "\n".join(_page(entry)) + "\n"


def facts(entry: Entry) -> list[tuple[str, str]]:
    """Return what a rule says of itself, as (name, words), in the order they are read."""
    rule = entry.rule
    told = [
        ("family", rule.family),
        ("kind", rule.kind.value),
        ("role", role_of(rule.role)),
        ("domain", rule.domain.value),
        ("remedy", rule.remedy.value),
        *reach_of(rule.reach),
    ]
    if rule.ending:
        told.append(("tells the ending", rule.ending.value))
    if rule.task_gone:
        told.append(("task gone", "the scheduler's own word that a task of a living job died"))
    told += [("status", STATUS[rule.status]), ("file", _origin(entry))]
    if entry.changed:
        changes = ", ".join(f"{field} ({file})" for field, file in entry.changed.items())
        told.append(("changed by the site", changes))
    return told


def _page(entry: Entry) -> Iterator[str]:
    rule = entry.rule
    yield f"# {rule.title}"
    yield ""
    yield f"`{rule.id}`: {rule.sentence}"
    yield ""
    yield "| Field | Meaning |"
    yield "| --- | --- |"
    for name, words in facts(entry):
        yield f"| {name} | {cell(words)} |"
    if rule.why:
        yield from ("", "## Why", "", rule.why)
    yield from ("", "## Source", "", rule.evidence)
    yield from _expressions(rule)
    yield from _lines("It hears", rule.hits)
    yield from _misses("It does not hear", rule.misses)
    yield from _misses("It ought to hear, and does not", rule.known_misses)


def _expressions(rule: Rule) -> Iterator[str]:
    yield from _lines("Expressions", rule.patterns)
    literals = sorted({needle for one in rule.patterns for needle in needles(one)})
    yield from _lines("Literals, one of which every hit holds", literals)
    yield from _lines("Unless the line also matches", rule.unless)


def _lines(title: str, lines: Iterable[str]) -> Iterator[str]:
    shown = list(lines)
    if shown:
        yield from ("", f"## {title}", "", "```text", *shown, "```")


def _misses(title: str, misses: Iterable[Miss]) -> Iterator[str]:
    shown = list(misses)
    if shown:
        yield from ("", f"## {title}")
    for miss in shown:
        yield from ("", "```text", miss.text, "```", "", f"because: {miss.why}")


def reach_of(reach: Reach) -> list[tuple[str, str]]:
    """Return what changes with where it is seen, as (name, words)."""
    words = {
        "one_node": "remedy where one node of several shows it",
        "everywhere": "remedy where most nodes show it",
        "at_start": "remedy before the first step",
        "domain_on_one_node": "domain where one node of several shows it",
        "domain_everywhere": "domain where most nodes show it",
    }
    values = {name: getattr(reach, name) for name in words}
    return [(words[name], value.value) for name, value in values.items() if value is not None]


def role_of(role: Role) -> str:
    """Return a role and what it means."""
    return f"{role}: {_ROLES[role.value]}"


def _origin(entry: Entry) -> str:
    return entry.file if entry.origin == PACKAGED else f"{entry.origin} (the site's)"


def cell(text: str) -> str:
    """Return a text as it stands in a cell of a table."""
    return text.replace("|", "\\|")
