"""The tables, in SQL that SQLite and MySQL both accept.

Every record is kept whole as JSON in ``body``; the other columns are there to find it.
Key columns are bounded because MySQL indexes nothing unbounded, and compared byte by byte
because its default compares without case.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    event,
)
from sqlalchemy.dialects.mysql import LONGBLOB, LONGTEXT
from sqlalchemy.schema import SchemaItem

CLUSTER_LENGTH = 64
ID_LENGTH = 64
ATTEMPT_LENGTH = 160
WORD_LENGTH = 32
NAME_LENGTH = 255

LONG_TEXT = Text().with_variant(LONGTEXT(), "mysql", "mariadb")
LONG_BYTES = LargeBinary().with_variant(LONGBLOB(), "mysql", "mariadb")
SEQUENCE = BigInteger().with_variant(Integer(), "sqlite")
"""SQLite counts up by itself only in a column that is called INTEGER."""

metadata = MetaData()


def _table(name: str, *parts: SchemaItem) -> Table:
    return Table(
        name,
        metadata,
        *parts,
        sqlite_autoincrement=True,
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
    )


def _job_columns() -> tuple[Column[str], Column[str], Column[int]]:
    return (
        Column("cluster", String(CLUSTER_LENGTH), nullable=False),
        Column("scheduler_id", String(ID_LENGTH), nullable=False),
        Column("reuse", Integer, nullable=False),
    )


journal = _table(
    "journal",
    Column("seq", SEQUENCE, primary_key=True, autoincrement=True),
    *_job_columns(),
    Column("type", String(WORD_LENGTH), nullable=False),
    Column("seen_at", BigInteger, nullable=False),
    Column("book", String(WORD_LENGTH), nullable=False),
    Column("core", String(WORD_LENGTH), nullable=False),
    Column("rules", String(WORD_LENGTH), nullable=False),
    Column("body", LONG_TEXT, nullable=False),
    Index("journal_by_job", "cluster", "scheduler_id", "reuse", "seq"),
)

cases = _table(
    "cases",
    Column("number", SEQUENCE, primary_key=True, autoincrement=True),
    *_job_columns(),
    Column("user", String(NAME_LENGTH), nullable=False),
    Column("name", String(NAME_LENGTH), nullable=False),
    Column("partition", String(NAME_LENGTH), nullable=False),
    Column("state", String(WORD_LENGTH), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("incidents", Integer, nullable=False),
    Column("wake_at", BigInteger, nullable=True),
    Column("is_open", Boolean, nullable=False),
    Column("body", LONG_TEXT, nullable=False),
    UniqueConstraint("cluster", "scheduler_id", "reuse", name="cases_by_key"),
    Index("cases_by_id", "scheduler_id"),
    Index("cases_by_openness", "is_open", "number"),
)

advice = _table(
    "advice",
    Column("number", SEQUENCE, primary_key=True, autoincrement=True),
    *_job_columns(),
    Column("attempt", String(ATTEMPT_LENGTH), nullable=False),
    Column("generation", Integer, nullable=False),
    Column("is_active", Boolean, nullable=False),
    Column("body", LONG_TEXT, nullable=False),
    UniqueConstraint("attempt", "generation", name="advice_by_generation"),
    Index("advice_by_activity", "is_active", "cluster", "number"),
)

audit = _table(
    "audit",
    Column("seq", SEQUENCE, primary_key=True, autoincrement=True),
    *_job_columns(),
    Column("attempt", Integer, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("topic", String(WORD_LENGTH), nullable=False),
    Column("body", LONG_TEXT, nullable=False),
    Index("audit_by_job", "cluster", "scheduler_id", "reuse", "seq"),
    Index("audit_by_topic", "topic", "seq"),
    Index("audit_by_time", "at"),
)

policy_books = _table(
    "policy_books",
    Column("number", SEQUENCE, primary_key=True, autoincrement=True),
    Column("revision", String(WORD_LENGTH), nullable=False),
    Column("body", LONG_TEXT, nullable=False),
    UniqueConstraint("revision", name="policy_books_by_revision"),
)

perceptions = _table(
    "perceptions",
    Column("number", SEQUENCE, primary_key=True, autoincrement=True),
    Column("attempt", String(ATTEMPT_LENGTH), nullable=False),
    Column("state", LONG_BYTES, nullable=False),
    Column("marks", LONG_TEXT, nullable=False),
    UniqueConstraint("attempt", name="perceptions_by_attempt"),
)

tails = _table(
    "tails",
    Column("number", SEQUENCE, primary_key=True, autoincrement=True),
    Column("attempt", String(ATTEMPT_LENGTH), nullable=False),
    Column("file_digest", String(WORD_LENGTH), nullable=False),
    Column("file", LONG_TEXT, nullable=False),
    Column("body", LONG_TEXT, nullable=False),
    UniqueConstraint("attempt", "file_digest", name="tails_by_file"),
)

ALL = (journal, cases, advice, audit, policy_books, perceptions, tails)

GUARDS = tuple(
    f"CREATE TRIGGER {table}_keeps_what_it_has_{verb.lower()} BEFORE {verb} ON {table} "
    f"BEGIN SELECT RAISE(ABORT, 'the {table} is append-only'); END"
    for table in ("journal", "audit")
    for verb in ("UPDATE", "DELETE")
)
"""What makes the journal and the audit append-only; for SQLite."""


@event.listens_for(metadata, "after_create")
def _guard(_: object, connection: Connection, **__: object) -> None:
    if connection.dialect.name == "sqlite":
        for guard in GUARDS:
            connection.exec_driver_sql(guard)
