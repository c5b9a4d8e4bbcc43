"""Lay the first tables: journal, cases, advice, audit, policy books, perceptions, tails."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "r0001"
down_revision = None
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
BYTES = sa.LargeBinary().with_variant(mysql.LONGBLOB(), "mysql", "mariadb")
SEQUENCE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create every table, its indexes and, on SQLite, the guards of what is append-only."""
    _create_journal()
    _create_cases()
    _create_advice()
    _create_audit()
    _create_policy_books()
    _create_perceptions()
    if op.get_bind().dialect.name == "sqlite":
        _create_guards()


def _create(table: str, *parts: sa.schema.SchemaItem) -> None:
    op.create_table(
        table,
        *parts,
        sqlite_autoincrement=True,
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
    )


def _sequence(name: str) -> sa.Column[int]:
    return sa.Column(name, SEQUENCE, primary_key=True, autoincrement=True)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, TEXT, nullable=False)


def _word(name: str, length: int) -> sa.Column[str]:
    return sa.Column(name, sa.String(length), nullable=False)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False)


def _instant(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=nullable)


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean, nullable=False)


def _job() -> tuple[sa.schema.SchemaItem, ...]:
    return _word("cluster", 64), _word("scheduler_id", 64), _number("reuse")


def _create_journal() -> None:
    _create(
        "journal",
        _sequence("seq"),
        *_job(),
        _word("type", 32),
        _instant("seen_at"),
        _word("book", 32),
        _word("core", 32),
        _word("rules", 32),
        _text("body"),
    )
    op.create_index("journal_by_job", "journal", ["cluster", "scheduler_id", "reuse", "seq"])


def _create_cases() -> None:
    _create(
        "cases",
        _sequence("number"),
        *_job(),
        _word("user", 255),
        _word("name", 255),
        _word("partition", 255),
        _word("state", 32),
        _number("attempt"),
        _number("incidents"),
        _instant("wake_at", nullable=True),
        _flag("is_open"),
        _text("body"),
        sa.UniqueConstraint("cluster", "scheduler_id", "reuse", name="cases_by_key"),
    )
    op.create_index("cases_by_id", "cases", ["scheduler_id"])
    op.create_index("cases_by_openness", "cases", ["is_open", "number"])


def _create_advice() -> None:
    _create(
        "advice",
        _sequence("number"),
        *_job(),
        _word("attempt", 160),
        _number("generation"),
        _flag("is_active"),
        _text("body"),
        sa.UniqueConstraint("attempt", "generation", name="advice_by_generation"),
    )
    op.create_index("advice_by_activity", "advice", ["is_active", "cluster", "number"])


def _create_audit() -> None:
    _create(
        "audit",
        _sequence("seq"),
        *_job(),
        _number("attempt"),
        _instant("at"),
        _word("topic", 32),
        _text("body"),
    )
    op.create_index("audit_by_job", "audit", ["cluster", "scheduler_id", "reuse", "seq"])
    op.create_index("audit_by_topic", "audit", ["topic", "seq"])
    op.create_index("audit_by_time", "audit", ["at"])


def _create_policy_books() -> None:
    _create(
        "policy_books",
        _sequence("number"),
        _word("revision", 32),
        _text("body"),
        sa.UniqueConstraint("revision", name="policy_books_by_revision"),
    )


def _create_perceptions() -> None:
    _create(
        "perceptions",
        _sequence("number"),
        _word("attempt", 160),
        sa.Column("state", BYTES, nullable=False),
        _text("marks"),
        sa.UniqueConstraint("attempt", name="perceptions_by_attempt"),
    )
    _create(
        "tails",
        _sequence("number"),
        _word("attempt", 160),
        _word("file_digest", 32),
        _text("file"),
        _text("body"),
        sa.UniqueConstraint("attempt", "file_digest", name="tails_by_file"),
    )


def _create_guards() -> None:
    for table in ("journal", "audit"):
        for verb in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {table}_keeps_what_it_has_{verb.lower()} "
                f"BEFORE {verb} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, 'the {table} is append-only'); END"
            )
