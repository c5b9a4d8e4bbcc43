"""The ranks of one process group side by side: how far each has come in it.

A group's name may stand for others elsewhere, so a group is told by its name and its members
together. Sequences count from the group's first collective on every rank alike: that also lines up
recorders whose oldest entries were overwritten, which lack a sequence and did not skip it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from relight.perception.flights.dumps import Call, Dump, Group, Standing, State

NONE_YET = -1


@dataclass(slots=True)
class Party:
    """One group with the dumps of those of its members that left one.

    ``standings`` are only those of ranks of which it is known, ``calls`` the collectives by rank
    and sequence (several where calls were coalesced into one), ``pairs`` sends and receives.
    """

    group: Group
    standings: dict[int, Standing] = field(default_factory=dict)
    calls: dict[int, dict[int, list[Call]]] = field(default_factory=dict)
    pairs: dict[int, list[Call]] = field(default_factory=dict)
    missing: tuple[int, ...] = ()
    is_timed: bool = False

    def call(self, rank: int, sequence: int) -> Call | None:
        """Return what a rank called at a sequence, None where its recorder does not tell."""
        return next(iter(self.calls.get(rank, {}).get(sequence, ())), None)


def parties(dumps: Mapping[int, Dump]) -> list[Party]:
    """Return every group that a dump names, in the order of name and members."""
    found: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    known: dict[str, set[tuple[int, ...]]] = {}
    for rank, dump in dumps.items():
        for name, group in dump.groups.items():
            found.setdefault((name, group.ranks), []).append(rank)
            known.setdefault(name, set()).add(group.ranks)
    for name, members in known.items():
        # A rank that does not tell the members means the only group of that name.
        if len(members) == len({(), *members}) == 2:  # noqa: PLR2004 - one with members, one without
            whole = next(iter(members - {()}))
            found[name, whole] += found.pop((name, ()))
    return [
        _party(name, members, {rank: dumps[rank] for rank in sorted(ranks)})
        for (name, members), ranks in sorted(found.items())
    ]


def _party(name: str, members: tuple[int, ...], dumps: Mapping[int, Dump]) -> Party:
    group = next(iter(dumps.values())).groups[name]
    about = next((one.groups[name].about for one in dumps.values() if one.groups[name].about), "")
    party = Party(
        group=Group(name=group.name, about=about, ranks=members),
        missing=tuple(rank for rank in members if rank not in dumps),
        is_timed=any(one.is_timed for one in dumps.values()),
    )
    for rank, dump in dumps.items():
        for call in dump.calls:
            if call.group != name:
                continue
            if call.is_pair:
                party.pairs.setdefault(rank, []).append(call)
            else:
                by_sequence = party.calls.setdefault(rank, {})
                by_sequence.setdefault(call.sequence, []).append(call)
    for rank, dump in dumps.items():
        standing = _standing(dump, name, party.calls.get(rank, {}), is_mixed=bool(party.pairs))
        if standing is not None:
            party.standings[rank] = standing
    return party


def _standing(
    dump: Dump, name: str, calls: Mapping[int, list[Call]], *, is_mixed: bool
) -> Standing | None:
    """Return how far a rank has come in a group, None where nothing tells.

    What PyTorch calls the last sequence of a group with sends and receives is one or the other's,
    so there (``is_mixed``) the recorder's entries tell.
    """
    told = dump.standings.get(name)
    if told is not None and not is_mixed and told.enqueued is not None:
        if told.completed is not None:
            return told
        own = _by_calls(dump, name, calls)
        return Standing(
            enqueued=told.enqueued, started=told.started, completed=own.completed if own else None
        )
    return _by_calls(dump, name, calls)


def _by_calls(dump: Dump, name: str, calls: Mapping[int, list[Call]]) -> Standing | None:
    reach = dump.reach.get(name)
    if reach is None:
        # With every entry still there, a group without one was never called.
        is_whole = dump.first_record == 0 and dump.entries > 0
        return Standing(enqueued=NONE_YET, completed=NONE_YET) if is_whole else None
    states = {number: {one.state for one in made} for number, made in calls.items()}
    left = [number for number, found in states.items() if found != {State.COMPLETED}]
    begun = [number for number, found in states.items() if State.SCHEDULED not in found]
    return Standing(
        enqueued=reach,
        started=max(begun, default=NONE_YET) if dump.is_timed else None,
        completed=min(left) - 1 if left else reach,
    )
