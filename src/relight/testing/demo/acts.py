"""One act: a fresh job, a fresh relight in its mode, and the check of what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from relight.daemon.clock import now
from relight.daemon.parts import ClusterParts, allowance_of
from relight.daemon.services import Service
from relight.model.advice import Decision, Disposition, Mode
from relight.model.incidents import Phase
from relight.model.instants import seconds
from relight.model.jobs import ENDED, JobState
from relight.policy.policies import OptIn, Policy, PolicyBook
from relight.store.stores import Store
from relight.testing.demo.faults import Expected
from relight.testing.demo.stages import Stage
from relight.testing.demo.watching import Act, Snapshot, Watcher

_NO_RESTART = frozenset({Decision.STOP, Decision.NONE})


def play(stage: Stage, act: Act, folder: Path, show: Callable[[Snapshot], None]) -> Snapshot:
    """Play an act to its end or its time limit, showing each look, and return the last one."""
    name = f"training-{act.number}"
    parts = _parts(stage, act.mode, name, act)
    state = folder / f"state-{act.number}"
    state.mkdir()
    with (
        Store.open(f"sqlite:///{state}/relight.db") as store,
        Service([parts], store, state, now),
    ):
        posted = stage.submit(name, act.fault, act.pace)
        watcher = Watcher(act, posted, stage, store)
        last = watcher.look()
        for last in _looks(watcher, act, stage.look_seconds):
            show(last)
    if last.fact is not None and last.fact.state not in ENDED:
        stage.hands().cancel(posted.job_id)  # the demo's own tidying, after relight has ended
    return last


def problems(last: Snapshot) -> tuple[str, ...]:
    """Return what did not come out as it must have, a sentence each."""
    if last.fact is None or last.case is None:
        return ("The scheduler or relight never saw the job.",)
    if last.act.mode is Mode.MONITOR:
        return tuple(_changes(last))
    return tuple(_failures(last))


def _looks(watcher: Watcher, act: Act, pause: float) -> Iterator[Snapshot]:
    limit = time.monotonic() + act.pace.limit
    over_at: float | None = None
    while time.monotonic() < limit:
        last = watcher.look()
        yield last
        if not is_over(last):
            over_at = None
        elif over_at is None:
            over_at = time.monotonic()
        elif time.monotonic() - over_at >= act.pace.linger:
            return
        time.sleep(pause)


def is_over(last: Snapshot) -> bool:
    """Tell whether relight will do no more in this act."""
    fact, case = last.fact, last.case
    attempt = case.attempt(fact.restart_count) if fact is not None and case is not None else None
    if fact is None or case is None or attempt is None:
        return False
    if fact.state is JobState.COMPLETED:
        stories = [one.incident for one in case.attempts if one.incident is not None]
        return attempt.logs_read and all(one.phase is Phase.CLOSED for one in stories)
    advice = attempt.advice
    if advice is None:
        return False
    if last.act.mode is Mode.MONITOR:
        return True
    is_given_up = advice.status.disposition is Disposition.ABANDONED
    return fact.state in ENDED and (advice.decision in _NO_RESTART or is_given_up)


def _changes(last: Snapshot) -> Iterator[str]:
    fact, troubled = last.fact, last.troubled
    if fact is not None and fact.restart_count:
        yield f"The job was restarted {fact.restart_count} times in monitor mode."
    if last.case is not None and any(one.orders for one in last.case.attempts):
        yield "An order was given in monitor mode."
    is_advised = troubled is not None and troubled.advice is not None
    if not is_advised and last.act.fault.expected is not Expected.LEFT_ALONE:
        yield f"relight advised nothing within {last.act.pace.limit:g} s."


def _failures(last: Snapshot) -> Iterator[str]:
    if last.incident is None:
        yield "relight did not see the failure."
        return
    match last.act.fault.expected:
        case Expected.RECOVERED:
            yield from _not_recovered(last)
        case Expected.STOPPED:
            yield from _not_stopped(last)
        case Expected.LEFT_ALONE:
            yield from _not_left_alone(last)


def _not_recovered(last: Snapshot) -> Iterator[str]:
    incident = last.incident
    if incident is None or incident.times.first_step is None or incident.false_recovery:
        yield "The job did not complete a new step after its restart."
    yield from _not_completed(last)
    nodes = last.fact.nodes if last.fact is not None else ()
    caught = [node for node in last.act.fault.excluded if node in nodes]
    if caught:
        yield f"The job ran on {', '.join(caught)} again."


def _not_stopped(last: Snapshot) -> Iterator[str]:
    advice = last.troubled.advice if last.troubled is not None else None
    if advice is None or advice.decision is not Decision.STOP:
        yield "relight did not say that the job should stop."
    if last.fact is not None and last.fact.restart_count:
        yield "The job was restarted, although it could only fail again."


def _not_left_alone(last: Snapshot) -> Iterator[str]:
    is_touched = last.troubled is not None and last.troubled.orders
    if is_touched or (last.fact is not None and last.fact.restart_count):
        yield "relight touched a job that was recovering in place."
    yield from _not_completed(last)


def _not_completed(last: Snapshot) -> Iterator[str]:
    if last.fact is not None and last.fact.state is not JobState.COMPLETED:
        yield f"The job is {last.fact.state}, not completed."


def _parts(stage: Stage, mode: Mode, job_name: str, act: Act) -> ClusterParts:
    policy = Policy(name="demo", mode=mode, settle=act.fault.settle)
    opt_in = OptIn(cluster=stage.cluster, policy=policy.name, name=job_name)
    book = PolicyBook(policies=(policy,), opt_ins=(opt_in,))
    return ClusterParts(
        name=stage.cluster,
        eyes=stage.eyes(),
        hands=None if mode is Mode.MONITOR else stage.hands(),
        book=book,
        allowance=allowance_of(book),
        poll=seconds(stage.look_seconds),
    )
