"""Only a part of a log: what is typed for it, and the tests of facts that leave the rest out."""

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
"""Dimension and its one value, as ``OnlineResult.slice`` has it; None: not logged."""


def read_only(texts: Iterable[str], log: EventLog) -> dict[str, str | None]:
    """What ``--only`` says: ``arm=b``, ``device=`` (not logged).

    Args:
        texts: As typed.
        log: What the store holds.

    Raises:
        UsageError: one is no NAME=VALUE, the log has no such dimension, or no such arm.
    """
    known = {name.casefold(): name for name in (*log.attributes, *DIMENSIONS)}
    only: dict[str, str | None] = {}
    for text in texts:
        said, equals, value = text.partition("=")
        name = known.get(said.strip().casefold())
        if not equals:
            raise UsageError(f"--only {text}: no value is said", fix=f"--only {text}=VALUE")
        if name is None:
            raise UsageError(
                f"--only {text}: the log has no attribute {said.strip()}",
                nearest=nearest(said.strip(), known.values(), 1),
                fix=f"it knows {', '.join(known.values())}",
            )
        if name in only:
            raise UsageError(f"--only {text}: {name} is said twice, and a search has one")
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
    """The column of facts and the value that each dimension asks for.

    Args:
        log: What the store holds.
        only: The part.
        classes: ``query_key`` and ``class``, each query once; needed for ``class``.

    Raises:
        UsageError: A dimension that the log lacks, a day or hour that is none.
    """
    known = [*DIMENSIONS, *log.attributes]
    for name in only:
        if name not in known:
            raise UsageError(
                f"the log has no attribute {name}",
                nearest=nearest(name, known),
                fix=f"it can be cut by {', '.join(known)}",
            )
    if "class" in only and classes is None:
        raise UsageError(
            "no classes of queries are known here", fix="name a file of queries with a class"
        )
    return {name: (column_of(name), value) for name, value in values_of(only).items()}


def values_of(only: Only) -> dict[str, str | int | None]:
    """What facts hold for values in words."""
    return {name: _number(name, value) for name, value in only.items()}


def narrowed(
    facts: nw.LazyFrame[Any], tests: Mapping[str, tuple[str, str | int | None]]
) -> nw.LazyFrame[Any]:
    """The rows of a part."""
    for column, value in tests.values():
        facts = facts.filter(shown(column, value))
    return facts


def only_note(only: Only) -> list[str]:
    """What is counted, in a sentence; nothing if all is."""
    if not only:
        return []
    said = (f"no {name}" if value is None else f"{name}={value}" for name, value in only.items())
    return [Note(f"only searches with {', '.join(said)} are counted", Concern.INPUT)]


def _number(dimension: str, value: str | None) -> str | int | None:
    if value is None or dimension not in {"day", "hour"}:
        return value
    try:
        if dimension == "day":
            return day_number(date.fromisoformat(value))
        return time(int(value)).hour
    except ValueError:
        example = "2026-11-20" if dimension == "day" else "09, from 00 to 23"
        raise UsageError(f"{value[:60]!r} is no {dimension}", fix=f"as in {example}") from None
