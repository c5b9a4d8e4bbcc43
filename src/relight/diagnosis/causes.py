"""Events to a verdict: the node that was lost, or the root of a cascade and where that lies."""

from __future__ import annotations

from collections.abc import Sequence

from relight.diagnosis import confidences
from relight.diagnosis.cascades import Unwound, passed_over, unwind
from relight.diagnosis.clocks import in_time_order
from relight.diagnosis.courses import Course
from relight.diagnosis.culprits import common_end
from relight.diagnosis.endings import Ending
from relight.diagnosis.forerunners import with_cause, with_lone_work, with_sender
from relight.diagnosis.locating import (
    CONNECTIONS,
    is_located,
    nodes_of_cause,
    only_host_of_trouble,
    rank_that_died,
    ranks_of_cause,
)
from relight.diagnosis.placing import Places
from relight.diagnosis.reaching import domain_of, extent_of, remedy_of
from relight.diagnosis.sentences import clause, plainly, sentence_of
from relight.model.findings import Domain, Finding, Kind, Provenance, Remedy, Role
from relight.model.jobs import Allocation, JobState
from relight.model.records import Record
from relight.model.verdicts import Alternative, Suspect, Term, Verdict

_BLAMES_A_NODE = frozenset({Remedy.RESTART_EXCLUDING_NODE, Remedy.RESTART_EXCLUDING_NODE_AND_DRAIN})
_NEEDS_ANOTHER_NODE = frozenset({Domain.APPLICATION, Domain.USER, Domain.SYSTEM_SOFTWARE})
"""Domains of causes that an exit alone does not make those of its node."""
_MOST_SUSPECTS_SHARE = 0.5
"""When more than this share of the nodes shows the same thing, it is no longer a node's fault."""
_MOST_ALTERNATIVES = 5


class Located(Record, frozen=True, kw_only=True):
    """A verdict with the finding it rests on and where that lies.

    ``nodes`` and ``ranks`` are where the cause lies, whoever is to blame; ``remedy`` is what
    the cause asks for, also where no node can be named for it.
    """

    verdict: Verdict
    root: Finding | None = None
    nodes: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    remedy: Remedy = Remedy.REPORT


def of_events(
    findings: Sequence[Finding], places: Places, ending: Ending, course: Course | None = None
) -> Located | None:
    """Return the verdict that events lead to and where its cause lies, None without one."""
    unwound = unwind(findings, places)
    lost = _lost_nodes(findings, places, ending)
    if lost or ending.state is JobState.NODE_FAIL:
        return _node_lost(lost, unwound, findings, places, ending)
    if unwound.root is None:
        return None
    return from_root(unwound.root, unwound, findings, places, course or Course())


def _lost_nodes(findings: Sequence[Finding], places: Places, ending: Ending) -> tuple[str, ...]:
    named = [
        node
        for one in in_time_order(findings)
        if one.kind is Kind.NODE and one.task_gone and one.role is not Role.BENIGN
        for node in map(places.member, one.nodes)
        if node is not None
    ]
    gone = [node for node in ending.gone_nodes if node in places.allocation.nodes]
    return tuple(dict.fromkeys([*gone, *named]))


def _node_lost(
    lost: tuple[str, ...],
    unwound: Unwound,
    findings: Sequence[Finding],
    places: Places,
    ending: Ending,
) -> Located:
    naming = [one for one in in_time_order(findings) if one.kind is Kind.NODE and one.task_gone]
    is_seen = bool(ending.gone_nodes) or ending.state is JobState.NODE_FAIL
    is_seen = is_seen or any(one.provenance is Provenance.SCHEDULER for one in naming)
    source = "by the scheduler's own word" if is_seen else "by srun's word in the job's log"
    confidence = 0.95 if is_seen else 0.8
    possible = [one for one in (unwound.root, *unwound.rivals) if one is not None]
    before = next((one for one in possible if one.kind is not Kind.NODE), None)
    told = ""
    if before is not None:
        told = f"; before that, {clause(plainly(before.sentence))}"
    where = "a node of the job failed"
    if lost:
        where = f"{'node' if len(lost) == 1 else 'nodes'} {', '.join(lost)} failed"
    share = 1 / len(lost) if lost else 0.0
    root = before or unwound.root
    if naming and not is_seen and not _led_to_loss(before, lost, places):
        root = naming[0]
    others = [one for one in possible if one is not root]
    remedy = Remedy.RESTART_EXCLUDING_NODE if lost else Remedy.RESTART
    verdict = Verdict(
        domain=Domain.HARDWARE,
        cause="node-failure",
        family="node_failure",
        kind=Kind.NODE,
        remedy=remedy,
        sentence=f"{where}, {source}{told}",
        fingerprint="node-failure",
        suspects=tuple(Suspect(node=node, share=share, why=f"it failed {source}") for node in lost),
        confidence=confidence,
        terms=(Term(what=f"it failed {source}", weight=confidence),),
        root=root.id if root else "",
        evidence=root.evidence if root else (),
        set_aside=(
            *unwound.set_aside,
            *passed_over(others, "node-failure", "node_failure"),
        ),
    )
    return Located(verdict=verdict, root=root, nodes=lost, remedy=remedy)


