"""From one matched line to a finding."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from relight.model.findings import Domain, Evidence, Finding, Place, Remedy, Role
from relight.model.hostlists import HostlistError, expand
from relight.model.instants import Instant
from relight.model.records import Record, digest
from relight.perception.ears import Ears
from relight.perception.fingerprints import Frame, fingerprint
from relight.perception.prefixes import Voice
from relight.rules.schema import Rule

SIGNATURES = "signatures"
TRACEBACKS = "tracebacks"
MOST_NAMED = 64
"""Nodes, and ranks, named in one finding."""

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")


class Heading(Record, frozen=True, kw_only=True):
    """Where and when a line was read, who wrote it, and what stands around it."""

    place: Place
    voice: Voice
    shown: str
    before: tuple[str, ...] = ()
    frame: Frame | None = None
    at: Instant | None = None
    now: Instant
    node: str | None = None
    """The node that the file's name tells."""
    rank: int | None = None
    """The rank that the file's name tells."""
    run: int = 0
    step: int | None = None


def concluded(
    ears: Ears, rule: Rule, captures: Mapping[str, str], heading: Heading, count: int
) -> Finding:
    """Return the finding that ``rule`` makes of a line.

    Its id is derived from the attempt, the rule, the place and the line itself.
    """
    if not rule.patterns:
        rule = as_raised(rule, captures.get("exception", ""), heading.voice.body)
    nodes = _nodes(captures, heading)
    ranks = _ranks(captures, heading)
    place = heading.place
    named = {
        "frame": str(heading.frame or "an unknown place"),
        **captures,
        "node": _listed(nodes),
        "rank": captures.get("rank") or _listed(tuple(str(rank) for rank in ranks)),
    }
    device = captures.get("device") or heading.voice.device
    return Finding(
        id=digest(str(ears.attempt), rule.id, place.file, str(place.offset), heading.shown),
        detector=SIGNATURES if rule.patterns else TRACEBACKS,
        rule=rule.id,
        family=rule.family,
        kind=rule.kind,
        role=rule.role,
        domain=rule.domain,
        remedy=rule.remedy,
        attempt=ears.attempt,
        seen_at=heading.now,
        sentence=sentence(rule.sentence, named),
        provenance=ears.provenance,
        at=heading.at,
        place=place,
        nodes=nodes,
        ranks=ranks,
        tasks=_tasks(heading),
        devices=(device,) if device else (),
        evidence=_evidence(heading),
        peers=(captures["peer"],) if captures.get("peer") else (),
        run=heading.run,
        step=heading.step,
        ending=rule.ending,
        reach=rule.reach,
        count=count,
        fingerprint=fingerprint(rule.id, captures, heading.frame),
        task_gone=rule.task_gone,
    )


def sentence(template: str, named: Mapping[str, str]) -> str:
    """Return the rule's sentence with captures filled in.

    What stands in brackets is left out when a capture in it is missing or empty.
    """

    def kept(part: re.Match[str]) -> str:
        names = _PLACEHOLDER.findall(part[1])
        return part[1] if all(named.get(name) for name in names) else ""

    return _PLACEHOLDER.sub(
        lambda match: named.get(match[1]) or "unknown", _OPTIONAL.sub(kept, template)
    )


def remedy_of_exception(name: str) -> Remedy:
    """Return what helps against an exception of this name: a mistake in code fails again."""
    return Remedy.STOP if name.rpartition(".")[2] in _MISTAKES else Remedy.CONFIRM_THEN_STOP


