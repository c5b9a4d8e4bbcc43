"""Reading logs beside grep and ripgrep: the same expressions, file and core, the cache warm."""

from __future__ import annotations

import os
import resource
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
from relight.perception.shapes import COUNTERS, SHAPES
from relight.rules.loading import load

_MOST_SECONDS = 180
"""One pass over a file may take so long."""
_ENOUGH_SECONDS = 40
"""A method that has taken so long is not measured again."""
_SMALL = 10
"""RE2's set gets a log of the size divided by this."""
_TINY = 200
"""So do all, by this, where every line matches: ripgrep would need an hour."""
_GREP = 1000
"""So does, by this, grep, which would need a day."""
_SHARES = (1, 70)
"""Lines in a hundred that tell a step."""


class _Passes(NamedTuple):
    """The median seconds of passes over one file, of getting ready, and what was found."""

    seconds: float
    ready: float
    found: int
    step: int = 0

    def speed(self, of: str, size: int, *, started: bool = True) -> Measured:
        seconds = self.seconds + self.ready if started else self.seconds
        return Measured(of=of, value=size / 1e6 / seconds, unit="MB/s")


class _Log(NamedTuple):
    path: Path
    size: int
    lines: int
    planted: int


def measure(*, megabytes: int = 100, repeats: int = 5, slow: bool = True) -> Result:
    """Return MB/s of relight and of its peers, each on one core, and what they found.

    ``slow`` False leaves out GNU grep and Hyperscan alone, which take minutes.
    """
    with tempfile.TemporaryDirectory(prefix="relight-bench-") as name:
        return _Bench(Path(name), megabytes * 1_000_000, repeats, slow=slow).run()


