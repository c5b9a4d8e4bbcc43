"""Cascades unwound: which finding is the root, and why the others are not.

One dead rank makes all others complain, and the loudest complaint comes last and from the
healthy ones. So symptoms are dropped first; of what is left, the earliest over all ranks
is the root (law 6; taxonomy, section 0 and section 5).
"""

from __future__ import annotations

from collections.abc import Sequence

from relight.diagnosis.placing import Places
from relight.model.findings import Domain, Finding, Kind, Role
from relight.model.instants import later, seconds
from relight.model.records import Record
from relight.model.verdicts import SetAside

CLOCK_SLACK = seconds(60)
"""A line's clock may be ahead of ours by this much."""

_MACHINE = frozenset({Domain.HARDWARE})
_PEOPLE = frozenset({Domain.APPLICATION, Domain.USER})


class Unwound(Record, frozen=True, kw_only=True):
    """The root, other findings that could be one (in order), and what was set aside."""

    root: Finding | None = None
    rivals: tuple[Finding, ...] = ()
    set_aside: tuple[SetAside, ...] = ()


def unwind(findings: Sequence[Finding], places: Places) -> Unwound:
    """Return the root of a cascade.

    Roots go before findings that need company (``either``), those before symptoms, and
    within one role the earliest wins. A hardware root on a node of this job goes before an
    earlier user error, because trust in it is higher (taxonomy 1.13): both are then told.
    """
    foreign = [one for one in findings if places.is_foreign(one)]
    own = [one for one in findings if not places.is_foreign(one)]
    tellers = [one for one in own if one.kind is not Kind.ENDING]
    candidates = in_time_order(_strongest(tellers))
    root = _trusted(candidates, places)
    aside = [_named_another(one) for one in foreign]
    if root is None:
        return Unwound(set_aside=tuple(aside))
    rivals = [one for one in candidates if one.rule != root.rule]
    known = {one.id for one in candidates}
    aside += [_explain(one, root) for one in in_time_order(own) if one.id not in known]
    return Unwound(root=root, rivals=tuple(rivals), set_aside=tuple(aside))


def in_time_order(findings: Sequence[Finding]) -> list[Finding]:
    """Return findings by time: by the lines' own clocks where these can be believed.

    Else by when they were read. Within one file the place decides; it needs no clock.
    """
    have_clock = _clocks_agree(findings)

    def when(one: Finding) -> tuple[int, str, int, str]:
        at = one.at if have_clock and one.at is not None else one.seen_at
        return (at, *_place(one), one.id)

    return sorted(findings, key=when)


def _clocks_agree(findings: Sequence[Finding]) -> bool:
    """Tell whether every line prints a time, none lies ahead, and none runs against its file.

    A time without a zone is read as UTC: one zone for all keeps the order, two do not.
    """
    latest: dict[str, int] = {}
    for one in sorted(findings, key=lambda one: (*_place(one), one.at or 0)):
        if one.at is None or one.at > later(one.seen_at, CLOCK_SLACK):
            return False
        file = one.place.file if one.place else one.id
        if one.at < latest.get(file, one.at):
            return False
        latest[file] = one.at
    return True


def _place(one: Finding) -> tuple[str, int]:
    return (one.place.file, one.place.offset) if one.place else ("", 0)


def _strongest(findings: Sequence[Finding]) -> list[Finding]:
    for role in (Role.ROOT, Role.EITHER, Role.SYMPTOM):
        chosen = [one for one in findings if one.role is role]
        if chosen:
            return chosen
    return []


def _trusted(candidates: Sequence[Finding], places: Places) -> Finding | None:
    if not candidates:
        return None
    first = candidates[0]
    if first.domain in _PEOPLE:
        for one in candidates[1:]:
            if one.domain in _MACHINE and places.of(one):
                return one
    return first


def _named_another(one: Finding) -> SetAside:
    hosts = ", ".join(one.nodes[:3])
    return SetAside(
        finding=one.id,
        rule=one.rule,
        why=f"it names {hosts}, which is not a node of this job",
    )


def _explain(one: Finding, root: Finding) -> SetAside:
    if one.kind is Kind.ENDING:
        why = "it tells how the run was ended, not what broke"
    elif one.role is Role.SYMPTOM:
        why = "it only shows that something else broke"
    else:
        why = f"{root.rule} is stronger evidence"
    return SetAside(finding=one.id, rule=one.rule, why=why)
