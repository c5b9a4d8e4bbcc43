"""How the database is reached: SQLite in WAL mode, every commit on the disk before it returns.

SQLite's WAL lets readers go on while one writer writes; ``synchronous=FULL`` makes a commit
survive a power cut (https://www.sqlite.org/pragma.html#pragma_synchronous).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from relight.store.errors import StoreBroken, StoreBusy, StoreError, StoreRefused

BUSY_SECONDS = 10.0
"""How long another process may hold the database before a caller is told to try again."""

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_WRITES = "relight_writes"
_NAME = "relight_name"


def as_url(text: str) -> str:
    """Return the database URL that a path or a URL names."""
    return text if "://" in text else f"sqlite:///{Path(text).absolute()}"


def connect(url: str, *, read_only: bool) -> sa.Engine:
    """Return an engine for ``url``, with a pool of connections.

    Raises:
        StoreRefused: not SQLite, in memory, a missing folder, or a missing file to read.

    """
    path = _path(url)
    if read_only and not path.is_file():
        raise StoreRefused(
            f"there is no database at {path}: name the one that relight serve writes"
        )
    if not path.parent.is_dir():
        raise StoreRefused(f"the folder {path.parent} does not exist: create it first")
    mode = "ro" if read_only else "rwc"
    target = f"file:{quote(str(path))}?mode={mode}"

    def open_connection() -> sqlite3.Connection:
        connection = sqlite3.connect(
            target, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        for pragma in _pragmas(read_only=read_only):
            connection.execute(pragma)
        return connection

    engine = sa.create_engine(
        "sqlite://", creator=open_connection, poolclass=QueuePool, pool_size=8, max_overflow=32
    )
    engine.update_execution_options(**{_NAME: str(path)})
    event.listen(engine, "begin", _begin)
    return engine


def _path(url: str) -> Path:
    try:
        parsed = sa.make_url(as_url(url))
    except SQLAlchemyError as error:
        raise StoreRefused(
            f'"{url}" is not a database URL: write sqlite:////folder/relight.db'
        ) from error
    if parsed.get_backend_name() != "sqlite":
        raise StoreRefused(
            f"a database of kind {parsed.get_backend_name()} is not supported yet: "
            "write sqlite:////folder/relight.db"
        )
    if not parsed.database or parsed.database == ":memory:":
        raise StoreRefused(f'"{url}" names no file: a store in memory forgets everything')
    return Path(parsed.database).absolute()


def _pragmas(*, read_only: bool) -> tuple[str, ...]:
    shared = ("PRAGMA foreign_keys=ON",)
    if read_only:
        return (*shared, "PRAGMA query_only=ON")
    return (*shared, "PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL")


def _begin(connection: sa.Connection) -> None:
    # A transaction that begins as a reader and becomes a writer can fail at once, whatever
    # the timeout; a writer therefore says so at its beginning.
    immediate = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


@contextmanager
def writing(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Give a connection in a transaction that writes: committed at the end, or nothing."""
    with (
        _translated(engine),
        engine.connect() as connection,
        connection.execution_options(**{_WRITES: True}).begin(),
    ):
        yield connection


@contextmanager
def reading(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Give a connection in a transaction that sees one state of the database."""
    with _translated(engine), engine.connect() as connection, connection.begin():
        yield connection


@contextmanager
def _translated(engine: sa.Engine) -> Iterator[None]:
    """Turn the database library's errors into the store's.

    Raises:
        StoreBusy: somebody else holds the database, or no connection is free.
        StoreBroken: anything else that the database reported.

    """
    try:
        yield
    except (sqlite3.Error, DBAPIError) as error:
        raise _translation(error, _name(engine)) from error
    except sa.exc.TimeoutError as error:
        raise StoreBusy(f"no connection to {_name(engine)} is free: try again") from error


def _translation(error: sqlite3.Error | DBAPIError, name: str) -> StoreError:
    origin = error.orig if isinstance(error, DBAPIError) else error
    code = getattr(origin, "sqlite_errorcode", 0) & 0xFF
    if code in _BUSY:
        return StoreBusy(f"another process holds {name} ({origin}): nothing written, try again")
    if code == sqlite3.SQLITE_READONLY:
        return StoreRefused(f"{name} cannot be written ({origin}): check its owner and rights")
    if code == sqlite3.SQLITE_NOTADB:
        return StoreRefused(f"{name} is not a database of relight ({origin}): name another file")
    return StoreBroken(f"{name} failed: {origin}; check the disk and the file")


def _name(engine: sa.Engine) -> str:
    return str(engine.get_execution_options()[_NAME])
