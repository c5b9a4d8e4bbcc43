"""What is written to the store: one change, in one transaction, all of it or nothing."""

from __future__ import annotations

import msgspec

from relight.engine.cases import Case
from relight.model.advice import Advice
from relight.model.audit import AuditEntry
from relight.model.jobs import AttemptKey
from relight.model.records import Record
from relight.model.signals import Mark
from relight.model.stimuli import Stimulus
from relight.policy.policies import PolicyBook


class JournalRecord(Record, frozen=True, kw_only=True):
    """One stimulus as it was taken in, and what the core was made of at that moment.

    ``seq`` is given by the store, rises with each record and is 0 before it is written.
    ``book`` is the revision of the policy book, ``core`` the version of the code and
    ``rules`` the revision of the rules: under the same three, replay must be identical.
    """

    stimulus: Stimulus
    seq: int = 0
    book: str = ""
    core: str = ""
    rules: str = ""


class SavedPerception(Record, frozen=True, kw_only=True):
    """Where perception of one attempt stands: its state as opaque bytes, and a mark a file."""

    attempt: AttemptKey
    state: bytes
    marks: dict[str, Mark] = msgspec.field(default_factory=dict)


class Tail(Record, frozen=True, kw_only=True):
    """The last lines of one file of one attempt."""

    attempt: AttemptKey
    file: str
    text: str


class Change(Record, frozen=True, kw_only=True):
    """All that one step of the world changes; every part may be left out.

    ``case`` replaces the stored case of the same key. An advice replaces the stored one of
    the same attempt and generation; a new generation makes the older ones inactive.
    Perceptions and tails replace those of the same attempt and file. Journal records and
    audit entries are added in order. A policy book is written once a revision.
    """

    journal: tuple[JournalRecord, ...] = ()
    case: Case | None = None
    advice: tuple[Advice, ...] = ()
    audit: tuple[AuditEntry, ...] = ()
    books: tuple[PolicyBook, ...] = ()
    perceptions: tuple[SavedPerception, ...] = ()
    tails: tuple[Tail, ...] = ()
