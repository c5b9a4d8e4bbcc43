"""What nodes show, told by node; or of none, where most nodes may show the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from relight.model.findings import Finding, Remedy, Role
from relight.model.instants import Instant
from relight.perception.telemetry.scenes import Part, Scene
from relight.perception.telemetry.telling import Trouble, gpus_of, listed, told
from relight.perception.telemetry.wanted import Wanted
from relight.rules.metrics.wording import shown_name

Signs = Mapping[Part, tuple[str, Instant]]
"""What devices show: the samples in words, and since when."""

MOST_FINDINGS = 64
"""Nodes that one rule tells of, one by one."""


def is_shared(scene: Scene, count: int) -> bool:
    """Tell whether ``count`` nodes are most of the job's nodes: then it is no node's own fault."""
    return len(scene.nodes) > 1 and 2 * count > len(scene.nodes)


def of_nodes(  # noqa: PLR0913 - what ``told`` needs, for several nodes at once
    scene: Scene,
    trouble: Trouble,
    says: str,
    signs: Signs,
    *,
    plural: str = "",
    mark: str = "",
    again: Instant | None = None,
    also: Mapping[Part, str] | None = None,
) -> list[Finding]:
    """Return what each node shows; ``says`` goes on after the name of the node or its GPUs.

    ``plural`` does so where there are several, if that is said otherwise.
    ``also`` are second names of devices, which the finding then bears too.
    """
    second = also or {}
    return [
        told(
            trouble,
            scene.window,
            f"{subject(node, devices)} {plural if plural and len(devices) > 1 else says}.",
            at=min(at for _, at in devices.values()),
            nodes=(node,),
            devices=[
                name
                for device in devices
                for name in (device, second.get((node, device), ""))
                if name
            ],
            evidence=[
                (f"{subject(node, [device])}: {words}", at)
                for device, (words, at) in devices.items()
            ],
            mark=mark,
            again=again,
        )
        for node, devices in list(_by_node(signs).items())[:MOST_FINDINGS]
    ]


def of_nodes_or_most(
    scene: Scene, trouble: Trouble, says: str, signs: Signs, wanted: Iterable[Wanted]
) -> list[Finding]:
    """Return the same, but name no node where most nodes may show it.

    A node of which the series ``wanted`` are missing may show it too: what takes links or
    machines down takes their metrics along.
    """
    nodes = _by_node(signs)
    known = Counter(node for one in wanted for node, _ in scene.of(one))
    most = max(known.values(), default=0)
    unseen = sum(known[node] < most and node not in nodes for node in scene.nodes)
    if not is_shared(scene, len(nodes) + unseen):
        return of_nodes(scene, trouble, says, signs)
    role = trouble.role if is_shared(scene, len(nodes)) else Role.EITHER
    hidden = f", and nothing is known of {unseen} more" if unseen else ""
    sentence = (
        f"{len(nodes)} of the job's {len(scene.nodes)} nodes {says} ({listed(nodes)}){hidden}: "
        f"it {'need not be' if unseen else 'is not'} one node's own fault."
    )
    evidence = [
        (f"{subject(node, [device])}: {words}", at)
        for node, devices in nodes.items()
        for device, (words, at) in list(devices.items())[:1]
    ]
    shared = msgspec.structs.replace(trouble, remedy=Remedy.HOLD, role=role)
    first = min(at for _, at in signs.values())
    return [told(shared, scene.window, sentence, at=first, evidence=evidence)]


def subject(node: str, devices: Iterable[str]) -> str:
    """Return the name of a node, with its devices where any are named."""
    named = [device for device in devices if device]
    if not named:
        return shown_name(node)
    if all(device.isdecimal() for device in named):
        return gpus_of(node, named)
    return f"{shown_name(node)} ({listed(named)})"


def _by_node(signs: Signs) -> dict[str, dict[str, tuple[str, Instant]]]:
    nodes: dict[str, dict[str, tuple[str, Instant]]] = {}
    for (node, device), sign in sorted(signs.items()):
        nodes.setdefault(node, {})[device] = sign
    return nodes
