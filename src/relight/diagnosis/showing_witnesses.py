"""What the other witnesses say of a verdict: who says so too, who says otherwise, and who neither.

Nothing that was found is passed over in silence: it strengthens, it contradicts and stands as an
alternative, or it is set aside with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from relight.diagnosis.cascades import passed_over
from relight.diagnosis.causes import Located
from relight.diagnosis.placing import Places
from relight.diagnosis.stating import said_of, with_words
from relight.diagnosis.witnesses import (
    GONE,
    PATTERNS,
    RECORDS,
    REFUSED,
    SILENCE,
    STRAGGLERS,
    WORK,
    Heard,
    is_accusing,
    is_hard,
    is_line,
    is_most,
    voice_of,
)
from relight.model.findings import Domain, Evidence, Finding, Kind, Remedy, Role
from relight.model.verdicts import Alternative, SetAside, Term

_FIRST_AGREES, _NEXT_AGREES, _DIFFERS = 0.15, 0.05, -0.15
_MOST_VOICES = 3
_LINES_EACH = 2
"""Lines of evidence that are shown of each witness."""
_MOST_ALTERNATIVES = 5
_CONTRADICTING = 0.25
"""Confidence of a cause that a witness points at and that another was preferred to."""
_PEOPLE = frozenset({Domain.APPLICATION, Domain.USER})


def explained(located: Located, heard: Heard, places: Places) -> Located:
    """Return a verdict with all that the other findings have to say of it."""
    agreeing, differing = _sides(located, heard, places)
    located = _with_agreement(located, agreeing, places)
    located = _with_contradiction(located, differing, places)
    located = _with_work(located, heard)
    shown = [*agreeing, *differing]
    return _with_the_rest(located, shown, agreeing, heard)


def _sides(located: Located, heard: Heard, places: Places) -> tuple[list[Finding], list[Finding]]:
    """Return the findings that speak against the same nodes, and those against others.

    What most nodes show speaks against none.
    """
    blamed = {one.node for one in located.verdict.suspects} or set(located.nodes)
    root = located.root.id if located.root is not None else ""
    agreeing: list[Finding] = []
    differing: list[Finding] = []
    for one in (*heard.events, *heard.signs):
        where = set(places.of(one))
        if one.id == root or not where or not _speaks_up(one, located):
            continue
        if where & blamed:
            agreeing.append(one)
        elif not is_most(where, places):
            differing.append(one)
    return agreeing, _not_of_most(differing, places)


def _not_of_most(differing: list[Finding], places: Places) -> list[Finding]:
    nodes = {rule: set[str]() for rule in (one.rule for one in differing)}
    for one in differing:
        nodes[one.rule].update(places.of(one))
    return [one for one in differing if not is_most(nodes[one.rule], places)]


def _speaks_up(one: Finding, located: Located) -> bool:
    if located.verdict.remedy is Remedy.HOLD and is_hard(one):
        return False
    if is_line(one):
        return one.role is Role.ROOT and one.domain is Domain.HARDWARE and one.kind is Kind.NODE
    if one.kind is Kind.SLOW:
        return located.verdict.kind is Kind.SLOW and one.domain is not Domain.STORAGE
    return is_accusing(one)


def _with_agreement(located: Located, agreeing: Sequence[Finding], places: Places) -> Located:
    root = located.root
    own = voice_of(root, places.of(root)) if root is not None else ""
    voices = [
        voice
        for voice in dict.fromkeys(voice_of(one, places.of(one)) for one in agreeing)
        if voice != own
    ][:_MOST_VOICES]
    if not voices or located.verdict.domain in _PEOPLE:
        return located
    terms = [
        Term(what=f"{voice} says so too", weight=_NEXT_AGREES if number else _FIRST_AGREES)
        for number, voice in enumerate(voices)
    ]
    verb = "says" if len(voices) == 1 else "say"
    return with_words(located, f"; {_listed(voices)} {verb} so too", terms)


def _with_contradiction(located: Located, differing: Sequence[Finding], places: Places) -> Located:
    by_rule: dict[str, Finding] = {}
    for one in differing:
        if one.rule != located.verdict.cause:
            by_rule.setdefault(one.rule, one)
    if not by_rule:
        return located
    told = [_alternative(one, places) for one in by_rule.values()]
    known = {one.cause for one in told}
    kept = [one for one in located.verdict.alternatives if one.cause not in known]
    verdict = msgspec.structs.replace(
        located.verdict, alternatives=(*told, *kept)[:_MOST_ALTERNATIVES]
    )
    first = next(iter(by_rule.values()))
    nodes = places.of(first)
    words = f"; but {voice_of(first)} points at {', '.join(nodes)}: {said_of(first)}"
    terms = [Term(what=f"{voice_of(first)} points elsewhere", weight=_DIFFERS)]
    return with_words(msgspec.structs.replace(located, verdict=verdict), words, terms)


def _alternative(one: Finding, places: Places) -> Alternative:
    nodes = places.of(one)
    return Alternative(
        cause=one.rule,
        domain=one.domain,
        confidence=_CONTRADICTING,
        why=f"{voice_of(one)} points at {', '.join(nodes)}: {said_of(one)}",
    )


def _with_work(located: Located, heard: Heard) -> Located:
    """Return a verdict with the word of telemetry that work goes on, where it says otherwise."""
    works = heard.of(WORK)
    root = located.root.rule if located.root is not None else ""
    if not works or root == WORK or located.verdict.kind is Kind.SLOW:
        return located
    terms = [Term(what="telemetry shows that work goes on", weight=_DIFFERS)]
    return with_words(located, f"; but telemetry shows otherwise: {said_of(works[0])}", terms)


def _with_the_rest(
    located: Located, shown: Sequence[Finding], agreeing: Sequence[Finding], heard: Heard
) -> Located:
    verdict = located.verdict
    told = {one.cause for one in verdict.alternatives}
    # What is kept as an alternative, or says the same, is not set aside for another reason too.
    same = {one.id: one for one in agreeing}
    before = [one for one in (*heard.set_aside, *verdict.set_aside) if one.finding not in same]
    known = {one.finding for one in before} | {verdict.root}
    said = f"it tells of the same trouble as {verdict.cause}"
    aside = [*before, *(SetAside(finding=one.id, rule=one.rule, why=said) for one in agreeing)]
    known |= set(same)
    left = [
        one
        for one in (*heard.complaints, *heard.events, *heard.signs, *heard.remarks)
        if one.id not in known and one.rule not in told
    ]
    aside += [one for finding in left for one in _set_aside(finding, located)]
    evidence = (*verdict.evidence, *_evidence([*heard.complaints, *shown], verdict.root))
    return msgspec.structs.replace(
        located,
        verdict=msgspec.structs.replace(verdict, set_aside=tuple(aside), evidence=evidence),
    )


def _set_aside(one: Finding, located: Located) -> tuple[SetAside, ...]:
    why = _why(one) if one.rule != located.verdict.cause else ""
    if why:
        return (SetAside(finding=one.id, rule=one.rule, why=why),)
    return passed_over([one], located.verdict.cause, located.verdict.family)


def _why(one: Finding) -> str:
    if one.rule == REFUSED:
        return "what the ranks recorded is not safe to read, so it was not read"
    if one.rule == GONE:
        return "the telemetry of most nodes stopped, which is the trouble of who collects it"
    if one.rule in PATTERNS or one.rule in RECORDS:
        return "it shows how the ranks wait, and not why"
    if one.rule in STRAGGLERS:
        return "it makes a run slow, and breaks nothing"
    if one.kind is Kind.SLOW:
        return "a slow run does not end by itself"
    if not is_line(one) and one.remedy is Remedy.REPORT and one.role is Role.EITHER:
        return "it says nothing of a fault"
    return "it only shows that something else broke" if one.rule == SILENCE else ""


def _evidence(shown: Iterable[Finding], root: str) -> tuple[Evidence, ...]:
    """Return the lines of other findings, of each witness a few."""
    counts: dict[str, int] = {}
    lines: list[Evidence] = []
    for one in shown:
        voice = f"{one.provenance}-{one.detector}"
        text = next((line for line in one.evidence if line.is_root), None)
        if one.id == root or text is None or counts.get(voice, 0) >= _LINES_EACH:
            continue
        counts[voice] = counts.get(voice, 0) + 1
        lines.append(msgspec.structs.replace(text, is_root=False))
    return tuple(lines)


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
