"""A hang: what stopped, by what the GPUs do, by who never came, and by what a line says.

Silence is a symptom of whatever stopped. One idle GPU among spinning ones is of a rank whose
process is stuck or dead; all spinning without traffic wait for a rank that nobody names; all
idle wait for storage, data or each other. Source of the patterns: what NCCL's kernels do while
they wait (they keep the GPU busy), and Meta's and ByteDance's reports of hangs at scale.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from relight.diagnosis.causes import Located
from relight.diagnosis.endings import Ending
from relight.diagnosis.hang_readings import (
    ALONE,
    LATE,
    MISMATCHED,
    ON_A_NODE,
    ONE_A_NODE,
    STORED,
    WITHOUT_A_NODE,
)
from relight.diagnosis.placing import Places
from relight.diagnosis.stating import Reading, is_explanation, said_of, stated, with_words
from relight.diagnosis.witnesses import (
    BLAMING,
    BLOCKED,
    GONE,
    IDLE,
    IDLE_AMONG_BUSY,
    IN_TRANSPORT,
    LINKS,
    MISMATCH,
    NOT_JOINED,
    REFUSED,
    SPIN,
    STORAGE_WAIT,
    WORK,
    Heard,
    is_line,
    is_most,
    nodes_of,
)
from relight.model.findings import Domain, Finding, Kind, Provenance, Remedy, Role
from relight.model.records import Record
from relight.model.verdicts import Term

_BY_RANK = frozenset({ON_A_NODE[NOT_JOINED].what, LATE.what})
_MISSING = "collective_missing_ranks"
"""The family of lines that name who did not come."""
_ABSENT = frozenset({IDLE_AMONG_BUSY, NOT_JOINED, IN_TRANSPORT, BLOCKED})
"""Signs that ranks of a node do not come, whatever keeps them."""
_SEVERAL = 2
_AGREES, _FITS = 0.2, 0.1
WORK_GOES_ON = "work-goes-on"
"""The cause of a silence that is none: the GPUs work."""


class _Accusation(Record, frozen=True, kw_only=True):
    """A sign that names nodes, and how it is read."""

    sign: Finding
    reading: Reading
    nodes: tuple[str, ...]
    ranks: tuple[int, ...] = ()


def is_hang(heard: Heard, log: Located | None, ending: Ending) -> bool:
    """Tell whether the trouble is that no step is completed any more.

    After an end only signs that point at something are news: that the GPUs are idle is not.
    """
    if heard.silence is not None or any(one.rule != REFUSED for one in heard.records):
        return True
    if ending.state is None:
        return bool(heard.patterns)
    hung = log is not None and log.verdict.kind is Kind.HANG
    telling = (GONE, IDLE_AMONG_BUSY, SPIN) if hung or log is None else (GONE, IDLE_AMONG_BUSY)
    return any(heard.of(rule) for rule in telling)


def of_hang(heard: Heard, places: Places, ending: Ending, log: Located | None) -> Located | None:
    """Return why no step is completed any more; ``log`` is what its events alone lead to."""
    if log is not None and is_explanation(log.root):
        return with_words(log, "; no step was completed after it") if heard.silence else log
    return (
        _mismatch(heard)
        or _storage(heard, places, log)
        or _on_a_node(heard, places, log)
        or _in_the_program(heard, places)
        or _without_a_node(heard, log, ending)
        or _alone(heard.silence)
    )


def _mismatch(heard: Heard) -> Located | None:
    found = heard.of(MISMATCH)
    if not found:
        return None
    reading = MISMATCHED
    if all(one.remedy is Remedy.CONFIRM_THEN_STOP for one in found):
        reading = msgspec.structs.replace(MISMATCHED, remedy=Remedy.CONFIRM_THEN_STOP)
    return stated(found[0], reading, ranks=_ranks(found), complaint=heard.silence)


def _storage(heard: Heard, places: Places, log: Located | None) -> Located | None:
    """Return that storage is waited for, unless all signs of it lie on a node accused otherwise.

    That the ranks of a node do not come is no other accusation where its own kernel names a
    server that does not answer: they wait for it, and all others for them.
    """
    told = [one for one in heard.events if one.domain is Domain.STORAGE and _is_alarming(one)]
    found = (*told, *heard.of(STORAGE_WAIT))
    nodes = nodes_of(found, places)
    if not found or heard.of(WORK):
        return None
    accused = _accusations(heard, places, log)
    if len(nodes) == 1 and any(one.peers for one in told):
        accused = [one for one in accused if one.nodes != nodes or one.sign.rule not in _ABSENT]
    if len(nodes) == 1 and any(one.nodes == nodes for one in accused):
        return None
    if len(nodes) == 1 and accused and not heard.of(IDLE):
        return None
    agrees = [Term(what="all GPUs are idle", weight=_FITS)] if heard.of(IDLE) else []
    return with_words(stated(found[0], STORED, complaint=heard.silence), "", agrees)


def _is_alarming(one: Finding) -> bool:
    return one.role in (Role.ROOT, Role.EITHER) and one.kind is not Kind.ENDING


def _on_a_node(heard: Heard, places: Places, log: Located | None) -> Located | None:
    accused = _accusations(heard, places, log)
    if not accused:
        return None
    first = accused[0]
    located = stated(
        first.sign, first.reading, nodes=first.nodes, ranks=first.ranks, complaint=heard.silence
    )
    kind = _kind(heard, log, first.sign)
    located = msgspec.structs.replace(
        located, verdict=msgspec.structs.replace(located.verdict, kind=kind)
    )
    terms = []
    if first.sign.rule == NOT_JOINED and heard.of(SPIN):
        terms.append(Term(what="all other GPUs wait in a collective", weight=_FITS))
    late = next((one for one in accused[1:] if one.reading.what == LATE.what), None)
    if late is not None and late.nodes == first.nodes:
        terms.append(Term(what=LATE.what, weight=_AGREES))
    return with_words(located, "", terms)


def _kind(heard: Heard, log: Located | None, sign: Finding) -> Kind:
    hung = log is not None and log.verdict.kind is Kind.HANG
    is_only_gone = heard.silence is None and not hung and sign.rule != IDLE_AMONG_BUSY
    return Kind.NODE if is_only_gone and sign.kind in (Kind.NODE, Kind.CRASH) else Kind.HANG


def _accusations(heard: Heard, places: Places, log: Located | None) -> list[_Accusation]:
    """Return the signs that name few nodes, the most trusted first."""
    states = tuple(one for one in heard.soft if one.rule not in LINKS)
    by_trust = sorted(states, key=lambda one: one.provenance is not Provenance.SCHEDULER)
    links = tuple(one for one in heard.signs if one.rule in LINKS)
    groups: list[tuple[Sequence[Finding], Reading]] = [
        (by_trust, ON_A_NODE["state"]),
        (heard.of(IDLE_AMONG_BUSY), ON_A_NODE[IDLE_AMONG_BUSY]),
        (_not_of_the_program(heard.of(NOT_JOINED)), ON_A_NODE[NOT_JOINED]),
        (heard.of(GONE), ON_A_NODE[GONE]),
        (_blaming(heard.of(IN_TRANSPORT)), ON_A_NODE[IN_TRANSPORT]),
        (_blaming(heard.of(BLOCKED)), ON_A_NODE[BLOCKED]),
        (_late(log), LATE),
        (links, ON_A_NODE["link"]),
    ]
    found = []
    for signs, reading in groups:
        nodes = nodes_of(signs, places)
        by_rank = reading.what in _BY_RANK
        if not nodes or is_most(nodes, places) or (by_rank and len(nodes) > 1):
            continue
        pointing = next(one for one in signs if places.of(one))
        ranks = _ranks(signs) if by_rank else pointing.ranks
        read = _as_told(reading, pointing)
        found.append(_Accusation(sign=pointing, reading=read, nodes=nodes, ranks=ranks))
    return found


def _not_of_the_program(found: Sequence[Finding]) -> tuple[Finding, ...]:
    return tuple(one for one in found if one.domain is not Domain.APPLICATION)


def _blaming(found: Sequence[Finding]) -> tuple[Finding, ...]:
    return tuple(one for one in found if one.remedy in BLAMING)


def _as_told(reading: Reading, sign: Finding) -> Reading:
    """Return how a sign is read, with what it says itself.

    One of several ranks of a node that did not come may be the program's fault, and whether
    others wait is a guess where nothing tells of tensor work. Where one exporter alone stopped, it
    may be the exporter's own trouble.
    """
    if sign.rule == NOT_JOINED and sign.remedy in BLAMING:
        return msgspec.structs.replace(reading, domain=sign.domain)
    is_unsure = sign.rule == GONE and sign.role is Role.SYMPTOM
    if is_unsure or (sign.rule == IDLE_AMONG_BUSY and sign.role is Role.EITHER):
        return msgspec.structs.replace(reading, weight=reading.weight - _FITS)
    return reading


def _late(log: Located | None) -> tuple[Finding, ...]:
    """Return the watchdogs' line, as one that names the ranks that were waited for.

    Where a rank only says that it waited, it names nobody.
    """
    root = log.root if log is not None else None
    if log is None or root is None or root.kind is not Kind.HANG or not is_line(root):
        return ()
    is_told = root.role is Role.SYMPTOM or root.family == _MISSING
    if not log.ranks or not is_told:
        return ()
    return (msgspec.structs.replace(root, ranks=log.ranks, nodes=(), tasks=()),)


def _in_the_program(heard: Heard, places: Places) -> Located | None:
    """Return that the program's ranks part ways: one or a few of each of several nodes stay out."""
    found = heard.of(NOT_JOINED)
    nodes = nodes_of(found, places)
    ranks = _ranks(found)
    if found and all(one.domain is Domain.APPLICATION for one in found):
        return stated(found[0], ONE_A_NODE, ranks=ranks, complaint=heard.silence)
    if len(nodes) < _SEVERAL or not is_most(nodes, places):
        return None
    return stated(found[0], ONE_A_NODE, ranks=ranks, complaint=heard.silence)


