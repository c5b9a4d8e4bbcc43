"""Which waiting jobs start now, on which nodes, and why the others wait. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from relight.model.instants import Instant
from relight.model.jobs import JobFact


@dataclass(frozen=True, slots=True)
class Start:
    """A job starts on these nodes."""

    scheduler_id: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """A job goes on waiting, with Slurm's word for the reason."""

    scheduler_id: str
    reason: str


def place(
    waiting: Iterable[JobFact], nodes: tuple[str, ...], busy: frozenset[str], now: Instant
) -> list[Start | Wait]:
    """Return what becomes of each waiting job, the oldest first.

    The first eligible job that does not fit lets no younger one pass, as Slurm's main
    scheduler does; a job that may not begin yet, or that no node could ever satisfy, blocks
    nobody. Nodes are given in their order, so the same question has the same answer.
    """
    free = [node for node in nodes if node not in busy]
    decided: list[Start | Wait] = []
    blocked = False
    for fact in waiting:
        usable = [node for node in free if node not in fact.excluded_nodes]
        possible = sum(node not in fact.excluded_nodes for node in nodes)
        if fact.eligible_at is not None and fact.eligible_at > now:
            decided.append(Wait(fact.scheduler_id, "BeginTime"))
        elif possible < fact.expected_nodes:
            decided.append(Wait(fact.scheduler_id, "BadConstraints"))
        elif blocked or len(usable) < fact.expected_nodes:
            decided.append(Wait(fact.scheduler_id, "Priority" if blocked else "Resources"))
            blocked = True
        else:
            chosen = tuple(usable[: fact.expected_nodes])
            free = [node for node in free if node not in chosen]
            decided.append(Start(fact.scheduler_id, chosen))
    return decided
