"""Perceives one whole file: what diagnosis needs of it, from a stream of its bytes."""

from __future__ import annotations

from collections.abc import Iterable

from relight.model.findings import Finding
from relight.model.instants import Instant
from relight.model.reports import FileReport, LogFile, Run, Shown
from relight.model.signals import Mark, Reading
from relight.perception.attempts import PerceptionState, conclude, perceive
from relight.perception.ears import Ears

MOST_FINDINGS = 2_000
"""Findings kept of one file. Rules thin floods of their own, so more is a flood of all."""


def report_of(named: LogFile, chunks: Iterable[bytes], ears: Ears, now: Instant) -> FileReport:
    """Return what a file tells, reading ``chunks`` of any size once and in order.

    ``now`` stands in where a line prints no time. Memory is bounded whatever the file's size.
    """
    file, rank, node = named.file, named.rank, named.node
    state = PerceptionState()
    findings: list[Finding] = []
    offset = 0
    for data in chunks:
        end = offset + len(data)
        reading = Reading(
            file=file, offset=offset, data=data, mark=Mark(offset=end), rank=rank, node=node
        )
        perceived = perceive(state, [reading], now, ears)
        state = perceived.state
        findings += perceived.findings[: MOST_FINDINGS - len(findings)]
        offset = end
    perceived = conclude(state, now, ears)
    findings += perceived.findings
    last = state.files[file].line if file in state.files else 0
    tail = state.tails.get(file, ())
    first = last - len(tail) + 1
    return FileReport(
        file=file,
        size=offset,
        lines=last,
        rank=rank,
        node=node,
        findings=tuple(findings),
        runs=(Run(number=0, first_line=1, last_line=last, progress=perceived.progress),),
        tail=tuple(Shown(file=file, line=first + n, text=text) for n, text in enumerate(tail)),
    )
