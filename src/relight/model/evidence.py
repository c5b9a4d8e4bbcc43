"""Evidence from outside the logs: what is asked for, and what came back."""

from __future__ import annotations

from enum import StrEnum

from relight.model.findings import Finding
from relight.model.instants import Instant
from relight.model.jobs import Allocation, AttemptKey
from relight.model.records import Record


class Witness(StrEnum):
    """Who can be asked beside the logs and the scheduler."""

    TELEMETRY = "telemetry"
    KERNEL_LOG = "kernel_log"
    FLIGHT_RECORDER = "flight_recorder"


class Window(Record, frozen=True, kw_only=True):
    """What a witness is asked about: one attempt, from ``since`` to ``until``.

    ``silent_since`` is when the last step was completed where the question is about a living
    attempt that stands still, else None. ``slow_since`` likewise, where it became slow.
    ``started_at`` is when the attempt began, None where that is not known: what is older was
    written by another. ``flight_recorder`` is the path that the policy or the job's comment
    names (the user's own claim, law 10), ``uid`` the owner's.
    """

    attempt: AttemptKey
    allocation: Allocation
    since: Instant
    until: Instant
    silent_since: Instant | None = None
    slow_since: Instant | None = None
    started_at: Instant | None = None
    gpus_per_node: int = 0
    """GPUs that the job has on each node, 0 where that is not known."""
    uid: int | None = None
    flight_recorder: str = ""


class Evidence(Record, frozen=True, kw_only=True):
    """What one witness told.

    ``unseen`` is a sentence when it could not tell anything; ``blind`` are sentences about what
    it cannot see. Neither is ever read as 'all is well' (law 1).
    """

    findings: tuple[Finding, ...] = ()
    unseen: str = ""
    blind: tuple[str, ...] = ()
