"""The matcher beside grep and ripgrep: the same expressions, file and core, the cache warm."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NamedTuple

import msgspec

from bench.logs import write_log
from bench.posix import for_grep, for_ripgrep
from bench.scanning import Scanned
from bench.tables import Measured, Result, Row, faster
from relight.perception.matching import HAS_HYPERSCAN
from relight.perception.shapes import SHAPES
from relight.rules.loading import load

_MOST_SECONDS = 120
"""One pass over the file may take so long."""
_SAMPLE = 10
"""The slow methods get a file of the size divided by this."""
_PROGRESS_EVERY = 100
_DENSE_PROGRESS_EVERY = 2


class _Passes(NamedTuple):
    """The median seconds of several passes over one file, and the lines that each found."""

    seconds: float
    lines: int

    def speed(self, of: str, size: int) -> Measured:
        return Measured(of=of, value=size / 1e6 / self.seconds, unit="MB/s")


def measure(*, megabytes: int = 200, repeats: int = 5) -> Result:
    """Return MB/s of the matcher and of its peers, each on one core, and the lines found."""
    with tempfile.TemporaryDirectory(prefix="relight-bench-") as name:
        return _Bench(Path(name), megabytes, repeats).run()


class _Bench:
    def __init__(self, folder: Path, megabytes: int, repeats: int) -> None:
        self._folder = folder
        self._repeats = repeats
        self._core = str(max(os.sched_getaffinity(0)))
        rules = load()
        self._patterns = [pattern for rule in rules for pattern in rule.patterns]
        self._more = sum(len(shape.patterns) for shape in SHAPES) + 1
        hits = [hit for rule in rules for hit in rule.hits]
        size = megabytes * 1_000_000
        self._log, self._sample, self._dense = (
            folder / name for name in ("whole.log", "sample.log", "dense.log")
        )
        self._lines, self._planted = write_log(
            self._log, size=size, matching=hits, progress_every=_PROGRESS_EVERY
        )
        for path, every in ((self._sample, _PROGRESS_EVERY), (self._dense, _DENSE_PROGRESS_EVERY)):
            write_log(path, size=size // _SAMPLE, matching=hits, progress_every=every)

    def run(self) -> Result:
        whole, sample = self._log.stat().st_size, self._sample.stat().st_size
        read = self._ours("read", self._log)
        matcher = self._ours("matcher", self._log)
        fallback = self._ours("fallback", self._sample)
        folded = self._ours("fold", self._log)
        dense = self._ours("fold", self._dense)
        engine = "Hyperscan" if HAS_HYPERSCAN else "RE2"
        ours = matcher.speed(f"{engine}, {matcher.lines:,} lines", whole)
        ripgrep, grep = self._peer("rg", for_ripgrep), self._peer("grep", for_grep)
        theirs = None if isinstance(ripgrep, str) else ripgrep.speed("ripgrep -j1", whole)
        rows = [
            self._beside("matching, beside ripgrep", ours, matcher, ripgrep),
            self._beside("matching, beside grep", ours, matcher, grep),
        ]
        limit = read.speed("only reading the file", whole)
        rows += [
            faster("matching, beside the limit", ours, limit),
            faster(
                "the RE2 fallback",
                fallback.speed(f"RE2's set, {fallback.lines:,} lines of a tenth", sample),
                theirs,
            ),
            faster(
                "the whole fold, a step in 1 % of the lines",
                folded.speed(f"{folded.lines:,} findings", whole),
                theirs,
                f"{self._more} more expressions, steps, tracebacks, findings",
            ),
            Row(
                what="the whole fold, a step in 50 % of the lines",
                ours=dense.speed(f"{dense.lines:,} findings", self._dense.stat().st_size),
                note="a tenth of the size",
            ),
        ]
        return Result(part="matching", rows=tuple(rows), facts=self._facts(whole))

    def _beside(self, what: str, ours: Measured, matcher: _Passes, peer: _Passes | str) -> Row:
        if isinstance(peer, str):
            return faster(what, ours, None, peer)
        theirs = peer.speed(f"{peer.lines:,} lines", self._log.stat().st_size)
        more = peer.lines - matcher.lines
        return faster(what, ours, theirs, f"it found {more:+,} lines" if more else "")

    def _facts(self, size: int) -> tuple[str, ...]:
        compiled = self._child("matcher", self._sample)
        return (
            (
                f"{size / 1e6:.0f} MB, {self._lines:,} lines, {self._planted:,} of them written to "
                f"match; {len(self._patterns)} expressions; medians of {self._repeats} passes on "
                f"core {self._core}, page cache warm, reading included."
            ),
            (
                f"relight compiles its expressions once, in {compiled.compile_seconds:.2f} s, "
                "which is not in its number; the peers' start and compilation are in theirs, "
                f"because a user pays them each time: ripgrep {self._start('rg')}, grep "
                f"{self._start('grep')} on an empty file."
            ),
            (
                "ripgrep reads bytes (--no-unicode), as relight does; for grep, classes, groups "
                "and (?i) were written as POSIX knows them."
            ),
        )

    def _ours(self, method: str, path: Path) -> _Passes:
        passes = [self._child(method, path) for _ in range(self._repeats)]
        return _Passes(median(one.seconds for one in passes), passes[0].matched)

    def _child(self, method: str, path: Path) -> Scanned:
        output = self._pinned(sys.executable, "-m", "bench.scanning", method, str(path)).stdout
        return msgspec.json.decode(output, type=Scanned)

    def _peer(self, program: str, translate: Callable[[str], str]) -> _Passes | str:
        if shutil.which(program) is None:
            return f"{program} is not installed"
        patterns = self._folder / f"{program}.patterns"
        patterns.write_text("".join(f"{translate(one)}\n" for one in self._patterns))
        command = _command(program, patterns, self._log)
        seconds: list[float] = []
        lines = 0
        for _ in range(self._repeats):
            begun = perf_counter()
            done = self._pinned(*command)
            seconds.append(perf_counter() - begun)
            if done.returncode > 1:
                return f"{program} failed: {done.stderr.decode(errors='replace').strip()[:200]}"
            lines = int(done.stdout or 0)
        return _Passes(median(seconds), lines)

    def _start(self, program: str) -> str:
        patterns = self._folder / f"{program}.patterns"
        if not patterns.exists():
            return "absent"
        begun = perf_counter()
        self._pinned(*_command(program, patterns, Path(os.devnull)))
        return f"{(perf_counter() - begun) * 1000:.0f} ms"

    def _pinned(self, *command: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            ["taskset", "-c", self._core, *command],
            env={**os.environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_MOST_SECONDS,
            check=False,
        )


def _command(program: str, patterns: Path, log: Path) -> Sequence[str]:
    if program == "rg":
        options = ("--no-config", "-j1", "--no-unicode", "-a")
        return ("rg", *options, "-c", "-f", str(patterns), str(log))
    return ("grep", "-a", "-c", "-E", "-f", str(patterns), str(log))
