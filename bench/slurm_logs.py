"""What slurmctld's own log says of one job: its end, the requeue, the update, the next start."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from relight.model.instants import Instant, from_unix
from relight.model.records import Record

_LINE = re.compile(r"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})\] (.*)")
_EVENTS = (
    ("ended", re.compile(r"_job_complete: JobId=(\d+) (?:WEXITSTATUS|WTERMSIG)")),
    ("requeued", re.compile(r"(?:\w+: )?Requeuing JobId=(\d+)$")),
    ("updated", re.compile(r"_slurm_rpc_update_job: complete JobId=(\d+) ")),
    (
        "started",
        re.compile(r"(?:sched: Allocate|sched/backfill: _start_job: Started) JobId=(\d+) "),
    ),
)
"""Words of Slurm 22.05 to 26.05, at its default log level."""


class Restarted(Record, frozen=True, kw_only=True):
    """When slurmctld logged, in milliseconds, each turn of one restart; None where it did not."""

    ended: Instant | None = None
    requeued: Instant | None = None
    updated: Instant | None = None
    started: Instant | None = None


def restarted(log: str, job: str) -> Restarted:
    """Return the first restart of a job.

    A job that still ran when it was requeued ends by the requeue, so no end is logged.
    """
    ended = requeued = updated = None
    for name, at in _turns(log, job):
        match name:
            case "ended" if requeued is None:
                ended = at
            case "requeued" if requeued is None:
                requeued = at
            case "updated" if requeued is not None and updated is None:
                updated = at
            case "started" if requeued is not None:
                return Restarted(ended=ended, requeued=requeued, updated=updated, started=at)
            case _:
                pass
    return Restarted(ended=ended, requeued=requeued, updated=updated)


def _turns(log: str, job: str) -> Iterator[tuple[str, Instant]]:
    for text in log.splitlines():
        line = _LINE.match(text)
        if line is None:
            continue
        for name, expression in _EVENTS:
            found = expression.match(line[2])
            if found is not None and found[1] == job:
                local = datetime.fromisoformat(line[1]).astimezone()
                yield name, from_unix(local.timestamp())
