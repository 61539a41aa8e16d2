"""Agreeing: how far raters agree, and what somebody has to settle."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
import sqlalchemy as sa

from karat.errors import UsageError, nearest
from karat.golden.aggregation import contradictions, disagreements
from karat.golden.reliability import agreement
from karat.store.sql import golden_sets, judgments, pairs, queries, queue, ratings
from karat.store.sql.golden_sets import GoldenSetRow
from karat.tables.golden.agreement import Agreement
from karat.tables.judgments import Judgments
from karat.tables.workspace import WorkspaceConfig
from karat.workflows.workspace.workspace import Workspace

RATERS, IMPORT = "raters", "import"
_NO_CLASS = {"query_id", "text", "need", "weight", "probability", "count", "dropped_us"}


@dataclass(frozen=True)
class Moment:
    """What a golden set holds at one moment, so that figures made of it fit each other.

    Attributes:
        queries: As ``karat.store.sql.queries.frame`` gives them.
        judgments: Those of these queries that count.
        first: The same, but first ratings in place of corrections made with others' votes in
            sight: what agreement is of.
        pairs: Those in the queue, as ``karat.store.sql.pairs.frame`` gives them.
        golden: What was declared.
    """

    queries: pl.DataFrame
    judgments: Judgments
    first: Judgments
    pairs: pl.DataFrame
    golden: GoldenSetRow


@dataclass(frozen=True)
class Disagreements:
    """Pairs that are seen differently.

    Attributes:
        frame: As ``disagreements_at`` gives them.
        queued: Adjudications that were opened now.
    """

    frame: pl.DataFrame
    queued: int


def moment(connection: sa.Connection, set_id: int) -> Moment:
    """What a golden set holds now.

    Args:
        connection: Of one transaction (``Store.read``).
        set_id: The golden set.
    """
    asked = queries.frame(connection, set_id)
    counts = judgments.current(connection, set_id)
    first = ratings.first(connection, set_id, counts).of(asked["query_id"])
    said = counts.of(asked["query_id"])
    waiting = pairs.frame(connection, set_id)
    return Moment(asked, said, first, waiting, golden_sets.by_id(connection, set_id))


def agreement_at(held: Moment, workspace: WorkspaceConfig, by: str | None = None) -> Agreement:
    """How far the raters agreed at a moment, by the policy of a workspace.

    Args:
        held: The moment.
        workspace: Whose weights and target count.
        by: An attribute of the queries, to see it class by class.

    Raises:
        UsageError: no such attribute.
    """
    classes = None
    if by is not None:
        names = [name for name in held.queries.columns if name not in _NO_CLASS]
        if by not in names:
            raise UsageError(
                f"queries have no attribute {by!r}",
                nearest=nearest(by, names, 1),
                fix=f"one of {', '.join(names)}",
            )
        known = held.queries.drop_nulls(by)
        classes = dict(zip(known["query_id"], known[by].cast(pl.String), strict=True))
    gold = held.pairs.filter(pl.col("gold_grade").is_not_null())
    return agreement(
        held.first,
        weights=workspace.weights,
        by=classes,
        gold=gold.select("query_id", "doc_id", grade="gold_grade"),
        target=workspace.at_least,
    )


def disagreements_at(held: Moment) -> pl.DataFrame:
    """Pairs whose grades are far apart, or on either side of relevant, and not settled.

    Returns:
        As ``karat.golden.aggregation`` gives them, those of raters first, with ``text`` of the
        query, ``between`` (``raters``, or ``import``: raters contradict an imported grade, which
        therefore has no effect) and ``imported`` (that grade; null between raters).
    """
    found = pl.concat(
        [
            disagreements(held.judgments).with_columns(
                imported=pl.lit(None, pl.Float64), between=pl.lit(RATERS)
            ),
            contradictions(held.judgments).with_columns(between=pl.lit(IMPORT)),
        ]
    ).filter(~pl.col("settled"))
    texts = held.queries.select("query_id", "text")
    return found.join(texts, on="query_id", how="left", maintain_order="left")


def agreement_in(opened: Workspace, by: str | None = None) -> Agreement:
    """How far the raters of a golden set agree; as ``agreement_at``, now."""
    with opened.store.read() as connection:
        held = moment(connection, opened.golden.id)
    return agreement_at(held, opened.workspace, by)


def disagreements_in(
    opened: Workspace, *, now: int, queue_them: bool = False, queue_imported: bool = False
) -> Disagreements:
    """What somebody has to settle, or to look at; as ``disagreements_at``, now.

    Args:
        opened: The workspace.
        now: Microseconds UTC.
        queue_them: Put what raters disagree on into the queue of adjudicators.
        queue_imported: Put the pairs there whose imported grade raters contradict.
    """
    with opened.store.read() as connection:
        found = disagreements_at(moment(connection, opened.golden.id))
    asked_for = [RATERS] * queue_them + [IMPORT] * queue_imported
    wanted = found.filter(pl.col("between").is_in(asked_for))
    count = 0
    if wanted.height:
        with opened.store.begin() as connection:
            count = queue.open_adjudications(
                connection, opened.golden.id, wanted.select("query_id", "doc_id"), now
            )
    return Disagreements(found, count)
