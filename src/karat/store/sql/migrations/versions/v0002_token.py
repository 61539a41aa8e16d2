"""Version 0002: idempotency keys of submissions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add ``judgment.token``, unique if not null."""
    op.add_column("judgment", sa.Column("token", sa.Text))
    op.create_index("ix_judgment_token", "judgment", ["token"], unique=True)
