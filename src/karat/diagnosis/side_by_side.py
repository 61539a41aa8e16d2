"""Side by side: two rankings of single queries, with the effect of each document."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from karat.diagnosis.movement import effects
from karat.measures.entry import Measure
from karat.measures.evidence import Evidence, Ints
from karat.measures.run_pair import Pair
from karat.tables import Qrels, Run

_NOTHING = 1e-12  # an effect of rounding only


@dataclass(frozen=True, slots=True)
class Placed:
    """A document in a ranking."""

    doc_id: str  # the document
    rank: int | None  # its rank, from 1, as measured; None if it was not returned
    grade: float | None  # its grade; None if not judged
    other: int | None  # its rank in the other ranking; None if it was not returned there
    # What it adds to the query's difference (without a baseline: to its value); 0 for unjudged
    # documents; None if the measure is not a sum over documents
    effect: float | None


@dataclass(frozen=True, slots=True)
class Ranking:
    """The top of one ranking, and other documents that matter."""

    run: str
    top: list[Placed]  # its first k documents
    # Other documents that matter: those whose effect is not 0, and relevant ones in the baseline's
    # top k, highest in the baseline first. Without a baseline: those whose effect is not 0, and
    # relevant ones, highest first.
    below: list[Placed]
    unlisted: int  # number of further such documents, left out of `below`
    # Total effect of documents that are neither in `top` nor in `below`; None if the measure is not
    # a sum
    rest: float | None
    returned: int  # number of documents returned, as measured


def side_by_side(
    measure: Measure,
    pair: Pair,
    queries: Sequence[int],
    k: int,
    rel: float,
    *,
    condensed: bool = False,
    most: int = 20,
) -> list[tuple[Ranking, Ranking]]:
    """Both rankings of each query; the candidate's has the effects, which add up.

    Args:
        measure: The measure.
        pair: The two runs.
        queries: Indices into ``pair.query_ids``, each once.
        k: Number of top documents of each, at least 1.
        rel: Lowest grade that counts as relevant.
        condensed: Whether unjudged documents are left out of rankings (``judged_only``).
        most: Maximum length of ``below``.

    Returns:
        Baseline and candidate, by query in the order given. The baseline's ``below`` is empty: all
        documents that matter are in the candidate's lists or its ``rest``.
    """
    chosen = np.unique(np.asarray(queries, np.int64))
    known = pair.qrels.judged([pair.query_ids[place] for place in chosen.tolist()])
    base, cand = (
        _ranked(run, pair, chosen, known, condensed=condensed)
        for run in (pair.baseline, pair.candidate)
    )
    added = effects(measure, pair, chosen).select("query", "doc_id", "effect")
    is_sum = _is_sum(measure, pair, added)
    both = ["query", "doc_id"]
    every = (
        cand.join(base, on=both, how="full", coalesce=True, suffix="_base")
        .join(added, on=both, how="left")
        .with_columns(
            grade=pl.coalesce("grade", "grade_base"),
            # Unjudged documents add 0; measures that are not sums have no effects.
            effect=pl.col("effect").fill_null(0.0) if is_sum else pl.lit(None, pl.Float64),
        )
        .select("query", "doc_id", "rank", "grade", pl.col("rank_base").alias("other"), "effect")
    )
    return_of: dict[int, tuple[Ranking, Ranking]] = {}
    parts = every.partition_by("query", as_dict=True)
    for place, query in enumerate(chosen.tolist()):
        of_query = parts.get((place,), every.clear())
        return_of[query] = (
            _baseline(pair.baseline.name, of_query, k),
            _candidate(pair, of_query, k, rel, most, is_sum=is_sum),
        )
    return [return_of[query] for query in queries]


def alone(run: Run, qrels: Qrels, evidence: Evidence, depth: int | None = None) -> Pair:
    """A run paired with an empty one: then effects add up to the value itself.

    Args:
        run: The run.
        qrels: Its judgments.
        evidence: Of the run, cut at ``depth``.
        depth: Number of documents after which rankings are cut; None if they are full.
    """
    nothing = evidence.to_depth(0)
    return Pair(Run("", []), run, qrels, nothing, evidence, depth)


def _is_sum(measure: Measure, pair: Pair, added: pl.DataFrame) -> bool:
    """Whether effects are known, by those of the chosen queries or else of all."""
    if added.height:
        return bool(added["effect"].is_not_null().all())
    every = effects(measure, pair, np.arange(len(pair.query_ids)))
    return bool(every["effect"].is_not_null().any())


def _ranked(
    run: Run, pair: Pair, chosen: Ints, known: pl.DataFrame, *, condensed: bool
) -> pl.DataFrame:
    """``query``, ``doc_id``, ``rank`` and ``grade`` of full rankings, as measured."""
    ids = [pair.query_ids[place] for place in chosen.tolist()]
    held = run.top(ids, pair.depth).join(
        known, on=["query", "doc_id"], how="left", maintain_order="left"
    )
    if condensed:
        held = held.filter(pl.col("grade").is_not_null()).with_columns(
            rank=pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("query")
        )
    return held


def _baseline(name: str, rows: pl.DataFrame, k: int) -> Ranking:
    returned = rows.filter(pl.col("other").is_not_null())
    top = returned.filter(pl.col("other") <= k).sort("other")
    placed = [
        Placed(doc_id, here, grade, there, None)
        for doc_id, here, grade, there in top.select("doc_id", "other", "grade", "rank").iter_rows()
    ]
    return Ranking(name, placed, [], 0, None, returned.height)


def _candidate(
    pair: Pair, rows: pl.DataFrame, k: int, rel: float, most: int, *, is_sum: bool
) -> Ranking:
    at = pl.col("rank")
    inside = (at <= k).fill_null(value=False)
    matters = (pl.col("effect").abs() > _NOTHING).fill_null(value=False)
    shown_there = (pl.col("other") <= k) if len(pair.baseline) else at.is_not_null()
    fell = (pl.col("grade") >= rel) & shown_there
    top = rows.filter(inside).sort("rank")
    below = rows.filter(~inside & (matters | fell.fill_null(value=False))).sort(
        pl.col("effect").abs().round(12), "other", "rank", "doc_id",
        descending=[True, False, False, False], nulls_last=True,
    )  # fmt: skip
    listed = below.head(most)
    shown = pl.concat([top, listed])
    rest = math.fsum(rows["effect"]) - math.fsum(shown["effect"]) if is_sum else None
    return Ranking(
        run=pair.candidate.name,
        top=_placed(top),
        below=_placed(listed),
        unlisted=below.height - listed.height,
        rest=0.0 if rest is not None and abs(rest) <= _NOTHING else rest,
        returned=rows["rank"].count(),
    )


def _placed(rows: pl.DataFrame) -> list[Placed]:
    columns = ("doc_id", "rank", "grade", "other", "effect")
    return [Placed(*row) for row in rows.select(columns).iter_rows()]
