"""Ranks that called different collectives at the same place of a group's order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from relight.model.records import Record
from relight.perception.flights.dumps import Call
from relight.perception.flights.standings import Party

_ALIKE = frozenset(
    {
        "all_reduce",
        "broadcast",
        "reduce",
        "_all_gather_base",
        "_allgather_base",
        "_reduce_scatter_base",
    }
)
"""Collectives to which every rank brings as much; the others may be uneven by design.

Source: the operations of NCCL's documentation, which take one count for all ranks.
"""
_MOST_SHOWN = 4


class Mismatch(Record, frozen=True, kw_only=True):
    """What different ranks called at one sequence: ``others`` are those of the fewer."""

    sequence: int
    others: tuple[int, ...]
    lines: tuple[str, ...]
    calls: tuple[Call, ...]
    """One call of each sort, the most frequent sort first."""


def mismatch(party: Party, sequence: int) -> Mismatch | None:
    """Return the first sequence up to ``sequence`` at which ranks called different collectives.

    Small messages can end although they did not fit, so what went before is looked at too.
    """
    numbers = sorted({one for calls in party.calls.values() for one in calls if one <= sequence})
    for number in numbers:
        made = {rank: calls[number] for rank, calls in party.calls.items() if calls.get(number)}
        if _is_torn(party, number):
            continue
        kinds = {rank: _kind(calls) for rank, calls in made.items()}
        if len(set(kinds.values())) > 1:
            return _of(number, made, kinds)
    return None


def _is_torn(party: Party, number: int) -> bool:
    """Tell whether calls that were made as one may be kept in part, as the oldest of a recorder."""
    told = [calls for calls in party.calls.values() if number in calls]
    return any(len(calls[number]) > 1 for calls in told) and any(
        number == min(calls) for calls in told
    )


def _kind(calls: Sequence[Call]) -> tuple[str, ...]:
    """Return what must be the same on every rank."""
    if len(calls) > 1:
        return tuple(one.name for one in calls)
    call = calls[0]
    sizes = call.sizes if call.name in _ALIKE else ""
    return (call.name, call.types, sizes)


def _of(number: int, made: dict[int, list[Call]], kinds: dict[int, tuple[str, ...]]) -> Mismatch:
    counted = Counter(kinds.values()).most_common()
    sorts = [kind for kind, _ in counted]
    by_kind = {kind: [rank for rank, own in kinds.items() if own == kind] for kind in sorts}
    is_even = counted[0][1] == counted[1][1]
    others = [rank for kind in sorts[0 if is_even else 1 :] for rank in by_kind[kind]]
    shown = [(by_kind[kind], made[by_kind[kind][0]][0]) for kind in sorts[:_MOST_SHOWN]]
    return Mismatch(
        sequence=number,
        others=tuple(sorted(others)),
        lines=tuple(f"{listed(ranks)}: {_said(call)}" for ranks, call in shown),
        calls=tuple(call for _, call in shown),
    )


def _said(call: Call) -> str:
    where = f" at {call.frame}" if call.frame else ""
    return f"{call.name} of {call.sizes or 'no size'} {call.types}".rstrip() + where


def listed(ranks: Sequence[int]) -> str:
    """Return ``rank 3``, or ``ranks 0-2, 5``, at most a few of the ranges."""
    ordered = sorted(ranks)
    ranges: list[list[int]] = []
    for rank in ordered:
        if ranges and rank == ranges[-1][1] + 1:
            ranges[-1][1] = rank
        else:
            ranges.append([rank, rank])
    words = [str(first) if first == last else f"{first}-{last}" for first, last in ranges]
    more = f" and {len(words) - _MOST_RANGES} more" if len(words) > _MOST_RANGES else ""
    return f"{'rank' if len(ordered) == 1 else 'ranks'} {', '.join(words[:_MOST_RANGES])}{more}"


_MOST_RANGES = 8
