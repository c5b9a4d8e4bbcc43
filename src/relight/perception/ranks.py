"""Which host each rank runs on, as NCCL says when a communicator is made.

``host:pid:thread [gpu] NCCL INFO comm 0x... rank 3 nranks 16 ...`` stands in the start-up of a
log, far above the line that names a rank alone. Only the largest communicator tells global
ranks; of several that are as large the first counts, by its ``commId`` where that is printed.
"""

from __future__ import annotations

import re

import msgspec

from relight.model.records import Record
from relight.perception.prefixes import listen

MOST_RANKS = 10_000
"""Ranks kept of one file."""
MOST_HEARD = 50_000
"""Lines looked at in one file: groups of ranks are made again and again."""
_WORD = b" nranks "
_HEAD = 400
_MEMBER = re.compile(
    r"NCCL INFO .{0,80}\bcomm 0x[0-9a-f]+ rank (\d{1,7}) nranks (\d{1,7})\b"
    r"(?:.{0,120}\bcommId (0x[0-9a-f]+))?"
)


class Hosts(Record, frozen=True, kw_only=True):
    """Host by rank in the largest communicator so far; '' where two hosts claimed a rank."""

    by_rank: dict[int, str] = msgspec.field(default_factory=dict)
    size: int = 0
    name: str = ""
    """The communicator's own, where it is printed."""
    run: int = 0
    heard: int = 0

    @property
    def known(self) -> dict[int, str]:
        """Return the host of each rank of which one is known, by rank in rising order."""
        return {rank: host for rank, host in sorted(self.by_rank.items()) if host}


def heard_in(text: bytes, first: int, last: int, before: Hosts, run: int) -> Hosts:
    """Return the hosts known after the whole lines in ``text[first:last]``, all of one run."""
    at = text.find(_WORD, first, last)
    if at < 0 or before.heard >= MOST_HEARD:
        return before
    by_rank = dict(before.by_rank)
    size, name, heard = before.size, before.name, before.heard
    if run != before.run:
        by_rank, size, name = {}, 0, ""
    while at >= 0 and heard < MOST_HEARD:
        heard += 1
        start = text.rfind(b"\n", 0, at) + 1
        end = text.find(b"\n", at)
        line = text[start : min(end, start + _HEAD)].decode(errors="replace")
        at = text.find(_WORD, end, last)
        member = _MEMBER.search(line)
        host = listen(line).node if member is not None else None
        if member is None or host is None:
            continue
        rank, others, comm = int(member[1]), int(member[2]), member[3] or ""
        if others > size:
            by_rank, size, name = {}, others, comm
        is_ours = others == size and (comm == name or not (comm and name))
        if not is_ours or (rank not in by_rank and len(by_rank) >= MOST_RANKS):
            continue
        by_rank[rank] = host if by_rank.get(rank, host) == host else ""
    return Hosts(by_rank=by_rank, size=size, name=name, run=run, heard=heard)
