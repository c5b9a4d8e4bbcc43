"""Where a finding points: its nodes, confined to the job's own allocation (law 10).

A rank is not a task and a task is not a node: one task a node may hold eight ranks
(torchrun), a step may be laid out otherwise than its job, and an elastic launcher numbers
ranks as workers arrive. So what the launchers themselves print is believed first, and
arithmetic only where nothing contradicts it. What cannot be placed points nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from relight.model.findings import Finding, Provenance
from relight.model.jobs import Allocation

TASK_RULES = ("slurm-task-exited", "slurm-task-died", "slurm-task-terminated")
"""Rules of srun's own lines, which name a node and the numbers of tasks on it."""
ELASTIC_RULE = "child-failed"
"""The rule of torchelastic's report, which names host and rank on lines of their own."""
_ELASTIC_LINES = 4
"""Lines within which one entry of that report tells its host and its rank."""


class Places:
    """Places the findings of one attempt on the nodes of its allocation."""

    def __init__(self, findings: Sequence[Finding], allocation: Allocation) -> None:
        self._allocation = allocation
        self._of_task = _printed_tasks(findings, allocation)
        self._of_rank = _printed_ranks(findings, allocation)
        self._arithmetic = all(
            allocation.node_of_task(task) in (None, node) for task, node in self._of_task.items()
        )

    def of(self, finding: Finding) -> tuple[str, ...]:
        """Return the nodes that a finding points at: by name, else by task, else by rank.

        A job of one node has no other.
        """
        if finding.nodes:
            named = [self._allocation.member(host) for host in finding.nodes]
            found = [node for node in named if node is not None]
        elif finding.tasks:
            found = [node for task in finding.tasks if (node := self._task(task)) is not None]
        elif len(self._allocation.nodes) == 1:
            found = list(self._allocation.nodes)
        else:
            found = [node for rank in finding.ranks if (node := self._rank(rank)) is not None]
        return tuple(dict.fromkeys(found))

    def is_foreign(self, finding: Finding) -> bool:
        """Tell whether a job's log line names nodes, and none of them is the job's own."""
        return (
            finding.provenance is Provenance.JOB_LOG
            and bool(finding.nodes)
            and bool(self._allocation.nodes)
            and not finding.ranks
            and not self.of(finding)
        )

    def _task(self, task: int) -> str | None:
        if task in self._of_task:
            return self._of_task[task]
        return self._allocation.node_of_task(task) if self._arithmetic else None

    def _rank(self, rank: int) -> str | None:
        if rank in self._of_rank:
            return self._of_rank[rank]
        return self._task(rank) if self._allocation.ranks_are_tasks else None


def _printed_tasks(findings: Sequence[Finding], allocation: Allocation) -> dict[int, str]:
    placed: dict[int, str] = {}
    for one in findings:
        nodes = [node for host in one.nodes if (node := allocation.member(host)) is not None]
        if one.rule in TASK_RULES and len(nodes) == 1:
            placed.update(dict.fromkeys(one.ranks, nodes[0]))
    return placed


def _printed_ranks(findings: Sequence[Finding], allocation: Allocation) -> dict[int, str]:
    """Return the ranks that torchelastic's report puts on a host of the allocation."""
    report = sorted(
        (one for one in findings if one.rule == ELASTIC_RULE and one.place is not None),
        key=lambda one: (one.place.file, one.place.line) if one.place else ("", 0),
    )
    placed: dict[int, str] = {}
    host: Finding | None = None
    for one in report:
        if one.nodes:
            host = one
        elif one.ranks and host is not None and _is_near(host, one):
            node = allocation.member(host.nodes[0])
            if node is not None:
                placed[one.ranks[0]] = node
    return placed


def _is_near(host: Finding, rank: Finding) -> bool:
    if host.place is None or rank.place is None or host.place.file != rank.place.file:
        return False
    return 0 <= rank.place.line - host.place.line <= _ELASTIC_LINES
