"""One grade for each pair, out of several raters' judgments, by a rule that is written down.

And the pairs on which raters disagree so far that somebody has to settle them.
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
_WIDEST, _DOWN = ["spread", *_PAIR], [True, False, False]


def grades(
    judgments: Judgments, rule: str = RULE, sources: Sequence[str] = ("human",)
) -> pl.DataFrame:
    """The grade of each pair, as a rule makes it.

    Args:
        judgments: Raw. Repeats and gold judgments have no vote, nor has "cannot judge".
        rule: Steps in the order they are tried, by comma: ``adjudicated`` (the latest settled
            grade), ``majority`` (the grade that more than half of the raters gave) and ``median``
            (of an even number of grades the lower of the middle two, so that it is a grade
            somebody gave, and doubt makes nothing relevant). A pair that no step decides is
            left out.
        sources: Whose judgments count. Several are one electorate only because they are named
            here; ``source`` of each row says whose votes there were.

    Returns:
        By query_id and doc_id: grade, votes (raters who graded), rule (the step that decided),
        raters (sorted; of an adjudicated grade the adjudicator alone), spread (highest minus
        lowest vote; null without a vote), source. Every rater has one vote, the latest.

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
    found = pairs.join(settled, on=_PAIR, how="full", coalesce=True).with_columns(
        pl.when("_most").then("_mode").alias("majority"),
        pl.col("votes").fill_null(0).cast(pl.Int64),
    )
    decided = pl.coalesce([pl.when(pl.col(s).is_not_null()).then(pl.lit(s)) for s in steps])
    by_judge = pl.col("rule") == "adjudicated"
    return (
        found.with_columns(pl.coalesce(steps).alias("grade"), decided.alias("rule"))
        .with_columns(
            pl.when(by_judge).then(pl.concat_list("_judge")).otherwise("raters").alias("raters"),
            pl.when(by_judge).then("_source").otherwise("source").alias("source"),
        )
        .filter(pl.col("grade").is_not_null())
        .select(*_PAIR, "grade", "votes", "rule", "raters", "spread", "source")
        .sort(_PAIR)
    )


def disagreements(
    judgments: Judgments,
    at_least: float = 2.0,
    rel: float = 1.0,
    sources: Sequence[str] = ("human",),
) -> pl.DataFrame:
    """Pairs that somebody has to settle, the widest apart first.

    Args:
        judgments: Raw.
        at_least: Grades this far apart are a disagreement.
        rel: Grades from here on are relevant; one on either side is a disagreement too.
        sources: Whose judgments count.

    Returns:
        query_id, doc_id, votes, low, high, spread, raters, grades and reasons (lists in one
        order, that of the raters' names), settled (an adjudicated grade is there already).

    Raises:
        UsageError: an unknown source.
    """
    each = _each_vote(_counting(judgments, sources))
    return each.filter(_far(at_least, rel)).sort(_WIDEST, descending=_DOWN)


def contradictions(judgments: Judgments, at_least: float = 2.0, rel: float = 1.0) -> pl.DataFrame:
    """Pairs whose imported grade, of nobody named, is far from the one people's judgments make.

    That one counts, so the imported grade has no effect. Where people disagree among themselves,
    the pair is one of ``disagreements`` and not here.

    Args:
        judgments: Raw.
        at_least: As in ``disagreements``.
        rel: As in ``disagreements``.

    Returns:
        As ``disagreements``, and ``imported``: the imported grade. ``low`` and ``high`` are it and
        the grade that counts, ``spread`` lies between; votes, raters, grades and reasons are
        people's.
    """
    imported = grades(judgments, RULE, ("import",)).select(*_PAIR, imported="grade")
    counted = grades(judgments, RULE).select(*_PAIR, counted="grade")
    far = _far(at_least, rel)
    return (
        _each_vote(_counting(judgments, ("human",)))
        .filter(~far)
        .join(imported, on=_PAIR)
        .join(counted, on=_PAIR)
        .with_columns(
            low=pl.min_horizontal("counted", "imported"),
            high=pl.max_horizontal("counted", "imported"),
        )
        .filter(far)
        .with_columns(spread=pl.col("high") - pl.col("low"))
        .drop("counted")
        .sort(_WIDEST, descending=_DOWN)
    )


def _each_vote(counting: pl.DataFrame) -> pl.DataFrame:
    """A row for each pair with a vote: the votes as they are, and whether they are settled."""
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


def _far(at_least: float, rel: float) -> pl.Expr:
    """Whether ``low`` and ``high`` are far apart, or on either side of relevant."""
    low, high = pl.col("low"), pl.col("high")
    return (high - low >= at_least) | ((low < rel) & (high >= rel))


def _steps(rule: str) -> list[str]:
    steps = [step.strip() for step in rule.split(",")]
    for step in steps:
        if step not in STEPS:
            raise UsageError(
                f"{step!r} is no rule that makes a grade",
                fix=f"some of {', '.join(STEPS)}, by comma, in the order they are to be tried",
            )
    if "adjudicated" in steps[1:]:
        raise UsageError("what was adjudicated has to come first", fix=f"such as {RULE!r}")
    return steps


def _counting(judgments: Judgments, sources: Sequence[str]) -> pl.DataFrame:
    for source in sources:
        if source not in SOURCES:
            raise UsageError(
                f"{source!r} is no source of judgments", fix=f"some of {', '.join(SOURCES)}"
            )
    return judgments.frame.filter(pl.col("source").is_in(list(sources)))


def _votes(counting: pl.DataFrame) -> pl.DataFrame:
    """One vote of each rater for each pair, the latest; none of who could not judge in the end."""
    ratings = counting.filter(pl.col("kind") == "rating")
    latest = ratings.unique([*_PAIR, "rater"], keep="last", maintain_order=True)
    return latest.filter(pl.col("state") == "graded")


def _settled(counting: pl.DataFrame) -> pl.DataFrame:
    """The latest adjudication of each pair, where it came to a grade."""
    settled = counting.filter(pl.col("kind") == "adjudication")
    latest = settled.unique(_PAIR, keep="last", maintain_order=True)
    return latest.filter(pl.col("state") == "graded")
