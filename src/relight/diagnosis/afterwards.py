"""What came before the trouble, after the end, or beside it: it is seen, and it broke nothing.

A witness looks at whole nodes, some minutes before and after. So it meets what goes on there
anyway: an exporter that stopped while steps went on, a node that is started anew once the job is
over, a process of somebody else that is killed for memory.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from relight.diagnosis.endings import Ending
from relight.diagnosis.placing import Places
from relight.diagnosis.stating import is_explanation
from relight.diagnosis.witnesses import GONE, is_line, nodes_of
from relight.model.findings import Domain, Finding, Kind, Provenance
from relight.model.instants import Instant, Span, between, later, seconds, show_span
from relight.model.jobs import JobState

_REBOOTED = "node-rebooted-by-metrics"
_KILLED_FOR_MEMORY = "host_oom_kill"
_KILLED = frozenset(
    {
        _KILLED_FOR_MEMORY,
        "process_killed_sigkill",
        "dataloader_worker_killed",
        "worker_process_lost",
    }
)
"""Families of lines that tell of a process which somebody killed."""
_OF_KERNELS = frozenset({"cuda_kernel_fault", "cuda_library_error"})
"""Families of lines that are the program's side of an Xid."""
_PEOPLE = frozenset({Domain.APPLICATION, Domain.USER})
_STILL_SEEN = seconds(60)
"""How long before the trouble a dead node may have been seen last: two scrapes of 30 s, which is
dcgm-exporter's own default."""
_CLOCKS_APART = seconds(30)
"""By how much a node's clock may run ahead of the scheduler's."""
_SEVERAL = 2


def dated(findings: Sequence[Finding], ending: Ending) -> list[Finding]:
    """Return findings in which no line without a time comes after the end of its own job.

    Such lines bear the end, or when they were read if that was before; only in files of which no
    line prints a time, since one between two times lies where it stands.
    """
    ended = ending.at
    if ended is None:
        return list(findings)
    timed = {one.place.file for one in findings if one.place is not None and one.at is not None}
    return [
        msgspec.structs.replace(one, at=min(ended, one.seen_at))
        if is_line(one) and one.at is None and one.place is not None and one.place.file not in timed
        else one
        for one in findings
    ]


def outlived(
    one: Finding, findings: Sequence[Finding], began: Instant | None, ending: Ending
) -> str:
    """Return why metrics that stopped before the trouble say nothing of it, empty if they may.

    Steps that were completed since prove the node alive. Where the log only tells that ranks
    waited and not since when, or the scheduler that a node failed, it may lie far back.
    """
    if one.rule != GONE or one.at is None or began is None or ending.state is JobState.NODE_FAIL:
        return ""
    waits = any(is_line(line) and line.kind is Kind.HANG for line in findings)
    if one.at >= later(began, Span(-_STILL_SEEN)) or (waits and began == ending.at):
        return ""
    return f"its metrics stopped {show_span(between(one.at, began))} before the trouble"


def came_later(one: Finding, ended: Instant | None) -> str:
    """Return why a new start of a node, or a process killed there, came too late for the end.

    Both bear the time of the last scrape before, so a node that was scraped after the end was up.
    A kill counts all the same where its line names the job's own control group.
    """
    if ended is None or one.at is None or one.at <= later(ended, _CLOCKS_APART):
        return ""
    if one.rule == _REBOOTED:
        return f"the node was still up {show_span(between(ended, one.at))} after the end"
    if _is_kill(one) and not _names_the_job(one):
        return f"it came {show_span(between(ended, one.at))} after the end, which it cannot explain"
    return ""


def stands_beside(one: Finding, findings: Sequence[Finding], places: Places, ending: Ending) -> str:
    """Return why a sign of the program's own fault is not the cause, empty where it may be.

    A mistake that ranks of other nodes print themselves needs no killed process and no Xid of
    programs to explain it, unless a line tells that a process was killed.
    """
    if ending.state is None or is_line(one) or one.domain is not Domain.APPLICATION:
        return ""
    lines = [line for line in findings if is_line(line)]
    if _is_kill(one):
        is_told = ending.state is JobState.OUT_OF_MEMORY or _names_the_job(one)
        if is_told or any(line.family in _KILLED for line in lines):
            return ""
    said = [line for line in lines if _is_own_mistake(line)]
    if not said:
        return ""
    nodes = set(nodes_of(said, places))
    ranks = {rank for line in said for rank in line.ranks}
    is_elsewhere = bool(nodes - set(places.of(one))) if nodes else len(ranks) >= _SEVERAL
    return "the ranks of other nodes tell of a mistake of their own" if is_elsewhere else ""


def _is_own_mistake(line: Finding) -> bool:
    is_program = line.domain in _PEOPLE and line.kind is Kind.CRASH and is_explanation(line)
    return is_program and line.family not in _KILLED | _OF_KERNELS


def _is_kill(one: Finding) -> bool:
    return one.family == _KILLED_FOR_MEMORY and one.provenance is not Provenance.JOB_LOG


def _names_the_job(one: Finding) -> bool:
    """Tell whether a kernel's line names the control group that Slurm gave this job."""
    group = re.compile(rf"\bjob_{re.escape(one.attempt.job.scheduler_id)}\b")
    return any(group.search(line.text) for line in one.evidence)
