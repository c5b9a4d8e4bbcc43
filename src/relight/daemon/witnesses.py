"""Which witnesses and services a cluster has, made from its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from relight.daemon.asking import Asking
from relight.daemon.attributing import AttributionLoop, Desk, service_of
from relight.daemon.backends import Backend
from relight.daemon.loops import Loop
from relight.daemon.parts import ClusterParts
from relight.daemon.witnessing import SIDE_BY_SIDE, Post, WitnessLoop
from relight.model.evidence import Witness
from relight.model.instants import Instant
from relight.perception.ears import Lexicon
from relight.rules.metrics import load_metric_rules
from relight.sources.flight_dumps import FlightDumps
from relight.sources.kernel_logs import KernelLogs
from relight.sources.owner_readers import OwnerReaders
from relight.sources.telemetry import TelemetrySource


@dataclass(frozen=True, slots=True)
class Means:
    """What witnesses look with: the rules that are heard, readers by cluster, and the clock."""

    lexicon: Lexicon
    rule_directories: tuple[str, ...]
    readers: Mapping[str, OwnerReaders]
    clock: Callable[[], Instant]


def loops_of(
    parts: Iterable[ClusterParts], means: Means, backend: Backend, asking: Asking
) -> list[Loop]:
    """Return the loops that ask them.

    Raises:
        MetricRuleError: a rule of the site over metrics is wrong.

    """
    parts = tuple(parts)
    loops: list[Loop] = [
        WitnessLoop(post, backend, asking, means.clock, number)
        for part in parts
        for post in _posts(part, means)
        for number in range(SIDE_BY_SIDE)
    ]
    services = dict.fromkeys(one for part in parts for one in part.attribution)
    for settings in services:
        clusters = frozenset(part.name for part in parts if settings in part.attribution)
        desk = Desk(settings, service_of(settings), clusters)
        loops.append(AttributionLoop(desk, backend, asking, means.readers, means.clock))
    return loops


def _posts(part: ClusterParts, means: Means) -> list[Post]:
    posts = [
        Post(part.name, Witness.FLIGHT_RECORDER, FlightDumps(means.readers[part.name], means.clock))
    ]
    if part.telemetry is not None:
        rules = load_metric_rules(Path(one) for one in means.rule_directories)
        source = TelemetrySource.of(part.telemetry, rules)
        posts.append(Post(part.name, Witness.TELEMETRY, source))
    if part.kernel_logs:
        kernels = KernelLogs(part.kernel_logs, means.lexicon, means.clock)
        posts.append(Post(part.name, Witness.KERNEL_LOG, kernels))
    return posts
