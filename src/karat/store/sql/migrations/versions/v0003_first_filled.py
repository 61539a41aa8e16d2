"""Version 0003: who has seen the votes of a pair, and when a slot was first filled."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add ``deferred.saw_votes`` and ``slot.first_judgment``, as far as they can be told.

    A slot was first filled by the first of the judgments that its own corrects. Who put off a pair
    that awaits an adjudication may have seen its votes, and is taken to have.
    """
    saw = sa.Column("saw_votes", sa.Boolean, nullable=False, server_default=sa.false())
    op.add_column("deferred", saw)
    op.execute(
        "UPDATE deferred SET saw_votes = true "
        "WHERE pair_id IN (SELECT pair_id FROM slot WHERE kind = 'adjudication')"
    )
    op.add_column("slot", sa.Column("first_judgment", sa.BigInteger))
    op.execute(
        "WITH RECURSIVE chain (slot_id, judgment_id) AS ("
        "SELECT id, judgment_id FROM slot WHERE judgment_id IS NOT NULL UNION ALL "
        "SELECT chain.slot_id, judgment.supersedes FROM chain "
        "JOIN judgment ON judgment.id = chain.judgment_id WHERE judgment.supersedes IS NOT NULL) "
        "UPDATE slot SET first_judgment = root.judgment_id FROM "
        "(SELECT slot_id, min(judgment_id) AS judgment_id FROM chain GROUP BY slot_id) AS root "
        "WHERE root.slot_id = slot.id"
    )
