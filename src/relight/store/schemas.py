"""Which tables a database has, and how it gets the present ones."""

from __future__ import annotations

import sqlalchemy as sa

from relight.store.connections import connect, reading, writing
from relight.store.errors import StoreRefused

HEAD = "r0001"
"""The last migration; a test compares it with the files."""

REVISIONS = (HEAD,)
"""Every migration that this version knows, oldest first."""


def upgrade(url: str) -> None:
    """Bring the database at ``url`` to the present tables, in one transaction; create it if absent.

    Raises:
        StoreRefused: the database is newer than this relight, or not relight's.
        StoreBusy: another process holds it.

    """
    engine = connect(url, read_only=False)
    try:
        with writing(engine) as connection:
            found = _revision(connection)
            if found != HEAD:
                _migrate(connection)
    finally:
        engine.dispose()


def prepare(engine: sa.Engine) -> None:
    """Create the tables of an empty database, and refuse one that is not of the present kind.

    Raises:
        StoreRefused: the database is older or newer than this relight, or not relight's.

    """
    with reading(engine) as connection:
        is_empty = not sa.inspect(connection).get_table_names()
    if is_empty:
        with writing(engine) as connection:
            # Another process may have created the tables since the look above.
            if _revision(connection) is None:
                _migrate(connection)
    check(engine)


def check(engine: sa.Engine) -> None:
    """Refuse a database whose tables are not the present ones.

    Raises:
        StoreRefused: the database is empty, older or newer than this relight, or not relight's.

    """
    with reading(engine) as connection:
        found = _revision(connection)
    if found is None:
        raise StoreRefused("the database is empty: start relight serve with it once")
    if found != HEAD:
        raise StoreRefused(
            f"the database has the older tables {found}, this relight needs {HEAD}: "
            "run relight db upgrade"
        )


def _revision(connection: sa.Connection) -> str | None:
    tables = sa.inspect(connection).get_table_names()
    if not tables:
        return None
    if "alembic_version" not in tables:
        raise StoreRefused(
            f"the database holds the tables of something else ({', '.join(tables[:3])}): "
            "name another file"
        )
    found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    if found not in REVISIONS:
        raise StoreRefused(
            f'the database has the tables "{found}", which this relight does not know: '
            "it was written by a newer relight or by something else; upgrade relight"
        )
    return str(found)


def _migrate(connection: sa.Connection) -> None:
    # Loading alembic takes longer than opening a database that needs no step.
    from alembic import command  # noqa: PLC0415 - only a migration pays for it
    from alembic.config import Config  # noqa: PLC0415 - likewise

    config = Config()
    config.set_main_option("script_location", "relight.store:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
