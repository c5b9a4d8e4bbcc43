"""The series of one attempt's nodes, fetched in pieces that stay small."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from relight.clients.prometheus import AnswerTooLarge, MetricsError, Row
from relight.model.instants import Instant, in_seconds, seconds
from relight.model.telemetry import Sample, Series
from relight.sources.telemetry import catalogue
from relight.sources.telemetry.discoveries import Discovery, Placed, Scope, interval
from relight.sources.telemetry.names import matcher, settle

MOST_SAMPLES = 1_500_000
"""Samples of one look: they take some 120 MB and some ten seconds until they are judged."""

USUAL_INTERVAL = 15.0
"""Seconds between two scrapes where the samples do not tell: dcgm-exporter's own chart sets it."""
_SCRAPES_KEPT = 2
"""Scrapes for which a value holds: one may be late or lost, after the second the series is gone."""
_FINE_SHARE = 0.6
"""Of all samples those for what moves with each scrape; the rest is for states and counters."""


@dataclass(slots=True)
class Haul:
    """What was fetched, and the longest seconds between two samples.

    ``troubles`` are sentences of what was not fetched; then ``is_whole`` is false.
    """

    series: list[Series] = field(default_factory=list)
    interval: float | None = None
    notes: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    samples: int = 0
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class _Batch:
    """Series that are asked for together, and how many seconds lie between their scrapes."""

    placed: tuple[Placed, ...]
    interval: float
    is_fine: bool

    @property
    def series(self) -> int:
        """Return how many series were counted."""
        return sum(one.series for one in self.placed)


def fetch(scope: Scope, found: Discovery) -> Haul:
    """Return the series of every node; a question that fails is told and costs its answer alone.

    A value holds for two scrapes and no longer, so that a series that has stopped stops here too,
    whatever the server's own look-back is. Where a job has so many series that they would be more
    than ``MOST_SAMPLES``, they are read at longer steps.
    """
    haul = Haul(is_whole=not found.is_partial)
    batches = tuple(_batches(scope, found, haul))
    steps = _steps(scope, batches, len(scope.names.nodes) / max(1, len(found.asked)))
    for batch, step in zip(batches, steps, strict=True):
        haul.interval = max(haul.interval or 0.0, step)
        if step > batch.interval:
            haul.notes.append(
                f"{batch.placed[0].metric} and its like are read every {step:.0f} s, not every "
                f"{batch.interval:.0f} s: the job has too many series for more."
            )
        for nodes in scope.names.chunks():
            _fetch_some(scope, _Question(batch, step, nodes), haul)
    haul.series = _joined(haul.series)
    return haul


def _batches(scope: Scope, found: Discovery, haul: Haul) -> Iterator[_Batch]:
    for (exporter, _), group in found.groups().items():
        learnt: float | None = None
        try:
            learnt = interval(scope, group)
        except MetricsError as error:
            haul.notes.append(f"How often {exporter} is scraped is not known: {error}.")
        for placed in _together(group):
            yield _Batch(
                placed=placed,
                interval=learnt or USUAL_INTERVAL,
                is_fine=placed[0].metric in catalogue.FINE,
            )


def _together(group: Sequence[Placed]) -> Iterator[tuple[Placed, ...]]:
    """Yield what can be asked for in one question: sums stand alone, steps may differ."""
    for one in group:
        if one.metric in catalogue.SUMMED:
            yield (one,)
    others = [one for one in group if one.metric not in catalogue.SUMMED]
    for is_fine in (True, False):
        if part := tuple(one for one in others if (one.metric in catalogue.FINE) == is_fine):
            yield part


def _steps(scope: Scope, batches: Sequence[_Batch], scale: float) -> list[float]:
    """Return the seconds between two samples of each batch; ``scale`` is nodes for one counted."""
    length = in_seconds(scope.until - scope.since)
    expected = sum(scale * one.series * (length / one.interval + 1) for one in batches)
    if expected <= MOST_SAMPLES:
        return [one.interval for one in batches]
    steps: list[float] = []
    for batch in batches:
        alike = sum(scale * one.series for one in batches if one.is_fine == batch.is_fine)
        share = _FINE_SHARE if batch.is_fine else 1 - _FINE_SHARE
        points = max(2.0, share * MOST_SAMPLES / alike)
        steps.append(max(batch.interval, length / (points - 1)))
    return steps


