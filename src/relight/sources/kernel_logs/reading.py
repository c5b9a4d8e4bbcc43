"""Reads the kernel logs of one node, each from its end back to the begin of the window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from enum import Enum
from itertools import islice

from relight.model.findings import Finding
from relight.model.instants import Instant, later, seconds
from relight.model.seen import Seen, Unseen
from relight.perception.kernel.heads import HEAD, Head, head_of
from relight.perception.kernel.hearing import Stretch, Watch, hear, is_of
from relight.perception.lines import readable
from relight.sources.kernel_logs.names import names_of, older_of
from relight.sources.kernel_logs.tails import Tail, tail_of

OUT_OF_ORDER = seconds(300)
"""How late a relay may write a line that was long on its way."""
CLOCK_SLACK = seconds(300)
"""How far a last line may lie behind its file's last change before its clock is doubted."""
_HALF_HOUR = seconds(1800)
_OFF_BY = seconds(120)
_LARGEST_ZONE = seconds(15 * 3600)
_MOST_LINES = 2_000
"""Lines at either end of a file among which one with a time is looked for."""
_END = 256 * 1024


class Lack(Enum):
    """What a file did not tell."""

    UNREAD = "unread"
    TIMELESS = "timeless"
    WRONG_CLOCK = "wrong_clock"
    OTHER_HOSTS = "other_hosts"
    CUT = "cut"
    FLOODED = "flooded"
    QUIET = "quiet"


@dataclass(slots=True)
class NodeLog:
    """What the files of one node told, and what they did not, with the file or the reason.

    ``is_seen``: one file at least was read, and tells when its lines were written if it holds
    any: an empty one is that of a quiet node, or was rotated a moment ago.
    """

    node: str
    findings: list[Finding] = field(default_factory=list)
    is_seen: bool = False
    lacks: list[tuple[Lack, str]] = field(default_factory=list)


def read_node(patterns: Sequence[str], watch: Watch, most: int) -> NodeLog:
    """Return what the files that ``patterns`` name for the watched node tell.

    At most ``most`` bytes of each file are read, and of the one that it was last rotated to.
    """
    log = NodeLog(watch.node)
    for pattern in patterns:
        found = _first(names_of(pattern, watch.node), watch, most)
        if isinstance(found, Unseen):
            log.lacks.append((Lack.UNREAD, found.why))
        else:
            _take(log, found.value, watch, most)
    return log


def is_timeless(path: str, now: Instant, zone: tzinfo) -> bool:
    """Tell whether a file holds lines and none of its last ones bears a time of day."""
    found = tail_of(path, _END, lambda _: True)
    if isinstance(found, Unseen) or not found.value.data.strip():
        return False
    return not any(_is_dated(line, now, zone) for line in _some(_last_lines(found.value.data)))


def _first(names: Sequence[str], watch: Watch, most: int) -> Seen[Tail] | Unseen:
    """Return the end of the first of the files that can be read, or why the first could not."""
    missing = Unseen(f"{watch.node} makes no name of a file")
    for number, name in enumerate(names):
        found = tail_of(name, most, lambda piece: _reaches_back(piece, watch))
        if isinstance(found, Seen):
            return found
        missing = found if number == 0 else missing
    return missing


def _take(log: NodeLog, tail: Tail, watch: Watch, most: int) -> None:
    last = _dated(_last_lines(tail.data), watch)
    why = _unfit(tail, last, watch)
    if why is not None:
        log.lacks.append((why, tail.path))
        return
    tails = [tail]
    if tail.is_whole and not _reaches_back(tail.data, watch):
        tails += _older(log, tail, watch, most)
    log.is_seen = True
    if last is None or last.at is None or last.at < watch.since:
        log.lacks.append((Lack.QUIET, tail.path))
    for one in tails:
        _hear(log, one, watch)


def _unfit(tail: Tail, last: Head | None, watch: Watch) -> Lack | None:
    """Return why the lines of a file cannot be used, None where they can."""
    if last is None or last.at is None:
        return Lack.TIMELESS if tail.data.strip() else None
    if _is_clock_wrong(last.at, tail.changed_at, is_zoned=last.is_zoned):
        return Lack.WRONG_CLOCK
    first = _dated(_first_lines(tail.data), watch)
    is_foreign = first is not None and not is_of(first.host, watch.node)
    return Lack.OTHER_HOSTS if is_foreign and not is_of(last.host, watch.node) else None


def _older(log: NodeLog, tail: Tail, watch: Watch, most: int) -> list[Tail]:
    path = older_of(tail.path)
    if path is None:
        return []
    found = tail_of(path, most, lambda piece: _reaches_back(piece, watch))
    if isinstance(found, Unseen):
        log.lacks.append((Lack.UNREAD, found.why))
        return []
    return [found.value]


def _hear(log: NodeLog, tail: Tail, watch: Watch) -> None:
    heard = hear(Stretch(file=tail.path, offset=tail.offset, data=tail.data), watch)
    log.findings += heard.findings
    lacks = (
        (Lack.CUT, tail.is_cut),
        (Lack.TIMELESS, heard.timeless > 0),
        (Lack.OTHER_HOSTS, heard.foreign > 0),
        (Lack.FLOODED, heard.is_full),
    )
    log.lacks += [(lack, tail.path) for lack, is_so in lacks if is_so]


def _is_clock_wrong(last: Instant, changed: Instant, *, is_zoned: bool) -> bool:
    """Tell whether a last line's time cannot be right: nothing is written before its time.

    Where no zone is told, whole half hours between the line and the file's last change mean that
    it was written in another zone than it is read in.
    """
    behind = changed - last
    if behind < -CLOCK_SLACK:
        return True
    if is_zoned or not CLOCK_SLACK < behind < _LARGEST_ZONE:
        return False
    return abs((behind + _HALF_HOUR // 2) % _HALF_HOUR - _HALF_HOUR // 2) <= _OFF_BY


def _reaches_back(piece: bytes, watch: Watch) -> bool:
    """Tell whether what was read begins safely before the window does."""
    head = _dated(_first_lines(piece), watch)
    return head is not None and head.at is not None and later(head.at, OUT_OF_ORDER) < watch.since


def _dated(lines: Iterable[bytes], watch: Watch) -> Head | None:
    """Return the head of the first of ``lines`` that tells a time."""
    for line in _some(lines):
        head = _head(line, watch.now, watch.zone)
        if head.at is not None:
            return head
    return None


def _is_dated(line: bytes, now: Instant, zone: tzinfo) -> bool:
    return _head(line, now, zone).at is not None


def _head(line: bytes, now: Instant, zone: tzinfo) -> Head:
    return head_of(readable(line.lstrip(b"\0")[:HEAD]), now, zone)


def _some(lines: Iterable[bytes]) -> Iterator[bytes]:
    return islice(lines, _MOST_LINES)


def _first_lines(data: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = end if end >= 0 else len(data)
        yield data[start : min(end, start + _END)]
        start = end + 1


def _last_lines(data: bytes) -> Iterator[bytes]:
    return reversed(data[-_END:].split(b"\n"))
