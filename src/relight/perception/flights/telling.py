"""The words of a finding: a sentence, and the numbers that were compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from relight.model.findings import Evidence
from relight.perception.flights.accusing import Accused
from relight.perception.flights.blocking import Blocked, Why
from relight.perception.flights.dumps import Call, Dump
from relight.perception.flights.mismatches import listed
from relight.perception.flights.placing import Lie
from relight.perception.flights.roots import Root

MOST_LINES = 16
LONGEST_LINE = 300


@dataclass(frozen=True, slots=True)
class Told:
    """The dumps that were read, by rank, and the ranks whose dump is there and was not read."""

    dumps: Mapping[int, Dump]
    unread: frozenset[int] = frozenset()

    def absent(self, missing: Sequence[int]) -> str:
        """Return in words why nothing is known of ranks of which no dump was read."""
        unread = [rank for rank in missing if rank in self.unread]
        left_none = [rank for rank in missing if rank not in self.unread]
        words = []
        if left_none:
            words.append(f"{listed(left_none)} left no dump")
        if unread:
            dumps = "dump" if len(unread) == 1 else "dumps"
            words.append(f"the {dumps} of {listed(unread)} could not be read")
        return " and ".join(words)


def sentence_of(root: Root, accused: Accused, told: Told) -> str:
    """Return what happened in one sentence."""
    stuck = root.stuck
    op = _operation(stuck)
    waiting = listed(stuck.waiting)
    if root.is_ring:
        return f"The groups wait for each other in a ring, which began with {op}: ranks call them \
in different orders."
    match stuck.why:
        case Why.MISMATCH:
            lines = stuck.mismatch.lines if stuck.mismatch else ()
            at = stuck.mismatch.sequence if stuck.mismatch else stuck.sequence
            return f"Ranks of group {stuck.group} called different collectives as number {at}: \
{'; '.join(lines)}."
        case Why.NOT_JOINED:
            inside = [rank for rank in root.late if rank in stuck.created]
            did = "began to call and did not come back from" if inside else "did not call"
            who = listed(root.late).capitalize()
            return f"{who} {did} {op}, in which {_waits(stuck, waiting)}{_lie(accused)}\
{_last_call(root, told)}."
        case Why.NOT_STARTED:
            who = listed(accused.ranks) if accused.ranks else "any rank"
            return f"All called {op}, and it did not start on {who}: something before it blocks \
the stream{_lie(accused)}."
        case Why.IN_TRANSPORT:
            return _of_transport(stuck, accused, told, op)
        case _:
            assert_never(stuck.why)


def evidence_of(root: Root, told: Told) -> tuple[Evidence, ...]:
    """Return what was compared, bounded; ranks that stand alike share a line."""
    lines = list(_compared(root, told))
    return tuple(
        Evidence(text=line[:LONGEST_LINE], is_root=number == 0)
        for number, line in enumerate(lines[:MOST_LINES])
    )


def _compared(root: Root, told: Told) -> Iterator[str]:
    stuck = root.stuck
    yield f"{_operation(stuck)} did not end for {listed(stuck.waiting)}"
    if stuck.mismatch is not None:
        yield from stuck.mismatch.lines
    alike: dict[str, list[int]] = {}
    for rank, line in stuck.lines.items():
        alike.setdefault(line, []).append(rank)
    for line, ranks in sorted(alike.items(), key=lambda one: (len(one[1]), one[1])):
        yield f"{listed(ranks)}: {line}"
    if stuck.missing:
        yield told.absent(stuck.missing)
    if stuck.call is not None and stuck.call.frame:
        yield f"called at {stuck.call.frame}"
    for rank in root.late[:2]:
        if (call := _newest(told, rank)) is not None:
            yield f"rank {rank}: last call {call.name} {call.sequence}, {_where(call)}"


def _operation(stuck: Blocked) -> str:
    name = stuck.call.name if stuck.call is not None else "collective"
    return f"{name} {stuck.sequence} of group {stuck.group}"


def _waits(stuck: Blocked, waiting: str) -> str:
    return f"{waiting} {'waits' if len(stuck.waiting) == 1 else 'wait'}"


def _of_transport(stuck: Blocked, accused: Accused, told: Told, op: str) -> str:
    waits = _waits(stuck, listed(stuck.waiting))
    if accused.ranks:
        return f"{listed(stuck.done).capitalize()} saw the end of {op}, and {waits} in it\
{_lie(accused)}."
    if stuck.missing and not stuck.done:
        absent = told.absent(stuck.missing)
        return f"{absent[:1].upper()}{absent[1:]}, so whether they called {op} is not known; \
{waits} in it."
    if not stuck.is_timed:
        return f"All ranks called {op}, and it did not end: the transport stalls, or a stream is \
blocked (which of the two is told only with TORCH_NCCL_ENABLE_TIMING)."
    return f"All ranks called and started {op}, and it did not end: the transport stalls."


def _lie(accused: Accused) -> str:
    spot, count = accused.spot, len(accused.ranks)
    nodes = ", ".join(spot.nodes[:3])
    match spot.lie:
        case Lie.WHOLE_NODE:
            return f"; that is every rank of {nodes}"
        case Lie.WHOLE_NODES:
            return f"; that is every rank of {len(spot.nodes)} nodes ({nodes})"
        case Lie.ONLY_RANK:
            return f"; it is the only rank of {nodes}"
        case Lie.PART_OF_NODE:
            return f"; {count} of {spot.ranks_there} ranks on {nodes}, so a GPU or the code there"
        case Lie.SAME_PLACE:
            return "; the same rank of each node, so the code takes another branch there"
        case Lie.SCATTERED | Lie.UNKNOWN:
            return ""
        case _:
            assert_never(spot.lie)


def _last_call(root: Root, told: Told) -> str:
    call = _newest(told, root.late[0]) if root.late else None
    if call is None or not call.frame:
        return ""
    whose = "its last call" if len(root.late) == 1 else "the last call there"
    return f"; {whose} came from {_where(call)}"


def _newest(told: Told, rank: int) -> Call | None:
    dump = told.dumps.get(rank)
    return dump.calls[-1] if dump is not None and dump.calls else None


def _where(call: Call) -> str:
    return f"{call.frame or 'an unknown line'}{f' ({call.phase})' if call.phase else ''}"
