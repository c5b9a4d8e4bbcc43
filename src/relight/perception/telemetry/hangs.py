"""Hangs by their pattern: which GPUs are idle, which wait, and which work on.

One idle GPU among waiting ones names the node whose rank never came. All waiting, all idle or
all working name nobody; where one works and the others wait for it, work goes on too. A GPU that
cannot be seen counts against a blame, as if it were idle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from relight.model.findings import Domain, Finding, Kind, Remedy, Role
from relight.model.instants import Instant
from relight.perception.telemetry.activities import Activity, Look
from relight.perception.telemetry.scenes import Part, Scene
from relight.perception.telemetry.telling import Trouble, by_node, gpus_of, listed, told

_IDLE_AMONG_BUSY = Trouble(
    rule="gpu-idle-among-busy", family="silent_hang", kind=Kind.HANG, domain=Domain.HARDWARE
)
_NOBODYS = Trouble(
    rule="",
    family="silent_hang",
    kind=Kind.HANG,
    domain=Domain.UNKNOWN,
    role=Role.SYMPTOM,
    remedy=Remedy.RESTART,
)
_SPIN = msgspec.structs.replace(_NOBODYS, rule="gpus-spin")
_IDLE = msgspec.structs.replace(_NOBODYS, rule="gpus-idle")
_WORK = Trouble(
    rule="gpus-work",
    family="healthy_running",
    kind=Kind.HANG,
    domain=Domain.NONE,
    role=Role.BENIGN,
    remedy=Remedy.REPORT,
)
NAMED_SHARE = 4
"""A quarter of the nodes may be named at most, or one: more is no single node's fault."""

UNCLEAR_SHARE = 10
"""Of so many GPUs that wait, one may do something else or be unclear."""


def hangs(scene: Scene, every: Mapping[Part, Look]) -> list[Finding]:
    """Return the pattern of a silence by what ``every`` GPU does, none where it shows none."""
    if not every:
        return []
    used = _of_the_job(every)
    groups: dict[Activity, dict[Part, Look]] = {activity: {} for activity in Activity}
    for part, look in used.items():
        groups[look.activity][part] = look
    unseen = max(scene.expected - len(every), 0) + len(groups[Activity.UNKNOWN])
    finding = _judged(scene, groups, unseen)
    return [finding] if finding is not None else []


def _of_the_job(every: Mapping[Part, Look]) -> dict[Part, Look]:
    """Leave out GPUs that were idle before and are idle now: the job does not use them.

    Where no GPU was busy before, the job is still setting up, and all are its own.
    """
    if not any(look.was_used for look in every.values()):
        return dict(every)
    return {
        part: look
        for part, look in every.items()
        if look.was_used is not False or look.activity is not Activity.IDLE
    }


def _judged(
    scene: Scene, groups: Mapping[Activity, Mapping[Part, Look]], unseen: int
) -> Finding | None:
    count = {activity: len(parts) for activity, parts in groups.items()}
    idle, working = count[Activity.IDLE], count[Activity.WORKING]
    spinning, busy = count[Activity.SPINNING], count[Activity.BUSY]
    total = idle + working + spinning + busy + unseen
    if idle and spinning + busy:
        return _idle_among_busy(scene, groups, total) if 2 * (idle + unseen) <= total else None
    if working:
        return None if idle else _at_work(scene, groups, total)
    if idle:
        return _of_all(scene, _IDLE, groups[Activity.IDLE], total) if 2 * idle > total else None
    if 2 * spinning > total:
        return _of_all(scene, _SPIN, groups[Activity.SPINNING], total)
    return None


def _idle_among_busy(
    scene: Scene, groups: Mapping[Activity, Mapping[Part, Look]], total: int
) -> Finding | None:
    idle, spinning = groups[Activity.IDLE], groups[Activity.SPINNING]
    busy = groups[Activity.BUSY]
    nodes = by_node(idle)
    if len(nodes) > max(1, len(scene.nodes) // NAMED_SHARE):
        return None
    unclear = len(busy) + len(groups[Activity.WORKING]) + _unclear(groups)
    is_known = len(spinning) >= UNCLEAR_SHARE * unclear and bool(spinning)
    if not is_known and (len(busy) < unclear or any(one.is_metered for one in busy.values())):
        return None
    others = {**spinning, **busy}
    wait = "spin without work" if is_known else "show full utilisation, and may be waiting,"
    they = "is" if len(idle) == 1 else "are"
    sentence = (
        f"{_named(nodes)} {they} idle while {len(others)} of the job's {total} GPUs {wait}: "
        "the process there is stuck or gone."
    )
    trouble = _IDLE_AMONG_BUSY
    if not is_known:
        trouble = msgspec.structs.replace(trouble, role=Role.EITHER)
    return told(
        trouble,
        scene.window,
        sentence,
        at=min(look.at for look in idle.values()),
        nodes=tuple(nodes),
        devices=[device for _, device in idle],
        evidence=[*_said(idle, 8), *_said(others, 4)],
        again=scene.window.silent_since,
    )


def _unclear(groups: Mapping[Activity, Mapping[Part, Look]]) -> int:
    """Return how many GPUs are seen and not understood.

    Those of a node of which nothing is seen are unseen, as they are where it never was scraped.
    """
    seen = {node for of in groups.values() for (node, _), look in of.items() if look.words}
    return sum(node in seen for node, _ in groups[Activity.UNKNOWN])


def _at_work(
    scene: Scene, groups: Mapping[Activity, Mapping[Part, Look]], total: int
) -> Finding | None:
    """Return that work goes on: most GPUs work, or some that all others wait for.

    One rank that evaluates or saves alone keeps its own GPU at work and the others in a barrier.
    Few that work are believed only where what they show varies.
    """
    working, spinning = groups[Activity.WORKING], groups[Activity.SPINNING]
    if 2 * len(working) > total and not spinning:
        return _of_all(scene, _WORK, working, total)
    moving = {part: look for part, look in working.items() if look.is_moving}
    if not moving or not spinning or 2 * (len(moving) + len(spinning)) <= total:
        return None
    return told(
        _WORK,
        scene.window,
        f"{_named(by_node(moving))} {'works' if len(moving) == 1 else 'work'} while "
        f"{len(spinning)} of the job's {total} GPUs wait: work goes on, and only no step is told.",
        at=min(look.at for look in moving.values()),
        evidence=[*_said(moving, 8), *_said(spinning, 4)],
        again=scene.window.silent_since,
    )


_SAYS = {
    "gpus-work": "work as before: work goes on, and only no step is told",
    "gpus-idle": "are idle: nothing is computed, and no GPU waits for another",
    "gpus-spin": "are busy without work: they wait for a rank that never came",
}


def _of_all(scene: Scene, trouble: Trouble, parts: Mapping[Part, Look], total: int) -> Finding:
    return told(
        trouble,
        scene.window,
        f"{len(parts)} of the job's {total} GPUs {_SAYS[trouble.rule]}.",
        at=min(look.at for look in parts.values()),
        evidence=_said(parts, 4),
        again=scene.window.silent_since,
    )


def _named(nodes: Mapping[str, Sequence[str]]) -> str:
    if len(nodes) == 1:
        return "".join(gpus_of(node, devices) for node, devices in nodes.items())
    return f"{sum(map(len, nodes.values()))} GPUs of {listed(nodes)}"


def _said(parts: Mapping[Part, Look], most: int) -> list[tuple[str, Instant]]:
    return [
        (f"{gpus_of(node, [device])}: {look.words}", look.at)
        for (node, device), look in list(parts.items())[:most]
    ]
