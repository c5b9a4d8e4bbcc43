"""Who speaks in a finding: the job's own lines, or somebody who looked at it from outside.

Lines of the log go through the cascade. What is told of silence, slowness and numbers is a
complaint: it says that the run does not do well, and not why. What telemetry, the kernel, the
scheduler and the ranks' own records of their collectives tell are signs, which point somewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from relight.diagnosis.clocks import in_time_order
from relight.diagnosis.placing import Places
from relight.model.findings import Domain, Finding, Kind, Provenance, Remedy, Role
from relight.model.records import Record
from relight.model.verdicts import SetAside

SILENCE = "no-progress"
SLOWDOWN = "slowdown"
NUMBERS = frozenset({"loss-not-a-number", "loss-spike", "loss-scale-floor"})
"""Rules of what a job's own pulses tell: no step, slow steps, numbers gone bad."""

IDLE_AMONG_BUSY = "gpu-idle-among-busy"
SPIN = "gpus-spin"
IDLE = "gpus-idle"
WORK = "gpus-work"
GONE = "telemetry-gone"
PATTERNS = frozenset({IDLE_AMONG_BUSY, SPIN, IDLE, WORK, GONE})
"""Rules of what the GPUs of a job do together while no step is completed."""

NOT_JOINED = "rank-not-joined"
IN_TRANSPORT = "rank-stuck-in-transport"
MISMATCH = "collective-mismatch"
BLOCKED = "stream-blocked"
REFUSED = "recorder-refused"
RECORDS = frozenset({NOT_JOINED, IN_TRANSPORT, MISMATCH, BLOCKED, REFUSED})
"""Rules of what the ranks themselves recorded of their collectives."""

STORAGE_WAIT = "storage-wait"
STRAGGLERS = frozenset(
    {
        "gpu-throttled",
        "gpu-clock-low",
        "gpu-hot",
        "gpu-power-low",
        "pcie-narrow",
        "link-errors-rising",
        STORAGE_WAIT,
    }
)
"""Rules of what makes a machine slow and breaks nothing."""
LINKS = frozenset({"nvlink-errors", "pcie-errors", "infiniband-link-down", "link-errors-rising"})
"""Rules of counters of links between GPUs and machines."""

_OF_LINES = frozenset({"signatures", "tracebacks"})
"""Detectors that conclude from single lines; a rule of theirs may bear a witness's name."""
BLAMING = frozenset({Remedy.RESTART_EXCLUDING_NODE, Remedy.RESTART_EXCLUDING_NODE_AND_DRAIN})
"""Remedies that leave a node out."""
_MACHINE = frozenset({Domain.HARDWARE, Domain.SYSTEM_SOFTWARE})
_ACCUSES = frozenset({Role.ROOT, Role.EITHER})
_MOST_HOSTS = 3
_TOLD_AGAIN = "it was told again later"


class Heard(Record, frozen=True, kw_only=True):
    """The findings of one attempt by who speaks, each part in the order of time.

    ``events`` are the log's lines and what is as definite as one; ``soft`` are states of nodes
    that need not have broken anything, and ``remarks`` what breaks nothing. ``set_aside`` are
    those that cannot be about this trouble.
    """

    events: tuple[Finding, ...] = ()
    silence: Finding | None = None
    slowdown: Finding | None = None
    numbers: tuple[Finding, ...] = ()
    patterns: tuple[Finding, ...] = ()
    records: tuple[Finding, ...] = ()
    soft: tuple[Finding, ...] = ()
    stragglers: tuple[Finding, ...] = ()
    remarks: tuple[Finding, ...] = ()
    set_aside: tuple[SetAside, ...] = ()

    @property
    def signs(self) -> tuple[Finding, ...]:
        """Return all that points somewhere and is no event, the most trusted sort first."""
        return (*self.patterns, *self.records, *self.soft, *self.stragglers)

    @property
    def complaints(self) -> tuple[Finding, ...]:
        """Return what says that the run does not do well, and not why."""
        told = (self.silence, self.slowdown, *self.numbers)
        return tuple(one for one in told if one is not None)

    def of(self, rule: str) -> tuple[Finding, ...]:
        """Return the signs of one rule."""
        return tuple(one for one in self.signs if one.rule == rule)


def is_line(one: Finding) -> bool:
    """Tell whether a finding is one line of the job's log."""
    is_told = one.rule in (SILENCE, SLOWDOWN) or one.rule in NUMBERS or one.rule in RECORDS
    is_other = is_told and one.detector not in _OF_LINES
    return one.provenance is Provenance.JOB_LOG and not is_other


