"""The local cluster: a queue, pretend nodes, and one thread that moves everything on."""

from __future__ import annotations

import os
import pwd
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

import msgspec

from relight.clients.local.attempts import SIGNALS, Attempt, Exit
from relight.clients.local.jobs import LocalJob, SubmissionError, check
from relight.clients.local.placements import Start, place
from relight.clients.local.standings import (
    DONE_ALREADY,
    Refused,
    Standing,
    cancel,
    completing,
    ended,
    failing,
    requeue,
    started,
    submitted,
    update,
    waits,
)
from relight.model.instants import Instant, Span, later, seconds, to_iso
from relight.model.jobs import ENDED, JobFact, JobState, NodeFact, NodeState

REQUEUE_WAIT = seconds(121)
"""How long Slurm makes every requeued job wait, as measured on 22.05, 24.11 and 26.05."""

MOST_JOBS = 10_000
"""Jobs that are not over; one more is refused. Slurm's MaxJobCount by default."""

MOST_ENDED = 1_000
"""Ended jobs that are remembered; the oldest is forgotten first."""

_RUNNING_SECONDS = 0.005
_WAITING_SECONDS = 0.02
_UNKNOWN_JOB = Refused(text="Invalid job id specified")
_UNKNOWN_SIGNAL = Refused(text="Invalid signal specified")
_UNKNOWN_NODE = Refused(text="Invalid node name specified")


