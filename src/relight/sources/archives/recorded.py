"""The dumps of a flight recorder beside the logs of one job, or alone.

Who names dumps and logs together says that they are of one run, so dumps count however old they
are: clocks differ, and most logs print no zone. Only a log that itself shows a later attempt, or
that the run finished, speaks against them, and then it is said that they were left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from relight.engine.offline import examine
from relight.model.advice import Decision
from relight.model.findings import Domain, End, Finding
from relight.model.instants import Instant
from relight.model.jobs import Allocation, AttemptKey, JobKey
from relight.model.records import Record
from relight.model.reports import FileReport, Report, RootLine, Run
from relight.perception.flights.dumps import Dump
from relight.perception.flights.judging import judge
from relight.perception.flights.mismatches import listed
from relight.perception.flights.telling import Told
from relight.sources.flight_dumps import nodes_by_rank, world_of
from relight.sources.flight_files import Gathered

_NOBODY = AttemptKey(job=JobKey(cluster="diagnose", scheduler_id="logs"), attempt=0)
_MOST_LINES = 16
_NS_IN_US = 1_000
_NOTHING = "The flight recorder's dumps show no collective that did not end."
_FINISHED = "its dumps were left out: the log says that the run finished"


class Examined(Record, frozen=True, kw_only=True):
    """A report on logs and dumps, and what of the dumps was left out, as the rest of a sentence."""

    report: Report
    left_out: tuple[str, ...] = ()
    dumps: int = 0


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

    def examined(self, allocation: Allocation, files: Sequence[FileReport]) -> Examined:
        """Return the report on logs and dumps together; ``files`` may be empty."""
        if not files:
            return Examined(report=self._alone(allocation), dumps=len(self.gathered.dumps))
        without = examine(files, allocation)
        if without.ending is End.FINISHED and self.gathered.dumps:
            return Examined(report=without, left_out=(_FINISHED,))
        begun = _begun(files)
        dumps = tuple(one for one in self.gathered.dumps if _is_of_last(one, begun))
        left_out = tuple(_left_out(self.gathered.dumps, dumps))
        found = self._findings(dumps, allocation, files)
        if not found:
            return Examined(report=without, left_out=left_out, dumps=len(dumps))
        # A log's clock is not the dumps': what did not end began when no step was told any more.
        last = max(_last_steps(files), default=None)
        placed = tuple(msgspec.structs.replace(one, at=last) for one in found)
        report = examine([*files, self._beside(placed)], allocation)
        root = report.root or self._root(report, found)
        return Examined(
            report=msgspec.structs.replace(report, root=root), left_out=left_out, dumps=len(dumps)
        )

    def _alone(self, allocation: Allocation) -> Report:
        """Return the report on the dumps alone; that of some nothing is known is no health."""
        dumps = self.gathered.dumps
        found = self._findings(dumps, allocation, ())
        report = examine([self._beside(found)], allocation)
        if found:
            root = report.root or self._root(report, found)
            return msgspec.structs.replace(report, root=root)
        told = msgspec.structs.replace(report, cause="", family="", sentence=_NOTHING, attempts=1)
        absent = Told({one.rank: one for one in dumps}, self.gathered.unread).absent(
            self._unknown()
        )
        if not absent:
            return told
        return msgspec.structs.replace(
            told,
            domain=Domain.UNKNOWN,
            decision=Decision.NONE,
            confidence=0.0,
            sentence=f"The dumps that were read show no collective that did not end, but {absent}.",
            why="What was not read tells neither of a failure nor of its absence.",
        )

    def _unknown(self) -> list[int]:
        """Return the ranks of which no dump was read, as far as groups and files tell of them."""
        dumps = self.gathered.dumps
        members = {rank for one in dumps for group in one.groups.values() for rank in group.ranks}
        return sorted((members | self.gathered.unread) - {one.rank for one in dumps})

    def _findings(
        self, dumps: Sequence[Dump], allocation: Allocation, files: Sequence[FileReport]
    ) -> tuple[Finding, ...]:
        """Return what the dumps tell, with nodes as the allocation or else the logs tell them."""
        node_of = nodes_by_rank(allocation, _hosts(files), world=world_of(dumps))
        return judge(dumps, node_of, _NOBODY, self.now, unread=self.gathered.unread)

    def _beside(self, found: tuple[Finding, ...]) -> FileReport:
        runs = (Run(number=0, first_line=0, last_line=0),)
        return FileReport(file=self.path, findings=found, runs=runs)

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


def _begun(files: Iterable[FileReport]) -> Instant | None:
    """Return when the last of several attempts in one log began, None where there is but one.

    That is when it made its first step; without one, when the attempt before it made its last.
    """
    begun = []
    for file in files:
        first_steps = [one.progress.first_step_at for one in file.runs[1:]]
        before = [one.progress.last_step_at for one in file.runs[:-1]]
        known = [at for at in (first_steps or [None])[-1:] if at is not None]
        begun += known or [at for at in before if at is not None][-1:]
    return max(begun, default=None)


def _is_of_last(dump: Dump, begun: Instant | None) -> bool:
    return begun is None or not dump.newest_ns or dump.newest_ns // _NS_IN_US >= begun


def _left_out(every: Sequence[Dump], kept: Sequence[Dump]) -> Iterator[str]:
    others = sorted({one.rank for one in every} - {one.rank for one in kept})
    if others:
        dumps = "dump" if len(others) == 1 else "dumps"
        yield (
            f"the {dumps} of {listed(others)} were left out: the log shows an attempt that began "
            "after their last call"
        )


def _last_steps(files: Iterable[FileReport]) -> Iterator[Instant]:
    for file in files:
        for run in file.runs:
            if run.progress.last_step_at is not None:
                yield run.progress.last_step_at


def _hosts(files: Sequence[FileReport]) -> dict[int, str]:
    """Return the host of each rank of which all logs that tell one agree."""
    told: dict[int, set[str]] = {}
    for file in files:
        for rank, host in file.hosts.items():
            told.setdefault(rank, set()).add(host)
    return {rank: min(hosts) for rank, hosts in told.items() if len(hosts) == 1}
