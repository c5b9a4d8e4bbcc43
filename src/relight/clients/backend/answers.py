"""What crosses HTTP between the backend and those who ask it, as JSON.

A reader ignores fields that it does not know, so fields may be added on either side first.
"""

from __future__ import annotations

import msgspec

from relight.engine.cases import Case
from relight.model.advice import Advice, Decision, Mode
from relight.model.audit import AuditEntry
from relight.model.findings import Domain
from relight.model.incidents import Phase
from relight.model.instants import Instant, to_iso
from relight.model.jobs import JobState
from relight.model.records import Record
from relight.model.stimuli import Word


class Problem(Record, frozen=True, kw_only=True):
    """Why a request failed: a stable code, what happened to what, and what to do next."""

    code: str
    sentence: str
    next_step: str = ""


class JobLine(Record, frozen=True, kw_only=True):
    """One job in a listing; ``says`` is relight's last sentence about it.

    ``step`` is the best completed step of the last attempt, ``phase`` and ``decision`` are
    those of its last incident and advice. ``planned`` is what will be advised unless something
    changes, as an advice of generation 0 that nobody follows, until its ``not_before`` or, without
    one, the next completed checkpoint.
    """

    key: str
    cluster: str
    scheduler_id: str
    reuse: int = 0
    user: str = ""
    name: str = ""
    partition: str = ""
    state: JobState = JobState.UNKNOWN
    attempt: int = 0
    nodes: tuple[str, ...] = ()
    step: int | None = None
    policy: str = ""
    opted_in: bool = False
    is_open: bool = False
    phase: Phase | None = None
    decision: Decision | None = None
    planned: Advice | None = None
    says: str = ""


class JobAnswer(Record, frozen=True, kw_only=True):
    """One job with its attempts, their incidents and their advice."""

    job: JobLine
    case: Case


class JobsAnswer(Record, frozen=True, kw_only=True):
    """A page of jobs; ``nextPageToken`` is empty on the last one."""

    jobs: tuple[JobLine, ...] = ()
    next_page_token: str = msgspec.field(name="nextPageToken", default="")


class IncidentLine(Record, frozen=True, kw_only=True):
    """One incident in a listing."""

    id: str
    job: str
    attempt: int
    phase: Phase
    opened_at: Instant
    domain: Domain = Domain.UNKNOWN
    cause: str = ""
    confidence: float = 0.0
    suspects: tuple[str, ...] = ()
    says: str = ""
    closed: str = ""
    false_recovery: bool = False


class IncidentsAnswer(Record, frozen=True, kw_only=True):
    """The incidents of a page of jobs; ``nextPageToken`` is empty on the last one."""

    incidents: tuple[IncidentLine, ...] = ()
    next_page_token: str = msgspec.field(name="nextPageToken", default="")


class AdviceAnswer(Record, frozen=True, kw_only=True):
    """Advice; ``tag`` names this state of the active ones, to wait for the next state."""

    advice: tuple[Advice, ...] = ()
    tag: str = ""
    next_page_token: str = msgspec.field(name="nextPageToken", default="")


class AdviceHistory(Record, frozen=True, kw_only=True):
    """The advice on one attempt as it is now, and every generation of it, oldest first."""

    advice: Advice
    generations: tuple[Advice, ...] = ()


class AuditAnswer(Record, frozen=True, kw_only=True):
    """A page of the audit; ``nextPageToken`` is empty on the last one."""

    events: tuple[AuditEntry, ...] = ()
    next_page_token: str = msgspec.field(name="nextPageToken", default="")


class WordSaid(Record, frozen=True, kw_only=True):
    """What a person says about one generation of an advice."""

    word: Word
    who: str
    generation: int
    why: str = ""


class Accepted(Record, frozen=True, kw_only=True):
    """What was sent has been taken in."""

    sentence: str


class Alive(Record, frozen=True, kw_only=True):
    """The process answers."""

    alive: bool
    version: str


class ClusterHealth(Record, frozen=True, kw_only=True):
    """Whether a cluster is seen, how far relight may go there, and why it is not seen."""

    name: str
    mode: Mode = Mode.MONITOR
    seen: bool = False
    last_seen_at: Instant | None = None
    why: str = ""


class SourceHealth(Record, frozen=True, kw_only=True):
    """Whether a source of signals is seen, and why not."""

    name: str
    seen: bool = False
    last_seen_at: Instant | None = None
    why: str = ""


class Trouble(Record, frozen=True, kw_only=True):
    """What fails inside the backend, since when, and the last error.

    ``name`` says in words what is not done, ``error`` is the kind of the error; ``message`` may
    name jobs and files and is therefore only for those who may see them.
    """

    name: str
    since: Instant
    error: str
    message: str = ""

    @property
    def sentence(self) -> str:
        """Return all of it as a sentence."""
        told = f": {self.message}" if self.message else ""
        return f"{self.name} has failed since {to_iso(self.since)[:19]}Z ({self.error}){told}"


class Health(Record, frozen=True, kw_only=True):
    """How the backend is; ``troubles`` are what fails inside it.

    ``sources`` are who is asked beside logs and scheduler: without them relight goes on.
    """

    clusters: tuple[ClusterHealth, ...] = ()
    sources: tuple[SourceHealth, ...] = ()
    troubles: tuple[Trouble, ...] = ()

    @property
    def public(self) -> Health:
        """Return the same without what could tell of jobs and files."""
        return msgspec.structs.replace(
            self,
            sources=tuple(msgspec.structs.replace(one, why="") for one in self.sources),
            troubles=tuple(msgspec.structs.replace(one, message="") for one in self.troubles),
        )

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return why the backend is not ready, a sentence each; nothing when it is."""
        unseen = [one for one in self.clusters if not one.seen]
        return (
            *(f"cluster {one.name} is not seen: {one.why or 'no answer yet'}" for one in unseen),
            *(trouble.sentence for trouble in self.troubles),
        )

    @property
    def blind(self) -> tuple[str, ...]:
        """Return who cannot be asked now, a sentence each; relight goes on without."""
        return tuple(
            f"{one.name} cannot be asked: {one.why or 'no answer yet'}"
            for one in self.sources
            if not one.seen
        )

    @property
    def mode(self) -> Mode:
        """Return the furthest that relight may go in any cluster."""
        modes = [cluster.mode for cluster in self.clusters]
        return max(modes, key=list(Mode).index, default=Mode.MONITOR)


class Readiness(Record, frozen=True, kw_only=True):
    """Whether the backend sees all that it needs, and if not, why.

    ``blind`` says who else cannot be asked: that hinders nothing, and less is known.
    """

    ready: bool
    code: str
    sentence: str
    next_step: str = ""
    reasons: tuple[str, ...] = ()
    blind: tuple[str, ...] = ()
    health: Health = Health()
