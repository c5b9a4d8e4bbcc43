"""What the scheduler's word about a node means for an attempt that runs on it.

A node that is down, was started again or lost a GPU has failed the attempt. A drain only says
that the node is to take no new job: what runs there goes on, so why it was drained decides. A
node whose daemon does not answer is not known to be down (law 1).
"""

from __future__ import annotations

import re

from relight.model.findings import (
    Domain,
    Evidence,
    Finding,
    Kind,
    Provenance,
    Reach,
    Remedy,
    Role,
)
from relight.model.instants import Instant, later, seconds, to_iso
from relight.model.jobs import AttemptKey, NodeFact, NodeState
from relight.model.records import Record, digest
from relight.perception.lines import readable

DETECTOR = "scheduler"
SAME_START = seconds(60)
"""How far two tellings of one start of a kernel may lie apart."""
AT_START = seconds(300)
"""A prolog that fails within this time of an attempt's start was that attempt's own."""
LONGEST_REASON = 300
"""Characters of a reason that are shown; anybody with the right to drain wrote them."""

_EVERYWHERE = Reach(everywhere=Remedy.RESTART, domain_everywhere=Domain.SYSTEM_SOFTWARE)


class _Meaning(Record, frozen=True, kw_only=True):
    """What one thing that a scheduler says of a node stands for; ``{node}`` in ``sentence``."""

    rule: str
    sentence: str
    family: str = "node_failure"
    role: Role = Role.ROOT
    domain: Domain = Domain.HARDWARE
    remedy: Remedy = Remedy.RESTART_EXCLUDING_NODE
    reach: Reach = Reach()
    task_gone: bool = False


_DOWN = _Meaning(
    rule="node-down", sentence="The scheduler says that {node} is down", task_gone=True
)
_REBOOTED = _Meaning(
    rule="node-rebooted",
    sentence="{node} was started again while the attempt ran on it",
    task_gone=True,
)
_SILENT = _Meaning(
    rule="node-not-responding",
    sentence="{node} does not answer the scheduler",
    role=Role.EITHER,
    reach=_EVERYWHERE,
)
_GPUS_MISSING = _Meaning(
    rule="node-gpus-missing",
    sentence="{node} finds fewer GPUs than it should have",
    family="gpu_fallen_off_bus",
    remedy=Remedy.RESTART_EXCLUDING_NODE_AND_DRAIN,
)
_FAILED_PROLOG = _Meaning(
    rule="node-failed-prolog",
    sentence="The scheduler's prolog failed on {node}",
    domain=Domain.SYSTEM_SOFTWARE,
    reach=_EVERYWHERE,
)
_FAILED_PROLOG_LATER = _Meaning(
    rule=_FAILED_PROLOG.rule,
    sentence="The prolog of another job failed on {node}",
    role=Role.EITHER,
    domain=Domain.SYSTEM_SOFTWARE,
    reach=_EVERYWHERE,
)
"""Two jobs share the node then, and whatever broke it may reach both."""
_UNKILLABLE = _Meaning(
    rule="node-drained",
    sentence="{node} was drained because processes on it could not be killed",
    role=Role.EITHER,
    domain=Domain.SYSTEM_SOFTWARE,
    reach=_EVERYWHERE,
)
_EPILOG = _Meaning(
    rule="node-drained",
    sentence="{node} was drained because the epilog of a job that had ended there failed",
    role=Role.SYMPTOM,
    domain=Domain.SYSTEM_SOFTWARE,
    remedy=Remedy.REPORT,
)
_CHECKED = _Meaning(
    rule="node-drained",
    sentence="{node} was drained because a check of its health failed",
    role=Role.EITHER,
    reach=_EVERYWHERE,
)
_BY_PERSON = _Meaning(
    rule="node-drained",
    sentence="{node} was drained and takes no new job",
    role=Role.EITHER,
    domain=Domain.UNKNOWN,
    remedy=Remedy.REPORT,
)
"""Nobody knows whether it was drained for a fault or to be maintained: it goes on working."""

_REASONS = (
    (re.compile(r"gres/gpu count (?:reported lower than configured|too low)"), _GPUS_MISSING),
    (re.compile(r"(?i)\bprolog (?:error|failed|failure)|failed prolog"), _FAILED_PROLOG),
    (re.compile(r"(?i)\bepilog (?:error|failed|failure)"), _EPILOG),
    (re.compile(r"(?i)kill task failed|not ending with signals"), _UNKILLABLE),
    (re.compile(r"(?i)unexpectedly rebooted"), _REBOOTED),
    (
        re.compile(
            r"(?i)^(?:NHC|.{0,40}\bhealth.?check)\b|^low (?:realmemory|cpus?|tmpdisk|socket)"
            r"|\bxid\b|\becc\b|fallen off|nvlink|row.?remap|batch job complete failure"
        ),
        _CHECKED,
    ),
)
"""What slurmctld and slurmd write themselves (node_mgr.c, job_mgr.c, req.c), and the checks.

``NHC:`` begins the reasons of LBNL's Node Health Check; a check of a site's own names what it
looked at.
"""
_OURS = re.compile(r"(?i)^\[?relight\b|\[relight ")
"""A drain of relight's own is no evidence for what relight thinks."""


