"""Perceives one whole file: what diagnosis needs of it, from a stream of its bytes."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from relight.model.findings import Finding
from relight.model.instants import Instant
from relight.model.reports import FileReport, LogFile, Shown
from relight.model.signals import Mark, Reading
from relight.perception.attempts import PerceptionState, conclude, perceive
from relight.perception.ears import Ears
from relight.perception.lines import FileState, readable
from relight.perception.progress.sampling import GRID, Grid
from relight.perception.times import printed_time

MOST_FINDINGS = 2_000
"""Findings kept of one file. Rules thin floods of their own, so more is a flood of all."""
_HEAD = 64 * 1024
"""Bytes at the begin of a file in which its first instant is looked for."""
_SHOWN = 400
"""Bytes of a line in which its instant is looked for."""


def report_of(
    named: LogFile,
    chunks: Iterable[bytes],
    ears: Ears,
    now: Instant,
    *,
    grid: Grid | None = GRID,
) -> FileReport:
    """Return what a file tells, reading ``chunks`` of any size once and in order.

    ``now`` is when a finding was read. Memory is bounded whatever the file's size.
    ``grid`` is explained at ``perceive``.
    """
    file, rank, node = named.file, named.rank, named.node
    state = PerceptionState(files={file: FileState(rank=rank, node=node)})
    findings: list[Finding] = []
    head = b""
    offset = 0
    for data in chunks:
        end = offset + len(data)
        head += data[: max(_HEAD - offset, 0)]
        reading = Reading(
            file=file, offset=offset, data=data, mark=Mark(offset=end), rank=rank, node=node
        )
        perceived = perceive(state, [reading], now, ears, grid=grid)
        state = perceived.state
        findings += perceived.findings[: MOST_FINDINGS - len(findings)]
        offset = end
    read = state.files[file]
    tail = state.tails.get(file, ())
    last = read.line if read.carry or read.overwritten else read.line - 1
    perceived = conclude(state, now, ears)
    findings += perceived.findings
    runs = perceived.state.files[file].runs.closed(last)
    return FileReport(
        file=file,
        size=offset,
        lines=last,
        rank=rank,
        node=node,
        findings=tuple(_within(one, runs[-1].number) for one in findings),
        runs=runs,
        tail=tuple(
            Shown(file=file, line=last - len(tail) + 1 + number, text=text)
            for number, text in enumerate(tail)
        ),
        first_at=_first_time(readable(line[:_SHOWN]) for line in head.split(b"\n")),
        last_at=_first_time(reversed(tail)),
        hosts=read.hosts.known if read.hosts.run >= runs[-1].number else {},
    )


def _within(finding: Finding, last_run: int) -> Finding:
    """Return a finding in the aftermath of the last run as one of this run."""
    if finding.run <= last_run:
        return finding
    return msgspec.structs.replace(finding, run=last_run)


def _first_time(lines: Iterable[str]) -> Instant | None:
    return next((at for line in lines if (at := printed_time(line)) is not None), None)
