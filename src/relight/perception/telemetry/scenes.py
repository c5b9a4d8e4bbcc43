"""A sight laid out for judging: samples by series, node and device, and which GPUs there are."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from relight.model.evidence import Window
from relight.model.instants import Instant, Span, seconds
from relight.model.telemetry import Sample, Series, Sight
from relight.perception.telemetry.blanks import is_blank
from relight.perception.telemetry.wanted import WANTED, Wanted

Part = tuple[str, str]
"""A node and a device on it."""

FEWEST = 3
"""Scrapes over which something must last before it is believed: one or two may be a hiccup."""
USUAL_INTERVAL = seconds(30)
"""The scrape interval where nothing tells it: dcgm-exporter's own default."""

_PER_GPU = frozenset(name for one in WANTED if one.of_gpu for name in one.names)
_MOST_SERIES_ASKED = 200
"""Series that the interval is learned from."""
_INDEX_DIGITS = 2


@dataclass(frozen=True, slots=True)
class Scene:
    """What is known of one attempt's nodes in one window."""

    window: Window
    interval: Span
    latest: Instant
    """The newest sample of all."""
    by_name: Mapping[str, Mapping[Part, Sequence[Sample]]]
    labels: Mapping[Part, Mapping[str, str]]
    """What the series of one GPU are labelled with."""
    gpus: tuple[Part, ...]
    """The GPUs of the job, on shared nodes too, as far as labels tell."""
    all_gpus: tuple[Part, ...]
    """The GPUs of the job's nodes."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return the nodes of the attempt."""
        return self.window.allocation.nodes

    @property
    def expected(self) -> int:
        """Return how many GPUs the job must be thought to have, those that nobody shows too.

        A node of which nothing is seen counts as one with as many GPUs as the fullest has.
        """
        return self.gpus_a_node * len(self.nodes)

    @property
    def gpus_a_node(self) -> int:
        """Return how many GPUs the fullest node has for the job."""
        counts: dict[str, int] = defaultdict(int)
        for node, _ in self.gpus:
            counts[node] += 1
        most = max(counts.values(), default=0)
        if self.gpus == self.all_gpus:  # the job has whole nodes, so a gap in the indices is a GPU
            highest = max((_index(device) for _, device in self.gpus), default=-1)
            most = max(most, highest + 1)
        return most

    def of(self, wanted: Wanted) -> dict[Part, Sequence[Sample]]:
        """Return the samples of a series by node and device, under the first name that has any."""
        found: dict[Part, Sequence[Sample]] = {}
        for name in wanted.names:
            for part, samples in self.by_name.get(name, {}).items():
                found.setdefault(part, samples)
        return found


def lay_out(sight: Sight, window: Window) -> Scene:
    """Return ``sight`` by series, node and device, without what is no value or no node of ours.

    Of two series with the same name, node and device the one with the newer samples is kept.
    """
    names: dict[str, str | None] = {}
    chosen: dict[str, dict[Part, Sequence[Sample]]] = defaultdict(dict)
    labels: dict[Part, dict[str, str]] = defaultdict(dict)
    for series in sorted(sight.series, key=_identity):
        if series.node not in names:
            names[series.node] = window.allocation.member(series.node)
        node = names[series.node]
        samples = _usable(series, sight)
        if node is None or not samples:
            continue
        of_gpu = series.metric in _PER_GPU
        part = (node, series.device.partition("/")[0] if of_gpu else series.device)
        if of_gpu:
            labels[part].update(series.labels)
        name = series.metric if "xid" not in series.labels else _with_code(series)
        known = chosen[name].get(part)
        if known is None or known[-1].at < samples[-1].at:
            chosen[name][part] = samples
    every = sorted(labels, key=_naturally)
    return Scene(
        window=window,
        interval=_interval(sight, chosen),
        latest=max(
            (samples[-1].at for parts in chosen.values() for samples in parts.values()),
            default=sight.since,
        ),
        by_name=chosen,
        labels=labels,
        gpus=tuple(_of_job(every, labels, window)),
        all_gpus=tuple(every),
    )