def told_by_scheduler(
    before: NodeFact | None,
    now: NodeFact,
    attempt: AttemptKey,
    at: Instant,
    began: Instant | None = None,
) -> tuple[Finding, ...]:
    """Return what is new about a node of ``attempt``, seen ``at``.

    ``before`` is what was known of the node, None when nothing was. ``began`` is when the
    attempt began to run: what was so before is no news. The same thing told twice makes one
    finding, by its id.
    """
    meanings: list[_Meaning] = []
    if _is_rebooted(before, now, began):
        meanings.append(_REBOOTED)
    if now.state is NodeState.DOWN:
        if before is None or before.state is not NodeState.DOWN:
            meanings += _of_loss(now)
    elif now.is_drained and _is_news(before, now, began):
        meanings += _of_drain(now, began)
    is_silent = now.is_silent and now.state is not NodeState.DOWN and not now.is_rebooting
    if is_silent and (before is None or not before.is_silent):
        meanings.append(_SILENT)
    return tuple(_found(one, now, attempt, at, began) for one in dict.fromkeys(meanings))


def _is_rebooted(before: NodeFact | None, now: NodeFact, began: Instant | None) -> bool:
    """Tell whether the kernel began anew, unordered, since it was last seen.

    A node in a cloud is started for the job that waits for it.
    """
    if before is None or before.booted_at is None or now.booted_at is None:
        return False
    if before.is_rebooting or now.is_rebooting or (began is not None and now.booted_at <= began):
        return False
    return now.booted_at > later(before.booted_at, SAME_START)


def _is_news(before: NodeFact | None, now: NodeFact, began: Instant | None) -> bool:
    """Tell whether a drain is new: not there before, or for another reason than before."""
    if now.reason_at is not None and began is not None and now.reason_at < began:
        return False
    if before is None:
        return now.reason_at is not None and began is not None
    return not before.is_drained or before.reason != now.reason


def _of_loss(now: NodeFact) -> list[_Meaning]:
    """Return what a node's being down means; its reason may be an older one, which Slurm keeps."""
    meaning = _meant(now.reason)
    if meaning is _REBOOTED:
        return [_REBOOTED]
    return [_DOWN, _GPUS_MISSING] if meaning is _GPUS_MISSING else [_DOWN]


def _of_drain(now: NodeFact, began: Instant | None) -> list[_Meaning]:
    if _OURS.search(now.reason):
        return []
    meaning = _meant(now.reason) or _BY_PERSON
    if meaning is _FAILED_PROLOG and not _is_of_start(now, began):
        meaning = _FAILED_PROLOG_LATER
    return [meaning]


def _is_of_start(now: NodeFact, began: Instant | None) -> bool:
    if began is None or now.reason_at is None:
        return True
    return now.reason_at <= later(began, AT_START)


def _meant(reason: str) -> _Meaning | None:
    text = reason[: LONGEST_REASON * 4]
    return next((meaning for pattern, meaning in _REASONS if pattern.search(text)), None)


def _found(
    meaning: _Meaning, now: NodeFact, attempt: AttemptKey, at: Instant, began: Instant | None
) -> Finding:
    reason = _plain(now.reason)
    named = meaning.sentence.format(node=_plain(now.name))
    is_start = meaning is _REBOOTED and now.booted_at is not None
    when = now.booted_at if is_start else now.reason_at
    if meaning is _SILENT:
        reason, when = "", None
    if when is not None and began is not None and when < began:
        when = None
    who = f" (by {_plain(now.reason_by)})" if reason and now.reason_by else ""
    return Finding(
        id=digest(str(attempt), DETECTOR, meaning.rule, now.name, *_apart(meaning, reason)),
        detector=DETECTOR,
        rule=meaning.rule,
        family=meaning.family,
        kind=Kind.NODE,
        role=meaning.role,
        domain=meaning.domain,
        remedy=meaning.remedy,
        attempt=attempt,
        seen_at=at,
        sentence=named + (f": {reason}{who}." if reason else "."),
        provenance=Provenance.SCHEDULER,
        at=when,
        nodes=(now.name,),
        evidence=(Evidence(text=_shown(now), at=when, is_root=True),),
        reach=meaning.reach,
        fingerprint=meaning.rule,
        task_gone=meaning.task_gone,
    )


def _apart(meaning: _Meaning, reason: str) -> tuple[str, ...]:
    """Return what tells two findings of one rule and node apart: drains differ by their reason."""
    return (reason,) if meaning.rule == "node-drained" else ()


def _shown(now: NodeFact) -> str:
    parts = [f"{_plain(now.name)}: {_plain(now.scheduler_state) or now.state}"]
    if now.reason:
        parts.append(f"reason {_plain(now.reason)}")
    if now.reason_by:
        parts.append(f"by {_plain(now.reason_by)}")
    if now.reason_at is not None:
        parts.append(f"at {to_iso(now.reason_at)}")
    if now.booted_at is not None:
        parts.append(f"up since {to_iso(now.booted_at)}")
    return ", ".join(parts)


def _plain(text: str) -> str:
    """Return a person's text as one line that can be shown."""
    return readable(text[:LONGEST_REASON].encode(errors="replace")).replace("\n", " ")
