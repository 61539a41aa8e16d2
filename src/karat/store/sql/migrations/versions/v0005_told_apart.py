"""Version 0005: what was said before votes came in sight; numbers that never come back."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add ``deferred.blind_judgment``, and let SQLite give no number of a removed row again.

    Of what was corrected before, nobody can tell what stood when votes were seen. PostgreSQL never
    gives a number twice.
    """
    op.add_column("deferred", sa.Column("blind_judgment", sa.BigInteger))
    if op.get_bind().dialect.name == "sqlite":
        for name in ("run", "comparison", "mark"):
            kwargs = {"sqlite_autoincrement": True}
            with op.batch_alter_table(name, recreate="always", table_kwargs=kwargs):
                pass
