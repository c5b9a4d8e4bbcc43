"""The store: one write method, and the questions that the rest of relight asks."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from typing import Self, TypeVar

import msgspec
import sqlalchemy as sa

from relight.engine.cases import Case
from relight.model.advice import Advice
from relight.model.audit import AuditEntry
from relight.model.jobs import AttemptKey, JobKey
from relight.model.signals import Mark
from relight.model.stimuli import Stimulus
from relight.policy.policies import PolicyBook
from relight.store import tables
from relight.store.changes import Change, JournalRecord, SavedPerception, Tail
from relight.store.connections import connect, file_of, reading, writing
from relight.store.errors import StoreBroken, StoreRefused
from relight.store.filters import AuditFilters, CaseFilters
from relight.store.keys import attempt_text, clean, job_columns
from relight.store.pages import Page, from_cursor, page, to_cursor
from relight.store.schemas import check, prepare
from relight.store.writing import write

MOST_ROWS = 1_000
"""The longest page that any listing gives."""

LEAST_FREE = 16 * 1024 * 1024
"""Bytes: below it trouble is told while there is still room to write down what happens."""

_JOURNAL_STEP = 500
_FIRST = 1 << 62

Body = TypeVar("Body")


class Store:
    """One database. Any thread may use it: writes take turns, reads go on beside them.

    Every method raises StoreBusy (try again), StoreRefused (correct the call) or
    StoreBroken (call a person).
    """

    def __init__(self, engine: sa.Engine, *, read_only: bool) -> None:
        self._engine = engine
        self._read_only = read_only
        self._writer = threading.Lock()

    @classmethod
    def open(cls, url: str, *, read_only: bool = False) -> Self:
        """Open the database at ``url`` (or a path), with the present tables; create a new one.

        With ``read_only`` nothing is created and every write is refused.

        Raises:
            StoreRefused: the database is newer, older or not relight's; the message says how on.

        """
        engine = connect(url, read_only=read_only)
        try:
            if read_only:
                check(engine)
            else:
                prepare(engine)
                file_of(engine).remember()
        except BaseException:
            engine.dispose()
            raise
        return cls(engine, read_only=read_only)

    def close(self) -> None:
        """Close every connection; the store is of no use afterwards."""
        with self._writer:
            self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def commit(self, change: Change) -> None:
        """Write all of ``change`` in one transaction, on the disk before this returns.

        Raises:
            StoreRefused: the store is read-only, a key is too long, or text is not UTF-8.
            StoreBusy: another process holds the database; nothing was written.
            StoreBroken: the disk is full or fails, or the file was removed or replaced; nothing
                was written.

        """
        if self._read_only:
            raise StoreRefused("the store was opened to read only: nothing can be written")
        with self._writer, writing(self._engine) as connection:
            write(connection, change)

    def try_out(self) -> None:
        """Take the right to write and give it back, writing nothing, so that trouble is seen.

        Raises:
            StoreBusy: another process holds the database.
            StoreBroken: the file was removed or replaced, or its disk is all but full.

        """
        with writing(self._engine):
            pass
        folder = file_of(self._engine).path.parent
        free = shutil.disk_usage(folder).free
        if free < LEAST_FREE:
            raise StoreBroken(
                f"the disk that holds {folder} is all but full ({free // 1024} KiB are free): "
                "make room, and relight goes on by itself"
            )

    def case(self, key: JobKey) -> Case | None:
        """Return the case of one job, None when there is none."""
        return self._one(_bodies(tables.cases).where(*_is_job(tables.cases, key)), Case)

    def newest_case(self, cluster: str, scheduler_id: str) -> Case | None:
        """Return the case of the last job that bore this scheduler id, None when none did."""
        table = tables.cases
        query = _bodies(table).where(
            table.c.cluster == clean(cluster), table.c.scheduler_id == clean(scheduler_id)
        )
        return self._one(query.order_by(table.c.reuse.desc()).limit(1), Case)

    def open_cases(self, cluster: str) -> tuple[Case, ...]:
        """Return every case of a cluster of which something can still come, oldest first."""
        table = tables.cases
        query = _bodies(table).where(table.c.cluster == clean(cluster), table.c.is_open)
        return self._all(query.order_by(table.c.number), Case)

    def cases(self, filters: CaseFilters, limit: int = 100, cursor: str = "") -> Page[Case]:
        """Return the cases that match, open ones first, then newest first."""
        table = tables.cases
        query = sa.select(table.c.is_open, table.c.number, table.c.body).where(*filters.clauses())
        if cursor:
            was_open, number = from_cursor(cursor, 2)
            older = table.c.number < number
            query = query.where(
                sa.or_(older, ~table.c.is_open) if was_open else sa.and_(older, ~table.c.is_open)
            )
        ordered = query.order_by(table.c.is_open.desc(), table.c.number.desc())
        return page(
            self._rows(ordered.limit(_checked(limit) + 1)),
            limit,
            lambda row: _decoded(row.body, Case),
            lambda row: to_cursor(int(row.is_open), row.number),
        )

    def advice(
        self, *, active_only: bool = False, cluster: str = "", limit: int = 100, cursor: str = ""
    ) -> Page[Advice]:
        """Return advice, every generation of it, newest first."""
        table = tables.advice
        query = sa.select(table.c.number, table.c.body)
        if active_only:
            query = query.where(table.c.is_active)
        if cluster:
            query = query.where(table.c.cluster == clean(cluster))
        if cursor:
            query = query.where(table.c.number < from_cursor(cursor, 1)[0])
        return page(
            self._rows(query.order_by(table.c.number.desc()).limit(_checked(limit) + 1)),
            limit,
            lambda row: _decoded(row.body, Advice),
            lambda row: to_cursor(row.number),
        )

    def advice_of(self, attempt: AttemptKey) -> Advice | None:
        """Return the newest generation of the advice on an attempt, None when none was given."""
        generations = self.generations(attempt)
        return generations[-1] if generations else None

    def generations(self, attempt: AttemptKey) -> tuple[Advice, ...]:
        """Return every generation of the advice on an attempt, oldest first."""
        table = tables.advice
        query = _bodies(table).where(table.c.attempt == attempt_text(attempt))
        return self._all(query.order_by(table.c.generation), Advice)

    def audit(
        self,
        filters: AuditFilters,
        limit: int = 100,
        cursor: str = "",
        *,
        newest_first: bool = False,
    ) -> Page[AuditEntry]:
        """Return the audit entries that match, in the order in which they were written."""
        table = tables.audit
        query = sa.select(table.c.seq, table.c.body).where(*filters.clauses())
        if cursor:
            (seq,) = from_cursor(cursor, 1)
            query = query.where(table.c.seq < seq if newest_first else table.c.seq > seq)
        order = table.c.seq.desc() if newest_first else table.c.seq.asc()
        return page(
            self._rows(query.order_by(order).limit(_checked(limit) + 1)),
            limit,
            lambda row: _decoded(row.body, AuditEntry),
            lambda row: to_cursor(row.seq),
        )

    def journal(
        self, *, cluster: str = "", job: JobKey | None = None, after_seq: int = 0
    ) -> Iterator[JournalRecord]:
        """Return the journal after ``after_seq`` in order, of all, of one cluster or of one job.

        It is read in steps, so that a long journal neither fills memory nor holds back the
        database; records written meanwhile are included.
        """
        table = tables.journal
        query = sa.select(table).order_by(table.c.seq).limit(_JOURNAL_STEP)
        if job is not None:
            query = query.where(*_is_job(table, job))
        if cluster:
            query = query.where(table.c.cluster == clean(cluster))
        while rows := self._rows(query.where(table.c.seq > after_seq)):
            for row in rows:
                yield _journal_record(row)
            after_seq = rows[-1].seq

    def policy_book(self, revision: str) -> PolicyBook | None:
        """Return the policy book of that revision, None when no decision was made under it."""
        table = tables.policy_books
        return self._one(_bodies(table).where(table.c.revision == revision), PolicyBook)

    def policy_books(self) -> dict[str, PolicyBook]:
        """Return every policy book that was written, by revision, oldest first."""
        table = tables.policy_books
        rows = self._rows(sa.select(table).order_by(table.c.number))
        return {row.revision: _decoded(row.body, PolicyBook) for row in rows}

    def perception(self, attempt: AttemptKey) -> SavedPerception | None:
        """Return where perception of an attempt stands, None when it never began."""
        table = tables.perceptions
        rows = self._rows(sa.select(table).where(table.c.attempt == attempt_text(attempt)))
        if not rows:
            return None
        marks = _decoded(rows[0].marks, dict[str, Mark])
        return SavedPerception(attempt=attempt, state=rows[0].state, marks=marks)

    def tails(self, attempt: AttemptKey) -> tuple[Tail, ...]:
        """Return the last lines of every file of an attempt, by the name of the file."""
        table = tables.tails
        rows = self._rows(sa.select(table).where(table.c.attempt == attempt_text(attempt)))
        found = (Tail(attempt=attempt, file=row.file, text=row.body) for row in rows)
        return tuple(sorted(found, key=lambda tail: tail.file))

    def counts(self) -> dict[str, int]:
        """Return how many rows each table has, and how many cases and advice are open."""
        counted = {
            table.name: sa.select(sa.func.count()).select_from(table) for table in tables.ALL
        }
        counted["open_cases"] = counted["cases"].where(tables.cases.c.is_open)
        counted["active_advice"] = counted["advice"].where(tables.advice.c.is_active)
        with reading(self._engine) as connection:
            return {name: connection.scalar(query) or 0 for name, query in counted.items()}

    def _rows(self, query: sa.Select[*tuple[object, ...]]) -> list[sa.Row[*tuple[object, ...]]]:
        with reading(self._engine) as connection:
            return list(connection.execute(query))

    def _all(self, query: sa.Select[str], kind: type[Body]) -> tuple[Body, ...]:
        return tuple(_decoded(row.body, kind) for row in self._rows(query))

    def _one(self, query: sa.Select[str], kind: type[Body]) -> Body | None:
        found = self._all(query, kind)
        return found[0] if found else None


def _bodies(table: sa.Table) -> sa.Select[str]:
    return sa.select(table.c.body)


def _is_job(table: sa.Table, job: JobKey) -> tuple[sa.ColumnElement[bool], ...]:
    return tuple(table.c[name] == value for name, value in job_columns(job).items())


def _checked(limit: int) -> int:
    if not 1 <= limit <= MOST_ROWS:
        raise StoreRefused(f"a page of {limit} cannot be given: ask for 1 to {MOST_ROWS}")
    return limit


def _decoded(body: str, kind: type[Body]) -> Body:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise StoreBroken(
            f"a stored {kind.__name__} cannot be read ({error}): "
            "was the database written by a newer relight?"
        ) from error


def _journal_record(row: sa.Row[*tuple[object, ...]]) -> JournalRecord:
    try:
        stimulus = msgspec.json.decode(row.body, type=Stimulus)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise StoreBroken(f"journal record {row.seq} cannot be read ({error})") from error
    return JournalRecord(
        stimulus=stimulus, seq=row.seq, book=row.book, core=row.core, rules=row.rules
    )
