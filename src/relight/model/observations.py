"""Observations: what a controller tells the backend it has seen."""

from __future__ import annotations

from relight.model.instants import Instant
from relight.model.jobs import JobFact, NodeFact
from relight.model.records import Record


class Observation(Record, frozen=True, kw_only=True):
    """One look at a cluster.

    ``jobs`` and ``nodes`` are those that changed since the last accepted observation;
    ``present`` are the ids of all jobs that the scheduler still knows. A job missing from
    ``present`` of a ``complete`` observation is gone; from an incomplete one it is unseen.
    ``unseen`` says, a sentence each, what could not be asked.
    """

    cluster: str
    sequence: int
    at: Instant
    complete: bool
    jobs: tuple[JobFact, ...] = ()
    present: tuple[str, ...] = ()
    nodes: tuple[NodeFact, ...] = ()
    unseen: tuple[str, ...] = ()
