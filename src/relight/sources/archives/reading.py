"""Reads logs into what diagnosis needs of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from relight.model.instants import Instant
from relight.model.jobs import AttemptKey, JobKey
from relight.model.reports import FileReport
from relight.perception.ears import Ears, Lexicon
from relight.perception.matching import LateMatcher
from relight.perception.reporting import report_of
from relight.sources.archives.jobs import Wanted
from relight.sources.archives.opening import RefusedError, is_handed_over, open_source
from relight.sources.archives.rulebooks import rules_of
from relight.sources.shelves import FileShelf

MOST_KEPT = 96 * 1024 * 1024
"""Bytes that the reports of all files may take together, as they are sent."""


MUCH = 96 * 1024 * 1024
"""Bytes from which several processes are worth their start, a third of a second each."""
MOST_PROCESSES = 16
"""Reading is then faster than any file system that a login node has."""

_LEAST_KEPT = 16 * 1024
_FEWEST_LINES = 10

Seen = Callable[[int], None]
"""Is called with the number of bytes that were read, as they are stored."""


@dataclass(frozen=True, slots=True)
class Listener:
    """All that is needed to hear a log: rules, where compiled ones are kept, and the hour."""

    directories: tuple[Path, ...]
    shelf: Path | None
    now: Instant

    def ears(self) -> Ears:
        """Return ears that are ready to listen.

        Raises:
            RuleError: the rules of a directory cannot be used.

        """
        shelf = FileShelf(self.shelf) if self.shelf is not None else None
        lexicon = Lexicon(rules_of(self.directories, shelf))
        if shelf is not None and isinstance(lexicon.matcher, LateMatcher):
            lexicon.matcher.use_shelf(shelf)
        return Ears(lexicon, _NOBODY)


_NOBODY = AttemptKey(job=JobKey(cluster="file", scheduler_id="0"), attempt=0)


def read_log(wanted: Wanted, ears: Ears, now: Instant, seen: Seen, most: int) -> FileReport:
    """Return what one file tells; what could not be read of it is its ``trouble``.

    ``most`` is how many bytes of report may be kept.
    """
    log = wanted.log
    try:
        source = open_source(wanted.path, seen)
    except RefusedError as error:
        return FileReport(file=log.file, rank=log.rank, node=log.node, trouble=str(error))
    try:
        report = report_of(log, source.pieces(), ears, now)
    finally:
        source.close()
    if source.is_binary:
        return FileReport(file=log.file, trouble=source.trouble, is_binary=True)
    if source.trouble:
        report = msgspec.structs.replace(report, trouble=source.trouble)
    return bounded(report, most)


def read_logs(
    files: Sequence[Wanted], listener: Listener, ears: Ears, seen: Seen
) -> list[FileReport]:
    """Return the reports of ``files`` in their order; of much, several are read at once.

    ``ears`` are the listener's own, for what is read in this process. Memory is bounded by a
    constant for each process and another for all reports.
    """
    apart = [place for place, one in enumerate(files) if not is_handed_over(one.path)]
    processes = _processes_for([stored_size(files[place].path) for place in apart])
    reports: dict[int, FileReport] = {}
    if processes > 1:
        from relight.sources.archives.crews import read_at_once  # noqa: PLC0415 - slow to import

        if isinstance(ears.lexicon.matcher, LateMatcher):
            ears.lexicon.matcher.stock()
        reports = read_at_once(files, apart, listener, seen, processes)
    most = most_kept(len(files))
    for place, wanted in enumerate(files):
        if place not in reports:
            reports[place] = read_log(wanted, ears, listener.now, seen, most)
    return [reports[place] for place in range(len(files))]


def stored_size(path: str) -> int:
    """Return how many bytes a file takes, 0 when that is not known."""
    try:
        return 0 if is_handed_over(path) else os.stat(path).st_size  # noqa: PTH116 - as it is named
    except (OSError, ValueError):
        return 0


def _processes_for(sizes: Sequence[int]) -> int:
    if sum(sizes) < MUCH:
        return 1
    return max(1, min(len(sizes), len(os.sched_getaffinity(0)), MOST_PROCESSES))


def most_kept(files: int) -> int:
    """Return how many bytes of report may be kept of each of so many files."""
    return max(_LEAST_KEPT, MOST_KEPT // max(1, files))


def bounded(report: FileReport, most: int) -> FileReport:
    """Return a report that takes at most about ``most`` bytes: fewer last lines, then findings.

    Of the findings, which are in the order of the file, the first half of what there is room
    for is kept, and the last.
    """
    while len(report.tail) > _FEWEST_LINES and _size(report) > most:
        report = msgspec.structs.replace(report, tail=report.tail[-(len(report.tail) // 2) :])
    while len(report.findings) > _FEWEST_LINES and _size(report) > most:
        keep = len(report.findings) // 4
        findings = report.findings[:keep] + report.findings[-keep:]
        report = msgspec.structs.replace(report, findings=findings)
    return report


def _size(report: FileReport) -> int:
    return len(msgspec.msgpack.encode(report))
