"""Which of the collectives that did not end waits for nothing but itself.

Ranks that wait in one group are late in the next: they are victims. So a group tells something
only where the ranks that it lacks wait nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relight.perception.flights.blocking import Blocked, Why


@dataclass(frozen=True, kw_only=True)
class Root:
    """A collective that others wait for, and the ranks that it lacks and nothing else holds.

    ``is_ring`` says that all groups wait for each other, and that this one began.
    """

    stuck: Blocked
    late: tuple[int, ...] = ()
    is_ring: bool = False


def roots(stuck: Sequence[Blocked]) -> list[Root]:
    """Return what waits for nothing else: mismatches first, then by when the waiting began."""
    waits: dict[int, list[Blocked]] = {}
    for one in stuck:
        for rank in one.waiting:
            waits.setdefault(rank, []).append(one)
    ordered = sorted(stuck, key=_order)
    found = [root for one in ordered if (root := _root(one, waits)) is not None]
    if not found and ordered:
        found = [Root(stuck=ordered[0], late=ordered[0].late, is_ring=True)]
    return found


def _order(one: Blocked) -> tuple[bool, bool, int, str, int]:
    return (one.why is not Why.MISMATCH, not one.since, one.since, one.group.name, one.sequence)


def _root(one: Blocked, waits: Mapping[int, Sequence[Blocked]]) -> Root | None:
    if one.mismatch is not None:
        return Root(stuck=one, late=one.mismatch.others)
    if one.why is Why.IN_TRANSPORT:
        # Without timing, that all have called it does not tell that it has started on all.
        is_held = not one.is_timed and any(_is_held(rank, one, waits) for rank in one.waiting)
        return None if is_held else Root(stuck=one)
    free = tuple(rank for rank in one.late if not _is_held(rank, one, waits))
    return Root(stuck=one, late=free) if free else None


def _is_held(rank: int, one: Blocked, waits: Mapping[int, Sequence[Blocked]]) -> bool:
    """Tell whether a rank waits in another group, and did so before it called this one."""
    called = one.created.get(rank, 0)
    for other in waits.get(rank, ()):
        if other is one:
            continue
        if rank not in one.waiting or 0 < other.created.get(rank, 0) < called:
            return True
    return False
