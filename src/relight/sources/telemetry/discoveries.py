"""Which of the wanted series a server has for some nodes, and which label names the node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from relight.clients.prometheus import Answer, MetricsServer
from relight.model.instants import Instant, in_seconds
from relight.sources.telemetry import catalogue
from relight.sources.telemetry.catalogue import Exporter
from relight.sources.telemetry.names import NodeNames, matcher, settle
from relight.sources.telemetry.patience import Patience

_LONGEST_INTERVAL = 300.0
"""Seconds: Prometheus itself takes a series that is silent for longer as gone."""
_LEARNT_FROM = 3
_SHOWN = 3
_LOOKED_THROUGH = 1_000
"""Series in which a label that names the nodes is looked for."""
_EVERYWHERE = ("up", "DCGM_FI_DEV_GPU_UTIL", "node_boot_time_seconds")
"""Series with one value a target or GPU: enough to show what labels hold."""


@dataclass(frozen=True, slots=True)
class Placed:
    """One series name, the label that names the node in it, its nodes, and its series in all."""

    metric: str
    label: str
    nodes: frozenset[str]
    series: int


@dataclass(frozen=True, slots=True)
class Discovery:
    """What was found for the nodes asked about, by the name of the series.

    ``disputed`` are nodes that several machines claim to be. ``is_partial`` says that the server
    itself holds an answer for incomplete.
    """

    asked: tuple[str, ...]
    placed: dict[str, Placed] = field(default_factory=dict)
    disputed: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()
    is_partial: bool = False

    @property
    def nodes(self) -> frozenset[str]:
        """Return the nodes of which any series was found."""
        return frozenset(node for placed in self.placed.values() for node in placed.nodes)

    def groups(self) -> dict[tuple[Exporter, str], tuple[Placed, ...]]:
        """Return what was found by exporter and label: what can be asked for together."""
        groups: dict[tuple[Exporter, str], list[Placed]] = defaultdict(list)
        for name, placed in sorted(self.placed.items()):
            groups[catalogue.exporter_of(name), placed.label].append(placed)
        return {key: tuple(found) for key, found in groups.items()}


@dataclass(frozen=True, slots=True)
class Scope:
    """What one look is about: nodes, labels that may name one, the time, and how long it may take.

    The same server is asked about the same nodes and time in every question.
    """

    server: MetricsServer
    names: NodeNames
    labels: tuple[str, ...]
    since: Instant
    until: Instant
    patience: Patience

    @property
    def range(self) -> str:
        """Return the time as PromQL has it in brackets."""
        return f"[{max(1, round(in_seconds(self.until - self.since)))}s]"

    def asked(self, query: str) -> Answer:
        """Return the answer to a query at the end of the time.

        Raises:
            MetricsError: there was none.

        """
        return self.server.instant(query, self.until, patience=self.patience.left())


def discover(scope: Scope) -> Discovery:
    """Return which series the server has for the nodes, or an even choice of them.

    Of the labels the one that names the most nodes counts for a series, the first of them
    where several name as many.

    Raises:
        MetricsError: a question was not answered.

    """
    asked = scope.names.spread()
    found: dict[str, Placed] = {}
    disputed: set[str] = set()
    warnings: dict[str, None] = {}
    is_partial = False
    for label in scope.labels:
        answer = scope.asked(_counting(scope, label, asked))
        warnings |= dict.fromkeys(answer.warnings)
        is_partial |= answer.is_partial
        for placed, claimed in _placed(answer, label, scope.names):
            disputed |= claimed
            before = found.get(placed.metric)
            if placed.nodes and (before is None or len(placed.nodes) > len(before.nodes)):
                found[placed.metric] = placed
    nodes = {node for placed in found.values() for node in placed.nodes}
    return Discovery(
        asked=asked,
        placed=found,
        disputed=frozenset(disputed - nodes),
        warnings=tuple(warnings),
        is_partial=is_partial,
    )


def interval(scope: Scope, placed: tuple[Placed, ...]) -> float | None:
    """Return the usual seconds between two scrapes of a group; None when nothing tells.

    Raises:
        MetricsError: the question was not answered.

    """
    widest = _widest(placed)
    nodes = sorted(widest.nodes)[:_LEARNT_FROM]
    selector = f'{{__name__="{widest.metric}",{matcher(widest.label, nodes)}}}'
    gaps = sorted(
        in_seconds(later.at - before.at)
        for row in scope.asked(f"{selector}{scope.range}").rows
        for before, later in zip(row.samples, row.samples[1:], strict=False)
    )
    return min(gaps[len(gaps) // 2], _LONGEST_INTERVAL) if gaps else None


def strangers(scope: Scope) -> dict[str, tuple[str, ...]]:
    """Return a few values of each label, to show what they hold where none names a node.

    Raises:
        MetricsError: a question was not answered.

    """
    found: dict[str, tuple[str, ...]] = {}
    for label in scope.labels:
        selector = f'{{__name__=~"{"|".join(_EVERYWHERE)}",{label}!=""}}'
        answer = scope.asked(f"topk({_SHOWN}, count by ({label}) ({selector}))")
        values = {row.labels.get(label, "") for row in answer.rows} - {""}
        if values:
            found[label] = tuple(sorted(values)[:_SHOWN])
    return found


def labels_beside(scope: Scope) -> tuple[str, ...]:
    """Return the labels that name one of the nodes in a series that is read, asked for or not.

    Raises:
        MetricsError: the question was not answered.

    """
    answer = scope.asked(f'topk({_LOOKED_THROUGH}, {{__name__=~"{"|".join(_EVERYWHERE)}"}})')
    values: dict[str, set[str]] = defaultdict(set)
    for row in answer.rows:
        for label, value in row.labels.items():
            values[label].add(value)
    return tuple(sorted(label for label in values if settle(values[label], scope.names).nodes))


def _widest(placed: Sequence[Placed]) -> Placed:
    """Return the series with the most nodes, of several the one that is wanted most."""
    order = {name: number for number, name in enumerate(catalogue.names())}
    return max(placed, key=lambda one: (len(one.nodes), -order[one.metric]))


def _counting(scope: Scope, label: str, nodes: Sequence[str]) -> str:
    """Return the question how many series of each name there are, by the values of a label.

    Of what is summed up only the part that is wanted is counted: there are many times as many.
    """
    where = matcher(label, nodes)
    plain = "|".join(name for name in catalogue.names() if name not in catalogue.SUMMED)
    selectors = [
        f'{{__name__=~"{plain}",{where}}}',
        *(f"{name}{{{part},{where}}}" for name, part in catalogue.SUMMED.items()),
    ]
    counted = " or ".join(f"last_over_time({one}{scope.range})" for one in selectors)
    return f"count by (__name__,{label}) ({counted})"


def _placed(
    answer: Answer, label: str, names: NodeNames
) -> Iterator[tuple[Placed, frozenset[str]]]:
    """Yield what each series name was found for, and the nodes that are disputed in it."""
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    wanted = frozenset(catalogue.names())
    for row in answer.rows:
        if row.metric in wanted and row.samples:
            counts[row.metric][row.labels.get(label, "")] = round(row.samples[-1].value)
    for metric, of_value in counts.items():
        settled = settle(of_value, names)
        placed = Placed(
            metric=metric,
            label=label,
            nodes=frozenset(settled.nodes.values()),
            series=_as_fetched(metric, [of_value[value] for value in settled.nodes]),
        )
        yield placed, settled.disputed


def known_nodes(scope: Scope, found: Discovery) -> frozenset[str]:
    """Return every node of which any series is found, those that were not asked for yet too.

    Raises:
        MetricsError: a question was not answered.

    """
    if len(found.asked) == len(scope.names.nodes):
        return found.nodes
    known: set[str] = set()
    for (_, label), group in found.groups().items():
        widest = _widest(group)
        for nodes in scope.names.chunks():
            selector = f'{{__name__="{widest.metric}",{matcher(label, nodes)}}}'
            answer = scope.asked(f"count by ({label}) (last_over_time({selector}{scope.range}))")
            values = [row.labels.get(label, "") for row in answer.rows]
            known |= set(settle(values, scope.names).nodes.values())
    return frozenset(known)


def _as_fetched(metric: str, counts: Sequence[int]) -> int:
    """Return how many series will come; what is summed up comes as one for each value."""
    return len(counts) if metric in catalogue.SUMMED else sum(counts)
