"""Comparisons that are kept: what was asked, who computes it, and what was judged since."""

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
"""How long after its last sign of life a computation is taken for one that died."""
_INSIDE = {"judgment": "id", "document_hash": "document_sha256"}  # as the table calls them
_BEGIN = 400  # characters of a text, where it stands for a title


@dataclass(frozen=True)
class ComparisonRow:
    """A comparison that was asked for.

    Attributes:
        id: Its number.
        set_id: Number of its golden set.
        name: Its name.
        runs: Numbers of the runs, the baseline's first.
        settings: What else was asked: measures, attributes, margin, edition.
        made_by: Who asked.
        created_us: When, microseconds UTC.
        state: waiting | running | done | failed.
        error: Why it failed; None otherwise.
        computed_us: When it was computed; while it is running, its last sign of life.
        judgment_id: The newest judgment there was when it was computed; None before.
        attempt: Whose it is to compute, or who did so last; None before anybody began.
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
    """Ask for a comparison.

    Args:
        c: A write transaction.
        set_id: The golden set.
        name: What pages call it.
        runs: Numbers of the runs, the baseline's first.
        settings: What else is asked, as JSON can hold it.
        made_by: Who asks.
        now: Microseconds UTC.

    Returns:
        Its number.
    """
    values = {
        "golden_set_id": set_id,
        "name": name,
        "runs": list(runs),
        "settings": dict(settings),
        "made_by": made_by,
        "created_us": now,
        "state": "waiting",
    }
    made = sa.insert(comparison).values(values).returning(comparison.c.id)
    return int(c.execute(made).scalar_one())


def comparisons(c: sa.Connection, set_id: int) -> list[ComparisonRow]:
    """The comparisons of a golden set, the newest first."""
    chosen = sa.select(comparison).where(comparison.c.golden_set_id == set_id)
    return [_row(found) for found in c.execute(chosen.order_by(comparison.c.id.desc())).mappings()]


def find(c: sa.Connection, comparison_id: int) -> ComparisonRow | None:
    """A comparison by its number; None if there is none."""
    chosen = sa.select(comparison).where(comparison.c.id == comparison_id)
    found = c.execute(chosen).mappings().one_or_none()
    return None if found is None else _row(found)


def remove(c: sa.Connection, comparison_id: int) -> bool:
    """Forget a comparison; False if it was gone already."""
    gone = sa.delete(comparison).where(comparison.c.id == comparison_id)
    return c.execute(gone).rowcount == 1


def start(c: sa.Connection, comparison_id: int, now: int) -> str | None:
    """Take a comparison to compute it, unless another who is alive has it.

    Args:
        c: A write transaction.
        comparison_id: Which.
        now: Microseconds UTC.

    Returns:
        What shows it to be the caller's to compute; None if it is not.
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
    """A sign of life of whoever computes a comparison.

    Returns:
        Whether it is still theirs: False if another was let to take it, and the same below.
    """
    return _own(c, comparison_id, attempt, {"computed_us": now})


def finish(c: sa.Connection, comparison_id: int, attempt: str, judgment_id: int, now: int) -> bool:
    """Note that a comparison is computed, its files written."""
    values = {"state": "done", "error": None, "computed_us": now, "judgment_id": judgment_id}
    return _own(c, comparison_id, attempt, values)


def fail(c: sa.Connection, comparison_id: int, attempt: str, error: str, now: int) -> bool:
    """Note why a comparison cannot be computed."""
    values = {"state": "failed", "error": error, "computed_us": now}
    return _own(c, comparison_id, attempt, values)


def _own(c: sa.Connection, comparison_id: int, attempt: str, values: Mapping[str, Any]) -> bool:
    """Change what one still computes oneself."""
    still = (comparison.c.state == "running") & (comparison.c.attempt == attempt)
    own = sa.update(comparison).where(comparison.c.id == comparison_id, still)
    return c.execute(own.values(**values)).rowcount == 1


def again(c: sa.Connection, comparison_id: int) -> bool:
    """Let a comparison be computed again, unless somebody does so already, or is about to.

    Returns:
        Whether anything changed.
    """
    settled = comparison.c.state.in_(["done", "failed"])
    wait = {"state": "waiting", "error": None}
    own = sa.update(comparison).where(comparison.c.id == comparison_id, settled)
    return c.execute(own.values(wait)).rowcount == 1


