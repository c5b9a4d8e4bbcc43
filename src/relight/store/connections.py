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
_FILE = "relight_file"


class DatabaseFile:
    """The file behind an engine, and whether its name still leads to it.

    SQLite goes on with a file that has lost its name: every commit would succeed, and be gone
    at the next start.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._identity: tuple[int, int] | None = None

    @property
    def is_remembered(self) -> bool:
        """Return whether the file is known, so that another of its name is not it."""
        return self._identity is not None

    def remember(self) -> None:
        """Hold on to the file that has the name now."""
        self._identity = self._look()

    def check(self) -> None:
        """Look whether the name still leads to the remembered file.

        Raises:
            StoreBroken: it leads to another file or to none.

        """
        if self._identity is not None and self._look() != self._identity:
            raise StoreBroken(
                f"the database file {self.path} was removed or replaced while relight runs: "
                "stop it, restore the file, start again"
            )

    def _look(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino


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
    file = DatabaseFile(path)

    def open_connection() -> sqlite3.Connection:
        # A file that vanished must not be made again, empty, by whoever asks next.
        mode = "ro" if read_only else "rw" if file.is_remembered else "rwc"
        connection = sqlite3.connect(
            f"file:{quote(str(path))}?mode={mode}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        for pragma in _pragmas(read_only=read_only):
            connection.execute(pragma)
        return connection

    engine = sa.create_engine(
        "sqlite://", creator=open_connection, poolclass=QueuePool, pool_size=8, max_overflow=32
    )
    engine.update_execution_options(**{_FILE: file})
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
    """Give a connection in a transaction that writes: committed at the end, or nothing.

    Raises:
        StoreBroken: the file is not the remembered one, before or after the writing.

    """
    file = file_of(engine)
    file.check()
    with (
        _translated(engine),
        engine.connect() as connection,
        connection.execution_options(**{_WRITES: True}).begin(),
    ):
        yield connection
        file.check()


@contextmanager
def reading(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Give a connection in a transaction that sees one state of the database.

    Raises:
        StoreBroken: the file is not the remembered one.

    """
    file_of(engine).check()
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
        raise _translation(error, file_of(engine)) from error
    except sa.exc.TimeoutError as error:
        raise StoreBusy(f"no connection to {file_of(engine).path} is free: try again") from error


def _translation(error: sqlite3.Error | DBAPIError, file: DatabaseFile) -> StoreError:
    name = file.path
    # What a running store meets is never the fault of what it was asked to write.
    refusal = StoreBroken if file.is_remembered else StoreRefused
    origin = error.orig if isinstance(error, DBAPIError) else error
    code = getattr(origin, "sqlite_errorcode", 0) & 0xFF
    if code in _BUSY:
        return StoreBusy(
            f"another program holds the database {name} ({origin}): nothing was written; try "
            f"again once that program lets go (fuser {name} names it)"
        )
    if code == sqlite3.SQLITE_READONLY:
        return refusal(f"{name} cannot be written ({origin}): check its owner, rights and disk")
    if code == sqlite3.SQLITE_NOTADB:
        return refusal(f"{name} is not a database of relight ({origin}): name another file")
    if code == sqlite3.SQLITE_FULL:
        return StoreBroken(
            f"the disk that holds {name} is full ({origin}): nothing was written; make room, "
            "and relight goes on by itself"
        )
    if code == sqlite3.SQLITE_IOERR:
        return StoreBroken(
            f"the disk refused to read or write {name} ({origin}): nothing was written; look at "
            "the disk, its quota and the limit on the size of files"
        )
    if code == sqlite3.SQLITE_CANTOPEN:
        return StoreBroken(
            f"{name} cannot be opened ({origin}): look at the rights of its folder, and at the "
            "limit on open files"
        )
    return StoreBroken(f"{name} failed: {origin}; check the disk and the file")


def file_of(engine: sa.Engine) -> DatabaseFile:
    """Return the file behind an engine."""
    file: DatabaseFile = engine.get_execution_options()[_FILE]
    return file
