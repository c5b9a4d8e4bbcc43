"""How each part of a change becomes rows."""

from __future__ import annotations

from typing import Any

import msgspec
import sqlalchemy as sa

from relight.engine.cases import Case
from relight.model.advice import Advice
from relight.model.audit import AuditEntry
from relight.model.incidents import Phase
from relight.model.jobs import ENDED
from relight.model.records import digest
from relight.policy.policies import PolicyBook
from relight.store import tables
from relight.store.changes import Change, JournalRecord, SavedPerception, Tail
from relight.store.errors import StoreRefused
from relight.store.keys import attempt_text, clean, clipped, job_columns, key_text

Row = dict[str, Any]


def write(connection: sa.Connection, change: Change) -> None:
    """Write every part of ``change`` over a connection that is in a transaction.

    Raises:
        StoreRefused: a key is too long, or a text cannot be written as UTF-8.

    """
    _add(connection, tables.policy_books, _new_books(connection, change.books))
    _add(connection, tables.journal, [_journal_row(record) for record in change.journal])
    if change.case is not None:
        row = _case_row(change.case)
        _put(connection, tables.cases, ("cluster", "scheduler_id", "reuse"), row)
    for advice in change.advice:
        _put_advice(connection, advice)
    _add(connection, tables.audit, [_audit_row(entry) for entry in change.audit])
    for saved in change.perceptions:
        _put(connection, tables.perceptions, ("attempt",), _perception_row(saved))
    for tail in change.tails:
        _put(connection, tables.tails, ("attempt", "file_digest"), _tail_row(tail))


def is_open(case: Case) -> bool:
    """Return whether something can still come of a case without a word from outside.

    Its last attempt lives, its logs are still to be read, it waits for an instant, or the
    story or advice of one of its attempts is not over.
    """
    for attempt in case.attempts:
        if attempt.incident is not None and attempt.incident.phase is not Phase.CLOSED:
            return True
        if attempt.advice is not None and attempt.advice.is_active:
            return True
    latest = case.latest
    if case.wake_at is not None or latest is None:
        return True
    if case.is_gone:
        return False
    logs_owed = case.choice.opted_in and not (latest.logs_read or latest.logs_unseen)
    return latest.fact.state not in ENDED or logs_owed


def _add(connection: sa.Connection, table: sa.Table, rows: list[Row]) -> None:
    if rows:
        connection.execute(sa.insert(table), rows)


def _put(connection: sa.Connection, table: sa.Table, key: tuple[str, ...], row: Row) -> None:
    # An upsert is spelt differently by every database; an update that finds nothing is not.
    same = sa.and_(*(table.c[name] == row[name] for name in key))
    rest = {name: value for name, value in row.items() if name not in key}
    if connection.execute(sa.update(table).where(same).values(rest)).rowcount == 0:
        connection.execute(sa.insert(table), row)


def _put_advice(connection: sa.Connection, advice: Advice) -> None:
    table = tables.advice
    row = _advice_row(advice)
    siblings = table.c.attempt == row["attempt"]
    newer = sa.select(table.c.number).where(siblings, table.c.generation > advice.generation)
    if connection.execute(newer.limit(1)).first() is not None:
        row["is_active"] = False
    older = sa.update(table).where(siblings, table.c.generation < advice.generation)
    connection.execute(older.values(is_active=False))
    _put(connection, table, ("attempt", "generation"), row)


def _new_books(connection: sa.Connection, books: tuple[PolicyBook, ...]) -> list[Row]:
    by_revision = {book.revision: book for book in books}
    column = tables.policy_books.c.revision
    known = set(connection.scalars(sa.select(column).where(column.in_(by_revision))))
    return [
        {"revision": revision, "body": _json(book)}
        for revision, book in by_revision.items()
        if revision not in known
    ]


def _journal_row(record: JournalRecord) -> Row:
    stimulus = record.stimulus
    return {
        **job_columns(stimulus.job),
        "type": type(stimulus).__name__,
        "seen_at": stimulus.seen_at,
        "book": key_text(record.book, tables.WORD_LENGTH),
        "core": key_text(record.core, tables.WORD_LENGTH),
        "rules": key_text(record.rules, tables.WORD_LENGTH),
        "body": _json(stimulus),
    }


def _case_row(case: Case) -> Row:
    latest = case.latest
    fact = latest.fact if latest is not None else None
    return {
        **job_columns(case.key),
        "user": clipped(fact.user) if fact else "",
        "name": clipped(fact.name) if fact else "",
        "partition": clipped(fact.partition) if fact else "",
        "state": fact.state.value if fact else "unknown",
        "attempt": latest.number if latest is not None else 0,
        "incidents": sum(
            len(attempt.past_incidents) + (attempt.incident is not None)
            for attempt in case.attempts
        ),
        "wake_at": case.wake_at,
        "is_open": is_open(case),
        "body": _json(case),
    }


def _advice_row(advice: Advice) -> Row:
    return {
        **job_columns(advice.attempt.job),
        "attempt": attempt_text(advice.attempt),
        "generation": advice.generation,
        "is_active": advice.is_active,
        "body": _json(advice),
    }


def _audit_row(entry: AuditEntry) -> Row:
    return {
        **job_columns(entry.job),
        "attempt": entry.attempt,
        "at": entry.at,
        "topic": entry.topic.value,
        "body": _json(entry),
    }


def _perception_row(saved: SavedPerception) -> Row:
    return {
        "attempt": attempt_text(saved.attempt),
        "state": saved.state,
        "marks": _json(saved.marks),
    }


def _tail_row(tail: Tail) -> Row:
    return {
        "attempt": attempt_text(tail.attempt),
        "file_digest": digest(clean(tail.file)),
        "file": clean(tail.file),
        "body": clean(tail.text),
    }


def _json(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError as error:
        raise StoreRefused(
            f"a {type(value).__name__} holds text that is not UTF-8 ({error}): "
            "decode it with replacement where it is read"
        ) from error
