"""Waiting for storage: what most nodes of a job show at once, so that it names none of them."""

from __future__ import annotations

from collections.abc import Sequence

from relight.model.findings import Domain, Finding, Kind, Remedy, Role
from relight.model.instants import Instant, in_seconds
from relight.model.telemetry import Sample
from relight.perception.telemetry.rises import rise_of
from relight.perception.telemetry.scenes import FEWEST, Scene, before, since
from relight.perception.telemetry.sharing import is_shared
from relight.perception.telemetry.telling import Trouble, told
from relight.perception.telemetry.wanted import IO_WAIT, NFS_RETRANSMISSIONS, Wanted
from relight.rules.metrics.wording import number, shown_name

_WAIT = Trouble(
    rule="storage-wait",
    family="filesystem_io_error",
    kind=Kind.SLOW,
    domain=Domain.STORAGE,
    role=Role.EITHER,
    remedy=Remedy.HOLD,
)
LEAST_CORES = 0.5
"""Cores that wait for input or output, on average: half a reader or writer a node."""
LEAST_RETRANSMISSIONS = 0.1
"""Requests a second that had to be sent again: NFS over TCP needs next to none."""
TIMES = 3
"""How many times as much as before the trouble."""


def storage(scene: Scene) -> list[Finding]:
    """Return one finding where most nodes wait for storage since the trouble began."""
    start = scene.window.silent_since or scene.window.slow_since
    if start is None:
        return []
    evidence: dict[str, tuple[str, Instant]] = {}
    for wanted, least, unit in (
        (IO_WAIT, LEAST_CORES, "cores waiting"),
        (NFS_RETRANSMISSIONS, LEAST_RETRANSMISSIONS, "requests sent again a second"),
    ):
        for node, words in _nodes(scene, wanted, least, start).items():
            evidence.setdefault(node, (f"{shown_name(node)}: {words} {unit}", start))
    if not evidence or (len(scene.nodes) > 1 and not is_shared(scene, len(evidence))):
        return []
    sentence = (
        f"{len(evidence)} of the job's {len(scene.nodes)} nodes wait for storage, "
        "far longer than before."
    )
    return [told(_WAIT, scene.window, sentence, at=start, evidence=evidence.values(), again=start)]


def _nodes(scene: Scene, wanted: Wanted, least: float, start: Instant) -> dict[str, str]:
    """Return the nodes whose rate is ``least`` at least and thrice that of before, in words."""
    rates: dict[str, tuple[float, float]] = {}
    for (node, _), samples in scene.of(wanted).items():
        now, usual = _rate(since(samples, start)), _rate(before(samples, start))
        if now is not None and usual is not None:
            so_far = rates.get(node, (0.0, 0.0))
            rates[node] = (so_far[0] + now, so_far[1] + usual)
    return {
        node: f"{number(now)} (before: {number(usual)})"
        for node, (now, usual) in sorted(rates.items())
        if now >= least and now >= TIMES * usual
    }


def _rate(samples: Sequence[Sample]) -> float | None:
    """Return a counter's rise a second, None of fewer than three samples."""
    if len(samples) < FEWEST:
        return None
    lasted = in_seconds(samples[-1].at - samples[0].at)
    rise = rise_of(samples)
    return (rise.amount if rise is not None else 0.0) / lasted if lasted > 0 else None
