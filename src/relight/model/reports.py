"""What is known of logs that are read as a whole, without a scheduler beside them."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from relight.model.advice import Decision
from relight.model.findings import Domain, End, Finding
from relight.model.instants import Instant
from relight.model.progress import Progress, StepUnit
from relight.model.records import Record
from relight.model.verdicts import Alternative, Suspect, Term


class Shown(Record, frozen=True, kw_only=True):
    """One line of a file, as it is shown: its number from 1 (line feeds only) and its text."""

    file: str
    line: int
    text: str


class LogFile(Record, frozen=True, kw_only=True):
    """The name of a file as it is shown, and the rank and the node that the name tells."""

    file: str
    rank: int | None = None
    node: str | None = None


class Run(Record, frozen=True, kw_only=True):
    """One of the runs that a file holds one after another, from 0, and how far it came."""

    number: int
    first_line: int
    last_line: int
    progress: Progress = Progress()


class FileReport(Record, frozen=True, kw_only=True):
    """Everything that diagnosis needs of one file that was read to its end.

    ``rank`` and ``node`` are told by the file's name. ``first_at`` and ``last_at`` are the
    first and last instants that its lines print. ``tail`` are its last lines with their
    numbers, oldest first. ``hosts`` tells where each rank of the last run ran, as its start-up
    prints it. ``trouble`` says in one sentence what could not be read of it.
    """

    file: str
    size: int = 0
    """Bytes read, after decompression."""
    lines: int = 0
    rank: int | None = None
    node: str | None = None
    findings: tuple[Finding, ...] = ()
    runs: tuple[Run, ...] = ()
    tail: tuple[Shown, ...] = ()
    first_at: Instant | None = None
    last_at: Instant | None = None
    hosts: dict[int, str] = msgspec.field(default_factory=dict)
    trouble: str = ""
    is_binary: bool = False


class Happened(StrEnum):
    """What a report says happened."""

    CRASH = "crash"
    HANG = "hang"
    STRAGGLER = "straggler"
    NONE = "none"


class RootLine(Record, frozen=True, kw_only=True):
    """The line that tells the cause, with where, when and by whom it was written."""

    file: str
    line: int
    text: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    at: Instant | None = None
    rank: int | None = None
    node: str | None = None


class SetAsideLine(Record, frozen=True, kw_only=True):
    """A line that was read as a symptom or as harmless, and why; it stands for ``count``."""

    rule: str
    file: str
    line: int
    text: str
    why: str
    count: int = 1


class Report(Record, frozen=True, kw_only=True):
    """The diagnosis of logs: what happened, whose fault it is, and what relight would do.

    ``nodes`` and ``ranks`` are where the cause lies; ``exclude`` are the nodes that the next
    attempt should not get. ``likely`` are lines worth a look where the cause is unknown.
    ``attempts`` counts the runs that the logs hold; all figures are the last one's.
    """

    kind: Happened
    ending: End | None
    domain: Domain
    cause: str
    family: str
    decision: Decision
    confidence: float
    sentence: str
    why: str
    """Why this decision, in one sentence."""
    root: RootLine | None = None
    ranks: tuple[int, ...] = ()
    nodes: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    terms: tuple[Term, ...] = ()
    last_step: int | None = None
    step_unit: StepUnit | None = None
    step_seconds: float | None = None
    attempts: int = 1
    last_checkpoint_step: int | None = None
    progress: Progress = Progress()
    set_aside: tuple[SetAsideLine, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    likely: tuple[Shown, ...] = ()
