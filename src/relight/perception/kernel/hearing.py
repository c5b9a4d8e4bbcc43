"""Hears one stretch of a node's kernel log: whole lines in, findings out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo

import msgspec

from relight.model.findings import Finding, Kind, Place, Role
from relight.model.instants import Instant
from relight.model.records import Record, digest
from relight.perception.conclusions import Heading, concluded
from relight.perception.ears import Ears, Hit
from relight.perception.kernel.heads import KERNEL, Head, head_of
from relight.perception.lines import SHOWN, readable
from relight.perception.prefixes import Voice

WITNESS = "kernel_log"
LONGEST_LINE = 8 * 1024
"""Bytes of one line that are looked at; the kernel itself writes under 1 KiB at a time."""
MOST_FINDINGS = 500
"""Findings of one stretch before they are merged."""
_BEFORE = 3
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*")
_UNNAMED = frozenset({"", "localhost", "localhost.localdomain"})
"""What a machine calls itself before it knows its name."""


class Stretch(Record, frozen=True, kw_only=True):
    """Whole lines of one file, whose first byte stands at ``offset`` in it."""

    file: str
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Watch:
    """Whose log is heard, for which attempt, and from when to when.

    ``node`` is the allocation's name for the machine. ``zone`` is that of times without one.
    """

    ears: Ears
    node: str
    since: Instant
    until: Instant
    now: Instant
    zone: tzinfo


@dataclass(slots=True)
class Heard:
    """What a stretch holds: findings, and what had to be passed over and why.

    ``timeless`` counts lines that tell of trouble and bear no time, ``foreign`` such lines of
    other hosts. ``is_full`` says that there were more than are kept.
    """

    findings: list[Finding] = field(default_factory=list)
    timeless: int = 0
    foreign: int = 0
    is_full: bool = False


def hear(stretch: Stretch, watch: Watch) -> Heard:
    """Return what the lines of a stretch tell of ``watch.node`` in its window.

    Only what the kernel itself wrote counts: of a log of the whole system, other programs'
    lines are passed over. A finding's id is derived from what was said and when, not from
    where it lies, so it stays the same when the file is rotated.
    """
    heard = Heard()
    lexicon = watch.ears.lexicon
    for start, indexes in _grouped(lexicon.matcher.scan(stretch.data)):
        line = _line_at(stretch.data, start)
        hits = [hit for hit in lexicon.heard(indexes, line).hits if _counts(hit)]
        if not hits:
            continue
        shown = readable(line.lstrip(b"\0"))
        head = head_of(shown, watch.now, watch.zone)
        if not _is_heard(head, watch, heard):
            continue
        if len(heard.findings) >= MOST_FINDINGS:
            heard.is_full = True
            break
        heading = Heading(
            place=Place(file=stretch.file, offset=stretch.offset + start),
            voice=Voice(body=shown[head.message :], node=watch.node),
            shown=shown[:SHOWN],
            before=_lines_before(stretch.data, start),
            at=head.at,
            now=watch.now,
        )
        heard.findings += [_finding(hit, heading, watch) for hit in hits]
    return heard


def _counts(hit: Hit) -> bool:
    """Tell whether a rule tells of trouble: not of an end, nor of what only looks alarming."""
    return hit.rule.role is not Role.BENIGN and hit.rule.kind is not Kind.ENDING


def _is_heard(head: Head, watch: Watch, heard: Heard) -> bool:
    if head.tag not in ("", KERNEL):
        return False
    if not is_of(head.host, watch.node):
        heard.foreign += 1
        return False
    if head.at is None:
        heard.timeless += 1
        return False
    return watch.since <= head.at <= watch.until


def is_of(host: str, node: str) -> bool:
    """Return whether a line's host may be ``node``: the same name, or one that tells nothing.

    The file is the node's by its name. A relay may write an address for a host that it cannot
    look up.
    """
    if host in _UNNAMED or _ADDRESS.fullmatch(host):
        return True
    if "." in host and "." in node:
        return host.lower() == node.lower()
    return host.partition(".")[0].lower() == node.partition(".")[0].lower()


def _finding(hit: Hit, heading: Heading, watch: Watch) -> Finding:
    captures = {name: value for name, value in hit.captures.items() if name != "node"}
    found = concluded(watch.ears, hit.rule, captures, heading, 1)
    said = (found.rule, watch.node, str(heading.at), heading.voice.body)
    return msgspec.structs.replace(
        found, id=digest(str(watch.ears.attempt), WITNESS, *said), ranks=(), tasks=()
    )


def _grouped(pairs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, list[int]]]:
    found: dict[int, list[int]] = {}
    for start, index in pairs:
        found.setdefault(start, []).append(index)
    yield from sorted(found.items())


def _line_at(data: bytes, start: int) -> bytes:
    end = data.find(b"\n", start)
    return data[start : end if end >= 0 else len(data)][:LONGEST_LINE].rstrip(b"\r")


def _lines_before(data: bytes, start: int) -> tuple[str, ...]:
    """Return up to three lines before the one at ``start``, the oldest first."""
    found: list[str] = []
    end = start - 1
    while end > 0 and len(found) < _BEFORE:
        begin = data.rfind(b"\n", 0, end) + 1
        found.append(readable(data[begin : min(end, begin + LONGEST_LINE)])[:SHOWN])
        end = begin - 1
    return tuple(reversed(found))
