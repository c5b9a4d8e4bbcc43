"""From ranks to nodes: how the ranks in question lie on the nodes of their job."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum

from relight.model.records import Record

_PAIR = 2


class Lie(StrEnum):
    """How ranks lie on nodes."""

    UNKNOWN = "unknown"
    WHOLE_NODE = "whole_node"
    WHOLE_NODES = "whole_nodes"
    ONLY_RANK = "only_rank"
    PART_OF_NODE = "part_of_node"
    SAME_PLACE = "same_place"
    SCATTERED = "scattered"


class Spot(Record, frozen=True, kw_only=True):
    """How ranks lie, on which nodes, and how many ranks the first of these has."""

    lie: Lie
    nodes: tuple[str, ...] = ()
    ranks_there: int = 0


class Ground:
    """The ranks of a job and their nodes; ``node_of`` gives None where that is not known."""

    def __init__(self, ranks: Iterable[int], node_of: Callable[[int], str | None]) -> None:
        self._node = {rank: node_of(rank) for rank in sorted(set(ranks))}
        self._on: dict[str, list[int]] = {}
        for rank, node in self._node.items():
            if node is not None:
                self._on.setdefault(node, []).append(rank)

    def nodes_of(self, ranks: Iterable[int]) -> tuple[str, ...]:
        """Return the nodes of ranks, as far as they are known."""
        found = (self._node.get(rank) for rank in ranks)
        return tuple(dict.fromkeys(node for node in found if node is not None))

    def spot(self, ranks: tuple[int, ...]) -> Spot:
        """Return how ranks lie. One rank of unknown node makes all of it unknown."""
        placed = {rank: node for rank in ranks if (node := self._node.get(rank)) is not None}
        if len(placed) < len(ranks) or not ranks:
            return Spot(lie=Lie.UNKNOWN)
        nodes = tuple(dict.fromkeys(placed.values()))
        there = {node: [rank for rank in ranks if placed[rank] == node] for node in nodes}
        wholes = [node for node in nodes if len(there[node]) == len(self._on[node])]
        count = len(self._on[nodes[0]])
        if len(nodes) == 1:
            lie = Lie.PART_OF_NODE if not wholes else Lie.WHOLE_NODE
            lie = Lie.ONLY_RANK if count == 1 else lie
            return Spot(lie=lie, nodes=nodes, ranks_there=count)
        if len(wholes) == len(nodes) and count > 1 and len(nodes) * _PAIR <= len(self._on):
            return Spot(lie=Lie.WHOLE_NODES, nodes=nodes, ranks_there=count)
        places = {tuple(self._on[node].index(rank) for rank in there[node]) for node in nodes}
        if not wholes and len(places) == 1:
            return Spot(lie=Lie.SAME_PLACE, nodes=nodes, ranks_there=count)
        return Spot(lie=Lie.SCATTERED, nodes=nodes, ranks_there=count)
