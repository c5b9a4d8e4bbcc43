"""From the words of a command line to the diagnosis of every job whose logs they name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from relight.engine.offline import examine
from relight.model.advice import Decision
from relight.model.findings import Domain
from relight.model.jobs import Allocation
from relight.model.records import Record
from relight.model.reports import FileReport, Happened, Report
from relight.perception.ears import Ears
from relight.sources.archives.contexts import with_lines_after
from relight.sources.archives.finding import find
from relight.sources.archives.jobs import LogsOfJob, by_job, shown
from relight.sources.archives.opening import is_handed_over
from relight.sources.archives.reading import Listener, Seen, read_logs, stored_size

if TYPE_CHECKING:  # loaded only where dumps are named
    from relight.sources.archives.recorded import Recorder


class Trouble(Record, frozen=True, kw_only=True):
    """What could not be read, and why, as the rest of a sentence."""

    file: str
    why: str


class Diagnosed(Record, frozen=True, kw_only=True):
    """The report on one job, and what it rests on.

    ``job`` is the id that the names of its logs tell, or empty. ``size`` counts bytes after
    decompression. ``left_out`` are logs of earlier attempts of a launcher, which were not
    read. Without a readable log the report says that nothing is known.
    """

    job: str
    report: Report
    files: int = 0
    size: int = 0
    lines: int = 0
    left_out: int = 0
    troubles: tuple[Trouble, ...] = ()


class Diagnoses(Record, frozen=True, kw_only=True):
    """What came of one call: a report for each job, and what could not be read at all.

    There is always one: of nothing it says that nothing is known. ``is_misnamed`` tells that
    directories and globs were named in which there is no log, and nothing else.
    ``passed_over`` counts files of directories that were taken for no logs.
    """

    jobs: tuple[Diagnosed, ...]
    troubles: tuple[Trouble, ...] = ()
    is_misnamed: bool = False
    passed_over: int = 0

    @property
    def is_partial(self) -> bool:
        """Return whether anything could not be read."""
        return bool(self.troubles) or any(one.troubles for one in self.jobs)


class Announced(Record, frozen=True, kw_only=True):
    """What is about to be read: its bytes as they are stored, and whether more may come."""

    size: int
    is_open: bool


def diagnose_logs(
    words: Sequence[str],
    allocation: Allocation,
    prepare: Callable[[Announced], tuple[Listener, Ears]],
    seen: Seen,
    recorder: Recorder | None = None,
) -> Diagnoses:
    """Return the diagnosis of all logs that ``words`` name.

    ``recorder`` holds the dumps of the job's flight recorder; without ``words`` they are judged
    alone, and beside the logs of several jobs they are not used. ``prepare`` is asked for a
    listener and its ears when it is known how much there is to read, and not at all when there
    is nothing.
    """
    found = find(words)
    logs = by_job(found.paths, allocation)
    if recorder is not None and not words:
        return _of_dumps(recorder, allocation)
    wanted = [one for job in logs for one in job.files]
    size = sum(stored_size(one.path) for one in wanted)
    is_open = any(is_handed_over(one.path) for one in wanted)
    reports = []
    if wanted:
        listener, ears = prepare(Announced(size=size, is_open=is_open))
        reports = read_logs(wanted, listener, ears, seen)
    jobs = []
    for job in logs:
        used = recorder if len(logs) == 1 else None
        jobs.append(_diagnosed(job, reports[: len(job.files)], allocation, used))
        reports = reports[len(job.files) :]
    return Diagnoses(
        jobs=tuple(jobs) or (Diagnosed(job="", report=_NOTHING_READ),),
        troubles=tuple(
            Trouble(file=shown(word), why=why)
            for word, why in (*found.refused, *found.fruitless, *_troubles(recorder, len(logs)))
        ),
        is_misnamed=not (found.paths or found.refused),
        passed_over=found.passed_over,
    )


def _troubles(recorder: Recorder | None, jobs: int) -> tuple[tuple[str, str], ...]:
    if recorder is None:
        return ()
    if jobs > 1:
        return ((recorder.path, "it was not used: the logs are of several jobs"),)
    return recorder.troubles


def _of_dumps(recorder: Recorder, allocation: Allocation) -> Diagnoses:
    gathered = recorder.gathered
    report = recorder.examined(allocation, ()).report if gathered.dumps else _NOTHING_READ
    one = Diagnosed(job="", report=report, files=len(gathered.dumps), size=gathered.size)
    troubles = tuple(Trouble(file=shown(file), why=why) for file, why in recorder.troubles)
    return Diagnoses(jobs=(one,), troubles=troubles)


def _diagnosed(
    logs: LogsOfJob,
    reports: list[FileReport],
    allocation: Allocation,
    recorder: Recorder | None,
) -> Diagnosed:
    readable = [one for one in reports if one.size and not one.is_binary]
    troubles = [Trouble(file=one.file, why=one.trouble) for one in reports if one.trouble]
    dumps = 0
    if not readable:
        troubles += [
            Trouble(file=one.file, why="it is empty") for one in reports if not one.trouble
        ]
        report = _NOTHING_READ
    else:
        if recorder is None:
            told = examine(readable, allocation)
        else:
            examined = recorder.examined(allocation, readable)
            told, dumps = examined.report, examined.dumps
            path = shown(recorder.path)
            troubles += [Trouble(file=path, why=why) for why in examined.left_out]
        report = with_lines_after(told, readable, logs.files)
        attempts = max(report.attempts, logs.attempts)
        report = msgspec.structs.replace(report, attempts=attempts)
    return Diagnosed(
        job=logs.job,
        report=report,
        files=len(readable) + dumps,
        size=sum(one.size for one in readable),
        lines=sum(one.lines for one in readable),
        left_out=logs.left_out,
        troubles=tuple(troubles),
    )


_NOTHING_READ = Report(
    kind=Happened.NONE,
    ending=None,
    domain=Domain.UNKNOWN,
    cause="",
    family="",
    decision=Decision.NONE,
    confidence=0.0,
    sentence="Nothing could be read, so nothing is known.",
    why="What was not read tells neither of a failure nor of its absence.",
    attempts=0,
)
