"""Stimuli: everything that the journal holds, and all that moves a decision.

Each names the job it is about, the source's own clock (``at``, None when unknown), relight's
clock (``seen_at``) and the source that spoke.
"""

from __future__ import annotations

from enum import StrEnum

from relight.model.advice import Decision, ReconciliationStatus
from relight.model.evidence import Witness
from relight.model.findings import Domain, Finding
from relight.model.instants import Instant
from relight.model.jobs import JobFact, JobKey, NodeFact
from relight.model.orders import OrderOutcome
from relight.model.progress import Progress
from relight.model.records import Record


class _Stimulus(Record, frozen=True, kw_only=True, tag=True, tag_field="type"):
    job: JobKey
    seen_at: Instant
    at: Instant | None = None
    source: str = ""


class AttemptSeen(_Stimulus, frozen=True, kw_only=True):
    """The scheduler said something new of the job: state, reason, allocation, restart count."""

    fact: JobFact


class JobGone(_Stimulus, frozen=True, kw_only=True):
    """The job was missing from a complete observation."""


class NodeSeen(_Stimulus, frozen=True, kw_only=True):
    """The scheduler said something new of a node in the job's living allocation."""

    fact: NodeFact


class CapacitySeen(_Stimulus, frozen=True, kw_only=True):
    """How many nodes could serve this job with the suspects left out; None where not known."""

    without: tuple[str, ...]
    fit_now: int | None
    fit_ever: int | None
    why: str = ""


class FindingMade(_Stimulus, frozen=True, kw_only=True):
    """A detector concluded something."""

    finding: Finding


class ProgressSeen(_Stimulus, frozen=True, kw_only=True):
    """How far an attempt has come, by its own log.

    Sent for the first step of an attempt, every completed checkpoint, the last step before
    an end, otherwise at most once a minute; while a finding waits to settle, at once and
    every few seconds, so that silence is known to have been listened to. ``final`` says that
    the ended attempt's files were read to their end. ``logs_unseen`` is a sentence when they
    could not be read.
    """

    attempt: int
    progress: Progress = Progress()
    final: bool = False
    logs_unseen: str = ""


class CheckpointSeen(_Stimulus, frozen=True, kw_only=True):
    """What lies at the job's checkpoint path."""

    attempt: int
    step: int | None
    complete: bool
    why: str = ""


class EvidenceSeen(_Stimulus, frozen=True, kw_only=True):
    """A witness has answered; what it found came before, as findings of its own.

    ``until`` is the end of the window that was looked at. ``unseen`` is a sentence when it could
    not tell anything, ``blind`` are sentences about what it cannot see.
    """

    attempt: int
    witness: Witness
    until: Instant
    found: int = 0
    unseen: str = ""
    blind: tuple[str, ...] = ()


class AttributionGiven(_Stimulus, frozen=True, kw_only=True):
    """An outside attribution service answered, or ``unseen`` says why it did not.

    ``provider`` is the name in the settings; ``nodes`` are as it wrote them, unverified.
    ``decision`` is None where it recommends nothing. ``phase`` is ``fast`` or ``slow``.
    """

    attempt: int
    domain: Domain
    nodes: tuple[str, ...] = ()
    sentence: str = ""
    provider: str = ""
    cause: str = ""
    decision: Decision | None = None
    confidence: float = 0.0
    phase: str = ""
    unseen: str = ""


class OrderDone(_Stimulus, frozen=True, kw_only=True):
    """The controller asked the scheduler for something and tells what became of it."""

    outcome: OrderOutcome


class StatusSeen(_Stimulus, frozen=True, kw_only=True):
    """The controller tells how far the world has followed an advice."""

    attempt: int
    status: ReconciliationStatus


class Word(StrEnum):
    """What a person can say about an advice."""

    APPROVE = "approve"
    REJECT = "reject"


class PersonSaid(_Stimulus, frozen=True, kw_only=True):
    """A person approved or rejected an advice, with a reason."""

    attempt: int
    generation: int
    word: Word
    who: str
    why: str = ""


class Tick(_Stimulus, frozen=True, kw_only=True):
    """An instant that the job was waiting for has come."""


Stimulus = (
    AttemptSeen
    | JobGone
    | NodeSeen
    | CapacitySeen
    | FindingMade
    | ProgressSeen
    | CheckpointSeen
    | EvidenceSeen
    | AttributionGiven
    | OrderDone
    | StatusSeen
    | PersonSaid
    | Tick
)
