"""Stored comparisons: their settings and outcomes, and judgments given since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from karat.store.sql.judgments import counting, of_golden_set
from karat.store.sql.runs import COLUMNS, row_of
from karat.store.sql.schema import audit, comparison, document, judgment, run
from karat.store.sql.upsert import insert
from karat.tables.workspace import ComparisonRow, RunRow

_BEGIN = 400  # characters of a text that replaces a title


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
    given = {"name": name, "runs": list(runs), "settings": dict(settings), "made_by": made_by}
    times = {"created_us": now, "state": "waiting"}
    return insert(c, comparison, golden_set_id=set_id, **given, **times)


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


def finish(c: sa.Connection, comparison_id: int, key: str, judgment_id: int, now: int) -> None:
    """Note the numbers of a comparison; older ones than those that it has are ignored."""
    has_newer = sa.func.coalesce(comparison.c.judgment_id, 0) > judgment_id
    c.execute(
        sa.update(comparison)
        .where(comparison.c.id == comparison_id, ~has_newer)
        .values(state="done", error=None, computed_us=now, judgment_id=judgment_id, attempt=key)
    )


def fail(c: sa.Connection, comparison_id: int, error: str, now: int) -> None:
    """Note why a comparison cannot be computed."""
    c.execute(
        sa.update(comparison)
        .where(comparison.c.id == comparison_id, comparison.c.state != "done")
        .values(state="failed", error=error, computed_us=now)
    )


def restore(c: sa.Connection, comparison_id: int) -> None:
    """Count the previous numbers of a comparison again: their recomputation was cancelled."""
    waiting = sa.update(comparison).where(
        comparison.c.id == comparison_id, comparison.c.state == "waiting"
    )
    c.execute(waiting.values(state="done"))


def again(c: sa.Connection, comparison_id: int) -> bool:
    """Request the numbers of a comparison anew; False if they are requested already."""
    finished = comparison.c.state.in_(["done", "failed"])
    update = sa.update(comparison).where(comparison.c.id == comparison_id, finished)
    return c.execute(update.values({"state": "waiting", "error": None})).rowcount == 1


def keys(c: sa.Connection) -> set[str]:
    """The keys of the numbers of all comparisons."""
    return set(c.execute(sa.select(comparison.c.attempt)).scalars()) - {None}


def newest_judgment(c: sa.Connection, set_id: int) -> int:
    """Id of the newest judgment of a golden set; 0 if there is none."""
    newest = (
        sa.select(judgment.c.id)
        .where(of_golden_set(c, set_id))
        .order_by(judgment.c.id.desc())
        .limit(1)
    )
    return int(c.execute(newest).scalar_one_or_none() or 0)


def judged_since(c: sa.Connection, set_id: int, judgment_id: int) -> list[int]:
    """Ids of the judgments after a given one that count, in order."""
    own = of_golden_set(c, set_id)
    given = sa.select(judgment.c.id).where(own, judgment.c.id > judgment_id, *counting())
    return list(c.execute(given.order_by(judgment.c.id)).scalars())


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


def stored_by(c: sa.Connection, kept: str, removed: str) -> dict[str, str]:
    """The user who stored each run, by its SHA-256, according to the audit log.

    Of several the first since the run was last deleted counts.
    """
    chosen = sa.select(audit.c.action, audit.c.person, audit.c.about)
    chosen = chosen.where(audit.c.action.in_([kept, removed])).order_by(audit.c.id)
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
    if values["state"] == "running":  # of an older karat, which has ended
        values["state"] = "waiting"
    return ComparisonRow(
        set_id=values.pop("golden_set_id"),
        runs=tuple(values.pop("runs")),
        key=values.pop("attempt"),
        **values,
    )
