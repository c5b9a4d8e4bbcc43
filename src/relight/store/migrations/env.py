"""How alembic reaches the database: over the connection that the store hands to it."""

from __future__ import annotations

from alembic import context

from relight.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
