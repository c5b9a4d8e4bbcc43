"""The result of a rule's expression to findings: pure, so that its cases prove it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median

from relight.model.evidence import Window
from relight.model.findings import Evidence, Finding, Provenance
from relight.model.instants import Instant, Span
from relight.model.records import Record, digest
from relight.model.telemetry import Sample, Series
from relight.rules.metrics.schema import MetricRule
from relight.rules.metrics.wording import number, shown_name

DETECTOR = "metric-rules"
MOST_NODES = 64
"""Nodes that one rule tells of, one by one."""
MOST_EVIDENCE = 12
MOST_DEVICES = 64
_GAP = 1.5
"""Scrape intervals after which the next sample is late: one between them is missing."""
PLACEHOLDER = re.compile(r"\{(\w+)\}")


class Run(Record, frozen=True, kw_only=True):
    """Scrapes in a row for which a rule held in one series."""

    series: Series
    samples: tuple[Sample, ...]


def findings_of(rule: MetricRule, series: Sequence[Series], window: Window) -> tuple[Finding, ...]:
    """Return what ``series``, the result of the rule's expression, says in ``window``.

    One finding a node of the allocation; series of other nodes, and samples outside of the
    window, say nothing. ``seen_at`` is the end of the window.

    Raises:
        ValueError: the rule's ``for`` names no span.

    """
    nodes: dict[str, list[Run]] = {}
    for one in sorted(series, key=lambda one: (one.node, one.device, sorted(one.labels.items()))):
        node = window.allocation.member(one.node)
        run = _run(rule, one, window) if node is not None else None
        if node is not None and run is not None:
            nodes.setdefault(node, []).append(run)
    return tuple(
        _finding(rule, node, runs, window) for node, runs in list(nodes.items())[:MOST_NODES]
    )


def _run(rule: MetricRule, series: Series, window: Window) -> Run | None:
    """Return the first row of samples that is long enough."""
    samples = [
        sample
        for sample in series.samples
        if math.isfinite(sample.value) and window.since <= sample.at <= window.until
    ]
    usual = _usual_distance(samples)
    row: list[Sample] = []
    for sample in samples:
        if not rule.holds(sample.value):
            row = []
            continue
        if row and usual and sample.at - row[-1].at > _GAP * usual:
            row = []
        row.append(sample)
        if len(row) >= rule.scrapes and sample.at - row[0].at >= rule.span:
            return Run(series=series, samples=tuple(row))
    return None


def _usual_distance(samples: Sequence[Sample]) -> Span:
    distances = [later.at - earlier.at for earlier, later in pairwise(samples)]
    return Span(round(median(distances))) if distances else Span(0)


def _finding(rule: MetricRule, node: str, runs: Sequence[Run], window: Window) -> Finding:
    first = min(runs, key=lambda run: (run.samples[0].at, run.series.device))
    devices = dict.fromkeys(shown_name(run.series.device) for run in runs if run.series.device)
    return Finding(
        id=digest(str(window.attempt), DETECTOR, rule.id, node),
        detector=DETECTOR,
        rule=rule.id,
        family=rule.family,
        kind=rule.kind,
        role=rule.role,
        domain=rule.domain,
        remedy=rule.remedy,
        attempt=window.attempt,
        seen_at=window.until,
        sentence=_sentence(rule, node, first),
        provenance=Provenance.TELEMETRY,
        at=first.samples[0].at,
        nodes=(node,),
        devices=tuple(devices)[:MOST_DEVICES],
        evidence=tuple(
            Evidence(text=_words(rule, node, run), at=run.samples[0].at, is_root=run is first)
            for run in runs[:MOST_EVIDENCE]
        ),
        reach=rule.reach,
        fingerprint=rule.id,
    )


def _sentence(rule: MetricRule, node: str, run: Run) -> str:
    named: Mapping[str, str] = {
        **run.series.labels,
        "node": node,
        "device": run.series.device,
        "value": number(run.samples[-1].value),
    }
    return PLACEHOLDER.sub(
        lambda match: shown_name(named.get(match[1], "")) or "unknown", rule.sentence
    )


def _words(rule: MetricRule, node: str, run: Run) -> str:
    device = f" ({shown_name(run.series.device)})" if run.series.device else ""
    values = [sample.value for sample in run.samples]
    least, most = number(min(values)), number(max(values))
    shown = least if least == most else f"{least} to {most}"
    count = len(values)
    scrapes = "scrape" if count == 1 else "scrapes in a row"
    return f"{shown_name(node)}{device}: {rule.id} {shown} over {count} {scrapes}"


def instants(start: Instant, step: Span, values: Sequence[float | None]) -> tuple[Sample, ...]:
    """Return samples a ``step`` apart; a missing value is no sample."""
    return tuple(
        Sample(at=Instant(start + number * step), value=value)
        for number, value in enumerate(values)
        if value is not None
    )
