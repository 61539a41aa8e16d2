"""The tables of the store. ``migrations`` creates them; the two must agree.

Times are int64 microseconds UTC, and passed in by callers: no column has a default time.
"""

from __future__ import annotations

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

METADATA = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)
APPEND_ONLY = (
    "judgment", "edition", "edition_query", "edition_grade", "audit", "release_event",
    "gate_result", "alert_action",
)  # fmt: skip
"""Tables whose triggers reject every UPDATE and DELETE."""

# sqlite_autoincrement: ids of deleted rows are never reused.
Id = BigInteger().with_variant(Integer, "sqlite")  # SQLite generates ids only for INTEGER


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
    Column("added_us", BigInteger, nullable=False),  # or last changed (``upsert.put``)
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
Index("ix_pair_priority", pair.c.golden_set_id, pair.c.priority, pair.c.query_id)

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
    Column("first_judgment", BigInteger),  # the first judgment of its current rater
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
    Column("saw_votes", Boolean, nullable=False, server_default=false()),
    Column("blind_judgment", BigInteger),  # the rater's judgment when they first saw the votes
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
    Column("token", Text),
    CheckConstraint("state IN ('graded', 'cannot_judge', 'withdrawn')", name="state"),
    CheckConstraint("(state = 'graded') = (grade IS NOT NULL)", name="grade_if_graded"),
    CheckConstraint("source IN ('human', 'clicks', 'llm', 'import')", name="source"),
    CheckConstraint("kind IN ('rating', 'repeat', 'gold', 'adjudication')", name="kind"),
)
Index("ix_judgment_pair", judgment.c.golden_set_id, judgment.c.query_id, judgment.c.doc_id)
Index("ix_judgment_token", judgment.c.token, unique=True)

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
    sqlite_autoincrement=True,
)

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

sign_in_attempt = Table(  # failed ones only
    "sign_in_attempt",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("key", Text, nullable=False),  # a user name, or an IP address
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
    _golden_set(),
    Column("name", Text, nullable=False),
    Column("runs", JSON, nullable=False),  # ids of runs, the baseline first
    Column("settings", JSON, nullable=False),
    Column("made_by", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("error", Text),
    Column("computed_us", BigInteger),
    Column("judgment_id", BigInteger),  # the newest that counted when it was computed
    Column("attempt", Text),  # token of the current or last computation
    CheckConstraint("state IN ('waiting', 'running', 'done', 'failed')", name="state"),
    sqlite_autoincrement=True,
)

mark = Table(  # annotations of trends
    "mark",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("time_us", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("made_by", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    CheckConstraint("kind IN ('release', 'corpus', 'other')", name="kind"),
    sqlite_autoincrement=True,
)

release_event = Table(  # the ledger of releases
    "release_event",
    METADATA,
    Column("release", Text, primary_key=True),  # its name
    Column("seq", Integer, primary_key=True, autoincrement=False),  # from 1, without gaps
    Column("at_us", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("content", JSON, nullable=False),
)

release_lease = Table(  # who moves a release on
    "release_lease",
    METADATA,
    Column("release", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("until_us", BigInteger, nullable=False),
)

gate_result = Table(  # what `karat gate` found, in full
    "gate_result",
    METADATA,
    Column("id", Id, primary_key=True),
    _golden_set(),
    Column("time_us", BigInteger, nullable=False),
    Column("candidate", Text, nullable=False),
    Column("baseline", Text),
    Column("policy", Text, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("source", Text, nullable=False),  # command | page | api | release
    Column("person", Text, nullable=False),
    Column("commit", Text),
    Column("content", JSON, nullable=False),  # `Gate.to_dict`, and what its page needs besides
    Index("ix_gate_result_golden_set_id", "golden_set_id", "time_us"),
    sqlite_autoincrement=True,
)

alert = Table(  # changes of online metrics that share a cause
    "alert",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("cause", Text, nullable=False, index=True),  # what makes it the same alert
    Column("opened_us", BigInteger, nullable=False),
    Column("onset_us", BigInteger, nullable=False),  # the hour in which it began
    Column("seen_us", BigInteger, nullable=False),  # the newest watch that saw it
    Column("closed_us", BigInteger),  # the first watch that did not; null while it lasts
    Column("content", JSON, nullable=False),
    sqlite_autoincrement=True,
)

alert_action = Table(  # what people did about alerts
    "alert_action",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("alert_id", ForeignKey("alert.id"), nullable=False, index=True),
    Column("time_us", BigInteger, nullable=False),
    Column("person", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("until_us", BigInteger),  # of `muted`
    Column("note", Text, nullable=False),
    CheckConstraint("action IN ('acknowledged', 'muted', 'resolved', 'reopened')", name="action"),
    sqlite_autoincrement=True,
)
