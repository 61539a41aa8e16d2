"""Aggregation: one grade for each pair from several raters' judgments.

Also the pairs on which raters disagree too much, for adjudication.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from karat.errors import UsageError
from karat.tables.judgments import SOURCES, Judgments

RULE = "adjudicated, majority, median"
"""An adjudicated grade if there is one, else the grade of more than half, else the median."""
STEPS = ("adjudicated", "majority", "median")

_PAIR = ["query_id", "doc_id"]
_LOW, _HIGH = pl.col("low"), pl.col("high")
_FAR = (_HIGH - _LOW >= 2) | ((_LOW < 1) & (_HIGH >= 1))  # or on either side of relevant
_WIDEST, _DOWN = ["spread", *_PAIR], [True, False, False]


def grades(
    judgments: Judgments, rule: str = RULE, sources: Sequence[str] = ("human",)
) -> pl.DataFrame:
    """The grade of each pair, by an aggregation method.

    Args:
        judgments: Raw. Repeats, gold judgments and "cannot judge" have no vote.
        rule: Comma-separated steps, tried in order: ``adjudicated`` (the latest adjudicated
            grade), ``majority`` (the grade that more than half of the raters gave) and ``median``
            (the lower of the middle two for an even number of grades: always a grade that a rater
            gave, and doubt does not make a document relevant). A pair that no step decides is
            left out.
        sources: Sources that count; those named vote together.

    Returns:
        By query_id and doc_id: grade, votes (raters who graded), rule (the step that decided),
        raters (sorted; only the adjudicator for an adjudicated grade), spread (highest minus
        lowest vote; null without a vote), source (those of the votes). Every rater has one vote,
        the latest.

    Raises:
        UsageError: an unknown step or source.
    """
    steps = _steps(rule)
    counting = _counting(judgments, sources)
    votes = _votes(counting)
    pairs = votes.group_by(_PAIR).agg(
        pl.len().alias("votes"),
        pl.col("rater").sort().alias("raters"),
        (pl.col("grade").max() - pl.col("grade").min()).alias("spread"),
        pl.col("source").unique().sort().str.join("+").alias("source"),
        pl.col("grade").sort().get((pl.len() - 1) // 2).alias("median"),
        pl.col("grade").mode().sort().first().alias("_mode"),
        (pl.col("grade").unique_counts().max() * 2 > pl.len()).alias("_most"),
    )
    settled = _settled(counting).select(
        *_PAIR, adjudicated="grade", _judge="rater", _source="source"
    )
    candidates = pairs.join(settled, on=_PAIR, how="full", coalesce=True).with_columns(
        pl.when("_most").then("_mode").alias("majority"),
        pl.col("votes").fill_null(0).cast(pl.Int64),
    )
    decided = pl.coalesce([pl.when(pl.col(s).is_not_null()).then(pl.lit(s)) for s in steps])
    by_judge = pl.col("rule") == "adjudicated"
    return (
        candidates.with_columns(pl.coalesce(steps).alias("grade"), decided.alias("rule"))
        .with_columns(
            pl.when(by_judge).then(pl.concat_list("_judge")).otherwise("raters").alias("raters"),
            pl.when(by_judge).then("_source").otherwise("source").alias("source"),
        )
        .filter(pl.col("grade").is_not_null())
        .select(*_PAIR, "grade", "votes", "rule", "raters", "spread", "source")
        .sort(_PAIR)
    )


def disagreements(judgments: Judgments) -> pl.DataFrame:
    """Pairs to adjudicate, the largest spread first, from the raw judgments.

    Grades that are two apart are a disagreement, and those on either side of relevant.

    Returns:
        query_id, doc_id, votes, low, high, spread, raters, grades and reasons (lists, all in the
        order of the raters' names), settled (whether it has an adjudicated grade).
    """
    each = _each_vote(_counting(judgments, ("human",)))
    return each.filter(_FAR).sort(_WIDEST, descending=_DOWN)


def contradictions(judgments: Judgments) -> pl.DataFrame:
    """Pairs whose imported grade, without a rater, differs from the grade of the raters.

    The raters' grade counts, so the imported one has no effect. Pairs on which raters disagree
    are in ``disagreements`` and not here.

    Returns:
        As ``disagreements``, and ``imported``: the imported grade. ``low`` and ``high`` are that
        grade and the one that counts, ``spread`` their difference; votes, raters, grades and
        reasons are the raters'.
    """
    imported = grades(judgments, RULE, ("import",)).select(*_PAIR, imported="grade")
    counted = grades(judgments, RULE).select(*_PAIR, counted="grade")
    return (
        _each_vote(_counting(judgments, ("human",)))
        .filter(~_FAR)
        .join(imported, on=_PAIR)
        .join(counted, on=_PAIR)
        .with_columns(
            low=pl.min_horizontal("counted", "imported"),
            high=pl.max_horizontal("counted", "imported"),
        )
        .filter(_FAR)
        .with_columns(spread=pl.col("high") - pl.col("low"))
        .drop("counted")
        .sort(_WIDEST, descending=_DOWN)
    )


def _each_vote(counting: pl.DataFrame) -> pl.DataFrame:
    """A row for each pair with a vote: the votes, and whether the pair is adjudicated."""
    settled = _settled(counting).select(*_PAIR, settled=pl.lit(value=True))
    return (
        _votes(counting)
        .sort("rater")
        .group_by(_PAIR, maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("votes"),
            pl.col("grade").min().alias("low"),
            pl.col("grade").max().alias("high"),
            (pl.col("grade").max() - pl.col("grade").min()).alias("spread"),
            pl.col("rater").alias("raters"),
            pl.col("grade").alias("grades"),
            pl.col("reason").alias("reasons"),
        )
        .join(settled, on=_PAIR, how="left")
        .with_columns(pl.col("settled").fill_null(value=False))
    )


def _steps(rule: str) -> list[str]:
    steps = [step.strip() for step in rule.split(",")]
    for step in steps:
        if step not in STEPS:
            raise UsageError(
                f"unknown aggregation step {step!r}",
                fix=f"comma-separated, tried in order: {', '.join(STEPS)}",
            )
    if "adjudicated" in steps[1:]:
        raise UsageError("the step 'adjudicated' must come first", fix=f"such as {RULE!r}")
    return steps


def _counting(judgments: Judgments, sources: Sequence[str]) -> pl.DataFrame:
    for source in sources:
        if source not in SOURCES:
            raise UsageError(
                f"unknown source of judgments {source!r}", fix=f"use {', '.join(SOURCES)}"
            )
    return judgments.frame.filter(pl.col("source").is_in(list(sources)))


def _votes(counting: pl.DataFrame) -> pl.DataFrame:
    """The latest vote of each rater for each pair; none if the latest is "cannot judge"."""
    ratings = counting.filter(pl.col("kind") == "rating")
    latest = ratings.unique([*_PAIR, "rater"], keep="last", maintain_order=True)
    return latest.filter(pl.col("state") == "graded")


def _settled(counting: pl.DataFrame) -> pl.DataFrame:
    """The latest adjudication of each pair, if it has a grade."""
    settled = counting.filter(pl.col("kind") == "adjudication")
    latest = settled.unique(_PAIR, keep="last", maintain_order=True)
    return latest.filter(pl.col("state") == "graded")
