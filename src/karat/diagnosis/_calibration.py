"""Calibration: what a fusion would give if scores stood for probabilities of relevance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from karat.diagnosis.waterfall import Floats, Ints, Roads
from karat.measures.parameters import gain_of
from karat.stats.intervals import shown, t_interval
from karat.stats.isotonic import isotonic
from karat.tables import Qrels
from karat.tables.diagnosis.results import Reliability
from karat.tables.diagnosis.traces import Stage

LEAST_JUDGED = 50  # judged documents of a source, of both kinds, from which its scores are aligned
_FOLDS = 5
_DEPTH = 100  # documents of each list that are fused
_GROUPS = 5  # of a source's judged documents, by score


@dataclass(frozen=True)
class Alignment:
    """A fusion that adds up probabilities of relevance instead of scores."""

    stage: Stage  # the fusion
    ranks: Ints  # of each relevant document, 0 beyond k; shape (m,)
    gain: float  # mean gain in DCG@k
    helps: bool  # whether the interval of the gain excludes 0
    top: pl.DataFrame  # `query_id`, `doc_id`, `rank` up to k
    reliability: list[Reliability]


def aligned(found: Roads, qrels: Qrels) -> Alignment | None:
    """What a fusion would give if it added up probabilities of relevance.

    The probability of a source's score, normalised within the query, is an isotonic fit on the
    judged documents of other queries (five folds); a document is relevant if any source's evidence
    holds: 1 - the product of (1 - probability). None where the order is not that of a fusion of two
    scored sources or more, or where one has fewer than ``LEAST_JUDGED`` judged documents or only
    one kind of them.
    """
    stage = found.ranker
    if stage is None or stage.kind != "fuse":
        return None
    names = found.inputs_of(stage)
    sources = [_scored(found, name) for name in names]
    if len(sources) < 2 or any(source is None for source in sources):
        return None
    judged = (
        qrels.frame.filter(pl.col("grade") >= 0)
        .group_by("query_id", "doc_id")
        .agg(relevant=pl.col("grade").max() >= found.rel)
    )
    parts, reliability = [], []
    for name, source in zip(names, sources, strict=True):
        assert source is not None
        fitted = _probabilities(source, judged, len(found.query_ids))
        if fitted is None:
            return None
        parts.append(fitted.drop("relevant"))
        reliability += _reliability(name, fitted)
    top = (
        pl.concat(parts)
        .group_by("query", "query_id", "doc_id")
        .agg(
            score=1 - (1 - pl.col("probability")).product(),
            # Steps of the fit tie documents: the higher score goes first.
            place=pl.col("score").mean(),
        )
        .sort("query", "score", "place", "doc_id", descending=[False, True, True, True])
        .with_columns(rank=pl.int_range(1, pl.len() + 1).over("query"))
        .filter(pl.col("rank") <= found.k)
    )
    pairs = pl.DataFrame({"query": found.query, "doc_id": found.doc_id})
    ranks = (
        pairs.join(top.select("query", "doc_id", "rank"), on=["query", "doc_id"], how="left",
                   maintain_order="left")["rank"].fill_null(0).to_numpy().astype(np.int64)
    )  # fmt: skip
    gains = _gains(found, ranks)
    span = shown(t_interval(gains), gains, None, None)
    helps = span.low is not None and span.low > 0
    top = top.select("query_id", "doc_id", "rank")
    return Alignment(stage, ranks, float(gains.mean()), helps, top, reliability)


def _reliability(name: str, fitted: pl.DataFrame) -> list[Reliability]:
    """Judged documents by score, in groups of about equal size."""
    known = fitted.drop_nulls("relevant").sort("score")
    group = pl.int_range(pl.len()) * _GROUPS // pl.len()
    groups = known.group_by(group.alias("group"), maintain_order=True).agg(
        low=pl.col("score").min(),
        high=pl.col("score").max(),
        n=pl.len(),
        relevant=pl.col("relevant").mean(),
        fitted=pl.col("probability").mean(),
    )
    return [Reliability(stage=name, **row) for row in groups.drop("group").iter_rows(named=True)]


def _scored(found: Roads, name: str) -> pl.DataFrame | None:
    """A source's first documents with scores from 0 to 1 within each query; None without scores.

    Normalised over the whole list.
    """
    index = pl.DataFrame({"query_id": found.query_ids}).with_row_index("query")
    rows = found.trace.frame.filter(pl.col("stage") == name, pl.col("doc_ids").list.len() > 0)
    if not rows.height or rows["scores"].null_count():
        return None
    low, high = pl.col("scores").list.min(), pl.col("scores").list.max()
    place = (pl.col("score") - pl.col("low")) / (pl.col("high") - pl.col("low"))
    return (
        rows.join(index, on="query_id")
        .select(
            pl.col("query").cast(pl.Int64),
            "query_id",
            pl.col("doc_ids").list.head(_DEPTH).alias("doc_id"),
            pl.col("scores").list.head(_DEPTH).alias("score"),
            low=low,
            high=high,
        )
        .explode("doc_id", "score")
        .select(
            "query",
            "query_id",
            "doc_id",
            score=pl.when(pl.col("high") > pl.col("low")).then(place).otherwise(1.0),
        )
    )


def _probabilities(source: pl.DataFrame, judged: pl.DataFrame, queries: int) -> pl.DataFrame | None:
    """The source with the probability of relevance of each score, fitted on other queries."""
    fold = np.arange(queries) % _FOLDS
    rows = source.join(judged, on=["query_id", "doc_id"], how="left", maintain_order="left")
    known = rows["relevant"].is_not_null().to_numpy()
    relevant = rows["relevant"].fill_null(value=False).to_numpy()
    if known.sum() < LEAST_JUDGED or relevant[known].all() or not relevant[known].any():
        return None
    score, of = rows["score"].to_numpy(), fold[rows["query"].to_numpy()]
    probability = np.zeros(len(score))
    for number in range(_FOLDS):
        fit, own = known & (of != number), of == number
        if fit.any() and own.any():
            probability[own] = np.interp(score[own], *isotonic(score[fit], relevant[fit] * 1.0))
    return source.with_columns(probability=pl.Series(probability), relevant=rows["relevant"])


def _gains(found: Roads, ranks: Ints) -> Floats:
    """DCG@k of each traced query by these ranks, minus that of what is served."""
    gained = gain_of(found.grade, found.gain)
    change = gained * (found.discount(ranks) - found.discount(found.rank[-1]))
    sums: Floats = np.bincount(found.query, change, minlength=len(found.query_ids)).astype(float)
    return sums[np.unique(found.query[found.traced])]
