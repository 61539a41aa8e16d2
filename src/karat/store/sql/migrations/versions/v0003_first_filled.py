"""Version 0003: which raters saw the votes of a pair, and the first judgment of a slot."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add ``deferred.saw_votes`` and ``slot.first_judgment``, and reconstruct them.

    The first judgment of a slot is the first in its chain of corrections. A rater who snoozed a
    pair that is queued for adjudication may have seen its votes, and is assumed to have.
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
