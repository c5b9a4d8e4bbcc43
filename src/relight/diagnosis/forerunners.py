"""What came shortly before a failure and explains it, though it was no failure itself.

Memory that was nearly full explains who was killed, an allocation that failed explains a
library that could not start, and one rank's long work explains why the others waited.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from relight.diagnosis.clocks import in_time_order
from relight.model.findings import Domain, Finding, Kind, Remedy, Role

_SENT_BY = {
    "process_killed_sigkill": "host_oom_kill",
    "dataloader_worker_killed": "host_oom_kill",
    "worker_process_lost": "host_oom_kill",
}
"""Families of deaths whose line stays the root, and the warning before it that tells who did it."""
_CAUSED_BY = {
    "cuda_library_error": "device_oom",
    "nccl_init_failed": "device_oom",
    "segfault": "shm_exhausted",
}
"""Families of failures, and those of an earlier line that is the cause itself."""
_WAITS = frozenset({"nccl_collective_timeout", "watchdog_heartbeat_stuck", "gloo_connect_failed"})
_LONE_WORK = re.compile(
    r"(?i)running tokenizer|\btokeni[sz](?:ing|ation|e)\b|\bmap(?: ?\(num_proc=\d{1,4}\))?: {1,4}\d"
    r"|\bfilter(?: ?\(num_proc=\d{1,4}\))?: {1,4}\d|\bgenerating \w{1,20} split|grouping texts"
    r"|converting format of dataset|\b(?:pre-?process|packing|shuffl|index|cach)ing\b.{0,40}"
    r"\b(?:dataset|data|corpus|samples?|documents?|shards?|files?)\b"
    r"|\bbuild(?:ing)? .{0,30}\b(?:index|dataset|cache)|\b(?:index|dataset|cache) build"
    r"|\bdownloading\b|\bfetching \d{1,6} files|\buploading\b|\bpush(?:ing)? to .{0,8}hub"
    r"|\bsaving (?:the )?(?:dataset|model|check ?point|optimizer|state|weights)"
    r"|\bloading (?:check ?point shards|dataset)|\b(?:merg|consolidat)ing\b"
)
"""What one rank does alone while the others wait for it."""
_BAR = re.compile(r"\|[^|]{0,200}\|")
_SHOWN = 60
"""Characters of such a line that are told."""
_DONE = re.compile(r"(?i)\b100 ?%|\b(?:done|finished|completed|saved)\b")


def with_sender(root: Finding, findings: Sequence[Finding]) -> Finding:
    """Return a death with who sent it: the kernel, where memory was nearly full before."""
    family = _SENT_BY.get(root.family)
    if family is None or root.role is not Role.SYMPTOM:
        return root
    memory = _before(root, family, findings)
    if memory is None:
        return root
    return msgspec.structs.replace(
        root,
        family=memory.family,
        role=Role.EITHER,
        domain=memory.domain,
        remedy=memory.remedy,
        reach=memory.reach,
        sentence=f"{root.sentence.rstrip('. ')}. Before that: {memory.sentence}",
    )


def with_cause(root: Finding, findings: Sequence[Finding]) -> Finding:
    """Return the earlier line of the same writer that is the cause of a failure, else ``root``."""
    family = _CAUSED_BY.get(root.family)
    cause = _before(root, family, findings) if family is not None else None
    if cause is None:
        return root
    return msgspec.structs.replace(
        cause,
        role=Role.EITHER,
        kind=root.kind,
        remedy=Remedy.CONFIRM_THEN_STOP,
        sentence=f"{root.sentence.rstrip('. ')}. Before that: {cause.sentence}",
    )


def with_lone_work(root: Finding) -> Finding:
    """Return a wait with what one rank did meanwhile, where the lines before it tell."""
    if root.kind is not Kind.HANG or root.role is not Role.SYMPTOM or root.family not in _WAITS:
        return root
    before = [one.text for one in root.evidence if not one.is_root]
    work = next((line for line in reversed(before) if _LONE_WORK.search(line)), None)
    if work is None or _DONE.search(work):
        return root
    return msgspec.structs.replace(
        root,
        family="rank0_work_timeout",
        domain=Domain.APPLICATION,
        remedy=Remedy.CONFIRM_THEN_STOP,
        sentence="The ranks waited in a collective for one that was still at work alone "
        f"({_shortened(work)}), until the time-out.",
    )


def _before(root: Finding, family: str, findings: Sequence[Finding]) -> Finding | None:
    """Return the first symptom of ``family`` before ``root``, by its own rank where both tell."""
    possible = [
        one
        for one in findings
        if one.family == family
        and one.role is Role.SYMPTOM
        and (not one.ranks or not root.ranks or bool({*one.ranks} & {*root.ranks}))
    ]
    if not possible:
        return None
    first = in_time_order(possible)[0]
    return first if in_time_order([first, root])[0].id == first.id else None


def _shortened(line: str) -> str:
    match = _LONE_WORK.search(line)
    words = _BAR.sub(" ", line[match.start() if match else 0 :])
    return " ".join(words.split())[:_SHOWN].rstrip(" .:|")