def sorted_out(findings: Sequence[Finding], set_aside: Sequence[SetAside] = ()) -> Heard:
    """Return findings by who speaks; of complaints that came again the latest counts."""
    parts: dict[str, list[Finding]] = {}
    for one in in_time_order(findings):
        parts.setdefault(_part(one), []).append(one)
    told = {name: tuple(found) for name, found in parts.items()}
    earlier = (*told.get("silence", ())[:-1], *told.get("slowdown", ())[:-1])
    again = (SetAside(finding=one.id, rule=one.rule, why=_TOLD_AGAIN) for one in earlier)
    return Heard(
        events=told.get("events", ()),
        silence=next(iter(told.get("silence", ())[-1:]), None),
        slowdown=next(iter(told.get("slowdown", ())[-1:]), None),
        numbers=told.get("numbers", ()),
        patterns=told.get("patterns", ()),
        records=told.get("records", ()),
        soft=told.get("soft", ()),
        stragglers=told.get("stragglers", ()),
        remarks=told.get("remarks", ()),
        set_aside=(*set_aside, *again),
    )


def _part(one: Finding) -> str:
    if is_line(one):
        return "events"
    named = {
        "silence": one.rule == SILENCE,
        "slowdown": one.rule == SLOWDOWN,
        "numbers": one.rule in NUMBERS,
        "records": one.rule in RECORDS,
        "patterns": one.rule in PATTERNS,
    }
    found = next((name for name, is_it in named.items() if is_it), "")
    if found:
        return found
    if one.rule in STRAGGLERS or (one.kind is Kind.SLOW and one.role is not Role.BENIGN):
        return "stragglers"
    if is_soft(one):
        return "soft"
    is_remark = one.role is Role.BENIGN or one.remedy is Remedy.REPORT
    return "remarks" if is_remark and not one.task_gone else "events"


def is_hard(one: Finding) -> bool:
    """Tell whether a witness saw a machine break.

    Source: Meta's cluster study (Kokolis et al., 2024) counts a failed node, and Xids that ask
    for a reset, as the cause of an end that lies near them in time.
    """
    return (
        one.provenance is not Provenance.JOB_LOG
        and one.kind is Kind.NODE
        and one.role is Role.ROOT
        and one.remedy in BLAMING
        and one.domain in _MACHINE
        and one.rule not in LINKS
    )


def is_soft(one: Finding) -> bool:
    """Tell whether a witness saw a node in a state that may have broken the run, or not."""
    if one.provenance is Provenance.JOB_LOG or one.kind is not Kind.NODE or one.task_gone:
        return False
    is_link = one.rule in LINKS and one.role is not Role.BENIGN
    return is_link or (one.role is Role.EITHER and one.remedy in BLAMING)


def is_accusing(one: Finding) -> bool:
    """Tell whether a witness's finding speaks against the node that it names."""
    if is_line(one):
        return False
    if one.rule in (IDLE_AMONG_BUSY, GONE, NOT_JOINED) or one.rule in LINKS or is_hard(one):
        return True
    return one.role in _ACCUSES and one.remedy in BLAMING and one.kind is not Kind.SLOW


def voice_of(one: Finding, nodes: Iterable[str] = ()) -> str:
    """Return who says what a finding tells, such as ``the kernel log of node-7``."""
    hosts = ", ".join(list(nodes)[:_MOST_HOSTS])
    of_hosts = f" of {hosts}" if hosts else ""
    match one.provenance:
        case Provenance.KERNEL:
            return f"the kernel log{of_hosts}"
        case Provenance.TELEMETRY:
            return f"telemetry{of_hosts}"
        case Provenance.SCHEDULER:
            return "the scheduler"
        case Provenance.JOB_LOG:
            is_recorded = one.rule in RECORDS and not is_line(one)
            return "the ranks' own record" if is_recorded else "the job's log"


def is_most(nodes: Iterable[str], places: Places) -> bool:
    """Tell whether nodes are all or more than half of a job of several: then none is at fault."""
    count, known = len(set(nodes)), len(places.allocation.nodes)
    return known > 1 and (count >= known or (known > _PAIR and count * 2 > known))


_PAIR = 2
"""Of two nodes, one is no majority."""


def nodes_of(findings: Iterable[Finding], places: Places) -> tuple[str, ...]:
    """Return the nodes of this job that findings point at, in their order."""
    return tuple(dict.fromkeys(node for one in findings for node in places.of(one)))
