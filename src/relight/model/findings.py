"""What a detector concludes from signals."""

from __future__ import annotations

from enum import StrEnum

from relight.model.instants import Instant
from relight.model.jobs import AttemptKey
from relight.model.records import Record


class Kind(StrEnum):
    """What sort of trouble a finding tells of."""

    CRASH = "crash"
    HANG = "hang"
    SLOW = "slow"
    NUMERIC = "numeric"
    NODE = "node"
    ENDING = "ending"


class Role(StrEnum):
    """What a line can be: the cause, only a sign that something else broke, or either.

    ``benign`` lines look alarming and tell of nothing wrong: whatever else matches such a
    line is not heard.
    """

    ROOT = "root"
    SYMPTOM = "symptom"
    EITHER = "either"
    BENIGN = "benign"


class End(StrEnum):
    """How a run ended where that is no failure; ``timeout`` is the limit of its wall clock."""

    FINISHED = "finished"
    CANCELLED = "cancelled"
    PREEMPTED = "preempted"
    TIMEOUT = "timeout"


class Domain(StrEnum):
    """Who is to blame."""

    HARDWARE = "hardware"
    NETWORK = "network"
    STORAGE = "storage"
    SYSTEM_SOFTWARE = "system_software"
    SCHEDULER = "scheduler"
    APPLICATION = "application"
    USER = "user"
    UNKNOWN = "unknown"
    NONE = "none"


class Remedy(StrEnum):
    """What usually helps against a cause, as its rule says; policy decides what is done.

    ``confirm_then_stop`` allows one more try: the same failure without a step gained stops it.
    """

    RESTART = "restart"
    RESTART_EXCLUDING_NODE = "restart_excluding_node"
    RESTART_EXCLUDING_NODE_AND_DRAIN = "restart_excluding_node_and_drain"
    RESTART_CLEAN = "restart_clean"
    HOLD = "hold"
    STOP = "stop"
    CONFIRM_THEN_STOP = "confirm_then_stop"
    END = "end"
    REPORT = "report"


class Reach(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What changes with how far the same finding reaches; None where nothing does.

    ``one_node`` holds where a job of several nodes shows it on one of them, ``everywhere``
    where most nodes (or ranks) show it alike, ``at_start`` where no step was completed before.
    """

    one_node: Remedy | None = None
    everywhere: Remedy | None = None
    at_start: Remedy | None = None
    domain_on_one_node: Domain | None = None
    domain_everywhere: Domain | None = None


class Provenance(StrEnum):
    """What sort of source spoke; a job's log is confined to the job's own nodes."""

    JOB_LOG = "job_log"
    KERNEL = "kernel"
    TELEMETRY = "telemetry"
    SCHEDULER = "scheduler"


class Place(Record, frozen=True, kw_only=True, order=True):
    """Where a line stands: file, byte offset of its start, and its number from 1.

    Lines end at a line feed only; a carriage return stays inside its line.
    """

    file: str
    offset: int
    line: int = 0


class Evidence(Record, frozen=True, kw_only=True):
    """One line or sample, bounded, with its place; ``is_root`` marks the line that matched."""

    text: str
    place: Place | None = None
    at: Instant | None = None
    is_root: bool = False


class Finding(Record, frozen=True, kw_only=True):
    """What a detector concludes, with its evidence.

    ``id`` is derived from attempt, detector, rule and place, so the same line read twice
    makes the same finding. ``at`` is the time that the source itself printed, ``seen_at``
    when relight read it. ``nodes``, ``ranks`` (global, as the
    framework counts) and ``tasks`` (as the launcher labels its output) are as printed,
    unverified. ``fingerprint``
    is what 'the same failure again' means: rule, captures without host, pid, address and
    number, and the innermost user frame or device.

    ``peers`` are the hosts or addresses at the other end, as printed. ``run`` counts the runs
    that one file holds one after another, from 0; ``step`` is the last step completed before
    the line in its file, None when none was seen in that run. ``ending`` is set where the
    line tells how the run ended rather than what broke.
    """

    id: str
    detector: str
    rule: str
    family: str
    kind: Kind
    role: Role
    domain: Domain
    remedy: Remedy
    attempt: AttemptKey
    seen_at: Instant
    sentence: str
    provenance: Provenance = Provenance.JOB_LOG
    at: Instant | None = None
    place: Place | None = None
    nodes: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    tasks: tuple[int, ...] = ()
    devices: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    peers: tuple[str, ...] = ()
    run: int = 0
    step: int | None = None
    ending: End | None = None
    reach: Reach = Reach()
    count: int = 1
    fingerprint: str = ""
    task_gone: bool = False
    """The scheduler's own words say that a task or node of a living attempt is gone (law 7)."""
