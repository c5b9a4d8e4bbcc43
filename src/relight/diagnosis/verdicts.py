"""Findings and an ending to a verdict."""

from __future__ import annotations

from collections.abc import Sequence

from relight.diagnosis.cascades import Unwound, in_time_order, unwind
from relight.diagnosis.endings import (
    Ending,
    verdict_of_plain_ending,
    verdict_without_findings,
)
from relight.diagnosis.placing import Places
from relight.model.findings import Domain, Finding, Kind, Remedy, Role
from relight.model.jobs import Allocation, JobState
from relight.model.verdicts import Alternative, Suspect, Term, Verdict

_BLAMES_A_NODE = frozenset({Remedy.RESTART_EXCLUDING_NODE, Remedy.RESTART_EXCLUDING_NODE_AND_DRAIN})
_ROLE_WEIGHT = {Role.ROOT: 0.7, Role.EITHER: 0.45, Role.SYMPTOM: 0.25}
_AFTER_A_CAPITAL = frozenset(" abcdefghijklmnopqrstuvwxyz")
_MOST_SUSPECTS_SHARE = 0.5
"""When more than this share of the nodes shows the same thing, it is no longer a node's fault."""


def diagnose(
    findings: Sequence[Finding],
    allocation: Allocation,
    ending: Ending,
    logs_unseen: str = "",
) -> Verdict:
    """Return who is to blame, from findings in any order and what the scheduler says.

    The scheduler's word for an end that is no failure stands above every line; its word
    that a node went down stands above every other cause (taxonomy 1.13, first rank).
    """
    plain = verdict_of_plain_ending(ending)
    if plain is not None:
        return plain
    places = Places(findings, allocation)
    unwound = unwind(findings, places)
    lost = _lost_nodes(findings, allocation, ending)
    if lost or ending.state is JobState.NODE_FAIL:
        is_seen = bool(ending.gone_nodes) or ending.state is JobState.NODE_FAIL
        return _node_lost(lost, unwound, is_seen=is_seen)
    if unwound.root is None:
        return verdict_without_findings(ending, logs_unseen)
    return _from_root(unwound.root, unwound, findings, allocation)


def _lost_nodes(
    findings: Sequence[Finding], allocation: Allocation, ending: Ending
) -> tuple[str, ...]:
    named = [
        node
        for one in in_time_order(findings)
        if one.kind is Kind.NODE and one.task_gone
        for node in map(allocation.member, one.nodes)
        if node is not None
    ]
    gone = [node for node in ending.gone_nodes if node in allocation.nodes]
    return tuple(dict.fromkeys([*gone, *named]))


def _node_lost(lost: tuple[str, ...], unwound: Unwound, *, is_seen: bool) -> Verdict:
    source = "by the scheduler's own word" if is_seen else "by srun's word in the job's log"
    confidence = 0.95 if is_seen else 0.8
    root = unwound.root
    where = f"{', '.join(lost)} failed" if lost else "a node of the job failed"
    told = f"; before that, {clause(root.sentence)}" if root and root.kind is not Kind.NODE else ""
    share = 1 / len(lost) if lost else 0.0
    return Verdict(
        domain=Domain.HARDWARE,
        cause="node-failure",
        family="node_failure",
        kind=Kind.NODE,
        remedy=Remedy.RESTART_EXCLUDING_NODE if lost else Remedy.RESTART,
        sentence=f"{where}, {source}{told}",
        fingerprint="node-failure",
        suspects=tuple(Suspect(node=node, share=share, why=f"it failed {source}") for node in lost),
        confidence=confidence,
        terms=(Term(what=f"it failed {source}", weight=confidence),),
        root=root.id if root else "",
        evidence=root.evidence if root else (),
        set_aside=unwound.set_aside,
    )


def _from_root(
    root: Finding, unwound: Unwound, findings: Sequence[Finding], allocation: Allocation
) -> Verdict:
    places = Places(findings, allocation)
    same = [one for one in findings if one.rule == root.rule and one.role is root.role]
    located = dict.fromkeys(node for one in same for node in places.of(one))
    nodes = tuple(located) or _nodes_of_first_death(root, findings, places)
    ranks = tuple(sorted({rank for one in same for rank in one.ranks}))
    blamed = root.remedy in _BLAMES_A_NODE
    shared = blamed and _is_everywhere(nodes, allocation)
    suspects = _suspects(nodes, same, places) if blamed and not shared else ()
    terms = _terms(root, nodes, unwound, shared=shared)
    return Verdict(
        domain=root.domain,
        cause=root.rule,
        family=root.family,
        kind=root.kind,
        remedy=_remedy(root, has_suspects=bool(suspects)),
        sentence=_sentence(root, nodes, ranks),
        fingerprint=root.fingerprint or root.rule,
        suspects=suspects,
        ranks=ranks,
        confidence=round(min(0.98, max(0.05, sum(term.weight for term in terms))), 2),
        terms=terms,
        root=root.id,
        evidence=root.evidence,
        set_aside=unwound.set_aside,
        alternatives=_alternatives(unwound.rivals),
    )


