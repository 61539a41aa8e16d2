"""Version 0005: blind judgments; ids that are never reused."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add ``deferred.blind_judgment``, and stop SQLite from reusing ids of deleted rows.

    For earlier corrections the blind judgment is unknown. PostgreSQL never reuses ids.
    """
    op.add_column("deferred", sa.Column("blind_judgment", sa.BigInteger))
    if op.get_bind().dialect.name == "sqlite":
        for name in ("run", "comparison", "mark"):
            kwargs = {"sqlite_autoincrement": True}
            with op.batch_alter_table(name, recreate="always", table_kwargs=kwargs):
                pass