class _Bench:
    def __init__(self, folder: Path, size: int, repeats: int, *, slow: bool) -> None:
        self._folder = folder
        self._size = size
        self._repeats = repeats
        self._with_slow = slow
        self._core = str(max(os.sched_getaffinity(0)))
        rules = load()
        self._rules = len(rules)
        self._patterns = [pattern for rule in rules for pattern in rule.patterns]
        self._more = sum(len(shape.patterns) for shape in (*SHAPES, *COUNTERS)) + 1
        self._hits = [hit for rule in rules for hit in rule.hits]

    def run(self) -> Result:
        few, most = (self._log(f"{share}.log", self._size, share) for share in _SHARES)
        every = self._log("every.log", self._size // _TINY, 1, matching_every=1)
        searched = self._peer("rg", for_ripgrep, few)
        rows = [
            self._whole("1 % of the lines tell a step", few, searched),
            self._whole("70 % do", most, self._peer("rg", for_ripgrep, most)),
            self._whole("every line matches a rule", every, self._peer("rg", for_ripgrep, every)),
            *self._matching(few, searched),
        ]
        return Result(part="matching", rows=tuple(rows), facts=self._facts(few, every))

    def _log(self, name: str, size: int, share: int, matching_every: int = 1000) -> _Log:
        path = self._folder / name
        lines, planted = write_log(
            path, size=size, matching=self._hits, progress=share, matching_every=matching_every
        )
        return _Log(path, path.stat().st_size, lines, planted)

    def _whole(self, what: str, log: _Log, peer: _Passes | str) -> Row:
        ours = self._ours("report", log)
        told = f"{ours.found:,} findings, step {ours.step:,}"
        return self._beside(f"the whole, {what}", ours.speed(told, log.size), log, peer)

    def _matching(self, log: _Log, searched: _Passes | str) -> list[Row]:
        matcher = self._ours("matcher", log)
        engine = "Hyperscan" if HAS_HYPERSCAN else "RE2"
        started = matcher.speed(f"{engine}, {matcher.found:,} lines", log.size)
        ours = matcher.speed("without getting ready", log.size, started=False)
        rows = [self._beside("matching", started, log, searched)]
        if self._with_slow:
            rows.append(self._beside_grep())
        if self._with_slow and HAS_HYPERSCAN:
            alone = self._ours("hyperscan", log)
            told = (
                f"all expressions as they stand, {alone.found:,} ends; ready in {alone.ready:.1f} s"
            )
            theirs = alone.speed(told, log.size, started=False)
            rows.append(faster("matching, beside Hyperscan alone", ours, theirs))
        limit = self._ours("read", log).speed("only reading the file", log.size)
        rows.append(faster("matching, beside the limit", ours, limit))
        small = self._log("small.log", self._size // _SMALL, 1)
        fallback = self._ours("fallback", small)
        told = f"RE2's set, {fallback.found:,} lines"
        speed = fallback.speed(told, small.size, started=False)
        rows.append(self._beside("matching without Hyperscan", speed, log, searched))
        return rows

    def _beside_grep(self) -> Row:
        log = self._log("tiny.log", self._size // _GREP, 1)
        matcher = self._ours("matcher", log)
        ours = matcher.speed(f"{matcher.found:,} lines", log.size, started=False)
        return self._beside(
            f"matching {log.size / 1e6:.1f} MB, neither's start counted",
            ours,
            log,
            self._peer("grep", for_grep, log),
            started=False,
        )

    def _beside(
        self, what: str, ours: Measured, log: _Log, peer: _Passes | str, *, started: bool = True
    ) -> Row:
        if isinstance(peer, str):
            return faster(what, ours, None, peer)
        told = f"{peer.found:,} lines"
        return faster(what, ours, peer.speed(told, log.size, started=started))

    def _facts(self, log: _Log, every: _Log) -> tuple[str, ...]:
        ready = self._ours("matcher", every).ready
        return (
            (
                f"{log.size / 1e6:.0f} MB, {log.lines:,} lines, {log.planted:,} of them written to "
                f"match; {every.size / 1e6:.1f} MB where every line is. {len(self._patterns)} "
                f"expressions of {self._rules} rules, {self._more} more for progress and "
                f"tracebacks; medians of up to {self._repeats} passes on core {self._core}, page "
                "cache warm, reading included. Seconds are of processor time, which other work "
                "on the machine changes little."
            ),
            (
                f"Getting ready is counted, for a user pays it: relight {ready:.2f} s (rules read "
                "and expressions compiled, nothing taken from an earlier start), ripgrep "
                f"{self._start('rg')}, grep {self._start('grep')}."
            ),
            (
                "ripgrep reads bytes (--no-unicode), as relight does; for grep, classes, groups "
                "and (?i) were written as POSIX knows them."
            ),
        )

    def _ours(self, method: str, log: _Log) -> _Passes:
        begun = perf_counter()
        passes: list[Scanned] = []
        while len(passes) < self._repeats and perf_counter() - begun < _ENOUGH_SECONDS:
            done = self._pinned(sys.executable, "-m", "bench.scanning", method, str(log.path))
            if done.returncode:
                told = done.stderr.decode(errors="replace")[-2000:]
                raise RuntimeError(f"bench.scanning {method} failed, mend this first: {told}")
            passes.append(msgspec.json.decode(done.stdout, type=Scanned))
        return _Passes(
            median(one.seconds for one in passes),
            median(one.ready_seconds for one in passes),
            passes[0].found,
            passes[0].step,
        )

    def _peer(self, program: str, translate: Callable[[str], str], log: _Log) -> _Passes | str:
        if shutil.which(program) is None:
            return f"{program} is not installed"
        patterns = self._folder / f"{program}.patterns"
        patterns.write_text("".join(f"{translate(one)}\n" for one in self._patterns))
        begun = perf_counter()
        seconds: list[float] = []
        found = 0
        while len(seconds) < self._repeats and perf_counter() - begun < _ENOUGH_SECONDS:
            before = _used()
            try:
                done = self._pinned(*_command(program, patterns, log.path))
            except subprocess.TimeoutExpired:
                return f"{program} did not end within {_MOST_SECONDS} s"
            seconds.append(_used() - before)
            if done.returncode > 1:
                return f"{program} failed: {done.stderr.decode(errors='replace').strip()[:200]}"
            found = int(done.stdout or 0)
        ready = min(self._empty(program, patterns), *seconds)
        return _Passes(median(seconds) - ready, ready, found)

    def _start(self, program: str) -> str:
        patterns = self._folder / f"{program}.patterns"
        return f"{self._empty(program, patterns):.2f} s" if patterns.exists() else "not measured"

    def _empty(self, program: str, patterns: Path) -> float:
        """Return the processor time that a program takes to read nothing."""
        before = _used()
        self._pinned(*_command(program, patterns, Path(os.devnull)))
        return _used() - before

    def _pinned(self, *command: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            ["taskset", "-c", self._core, *command],
            env={**os.environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_MOST_SECONDS,
            check=False,
        )


def _used() -> float:
    """Return the seconds of processor time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _command(program: str, patterns: Path, log: Path) -> Sequence[str]:
    if program == "rg":
        options = ("--no-config", "-j1", "--no-unicode", "-a")
        return ("rg", *options, "-c", "-f", str(patterns), str(log))
    return ("grep", "-a", "-c", "-E", "-f", str(patterns), str(log))