class LocalCluster:
    """Runs jobs as real processes on pretend nodes, one job a node.

    ``clock`` tells the time that jobs wait by and that facts carry; ``requeue_wait`` is how
    long a requeued job waits unless it is started. Every method may be called from any thread.
    Close it, or use it in a ``with``: its processes end with it. Should the scheduler itself
    be killed, tasks that write their own files go on, as they would under no scheduler.
    """

    def __init__(
        self,
        name: str,
        nodes: tuple[str, ...],
        clock: Callable[[], Instant],
        *,
        requeue_wait: Span = REQUEUE_WAIT,
        first_id: int = 1,
    ) -> None:
        self.name = name
        self.nodes = tuple(dict.fromkeys(nodes))
        self._clock = clock
        self._requeue_wait = requeue_wait
        self._next_id = first_id
        self._uid = os.getuid()
        self._user = _user_name(self._uid)
        self._jobs: dict[str, LocalJob] = {}
        self._standings: dict[str, Standing] = {}
        self._attempts: dict[str, Attempt] = {}
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name=f"relight-local-{name}", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def is_closed(self) -> bool:
        """Return whether it has been closed and answers nothing any more."""
        return self._closing

    def submit(self, job: LocalJob) -> str:
        """Queue a job and return its id.

        Raises:
            SubmissionError: it could never run here, too many jobs wait, or it is closed.

        """
        check(job, len(self.nodes))
        with self._changed:
            alive = sum(item.fact.state not in ENDED for item in self._standings.values())
            if self._closing or alive >= MOST_JOBS:
                why = "is closed" if self._closing else f"holds {MOST_JOBS} jobs already"
                raise SubmissionError(f'cluster "{self.name}" {why}: "{job.name}" was not taken')
            job_id = str(self._next_id)
            self._next_id += 1
            fact = JobFact(cluster=self.name, scheduler_id=job_id, user=self._user, uid=self._uid)
            self._jobs[job_id] = job
            self._standings[job_id] = submitted(fact, job, self._clock())
            self._forget()
            self._changed.notify_all()
            return job_id

    def facts(self) -> tuple[JobFact, ...]:
        """Return every job that is remembered, oldest first; what did not change is the same."""
        with self._changed:
            return tuple(standing.fact for standing in self._standings.values())

    def fact(self, job_id: str) -> JobFact | None:
        """Return one job, None when it is not known."""
        with self._changed:
            standing = self._standings.get(job_id)
            return None if standing is None else standing.fact

    def node_facts(self) -> tuple[NodeFact, ...]:
        """Return every node; they are always up, since they are this machine."""
        with self._changed:
            busy = self._busy()
        return tuple(
            NodeFact(
                cluster=self.name,
                name=node,
                state=NodeState.UP,
                scheduler_state="ALLOCATED" if node in busy else "IDLE",
                is_idle=node not in busy,
            )
            for node in self.nodes
        )

    def requeue(self, job_id: str, *, incomplete_only: bool) -> Refused | None:
        """Put a job back into the queue as its next attempt; return a refusal, if any."""
        with self._changed:
            now = self._clock()
            return self._change(
                job_id,
                lambda standing: requeue(
                    standing, incomplete_only=incomplete_only, at=now, wait=self._requeue_wait
                ),
                why=" DUE TO JOB REQUEUE",
            )

    def update(
        self, job_id: str, *, note: str, exclude: tuple[str, ...], delay: Span | None
    ) -> Refused | None:
        """Change a waiting job, all or nothing; return a refusal, if any."""
        if not set(exclude) <= set(self.nodes):
            return _UNKNOWN_NODE
        with self._changed:
            begin = later(self._clock(), Span(0) if delay is None else delay)
            return self._change(
                job_id, lambda standing: update(standing, note=note, exclude=exclude, begin=begin)
            )

    def cancel(self, job_id: str) -> Refused | None:
        """Cancel a job; return a refusal, if any."""
        with self._changed:
            now = self._clock()
            return self._change(job_id, lambda standing: cancel(standing, now))

    def signal(self, job_id: str, name: str) -> Refused | None:
        """Send a signal to every task of a running job; return a refusal, if any."""
        number = SIGNALS.get(name)
        if number is None:
            return _UNKNOWN_SIGNAL
        with self._changed:
            standing, attempt = self._standings.get(job_id), self._attempts.get(job_id)
            if standing is None:
                return _UNKNOWN_JOB
            if attempt is None or standing.fact.state is not JobState.RUNNING:
                return Refused(text=DONE_ALREADY)
            attempt.send(number)
            return None

    def close(self) -> None:
        """End every process that was started, within its grace, and the thread. Idempotent."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()

    def _change(
        self, job_id: str, move: Callable[[Standing], Standing | Refused], why: str = ""
    ) -> Refused | None:
        standing = self._standings.get(job_id)
        if standing is None:
            return _UNKNOWN_JOB
        moved = move(standing)
        if isinstance(moved, Refused):
            return moved
        attempt = self._attempts.get(job_id)
        if attempt is not None and moved.fact.state is JobState.COMPLETING:
            self._end_by_order(attempt, why)
        self._put(job_id, moved)
        self._changed.notify_all()
        return None

    def _end_by_order(self, attempt: Attempt, why: str) -> None:
        if not attempt.is_stopping:
            attempt.say_cancelled(to_iso(self._clock())[:19], why)
            attempt.stop()

    def _put(self, job_id: str, standing: Standing) -> None:
        old = self._standings[job_id]
        if standing.fact == old.fact:
            standing = msgspec.structs.replace(standing, fact=old.fact)
        self._standings[job_id] = standing

    def _busy(self) -> frozenset[str]:
        return frozenset(node for attempt in self._attempts.values() for node in attempt.nodes)

    def _run(self) -> None:
        with self._changed:
            while not self._closing:
                self._advance()
                self._changed.wait(self._pause())
            for attempt in self._attempts.values():
                self._end_by_order(attempt, "")
            while self._attempts:
                self._advance()
                self._changed.wait(_RUNNING_SECONDS)

    def _pause(self) -> float | None:
        if self._attempts:
            return _RUNNING_SECONDS
        waiting = any(item.fact.state is JobState.PENDING for item in self._standings.values())
        return _WAITING_SECONDS if waiting else None

    def _advance(self) -> None:
        for job_id, attempt in list(self._attempts.items()):
            self._follow(job_id, attempt)
        if not self._closing:
            self._start_waiting()

    def _follow(self, job_id: str, attempt: Attempt) -> None:
        for task in attempt.poll():
            self._take(job_id, attempt, task)
        if not attempt.is_over:
            return
        del self._attempts[job_id]
        standing = self._standings[job_id]
        if standing.fact.state is JobState.RUNNING:
            failed = standing.exit_status is not None
            standing = completing(standing, JobState.FAILED if failed else JobState.COMPLETED)
        if standing.follows is JobState.COMPLETED:
            standing = msgspec.structs.replace(standing, exit_status=0)
        self._put(job_id, ended(standing, self._clock()))

    def _take(self, job_id: str, attempt: Attempt, task: Exit) -> None:
        standing = self._standings[job_id]
        if task.status == 0 or standing.follows in (JobState.PENDING, JobState.CANCELLED):
            return
        attempt.say(f"srun: error: {task.node}: task {task.rank}: {task.words}")
        standing = failing(standing, task.status, task.signal)
        if attempt.job.kill_on_bad_exit and not attempt.is_stopping and not attempt.is_over:
            attempt.say(
                "srun: Job step aborted: Waiting up to "
                f"{attempt.job.kill_grace // seconds(1)} seconds for job step to finish."
            )
            self._end_by_order(attempt, "")
            standing = completing(standing, JobState.FAILED)
        self._put(job_id, standing)

    def _start_waiting(self) -> None:
        waiting = [
            standing.fact
            for standing in self._standings.values()
            if standing.fact.state is JobState.PENDING
        ]
        if not waiting:
            return
        now = self._clock()
        for decided in place(waiting, self.nodes, self._busy(), now):
            job_id = decided.scheduler_id
            standing = self._standings[job_id]
            if isinstance(decided, Start):
                fact = standing.fact
                attempt = Attempt(self._jobs[job_id], job_id, decided.nodes, fact.restart_count)
                self._attempts[job_id] = attempt
                attempt.start()
                self._put(job_id, started(standing, decided.nodes, now))
            else:
                self._put(job_id, waits(standing, decided.reason))

    def _forget(self) -> None:
        over = [job_id for job_id, item in self._standings.items() if item.fact.state in ENDED]
        for job_id in over[: max(len(over) - MOST_ENDED, 0)]:
            del self._standings[job_id], self._jobs[job_id]


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
