"""Version 0008: pairs by priority, so that a claim need not look at all of them."""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Create the index."""
    op.create_index("ix_pair_priority", "pair", ["golden_set_id", "priority", "query_id"])
