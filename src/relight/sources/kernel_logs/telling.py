"""Says in sentences what could not be seen of kernel logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from relight.sources.kernel_logs.reading import Lack, NodeLog

MOST_NAMED = 3
"""Nodes named in one sentence."""


def blind_of(logs: Sequence[NodeLog]) -> tuple[str, ...]:
    """Return a sentence for each thing that was lacking, with the nodes it was lacking of."""
    sentences = []
    for lack in Lack:
        lacking = [(log.node, what) for log in logs for one, what in log.lacks if one is lack]
        if lacking:
            sentences.append(_sentence(lack, lacking))
    return tuple(sentences)


def _sentence(lack: Lack, lacking: Sequence[tuple[str, str]]) -> str:
    """Return one sentence; ``lacking`` are nodes with the file, or with the reason."""
    nodes, first = _named(tuple(dict.fromkeys(node for node, _ in lacking))), lacking[0][1]
    match lack:
        case Lack.UNREAD:
            return _unread(dict(reversed(lacking)))
        case Lack.TIMELESS:
            return (
                f"Lines of the kernel log of {nodes} tell no time of day and blame nobody "
                f"({first}): gather them with rsyslog, journalctl -o short-iso or dmesg -T."
            )
        case Lack.WRONG_CLOCK:
            return (
                f"The times in the kernel log of {nodes} do not fit the time at which {first} "
                "was last written, so they are not used: have the zone written with them."
            )
        case Lack.OTHER_HOSTS:
            return f"The kernel log of {nodes} holds lines of other hosts, left out ({first})."
        case Lack.CUT:
            return (
                f"The kernel log of {nodes} could not be read back to where the look begins "
                f"({first} is too long or damaged)."
            )
        case Lack.FLOODED:
            return f"The kernel log of {nodes} tells of more trouble than is kept ({first})."
        case Lack.QUIET:
            return (
                f"Nothing was written to the kernel log of {nodes} in the time looked at; "
                "whether it was still gathered is not known."
            )
        case _:
            assert_never(lack)


def _unread(why: Mapping[str, str]) -> str:
    """Return a sentence that tells of each node why its log could not be read, or how many more."""
    nodes = sorted(why)
    if len(nodes) == 1:
        return f"The kernel log of {nodes[0]} could not be read: {why[nodes[0]]}."
    told = "; ".join(f"{node}: {why[node]}" for node in nodes[:MOST_NAMED])
    more = len(nodes) - MOST_NAMED
    told += f"; and {more} more" if more > 0 else ""
    return f"The kernel logs of {len(nodes)} nodes could not be read: {told}."


def _named(nodes: tuple[str, ...]) -> str:
    shown = ", ".join(nodes[:MOST_NAMED])
    more = len(nodes) - MOST_NAMED
    return shown if more <= 0 else f"{shown} and {more} more nodes"
