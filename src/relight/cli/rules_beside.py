"""What stands beside the rules over lines: rules over metrics, and causes that detectors tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from relight.cli.screens import show_lines, show_table
from relight.rules.books import cause_facts, metric_facts
from relight.rules.causes import Cause, load_causes
from relight.rules.loading import PACKAGED
from relight.rules.metrics.loading import MetricEntry, metric_catalogue
from relight.rules.schema import Status

Line = tuple[int, str, str]
METRIC_COLUMNS = ("rule over metrics", "family", "role", "domain", "remedy", "what")
CAUSE_COLUMNS = ("cause", "family", "told by", "what")


@dataclass(frozen=True, slots=True)
class Beside:
    """The rules over metrics, the packaged and the site's, and the causes of detectors."""

    metrics: dict[str, MetricEntry]
    causes: dict[str, Cause]

    @classmethod
    def of(cls, folders: Sequence[Path]) -> Beside:
        """Return all of them; ``folders`` are those of the site's rules.

        Raises:
            MetricRuleError: a file cannot be read or a rule is wrong.

        """
        metrics = {entry.rule.id: entry for entry in metric_catalogue(folders)}
        return cls(metrics=metrics, causes={one.id: one for one in load_causes()})

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the ids of all of them."""
        return (*self.metrics, *self.causes)

    def only(self, family: str) -> Beside:
        """Return those that are in use and of a family, of all families where it is empty."""
        return Beside(
            metrics={
                name: one
                for name, one in self.metrics.items()
                if one.rule.status is not Status.RETIRED and family in ("", one.rule.family)
            },
            causes={name: one for name, one in self.causes.items() if family in ("", one.family)},
        )

    def show_tables(self) -> None:
        """Print a table of each kind that there are any of."""
        if self.metrics:
            rows = sorted(map(_row, self.metrics.values()), key=lambda row: (row[1], row[0]))
            show_table(METRIC_COLUMNS, rows, "")
        if self.causes:
            rows = sorted(
                ((one.id, one.family, one.told_by, one.title) for one in self.causes.values()),
                key=lambda row: (row[1], row[0]),
            )
            show_table(CAUSE_COLUMNS, rows, "")

    def show(self, name: str) -> None:
        """Print all that is known by a name, nothing where that is nothing."""
        show_lines([*self._metric(name), *self._cause(name)])

    def as_json(self) -> list[dict[str, object]]:
        """Return all of them as plain values."""
        return [self.one_as_json(name) for name in self.ids]

    def one_as_json(self, name: str) -> dict[str, object]:
        """Return one of them as plain values.

        Raises:
            KeyError: there is none of that name.

        """
        if name in self.metrics:
            entry = self.metrics[name]
            file = entry.origin if entry.origin != PACKAGED else entry.file
            return {"form": "metric", **msgspec.to_builtins(entry.rule), "file": file}
        return {"form": "cause", **msgspec.to_builtins(self.causes[name])}

    def _metric(self, name: str) -> Iterator[Line]:
        entry = self.metrics.get(name)
        if entry is None:
            return
        rule = entry.rule
        yield (0, "bold", f"{rule.id}: {rule.title}")
        yield (0, "", rule.sentence)
        yield from ((2, "", f"{label}: {words}") for label, words in metric_facts(entry))
        yield from ((0, "bold", "why"), (2, "", rule.why))
        yield from ((0, "bold", "source"), (2, "", rule.evidence))
        yield from ((0, "bold", "expression"), (2, "", rule.expr.strip()))
        yield (0, "bold", "tests")
        for case in rule.test:
            yield (2, "", f"{case.what}: names {', '.join(case.names) or 'nobody'}")

    def _cause(self, name: str) -> Iterator[Line]:
        cause = self.causes.get(name)
        if cause is None:
            return
        yield (0, "bold", f"{cause.id}: {cause.title}")
        yield (0, "", cause.means)
        yield from ((2, "", f"{label}: {words}") for label, words in cause_facts(cause))
        yield from ((0, "bold", "source"), (2, "", cause.source))


def _row(entry: MetricEntry) -> tuple[str, ...]:
    rule = entry.rule
    words = (rule.role.value, rule.domain.value, rule.remedy.value, rule.title)
    return (rule.id, rule.family, *words)
