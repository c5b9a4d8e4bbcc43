"""The outbox: what this controller was about to do, on the disk before it does it (law 2).

One small file of JSON lines. An intent is written and flushed to the disk before the
scheduler is asked, a result after. A controller that dies in between finds on its next
start an intent without a result: it then looks at the scheduler, and never repeats the
order unless the look shows that it did not happen.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from relight.controller.reconciling import Past, Signalled
from relight.model.advice import Advice
from relight.model.instants import Instant, seconds
from relight.model.orders import Order, OrderOutcome, Outcome, Verb
from relight.model.records import Record

REPEAT_AFTER = seconds(5)
FORGOTTEN_AFTER = seconds(30)
KEEP = 5_000
"""Lines kept when the file is rewritten; a job is forgotten by Slurm long before."""


class Line(Record, frozen=True, kw_only=True):
    """One line of the file: an intent, or with ``outcome`` its result."""

    order: Order
    at: Instant
    outcome: OrderOutcome | None = None
    reported: bool = False


class Outbox:
    """Intents and results by order key, appended to one file.

    Raises:
        OSError: the folder cannot be written; the controller must not act then.

    """

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lines = {line.order.key: line for line in _read(path)}
        self._rewrite()
        self._file = path.open("ab", buffering=0)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def intend(self, order: Order, at: Instant) -> None:
        """Write down, durably, that ``order`` is about to be given."""
        self._append(Line(order=order, at=at))

    def record(self, outcome: OrderOutcome, *, reported: bool) -> None:
        """Write down, durably, what became of an order, and whether the backend knows."""
        self._append(
            Line(order=outcome.order, at=outcome.answered_at, outcome=outcome, reported=reported)
        )

    def unreported(self) -> tuple[OrderOutcome, ...]:
        """Return the results that the backend does not know yet."""
        return tuple(
            line.outcome
            for line in self._lines.values()
            if line.outcome is not None and not line.reported
        )

    def past_requeue(self, advice: Advice) -> Past:
        """Return whether the requeue of this advice's attempt was ordered by this controller.

        An unclear one counts as ordered: whether it happened, the scheduler's restart count
        tells, and a second one is never sent on the strength of not knowing.
        """
        lines = [
            line
            for line in self._lines.values()
            if line.order.verb is Verb.REQUEUE and line.order.attempt == advice.attempt
        ]
        refused = [
            line
            for line in lines
            if line.outcome is not None and line.outcome.outcome is Outcome.REFUSED
        ]
        if len(refused) < len(lines):
            return Past.ORDERED
        if not advice.while_living:  # refused while it ran, since it had just ended: try again
            refused = [line for line in refused if not line.order.target]
        return Past.REFUSED if refused else Past.NEVER

    def signalled(self, advice: Advice) -> Signalled | None:
        """Return what became of the signal of this generation, None when none was sent."""
        lines = [
            line
            for line in self._lines.values()
            if line.order.verb is Verb.SIGNAL
            and line.order.attempt == advice.attempt
            and line.order.generation == advice.generation
        ]
        if not lines:
            return None
        last = lines[-1]
        return Signalled(
            at=last.at,
            is_refused=last.outcome is not None and last.outcome.outcome is Outcome.REFUSED,
        )

    def may_order(self, order: Order, now: Instant) -> bool:
        """Tell whether an order may be given, or given again because it was never answered.

        What was done or refused is never repeated. What was never answered is repeated only
        after ``REPEAT_AFTER``, so that a request still waiting inside the scheduler has been
        taken up before the look that the repetition rests on. A signal never is: no look tells
        whether it arrived.
        """
        line = self._lines.get(order.key)
        if line is None:
            return True
        if order.verb is Verb.SIGNAL:
            return False
        if line.outcome is not None and line.outcome.outcome is not Outcome.UNCLEAR:
            return False
        return now - line.at >= REPEAT_AFTER

    def refusal(self, order: Order) -> OrderOutcome | None:
        """Return the scheduler's no to an order, None when it did not say no."""
        line = self._lines.get(order.key)
        outcome = line.outcome if line is not None else None
        refused = outcome is not None and outcome.outcome is Outcome.REFUSED
        return outcome if refused else None

    def is_forgotten(self, order: Order, now: Instant) -> bool:
        """Tell whether the scheduler did a requeue long ago and has undone it since.

        slurmctld saves its state some seconds late: one that dies just after a change comes
        back without it (seen on 22.05).
        """
        line = self._lines.get(order.key)
        outcome = line.outcome if line is not None else None
        return (
            order.verb is Verb.REQUEUE
            and outcome is not None
            and outcome.outcome is Outcome.DONE
            and now - outcome.answered_at >= FORGOTTEN_AFTER
        )

    def _append(self, line: Line) -> None:
        """Write a line durably; one that did not get there whole is cut off and not believed."""
        file = self._file.fileno()
        end = os.fstat(file).st_size
        rest = memoryview(msgspec.json.encode(line) + b"\n")
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(file)
        except OSError:
            os.ftruncate(file, end)
            raise
        self._lines[line.order.key] = line

    def _rewrite(self) -> None:
        """Keep the newest line of each key, in one new file that replaces the old at once."""
        kept = list(self._lines.values())[-KEEP:]
        fresh = self._path.with_suffix(".new")
        with fresh.open("wb") as file:
            file.writelines(msgspec.json.encode(line) + b"\n" for line in kept)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)
        _flush_folder(self._path.parent)


def _flush_folder(folder: Path) -> None:
    """Make the new name durable too: after a power cut the old file would lack what follows."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(path: Path) -> list[Line]:
    """Return the readable lines of the file; one torn by a crash was never acted on."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return []
    lines: list[Line] = []
    for text in raw.split(b"\n"):
        try:
            lines.append(msgspec.json.decode(text, type=Line))
        except msgspec.DecodeError:
            continue
    return lines