def _led_to_loss(root: Finding | None, lost: tuple[str, ...], places: Places) -> bool:
    """Tell whether a root lies on the node that was lost, and not in what ran there."""
    if root is None or root.role is not Role.ROOT:
        return False
    nodes = places.of(root)
    is_own = root.domain in (Domain.HARDWARE, Domain.SYSTEM_SOFTWARE)
    return is_own and bool(nodes) and set(nodes) <= set(lost)


def from_root(
    root: Finding,
    unwound: Unwound,
    findings: Sequence[Finding],
    places: Places,
    course: Course,
) -> Located:
    """Return the verdict whose cause is ``root``, one of ``findings``."""
    same = [one for one in findings if one.rule == root.rule and one.role is root.role]
    root = with_lone_work(with_cause(with_sender(root, findings), findings))
    extent = extent_of(same, findings, places)
    remedy = remedy_of(root, extent, course)
    ranks = ranks_of_cause(root, same, findings, places)
    nodes = nodes_of_cause(root, same, findings, places)
    common = common_end(findings) if root.family in CONNECTIONS else None
    member = _member(common, places) if common else None
    if member is not None:
        nodes, remedy = (member,), Remedy.RESTART_EXCLUDING_NODE
    is_certain = is_located(root) or member is not None
    blamed = remedy in _BLAMES_A_NODE
    shared = blamed and _is_everywhere(nodes, places.allocation)
    suspects = _suspects(nodes, same, places) if blamed and not shared else ()
    rivals = _other_causes(root, unwound.rivals)
    terms = confidences.terms_of(
        root, points_at_node=bool(nodes) and is_certain, is_shared=shared, rivals=rivals
    )
    told = _alternatives(rivals)
    causes = {one.cause for one in told}
    dropped = [one for one in unwound.rivals if one.rule not in causes and one.id != root.id]
    verdict = Verdict(
        domain=domain_of(root, extent),
        cause=root.rule,
        family=root.family,
        kind=root.kind,
        remedy=_safe_remedy(root, remedy, has_suspects=bool(suspects)),
        sentence=sentence_of(root, nodes if is_certain else (), ranks),
        fingerprint=root.fingerprint or root.rule,
        suspects=suspects,
        ranks=ranks,
        confidence=confidences.total(terms),
        terms=terms,
        root=root.id,
        evidence=root.evidence,
        set_aside=(*unwound.set_aside, *passed_over(dropped, root.rule, root.family)),
        alternatives=told,
    )
    named = nodes if is_certain else ()
    if not named:
        named = only_host_of_trouble(root, findings, places)
        if named and root.domain in _NEEDS_ANOTHER_NODE and not places.stopped_nodes() - {*named}:
            remedy = _safe_remedy(root, remedy, has_suspects=False)
    ranks = ranks or rank_that_died(named, root, findings, places)
    wanted = Remedy.RESTART if shared else remedy
    return Located(verdict=verdict, root=root, nodes=named, ranks=ranks, remedy=wanted)


def _member(host: str, places: Places) -> str | None:
    """Return the job's own name for a peer; where the job's nodes are not known, as printed."""
    return places.member(host) or (None if places.is_whole else host)


def _safe_remedy(root: Finding, remedy: Remedy, *, has_suspects: bool) -> Remedy:
    """Return what usually helps; against a cause that is only known by its symptoms, one try."""
    if remedy in _BLAMES_A_NODE and not has_suspects:
        return Remedy.RESTART
    if root.role is Role.SYMPTOM and remedy is Remedy.RESTART:
        return Remedy.CONFIRM_THEN_STOP
    return remedy


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
    if any(one.peers for one in same):
        return "most of the connections that failed end there"
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


def _other_causes(root: Finding, rivals: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the rivals that would be another cause, and not another word for the same.

    One symptom more of what broke says nothing else, unless it says whose fault that was.
    """
    return tuple(
        one
        for one in rivals
        if one.family != root.family
        and (one.role is not Role.SYMPTOM or one.domain not in (Domain.UNKNOWN, root.domain))
    )


def _alternatives(rivals: Sequence[Finding]) -> tuple[Alternative, ...]:
    seen: dict[str, Finding] = {}
    for one in rivals:
        seen.setdefault(one.rule, one)
    return tuple(
        Alternative(
            cause=one.rule,
            domain=one.domain,
            confidence=confidences.of_rival(one),
            why=plainly(one.sentence),
        )
        for one in list(seen.values())[:_MOST_ALTERNATIVES]
    )
