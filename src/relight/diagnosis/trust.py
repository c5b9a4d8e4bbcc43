"""What a witness's finding can have to do with this trouble: whose, when, and how surely.

A job can only incriminate its own nodes, and what lies long before the trouble did not cause it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from relight.diagnosis.afterwards import came_later, dated, outlived, stands_beside
from relight.diagnosis.deaths import root_text
from relight.diagnosis.endings import Ending
from relight.diagnosis.placing import Places
from relight.diagnosis.witnesses import (
    SILENCE,
    SLOWDOWN,
    Heard,
    is_hard,
    is_line,
    sorted_out,
)
from relight.model.findings import (
    Domain,
    Finding,
    Kind,
    Provenance,
    Reach,
    Remedy,
    Role,
)
from relight.model.instants import Instant, Span, between, later, seconds, show_span
from relight.model.verdicts import SetAside

EARLIEST = seconds(600)
LATEST = seconds(300)
"""How long before trouble, and after an end, what a node shows can be the cause.

Source: the window of Meta's cluster study (Kokolis et al., 2024): 10 minutes before a job's end
to 5 minutes after it.
"""
_ONE_EVENT = seconds(180)
"""Two Xids of one device within this time are one event, as NVIDIA's NVSentinel counts bursts."""
_WAITED = re.compile(r"ran for (\d{1,10}) milliseconds before timing out").search
_XID = (
    re.compile(r"\bXid \([^)\n]{1,60}\): (\d{1,3})\b"),
    re.compile(r"(?i)\bxid\W{0,3}(?:code)?\W{0,3}(\d{1,3})\b"),
)
_OF_THE_PROGRAM = frozenset({11, 13, 25, 31, 32, 69, 80, 137})
"""NVIDIA's catalogue: restart the application; a GPU that shows them again is to be tested."""
_PROGRAMS_FAMILY = "cuda_kernel_fault"
_NEVER_BLAMES = frozenset({43, 45})
"""NVIDIA's catalogue: a channel was reset or removed because of something else."""


def hear(findings: Sequence[Finding], places: Places, ending: Ending) -> Heard:
    """Return findings by who speaks, without what cannot be about this trouble."""
    began = _trouble_began(findings, ending)
    kept: list[Finding] = []
    aside: list[SetAside] = []
    for one in dated(findings, ending):
        read = _by_catalogue(one, findings, places)
        why = ""
        if not is_line(one):
            why = _why_not(one, places, began, ending.at) or outlived(one, findings, began, ending)
            why = why or stands_beside(read, findings, places, ending)
        if why:
            aside.append(SetAside(finding=one.id, rule=one.rule, why=why))
        else:
            kept.append(read)
    aside.sort(key=lambda one: one.finding)
    return sorted_out(kept, aside)


def broken_by(heard: Heard, places: Places) -> tuple[Finding, ...]:
    """Return what broke on this job's nodes by a witness's word, in the order of time."""
    return tuple(one for one in heard.events if is_hard(one) and places.of(one))


def xid_of(one: Finding) -> int | None:
    """Return the Xid code that a finding tells of, None where it tells of none."""
    for text in (root_text(one), one.fingerprint, one.sentence):
        for pattern in _XID:
            if match := pattern.search(text):
                return int(match[1])
    return None


def _why_not(one: Finding, places: Places, began: Instant | None, ended: Instant | None) -> str:
    if one.nodes and places.allocation.nodes and not any(map(places.member, one.nodes)):
        hosts = ", ".join(one.nodes[:3])
        return f"it names {hosts}, which is not a node of this job"
    if one.at is None or one.provenance is Provenance.JOB_LOG:
        return ""
    if began is not None and one.at < later(began, Span(-EARLIEST)):
        return f"it came {show_span(between(one.at, began))} before the trouble: too early for it"
    if ended is not None and one.at > later(ended, LATEST):
        return f"it came {show_span(between(ended, one.at))} after the end: too late for it"
    return came_later(one, ended)


def _trouble_began(findings: Sequence[Finding], ending: Ending) -> Instant | None:
    """Return when the first sign of trouble showed, None where nothing tells.

    A rank that reports a time-out has waited since long before. Where all was read at once, only
    printed times tell anything.
    """
    at_once = len({one.seen_at for one in findings}) <= 1
    own = [
        one
        for one in findings
        if one.provenance is Provenance.JOB_LOG
        and one.role is not Role.BENIGN
        and one.kind is not Kind.ENDING
    ]
    complaint = [one for one in own if one.rule == SILENCE] or own
    if ending.state is not None:
        complaint = [one for one in complaint if one.rule != SLOWDOWN]
    times = [_since(one, at_once=at_once) for one in complaint]
    return min((at for at in (*times, ending.at) if at is not None), default=None)


def _since(one: Finding, *, at_once: bool) -> Instant | None:
    at = one.at if one.at is not None or at_once else one.seen_at
    waited = _WAITED(root_text(one))
    if at is None or waited is None:
        return at
    return later(at, Span(-seconds(int(waited[1]) / 1000)))


def _by_catalogue(one: Finding, findings: Sequence[Finding], places: Places) -> Finding:
    """Return an Xid as NVIDIA's catalogue reads it, where a source beside the log tells of it.

    43 and 45 only follow. Those of programs, 13 and 31 before all, are the program's unless one
    GPU shows them again and again.
    """
    code = xid_of(one) if one.kind in (Kind.NODE, Kind.CRASH) else None
    if code in _NEVER_BLAMES and one.role is not Role.BENIGN and not is_line(one):
        return msgspec.structs.replace(
            one, role=Role.SYMPTOM, remedy=Remedy.REPORT, domain=Domain.UNKNOWN
        )
    if code not in _OF_THE_PROGRAM or one.role is Role.BENIGN:
        return one
    if is_line(one):
        is_rules = one.family == _PROGRAMS_FAMILY
        return msgspec.structs.replace(one, reach=Reach()) if is_rules else one
    if _keeps_to_one_gpu(one, findings, places):
        return msgspec.structs.replace(
            one,
            kind=Kind.CRASH,
            role=Role.EITHER,
            domain=Domain.HARDWARE,
            reach=Reach(),
            remedy=Remedy.RESTART_EXCLUDING_NODE,
            sentence=f"{one.sentence.rstrip('. ')}, as the same GPU did at another time",
        )
    return msgspec.structs.replace(
        one,
        kind=Kind.CRASH,
        role=Role.EITHER,
        domain=Domain.APPLICATION,
        remedy=Remedy.CONFIRM_THEN_STOP,
        reach=Reach(),
    )


def _keeps_to_one_gpu(one: Finding, findings: Sequence[Finding], places: Places) -> bool:
    if not one.devices:
        return False
    where, devices = places.of(one), set(one.devices)
    return any(
        not is_line(other)
        and places.of(other) == where
        and not devices.isdisjoint(other.devices)
        and xid_of(other) in _OF_THE_PROGRAM
        and _is_apart(other, one)
        for other in findings
    )


def _is_apart(other: Finding, one: Finding) -> bool:
    """Tell whether two findings are of two events, not of one burst."""
    if other.attempt.attempt != one.attempt.attempt:
        return True
    if other.at is None or one.at is None:
        return False
    return abs(between(other.at, one.at)) > _ONE_EVENT
