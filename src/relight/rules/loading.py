"""Reads rules: the packaged ones, and what the directories of a site add or change.

A file of a site holds ``[[rule]]`` tables for rules of its own and ``[[override]]`` tables,
which name a packaged rule by its id and set only the fields that are to differ; ours stay
untouched. An override with ``status = "retired"`` switches a rule off. ``[[metric_rule]]``
tables may stand beside them; ``relight.rules.metrics`` reads those.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import msgspec

from relight.model.records import Record, digest
from relight.rules.linting import lint, shadowed
from relight.rules.schema import Rule, Status, problems_of, rule_from

MOST_BYTES = 4 * 1024 * 1024
"""A rule file beyond this size is refused: the packaged ones are a hundredth of it."""
PACKAGED = "packaged"


class RuleError(ValueError):
    """Rules that cannot be used; ``problems`` names file, rule and trouble, each in a line."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("the rules cannot be used; correct these:\n" + "\n".join(problems))


class Entry(Record, frozen=True, kw_only=True):
    """A rule, the file it comes from, and what a site changed: field by field, in which file."""

    rule: Rule
    file: str
    origin: str = PACKAGED
    changed: dict[str, str] = msgspec.field(default_factory=dict)


def load(directories: Iterable[Path] = ()) -> tuple[Rule, ...]:
    """Return the rules that are heard: those of ``catalogue`` that are not retired.

    Raises:
        RuleError: a file cannot be read or a rule is wrong; every problem at once.

    """
    return tuple(
        entry.rule for entry in catalogue(directories) if entry.rule.status is not Status.RETIRED
    )


def catalogue(directories: Iterable[Path] = ()) -> tuple[Entry, ...]:
    """Return every rule of the package and of each ``*.toml`` in ``directories``, in order.

    One of ``directories`` may also be a file. What they hold is linted here; the packaged
    rules were when they were packaged, which spares every start a second.

    Raises:
        RuleError: a file cannot be read or a rule is wrong; every problem at once.

    """
    gathering = _Gathering()
    for source in packaged_files():
        gathering.take(source, PACKAGED)
    for path in directories:
        if path.is_dir():
            for source in _files_of(path):
                gathering.take(source, str(path / source.name))
        elif path.exists():
            gathering.take(path, str(path))
        else:
            gathering.problems.append(
                f"{path}: is not there; name a directory of *.toml files, or one such file"
            )
    gathering.lint_foreign()
    if gathering.problems:
        raise RuleError(gathering.problems)
    return tuple(gathering.entries.values())


def revision(rules: Iterable[Rule]) -> str:
    """Return what names this very set of rules: the same rules, the same revision."""
    return digest(*(msgspec.json.encode(rule).decode() for rule in rules))


def packaged_files() -> list[Traversable]:
    """Return the rule files that are part of relight."""
    return _files_of(resources.files("relight.rules") / "signatures")


class _Gathering:
    """Entries by id as files are read, and every problem met on the way."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.problems: list[str] = []

    def take(self, source: Traversable, origin: str) -> None:
        """Take in what one file holds."""
        tables = self._tables(source)
        rules = tables.pop("rule", [])
        overrides = tables.pop("override", [])
        tables.pop("metric_rule", None)  # relight.rules.metrics reads these
        if tables or not isinstance(rules, list) or not isinstance(overrides, list):
            self.problems.append(
                f"{source}: holds something else than [[rule]], [[override]] and [[metric_rule]] "
                "tables; remove it"
            )
            return
        for place, table in _placed(source.name, "rule", rules):
            self._add(place, table, source.name, origin)
        for place, table in _placed(source.name, "override", overrides):
            self._override(place, table, origin)

    def lint_foreign(self) -> None:
        """Note what is wrong with the rules that a site wrote or changed."""
        rules = [entry.rule for entry in self.entries.values()]
        for entry in self.entries.values():
            if entry.origin == PACKAGED and not entry.changed:
                continue
            place = f"{Path(entry.file).name}: rule {entry.rule.id}"
            self.problems += [f"{place}: {problem}" for problem in lint(entry.rule)]
            if entry.origin != PACKAGED and (by := shadowed(entry.rule, rules)):
                self.problems.append(f"{place}: {by}")

    def _add(self, place: str, table: object, file: str, origin: str) -> None:
        if problems := problems_of(table):
            self.problems += [f"{place}: {problem}" for problem in problems]
            return
        rule = rule_from(table)
        if known := self.entries.get(rule.id):
            advice = (
                "give it another id"
                if origin == PACKAGED
                else "give it another id, or change that rule with an [[override]] table"
            )
            self.problems.append(
                f"{place}: the id is taken by {known.file}: rule {rule.id}; {advice}"
            )
            return
        self.entries[rule.id] = Entry(rule=rule, file=file, origin=origin)

    def _override(self, place: str, table: object, origin: str) -> None:
        if not isinstance(table, dict) or not isinstance(table.get("id"), str):
            self.problems.append(f"{place}: must name the id of the rule that it changes")
            return
        known = self.entries.get(table["id"])
        if known is None:
            self.problems.append(
                f"{place}: there is no such rule; relight rules list shows all of them"
            )
            return
        changes: dict[str, Any] = {name: value for name, value in table.items() if name != "id"}
        whole = {**msgspec.to_builtins(known.rule), **changes}
        if problems := problems_of(whole):
            self.problems += [f"{place}: {problem}" for problem in problems]
            return
        rule = rule_from(whole)
        changed = {**known.changed, **dict.fromkeys(changes, origin)}
        self.entries[rule.id] = msgspec.structs.replace(known, rule=rule, changed=changed)

    def _tables(self, source: Traversable) -> dict[str, Any]:
        try:
            if not source.is_file():
                raise OSError("is not a regular file")  # noqa: TRY301 - one place reports all of them
            with source.open("rb") as stream:
                content = stream.read(MOST_BYTES + 1)
            if len(content) > MOST_BYTES:
                raise ValueError(f"is larger than {MOST_BYTES} bytes")  # noqa: TRY301 - likewise
            return tomllib.loads(content.decode())
        except UnicodeDecodeError:
            self.problems.append(f"{source}: is not UTF-8 text")
        except (OSError, ValueError) as error:
            self.problems.append(f"{source}: {error}")
        return {}


def _files_of(directory: Traversable) -> list[Traversable]:
    files = (entry for entry in directory.iterdir() if entry.name.endswith(".toml"))
    return sorted(files, key=lambda entry: entry.name)


def _placed(file: str, kind: str, tables: Sequence[object]) -> Iterator[tuple[str, object]]:
    for number, table in enumerate(tables, 1):
        named = table.get("id") if isinstance(table, dict) else None
        yield f"{file}: {kind} {named or f'number {number}'}", table
