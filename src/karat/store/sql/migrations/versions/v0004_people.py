"""Version 0004: users, sessions, tokens, the audit log; comparisons; annotations."""

from __future__ import annotations

from alembic import op
from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
)

from karat.store.sql.migrations.versions.v0001_first import refuse_changes

revision = "0004"
down_revision = "0003"

METADATA = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)
Id = BigInteger().with_variant(Integer, "sqlite")
_THERE = Table("golden_set", METADATA, Column("id", Id, primary_key=True))  # to refer to

person = Table(
    "person",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("role", Text, nullable=False),
    Column("password", Text),  # an Argon2 hash; null: no sign-in by password
    Column("created_us", BigInteger, nullable=False),
    Column("disabled_us", BigInteger),
    CheckConstraint("role IN ('rater', 'engineer', 'owner')", name="role"),
)

invitation = Table(
    "invitation",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("token_sha256", Text, nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("made_by", Text),
    Column("created_us", BigInteger, nullable=False),
    Column("ends_us", BigInteger, nullable=False),
    Column("used_us", BigInteger),
    CheckConstraint("kind IN ('account', 'link')", name="kind"),
    CheckConstraint("role IN ('rater', 'engineer', 'owner')", name="role"),
)

web_session = Table(
    "web_session",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("token_sha256", Text, nullable=False, unique=True),
    Column("person_id", ForeignKey("person.id"), nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("seen_us", BigInteger, nullable=False),
    Column("ends_us", BigInteger, nullable=False),
    Column("agent", Text, nullable=False),
)
Index("ix_web_session_person", web_session.c.person_id)

api_token = Table(
    "api_token",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("token_sha256", Text, nullable=False, unique=True),
    Column("person_id", ForeignKey("person.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("scopes", JSON, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("used_us", BigInteger),
    Column("ends_us", BigInteger),
    Column("revoked_us", BigInteger),
)
Index("ix_api_token_person", api_token.c.person_id)

sign_in_attempt = Table(  # those that failed
    "sign_in_attempt",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("key", Text, nullable=False),  # a name, or an address
    Column("time_us", BigInteger, nullable=False),
)
Index("ix_sign_in_attempt_key", sign_in_attempt.c.key, sign_in_attempt.c.time_us)

audit = Table(
    "audit",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("time_us", BigInteger, nullable=False),
    Column("person", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("about", JSON, nullable=False),
)

comparison = Table(
    "comparison",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("golden_set_id", ForeignKey("golden_set.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("runs", JSON, nullable=False),  # numbers of runs, the baseline's first
    Column("settings", JSON, nullable=False),
    Column("made_by", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("error", Text),
    Column("computed_us", BigInteger),
    Column("judgment_id", BigInteger),  # the newest that counted when it was computed
    Column("attempt", Text),  # whose it is to compute, or who did so last
    CheckConstraint("state IN ('waiting', 'running', 'done', 'failed')", name="state"),
)

mark = Table(  # what happened to the search, for its trend
    "mark",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("time_us", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("made_by", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    CheckConstraint("kind IN ('release', 'corpus', 'other')", name="kind"),
)


def upgrade() -> None:
    """Create the tables, and the triggers that make the audit log append-only."""
    new = [table for table in METADATA.sorted_tables if table is not _THERE]
    METADATA.create_all(op.get_bind(), tables=new, checkfirst=False)
    refuse_changes("audit")
