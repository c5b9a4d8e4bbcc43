"""Reads rules over metrics: the packaged ones, and those in a site's own TOML files.

They stand as ``[[metric_rule]]`` tables beside signatures, in the same files or others. A
site's rule with the id of a packaged one takes its place; with ``status = "retired"`` that
switches it off.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from relight.model.records import Record
from relight.rules.loading import MOST_BYTES, PACKAGED
from relight.rules.metrics.linting import lint
from relight.rules.metrics.schema import MetricRule, metric_rule_from, problems_of
from relight.rules.schema import Status

TABLE = "metric_rule"
MOST_RULES = 500
"""Rules over metrics of one site: each is a question to the server for each trouble."""


class MetricRuleError(ValueError):
    """Rules that cannot be used; ``problems`` names file, rule and trouble, each in a line."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(dict.fromkeys(problems))
        told = "\n".join(self.problems)
        super().__init__(f"the rules over metrics cannot be used; correct these:\n{told}")


class MetricEntry(Record, frozen=True, kw_only=True):
    """A rule over metrics, and the file it comes from; ``origin`` is ``packaged`` for ours."""

    rule: MetricRule
    file: str
    origin: str = PACKAGED


def load_metric_rules(directories: Iterable[Path] = ()) -> tuple[MetricRule, ...]:
    """Return the rules that are asked: those of ``metric_catalogue`` that are not retired.

    Raises:
        MetricRuleError: a file cannot be read or a rule is wrong; every problem at once.

    """
    return tuple(
        entry.rule
        for entry in metric_catalogue(directories)
        if entry.rule.status is not Status.RETIRED
    )


def metric_catalogue(directories: Iterable[Path] = ()) -> tuple[MetricEntry, ...]:
    """Return every rule over metrics of the package and of each ``*.toml`` in ``directories``.

    One of ``directories`` may also be a file. What they hold is linted here, its tests too.

    Raises:
        MetricRuleError: a file cannot be read or a rule is wrong; every problem at once.

    """
    entries: dict[str, MetricEntry] = {}
    problems: list[str] = []
    for source, origin in _sources(directories, problems):
        seen: set[str] = set()
        for number, table in enumerate(_tables(source, problems), 1):
            named = table.get("id") if isinstance(table, dict) else None
            place = f"{source.name}: {TABLE} {named or f'number {number}'}"
            rule = _rule(table, place, problems, is_foreign=origin != PACKAGED)
            if rule is None:
                continue
            known = entries.get(rule.id)
            if rule.id in seen or (known is not None and known.origin != PACKAGED):
                problems.append(f"{place}: the id is taken; give it another id")
                continue
            seen.add(rule.id)
            entries[rule.id] = MetricEntry(rule=rule, file=source.name, origin=origin)
    if len(entries) > MOST_RULES:
        problems.append(f"there are {len(entries)} rules over metrics; {MOST_RULES} can be used")
    if problems:
        raise MetricRuleError(problems)
    return tuple(entries.values())


def _sources(directories: Iterable[Path], problems: list[str]) -> list[tuple[Traversable, str]]:
    found = [(source, PACKAGED) for source in packaged_metric_files()]
    for path in directories:
        if path.is_dir():
            found += [(file, str(path / file.name)) for file in _files_of(path)]
        elif path.exists():
            found.append((path, str(path)))
        else:
            problems.append(
                f"{path}: is not there; name a directory of *.toml files, or one such file"
            )
    return found


def packaged_metric_files() -> list[Traversable]:
    """Return the files of rules over metrics that are part of relight."""
    return _files_of(resources.files("relight.rules.metrics"))


def _files_of(directory: Traversable) -> list[Traversable]:
    files = (entry for entry in directory.iterdir() if entry.name.endswith(".toml"))
    return sorted(files, key=lambda entry: entry.name)


def _tables(source: Traversable, problems: list[str]) -> list[object]:
    """Return the ``[[metric_rule]]`` tables of a file; its signatures are read elsewhere."""
    try:
        if not source.is_file():
            raise OSError("is not a regular file")  # noqa: TRY301 - one place reports all of them
        with source.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise ValueError(f"is larger than {MOST_BYTES} bytes")  # noqa: TRY301 - likewise
        tables = tomllib.loads(content.decode()).get(TABLE, [])
    except UnicodeDecodeError:
        problems.append(f"{source}: is not UTF-8 text")
    except (OSError, ValueError) as error:
        problems.append(f"{source}: {error}")
    else:
        if isinstance(tables, list):
            return tables
        problems.append(f"{source}: {TABLE} is no list of tables; write [[{TABLE}]]")
    return []


def _rule(table: object, place: str, problems: list[str], *, is_foreign: bool) -> MetricRule | None:
    """Return the rule of a table, None after noting what is wrong with it."""
    found = problems_of(table)
    rule = None if found else metric_rule_from(table)
    if rule is not None and is_foreign:
        found = lint(rule)
    problems += [f"{place}: {problem}" for problem in found]
    return rule if not found else None
