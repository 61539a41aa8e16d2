"""Annotations: events in the life of a search, such as releases, shown in its trends."""

from __future__ import annotations

import datetime as dt

import polars as pl

from karat.errors import UsageError, nearest
from karat.store.sql import annotations as marks
from karat.store.sql import audit, golden_sets
from karat.tables.days import time_text
from karat.workflows.workspace.workspace import Workspace

KINDS = ("release", "corpus", "other")
"""Kinds of annotation: a new version of the search, changed documents, or anything else."""
TWICE_US = 60_000_000  # within this time, a repeated annotation without a time is a double submit
LONGEST = 500  # maximum length of an annotation, in characters
_SHOWN = 80  # characters shown in the audit


def annotations_of(opened: Workspace) -> pl.DataFrame:
    """All annotations of the workspace, oldest first; columns as in ``marks.SCHEMA``."""
    with opened.store.read() as connection:
        return marks.frame(connection)


def add_annotation(
    opened: Workspace, *, time: str, kind: str, text: str, person: str, now: int
) -> int:
    """Add an annotation; audited. Returns its id."""
    if kind not in KINDS:
        raise UsageError(
            f"unknown kind of annotation {kind!r}", nearest=nearest(kind, KINDS) or list(KINDS)
        )
    message = " ".join(text.split())
    if not message:
        raise UsageError("the annotation has no text", fix="write a few words")
    if len(message) > LONGEST:
        raise UsageError(
            f"an annotation has at most {LONGEST} characters, and this one has {len(message):,}"
        )
    time_us = time_of(time) if time.strip() else now
    with opened.store.begin() as connection:
        golden_sets.hold(connection, opened.golden.id)  # serialises double clicks
        existing = marks.frame(connection)
        existing_ids = existing["id"].to_list()
        if not time.strip():
            repeated = existing.filter(kind=kind, text=message, made_by=person)
            # An annotation without a time has that of its creation.
            repeated = repeated.filter(pl.col("time_us") == pl.col("created_us"))
            recent = repeated.filter((pl.col("time_us") - now).abs() < TWICE_US)
            time_us = next(iter(recent["time_us"].to_list()), now)
        mark_id = marks.add(
            connection, time_us=time_us, kind=kind, text=message, made_by=person, now=now
        )
        if mark_id not in existing_ids:
            about = {"mark": mark_id, "kind": kind, "time": time_text(time_us)}
            audit.note(connection, person, "add mark", message[:_SHOWN], now, about)
    return mark_id


def delete_annotation(
    opened: Workspace, mark_id: int, *, person: str, now: int, of_anybody: bool = False
) -> None:
    """Delete an annotation; audited."""
    with opened.store.begin() as connection:
        row = next(marks.frame(connection).filter(id=mark_id).iter_rows(named=True), None)
        if row is None:
            raise UsageError("the annotation was already deleted", fix="reload the page")
        if row["made_by"] != person and not of_anybody:
            raise UsageError(
                f"the annotation belongs to {row['made_by']}",
                fix=f"ask {row['made_by']}, or an owner",
            )
        marks.remove(connection, mark_id)
        about = {
            "mark": mark_id,
            "kind": row["kind"],
            "time": time_text(row["time_us"]),
            "made by": row["made_by"],
        }
        audit.note(connection, person, "remove mark", row["text"][:_SHOWN], now, about)


def time_of(text: str) -> int:
    """Microseconds UTC of an ISO 8601 date or time."""
    invalid = UsageError(f"invalid time {text!r}", fix="2026-03-01, or 2026-03-01T14:30, in UTC")
    try:
        parsed = dt.datetime.fromisoformat(text.strip())
        utc = parsed.replace(tzinfo=dt.UTC) if parsed.tzinfo is None else parsed.astimezone(dt.UTC)
    except (ValueError, OverflowError):
        raise invalid from None
    if not 1970 <= utc.year < 3000:
        raise invalid
    return round((utc - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) / dt.timedelta(microseconds=1))
