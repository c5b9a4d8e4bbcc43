"""Who stands apart from the same job's other nodes, where an unseen peer counts as one like it.

So a blame rests on peers that were seen to be different, and a series that is missing can only
take a blame away.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median

from relight.perception.telemetry.scenes import Part, Scene
from relight.perception.telemetry.wanted import Wanted

MOST_PEERS = 0.75
"""Share of the peers that must be different: two alike of four are two kinds, not one fault."""
SPREAD = 5.0
"""Deviations (1.4826 times the median absolute one, so that it is a standard deviation for a
normal spread) by which one must stand off."""
_TO_SIGMA = 1.4826


class Peers:
    """The values of one series over all nodes, to hold each against the others.

    Peers are the devices of other nodes; those of the same node where the job has only one.
    """

    def __init__(self, scene: Scene, wanted: Wanted, values: Mapping[Part, float]) -> None:
        own: dict[str, list[float]] = {}
        for (node, _), value in values.items():
            own.setdefault(node, []).append(value)
        self._values = values
        self._is_alone = len(own) < 2  # noqa: PLR2004 - one node has no other
        self._by_node = {node: sorted(of) for node, of in own.items()}
        self._every = sorted(values.values())
        most = max(Counter(node for node, _ in values).values(), default=0)
        devices = max(most, scene.gpus_a_node if wanted.of_gpu else 0)
        nodes = len(scene.nodes)
        self._expected = devices * (nodes - 1) if nodes > 1 else devices - 1

    def of(self, part: Part) -> list[float]:
        """Return the values of the peers of ``part``."""
        if self._is_alone:
            return [value for other, value in self._values.items() if other != part]
        return [value for other, value in self._values.items() if other[0] != part[0]]

    def middle(self, part: Part) -> float:
        """Return the median of the peers; a part without any is its own."""
        return median(self.of(part) or [self._values[part]])

    def are_above(self, part: Part, bound: float) -> bool:
        """Tell whether most peers have ``bound`` at least."""
        every = len(self._every) - bisect_left(self._every, bound)
        own = self._own(part)
        return self._are_most(part, every - (len(own) - bisect_left(own, bound)))

    def are_below(self, part: Part, bound: float) -> bool:
        """Tell whether most peers have ``bound`` at most."""
        own = self._own(part)
        return self._are_most(part, bisect_right(self._every, bound) - bisect_right(own, bound))

    def is_off(self, part: Part) -> bool:
        """Tell whether ``part`` lies outside the spread of its peers; unseen ones are like it."""
        own, peers = self._values[part], self.of(part)
        if not peers:
            return False
        filled = [*peers, *[own] * max(self._expected - len(peers), 0)]
        middle = median(filled)
        deviation = median(abs(peer - middle) for peer in filled)
        return abs(own - middle) > SPREAD * _TO_SIGMA * deviation

    def _own(self, part: Part) -> Sequence[float]:
        """Return what is no peer's: the values of the node, or of the part itself."""
        return [self._values[part]] if self._is_alone else self._by_node[part[0]]

    def _are_most(self, part: Part, count: int) -> bool:
        peers = len(self._every) - len(self._own(part))
        return count > 0 and count >= MOST_PEERS * max(self._expected, peers)


def listed_peers(count: int) -> str:
    """Return how many peers there were, in words."""
    return f"{count} other{'' if count == 1 else 's'}"
