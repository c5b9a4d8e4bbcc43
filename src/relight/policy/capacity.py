"""How many nodes could serve a job, counted from what the scheduler says of its nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from relight.model.jobs import JobFact, NodeFact, NodeState
from relight.model.records import Record


class Capacity(Record, frozen=True, kw_only=True):
    """``fit_now``: nodes that are free or the job's own; ``fit_ever``: nodes that are up."""

    fit_now: int
    fit_ever: int


def count_nodes(
    nodes: Iterable[NodeFact], job: JobFact, own: Collection[str], without: Collection[str]
) -> Capacity:
    """Count the nodes of the job's partition, those in ``without`` and the excluded left out.

    ``own`` are the nodes that the failed attempt held: they come free with it. Memory,
    features and GPUs of single nodes are not looked at: what remains too optimistic shows
    as a refusal of the scheduler, which gives the exclusion back.
    """
    usable = [
        node
        for node in nodes
        if node.state is NodeState.UP
        and node.name not in without
        and node.name not in job.excluded_nodes
        and (not job.partition or not node.partitions or job.partition in node.partitions)
    ]
    free = sum(1 for node in usable if node.is_idle or node.name in own)
    return Capacity(fit_now=free, fit_ever=len(usable))
