"""Stored comparisons: their settings, who computes them, and judgments given since."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl
import sqlalchemy as sa

from karat.store.sql import golden_sets
from karat.store.sql.runs import COLUMNS, RunRow, row_of
from karat.store.sql.schema import audit, comparison, document, judgment, query, run
from karat.tables.judgments import Judgments
from karat.tables.schema import JUDGMENTS

State = Literal["waiting", "running", "done", "failed"]
LEASE_US = 60_000_000
"""Time after its last heartbeat when a computation counts as dead."""
_INSIDE = {"judgment": "id", "document_hash": "document_sha256"}  # column names in the database
_BEGIN = 400  # characters of a text that replaces a title
_NOT_HASHED = {"golden_set_id", "attributes"}


@dataclass(frozen=True)
class ComparisonRow:
    """A stored comparison.

    Attributes:
        id: Its id.
        set_id: Id of its golden set.
        name: Its name.
        runs: Ids of the runs, the baseline first.
        settings: Measures, attributes, margin, edition.
        made_by: User who created it.
        created_us: When, microseconds UTC.
        state: waiting | running | done | failed.
        error: Why it failed; None otherwise.
        computed_us: When it was computed; while it is running, its last heartbeat.
        judgment_id: The newest judgment when it was computed; None before.
        attempt: Token of the current or last computation; None before the first.
    """

    id: int
    set_id: int
    name: str
    runs: tuple[int, ...]
    settings: dict[str, Any]
    made_by: str
    created_us: int
    state: State
    error: str | None
    computed_us: int | None
    judgment_id: int | None
    attempt: str | None


def put(
    c: sa.Connection,
    set_id: int,
    *,
    name: str,
    runs: Sequence[int],
    settings: Mapping[str, Any],
    made_by: str,
    now: int,
) -> int:
    """Store a comparison to be computed; returns its id."""
    values = {
        "golden_set_id": set_id,
        "name": name,
        "runs": list(runs),
        "settings": dict(settings),
        "made_by": made_by,
        "created_us": now,
        "state": "waiting",
    }
    insert = sa.insert(comparison).values(values).returning(comparison.c.id)
    return int(c.execute(insert).scalar_one())


def comparisons(c: sa.Connection, set_id: int) -> list[ComparisonRow]:
    """The comparisons of a golden set, the newest first."""
    chosen = sa.select(comparison).where(comparison.c.golden_set_id == set_id)
    return [_row(row) for row in c.execute(chosen.order_by(comparison.c.id.desc())).mappings()]


def find(c: sa.Connection, comparison_id: int) -> ComparisonRow | None:
    """A comparison by its id; None if there is none."""
    chosen = sa.select(comparison).where(comparison.c.id == comparison_id)
    row = c.execute(chosen).mappings().one_or_none()
    return None if row is None else _row(row)


def remove(c: sa.Connection, comparison_id: int) -> bool:
    """Delete a comparison; False if there was none."""
    delete = sa.delete(comparison).where(comparison.c.id == comparison_id)
    return c.execute(delete).rowcount == 1


def start(c: sa.Connection, comparison_id: int, now: int) -> str | None:
    """Start computing a comparison, unless another process that is alive does.

    Returns:
        The token of the attempt; None if another process has it.
    """
    attempt = secrets.token_hex(8)
    died = (comparison.c.state == "running") & (comparison.c.computed_us <= now - LEASE_US)
    taken = c.execute(
        sa.update(comparison)
        .where(comparison.c.id == comparison_id, (comparison.c.state == "waiting") | died)
        .values(state="running", computed_us=now, error=None, attempt=attempt)
    )
    return attempt if taken.rowcount == 1 else None


def alive(c: sa.Connection, comparison_id: int, attempt: str, now: int) -> bool:
    """Heartbeat of an attempt; False if another attempt has taken over (as in ``finish``)."""
    return _update(c, comparison_id, attempt, {"computed_us": now})


def finish(c: sa.Connection, comparison_id: int, attempt: str, judgment_id: int, now: int) -> bool:
    """Mark a comparison as done, after its files were written."""
    values = {"state": "done", "error": None, "computed_us": now, "judgment_id": judgment_id}
    return _update(c, comparison_id, attempt, values)


def fail(c: sa.Connection, comparison_id: int, attempt: str, error: str, now: int) -> bool:
    """Mark a comparison as failed."""
    values = {"state": "failed", "error": error, "computed_us": now}
    return _update(c, comparison_id, attempt, values)


def _update(c: sa.Connection, comparison_id: int, attempt: str, values: Mapping[str, Any]) -> bool:
    """Update a comparison if it is still this attempt's."""
    current = (comparison.c.state == "running") & (comparison.c.attempt == attempt)
    update = sa.update(comparison).where(comparison.c.id == comparison_id, current)
    return c.execute(update.values(**values)).rowcount == 1


def again(c: sa.Connection, comparison_id: int) -> bool:
    """Queue a comparison to be computed again; False if it is waiting or running already."""
    finished = comparison.c.state.in_(["done", "failed"])
    update = sa.update(comparison).where(comparison.c.id == comparison_id, finished)
    return c.execute(update.values({"state": "waiting", "error": None})).rowcount == 1


