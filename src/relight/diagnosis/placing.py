"""Where a finding points: its nodes, confined to the job's own allocation (law 10)."""

from __future__ import annotations

from collections.abc import Iterable

from relight.model.findings import Finding, Provenance
from relight.model.jobs import Allocation


def own_nodes(finding: Finding, allocation: Allocation) -> tuple[str, ...]:
    """Return the allocation's nodes that a finding points at: by name, else by rank.

    A host that is not in the allocation is not returned: a job's log can only incriminate
    nodes of its own.
    """
    named = [allocation.member(host) for host in finding.nodes]
    found = [node for node in named if node is not None]
    if not finding.nodes:
        ranked = (allocation.node_of_rank(rank) for rank in finding.ranks)
        found = [node for node in ranked if node is not None]
    return tuple(dict.fromkeys(found))


def is_about_another(finding: Finding, allocation: Allocation) -> bool:
    """Tell whether a job's log line names nodes, and none of them is the job's own."""
    return (
        finding.provenance is Provenance.JOB_LOG
        and bool(finding.nodes)
        and bool(allocation.nodes)
        and not finding.ranks
        and not any(allocation.member(host) for host in finding.nodes)
    )


def nodes_of_ranks(ranks: Iterable[int], allocation: Allocation) -> tuple[str, ...]:
    """Return the nodes of global ranks, each once, those that cannot be placed left out."""
    placed = (allocation.node_of_rank(rank) for rank in ranks)
    return tuple(dict.fromkeys(node for node in placed if node is not None))