def clock(c: sa.Connection, set_id: int, *, live: bool, with_documents: bool) -> str:
    """What numbers are computed from, in short: another where any of it is another.

    Args:
        c: A connection.
        set_id: The golden set.
        live: With its judgments and queries as they are now.
        with_documents: With its documents.
    """
    parts: list[Any] = []
    if live:
        newest = sa.select(judgment.c.id, judgment.c.time_us)
        newest = newest.where(judgment.c.golden_set_id == set_id)
        parts.append(c.execute(newest.order_by(judgment.c.id.desc()).limit(1)).first())
        # A query has no time of its last change, so that its content tells.
        columns = [each for each in query.c if each.name not in {"golden_set_id", "attributes"}]
        every = sa.select(*columns, sa.cast(query.c.attributes, sa.Text))
        every = every.where(query.c.golden_set_id == set_id).order_by(query.c.id)
        whole = hashlib.sha256()
        for row in c.execute(every):
            whole.update(repr(tuple(row)).encode("utf-8", "surrogatepass"))
        parts.append(whole.hexdigest())
    if with_documents:
        times = sa.func.max(document.c.added_us), sa.func.max(document.c.changed_us)
        there = sa.select(sa.func.count(), *times).where(document.c.golden_set_id == set_id)
        parts.append(c.execute(there).one())
    said = repr([part if isinstance(part, str) else tuple(part or ()) for part in parts])
    return hashlib.sha256(said.encode()).hexdigest()[:32]


def newest_judgment(c: sa.Connection, set_id: int) -> int:
    """Number of the newest fact that anybody judged in a golden set; 0 if there is none."""
    newest = sa.select(sa.func.max(judgment.c.id)).where(judgment.c.golden_set_id == set_id)
    return int(c.execute(newest).scalar_one() or 0)


def judged_since(c: sa.Connection, set_id: int, judgment_id: int) -> list[int]:
    """Numbers of a golden set's judgments that were given since one, and count, in order."""
    # Not by the index of pairs, which begins with the set: that would read all of its judgments.
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
    """The judgments of one query that count now; as ``judgments.current`` gives those of all."""
    declared = golden_sets.by_id(c, set_id)
    later = judgment.alias()
    chosen = (
        sa.select(*(judgment.c[_INSIDE.get(each.name, each.name)] for each in JUDGMENTS))
        .where(
            judgment.c.golden_set_id == set_id,
            judgment.c.query_id == query_id,
            judgment.c.state != "withdrawn",
            ~sa.exists().where(later.c.supersedes == judgment.c.id),
        )
        .order_by(judgment.c.id)
    )
    rows = [tuple(row) for row in c.execute(chosen)]
    schema = {each.name: each.dtype for each in JUDGMENTS}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return Judgments(frame, declared.scale, f"golden set {declared.name}")


def query_ids(c: sa.Connection, set_id: int) -> set[str]:
    """The queries of a golden set, without those that were dropped."""
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
    """What documents are called: their title, else how their text begins; only those known."""
    if not doc_ids:
        return {}
    begin = sa.func.substr(document.c.text, 1, _BEGIN)
    chosen = sa.select(document.c.doc_id, document.c.title, begin.label("begin")).where(
        document.c.golden_set_id == set_id, document.c.doc_id.in_(list(doc_ids))
    )
    out = {}
    for row in c.execute(chosen):
        for said in (row.title, row.begin):
            words = " ".join((said or "").split())
            if words and words != row.doc_id:
                out[row.doc_id] = words if len(words) <= 120 else f"{words[:119]}…"
                break
    return out


def find_run(c: sa.Connection, run_id: int) -> tuple[int, RunRow] | None:
    """Number of its golden set, and a run by its number; None if there is none."""
    columns = (run.c.golden_set_id, *(run.c[name] for name in COLUMNS))
    found = c.execute(sa.select(*columns).where(run.c.id == run_id)).mappings().one_or_none()
    if found is None:
        return None
    return int(found["golden_set_id"]), row_of(found)


def who_kept(
    c: sa.Connection, kept: str, removed: str, sha256: str | None = None
) -> dict[str, str]:
    """By the SHA-256 of a run who kept it first, since it was last removed; as the audit tells.

    Args:
        c: A connection.
        kept: What the audit calls keeping one.
        removed: What it calls removing one.
        sha256: Of which run; of all if None.
    """
    chosen = sa.select(audit.c.action, audit.c.person, audit.c.about)
    chosen = chosen.where(audit.c.action.in_([kept, removed])).order_by(audit.c.id)
    if sha256 is not None:
        chosen = chosen.where(audit.c.about["sha256"].as_string() == sha256)
    found: dict[str, str] = {}
    for row in c.execute(chosen):
        which = str(row.about.get("sha256"))
        if row.action == kept:
            found.setdefault(which, row.person)
        else:
            found.pop(which, None)
    return found


def _row(found: sa.RowMapping) -> ComparisonRow:
    values = dict(found)
    return ComparisonRow(
        set_id=values.pop("golden_set_id"), runs=tuple(values.pop("runs")), **values
    )