def clock(c: sa.Connection, set_id: int, *, live: bool, with_documents: bool) -> str:
    """Digest of the inputs of a computation; it changes whenever one of them does.

    Args:
        c: A connection.
        set_id: The golden set.
        live: Include its current judgments and queries.
        with_documents: Include its documents.
    """
    parts: list[Any] = []
    if live:
        newest = sa.select(judgment.c.id, judgment.c.time_us)
        newest = newest.where(judgment.c.golden_set_id == set_id)
        parts.append(c.execute(newest.order_by(judgment.c.id.desc()).limit(1)).first())
        # Queries have no time of their last change, so their content is hashed.
        columns = [column for column in query.c if column.name not in _NOT_HASHED]
        queries = sa.select(*columns, sa.cast(query.c.attributes, sa.Text))
        queries = queries.where(query.c.golden_set_id == set_id).order_by(query.c.id)
        digest = hashlib.sha256()
        for row in c.execute(queries):
            digest.update(repr(tuple(row)).encode("utf-8", "surrogatepass"))
        parts.append(digest.hexdigest())
    if with_documents:
        times = sa.func.max(document.c.added_us), sa.func.max(document.c.changed_us)
        documents = sa.select(sa.func.count(), *times).where(document.c.golden_set_id == set_id)
        parts.append(c.execute(documents).one())
    text = repr([part if isinstance(part, str) else tuple(part or ()) for part in parts])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def newest_judgment(c: sa.Connection, set_id: int) -> int:
    """Id of the newest judgment of a golden set; 0 if there is none."""
    newest = sa.select(sa.func.max(judgment.c.id)).where(judgment.c.golden_set_id == set_id)
    return int(c.execute(newest).scalar_one() or 0)


def judged_since(c: sa.Connection, set_id: int, judgment_id: int) -> list[int]:
    """Ids of the judgments after a given one that count, in order."""
    # "+ 0" avoids the index on pairs, with which all judgments of the set would be read.
    own = judgment.c.golden_set_id + 0 == set_id
    later = judgment.alias()
    given = sa.select(judgment.c.id).where(
        own,
        judgment.c.id > judgment_id,
        judgment.c.state != "withdrawn",
        ~sa.exists().where(later.c.supersedes == judgment.c.id),
    )
    return list(c.execute(given.order_by(judgment.c.id)).scalars())


def judgments_of(c: sa.Connection, set_id: int, query_id: str) -> Judgments:
    """The judgments of one query that count, as in ``judgments.current``."""
    declared = golden_sets.by_id(c, set_id)
    later = judgment.alias()
    chosen = (
        sa.select(*(judgment.c[_INSIDE.get(column.name, column.name)] for column in JUDGMENTS))
        .where(
            judgment.c.golden_set_id == set_id,
            judgment.c.query_id == query_id,
            judgment.c.state != "withdrawn",
            ~sa.exists().where(later.c.supersedes == judgment.c.id),
        )
        .order_by(judgment.c.id)
    )
    rows = [tuple(row) for row in c.execute(chosen)]
    schema = {column.name: column.dtype for column in JUDGMENTS}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return Judgments(frame, declared.scale, f"golden set {declared.name}")


def query_ids(c: sa.Connection, set_id: int) -> set[str]:
    """Ids of the queries of a golden set, without dropped ones."""
    chosen = sa.select(query.c.query_id).where(
        query.c.golden_set_id == set_id, query.c.dropped_us.is_(None)
    )
    return set(c.execute(chosen).scalars())


def has_query(c: sa.Connection, set_id: int, query_id: str) -> bool:
    """Whether a golden set has a query that was not dropped."""
    chosen = sa.select(query.c.id).where(
        query.c.golden_set_id == set_id,
        query.c.query_id == query_id,
        query.c.dropped_us.is_(None),
    )
    return c.execute(chosen).first() is not None


def titles(c: sa.Connection, set_id: int, doc_ids: Sequence[str]) -> dict[str, str]:
    """The title of each document, or the beginning of its text; unknown documents are left out."""
    if not doc_ids:
        return {}
    begin = sa.func.substr(document.c.text, 1, _BEGIN)
    chosen = sa.select(document.c.doc_id, document.c.title, begin.label("begin")).where(
        document.c.golden_set_id == set_id, document.c.doc_id.in_(list(doc_ids))
    )
    out = {}
    for row in c.execute(chosen):
        for text in (row.title, row.begin):
            line = " ".join((text or "").split())
            if line and line != row.doc_id:
                out[row.doc_id] = line if len(line) <= 120 else f"{line[:119]}…"
                break
    return out


def find_run(c: sa.Connection, run_id: int) -> tuple[int, RunRow] | None:
    """A run by its id, with the id of its golden set; None if there is none."""
    columns = (run.c.golden_set_id, *(run.c[name] for name in COLUMNS))
    row = c.execute(sa.select(*columns).where(run.c.id == run_id)).mappings().one_or_none()
    if row is None:
        return None
    return int(row["golden_set_id"]), row_of(row)


def stored_by(
    c: sa.Connection, kept: str, removed: str, sha256: str | None = None
) -> dict[str, str]:
    """The user who stored each run, by its SHA-256, according to the audit log.

    Of several the first since the run was last deleted counts.

    Args:
        c: A connection.
        kept: The action of storing a run in the log.
        removed: The action of deleting a run in the log.
        sha256: Only this run; all if None.
    """
    chosen = sa.select(audit.c.action, audit.c.person, audit.c.about)
    chosen = chosen.where(audit.c.action.in_([kept, removed])).order_by(audit.c.id)
    if sha256 is not None:
        chosen = chosen.where(audit.c.about["sha256"].as_string() == sha256)
    users: dict[str, str] = {}
    for row in c.execute(chosen):
        run_sha256 = str(row.about.get("sha256"))
        if row.action == kept:
            users.setdefault(run_sha256, row.person)
        else:
            users.pop(run_sha256, None)
    return users


def _row(row: sa.RowMapping) -> ComparisonRow:
    values = dict(row)
    return ComparisonRow(
        set_id=values.pop("golden_set_id"), runs=tuple(values.pop("runs")), **values
    )
