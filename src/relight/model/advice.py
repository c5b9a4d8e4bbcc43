"""Advice: the durable decision about one attempt, and how far the world has followed it."""

from __future__ import annotations

from enum import StrEnum

from relight.model.instants import Instant, Span
from relight.model.jobs import AttemptKey
from relight.model.reasons import Reason
from relight.model.records import Record


class Decision(StrEnum):
    """What should happen next to the job."""

    RESTART = "restart"
    RESTART_EXCLUDING_NODE = "restart_excluding_node"
    STOP = "stop"
    HOLD = "hold"
    NONE = "none"


class Mode(StrEnum):
    """How far relight may go: say so, ask a person first, or act."""

    MONITOR = "monitor"
    APPROVE = "approve"
    ACT = "act"

    def goes_further_than(self, other: Mode) -> bool:
        """Tell whether this mode may do more than ``other``."""
        order = list(Mode)
        return order.index(self) > order.index(other)


class Action(StrEnum):
    """The kinds of action that a policy's ``may`` can allow."""

    REQUEUE = "requeue"
    EXCLUDE = "exclude"
    CANCEL = "cancel"
    SIGNAL = "signal"
    """Part of a planned restart: granted with ``requeue`` where a policy names a signal."""


class Approval(StrEnum):
    """Where a person's yes stands."""

    NOT_NEEDED = "not_needed"
    WAITING = "waiting"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"


class Permit(Record, frozen=True, kw_only=True):
    """Leave to act, granted by the core alone for one advice; the controller checks it again."""

    cluster: str
    partition: str
    policy: str
    actions: tuple[Action, ...]


class Disposition(StrEnum):
    """How far the world has followed an advice."""

    PENDING = "pending"
    CONVERGED = "converged"
    ABANDONED = "abandoned"


class StatusReason(StrEnum):
    """Why a disposition was reached; a closed list."""

    WAITING = "waiting"
    DESIRED_STATE_OBSERVED = "desired_state_observed"
    ALREADY_SATISFIED = "already_satisfied"
    ADVICE_EXPIRED = "advice_expired"
    SUPERSEDED = "superseded"
    JOB_GONE = "job_gone"
    CHANGED_BY_PERSON = "changed_by_person"
    SUCCESSOR_EXISTS = "successor_exists"
    NOT_PERMITTED = "not_permitted"
    NO_CAPACITY = "no_capacity"
    SCHEDULER_REFUSED = "scheduler_refused"
    AMBIGUOUS = "ambiguous"


DISPOSITION_MOVES: dict[Disposition, frozenset[Disposition]] = {
    Disposition.PENDING: frozenset({Disposition.CONVERGED, Disposition.ABANDONED}),
    Disposition.CONVERGED: frozenset(),
    Disposition.ABANDONED: frozenset(),
}
"""The only moves of a disposition: the ends are final."""


class ReconciliationStatus(Record, frozen=True, kw_only=True):
    """What the controller last said of an advice, for the generation that it saw."""

    disposition: Disposition = Disposition.PENDING
    reason: StatusReason = StatusReason.WAITING
    sentence: str = ""
    generation: int = 0
    at: Instant | None = None


class CostEstimate(Record, frozen=True, kw_only=True):
    """What the failure costs: steps since the last durable checkpoint, in GPU-hours where known."""

    steps_lost: int | None = None
    gpu_hours_lost: float | None = None


class Forewarning(Record, frozen=True, kw_only=True):
    """The signal that a living job gets before a planned restart, so that it can checkpoint.

    ``name`` is the signal, as ``USR1``; ``batch_only`` sends it to the batch script alone, as
    ``B:`` does in sbatch's ``--signal``. The restart waits ``wait`` after ``sent_at``, or until
    ``is_heeded``: a checkpoint newer than ``checkpoint``, the newest when it was advised, was
    completed since.
    """

    name: str
    wait: Span
    batch_only: bool = False
    checkpoint: int | None = None
    sent_at: Instant | None = None
    is_heeded: bool = False


class Advice(Record, frozen=True, kw_only=True):
    """The desired state of one job after one attempt; not an action.

    ``generation`` rises on each change, and status writes name the one they saw.
    ``exclusions`` are in order of suspicion; the first ``least_exclusions`` must go for the
    advice to make sense. ``earlier_exclusions`` are those that relight made for earlier
    attempts and that still hold, the oldest first; ``given_back`` are those of either that
    it made and now takes back. ``while_living`` says that the
    attempt had not ended when it was given, ``already_requeued`` that the scheduler has
    requeued the job itself. ``forewarning`` is what a living job is sent before. ``rests_on``
    names the verdict's revision and whom an outside service added, empty where not known.
    """

    attempt: AttemptKey
    generation: int
    decision: Decision
    mode: Mode
    reason: Reason
    made_at: Instant
    exclusions: tuple[str, ...] = ()
    least_exclusions: int = 0
    earlier_exclusions: tuple[str, ...] = ()
    given_back: tuple[str, ...] = ()
    not_before: Instant | None = None
    expires_at: Instant | None = None
    while_living: bool = False
    already_requeued: bool = False
    rests_on: str = ""
    permit: Permit | None = None
    approval: Approval = Approval.NOT_NEEDED
    policy: str = ""
    policy_revision: str = ""
    cost: CostEstimate | None = None
    forewarning: Forewarning | None = None
    status: ReconciliationStatus = ReconciliationStatus()

    @property
    def id(self) -> str:
        """Return what names this advice: its attempt, of which it is the only active one."""
        return str(self.attempt)

    @property
    def ours(self) -> tuple[str, ...]:
        """Return every exclusion of relight's own that the job would start with."""
        return (*self.exclusions, *self.earlier_exclusions)

    @property
    def is_active(self) -> bool:
        """Return whether the world may still follow it."""
        return self.status.disposition is Disposition.PENDING
