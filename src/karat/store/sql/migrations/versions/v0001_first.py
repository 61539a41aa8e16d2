"""Version 0001: the first schema."""

from __future__ import annotations

from alembic import op
from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    false,
)

revision = "0001"
down_revision = None

METADATA = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)
APPEND_ONLY = ("judgment", "edition", "edition_query", "edition_grade")

Id = BigInteger().with_variant(Integer, "sqlite")  # SQLite numbers only an INTEGER by itself


def _golden_set() -> Column[int]:
    return Column("golden_set_id", ForeignKey("golden_set.id"), nullable=False)


golden_set = Table(
    "golden_set",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("scale_low", Double, nullable=False),
    Column("scale_high", Double, nullable=False),
    Column("grades", JSON, nullable=False),  # [[grade, "label: sign"], …], ascending
    Column("raters", Integer, nullable=False),
    Column("repeats", Double, nullable=False),
    Column("salt", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
)

guideline = Table(
    "guideline",
    METADATA,
    Column("golden_set_id", ForeignKey("golden_set.id"), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("text", Text, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
)

query = Table(
    "query",
    METADATA,
    Column("id", Id, primary_key=True),
    _golden_set(),
    Column("query_id", Text, nullable=False),
    Column("text", Text),
    Column("need", Text),
    Column("weight", Double),
    Column("stratum", Text),
    Column("band", Text),
    Column("count", BigInteger),
    Column("probability", Double),
    Column("origin", Text),
    Column("no_answer", Boolean, nullable=False, server_default=false()),
    Column("attributes", JSON, nullable=False),
    Column("shuffle", BigInteger, nullable=False),
    Column("added_us", BigInteger, nullable=False),
    Column("dropped_us", BigInteger),
    UniqueConstraint("golden_set_id", "query_id"),
)

document = Table(
    "document",
    METADATA,
    Column("id", Id, primary_key=True),
    _golden_set(),
    Column("doc_id", Text, nullable=False),
    Column("title", Text),
    Column("text", Text),
    Column("url", Text),
    Column("attributes", JSON, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("added_us", BigInteger, nullable=False),
    Column("changed_us", BigInteger, nullable=False),
    UniqueConstraint("golden_set_id", "doc_id"),
)

pair = Table(
    "pair",
    METADATA,
    Column("id", Id, primary_key=True),
    _golden_set(),
    Column("query_id", Text, nullable=False),
    Column("doc_id", Text, nullable=False),
    Column("priority", Integer, nullable=False),  # 1 goes first
    Column("chosen_by", Text),
    Column("chance", Double),
    Column("shuffle", BigInteger, nullable=False),
    Column("gold_grade", Double),
    Column("added_us", BigInteger, nullable=False),
    UniqueConstraint("golden_set_id", "query_id", "doc_id"),
    ForeignKeyConstraint(["golden_set_id", "query_id"], ["query.golden_set_id", "query.query_id"]),
)

slot = Table(
    "slot",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("pair_id", ForeignKey("pair.id"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("place", Integer, nullable=False),
    Column("rater", Text),
    Column("leased_until_us", BigInteger),
    Column("judgment_id", ForeignKey("judgment.id"), unique=True),
    UniqueConstraint("pair_id", "kind", "place"),
    UniqueConstraint("pair_id", "kind", "rater"),
    CheckConstraint("kind IN ('rating', 'repeat', 'gold', 'adjudication')", name="kind"),
    CheckConstraint("place >= 1", name="place"),
    CheckConstraint("rater IS NOT NULL OR judgment_id IS NULL", name="filled_by_somebody"),
    CheckConstraint("(rater IS NULL) = (leased_until_us IS NULL)", name="leased_to_somebody"),
)
Index("ix_slot_rater", slot.c.rater, slot.c.judgment_id)
Index(
    "ix_slot_open",
    slot.c.kind,
    slot.c.pair_id,
    sqlite_where=slot.c.judgment_id.is_(None),
    postgresql_where=slot.c.judgment_id.is_(None),
)

deferred = Table(
    "deferred",
    METADATA,
    Column("pair_id", ForeignKey("pair.id"), primary_key=True),
    Column("rater", Text, primary_key=True),
    Column("until_us", BigInteger, nullable=False),
)

judgment = Table(
    "judgment",
    METADATA,
    Column("id", Id, primary_key=True),
    _golden_set(),
    Column("query_id", Text, nullable=False),
    Column("doc_id", Text, nullable=False),
    Column("grade", Double),
    Column("state", Text, nullable=False),
    Column("reason", Text),
    Column("rater", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("time_us", BigInteger, nullable=False),
    Column("seconds", Double),
    Column("guideline", Text),
    Column("document_sha256", Text),
    Column("supersedes", ForeignKey("judgment.id"), unique=True),
    Column("import_id", ForeignKey("imported.id")),
    CheckConstraint("state IN ('graded', 'cannot_judge', 'withdrawn')", name="state"),
    CheckConstraint("(state = 'graded') = (grade IS NOT NULL)", name="grade_if_graded"),
    CheckConstraint("source IN ('human', 'clicks', 'llm', 'import')", name="source"),
    CheckConstraint("kind IN ('rating', 'repeat', 'gold', 'adjudication')", name="kind"),
)
Index("ix_judgment_pair", judgment.c.golden_set_id, judgment.c.query_id, judgment.c.doc_id)

imported = Table(
    "imported",
    METADATA,
    Column("id", Id, primary_key=True),
    _golden_set(),
    Column("file", Text, nullable=False),
    Column("format", Text, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("time_us", BigInteger, nullable=False),
    Column("report", JSON, nullable=False),
)

edition = Table(
    "edition",
    METADATA,
    Column("id", Id, primary_key=True),
    _golden_set(),
    Column("name", Text, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("about", JSON, nullable=False),
    UniqueConstraint("golden_set_id", "name"),
)

edition_query = Table(
    "edition_query",
    METADATA,
    Column("edition_id", ForeignKey("edition.id"), primary_key=True),
    Column("query_id", Text, primary_key=True),
    Column("content", JSON, nullable=False),  # every column of the frozen row, by its name
)

edition_grade = Table(
    "edition_grade",
    METADATA,
    Column("edition_id", ForeignKey("edition.id"), primary_key=True),
    Column("query_id", Text, primary_key=True),
    Column("doc_id", Text, primary_key=True),
    Column("grade", Double, nullable=False),
    Column("votes", Integer),
    Column("rule", Text),
    Column("raters", JSON, nullable=False),
)

run = Table(
    "run",
    METADATA,
    Column("id", Id, primary_key=True),
    _golden_set(),
    Column("name", Text, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("queries", BigInteger, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("about", JSON, nullable=False),
    Column("added_us", BigInteger, nullable=False),
    UniqueConstraint("golden_set_id", "sha256"),
)


REFUSED = "is append-only: a correction is a new row"


def upgrade() -> None:
    """Create the tables, and the triggers that make judgments and editions append-only."""
    METADATA.create_all(op.get_bind(), checkfirst=False)
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "CREATE FUNCTION karat_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ "
            f"BEGIN RAISE EXCEPTION '% {REFUSED}', TG_TABLE_NAME; END $$"
        )
    for table in APPEND_ONLY:
        refuse_changes(table)


def refuse_changes(table: str) -> None:
    """Make a table append-only, by triggers."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE "
            f"ON {table} FOR EACH STATEMENT EXECUTE FUNCTION karat_append_only()"
        )
        return
    for verb in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
            f"BEGIN SELECT RAISE(ABORT, '{table} {REFUSED}'); END"
        )
