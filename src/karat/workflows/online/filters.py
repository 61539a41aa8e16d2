"""Filters of a log: parsed, and applied to facts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, time
from typing import Any

import narwhals as nw
import polars as pl

from karat.errors import UsageError, nearest
from karat.golden.traffic import folded
from karat.online.evidence import column_of, shown
from karat.tables.days import day_number
from karat.tables.notes import Concern, Note
from karat.tables.online.evaluation import DIMENSIONS
from karat.tables.online.events import EventLog

Only = Mapping[str, str | None]
"""Dimension and value, as in ``OnlineResult.slice``; None matches values not logged."""


def read_only(texts: Iterable[str], log: EventLog) -> dict[str, str | None]:
    """Parse ``--only``: ``arm=b``, ``device=`` (not logged)."""
    known = {name.casefold(): name for name in (*log.attributes, *DIMENSIONS)}
    only: dict[str, str | None] = {}
    for text in texts:
        dimension, equals, value = text.partition("=")
        name = known.get(dimension.strip().casefold())
        if not equals:
            raise UsageError(f"--only {text}: no value given", fix=f"--only {text}=VALUE")
        if name is None:
            raise UsageError(
                f"--only {text}: the log has no attribute {dimension.strip()}",
                nearest=nearest(dimension.strip(), known.values(), 1),
                fix=f"use one of {', '.join(known.values())}",
            )
        if name in only:
            raise UsageError(f"--only {text}: duplicate dimension {name}")
        only[name] = value or None
    arm = only.get("arm")
    if arm is not None and arm not in log.arms:
        arms = ", ".join(log.arms)
        raise UsageError(
            f"--only arm={arm}: the log has no such arm",
            nearest=nearest(arm, log.arms, 1),
            fix=f"its arms are {arms}" if arms else "it has no arms of experiments",
        )
    if only.get("query") is not None:
        only["query"] = folded([str(only["query"])])[0]
    values_of(only)
    return only


def tests_of(
    log: EventLog, only: Only, classes: pl.DataFrame | None
) -> dict[str, tuple[str, str | int | None]]:
    """The column of facts and the value for each dimension of a filter."""
    known = [*DIMENSIONS, *log.attributes]
    for name in only:
        if name not in known:
            raise UsageError(
                f"the log has no attribute {name}",
                nearest=nearest(name, known),
                fix=f"use one of {', '.join(known)}",
            )
    if "class" in only and classes is None:
        raise UsageError(
            "filtering by class needs the class of each query",
            fix="give a file of queries with a class",
        )
    return {name: (column_of(name), value) for name, value in values_of(only).items()}


def values_of(only: Only) -> dict[str, str | int | None]:
    """The values of a filter as facts store them."""
    return {name: _number(name, value) for name, value in only.items()}


def narrowed(
    facts: nw.LazyFrame[Any], tests: Mapping[str, tuple[str, str | int | None]]
) -> nw.LazyFrame[Any]:
    for column, value in tests.values():
        facts = facts.filter(shown(column, value))
    return facts


def only_note(only: Only) -> list[str]:
    """A note on what is counted; empty if everything is."""
    if not only:
        return []
    conditions = (
        f"no {name}" if value is None else f"{name}={value}" for name, value in only.items()
    )
    return [Note(f"only searches with {', '.join(conditions)} are counted", Concern.INPUT)]


def _number(dimension: str, value: str | None) -> str | int | None:
    if value is None or dimension not in {"day", "hour"}:
        return value
    try:
        if dimension == "day":
            return day_number(date.fromisoformat(value))
        return time(int(value)).hour
    except ValueError:
        example = "2026-11-20" if dimension == "day" else "09, from 00 to 23"
        raise UsageError(
            f"{value[:60]!r} is not a valid {dimension}", fix=f"such as {example}"
        ) from None
