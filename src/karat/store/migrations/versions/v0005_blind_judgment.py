"""Version 0005: what a rater had said of a pair before others' votes came in sight."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add ``deferred.blind_judgment``; of what was corrected before, nobody can tell."""
    op.add_column("deferred", sa.Column("blind_judgment", sa.BigInteger))
