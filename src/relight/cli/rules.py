"""``relight rules``: what is known of failures, why, and whether it holds."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from relight.cli.asking import AsJson
from relight.cli.healthy import (
    CORPUS,
    LEDGER,
    accuses,
    ears_of,
    healthy_logs,
    rules_heard,
    usual_folders,
)
from relight.cli.rule_sets import Rules, directories
from relight.cli.rules_beside import Beside
from relight.cli.screens import plain, show_json, show_lines, show_table
from relight.model.findings import Role
from relight.perception.prefixes import listen
from relight.perception.times import printed_time
from relight.rules.books import book
from relight.rules.causes import load_causes
from relight.rules.families import FAMILIES
from relight.rules.ledger import judge, read_ledger
from relight.rules.linting import lint, shadowed
from relight.rules.loading import PACKAGED, Entry, catalogue
from relight.rules.metrics.linting import lint as metric_lint
from relight.rules.metrics.loading import metric_catalogue
from relight.rules.needles import needles
from relight.rules.pages import facts
from relight.rules.patterns import CompiledRule, one_expression
from relight.rules.schema import Rule, Status

app = typer.Typer(name="rules", help="Show, explain and check the rules that are heard.")

COLUMNS = ("rule", "family", "role", "domain", "remedy", "what")
MOST_LINE = 8 * 1024
"""Bytes of a line that perception looks at."""


@app.command("list")
def list_rules(
    *,
    family: Annotated[str, typer.Option(help="Only of this family.")] = "",
    rules: Rules = None,
    as_json: AsJson = False,
) -> None:
    """List the rules over lines by family, those over metrics, and what detectors tell."""
    folders = directories(rules)
    entries = [
        entry
        for entry in catalogue(folders)
        if entry.rule.status is not Status.RETIRED and family in ("", entry.rule.family)
    ]
    beside = Beside.of(folders).only(family)
    if family not in ("", *FAMILIES):
        known = ", ".join(sorted(FAMILIES))
        typer.echo(f"relight: there is no family {plain(family)}; known are {known}", err=True)
        raise typer.Exit(4)
    if as_json:
        show_json([*(_as_json(entry) for entry in entries), *beside.as_json()])
        return
    rows = sorted((entry.rule for entry in entries), key=lambda rule: (rule.family, rule.id))
    show_table(COLUMNS, map(_row, rows), f"no rule over lines is of the family {plain(family)}")
    beside.show_tables()


@app.command()
def show(
    rule: Annotated[str, typer.Argument(metavar="ID", help="The id of a rule.")],
    *,
    rules: Rules = None,
    as_json: AsJson = False,
) -> None:
    """Show one rule or cause: what tells it, what follows, why, and where that was learnt."""
    folders = directories(rules)
    known = {entry.rule.id: entry for entry in catalogue(folders)}
    beside = Beside.of(folders)
    if rule in known:
        _show(known[rule], as_json=as_json)
        if not as_json:
            beside.show(rule)
    elif rule in beside.ids:
        show_json(beside.one_as_json(rule)) if as_json else beside.show(rule)
    else:
        _unknown(rule, [*known, *beside.ids])


def _show(entry: Entry, *, as_json: bool) -> None:
    if as_json:
        show_json(_as_json(entry))
        return
    lines = [(0, "bold", f"{entry.rule.id}: {entry.rule.title}"), (0, "", entry.rule.sentence)]
    lines += [(2, "", f"{name}: {words}") for name, words in facts(entry)]
    lines += [(0, "bold", "why"), (2, "", entry.rule.why or "not written down")]
    lines += [(0, "bold", "source"), (2, "", entry.rule.evidence)]
    for title, shown in (
        ("expressions", entry.rule.patterns),
        ("unless", entry.rule.unless),
        ("hears", entry.rule.hits),
        ("does not hear", [f"{one.text}  ({one.why})" for one in entry.rule.misses]),
        ("ought to hear", [f"{one.text}  ({one.why})" for one in entry.rule.known_misses]),
    ):
        if shown:
            lines += [(0, "bold", title), *((2, "", text) for text in shown)]
    show_lines(lines)


@app.command()
def explain(
    line: Annotated[str, typer.Argument(help="A line of a log; - reads it from standard input.")],
    *,
    rules: Rules = None,
    as_json: AsJson = False,
) -> None:
    """Explain one line: who wrote it, which rules hear it, and what they make of it.

    The id of a rule or of a cause is shown as ``relight rules show`` shows it. Exits with 1
    when no rule hears the line.
    """
    if line in _ids(directories(rules)):
        show(line, rules=rules, as_json=as_json)
        return
    raw = sys.stdin.buffer.readline(MOST_LINE) if line == "-" else line.encode()[:MOST_LINE]
    heard = _heard(raw.rstrip(b"\r\n"), catalogue(directories(rules)))
    if as_json:
        show_json([{**_as_json(entry), "captures": captures} for entry, captures in heard])
    else:
        show_lines(_explained(raw, heard))
    if not heard:
        raise typer.Exit(1)


@app.command()
def check(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE]...", help="TOML files of rules; none: the packaged rules."),
    ] = None,
    *,
    rules: Rules = None,
    healthy: Annotated[
        list[Path] | None,
        typer.Option(help="A directory of healthy logs, in which no rule may be heard."),
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="A TOML file of what is known to be heard in them.")
    ] = None,
) -> None:
    """Check rules by every law, and print all problems at once; exits with 1 on any.

    The laws: the shape of each table, an id given once for ever, linear time in both engines,
    a literal in every expression, each hit heard and no miss, no rule that another makes
    needless, and silence in healthy logs but for what the ledger knows. Rules over metrics
    must pass their own tests.
    """
    sources = tuple(files or directories(rules))
    entries = catalogue(sources)
    metrics = metric_catalogue(sources)
    heard = [entry.rule for entry in entries if entry.rule.status is not Status.RETIRED]
    problems = []
    if not sources:  # what a site wrote was held to the laws when it was read
        problems = [f"{entry.rule.id}: {one}" for entry in entries for one in lint(entry.rule)]
        problems += [f"{rule.id}: {by}" for rule in heard if (by := shadowed(rule, heard))]
        problems += [f"{one.rule.id}: {told}" for one in metrics for told in metric_lint(one.rule)]
    logs = tuple(healthy_logs(healthy or usual_folders()))
    problems += _noise(heard, logs, ledger or CORPUS / LEDGER) if not problems else []
    for problem in problems:
        typer.echo(plain(problem), err=True)
    count = f"{len(heard)} rules, {sum(len(rule.patterns) for rule in heard)} expressions"
    count += f", {len(metrics)} rules over metrics"
    if problems:
        number = len(problems)
        typer.echo(f"{count}: {number} problem{'s' if number > 1 else ''}", err=True)
        raise typer.Exit(1)
    own = [entry for entry in entries if entry.origin != PACKAGED or entry.changed]
    names = [entry.rule.id for entry in own]
    names += [entry.rule.id for entry in metrics if entry.origin != PACKAGED]
    of_site = f"; of the site: {', '.join(names)}" if names else ""
    typer.echo(f"ok: {count}, {len(logs)} healthy logs{plain(of_site)}")


@app.command("test")
def try_on(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Logs to try rules on.")],
    *,
    rules: Rules = None,
    as_json: AsJson = False,
) -> None:
    """Try the rules on logs: which are heard, how often, and where first."""
    ears = ears_of(
        [
            entry.rule
            for entry in catalogue(directories(rules))
            if entry.rule.status is not Status.RETIRED
        ]
    )
    heard = [
        {"file": str(log), "rule": rule, "role": role, "lines": lines, "line": line, "text": text}
        for log in files
        for rule, (role, lines, line, text) in rules_heard(log, ears).items()
    ]
    if as_json:
        show_json(heard)
        return
    show_table(
        ("file", "rule", "role", "lines", "first", "text"),
        [[str(value) for value in one.values()] for one in heard],
        "no rule is heard",
    )


@app.command()
def pages(
    folder: Annotated[Path, typer.Argument(help="The folder that is filled.")],
    *,
    rules: Rules = None,
) -> None:
    """Write a page for each rule and cause, and one that lists them, as Markdown."""
    folders = directories(rules)
    written = book(catalogue(folders), metric_catalogue(folders), load_causes())
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in written.items():
        (folder / name).write_text(text, encoding="utf-8")
    typer.echo(f"{len(written)} pages in {plain(str(folder))}")


def _noise(rules: list[Rule], logs: Iterable[Path], ledger: Path) -> list[str]:
    ears = ears_of(rules)
    accusing = {rule.id for rule in rules if accuses(rule)}
    read = list(logs)
    heard = [
        (log.stem, rule) for log in read for rule in rules_heard(log, ears) if rule in accusing
    ]
    return judge(heard, read_ledger(ledger), [log.stem for log in read])


def _ids(folders: Sequence[Path]) -> frozenset[str]:
    own = (entry.rule.id for entry in catalogue(folders))
    return frozenset(own) | frozenset(Beside.of(folders).ids)


def _unknown(wanted: str, known: Sequence[str]) -> NoReturn:
    guess = get_close_matches(wanted, known, 1)
    hint = f"did you mean {guess[0]}?" if guess else "relight rules list shows all of them"
    typer.echo(f"relight: there is no rule {plain(wanted)}; {hint}", err=True)
    raise typer.Exit(4)


def _heard(line: bytes, entries: Iterable[Entry]) -> list[tuple[Entry, dict[str, str]]]:
    """Return the rules that hear a line with their captures; a benign one silences the rest."""
    heard = []
    for entry in entries:
        if entry.rule.status is Status.RETIRED:
            continue
        captures = CompiledRule(entry.rule).captures(line)
        if captures is not None:
            heard.append((entry, captures))
    return heard


def _explained(raw: bytes, heard: list[tuple[Entry, dict[str, str]]]) -> list[tuple[int, str, str]]:
    text = raw.decode(errors="replace")
    voice = listen(text)
    wrote = {
        "rank": voice.rank,
        "task": voice.task,
        "node": voice.node,
        "device": voice.device,
        "time": printed_time(text),
    }
    told = ", ".join(f"{name} {value}" for name, value in wrote.items() if value is not None)
    lines = [(0, "", f"written by: {told or 'nobody that its prefixes name'}")]
    if not heard:
        return [*lines, (0, "", "no rule hears it")]
    is_silenced = any(entry.rule.role is Role.BENIGN for entry, _ in heard)
    for entry, captures in heard:
        rule = entry.rule
        lines += [(0, "bold", f"{rule.id}: {rule.title}")]
        lines += [(2, "", f"{rule.role}, {rule.domain}, {rule.remedy} ({rule.family})")]
        if captures:
            lines.append((2, "", ", ".join(f"{name}={text}" for name, text in captures.items())))
        lines.append((2, "", rule.why or rule.evidence))
        if is_silenced and rule.role is not Role.BENIGN:
            lines.append((2, "", "not heard here, since a benign rule knows the line"))
    return lines


def _row(rule: Rule) -> tuple[str, ...]:
    return (
        rule.id,
        rule.family,
        rule.role.value,
        rule.domain.value,
        rule.remedy.value,
        rule.title,
    )


def _as_json(entry: Entry) -> dict[str, object]:
    rule = entry.rule
    return {
        "id": rule.id,
        "form": "line",
        "family": rule.family,
        "title": rule.title,
        "status": rule.status,
        "kind": rule.kind,
        "role": rule.role,
        "domain": rule.domain,
        "remedy": rule.remedy,
        "reach": rule.reach,
        "ending": rule.ending,
        "pattern": one_expression(rule.patterns),
        "patterns": rule.patterns,
        "unless": rule.unless,
        "needles": sorted({needle for one in rule.patterns for needle in needles(one)}),
        "sentence": rule.sentence,
        "why": rule.why,
        "evidence": rule.evidence,
        "provenance": rule.provenance,
        "hits": rule.hits,
        "misses": rule.misses,
        "known_misses": rule.known_misses,
        "file": entry.origin if entry.origin != "packaged" else entry.file,
        "changed": entry.changed,
    }
