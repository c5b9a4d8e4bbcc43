"""What stopped to be seen: the metrics of a whole node, or one GPU among those of its node.

Only what had every series that its peers still have is missed. Else it may be an exporter
that shows less, and nothing is concluded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

import msgspec

from relight.model.findings import Domain, Finding, Kind, Remedy, Role
from relight.model.instants import Instant, show_span
from relight.perception.telemetry.activities import Activity, Look
from relight.perception.telemetry.hangs import NAMED_SHARE
from relight.perception.telemetry.scenes import FEWEST, Part, Scene
from relight.perception.telemetry.sharing import is_shared, of_nodes
from relight.perception.telemetry.telling import Trouble, told
from relight.perception.telemetry.wanted import WANTED
from relight.rules.metrics.wording import shown_name

_GONE = Trouble(
    rule="telemetry-gone",
    family="node_failure",
    kind=Kind.HANG,
    domain=Domain.HARDWARE,
    role=Role.EITHER,
)
_EXPORTER_GONE = msgspec.structs.replace(_GONE, role=Role.SYMPTOM)
_FEWER = Trouble(
    rule="gpu-count-lower",
    family="gpu_fallen_off_bus",
    kind=Kind.NODE,
    domain=Domain.HARDWARE,
    remedy=Remedy.RESTART_EXCLUDING_NODE_AND_DRAIN,
)
_FEWER_THAN_PEERS = msgspec.structs.replace(
    _FEWER, role=Role.EITHER, remedy=Remedy.RESTART_EXCLUDING_NODE
)
_PER_GPU = frozenset(name for one in WANTED if one.of_gpu for name in one.names)
_BEFORE_LAST_STEP = 2
"""Scrapes before the last step in which a node may have been seen for the last time."""
FEWEST_PEERS = 2
"""Nodes that must agree on the number of GPUs before one with fewer is told of."""


def nodes_gone(scene: Scene, every: Mapping[Part, Look]) -> list[Finding]:
    """Return the nodes whose series all stopped three scrapes ago while most peers' go on.

    None is told where another node's GPU is at work, by what ``every`` GPU does: the job goes on.
    Nor where more than a quarter of the nodes stopped, or before the last step: then it is not
    the node that died. Where only one exporter is known, or one stopped long before the other,
    it may be the exporter's own trouble, and the finding is a symptom.
    """
    ends: dict[str, dict[str, Instant]] = {}
    for name, parts in scene.by_name.items():
        for (node, _), samples in parts.items():
            own = ends.setdefault(node, {})
            own[name] = max(own.get(name, samples[-1].at), samples[-1].at)
    stopped, alive = _parted(scene, {node: max(of.values()) for node, of in ends.items()})
    alive_series = {name for node in alive for name in ends[node]}
    gone = [node for node in stopped if alive_series <= ends[node].keys()]
    few = max(1, len(scene.nodes) // NAMED_SHARE)
    if not 0 < len(gone) <= few or not is_shared(scene, len(alive)) or _works(every, alive):
        return []
    return [
        told(
            _GONE if _is_whole(scene, ends[node]) else _EXPORTER_GONE,
            scene.window,
            f"The metrics of {shown_name(node)} stopped {show_span(scene.latest - stopped[node])} "
            "before those of the other nodes, which go on: the node may be dead.",
            at=stopped[node],
            nodes=(node,),
            evidence=[
                (f"{shown_name(node)}: last sample, {len(alive)} nodes go on", stopped[node])
            ],
            again=scene.window.silent_since,
        )
        for node in sorted(gone)
        if _is_of_the_silence(scene, stopped[node])
    ]


def _is_of_the_silence(scene: Scene, at: Instant) -> bool:
    """Tell whether a node was last seen no earlier than two scrapes before the last step.

    A node that is dead completes no steps: one whose metrics stopped before was alive all the same.
    """
    since = scene.window.silent_since
    return since is None or at >= since - _BEFORE_LAST_STEP * scene.interval


def _is_whole(scene: Scene, ends: Mapping[str, Instant]) -> bool:
    """Tell whether the exporters of a node, that of its GPUs and its own, stopped together."""
    last: dict[bool, Instant] = {}
    for name, at in ends.items():
        of_gpus = name.partition(" ")[0] in _PER_GPU
        last[of_gpus] = max(last.get(of_gpus, at), at)
    together = FEWEST * scene.interval
    return len(last) > 1 and max(last.values()) - min(last.values()) <= together


def _works(every: Mapping[Part, Look], alive: Collection[str]) -> bool:
    """Tell whether GPUs of other nodes are at work: most of them, or any that is seen to vary."""
    seen = [look for (node, _), look in every.items() if node in alive]
    working = [look for look in seen if look.activity is Activity.WORKING]
    return 2 * len(working) > len(seen) or any(look.is_moving for look in working)


def gpus_gone(scene: Scene) -> list[Finding]:
    """Return the nodes that show fewer GPUs than before, or than all their peers."""
    stopped = _stopped(scene)
    fewer = {part: sign for part, sign in _missing(scene).items() if not stopped}
    return [
        *of_nodes(scene, _FEWER, "can no longer be seen, while others of the node can", stopped),
        *of_nodes(scene, _FEWER_THAN_PEERS, "shows fewer GPUs than every other node", fewer),
    ]


def _stopped(scene: Scene) -> dict[Part, tuple[str, Instant]]:
    """Return the GPUs that were seen before and are not, while others of their node are."""
    ends: dict[Part, dict[str, Instant]] = {}
    for name, parts in scene.by_name.items():
        if name.partition(" ")[0] in _PER_GPU and " " not in name:
            for part, samples in parts.items():
                ends.setdefault(part, {})[name] = samples[-1].at
    found: dict[Part, tuple[str, Instant]] = {}
    for node in {node for node, _ in ends}:
        own = {part: max(of.values()) for part, of in ends.items() if part[0] == node}
        newest = max(own.values())
        if newest < scene.latest - FEWEST * scene.interval:
            continue  # the exporter itself stopped
        alive = [part for part, at in own.items() if at >= newest - scene.interval]
        series = {name for part in alive for name in ends[part]}
        for part, at in own.items():
            if at <= newest - FEWEST * scene.interval and series <= ends[part].keys():
                words = f"last sample {show_span(newest - at)} before those of {len(alive)} others"
                found[part] = (words, at)
    return found


def _missing(scene: Scene) -> dict[Part, tuple[str, Instant]]:
    """Return the one node that shows fewer GPUs than all others, which agree.

    It must show the same series as they do, and several: one that lacks a GPU proves nothing.
    """
    series: dict[str, set[str]] = {}
    for name, parts in scene.by_name.items():
        if name in _PER_GPU:
            for node, _ in parts:
                series.setdefault(node, set()).add(name)
    counts = Counter(node for node, _ in scene.all_gpus)
    if len(counts) <= FEWEST_PEERS or len(counts) < len(scene.nodes):
        return {}
    for node, count in sorted(counts.items()):
        peers = {of for other, of in counts.items() if other != node}
        is_alike = all(shown == series[node] for shown in series.values())
        if len(peers) == 1 and count < min(peers) and is_alike and len(series[node]) > 1:
            words = f"{count} GPUs, {min(peers)} on each of the others"
            return {(node, ""): (words, scene.window.since)}
    return {}


def _parted(scene: Scene, last: Mapping[str, Instant]) -> tuple[dict[str, Instant], list[str]]:
    """Return the nodes that stopped, with their last instants, and those that go on."""
    limit = scene.latest - FEWEST * scene.interval
    stopped = {node: at for node, at in last.items() if at <= limit}
    return stopped, sorted(last.keys() - stopped.keys())
