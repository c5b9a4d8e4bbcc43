"""Whose fault it is that a collective did not end, as far as the ranks' own records tell."""

from __future__ import annotations

from typing import assert_never

from relight.model.findings import Domain, Remedy, Role
from relight.model.records import Record
from relight.perception.flights.blocking import Blocked, Why
from relight.perception.flights.placing import Ground, Lie, Spot
from relight.perception.flights.roots import Root

NOT_JOINED = "rank-not-joined"
IN_TRANSPORT = "rank-stuck-in-transport"
MISMATCH = "collective-mismatch"
BLOCKED = "stream-blocked"
NO_DUMP = "rank-left-no-dump"
"""Others wait for ranks of whom no dump was read: whether these came is not known."""


class Accused(Record, frozen=True, kw_only=True):
    """What a finding says: its rule, the ranks and nodes that it names, and how they lie."""

    rule: str
    role: Role
    domain: Domain
    remedy: Remedy
    ranks: tuple[int, ...] = ()
    nodes: tuple[str, ...] = ()
    spot: Spot = Spot(lie=Lie.UNKNOWN)


def accuse(root: Root, ground: Ground) -> Accused:
    """Return what is said of one collective that did not end.

    A quarrel about what is called is the program's, wherever the ranks run: it names no node. A
    rank that left no dump is not accused, for a dump can be missing for many reasons.
    """
    stuck = root.stuck
    if root.is_ring:
        return Accused(
            rule=MISMATCH,
            role=Role.EITHER,
            domain=Domain.APPLICATION,
            remedy=Remedy.CONFIRM_THEN_STOP,
            ranks=stuck.waiting,
        )
    match stuck.why:
        case Why.MISMATCH:
            return Accused(
                rule=MISMATCH,
                role=Role.ROOT,
                domain=Domain.APPLICATION,
                remedy=Remedy.STOP,
                ranks=root.late,
            )
        case Why.NOT_JOINED:
            return _not_joined(root, ground)
        case Why.NOT_STARTED:
            return _blocked(root, ground)
        case Why.IN_TRANSPORT:
            return _in_transport(stuck, ground)
        case _:
            assert_never(stuck.why)


def _not_joined(root: Root, ground: Ground) -> Accused:
    late = root.late
    spot = ground.spot(late)
    is_most = not _is_few(late, root.stuck) and spot.lie not in (Lie.WHOLE_NODE, Lie.WHOLE_NODES)
    if is_most or spot.lie is Lie.SAME_PLACE:
        return Accused(
            rule=NOT_JOINED,
            role=Role.EITHER,
            domain=Domain.APPLICATION,
            remedy=Remedy.CONFIRM_THEN_STOP,
            ranks=late,
            spot=spot,
        )
    if spot.lie in (Lie.UNKNOWN, Lie.SCATTERED):
        return Accused(
            rule=NOT_JOINED,
            role=Role.EITHER,
            domain=Domain.UNKNOWN,
            remedy=Remedy.RESTART,
            ranks=late,
            spot=spot,
        )
    is_part = spot.lie is Lie.PART_OF_NODE
    return Accused(
        rule=NOT_JOINED,
        role=Role.ROOT if spot.lie is Lie.WHOLE_NODE else Role.EITHER,
        domain=Domain.UNKNOWN if is_part else Domain.HARDWARE,
        remedy=Remedy.RESTART_EXCLUDING_NODE,
        ranks=late,
        nodes=spot.nodes,
        spot=spot,
    )


def _blocked(root: Root, ground: Ground) -> Accused:
    """Accuse the few on which it has not started; where it has on none, nobody is singled out."""
    few = root.late if _is_few(root.late, root.stuck) else ()
    return _singled_out(BLOCKED, few, ground, Domain.UNKNOWN)


def _in_transport(stuck: Blocked, ground: Ground) -> Accused:
    """Accuse the few that do not see the end of what others saw the end of."""
    if stuck.missing and not stuck.done:
        return Accused(
            rule=NO_DUMP, role=Role.SYMPTOM, domain=Domain.UNKNOWN, remedy=Remedy.RESTART
        )
    few = stuck.waiting if stuck.done and _is_few(stuck.waiting, stuck) else ()
    return _singled_out(IN_TRANSPORT, few, ground, Domain.NETWORK)


def _singled_out(rule: str, ranks: tuple[int, ...], ground: Ground, otherwise: Domain) -> Accused:
    spot = ground.spot(ranks)
    is_placed = len(spot.nodes) == 1
    return Accused(
        rule=rule,
        role=Role.EITHER,
        domain=Domain.HARDWARE if is_placed else otherwise,
        remedy=Remedy.RESTART_EXCLUDING_NODE if is_placed else Remedy.RESTART,
        ranks=ranks,
        nodes=spot.nodes if is_placed else (),
        spot=spot,
    )


def _is_few(ranks: tuple[int, ...], stuck: Blocked) -> bool:
    """Tell whether ranks are no more than half of those of whom it is known."""
    known = {*stuck.waiting, *stuck.late, *stuck.done}
    return 0 < len(ranks) * 2 <= len(known)
