"""Links that err far more than those of the job's other nodes."""

from __future__ import annotations

from relight.model.instants import Instant
from relight.perception.telemetry.peers import Peers, listed_peers
from relight.perception.telemetry.rises import rise_of
from relight.perception.telemetry.scenes import FEWEST, Part, Scene, since
from relight.perception.telemetry.wanted import Wanted
from relight.rules.metrics.wording import number

MANY = 10
"""Errors in a window from which a link is worth a word, where its peers have few."""
TIMES = 10
"""How many times as many as most of its peers that must be."""


def far_more(scene: Scene, wanted: Wanted, start: Instant) -> dict[Part, tuple[str, Instant]]:
    """Return where a counter rose since ``start`` in three scrapes at least, unlike elsewhere."""
    rises = {part: rise_of(since(samples, start)) for part, samples in scene.of(wanted).items()}
    amounts = {part: rise.amount if rise else 0.0 for part, rise in rises.items()}
    peers = Peers(scene, wanted, amounts)
    found: dict[Part, tuple[str, Instant]] = {}
    for part, rise in rises.items():
        if rise is None or rise.scrapes < FEWEST or rise.amount < MANY:
            continue
        if peers.are_below(part, rise.amount / TIMES):
            words = (
                f"{wanted.name} rose by {number(rise.amount)} in {rise.scrapes} scrapes, "
                f"median of {listed_peers(len(peers.of(part)))} {number(peers.middle(part))}"
            )
            found[part] = (words, rise.at)
    return found
