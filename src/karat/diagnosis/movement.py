"""Rank changes: the documents that make a query better or worse in one of two runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from karat.measures.entry import Measure
from karat.measures.evidence import Evidence, Floats, Ints, Mask
from karat.measures.linear_numerators import LINEAR, RECALLS
from karat.measures.parameters import gain_of
from karat.measures.run_pair import Pair
from karat.tables.comparison import RankChange


def places(pair: Pair, queries: Ints) -> pl.DataFrame:
    """Ranks of the judged documents of some queries in both runs, returned or not.

    Args:
        pair: Two runs under the same judgments.
        queries: Indices into ``pair.query_ids``, ascending, each once.

    Returns:
        ``query`` (index into ``queries``), ``doc_id``, ``grade``, ``baseline`` and ``candidate``:
        ranks as in the pair's evidence, null if the run did not return the document; sorted by
        query and document.
    """
    query_ids = [pair.query_ids[query] for query in queries.tolist()]
    known = pair.qrels.judged(query_ids)
    out = known
    for name, run, evidence in (
        ("baseline", pair.baseline, pair.of_baseline),
        ("candidate", pair.candidate, pair.of_candidate),
    ):
        held = run.top(query_ids, pair.depth).join(known, on=["query", "doc_id"])
        # Hits are these documents in the same order: their ranks are condensed if only judged
        # documents count, and those of the run if not.
        hits = evidence.at(queries)
        ranks = held.sort("query", "rank").select(
            "query", "doc_id", pl.Series(name, hits.rank[hits.judged], dtype=pl.Int64)
        )
        out = out.join(ranks, on=["query", "doc_id"], how="left", maintain_order="left")
    return out


SUMS = LINEAR | RECALLS | {"nDCG"}  # measures whose difference is a sum over documents

FIRST_PAGE = 10  # depth at which bad documents matter, if the measure has no cutoff

_NOTHING = 1e-15  # an effect of rounding only


def moves(measure: Measure, pair: Pair, queries: Sequence[int], most: int = 3) -> list[RankChange]:
    """The documents of each query whose rank changed and that matter most to a measure.

    First the documents with a gain whose rank or absence makes a difference, the largest first;
    then, if there are fewer than ``most``, judged documents without a gain that entered the
    candidate's top k (the measure's cutoff, or 10), the highest first.

    Args:
        measure: The measure.
        pair: The two runs.
        queries: Indices into ``pair.query_ids``.
        most: Maximum number of documents of each query.

    Returns:
        By query, in the order given. Ranks are those of the pair's evidence: full rankings, down to
        its depth, condensed if only judged documents count. ``effect`` is in units of the query's
        value, and known for the measures of ``SUMS``: over all documents it adds up to the query's
        difference. For other measures, documents are sorted by gain times the change of
        1 / log2(1 + rank), which is 0 below the cutoff.
    """
    chosen = np.unique(np.asarray(queries, np.int64))
    table = effects(measure, pair, chosen)
    seen = _inside(measure).depth or FIRST_PAGE
    came = (pl.col("candidate") <= seen) & (
        pl.col("baseline").is_null() | (pl.col("baseline") > seen)
    )
    moved = pl.col("baseline").ne_missing(pl.col("candidate"))
    good = moved & (pl.col("gain") > 0) & (pl.col("weight").abs() > _NOTHING)
    bad = came & (pl.col("gain") <= 0)
    kept = (
        table.filter(good | bad)
        .with_columns(size=pl.when(pl.col("gain") > 0).then(pl.col("weight").abs().round(12)))
        .sort(
            "query",
            "size",
            pl.min_horizontal("baseline", "candidate"),
            "doc_id",
            descending=[False, True, False, False],
            nulls_last=True,
        )
        .filter(pl.int_range(pl.len()).over("query") < most)
    )
    of_query: dict[int, list[RankChange]] = {}
    for query, doc_id, grade, baseline, candidate, effect in kept.select(
        "query", "doc_id", "grade", "baseline", "candidate", "effect"
    ).iter_rows():
        place = int(chosen[query])
        move = RankChange(
            candidate=pair.candidate.name,
            measure=str(measure),
            query_id=pair.query_ids[place],
            doc_id=doc_id,
            grade=grade,
            baseline_rank=baseline,
            candidate_rank=candidate,
            effect=effect,
        )
        of_query.setdefault(place, []).append(move)
    return [move for query in dict.fromkeys(queries) for move in of_query.get(query, [])]


def effects(measure: Measure, pair: Pair, queries: Ints) -> pl.DataFrame:
    """The effect of each judged document that either run returned on its query's difference.

    Args:
        measure: The measure.
        pair: The two runs.
        queries: Indices into ``pair.query_ids``, ascending, each once.

    Returns:
        ``query`` (index into ``queries``), ``doc_id``, ``grade``, ``baseline`` and ``candidate``
        (ranks, null if not returned), ``gain`` of its grade, ``effect`` (null for measures that
        are not in ``SUMS``) and ``weight``: the effect, or the sort key of other measures.
    """
    held = places(pair, queries).filter(
        pl.col("baseline").is_not_null() | pl.col("candidate").is_not_null()
    )
    inside = _inside(measure)
    gain = _gain(inside, held["grade"].to_numpy())
    held = held.with_columns(gain=pl.Series(gain, dtype=pl.Float64))
    if measure.entry.ours and measure.entry.symbol in SUMS:
        added = []
        for name, evidence in (("baseline", pair.of_baseline), ("candidate", pair.of_candidate)):
            known = _added(measure, evidence.at(queries), name)
            added.append(
                held.join(known, on=["query", name], how="left", maintain_order="left")["added"]
                .fill_null(0.0)
                .to_numpy()
            )
        effect = pl.Series("effect", added[1] - added[0], dtype=pl.Float64)
        return held.with_columns(effect, weight=effect)
    left = [_left(held[name], inside.depth) for name in ("baseline", "candidate")]
    return held.with_columns(
        effect=pl.lit(None, pl.Float64),
        weight=pl.Series(gain * (left[1] - left[0]), dtype=pl.Float64),
    )


def _added(measure: Measure, evidence: Evidence, name: str) -> pl.DataFrame:
    """What each hit adds to its query's value: ``query``, rank (under ``name``) and ``added``."""
    terms = measure.terms(evidence)
    assert terms is not None
    norm = terms.norm[evidence.query]
    defined = norm > 0  # where a query has no value, nothing adds to it
    added = np.where(defined, terms.term / np.where(defined, norm, 1.0), 0.0)
    return pl.DataFrame({"query": evidence.query, name: evidence.rank, "added": added})


def _inside(measure: Measure) -> Measure:
    """The measure itself, or its inner measure."""
    inner = measure.settings.get("of")
    return _inside(inner) if isinstance(inner, Measure) else measure


def _gain(measure: Measure, grade: Floats) -> Floats:
    """The gain of each grade: that of the measure, or 1 if relevant; else the grade."""
    settings = measure.settings if measure.entry.ours else {}
    if "gain" in settings:
        return gain_of(grade, settings["gain"])
    if "rel" in settings and settings.get("max") is None:
        relevant: Mask = grade >= settings["rel"]
        return relevant.astype(np.float64)
    return np.maximum(grade, 0.0)


def _left(rank: pl.Series, k: int | None) -> Floats:
    """The discount of each rank, 1 / log2(1 + rank); 0 if missing or below k."""
    place = rank.cast(pl.Float64).fill_null(np.inf).to_numpy()
    place = place if k is None else np.where(place <= k, place, np.inf)
    left: Floats = 1.0 / np.log2(1.0 + place)
    return left
