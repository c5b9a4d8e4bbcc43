"""Where a finding points: its nodes, confined to the job's own allocation (law 10).

A rank is not a task and a task is not a node: one task a node may hold eight ranks
(torchrun), a step may be laid out otherwise than its job, and an elastic launcher numbers
ranks as workers arrive. So what the launchers themselves print is believed first, and
arithmetic only where nothing contradicts it. What cannot be placed points nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from relight.diagnosis.deaths import Death, deaths_in, pids_in, root_text
from relight.model.findings import Finding, Provenance
from relight.model.jobs import Allocation
from relight.model.records import Record

_NO_NODE = frozenset({"localhost", "localhost.localdomain", "127.0.0.1"})
_PREFIX = 100
"""Characters in which a line's prefixes name its writer."""


class Hosts(Record, frozen=True, kw_only=True):
    """Hosts that are known beside what was found.

    ``heard`` are those that wrote anything at all, ``of_ranks`` tells where ranks said at their
    start that they run.
    """

    heard: frozenset[str] = frozenset()
    of_ranks: dict[int, str] = msgspec.field(default_factory=dict)


_NO_HOSTS = Hosts()


class Places:
    """Places the findings of one attempt on the nodes of its allocation.

    ``is_whole`` False says that the allocation is not known and holds only the nodes that
    the log prints: then a job with one of them may have others. ``aftermath`` are the ids of
    findings that came after the run was told to stop.
    """

    def __init__(
        self,
        findings: Sequence[Finding],
        allocation: Allocation,
        *,
        is_whole: bool = True,
        aftermath: frozenset[str] = frozenset(),
        hosts: Hosts = _NO_HOSTS,
    ) -> None:
        self.heard = hosts.heard
        self.allocation = allocation
        self.is_whole = is_whole
        told = deaths_in(findings)
        after = {
            (one.place.file, one.place.line)
            for one in findings
            if one.id in aftermath and one.place is not None
        }
        self.deaths = tuple(
            one for one in told if one.code is not None or (one.file, one.first_line) not in after
        )
        self._told_to_stop = [one for one in told if one.was_told_to_stop]
        self._death_at = {
            (one.file, line): one
            for one in told
            for line in range(one.first_line, one.last_line + 1)
        }
        self._members: dict[str, str | None] = {}
        self._of_task = self._printed_tasks()
        self._of_rank = {
            **{rank: node for rank, host in hosts.of_ranks.items() if (node := self.member(host))},
            **self._printed_ranks(findings),
        }
        self._arithmetic = all(
            allocation.node_of_task(task) in (None, node) for task, node in self._of_task.items()
        )

    def of(self, finding: Finding) -> tuple[str, ...]:
        """Return the nodes that a finding points at: by name, else by task, else by rank.

        A job of one node has no other.
        """
        death = self.death_told_by(finding)
        hosts = finding.nodes or (death.hosts if death else ())
        if hosts:
            named = [self.member(host) for host in hosts]
            found = [node for node in named if node is not None]
        elif self.is_whole and len(self.allocation.nodes) == 1:
            found = list(self.allocation.nodes)
        else:
            placed = [self._task(task) for task in finding.tasks]
            if not any(placed):
                placed = [self._rank(rank) for rank in self.ranks_of(finding)]
            found = [node for node in placed if node is not None]
        return tuple(dict.fromkeys(found))

    def ranks_of(self, finding: Finding) -> tuple[int, ...]:
        """Return the ranks that a finding tells of, by its line, its box or its process id."""
        death = self.death_told_by(finding)
        if finding.ranks and (death is None or not death.tasks):
            return finding.ranks
        if death is not None and death.rank is not None:
            return (death.rank,)
        pids = pids_in(finding)
        return tuple(one.rank for one in self.deaths if one.rank is not None and one.pid in pids)

    def stopped_nodes(self) -> frozenset[str]:
        """Return the nodes on which processes were ended from outside and none died by itself."""
        died = {host for one in self.deaths if not one.was_told_to_stop for host in one.hosts}
        hosts = {host for one in self._told_to_stop for host in one.hosts} - died
        return frozenset(node for host in hosts if (node := self.member(host)) is not None)

    def death_told_by(self, finding: Finding) -> Death | None:
        """Return the death that a finding's line is part of."""
        place = finding.place
        return self._death_at.get((place.file, place.line)) if place is not None else None

    def member(self, host: str) -> str | None:
        """Return the allocation's own name for ``host``, None when it is not one of its nodes."""
        if host not in self._members:
            self._members[host] = self.allocation.member(host)
        return self._members[host]

    def is_foreign(self, finding: Finding) -> bool:
        """Tell whether a finding names nodes, and none of them is the job's own.

        A line of the job's log that names a rank too is of this job, whatever it calls its host.
        """
        is_of_a_rank = finding.provenance is Provenance.JOB_LOG and bool(finding.ranks)
        has_nodes = bool(finding.nodes) and bool(self.allocation.nodes)
        return has_nodes and not is_of_a_rank and not self.of(finding)

    def _task(self, task: int) -> str | None:
        if task in self._of_task:
            return self._of_task[task]
        return self.allocation.node_of_task(task) if self._arithmetic else None

    def _rank(self, rank: int) -> str | None:
        if rank in self._of_rank:
            return self._of_rank[rank]
        return self._task(rank) if self.allocation.ranks_are_tasks else None

    def _printed_tasks(self) -> dict[int, str]:
        placed: dict[int, str] = {}
        for death in self.deaths:
            nodes = [node for host in death.hosts if (node := self.member(host)) is not None]
            if len(nodes) == 1:
                placed.update(dict.fromkeys(death.tasks, nodes[0]))
        return placed

    def _printed_ranks(self, findings: Sequence[Finding]) -> dict[int, str]:
        """Return the ranks that torchelastic's boxes, or prefixes of lines, put on a host."""
        pairs = [
            (one.nodes[0], one.ranks[0])
            for one in findings
            if len(one.nodes) == 1
            and len(one.ranks) == 1
            and _is_writer(one)
            and self.death_told_by(one) is None
        ]
        pairs += [
            (one.hosts[0], one.rank)
            for one in self.deaths
            if len(one.hosts) == 1 and one.rank is not None
        ]
        members = ((self.member(host), rank) for host, rank in pairs)
        return {rank: node for node, rank in members if node is not None}


def printed_allocation(findings: Sequence[Finding], started: Iterable[str] = ()) -> Allocation:
    """Return the nodes that a log prints, in order: all that is known where no one gave more."""
    hosts = [*started, *(host for one in findings for host in one.nodes)]
    hosts += [host for death in deaths_in(findings) for host in death.hosts]
    named = (host for host in hosts if host and host not in _NO_NODE)
    return Allocation(nodes=tuple(dict.fromkeys(named)))


def _is_writer(finding: Finding) -> bool:
    """Tell whether the node of a finding stands in front of its line, as the writer's does."""
    return not finding.peers and finding.nodes[0] in root_text(finding)[:_PREFIX]
