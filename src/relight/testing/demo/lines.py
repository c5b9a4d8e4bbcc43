"""The demo as plain lines, for a pipe or a log: no control codes, nothing is written over."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from relight.engine.cases import AttemptCase
from relight.model.advice import Mode
from relight.model.audit import AuditEntry, Topic
from relight.model.instants import between, in_seconds
from relight.testing.demo.sentences import (
    PLAIN_REQUEUE,
    closing,
    describe_advice,
    describe_order,
    evidence_around_root,
    headline,
    seconds_to_first_step,
    shown,
    spans,
)
from relight.testing.demo.watching import Act, Snapshot

_INDENT = " " * 10
_MOST_EVIDENCE = 6
_WIDEST_EVIDENCE = 120
_AS_RECORDED = frozenset({Topic.ATTEMPT, Topic.RECONCILIATION, Topic.RECOVERY, Topic.INCIDENT})


class LineTeller:
    """Tells an act line by line, as its record grows."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._told: set[str] = set()
        self._checkpoint: int | None = None

    def begin(self, act: Act) -> None:
        """Say which act begins."""
        self._told.clear()
        self._checkpoint = None
        self._say("")
        self._say(f"== Act {act.number} of 2: {act.mode.upper()}: {headline(act.mode)} ==")

    def show(self, now: Snapshot) -> None:
        """Say what is new."""
        if now.checkpoint is not None and now.checkpoint != self._checkpoint:
            self._checkpoint = now.checkpoint
            self._tell(now, f"Checkpoint of step {now.checkpoint} is complete.")
        for entry in now.entries:
            for line in _of(entry, now):
                self._tell(now, line)

    def end(self, last: Snapshot) -> None:
        """Say how the act ended, and how long each part took."""
        self._tell(last, closing(last))
        incident = last.incident
        if incident is None or last.act.mode is Mode.MONITOR:
            return
        split = ", ".join(f"{name} {since}" for name, since in spans(incident.times))
        self._say(f"{_INDENT}Time: {split}.")
        first = seconds_to_first_step(incident.times)
        if first is not None:
            self._say(
                f"{_INDENT}Back after {first:.1f} s. Plain requeue: {PLAIN_REQUEUE:.0f} s before "
                "it may even start, perhaps on the broken node."
            )

    def close(self) -> None:
        """Do nothing: lines leave nothing behind."""

    def _tell(self, now: Snapshot, line: str) -> None:
        if line in self._told:
            return
        self._told.add(line)
        self._say(f"{in_seconds(between(now.began, now.at)):7.1f} s {line}")


def _of(entry: AuditEntry, now: Snapshot) -> Iterator[str]:
    attempt = now.case.attempt(entry.attempt) if now.case is not None else None
    if attempt is None:
        return
    if entry.topic is Topic.VERDICT:
        yield from _found(attempt)
    elif entry.topic is Topic.ADVICE:
        if attempt.advice is not None:
            yield f"Advice: {describe_advice(attempt.advice)}"
    elif entry.topic is Topic.ORDER:
        yield from (f"Order: {describe_order(one)}" for one in attempt.orders)
    elif entry.topic in _AS_RECORDED and not _is_advice(entry, attempt):
        yield entry.reason.sentence


def _found(attempt: AttemptCase) -> Iterator[str]:
    verdict = attempt.incident.verdict if attempt.incident is not None else None
    if verdict is None:
        return
    yield f"Found: {verdict.sentence} ({verdict.domain}, {verdict.confidence:.0%} sure)."
    for one in evidence_around_root(verdict.evidence, _MOST_EVIDENCE):
        yield f"  {'>>' if one.is_root else '  '} {shown(one.text)[:_WIDEST_EVIDENCE]}"


def _is_advice(entry: AuditEntry, attempt: AttemptCase) -> bool:
    """Tell whether an incident closed with its advice, which has been told."""
    advice = attempt.advice
    return advice is not None and advice.reason.sentence == entry.reason.sentence
