"""Groups whose next collective did not come to its end, and who in them is late."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from relight.perception.flights.dumps import Call, Dump, Group, State
from relight.perception.flights.mismatches import Mismatch, mismatch
from relight.perception.flights.standings import NONE_YET, Party, parties

MOST_PAIRS = 10_000


class Why(StrEnum):
    """What a collective that did not end lacks."""

    NOT_JOINED = "not_joined"
    NOT_STARTED = "not_started"
    IN_TRANSPORT = "in_transport"
    MISMATCH = "mismatch"


@dataclass(frozen=True, kw_only=True)
class Blocked:
    """One collective, or one send with its receive, that did not end.

    ``waiting`` are the ranks that have called it and do not see its end, ``late`` those that have
    not called it, or, where all have, those on which it has not started. ``done`` are those
    that it has ended for. ``missing`` are members of whom no dump was read. ``created`` tells in
    nanoseconds since 1970 when each rank called it, where its recorder tells.
    """

    group: Group
    sequence: int
    why: Why
    waiting: tuple[int, ...] = ()
    late: tuple[int, ...] = ()
    done: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()
    call: Call | None = None
    created: Mapping[int, int] = field(default_factory=dict)
    lines: Mapping[int, str] = field(default_factory=dict)
    is_timed: bool = False
    mismatch: Mismatch | None = None

    @property
    def since(self) -> int:
        """Return when the first rank called it, as the recorder's nanoseconds; 0 if unknown."""
        return min((one for one in self.created.values() if one > 0), default=0)


def blocked(dumps: Mapping[int, Dump]) -> list[Blocked]:
    """Return every collective that did not end, in the order of the groups' names."""
    found: list[Blocked] = []
    for party in parties(dumps):
        stuck = _collective(party)
        if stuck is not None:
            found.append(stuck)
        found += _pairs(party)
    return found


def _collective(party: Party) -> Blocked | None:
    """Return the first collective of a group that some rank does not see the end of.

    Ranks run ahead of their GPUs, each by as much as it likes, so that the last one enqueued
    differs while all wait for the same: only who has not called this one is late.
    """
    ended = {
        rank: one.completed for rank, one in party.standings.items() if one.completed is not None
    }
    if not ended:
        return None
    sequence = max(min(ended.values()) + 1, _first(party))
    called = {rank: (one.enqueued or 0) >= sequence for rank, one in party.standings.items()}
    waiting = tuple(
        rank for rank, has in called.items() if has and ended.get(rank, NONE_YET) < sequence
    )
    if not waiting:
        return None
    absent = tuple(rank for rank, has in called.items() if not has)
    done = tuple(rank for rank, end in ended.items() if end >= sequence)
    quarrel = mismatch(party, sequence)
    why = Why.IN_TRANSPORT
    late: tuple[int, ...] = ()
    if quarrel is not None:
        why = Why.MISMATCH
    elif absent:
        why, late = Why.NOT_JOINED, absent
    elif party.is_timed and (idle := _not_started(party, waiting, sequence)):
        why, late = Why.NOT_STARTED, idle
    calls = {rank: party.call(rank, sequence) for rank in party.standings}
    return Blocked(
        group=party.group,
        sequence=sequence,
        why=why,
        waiting=waiting,
        late=late,
        done=done,
        missing=party.missing,
        call=next((calls[rank] for rank in waiting if calls[rank] is not None), None),
        created={rank: one.created_ns for rank, one in calls.items() if one is not None},
        lines={rank: _line(party, rank) for rank in party.standings},
        is_timed=party.is_timed,
        mismatch=quarrel,
    )


def _first(party: Party) -> int:
    """Return the number of a group's first collective: 1, in old formats 0."""
    is_zero = any(0 in calls for calls in party.calls.values())
    return 0 if is_zero else 1


def _not_started(party: Party, waiting: tuple[int, ...], sequence: int) -> tuple[int, ...]:
    idle = []
    for rank in waiting:
        call = party.call(rank, sequence)
        started = party.standings[rank].started
        has_started = started is not None and started >= sequence
        if not has_started and (call is None or call.state is State.SCHEDULED):
            idle.append(rank)
    return tuple(idle)


def _line(party: Party, rank: int) -> str:
    told = party.standings[rank]
    parts = (("enqueued", told.enqueued), ("started", told.started), ("completed", told.completed))
    return ", ".join(f"last {word} {number}" for word, number in parts if number is not None)


def _pairs(party: Party) -> Iterator[Blocked]:
    """Return sends and receives whose other end did not call, or that both wait in."""
    places = party.group.ranks
    seen = set()
    count = 0
    for rank, calls in party.pairs.items():
        for call in calls:
            if call.state is State.COMPLETED or count >= MOST_PAIRS:
                continue
            ends = _ends(call, places)
            if ends is None or rank not in ends or (call.group, ends) in seen:
                continue
            seen.add((call.group, ends))
            count += 1
            other = ends[0] if rank == ends[1] else ends[1]
            yield _pair(party, call, rank, other)


def _ends(call: Call, places: tuple[int, ...]) -> tuple[int, int] | None:
    """Return the global ranks of sender and receiver, which are told as places in the group."""
    source, target = call.source, call.target
    if source is None or target is None or max(source, target) >= len(places):
        return None
    return places[source], places[target]


def _pair(party: Party, call: Call, rank: int, other: int) -> Blocked:
    met = [
        one
        for one in party.pairs.get(other, ())
        if (one.source, one.target) == (call.source, call.target) and one.name != call.name
    ]
    # The counterpart counts also where it has ended for the other: small messages are buffered.
    has_met = any(
        one.state is not State.COMPLETED or one.created_ns >= call.created_ns for one in met
    )
    is_missing = other in party.missing
    return Blocked(
        group=party.group,
        sequence=call.sequence,
        why=Why.IN_TRANSPORT if has_met or is_missing else Why.NOT_JOINED,
        waiting=(rank, other) if has_met else (rank,),
        late=() if has_met or is_missing else (other,),
        missing=(other,) if is_missing else (),
        call=call,
        created={rank: call.created_ns},
        is_timed=party.is_timed,
    )
