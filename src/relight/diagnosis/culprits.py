"""Who is behind a hang or a lost connection, where the lines of the victims tell.

The rank that prints a watchdog's time-out is normally a victim; the culprit is the one whose
last enqueued work is lower, the one that alone prints nothing, or the host that most failing
pairs have in common.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from relight.diagnosis.deaths import root_text
from relight.model.findings import Finding, Kind

_STATUS = re.compile(
    r"(?i)last enqueued (?:[NRHX]CCL )?work: (?P<enqueued>-?\d{1,18}),"
    r"\s{0,8}(?:last started (?:[NRHX]CCL )?work: -?\d{1,18},\s{0,8})?"
    r"last completed (?:[NRHX]CCL )?work: (?P<completed>-?\d{1,18})"
)
_GROUP = re.compile(
    r"\[PG (?:ID )?(?P<number>\d{1,9})?(?: PG GUID (?P<name>[^\]\s(]{1,80}))?"
    r"[^\]]{0,120}? ?Rank (?P<rank>\d{1,7})\]"
)
"""Each rank counts its groups by itself: only the GUID is the same on all, where it is printed."""
_WRITER = re.compile(r"\[rank(\d{1,7})\]")
_WHOLE = frozenset({"", "0"})
"""Names of the group of all ranks, in which a rank's place is its global rank."""
_FOR_ANOTHER = "dump signal"
"""A line whose named rank is the one that sent the signal, and not its writer."""
_READY = re.compile(r"ready ranks: ?\[?(?P<ranks>\d{1,7}(?:, ?\d{1,7}){0,4096})")
_FEWEST = 2
_FEWEST_TO_MISS_ONE = 3
"""Ranks that must speak before the silence of one says anything."""


class _Standing(NamedTuple):
    """The last work that a rank enqueued and completed in a group."""

    enqueued: int
    completed: int


def lagging_ranks(findings: Sequence[Finding]) -> tuple[int, ...]:
    """Return the ranks that never came to the collective that the others wait in.

    Within each process group: what the first collective is that not all completed, and who has
    not enqueued it; where all have, the few that did not complete what others completed. Ranks run
    ahead of their GPUs by as much as they like, so who enqueued less is late only when
    it lacks that one. Who waits in another group itself is a victim.
    """
    groups = _standings(findings)
    late = {name: _late(seen) for name, seen in groups.items()}
    waiting = {name: _waiting(seen) for name, seen in groups.items()}
    behind: set[int] = set()
    for name, ranks in late.items():
        elsewhere = {rank for other, held in waiting.items() if other != name for rank in held}
        if len(ranks) * 2 <= len(groups[name]):
            behind |= ranks - elsewhere
    if behind or any(late.values()):
        return tuple(sorted(behind))
    stuck = [
        ranks
        for name, ranks in waiting.items()
        if any(told.completed >= _first_open(groups[name]) for told in groups[name].values())
        if len(ranks) * 2 <= len(groups[name])
    ]
    return tuple(sorted(set().union(*stuck)))


def _standings(findings: Sequence[Finding]) -> dict[str, dict[int, _Standing]]:
    """Return how far each rank says it has come in each group; its highest word counts."""
    groups: dict[str, dict[int, _Standing]] = defaultdict(dict)
    for one in findings:
        text = root_text(one)
        match = _STATUS.search(text)
        group = _GROUP.search(text)
        name = (group["name"] or group["number"] or "") if group else ""
        rank = _writer(one, text, group, name) if match is not None else None
        if match is None or rank is None:
            continue
        told = _Standing(int(match["enqueued"]), int(match["completed"]))
        groups[name][rank] = max(groups[name].get(rank, told), told)
    return groups


def _writer(one: Finding, text: str, group: re.Match[str] | None, name: str) -> int | None:
    """Return the global rank whose numbers a line tells, None where it does not say."""
    writer = _WRITER.search(text)
    if writer is not None:
        return int(writer[1])
    if group is not None and name in _WHOLE:
        return int(group["rank"])
    if len(one.ranks) != 1 or _FOR_ANOTHER in text:
        return None
    return one.ranks[0]


def _first_open(seen: Mapping[int, _Standing]) -> int:
    """Return the first collective of a group that some rank did not complete."""
    return max(min(told.completed for told in seen.values()) + 1, 1)


def _waiting(seen: Mapping[int, _Standing]) -> set[int]:
    first = _first_open(seen)
    return {rank for rank, told in seen.items() if told.enqueued >= first > told.completed}


def _late(seen: Mapping[int, _Standing]) -> set[int]:
    """Return who has not enqueued what others wait in."""
    first = _first_open(seen)
    return (
        {rank for rank, told in seen.items() if told.enqueued < first} if _waiting(seen) else set()
    )


def missing_ranks(findings: Sequence[Finding]) -> tuple[int, ...]:
    """Return the ranks that a list of those that are ready leaves out (Horovod).

    The latest list counts. How many ranks there are is not told, so a rank above the highest
    that is ready is not found.
    """
    for one in reversed(findings):
        match = _READY.search(root_text(one))
        if match is not None:
            ready = {int(rank) for rank in re.findall(r"\d{1,7}", match["ranks"])}
            return tuple(sorted(set(range(max(ready) + 1)) - ready))
    return ()


def silent_rank(findings: Sequence[Finding]) -> int | None:
    """Return the one rank that alone did not print what all others printed.

    Only a gap in an unbroken row from 0 counts: how many ranks there are is not known.
    """
    spoke = {one.ranks[0] for one in findings if one.kind is Kind.HANG and len(one.ranks) == 1}
    if len(spoke) < _FEWEST_TO_MISS_ONE:
        return None
    missing = set(range(max(spoke) + 1)) - spoke
    return missing.pop() if len(missing) == 1 else None


def common_end(findings: Iterable[Finding]) -> str | None:
    """Return the host or address that most failing pairs have in common, None where two do.

    A pair is a finding's writer and the peer that it names. One pair accuses nobody: either
    end may be the broken one.
    """
    pairs = {
        frozenset((one.nodes[0], peer))
        for one in findings
        if len(one.nodes) == 1
        for peer in map(_bare, one.peers)
        if peer and peer != one.nodes[0]
    }
    counted = Counter(end for pair in pairs for end in pair)
    ranked = counted.most_common(2)
    if len(pairs) < _FEWEST or len(ranked) < _FEWEST:
        return None
    (first, most), (_, next_most) = ranked
    is_clear = most > next_most and most * 2 > len(pairs)
    return first if is_clear else None


def _bare(peer: str) -> str:
    """Return a peer without its port: ``10.0.0.7<4242>``, ``node-7:4242``."""
    host = peer.partition("<")[0]
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() and ":" not in name else host
