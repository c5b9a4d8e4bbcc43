"""What one rule over metrics is, as it stands in a TOML file."""

from __future__ import annotations

import msgspec

from relight.model.findings import Domain, Kind, Reach, Remedy, Role
from relight.model.instants import Span, parse_span
from relight.model.records import Record
from relight.rules.schema import Status
from relight.rules.tables import problems_with

SCRAPES = 3
"""Scrapes in a row for which a rule must hold by itself: one or two may be a hiccup."""


class CaseSeries(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One series of an expression's result: its labels, and its values in short notation."""

    labels: dict[str, str]
    values: str


class Case(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A result of the expression, and the nodes that the rule must then name; none: silence.

    ``what`` says in words what the case shows. The label of a node is ``node`` where the rule
    leaves it to the settings.
    """

    what: str
    series: tuple[CaseSeries, ...]
    names: tuple[str, ...] = ()
    interval: str = "30s"


class MetricRule(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What it means when the result of a PromQL expression is high or low for a while.

    ``expr`` is asked for the whole window; ``node_label`` is the result's label that names the
    node (empty: as the settings of the server say), ``device_label`` what tells its parts apart.
    A sample counts when it is above ``above`` (0 unless ``below`` is given) or below ``below``;
    ``lasting`` (``for`` in the file) is for how many scrapes in a row, or for how long. A gap
    ends the row. In ``sentence``, ``{name}`` stands for ``node``, ``device``, ``value`` or a
    label. ``evidence`` is where the fact was learnt; ``test`` proves the rule.
    """

    id: str
    title: str
    expr: str
    kind: Kind
    role: Role
    domain: Domain
    remedy: Remedy
    sentence: str
    evidence: str
    why: str
    test: tuple[Case, ...]
    family: str
    node_label: str = ""
    device_label: str = ""
    above: float | None = None
    below: float | None = None
    lasting: int | str = msgspec.field(default=SCRAPES, name="for")
    status: Status = Status.PROVEN
    reach: Reach = Reach()

    @property
    def scrapes(self) -> int:
        """Return for how many scrapes in a row it must hold at least."""
        return self.lasting if isinstance(self.lasting, int) else 1

    @property
    def span(self) -> Span:
        """Return for how long it must hold.

        Raises:
            ValueError: ``for`` is a text that names no span.

        """
        return Span(0) if isinstance(self.lasting, int) else parse_span(self.lasting)

    def holds(self, value: float) -> bool:
        """Tell whether a sample counts."""
        if self.below is not None:
            return value < self.below
        return value > (self.above or 0.0)


def metric_rule_from(table: object) -> MetricRule:
    """Return the rule that a TOML table tells of.

    Raises:
        msgspec.ValidationError: a key is missing, unknown or of another type; the message
            names the first one, ``problems_of`` all of them.

    """
    return msgspec.convert(table, MetricRule)


def problems_of(table: object) -> list[str]:
    """Return everything that keeps a TOML table from being a rule over metrics."""
    return problems_with(table, MetricRule, "a rule over metrics")
