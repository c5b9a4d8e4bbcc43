"""Cascades unwound: which finding is the root, and why the others are not.

One dead rank makes all others complain, and the loudest complaint comes last and from the
healthy ones. So symptoms are dropped first; of what is left, the earliest over all ranks
is the root (law 6).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from relight.diagnosis.clocks import CLOCK_SLACK, in_time_order
from relight.diagnosis.placing import Places
from relight.diagnosis.sifting import is_mere_warning
from relight.model.findings import Domain, Finding, Kind, Remedy, Role
from relight.model.records import Record
from relight.model.verdicts import SetAside

__all__ = ("CLOCK_SLACK", "Unwound", "in_time_order", "unwind")

_MACHINE = frozenset({Domain.HARDWARE})
_PEOPLE = frozenset({Domain.APPLICATION, Domain.USER})
_DIED = frozenset({"process_killed_sigkill", "host_oom_kill", "segfault", "shm_exhausted"})
_WARNED_ROOT, _WARNED_EITHER, _DEAD, _IN_ORDER, _REPORTED = 2, 3, 4, 5, 6
"""How near to a cause findings are, after roots (0) and those that need company (1)."""
_WRAPPED = frozenset({"nccl_init_failed"})
_LAST_ERRORS = frozenset(
    {"nccl_socket_connect_failed", "nccl_remote_error", "nccl_ib_completion_error"}
)
"""Families of what NCCL prints below its general error as the last one it met."""
_ONE_MESSAGE = 4
"""Lines over which one message stretches."""
_LOST = frozenset({"worker_process_lost", "user_code_exception"})
_AGAIN = "it tells the same as the line that was chosen"


class Unwound(Record, frozen=True, kw_only=True):
    """The root, other findings that could be one (in order), and what was set aside."""

    root: Finding | None = None
    rivals: tuple[Finding, ...] = ()
    set_aside: tuple[SetAside, ...] = ()


def unwind(findings: Sequence[Finding], places: Places) -> Unwound:
    """Return the root of a cascade.

    Roots go before findings that need company (``either``), those before symptoms, and
    within one role the earliest wins. A hardware root on a node of this job goes before an
    earlier user error, because trust in it is higher: both are then told.
    The scheduler's word that a node failed goes before all but broken hardware.
    A line that calls itself a warning goes behind those that do not.
    """
    foreign = [one for one in findings if places.is_foreign(one)]
    own = [one for one in findings if not places.is_foreign(one)]
    tellers = [one for one in own if one.kind is not Kind.ENDING and one.role is not Role.BENIGN]
    candidates = _strongest(in_time_order(tellers))
    root = _trusted(candidates, places)
    aside = [_named_another(one) for one in foreign]
    if root is None:
        return Unwound(set_aside=(*aside, *unheard(own)))
    rivals = [one for one in candidates if one.rule != root.rule]
    known = {one.id for one in candidates}
    aside += [_explain(one, root) for one in in_time_order(own) if one.id not in known]
    again = [one for one in candidates if one.rule == root.rule and one.id != root.id]
    aside += [SetAside(finding=one.id, rule=one.rule, why=_AGAIN) for one in again]
    return Unwound(root=root, rivals=tuple(rivals), set_aside=tuple(aside))


def _strongest(ordered: Sequence[Finding]) -> list[Finding]:
    told = _Told()
    strength: dict[str, int] = {}
    for one in ordered:
        strength[one.id] = _strength(one, told)
        told.hears(one)
    best = min(strength.values(), default=0)
    return [one for one in ordered if strength[one.id] == best]


class _Told:
    """What was told before a line: that ranks waited, and where symptoms were printed."""

    def __init__(self) -> None:
        self.of_waiting = False
        self.files: set[str] = set()
        self.with_time = False

    def hears(self, one: Finding) -> None:
        """Take in one more finding."""
        if one.role is not Role.SYMPTOM or one.remedy is Remedy.REPORT or is_mere_warning(one):
            return
        self.of_waiting = self.of_waiting or one.kind is Kind.HANG
        self.with_time = self.with_time or one.at is not None
        if one.place is not None:
            self.files.add(one.place.file)

    def of_trouble_before(self, one: Finding) -> bool:
        """Tell whether a symptom is known to have come before."""
        in_file = one.place is not None and one.place.file in self.files
        return in_file or (self.with_time and one.at is not None)


def _strength(one: Finding, told: _Told) -> int:
    """Return how near to a cause a finding is by nature, 0 the nearest.

    An exception that says nothing of its cause and that no mistake in code raises is a
    consequence when it comes after symptoms: parents and clean-up raise such.
    """
    match one.role:
        case Role.ROOT:
            return _WARNED_ROOT if is_mere_warning(one) else 0
        case Role.EITHER:
            is_vague = one.family in _LOST and one.remedy is not Remedy.STOP
            if is_vague and told.of_trouble_before(one):
                return _IN_ORDER
            return _WARNED_EITHER if is_mere_warning(one) else 1
        case Role.SYMPTOM | Role.BENIGN:
            return _nearness(one, told)
        case _:
            assert_never(one.role)


def _nearness(one: Finding, told: _Told) -> int:
    """Return how near to the cause a symptom is; most are told apart by time alone.

    Who died by force is nearer than who lost a peer, though it is reported later; but ranks
    that waited for each other are killed in the end. What only reports that something was
    ended from outside comes last.
    """
    if one.remedy is Remedy.REPORT or is_mere_warning(one):
        return _REPORTED
    if one.family in _DIED and not told.of_waiting:
        return _DEAD
    return _IN_ORDER


def _trusted(candidates: Sequence[Finding], places: Places) -> Finding | None:
    if not candidates:
        return None
    at_once = [one for one in candidates if _is_same_line(one, candidates[0])]
    first = _more_telling(min(at_once, key=_vagueness), candidates)
    if first.domain not in _MACHINE:
        for one in candidates:
            if one.kind is Kind.NODE and one.task_gone:
                return one
    if first.domain in _PEOPLE:
        for one in candidates[1:]:
            if one.domain in _MACHINE and places.of(one):
                return one
    return first


def _more_telling(first: Finding, candidates: Sequence[Finding]) -> Finding:
    """Return the line of the same message that tells more than its first.

    That names who did not come, or is what NCCL calls its last error.
    """
    place = first.place
    if place is None:
        return first
    for one in candidates:
        beside = one.place
        if beside is None or beside.file != place.file:
            continue
        if not 0 < beside.line - place.line <= _ONE_MESSAGE:
            continue
        names_ranks = one.rule == first.rule and one.ranks and one.role is not Role.SYMPTOM
        if first.kind is Kind.HANG and not first.ranks and names_ranks:
            return one
        if first.family in _WRAPPED and one.family in _LAST_ERRORS:
            return one
    return first


def _is_same_line(one: Finding, other: Finding) -> bool:
    if one.place is None:
        return one is other
    return one.place == other.place and one.seen_at == other.seen_at


def _vagueness(one: Finding) -> tuple[bool, bool, bool, str]:
    """Return how little a finding says of its cause: of two on one line the clearer counts."""
    is_vague = one.family in _LOST
    return (is_vague, one.domain is Domain.UNKNOWN, one.kind is not Kind.NODE, one.rule)


def _named_another(one: Finding) -> SetAside:
    hosts = ", ".join(one.nodes[:3])
    return SetAside(
        finding=one.id,
        rule=one.rule,
        why=f"it names {hosts}, which is not a node of this job",
    )


def unheard(findings: Sequence[Finding]) -> tuple[SetAside, ...]:
    """Return findings that accuse where nothing is accused, each with why it is not heard."""
    return tuple(
        SetAside(
            finding=one.id,
            rule=one.rule,
            why=_by_nature(one) or "nothing shows that it broke the run",
        )
        for one in in_time_order(findings)
    )


def passed_over(rivals: Sequence[Finding], cause: str, family: str) -> tuple[SetAside, ...]:
    """Return rivals that are told as no cause beside ``cause`` of ``family``, each with why."""
    same, other = f"it tells of the same trouble as {cause}", f"{cause} is likelier"
    return tuple(
        SetAside(
            finding=one.id,
            rule=one.rule,
            why=_by_nature(one) or (same if one.family == family else other),
        )
        for one in rivals
    )


def _explain(one: Finding, root: Finding) -> SetAside:
    why = _by_nature(one) or f"{root.rule} is stronger evidence"
    return SetAside(finding=one.id, rule=one.rule, why=why)


def _by_nature(one: Finding) -> str:
    if one.kind is Kind.ENDING:
        return "it tells how the run was ended, not what broke"
    if one.role is Role.BENIGN:
        return "it looks alarming and is harmless"
    return "it only shows that something else broke" if one.role is Role.SYMPTOM else ""
