"""Entry point of Alembic: runs the migrations in the transaction of the caller."""

from __future__ import annotations

from alembic import context

from karat.store.sql.opening import VERSION_TABLE
from karat.store.sql.schema import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    version_table=VERSION_TABLE,
    transactional_ddl=True,  # works on SQLite too, because ``opening`` sends BEGIN
)
with context.begin_transaction():
    context.run_migrations()
