"""Who waits for whom: the edges that dependency texts show, kept when the texts empty."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from relight.model.jobs import JobFact

_CONDITION = re.compile(r"(?P<kind>[a-z]+)(?P<ids>(?::\d+(?:_(?:\d+|\*))?(?:\+\d+)?)+)")
_ID = re.compile(r":(\d+(?:_(?:\d+|\*))?)")
_WAITS_FOR_ONE = frozenset(
    {"after", "afterany", "afterok", "afternotok", "aftercorr", "afterburstbuffer"}
)
_MOST_TEXT = 1 << 16


class Successors:
    """The chains of a cluster. Slurm empties a dependency once it is met; an edge is kept here.

    An edge lasts as long as the job that was waited for is known.
    """

    def __init__(self) -> None:
        self._edges: dict[str, dict[str, None]] = {}

    def learn(self, jobs: Iterable[JobFact]) -> None:
        """Add the edges among all ``jobs`` of one sweep, and forget jobs that are gone."""
        known = tuple(jobs)
        for job in known:
            for waited_for in waits_for(job.dependencies):
                self._edges.setdefault(waited_for, {})[job.scheduler_id] = None
        for earlier, later in _singletons(known):
            self._edges.setdefault(earlier, {})[later] = None
        present = {name for job in known for name in _names(job)}
        self._edges = {job: waiting for job, waiting in self._edges.items() if job in present}

    def of(self, job: JobFact) -> tuple[str, ...]:
        """Return the ids of the jobs that were seen to wait for ``job``, in the order seen."""
        if not self._edges:
            return ()
        found = {later: None for name in _names(job) for later in self._edges.get(name, ())}
        found.pop(job.scheduler_id, None)
        return tuple(found)


def waits_for(dependency: str) -> tuple[str, ...]:
    """Return the ids that a dependency text names: ``12``, ``8_1``, or ``8_*`` for an array."""
    if not dependency:
        return ()
    return tuple(
        found
        for condition in _CONDITION.finditer(dependency[:_MOST_TEXT])
        if condition["kind"] in _WAITS_FOR_ONE
        for found in _ID.findall(condition["ids"])
    )


def _names(job: JobFact) -> tuple[str, ...]:
    """Return every way in which a dependency text may name the job."""
    if job.array_job:
        return job.scheduler_id, job.array_job, f"{job.array_job}_*"
    return (job.scheduler_id, job.het_job) if job.het_job else (job.scheduler_id,)


def _singletons(jobs: tuple[JobFact, ...]) -> Iterator[tuple[str, str]]:
    """Yield (earlier, later) where the later one waits for every job of its user and name."""
    waiting = [job for job in jobs if "singleton" in job.dependencies]
    if not waiting:
        return
    named: dict[tuple[int | None, str], list[JobFact]] = {}
    for job in jobs:
        named.setdefault((job.uid, job.name), []).append(job)
    for later in waiting:
        for earlier in named[later.uid, later.name]:
            if _order(earlier) < _order(later):
                yield earlier.scheduler_id, later.scheduler_id


def _order(job: JobFact) -> tuple[int, int, str]:
    number = re.match(r"\d+", job.scheduler_id)
    return job.submitted_at or 0, int(number[0]) if number else 0, job.scheduler_id
