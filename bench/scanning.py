"""What a process of its own measures: ``python -m bench.scanning METHOD FILE``; prints JSON.

A process a measurement, so that memory and a core of its own are not shared with another.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import msgspec

from relight.model.instants import Instant
from relight.model.jobs import AttemptKey, JobKey
from relight.model.records import Record
from relight.model.signals import Mark, Reading
from relight.perception.attempts import PerceptionState, perceive
from relight.perception.ears import Ears, Lexicon
from relight.perception.matching import SetMatcher, build_matcher
from relight.rules.loading import load

PIECE = 1 << 20
METHODS = ("read", "matcher", "fallback", "fold")


class Scanned(Record, frozen=True, kw_only=True):
    """How long one pass took, without compiling; lines that matched (the fold: findings)."""

    seconds: float
    compile_seconds: float
    matched: int


def scan(method: str, path: Path) -> Scanned:
    """Pass over a file once with a method of ``METHODS``."""
    begun = perf_counter()
    if method == "fold":
        lexicon = Lexicon(load())
        ready = perf_counter()
        matched = _fold(path, lexicon)
    elif method == "read":
        ready = perf_counter()
        matched = sum(piece.count(b"\0") for piece in _pieces(path))
    else:
        rules = load()
        matcher = SetMatcher(rules) if method == "fallback" else build_matcher(rules)
        ready = perf_counter()
        matched = sum(len({start for start, _ in matcher.scan(one)}) for one in _blocks(path))
    return Scanned(seconds=perf_counter() - ready, compile_seconds=ready - begun, matched=matched)


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


def _fold(path: Path, lexicon: Lexicon) -> int:
    ears = Ears(lexicon, AttemptKey(job=JobKey(cluster="bench", scheduler_id="1"), attempt=0))
    state = PerceptionState()
    found = offset = 0
    for piece in _pieces(path):
        mark = Mark(offset=offset + len(piece))
        reading = Reading(file=str(path), offset=offset, data=piece, mark=mark)
        perceived = perceive(state, [reading], Instant(0), ears)
        state = perceived.state
        found += len(perceived.findings)
        offset += len(piece)
    return found


if __name__ == "__main__":
    sys.stdout.write(msgspec.json.encode(scan(sys.argv[1], Path(sys.argv[2]))).decode())
