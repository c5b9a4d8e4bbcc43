"""How far the same finding reaches: one node of several, everywhere, or from the start."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from relight.diagnosis.courses import Course
from relight.diagnosis.placing import Places
from relight.model.findings import Domain, Finding, Kind, Remedy, Role

_SEVERAL = 2
_PEOPLE = frozenset({Domain.USER, Domain.APPLICATION})
_NOT_OF_ONE_NODE = frozenset({*_PEOPLE, Domain.SYSTEM_SOFTWARE})
_HOPELESS = frozenset({Remedy.STOP, Remedy.CONFIRM_THEN_STOP})
"""Remedies of mistakes, which one node may be the first to meet: another's word is no proof."""


class Extent(StrEnum):
    """Where the same thing shows."""

    ONE_NODE = "one_node"
    EVERYWHERE = "everywhere"
    UNKNOWN = "unknown"


def extent_of(same: Sequence[Finding], findings: Sequence[Finding], places: Places) -> Extent:
    """Return how far ``same``, the findings of one rule, reach among all findings of a job.

    One node is one node only where others are seen not to have it. Half of a known
    allocation, two nodes of an unknown one, or most of the ranks that speak at all are
    everywhere.
    """
    nodes = {node for one in same for node in places.of(one)}
    if len(nodes) >= _SEVERAL:
        known = len(places.allocation.nodes)
        if not places.is_whole or len(nodes) * 2 >= known:
            return Extent.EVERYWHERE
    if len(nodes) == 1 and _others_are_well(same, nodes, findings, places):
        return Extent.ONE_NODE
    ranks = {rank for one in same for rank in places.ranks_of(one)}
    heard = {rank for one in findings for rank in places.ranks_of(one)}
    if len(ranks) >= _SEVERAL and len(ranks) * 2 > len(heard):
        return Extent.EVERYWHERE
    return Extent.UNKNOWN


def _others_are_well(
    same: Sequence[Finding], nodes: set[str], findings: Sequence[Finding], places: Places
) -> bool:
    """Tell whether other nodes are seen not to have what one node shows.

    The allocation is known, another node speaks, waits for this one, loses it, or is ended
    from outside. A mistake is met by whoever comes to it first, and then ends all others: so
    of one it is no proof that others speak. Where only the launcher's word on an exit places
    it, several ranks of the node must have met it while others lived.
    """
    is_hopeless = same[0].remedy in _HOPELESS
    is_placed_by_exit = not any(one.nodes for one in same)
    if is_hopeless and is_placed_by_exit and same[0].domain in _NOT_OF_ONE_NODE:
        ranks = {rank for one in same for rank in places.ranks_of(one)}
        return len(ranks) >= _SEVERAL and bool(places.stopped_nodes() - nodes)
    is_mistake = is_hopeless and same[0].domain in _PEOPLE
    if not is_mistake and (places.heard - nodes or places.is_whole):
        return not places.is_whole or len(places.allocation.nodes) >= _SEVERAL
    return bool(places.stopped_nodes() - nodes) or _is_missed(nodes, findings, places)


def _is_missed(nodes: set[str], findings: Sequence[Finding], places: Places) -> bool:
    """Tell whether another node waits for these nodes, or loses them."""
    return any(
        one.role is Role.SYMPTOM
        and one.kind is not Kind.ENDING
        and one.remedy is not Remedy.REPORT
        and not one.task_gone
        and bool(one.nodes)
        and not nodes.intersection(places.of(one))
        for one in findings
    )


def remedy_of(root: Finding, extent: Extent, course: Course) -> Remedy:
    """Return what helps against ``root`` where it shows."""
    reach = root.reach
    at_start = root.step in (None, 0) and not course.made_steps
    if extent is Extent.ONE_NODE and reach.one_node is not None:
        return reach.one_node
    if extent is Extent.EVERYWHERE and reach.everywhere is not None:
        return reach.everywhere
    if at_start and reach.at_start is not None:
        return reach.at_start
    return root.remedy


def domain_of(root: Finding, extent: Extent) -> Domain:
    """Return whose fault ``root`` is where it shows."""
    if extent is Extent.ONE_NODE:
        return root.reach.domain_on_one_node or root.domain
    if extent is Extent.EVERYWHERE:
        return root.reach.domain_everywhere or root.domain
    return root.domain
