"""Agreeing: how far raters agree, and what somebody has to settle."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from karat.errors import UsageError, nearest
from karat.golden.aggregation import disagreements
from karat.golden.reliability import agreement
from karat.store import judgments, pairs, queries, queue
from karat.tables.agreement import Agreement
from karat.workflows.workspace import Opened

_NO_CLASS = {"query_id", "text", "need", "weight", "probability", "count", "dropped_us"}


@dataclass(frozen=True)
class Disagreements:
    """Pairs that raters see differently.

    Attributes:
        frame: As ``karat.golden.aggregation.disagreements`` gives them, with ``text``.
        queued: Adjudications that were opened now.
    """

    frame: pl.DataFrame
    queued: int


def agreement_in(opened: Opened, by: str | None = None) -> Agreement:
    """How far the raters of a golden set agree, by the policy of its workspace.

    Args:
        opened: The workspace.
        by: An attribute of the queries, to see it class by class.

    Raises:
        UsageError: no such attribute.
    """
    golden = opened.golden
    with opened.store.read() as connection:
        asked = queries.frame(connection, golden.id)
        said = judgments.current(connection, golden.id).of(asked["query_id"])
        known = pairs.frame(connection, golden.id).filter(pl.col("gold_grade").is_not_null())
    classes = None
    if by is not None:
        names = [name for name in asked.columns if name not in _NO_CLASS]
        if by not in names:
            raise UsageError(
                f"queries have no attribute {by!r}",
                nearest=nearest(by, names, 1),
                fix=f"one of {', '.join(names)}",
            )
        held = asked.drop_nulls(by)
        classes = dict(zip(held["query_id"], held[by].cast(pl.String), strict=True))
    return agreement(
        said,
        weights=opened.workspace.weights,
        by=classes,
        gold=known.select("query_id", "doc_id", grade="gold_grade"),
        target=opened.workspace.at_least,
    )


def disagreements_in(opened: Opened, *, now: int, queue_them: bool = False) -> Disagreements:
    """Pairs whose grades are far apart, or on either side of relevant, and not settled.

    Args:
        opened: The workspace.
        now: Microseconds UTC.
        queue_them: Put them into the queue of adjudicators.
    """
    golden = opened.golden
    with opened.store.read() as connection:
        asked = queries.frame(connection, golden.id)
        said = judgments.current(connection, golden.id).of(asked["query_id"])
    found = disagreements(said).filter(~pl.col("settled"))
    found = found.join(asked.select("query_id", "text"), on="query_id", how="left")
    count = 0
    if queue_them and found.height:
        with opened.store.begin() as connection:
            count = queue.open_adjudications(
                connection, golden.id, found.select("query_id", "doc_id"), now
            )
    return Disagreements(found, count)
