"""Which node a label's value names, and how the nodes of one attempt are asked for.

A value may be a node's own name, a short name, a full name with its domain, or any of them with a
port. An address names a node that is called by that address, and no other: addresses are looked
up nowhere.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from relight.model.jobs import Allocation

CHUNK = 100
"""Nodes asked for in one query: a matcher of 2,000 bytes, and a few thousand series."""

_PORT = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^:\[\]]+):\d{1,5}")
_ADDRESS = re.compile(r"[0-9.]+|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*")
_PLAIN = re.compile(r"[A-Za-z0-9._:-]{1,253}")


def host_of(value: str) -> str:
    """Return a label's value without its port and without the brackets of an IPv6 address."""
    match = _PORT.fullmatch(value)
    return (match["host"] if match else value).strip("[]")


class NodeNames:
    """The nodes of one attempt, found again in the values of labels."""

    def __init__(self, nodes: Iterable[str]) -> None:
        # A name that no scheduler gives could not be told from a piece of the query.
        self.nodes = tuple(node for node in nodes if _PLAIN.fullmatch(node))
        self._allocation = Allocation(nodes=self.nodes)
        self._known: dict[str, str | None] = {}

    def node_of(self, value: str) -> str | None:
        """Return the scheduler's name of the node that ``value`` names, None when it is none.

        A value that fits several nodes fits none, so that none is blamed for another.
        """
        host = host_of(value)
        if host not in self._known:
            self._known[host] = self._allocation.member(host)
        return self._known[host]

    def chunks(self, size: int = CHUNK) -> Iterator[tuple[str, ...]]:
        """Yield the nodes in pieces for one query each."""
        for start in range(0, len(self.nodes), size):
            yield self.nodes[start : start + size]

    def spread(self, size: int = CHUNK) -> tuple[str, ...]:
        """Return at most ``size`` nodes from the whole of the list, evenly spread."""
        stride = -(-len(self.nodes) // size) or 1
        return self.nodes[::stride]


def matcher(label: str, nodes: Sequence[str]) -> str:
    """Return the PromQL matcher for the values of ``label`` that may name one of ``nodes``.

    It lets through some more, such as the same short name in another domain; ``node_of`` decides.
    """
    names = dict.fromkeys(_pattern(node) for node in nodes)
    return f'{label}=~"{"|".join(names)}"'


@dataclass(frozen=True, slots=True)
class Settled:
    """Which node each value of a label names, and the nodes that several machines claim to be."""

    nodes: dict[str, str]
    disputed: frozenset[str] = frozenset()


def settle(values: Iterable[str], names: NodeNames) -> Settled:
    """Return the nodes that the values of one label name in the series of one metric.

    The same short name in two domains may be two machines, of two clusters say: then the one
    that bears the scheduler's own name in full is the node, else none is.
    """
    claims: dict[str, dict[str, str]] = defaultdict(dict)
    for value in values:
        node = names.node_of(value)
        if node is not None:
            claims[node][value] = host_of(value)
    found: dict[str, str] = {}
    disputed: set[str] = set()
    for node, hosts in claims.items():
        if len(set(hosts.values())) == 1:
            found |= dict.fromkeys(hosts, node)
        elif node in hosts.values():
            found |= {value: node for value, host in hosts.items() if host == node}
        else:
            disputed.add(node)
    return Settled(nodes=found, disputed=frozenset(disputed))


def _pattern(node: str) -> str:
    if _ADDRESS.fullmatch(node):
        return rf"\\[?{_quoted(node)}\\]?(:[0-9]+)?"
    return f"{_quoted(node.partition('.')[0])}([.:].*)?"


def _quoted(name: str) -> str:
    return name.replace(".", "[.]")
