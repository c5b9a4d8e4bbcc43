"""Reads rules: the packaged ones, and those of further directories."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

import msgspec

from relight.model.records import digest
from relight.rules.linting import lint
from relight.rules.schema import Rule, rule_from

MOST_BYTES = 4 * 1024 * 1024
"""A rule file beyond this size is refused: the packaged ones are a hundredth of it."""


class RuleError(ValueError):
    """Rules that cannot be used; ``problems`` names file, rule and trouble, each in a line."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("the rules cannot be used; correct these:\n" + "\n".join(problems))


def load(directories: Iterable[Path] = ()) -> tuple[Rule, ...]:
    """Return the packaged rules and those of every ``*.toml`` in ``directories``, in order.

    Rules of ``directories`` are linted here; the packaged ones were when they were packaged,
    which spares every start a second.

    Raises:
        RuleError: a file cannot be read or a rule is wrong; every problem at once.

    """
    problems: list[str] = []
    rules: list[Rule] = []
    places: dict[str, str] = {}
    sources = [(source, False) for source in packaged_files()]
    sources += [(source, True) for source in _found_in(directories, problems)]
    for source, is_foreign in sources:
        for place, rule in _read(source, problems):
            if rule.id in places:
                problems.append(
                    f"{place}: the id is taken by {places[rule.id]}; give it another id"
                )
            places.setdefault(rule.id, place)
            rules.append(rule)
            if is_foreign:
                problems += [f"{place}: {problem}" for problem in lint(rule)]
    if problems:
        raise RuleError(problems)
    return tuple(rules)


def revision(rules: Iterable[Rule]) -> str:
    """Return what names this very set of rules: the same rules, the same revision."""
    return digest(*(msgspec.json.encode(rule).decode() for rule in rules))


def packaged_files() -> list[Traversable]:
    """Return the rule files that are part of relight."""
    return _files_of(resources.files("relight.rules") / "signatures")


def _found_in(directories: Iterable[Path], problems: list[str]) -> Iterable[Traversable]:
    for directory in directories:
        if directory.is_dir():
            yield from _files_of(directory)
        else:
            problems.append(f"{directory}: is not a directory; name one that holds *.toml files")


def _files_of(directory: Traversable) -> list[Traversable]:
    files = (entry for entry in directory.iterdir() if entry.name.endswith(".toml"))
    return sorted(files, key=lambda entry: entry.name)


def _read(source: Traversable, problems: list[str]) -> Iterable[tuple[str, Rule]]:
    try:
        if not source.is_file():
            raise OSError("is not a regular file")  # noqa: TRY301 - one place reports all of them
        with source.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise ValueError(f"is larger than {MOST_BYTES} bytes")  # noqa: TRY301 - likewise
        tables = tomllib.loads(content.decode())
    except (OSError, ValueError) as error:
        problems.append(f"{source}: {error}")
        return
    listed = tables.pop("rule", [])
    if tables or not isinstance(listed, list):
        problems.append(f"{source}: holds something else than [[rule]] tables; remove it")
        return
    for number, table in enumerate(listed, 1):
        named = table.get("id") if isinstance(table, dict) else None
        place = f"{source.name}: rule {named or f'number {number}'}"
        try:
            yield place, rule_from(table)
        except msgspec.ValidationError as error:
            problems.append(f"{place}: {error}")
