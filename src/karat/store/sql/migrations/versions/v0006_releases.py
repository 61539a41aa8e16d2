"""Version 0006: the ledger of releases."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from karat.store.sql.migrations.versions.v0001_first import refuse_changes

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Create the ledger, append-only, and the leases."""
    op.create_table(
        "release_event",
        sa.Column("release", sa.Text),
        sa.Column("seq", sa.Integer, autoincrement=False),
        sa.Column("at_us", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("content", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("release", "seq", name="pk_release_event"),
    )
    refuse_changes("release_event")
    op.create_table(
        "release_lease",
        sa.Column("release", sa.Text),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("until_us", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("release", name="pk_release_lease"),
    )
