"""The documents of a golden set, as shown to raters."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl
import sqlalchemy as sa

from karat.store.sql import golden_sets
from karat.store.sql.schema import document, pair
from karat.store.sql.upsert import Put, frame_of, plain_rows
from karat.store.sql.upsert import put as put_rows
from karat.tables.checksum import checksum
from karat.tables.documents import Documents

SCHEMA: dict[str, pl.DataType] = {
    "doc_id": pl.String(),
    "title": pl.String(),
    "text": pl.String(),
    "url": pl.String(),
    "sha256": pl.String(),
}


def digest(title: str | None, text: str | None, url: str | None) -> str:
    """SHA-256 of a document as shown; a judgment is stale if its document has another one now."""
    return checksum({"title": title or "", "text": text or "", "url": url or ""})


def put(c: sa.Connection, set_id: int, frame: pl.DataFrame, now: int) -> Put:
    """Add or replace documents.

    Args:
        frame: ``doc_id``, and optionally ``title``, ``text``, ``url``; other columns are
            attributes. Documents are replaced as a whole: absent columns become empty.
    """
    golden_sets.hold(c, set_id)
    frame = Documents(frame).frame.drop("sha256", strict=False)
    rows = plain_rows(frame, ["doc_id", "title", "text", "url"], "documents")
    for row in rows:
        for name in ("title", "text", "url"):
            row[name] = None if row[name] is None else str(row[name])
        row["sha256"] = digest(row["title"], row["text"], row["url"])
    return put_rows(
        c,
        document,
        "doc_id",
        set_id,
        rows,
        stamped="changed_us",
        now=now,
        when_added={"added_us": now},
        when_changed={},
    )


def frame(c: sa.Connection, set_id: int) -> pl.DataFrame:
    """The documents in the order they were added: ``SCHEMA`` (``url`` if any), attributes."""
    chosen = sa.select(document).where(document.c.golden_set_id == set_id).order_by(document.c.id)
    always = {"doc_id", "title", "text", "sha256"}
    return frame_of(c.execute(chosen).mappings(), SCHEMA, always=always)


def with_text(c: sa.Connection, set_id: int, doc_ids: Collection[str]) -> set[str]:
    """Those of these documents whose text the golden set has."""
    chosen = sa.select(document.c.doc_id).where(
        document.c.golden_set_id == set_id,
        document.c.doc_id.in_(list(doc_ids)),
        document.c.text != "",
    )
    return set(c.scalars(chosen)) if doc_ids else set()


def lacking(c: sa.Connection, set_id: int) -> list[str]:
    """Documents of the queue that the golden set does not have, in the queue's order."""
    there = sa.and_(
        document.c.golden_set_id == pair.c.golden_set_id, document.c.doc_id == pair.c.doc_id
    )
    chosen = (
        sa.select(pair.c.doc_id)
        .outerjoin_from(pair, document, there)
        .where(pair.c.golden_set_id == set_id, document.c.id.is_(None))
        .group_by(pair.c.doc_id)
        .order_by(sa.func.min(pair.c.priority), sa.func.min(pair.c.id))
    )
    return list(c.scalars(chosen))
