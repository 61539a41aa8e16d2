"""Marking: what happened to a search and when, said by people, drawn into its trends."""

from __future__ import annotations

import datetime as dt

import polars as pl

from karat.errors import UsageError, nearest
from karat.store.sql import annotations as marks
from karat.store.sql import audit, golden_sets
from karat.workflows.workspace.workspace import Workspace

KINDS = ("release", "corpus", "other")
"""What a mark can be: a version of the search went live, its documents changed, or another."""
TWICE_US = 60_000_000
"""Within this time the same mark of now is meant once, as where a form is sent twice."""
LONGEST = 500
"""Characters of a mark's text."""
_SHOWN = 80  # of these, those that the audit shows


def marks_of(opened: Workspace) -> pl.DataFrame:
    """Every mark of the workspace, as ``marks.SCHEMA`` says, the earliest first."""
    with opened.store.read() as connection:
        return marks.frame(connection)


def add_mark(opened: Workspace, *, time: str, kind: str, text: str, person: str, now: int) -> int:
    """Mark what happened, and note who did so.

    Args:
        opened: The workspace.
        time: When, in UTC unless it says otherwise: ``2026-03-01``, ``2026-03-01T02:00``,
            ``2026-03-01T02:00:00+01:00``; now if empty, and what was marked so within
            ``TWICE_US`` by the same person in the same words is not marked again.
        kind: One of ``KINDS``.
        text: What, up to ``LONGEST`` characters.
        person: Who marks it.
        now: Microseconds UTC.

    Returns:
        The mark's number.

    Raises:
        UsageError: an unknown kind, no text or too long a one, or no such time.
    """
    if kind not in KINDS:
        raise UsageError(f"a mark is no {kind!r}", nearest=nearest(kind, KINDS) or list(KINDS))
    said = " ".join(text.split())
    if not said:
        raise UsageError("a mark says what happened", fix="write a few words")
    if len(said) > LONGEST:
        raise UsageError(f"a mark has up to {LONGEST} characters, and this has {len(said):,}")
    time_us = time_of(time) if time.strip() else now
    with opened.store.begin() as connection:
        golden_sets.hold(connection, opened.golden.id)  # a second click waits for the first
        there = marks.frame(connection)
        before = there["id"].to_list()
        if not time.strip():
            same = there.filter(kind=kind, text=said, made_by=person)
            # Such a mark is of the moment at which it was made.
            same = same.filter(pl.col("time_us") == pl.col("created_us"))
            near = same.filter((pl.col("time_us") - now).abs() < TWICE_US)
            time_us = next(iter(near["time_us"].to_list()), now)
        made = marks.add(connection, time_us=time_us, kind=kind, text=said, made_by=person, now=now)
        if made not in before:
            about = {"mark": made, "kind": kind, "time": _moment(time_us)}
            audit.note(connection, person, "add mark", said[:_SHOWN], now, about)
    return made


def remove_mark(
    opened: Workspace, mark_id: int, *, person: str, now: int, of_anybody: bool = False
) -> None:
    """Take away a mark, and note who did so.

    Args:
        opened: The workspace.
        mark_id: Which.
        person: Who does so: whoever made it.
        now: Microseconds UTC.
        of_anybody: Whether it may be another's.

    Raises:
        UsageError: there is none, or it is another's.
    """
    with opened.store.begin() as connection:
        row = next(marks.frame(connection).filter(id=mark_id).iter_rows(named=True), None)
        if row is None:
            raise UsageError("the mark is gone already", fix="reload the page")
        if row["made_by"] != person and not of_anybody:
            raise UsageError(
                f"the mark is {row['made_by']}’s", fix=f"ask {row['made_by']}, or an owner"
            )
        marks.remove(connection, mark_id)
        about = {
            "mark": mark_id,
            "kind": row["kind"],
            "time": _moment(row["time_us"]),
            "made by": row["made_by"],
        }
        audit.note(connection, person, "remove mark", row["text"][:_SHOWN], now, about)


def time_of(said: str) -> int:
    """Microseconds UTC of a day or a time as ISO 8601 writes it.

    Raises:
        UsageError: it is none, or lies outside the years 1970 to 2999.
    """
    wrong = UsageError(f"{said!r} is no time", fix="2026-03-01, or 2026-03-01T14:30, in UTC")
    try:
        found = dt.datetime.fromisoformat(said.strip())
        utc = found.replace(tzinfo=dt.UTC) if found.tzinfo is None else found.astimezone(dt.UTC)
    except (ValueError, OverflowError):
        raise wrong from None
    if not 1970 <= utc.year < 3000:
        raise wrong
    return round((utc - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) / dt.timedelta(microseconds=1))


def _moment(time_us: int) -> str:
    return f"{dt.datetime.fromtimestamp(time_us / 1e6, tz=dt.UTC):%Y-%m-%d %H:%M}"
