"""The dumps of a flight recorder beside the logs of one job, or alone."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from relight.engine.offline import examine
from relight.model.findings import Finding
from relight.model.instants import Instant
from relight.model.jobs import Allocation, AttemptKey, JobKey
from relight.model.records import Record
from relight.model.reports import FileReport, Report, RootLine, Run
from relight.perception.flights.judging import judge
from relight.sources.flight_dumps import nodes_by_rank, world_of
from relight.sources.flight_files import Gathered

_NOBODY = AttemptKey(job=JobKey(cluster="diagnose", scheduler_id="logs"), attempt=0)
_MOST_LINES = 16
_NOTHING = "The flight recorder's dumps show no collective that did not end."


class Recorder(Record, frozen=True, kw_only=True):
    """What was gathered at ``path``, as it was named; ``now`` is when."""

    path: str
    gathered: Gathered
    now: Instant

    @property
    def troubles(self) -> tuple[tuple[str, str], ...]:
        """Return what could not be read, and why, as the rest of a sentence."""
        unsafe = [one for one in self.gathered.refused if not one.is_cut]
        told = [self.gathered.unseen] if self.gathered.unseen and not unsafe else []
        return (
            *((one.file, one.why) for one in unsafe),
            *((self.path, why) for why in told or self.gathered.blind),
        )

    def findings(self, allocation: Allocation, files: Sequence[FileReport]) -> tuple[Finding, ...]:
        """Return what the dumps tell, with nodes as the allocation or else the logs tell them."""
        dumps = self.gathered.dumps
        node_of = nodes_by_rank(allocation, _hosts(files), world=world_of(dumps))
        return judge(dumps, node_of, _NOBODY, self.now)

    def examined(self, allocation: Allocation, files: Sequence[FileReport]) -> Report:
        """Return the report on logs and dumps together; ``files`` may be empty."""
        found = self.findings(allocation, files)
        beside = FileReport(
            file=self.path, findings=found, runs=(Run(number=0, first_line=0, last_line=0),)
        )
        report = examine([*files, beside] if found or not files else files, allocation)
        if not files and not found:
            return msgspec.structs.replace(
                report, cause="", family="", sentence=_NOTHING, attempts=1
            )
        return msgspec.structs.replace(report, root=report.root or self._root(report, found))

    def _root(self, report: Report, found: Sequence[Finding]) -> RootLine | None:
        """Return what was compared in the place of a line, where the dumps tell the cause."""
        root = next((one for one in found if one.rule == report.cause), None)
        if root is None or not root.evidence:
            return None
        first, *others = (one.text for one in root.evidence[:_MOST_LINES])
        return RootLine(
            file=self.path,
            line=0,
            text=first,
            after=tuple(others),
            at=root.at,
            rank=root.ranks[0] if len(root.ranks) == 1 else None,
            node=root.nodes[0] if len(root.nodes) == 1 else None,
        )


def _hosts(files: Sequence[FileReport]) -> dict[int, str]:
    """Return the host of each rank of which all logs that tell one agree."""
    told: dict[int, set[str]] = {}
    for file in files:
        for rank, host in file.hosts.items():
            told.setdefault(rank, set()).add(host)
    return {rank: min(hosts) for rank, hosts in told.items() if len(hosts) == 1}
