"""Who is behind a hang or a lost connection, where the lines of the victims tell.

The rank that prints a watchdog's time-out is normally a victim; the culprit is the one whose
last enqueued work is lower, the one that alone prints nothing, or the host that most failing
pairs have in common.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from relight.diagnosis.deaths import root_text
from relight.model.findings import Finding, Kind

_STATUS = re.compile(
    r"last enqueued (?:NCCL )?work: (?P<enqueued>-?\d{1,18}),"
    r" last completed (?:NCCL )?work: (?P<completed>-?\d{1,18})"
)
_GROUP = re.compile(r"\[PG (?:ID )?([^\]]{0,120}?) ?Rank \d{1,7}\]")
_READY = re.compile(r"ready ranks: ?\[?(?P<ranks>\d{1,7}(?:, ?\d{1,7}){0,4096})")
_FEWEST = 2
_FEWEST_TO_MISS_ONE = 3
"""Ranks that must speak before the silence of one says anything."""


def lagging_ranks(findings: Sequence[Finding]) -> tuple[int, ...]:
    """Return the ranks that never came to the collective that the others wait in.

    Within one process group: those whose last enqueued work is lower than that of others.
    """
    groups: dict[str, dict[int, int]] = defaultdict(dict)
    for one in findings:
        text = root_text(one)
        match = _STATUS.search(text)
        if match is None or len(one.ranks) != 1:
            continue
        group = _GROUP.search(text)
        seen = groups[group[1] if group else ""]
        number = int(match["enqueued"])
        seen[one.ranks[0]] = min(seen.get(one.ranks[0], number), number)
    behind: set[int] = set()
    for seen in groups.values():
        least, most = min(seen.values()), max(seen.values())
        late = {rank for rank, number in seen.items() if number == least}
        if least < most and len(late) * 2 <= len(seen):
            behind |= late
    return tuple(sorted(behind))


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
