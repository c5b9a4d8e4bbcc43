"""One look at everything that the demo shows: the scheduler, the store and the job's own log."""

from __future__ import annotations

import re
from pathlib import Path

from relight.daemon.clock import now
from relight.daemon.following import Entries
from relight.engine.cases import AttemptCase, Case
from relight.model.advice import Mode
from relight.model.audit import AuditEntry
from relight.model.incidents import Incident
from relight.model.instants import Instant
from relight.model.jobs import JobFact, JobKey, JobState, NodeFact
from relight.model.records import Record
from relight.model.seen import Seen
from relight.store.stores import Store
from relight.testing.demo.faults import Fault, Pace
from relight.testing.demo.stages import Posted, Stage

_TAIL = 8_192
_STEP = re.compile(rb"iteration +(\d{1,9})/")


class Act(Record, frozen=True, kw_only=True):
    """One of the two acts: its number, and how far relight may go in it."""

    number: int
    mode: Mode
    fault: Fault
    pace: Pace


class Point(Record, frozen=True, kw_only=True):
    """How far the job was at one instant; ``step`` None before the first."""

    at: Instant
    step: int | None
    is_running: bool


class Snapshot(Record, frozen=True, kw_only=True):
    """Everything as it is at one instant. ``entries`` are those written since the last one."""

    act: Act
    began: Instant
    at: Instant
    nodes: tuple[NodeFact, ...] = ()
    fact: JobFact | None = None
    case: Case | None = None
    entries: tuple[AuditEntry, ...] = ()
    points: tuple[Point, ...] = ()

    @property
    def step(self) -> int | None:
        """Return the last step that the job's log tells of."""
        return self.points[-1].step if self.points else None

    @property
    def troubled(self) -> AttemptCase | None:
        """Return the last attempt in which something went wrong."""
        attempts = self.case.attempts if self.case is not None else ()
        return next((one for one in reversed(attempts) if one.incident is not None), None)

    @property
    def incident(self) -> Incident | None:
        """Return the incident of that attempt."""
        troubled = self.troubled
        return troubled.incident if troubled is not None else None

    @property
    def checkpoint(self) -> int | None:
        """Return the newest completed checkpoint that relight knows of."""
        attempts = self.case.attempts if self.case is not None else ()
        saved = [one.progress.best_checkpoint for one in attempts]
        return max((step for step in saved if step is not None), default=None)


class Watcher:
    """Looks again and again at one job of a stage. What cannot be seen stays as it was."""

    def __init__(self, act: Act, posted: Posted, stage: Stage, store: Store) -> None:
        self._eyes = stage.eyes()
        self._store = store
        self._job_id = posted.job_id
        self._log = Path(posted.log)
        self._key = JobKey(cluster=stage.cluster, scheduler_id=posted.job_id)
        self._entries = Entries(store, self._key)
        began = now()
        self._last = Snapshot(act=act, began=began, at=began)

    def look(self) -> Snapshot:
        """Return everything as it is now."""
        last, at = self._last, now()
        job, nodes = self._eyes.job(self._job_id), self._eyes.nodes()
        fact = job.value if isinstance(job, Seen) else last.fact
        is_running = fact is not None and fact.state in (JobState.RUNNING, JobState.COMPLETED)
        is_done = last.fact is not None and last.fact.state is JobState.COMPLETED
        point = Point(at=at, step=last_step(self._log), is_running=is_running)
        entries = tuple(self._entries.new())
        self._last = Snapshot(
            act=last.act,
            began=last.began,
            at=at,
            nodes=nodes.value if isinstance(nodes, Seen) else last.nodes,
            fact=fact,
            case=self._store.case(self._key),
            entries=entries,
            points=last.points if is_done else (*last.points, point),
        )
        return self._last


def last_step(log: Path) -> int | None:
    """Return the last step in a log's last lines, None when there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL))
            steps = _STEP.findall(file.read(_TAIL))
    except OSError:
        return None
    return int(steps[-1]) if steps else None
