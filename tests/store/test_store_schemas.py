from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.dialects import mysql
from sqlalchemy.schema import CreateIndex, CreateTable

from relight.store import (
    Change,
    Store,
    StoreBroken,
    StoreBusy,
    StoreRefused,
    as_url,
    tables,
    upgrade,
)
from relight.store import connections as store_connections
from relight.store.schemas import REVISIONS

ChangeOf = Callable[..., Change]


def _everything(path: Path) -> dict[str, str]:
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL "
            "AND name NOT LIKE 'alembic%' AND name NOT LIKE 'sqlite%'"
        ).fetchall()
    return {name: " ".join(sql.split()) for name, sql in rows}


def test_the_migrations_make_exactly_the_tables_indexes_and_guards(tmp_path: Path) -> None:
    upgrade(as_url(str(tmp_path / "migrated.db")))
    engine = sa.create_engine(f"sqlite:///{tmp_path}/created.db")
    tables.metadata.create_all(engine)
    engine.dispose()
    migrated = _everything(tmp_path / "migrated.db")
    assert migrated == _everything(tmp_path / "created.db")
    assert len(migrated) > len(tables.ALL) + len(tables.GUARDS)
    engine = sa.create_engine(f"sqlite:///{tmp_path}/migrated.db")
    with engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, tables.metadata) == []
    engine.dispose()


def test_the_known_revisions_are_those_of_the_migration_files() -> None:
    config = Config()
    config.set_main_option("script_location", "relight.store:migrations")
    script = ScriptDirectory.from_config(config)
    files = [step.revision for step in script.walk_revisions()]
    assert tuple(reversed(files)) == REVISIONS


def test_mysql_accepts_every_table_by_its_own_compiler() -> None:
    for table in tables.metadata.sorted_tables:
        text = str(CreateTable(table).compile(dialect=mysql.dialect()))
        assert "utf8mb4_bin" in text
        for index in table.indexes:
            assert str(CreateIndex(index).compile(dialect=mysql.dialect()))


@pytest.mark.parametrize("table", ["journal", "audit"])
@pytest.mark.parametrize("statement", ["DELETE FROM {}", "UPDATE {} SET body = ''"])
def test_the_journal_and_the_audit_refuse_to_be_changed(
    store: Store, change_of: ChangeOf, tmp_path: Path, table: str, statement: str
) -> None:
    store.commit(change_of(1))
    with (
        closing(sqlite3.connect(tmp_path / "relight.db")) as connection,
        pytest.raises(sqlite3.IntegrityError, match="append-only"),
    ):
        connection.execute(statement.format(table))
    assert store.counts()[table] == 1


def _make(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


@pytest.mark.parametrize(
    ("statements", "sentence"),
    [
        (["CREATE TABLE songs (title TEXT)"], "something else"),
        (
            [
                "CREATE TABLE alembic_version (version_num TEXT)",
                "INSERT INTO alembic_version VALUES ('r9999')",
            ],
            "newer relight",
        ),
        (["CREATE TABLE alembic_version (version_num TEXT)"], "does not know"),
    ],
)
def test_a_foreign_or_newer_database_is_refused_and_left_as_it_was(
    tmp_path: Path, url: str, statements: list[str], sentence: str
) -> None:
    _make(tmp_path / "relight.db", *statements)
    before = _everything(tmp_path / "relight.db")
    with pytest.raises(StoreRefused, match=sentence):
        Store.open(url)
    with pytest.raises(StoreRefused, match=sentence):
        upgrade(url)
    assert _everything(tmp_path / "relight.db") == before


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ("mysql://root@127.0.0.1/relight", "not supported yet"),
        ("sqlite://", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("nonsense://", "not supported yet|not a database URL"),
        ("sqlite:////no/such/folder/relight.db", "does not exist"),
    ],
)
def test_a_url_that_cannot_serve_is_refused_in_a_sentence(wrong: str, sentence: str) -> None:
    with pytest.raises(StoreRefused, match=sentence):
        Store.open(wrong)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path, url: str) -> None:
    (tmp_path / "relight.db").write_bytes(b"#!/bin/sh\n" * 1_000)
    with pytest.raises(StoreRefused, match="not a database"):
        Store.open(url)


def test_a_damaged_database_says_so(tmp_path: Path, url: str, change_of: ChangeOf) -> None:
    with Store.open(url) as store:
        store.commit(change_of(1))
    data = bytearray((tmp_path / "relight.db").read_bytes())
    data[200:] = b"\xff" * (len(data) - 200)
    (tmp_path / "relight.db").write_bytes(data)
    with pytest.raises((StoreBroken, StoreRefused)):
        Store.open(url)


def test_a_record_that_cannot_be_read_is_broken_and_names_what_failed(
    store: Store, change_of: ChangeOf, tmp_path: Path
) -> None:
    change = change_of(1)
    store.commit(change)
    _make(tmp_path / "relight.db", "UPDATE cases SET body = '{}'")
    assert change.case is not None
    with pytest.raises(StoreBroken, match="stored Case"):
        store.case(change.case.key)


def test_a_store_opened_to_read_creates_and_writes_nothing(
    tmp_path: Path, url: str, change_of: ChangeOf
) -> None:
    with pytest.raises(StoreRefused, match="no database"):
        Store.open(url, read_only=True)
    assert list(tmp_path.iterdir()) == []
    with Store.open(url) as writer, Store.open(url, read_only=True) as reader:
        writer.commit(change_of(1))
        assert reader.counts()["cases"] == 1
        with pytest.raises(StoreRefused, match="read only"):
            reader.commit(Change())


def test_an_empty_file_is_refused_to_a_reader(tmp_path: Path, url: str) -> None:
    (tmp_path / "relight.db").touch()
    with pytest.raises(StoreRefused, match="empty"):
        Store.open(url, read_only=True)


def test_a_database_that_another_process_holds_is_busy_and_nothing_is_written(
    tmp_path: Path, url: str, change_of: ChangeOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_connections, "BUSY_SECONDS", 0.1)
    with (
        Store.open(url) as store,
        closing(sqlite3.connect(tmp_path / "relight.db", isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy, match="try again"):
            store.commit(change_of(1))
        other.execute("ROLLBACK")
        assert store.counts()["cases"] == 0
        store.commit(change_of(1))


def test_a_path_with_strange_characters_is_one_file(tmp_path: Path, change_of: ChangeOf) -> None:
    path = tmp_path / "a b?mode=memory#%41.db"
    engine_url = sa.URL.create("sqlite", database=str(path)).render_as_string()
    with Store.open(engine_url) as store:
        store.commit(change_of(1))
    assert path.is_file()
