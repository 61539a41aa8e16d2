"""Version 0007: results of gates, and alerts with what people did about them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from karat.store.sql.migrations.versions.v0001_first import refuse_changes

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Create the tables; gate results and what people did are append-only."""
    op.create_table(
        "gate_result",
        sa.Column("id", Id, primary_key=True),
        sa.Column(
            "golden_set_id",
            Id,
            sa.ForeignKey("golden_set.id", name="fk_gate_result_golden_set_id"),
            nullable=False,
        ),
        sa.Column("time_us", sa.BigInteger, nullable=False),
        sa.Column("candidate", sa.Text, nullable=False),
        sa.Column("baseline", sa.Text),
        sa.Column("policy", sa.Text, nullable=False),
        sa.Column("verdict", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("person", sa.Text, nullable=False),
        sa.Column("commit", sa.Text),
        sa.Column("content", sa.JSON, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_gate_result_golden_set_id", "gate_result", ["golden_set_id", "time_us"])
    refuse_changes("gate_result")
    op.create_table(
        "alert",
        sa.Column("id", Id, primary_key=True),
        sa.Column("cause", sa.Text, nullable=False),
        sa.Column("opened_us", sa.BigInteger, nullable=False),
        sa.Column("onset_us", sa.BigInteger, nullable=False),
        sa.Column("seen_us", sa.BigInteger, nullable=False),
        sa.Column("closed_us", sa.BigInteger),
        sa.Column("content", sa.JSON, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_alert_cause", "alert", ["cause"])
    op.create_table(
        "alert_action",
        sa.Column("id", Id, primary_key=True),
        sa.Column(
            "alert_id",
            Id,
            sa.ForeignKey("alert.id", name="fk_alert_action_alert_id"),
            nullable=False,
        ),
        sa.Column("time_us", sa.BigInteger, nullable=False),
        sa.Column("person", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("until_us", sa.BigInteger),
        sa.Column("note", sa.Text, nullable=False),
        sa.CheckConstraint(
            "action IN ('acknowledged', 'muted', 'resolved', 'reopened')",
            name="action",
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_alert_action_alert_id", "alert_action", ["alert_id"])
    refuse_changes("alert_action")
