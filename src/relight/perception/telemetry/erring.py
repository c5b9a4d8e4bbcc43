"""Links that err far more than those of the job's other nodes."""

from __future__ import annotations

from collections.abc import Sequence

from relight.model.instants import Instant, in_seconds
from relight.model.telemetry import Sample
from relight.perception.telemetry.peers import Peers, listed_peers
from relight.perception.telemetry.rises import rise_of
from relight.perception.telemetry.scenes import FEWEST, Part, Scene, earlier, since
from relight.perception.telemetry.wanted import Wanted
from relight.rules.metrics.wording import number

MANY = 10
"""Errors in a window from which a link is worth a word, where its peers have few."""
FASTER = 2
"""How many times as fast as before a counter must rise to explain a change."""
TIMES = 10
"""How many times as many as most of its peers that must be."""


def far_more(scene: Scene, wanted: Wanted, start: Instant) -> dict[Part, tuple[str, Instant]]:
    """Return where a counter rose since ``start`` in three scrapes at least, unlike elsewhere."""
    every = scene.of(wanted)
    rises = {part: rise_of(since(samples, start)) for part, samples in every.items()}
    amounts = {part: rise.amount if rise else 0.0 for part, rise in rises.items()}
    peers = Peers(scene, wanted, amounts)
    found: dict[Part, tuple[str, Instant]] = {}
    for part, rise in rises.items():
        if rise is None or rise.scrapes < FEWEST or rise.amount < MANY:
            continue
        if not _is_new(scene, every[part]):
            continue
        if peers.are_below(part, rise.amount / TIMES):
            words = (
                f"{wanted.name} rose by {number(rise.amount)} in {rise.scrapes} scrapes, "
                f"median of {listed_peers(len(peers.of(part)))} {number(peers.middle(part))}"
            )
            found[part] = (words, rise.at)
    return found


def _is_new(scene: Scene, samples: Sequence[Sample]) -> bool:
    """Tell whether a counter rises faster than before a slow stretch, where one is asked about.

    A link that always erred as much does not explain why steps now take longer.
    """
    slow = scene.window.slow_since
    if slow is None:
        return True
    old, new = earlier(scene, samples, slow), since(samples, slow)
    if len(old) < FEWEST or len(new) < FEWEST:
        return False
    return _a_second(new) >= FASTER * _a_second(old)


def _a_second(samples: Sequence[Sample]) -> float:
    rise = rise_of(samples)
    lasted = in_seconds(samples[-1].at - samples[0].at)
    return rise.amount / lasted if rise is not None and lasted > 0 else 0.0
