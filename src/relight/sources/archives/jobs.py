"""Which of the logs that were named belong together, and what each is called."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from relight.model.jobs import Allocation
from relight.model.records import Record
from relight.model.reports import LogFile
from relight.sources.archives.names import Named, named


class Wanted(Record, frozen=True, kw_only=True):
    """One file to read: where it lies, and what it is called and known to tell."""

    path: str
    log: LogFile


class LogsOfJob(Record, frozen=True, kw_only=True):
    """The logs of one job; ``job`` is the id that their names tell, or empty.

    ``attempts`` counts the attempts of a launcher that keeps each in a folder of its own; the
    files are then those of the last, and ``left_out`` counts those of the others.
    """

    job: str
    files: tuple[Wanted, ...]
    attempts: int = 1
    left_out: int = 0


def by_job(paths: Sequence[str], allocation: Allocation) -> list[LogsOfJob]:
    """Return the logs by the job that their names tell, in the order in which jobs appear.

    All files are one job's unless their names tell several: then each is diagnosed apart,
    each task of an array too, and files whose names tell none are together one more.
    """
    told = named(paths, allocation)
    if len({one.job for one in told if one.job}) <= 1:
        job = next((one.job for one in told if one.job), "")
        return [_of_job(job, list(zip(paths, told, strict=True)))] if paths else []
    groups: dict[str, list[tuple[str, Named]]] = defaultdict(list)
    for path, one in zip(paths, told, strict=True):
        groups[one.job].append((path, one))
    return [_of_job(job, group) for job, group in groups.items()]


def _of_job(job: str, files: list[tuple[str, Named]]) -> LogsOfJob:
    attempts = {one.attempt for _, one in files if one.attempt is not None}
    last = max(attempts, default=None)
    kept = [(path, one) for path, one in files if one.attempt in (None, last)]
    return LogsOfJob(
        job=job,
        files=tuple(
            Wanted(path=path, log=LogFile(file=shown(path), rank=one.rank, node=one.node))
            for path, one in kept
        ),
        attempts=1 if last is None else last + 1,
        left_out=len(files) - len(kept),
    )


def shown(path: str) -> str:
    """Return a path that can be written as UTF-8, other bytes escaped."""
    return path.encode(errors="backslashreplace").decode()