def _remedy(root: Finding, *, has_suspects: bool) -> Remedy:
    """Return what usually helps; against a cause that is only known by its symptoms, one try."""
    if root.remedy in _BLAMES_A_NODE and not has_suspects:
        return Remedy.RESTART
    if root.role is Role.SYMPTOM and root.remedy is Remedy.RESTART:
        return Remedy.CONFIRM_THEN_STOP
    return root.remedy


def _nodes_of_first_death(
    root: Finding, findings: Sequence[Finding], places: Places
) -> tuple[str, ...]:
    """Return the node of the first task that the scheduler reported dead.

    Used only where the root line itself cannot be placed, and only for blame of hardware:
    whoever died first is closest to the fault (taxonomy 1.13, third rank).
    """
    if root.domain is not Domain.HARDWARE or root.nodes:
        return ()
    for one in in_time_order([one for one in findings if one.task_gone]):
        nodes = places.of(one)
        if len(nodes) == 1:
            return nodes
    return ()


def _is_everywhere(nodes: tuple[str, ...], allocation: Allocation) -> bool:
    count = len(allocation.nodes)
    return count > 2 and len(nodes) > count * _MOST_SUSPECTS_SHARE  # noqa: PLR2004 - of two nodes, one is no majority


def _suspects(
    nodes: tuple[str, ...], same: Sequence[Finding], places: Places
) -> tuple[Suspect, ...]:
    share = round(1 / len(nodes), 3) if nodes else 0.0
    return tuple(
        Suspect(node=node, share=share, why=_why_there(node, same, places)) for node in nodes
    )


def _why_there(node: str, same: Sequence[Finding], places: Places) -> str:
    for one in same:
        if node in places.of(one):
            if one.nodes:
                return "the line names it"
            if one.ranks:
                return f"rank {one.ranks[0]}, which printed the line, ran there"
            if one.tasks:
                return f"task {one.tasks[0]}, which printed the line, ran there"
            return "the job ran nowhere else"
    return "the first task that died was there"


def _terms(
    root: Finding, nodes: tuple[str, ...], unwound: Unwound, *, shared: bool
) -> tuple[Term, ...]:
    terms = [Term(what=f"the evidence is of role {root.role}", weight=_ROLE_WEIGHT[root.role])]
    if nodes and not shared:
        terms.append(Term(what="it points at a node of this job", weight=0.15))
    if shared:
        terms.append(Term(what="most nodes show the same, so none is blamed", weight=-0.2))
    if unwound.rivals:
        terms.append(Term(what="other causes are possible", weight=-0.1))
    else:
        terms.append(Term(what="nothing else explains it", weight=0.1))
    return tuple(terms)


def _sentence(root: Finding, nodes: tuple[str, ...], ranks: tuple[int, ...]) -> str:
    said = clause(root.sentence)
    where = ""
    if ranks and not any(f"rank {rank}" in said for rank in ranks):
        shown = ", ".join(str(rank) for rank in ranks[:4]) + (", …" if len(ranks) > 4 else "")  # noqa: PLR2004 - as many as fit a sentence
        where = f" on rank{'s' if len(ranks) > 1 else ''} {shown}"
    if nodes and not all(node in said for node in nodes):
        where += f" ({', '.join(nodes[:3])}{', …' if len(nodes) > 3 else ''})"  # noqa: PLR2004 - likewise
    return said + where


def clause(sentence: str) -> str:
    """Return a sentence as part of another: without full stop, its first word uncapitalised."""
    words = sentence.rstrip(". ")
    starts_plainly = len(words) > 1 and words[0].isupper() and words[1] in _AFTER_A_CAPITAL
    return words[0].lower() + words[1:] if starts_plainly else words


def _alternatives(rivals: Sequence[Finding]) -> tuple[Alternative, ...]:
    seen: dict[str, Finding] = {}
    for one in rivals:
        seen.setdefault(one.rule, one)
    return tuple(
        Alternative(
            cause=one.rule,
            domain=one.domain,
            confidence=round(_ROLE_WEIGHT[one.role] / 2, 2),
            why=one.sentence,
        )
        for one in list(seen.values())[:5]
    )