def _without_a_node(heard: Heard, log: Located | None, ending: Ending) -> Located | None:
    """Return what signs say that name no node; a line that tells of the hang goes before most."""
    for rule, reading in WITHOUT_A_NODE.items():
        found = heard.of(rule)
        if rule == SPIN and log is not None:
            return _told_by_log(log, heard)
        if not found or (rule == WORK and ending.state is not None):
            continue
        if rule == WORK:
            return _works(found[0], heard.silence)
        return stated(found[0], reading, ranks=_ranks(found), complaint=heard.silence)
    return _told_by_log(log, heard) if log is not None else None


def _works(sign: Finding, silence: Finding | None) -> Located:
    located = stated(sign, WITHOUT_A_NODE[WORK], complaint=silence)
    verdict = msgspec.structs.replace(located.verdict, cause=WORK_GOES_ON)
    return msgspec.structs.replace(located, verdict=verdict)


def _told_by_log(log: Located, heard: Heard) -> Located:
    seen = heard.of(SPIN) or heard.of(IDLE)
    if not seen:
        return log
    terms = [Term(what="telemetry shows that the GPUs wait", weight=_FITS)]
    return with_words(log, f"; telemetry shows the same: {said_of(seen[0])}", terms)


def _alone(silence: Finding | None) -> Located | None:
    if silence is None:
        return None
    return with_words(stated(silence, ALONE), "; nothing else that was seen says why")


def _ranks(found: Sequence[Finding]) -> tuple[int, ...]:
    return tuple(sorted({rank for one in found for rank in one.ranks}))