def as_raised(rule: Rule, exception: str, line: str) -> Rule:
    """Return ``rule``, that of an exception which no rule knows better, as its name tells more.

    What passes on another process's failure, or finds a connection gone, is a symptom. A
    mistake in code fails again, and so does most else; what speaks of the machine or of a
    service may have passed.
    """
    name = exception.rpartition(".")[2]
    message = line.partition(":")[2].strip()
    if name in _PASSED_ON or (name == "Exception" and not message):
        return msgspec.structs.replace(
            rule, role=Role.SYMPTOM, domain=Domain.UNKNOWN, remedy=Remedy.RESTART
        )
    if name in _MISTAKES:
        return msgspec.structs.replace(rule, remedy=Remedy.STOP)
    if name in _LOST_TOUCH:
        return msgspec.structs.replace(
            rule, role=Role.SYMPTOM, domain=Domain.UNKNOWN, remedy=Remedy.RESTART
        )
    if _OF_THE_MACHINE.search(message):
        return msgspec.structs.replace(rule, domain=Domain.UNKNOWN, remedy=Remedy.RESTART)
    return msgspec.structs.replace(rule, remedy=Remedy.CONFIRM_THEN_STOP)


_MISTAKES = frozenset(
    {
        "AssertionError",
        "AttributeError",
        "ImportError",
        "IndentationError",
        "IndexError",
        "KeyError",
        "ModuleNotFoundError",
        "NameError",
        "NotImplementedError",
        "RecursionError",
        "SyntaxError",
        "TypeError",
        "UnboundLocalError",
        "ZeroDivisionError",
    }
)
_PASSED_ON = frozenset(
    {
        "ActorDiedError",
        "ActorUnavailableError",
        "BrokenProcessPool",
        "CalledProcessError",
        "ChildFailedError",
        "FailedJobError",
        "ProcessExitedException",
        "ProcessRaisedException",
        "RayActorError",
        "RayTaskError",
        "RemoteTraceback",
        "SignalException",
        "UncompletedJobError",
        "WorkerCrashedError",
    }
)
"""Exceptions that a parent raises for what happened in a child."""
_LOST_TOUCH = frozenset(
    {
        "BrokenPipeError",
        "CancelledError",
        "ConnectionAbortedError",
        "ConnectionError",
        "ConnectionRefusedError",
        "ConnectionResetError",
        "DistBackendError",
        "DistNetworkError",
        "DistStoreError",
        "EOFError",
        "Empty",
        "IncompleteReadError",
        "TimeoutError",
        "timeout",
    }
)
"""Exceptions of whoever notices that the other end is gone."""
_OF_THE_MACHINE = re.compile(
    r"(?i)time[d-]? ?out|connect|network|socket|\bstore\b|\bNCCL|\bCUDA|\bHIP\b|\bNVML|driver|\bGPU"
    r"|\bI/O|\bdisk|\bkilled|\bdied|unavailable|temporar|\bserver|\bhttp|\bhost\b|unreachable|heartbeat"
)
"""Words of messages that speak of what lies outside the program."""


def _evidence(heading: Heading) -> tuple[Evidence, ...]:
    root = Evidence(text=heading.shown, place=heading.place, at=heading.at, is_root=True)
    return (*(Evidence(text=line) for line in heading.before), root)


def _nodes(captures: Mapping[str, str], heading: Heading) -> tuple[str, ...]:
    named = captures.get("node")
    if named:
        try:
            return expand(named)[:MOST_NAMED]
        except HostlistError:
            return (named,)
    node = heading.voice.node or heading.node
    return (node,) if node else ()


def _ranks(captures: Mapping[str, str], heading: Heading) -> tuple[int, ...]:
    named = captures.get("rank")
    if named:
        return _expanded(named)
    if heading.voice.rank is not None:
        return (heading.voice.rank,)
    rank = heading.rank if heading.rank is not None else heading.voice.task
    return () if rank is None else (rank,)


def _tasks(heading: Heading) -> tuple[int, ...]:
    task = heading.voice.task if heading.voice.task is not None else heading.rank
    return () if task is None else (task,)


def _expanded(text: str) -> tuple[int, ...]:
    """Return the numbers that ``0-3,7`` or ``{0, 7}`` names, at most ``MOST_NAMED``."""
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip(" {}[]()").partition("-")
        last = last or first
        if not (first.isdigit() and last.isdigit()) or len(last) > _MOST_DIGITS:
            continue
        room = MOST_NAMED - len(numbers)
        numbers += range(int(first), min(int(last) + 1, int(first) + room))
    return tuple(numbers)


_MOST_DIGITS = 7


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"  # noqa: PLR2004 - three fit in a sentence
