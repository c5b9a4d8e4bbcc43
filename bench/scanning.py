"""What a process of its own measures: ``python -m bench.scanning METHOD FILE``; prints JSON.

A process a measurement, so that memory and a core of its own are not shared with another.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from time import process_time

import msgspec

from relight.model.instants import Instant
from relight.model.jobs import AttemptKey, JobKey
from relight.model.records import Record
from relight.model.reports import LogFile
from relight.perception.ears import Ears, Lexicon
from relight.perception.matching import HAS_HYPERSCAN, Matcher, SetMatcher, build_matcher
from relight.perception.reporting import report_of
from relight.rules.loading import load
from relight.rules.schema import Rule

if HAS_HYPERSCAN:
    import hyperscan

PIECE = 1 << 20
METHODS = ("read", "matcher", "hyperscan", "fallback", "report")


class Scanned(Record, frozen=True, kw_only=True):
    """How much processor time one pass took, and what it took to be ready for it.

    ``found`` are lines that matched; of ``report`` findings, of ``hyperscan`` the ends of
    matches. ``step`` is the last step that a report tells.
    """

    seconds: float
    ready_seconds: float
    found: int
    step: int = 0


def scan(method: str, path: Path) -> Scanned:
    """Pass over a file once with a method of ``METHODS``."""
    begun = process_time()
    if method == "report":
        return _report(path, begun)
    if method == "read":
        ready = process_time()
        found = sum(piece.count(b"\0") for piece in _pieces(path))
    elif method == "hyperscan":
        database = all_at_once(load())
        ready = process_time()
        found = sum(count_ends(database, block) for block in _blocks(path))
    else:
        matcher: Matcher = SetMatcher(load()) if method == "fallback" else build_matcher(load())
        matcher.scan(b"")
        ready = process_time()
        found = sum(len({start for start, _ in matcher.scan(one)}) for one in _blocks(path))
    return Scanned(seconds=process_time() - ready, ready_seconds=ready - begun, found=found)


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb", buffering=0) as file:
        while piece := file.read(PIECE):
            yield piece


def _blocks(path: Path) -> Iterator[bytes]:
    """Yield the file in blocks of whole lines."""
    carry = b""
    for piece in _pieces(path):
        end = piece.rfind(b"\n") + 1
        if end:
            yield carry + piece[:end]
            carry = piece[end:]
        else:
            carry += piece
    if carry:
        yield carry


def _report(path: Path, begun: float) -> Scanned:
    """Do what ``relight diagnose`` does with one file, but for what it prints."""
    attempt = AttemptKey(job=JobKey(cluster="bench", scheduler_id="1"), attempt=0)
    ears = Ears(Lexicon(load()), attempt)
    ears.lexicon.matcher.scan(b"")
    ready = process_time()
    report = report_of(LogFile(file=str(path)), _pieces(path), ears, Instant(0))
    return Scanned(
        seconds=process_time() - ready,
        ready_seconds=ready - begun,
        found=len(report.findings),
        step=report.runs[-1].progress.last_step or 0,
    )


def all_at_once(rules: tuple[Rule, ...]) -> hyperscan.Database:
    """Return every expression as it stands in one database, as one would use Hyperscan alone."""
    expressions = [pattern.encode() for rule in rules for pattern in rule.patterns]
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(
        expressions=expressions,
        ids=list(range(len(expressions))),
        elements=len(expressions),
        flags=[hyperscan.HS_FLAG_MULTILINE] * len(expressions),
    )
    return database


def count_ends(database: hyperscan.Database, block: bytes) -> int:
    """Return how many ends of matches lie in a block."""
    ends: list[int] = []

    def heard(_number: int, _start: int, end: int, _flags: int, _context: object) -> None:
        ends.append(end)

    database.scan(block, match_event_handler=heard)
    return len(ends)


if __name__ == "__main__":
    sys.stdout.write(msgspec.json.encode(scan(sys.argv[1], Path(sys.argv[2]))).decode())