@dataclass(frozen=True, slots=True)
class _Question:
    batch: _Batch
    step: float
    nodes: tuple[str, ...]

    @property
    def label(self) -> str:
        """Return the label that names the node."""
        return self.batch.placed[0].label

    def text(self) -> str:
        """Return the question in PromQL."""
        kept = f"[{round(_SCRAPES_KEPT * self.batch.interval * 1000)}ms]"
        metrics = [one.metric for one in self.batch.placed]
        where = [f'__name__=~"{"|".join(metrics)}"', matcher(self.label, self.nodes)]
        if metrics[0] in catalogue.SUMMED:
            where.append(catalogue.SUMMED[metrics[0]])
            return f"sum by ({self.label}) (last_over_time({{{','.join(where)}}}{kept}))"
        return f"last_over_time({{{','.join(where)}}}{kept})"

    def first(self, scope: Scope) -> Instant:
        """Return the first instant asked about: counted back from the last, which tells most."""
        step = seconds(self.step)
        return Instant(scope.until - (scope.until - scope.since) // step * step)

    def halves(self) -> tuple[_Question, _Question]:
        """Return two questions for half of the nodes each."""
        middle = len(self.nodes) // 2
        return (
            _Question(self.batch, self.step, self.nodes[:middle]),
            _Question(self.batch, self.step, self.nodes[middle:]),
        )


def _fetch_some(scope: Scope, question: _Question, haul: Haul) -> None:
    """Add the series of some nodes; an answer that is too large is asked for in halves."""
    try:
        answer = scope.server.range(
            question.text(),
            question.first(scope),
            scope.until,
            step=question.step,
            patience=scope.patience.left(),
        )
    except AnswerTooLarge as error:
        if len(question.nodes) == 1:
            _miss(haul, question, error)
            return
        for half in question.halves():
            _fetch_some(scope, half, haul)
        return
    except MetricsError as error:
        _miss(haul, question, error)
        return
    if haul.samples > MOST_SAMPLES:
        _miss(haul, question, AnswerTooLarge(f"there are more than {MOST_SAMPLES} samples already"))
        return
    haul.is_whole &= not answer.is_partial
    haul.notes.extend(f"The metrics server warns: {text}." for text in answer.warnings)
    _take(scope, question, answer.rows, haul)


def _miss(haul: Haul, question: _Question, error: MetricsError) -> None:
    haul.is_whole = False
    metrics = question.batch.placed[0].metric
    haul.troubles.append(f"{metrics} and its like are not seen on {_some(question)}: {error}.")


def _some(question: _Question) -> str:
    first, *rest = question.nodes
    return f"{first} and {len(rest)} more nodes" if rest else first


def _take(scope: Scope, question: _Question, rows: Sequence[Row], haul: Haul) -> None:
    """Keep what belongs to the attempt's nodes and was asked for (law 10)."""
    metrics = {one.metric for one in question.batch.placed}
    first = question.batch.placed[0].metric
    summed = first if first in catalogue.SUMMED else ""  # a sum has lost its name
    values: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        values[row.metric or summed].add(row.labels.get(question.label, ""))
    settled = {metric: settle(found, scope.names).nodes for metric, found in values.items()}
    for row in rows:
        metric = row.metric or summed
        node = settled[metric].get(row.labels.get(question.label, ""))
        if metric not in metrics or node is None:
            continue
        samples = _within(row.samples, scope)
        if samples:
            device = catalogue.device_of(metric, row.labels)
            haul.series.append(
                Series(metric=metric, node=node, device=device, labels=row.labels, samples=samples)
            )
            haul.samples += len(samples)


def _within(samples: tuple[Sample, ...], scope: Scope) -> tuple[Sample, ...]:
    """Return the samples of the time that was asked about; a server that lies gives others too."""
    if samples and scope.since <= samples[0].at and samples[-1].at <= scope.until:
        return samples
    return tuple(one for one in samples if scope.since <= one.at <= scope.until)


def _joined(series: Sequence[Series]) -> list[Series]:
    """Return the series with those that follow each other on one device as one.

    A label that changes, such as the job that a GPU serves, ends one series and begins another,
    while the old one's value still holds for a scrape or two.
    """
    alike: dict[tuple[str, str, str], list[Series]] = defaultdict(list)
    for one in series:
        alike[one.metric, one.node, one.device].append(one)
    joined: list[Series] = []
    for parts in alike.values():
        parts.sort(key=lambda one: one.samples[0].at)
        last = parts[0]
        for one in parts[1:]:
            before = tuple(told for told in last.samples if told.at < one.samples[0].at)
            if before and len(last.samples) - len(before) <= _SCRAPES_KEPT:
                last = msgspec.structs.replace(one, samples=before + one.samples)
            else:
                joined.append(last)
                last = one
        joined.append(last)
    return joined
