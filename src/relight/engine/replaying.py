"""Any past decision can be made again from the journal, and compared with what was decided."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from relight.engine.cases import Case
from relight.engine.step import step
from relight.model.advice import Advice
from relight.model.audit import AuditEntry
from relight.model.jobs import JobKey
from relight.model.records import Record
from relight.model.stimuli import Stimulus
from relight.policy.policies import PolicyBook


class Recorded(Protocol):
    """One record of the journal, as far as a replay needs it."""

    @property
    def stimulus(self) -> Stimulus:
        """Return what was taken in."""
        ...

    @property
    def book(self) -> str:
        """Return the revision of the policy book that it was decided under."""
        ...


class Replayed(Record, frozen=True, kw_only=True):
    """What a journal leads to: the last case of each job, every advice, every audit entry."""

    records: int
    cases: tuple[Case, ...]
    advice: tuple[Advice, ...]
    entries: tuple[AuditEntry, ...]


class Difference(Record, frozen=True, kw_only=True):
    """One thing that came out otherwise: what it is about, what was decided, what is now."""

    about: str
    was: str
    now: str


class ReplayReport(Record, frozen=True, kw_only=True):
    """How a replay compares with what is stored."""

    records: int
    advice: int
    entries: int
    differences: tuple[Difference, ...] = ()

    @property
    def is_same(self) -> bool:
        """Return whether every decision came out as it is stored."""
        return not self.differences


def replay(
    records: Iterable[Recorded],
    books: Mapping[str, PolicyBook],
    instead: PolicyBook | None = None,
) -> Replayed:
    """Fold a journal, in its order, into what it leads to.

    Each record is decided under the policy book of its own time, or all under ``instead``.

    Raises:
        LookupError: a record names a policy book that is not in ``books``.

    """
    cases: dict[JobKey, Case] = {}
    advice: dict[tuple[str, int], Advice] = {}
    entries: list[AuditEntry] = []
    count = 0
    for record in records:
        count += 1
        key = record.stimulus.job
        book = instead or books.get(record.book)
        if book is None:
            raise LookupError(f"the journal names policy book {record.book}, which is not stored")
        outcome = step(cases.get(key) or Case(key=key), record.stimulus, book)
        cases[key] = outcome.case
        advice.update({(one.id, one.generation): one for one in outcome.advice})
        entries += outcome.entries
    return Replayed(
        records=count,
        cases=tuple(cases[key] for key in sorted(cases)),
        advice=tuple(advice[key] for key in sorted(advice)),
        entries=tuple(entries),
    )


def compare(
    replayed: Replayed, stored_advice: Iterable[Advice], stored_entries: Iterable[AuditEntry]
) -> ReplayReport:
    """Return where a replay differs from the stored advice and audit, in a stable order."""
    differences = [
        *_compare_advice(replayed.advice, stored_advice),
        *_compare_entries(replayed.entries, tuple(stored_entries)),
    ]
    return ReplayReport(
        records=replayed.records,
        advice=len(replayed.advice),
        entries=len(replayed.entries),
        differences=tuple(differences),
    )


def _compare_advice(now: Iterable[Advice], was: Iterable[Advice]) -> list[Difference]:
    old = {(one.id, one.generation): one for one in was}
    new = {(one.id, one.generation): one for one in now}
    return [
        Difference(
            about=f"advice on {key[0]}, generation {key[1]}",
            was=_describe(old.get(key)),
            now=_describe(new.get(key)),
        )
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    ]


def _describe(advice: Advice | None) -> str:
    if advice is None:
        return "none"
    status = f"{advice.status.disposition}, {advice.status.reason}"
    return f"{advice.decision} ({advice.mode}, {status}): {advice.reason.sentence}"


def _compare_entries(now: tuple[AuditEntry, ...], was: tuple[AuditEntry, ...]) -> list[Difference]:
    longest = max(len(now), len(was))
    for number in range(longest):
        old = was[number] if number < len(was) else None
        new = now[number] if number < len(now) else None
        if old != new:
            return [
                Difference(
                    about=f"audit entry {number + 1} and those after it",
                    was=old.reason.sentence if old else "none",
                    now=new.reason.sentence if new else "none",
                )
            ]
    return []
