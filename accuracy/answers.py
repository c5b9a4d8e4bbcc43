"""What was said of a log: by relight, by a grep for fatal words, by restarting always."""

from __future__ import annotations

import re
from pathlib import Path
from time import perf_counter

from relight.engine.offline import examine
from relight.model.instants import from_iso
from relight.model.jobs import Allocation, AttemptKey, JobKey
from relight.model.records import Record
from relight.model.reports import LogFile, Report
from relight.perception.ears import Ears, Lexicon
from relight.perception.reporting import report_of
from relight.rules.loading import load

NOW = from_iso("2027-01-01T00:00:00Z")
"""When logs are read: fixed, so that a measurement can be repeated."""
ATTEMPT = AttemptKey(job=JobKey(cluster="accuracy", scheduler_id="1"), attempt=0)
_CHUNK = 1 << 20

FATAL = {
    "uncorrectable ECC": "restart_excluding_node",
    "fallen off the bus": "restart_excluding_node",
    "NVRM: Xid": "restart_excluding_node",
    "CUDA error": "restart",
    "HIP error": "restart",
    "CUDA out of memory": "stop",
    "OutOfMemoryError": "stop",
    "NCCL WARN": "restart",
    "NCCL error": "restart",
    "Watchdog caught collective operation timeout": "restart",
    "Connection reset by peer": "restart",
    "Connection refused": "restart",
    "Address already in use": "restart",
    "name resolution": "restart",
    "Segmentation fault": "restart",
    "Bus error": "restart",
    "oom-kill": "stop",
    "Out of memory: Killed process": "stop",
    "SIGKILL": "restart",
    "No space left on device": "stop",
    "Disk quota exceeded": "stop",
    "Input/output error": "restart",
    "Stale file handle": "restart",
    "ModuleNotFoundError": "stop",
    "FileNotFoundError": "stop",
    "ChildFailedError": "restart",
    "Traceback (most recent call last)": "stop",
    "DUE TO NODE FAILURE": "restart_excluding_node",
    "DUE TO TIME LIMIT": "none",
    "CANCELLED AT": "none",
}
"""Thirty well-known strings and what a script that looks for them would do, fixed once."""
_FATAL = re.compile("|".join(re.escape(word) for word in FATAL).encode())


class Answer(Record, frozen=True, kw_only=True):
    """What was said of one log; None, and empty, where nothing was said."""

    kind: str | None = None
    ending: str | None = None
    domain: str | None = None
    family: str | None = None
    decision: str
    confidence: float = 0.0
    root_line: int | None = None
    text: str = ""
    ranks: tuple[int, ...] = ()
    nodes: tuple[str, ...] = ()
    last_step: int | None = None
    cause: str = ""
    sentence: str = ""
    seconds: float = 0.0


def ears() -> Ears:
    """Return what relight listens with: its packaged rules."""
    return Ears(lexicon=Lexicon(load()), attempt=ATTEMPT)


def report_on(path: Path, listening: Ears) -> Report:
    """Return relight's report on one log, without an allocation."""
    with path.open("rb") as stream:
        chunks = iter(lambda: stream.read(_CHUNK), b"")
        file = report_of(LogFile(file=str(path)), chunks, listening, NOW)
    return examine([file], Allocation())


def ours(path: Path, listening: Ears) -> Answer:
    """Return what relight says of one log, and how long that took."""
    begun = perf_counter()
    report = report_on(path, listening)
    root = report.root
    return Answer(
        kind=report.kind.value,
        ending=report.ending.value if report.ending else None,
        domain=report.domain.value,
        family=report.family,
        decision=report.decision.value,
        confidence=report.confidence,
        root_line=root.line if root else None,
        text=root.text if root else "",
        ranks=report.ranks,
        nodes=report.nodes,
        last_step=report.last_step,
        cause=report.cause,
        sentence=report.sentence,
        seconds=perf_counter() - begun,
    )


def grep(path: Path) -> Answer:
    """Return what a grep says: the first line with a fatal string decides, none is healthy."""
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            found = _FATAL.search(line)
            if found is not None:
                return Answer(
                    kind="crash", decision=FATAL[found.group().decode()], root_line=number
                )
    return Answer(kind="none", decision="none")


def always_restart(_path: Path) -> Answer:
    """Return what is said without looking."""
    return Answer(decision="restart")
