"""What a node's new fact tells the jobs that run on it."""

from __future__ import annotations

import msgspec

from relight.engine.cases import AttemptCase, Case
from relight.model.instants import Instant, later, seconds
from relight.model.jobs import NodeFact, NodeState
from relight.model.stimuli import FindingMade, NodeSeen, Stimulus
from relight.perception.nodes import told_by_scheduler

SOURCE = "controller"
STILL_TOLD = seconds(300)
"""After an attempt's end a node's trouble may still explain it.

Meta's study of two research clusters (Kokolis and others, 2024) counts a node's trouble to a
job's end from ten minutes before it to five minutes after.
"""


def node_news(
    case: Case, before: NodeFact | None, now: NodeFact, seen_at: Instant
) -> tuple[Stimulus, ...]:
    """Return what ``now`` tells ``case`` that ``before`` did not; None is a node not yet seen.

    Of an attempt that has ended nothing is lost any more: that one of its nodes is down is told
    as what may explain the end, since Slurm finds it out minutes late (SlurmdTimeout).
    """
    if before == now or case.latest is None:
        return ()
    told: list[Stimulus] = []
    latest = case.latest
    if now.state is NodeState.DOWN and now.name in latest.allocation.nodes:
        told.append(NodeSeen(job=case.key, seen_at=seen_at, source=SOURCE, fact=now))
    for attempt in case.attempts:
        if now.name in attempt.allocation.nodes and _is_concerned(attempt, seen_at):
            told += _findings(case, attempt, before, now, seen_at)
    return tuple(told)


def _is_concerned(attempt: AttemptCase, seen_at: Instant) -> bool:
    if attempt.running_at is None:
        return False
    ended = attempt.ended_seen_at
    return ended is None or seen_at <= later(ended, STILL_TOLD)


def _findings(
    case: Case, attempt: AttemptCase, before: NodeFact | None, now: NodeFact, seen_at: Instant
) -> list[Stimulus]:
    key = case.key_of(attempt.number)
    found = told_by_scheduler(before, now, key, seen_at, attempt.running_at)
    if attempt.ended_seen_at is not None:
        found = tuple(msgspec.structs.replace(one, task_gone=False) for one in found)
    return [
        FindingMade(job=case.key, seen_at=seen_at, at=one.at, source=SOURCE, finding=one)
        for one in found
    ]