def is_of_gpu(metric: str) -> bool:
    """Tell whether a series is one of a GPU, by its name in ``Scene.by_name``."""
    return metric.partition(" ")[0] in _PER_GPU


def since(samples: Sequence[Sample], start: Instant) -> Sequence[Sample]:
    """Return the samples from ``start`` on."""
    return [sample for sample in samples if sample.at >= start]


def before(samples: Sequence[Sample], end: Instant) -> Sequence[Sample]:
    """Return the samples before ``end``."""
    return [sample for sample in samples if sample.at < end]


def earlier(scene: Scene, samples: Sequence[Sample], end: Instant) -> Sequence[Sample]:
    """Return the samples of this attempt before ``end``: what is older is another one's."""
    begun = scene.window.started_at
    return [one for one in before(samples, end) if begun is None or one.at >= begun]


def level(samples: Sequence[Sample]) -> float | None:
    """Return the median of samples, None of fewer than three."""
    return median(sample.value for sample in samples) if len(samples) >= FEWEST else None


def _identity(series: Series) -> tuple[str, str, str, list[tuple[str, str]], int]:
    """Return what series are ordered by, so that the order of an answer changes nothing."""
    labels = sorted(series.labels.items())
    return (series.metric, series.node, series.device, labels, len(series.samples))


def _usable(series: Series, sight: Sight) -> list[Sample]:
    kept = [
        sample
        for sample in series.samples
        if math.isfinite(sample.value)
        and sight.since <= sample.at <= sight.until
        and not is_blank(series.metric, sample.value)
    ]
    return sorted(kept, key=lambda sample: sample.at)


def _with_code(series: Series) -> str:
    return f"{series.metric} {series.labels['xid'][:8]}"


def _naturally(part: Part) -> tuple[str, int, str]:
    """Return what GPUs are ordered by: 2 before 10."""
    node, device = part
    return (node, _index(device), device)


def _index(device: str) -> int:
    """Return the index of a GPU, -1 where it is called by something else than a small number."""
    return (
        int(device)
        if device.isascii() and device.isdecimal() and len(device) <= _INDEX_DIGITS
        else -1
    )


def whose_gpus_are_not_told(sight: Sight, window: Window) -> tuple[str, ...]:
    """Return the nodes that show more GPUs than the job has there, and do not say which are its."""
    scene = lay_out(sight, window)
    kept = {node for node, _ in scene.gpus}
    return tuple(dict.fromkeys(node for node, _ in scene.all_gpus if node not in kept))


def _of_job(
    parts: Sequence[Part], labels: Mapping[Part, Mapping[str, str]], window: Window
) -> list[Part]:
    """Leave out the GPUs that ``hpc_job`` gives to another job, where one GPU names this job.

    dcgm-exporter writes that label from its directory of job mappings. Where no GPU names it and
    a node shows more of them than the job has there, none of that node's are known to be its.
    """
    ours = window.attempt.job.scheduler_id
    told = {part: labels[part].get("hpc_job", "") for part in parts}
    if ours in told.values():
        return [part for part in parts if told[part] in ("", ours)]
    counts = Counter(node for node, _ in parts)
    most = window.gpus_per_node
    return [part for part in parts if not most or counts[part[0]] <= most]


def _interval(sight: Sight, chosen: Mapping[str, Mapping[Part, Sequence[Sample]]]) -> Span:
    if sight.interval is not None and math.isfinite(sight.interval) and sight.interval > 0:
        return seconds(sight.interval)
    series = [
        samples for _, parts in sorted(chosen.items()) for _, samples in sorted(parts.items())
    ]
    steps = [
        later.at - earlier.at
        for samples in series[:_MOST_SERIES_ASKED]
        for earlier, later in pairwise(samples)
        if later.at > earlier.at
    ]
    return Span(round(median(steps))) if steps else USUAL_INTERVAL
