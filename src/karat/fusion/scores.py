"""Fusion by score: each system's scores brought to one scale within each query, then added."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.errors import InputError, UsageError, nearest
from karat.fusion.parts import checked_depth, checked_runs, checked_weights, cut, unanswered
from karat.tables import Run

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LARGEST = 1e100
"""Scores beyond it are refused: their squares and sums would not be numbers any more."""


def weighted_sum(
    runs: Iterable[Run],
    weights: Iterable[float] | None = None,
    *,
    normalise: str = "min-max",
    depth: int | None = None,
    name: str = "sum",
) -> Run:
    """Weighted sum: a document's score is the sum over the runs of weight × normalised score.

    Scores are normalised within each query of each run, over the documents that are read:

    - ``min-max``: (score - lowest) / (highest - lowest), from 0 to 1; 1 for all where all are
      equal, so that the only document found is worth more than one that was not found.
    - ``z-score``: (score - mean) / standard deviation (of the documents: divided by n, not by
      n - 1); 0 for all where all are equal.
    - ``sum``: (score - lowest) / the sum of these differences, so that they add up to 1; 1/n for
      all n where all are equal.
    - ``none``: the score itself.

    **A document that a run lacks gets the lowest there is**, for the run ranked it no higher: 0
    under min-max and sum; under z-score and none, the lowest normalised score that the run gave
    for that query. A run with no document at all for a query adds 0 for every document.

    The order of the runs changes no digit. Queries and their states are those of
    ``reciprocal_rank``.

    Args:
        runs: One or more.
        weights: One for each run, above 0. All 1 if None. Only their proportions matter to the
            order of documents.
        normalise: min-max | z-score | sum | none.
        depth: Read only the best so many documents of each run, and keep the best so many of
            the fusion; all of them if None.
        name: What results call the fused run.

    Raises:
        UsageError: no runs; not one weight for each, or one out of range; no such normalisation;
            a depth out of range.
        InputError: a score that is read is infinite, or beyond 1e100 in size.

    Source: Fox & Shaw 1994, Combination of multiple searches (CombSUM, TREC-2); Lee 1997,
    Analyses of multiple evidence combination, doi:10.1145/258525.258587 (min-max); Montague &
    Aslam 2001, Relevance score normalization for metasearch, doi:10.1145/502585.502657 (sum,
    z-score under the name ZMUV). Normalised scores equal those of ranx 0.3.21 (norm min-max,
    zmuv, sum; ranx/normalization/) up to the last bits, but where all scores are equal (ranx
    gives 0) or lie within 1e-9 (ranx divides by 1e-9). The sum equals its ``wsum``, but that a
    document which a run lacks adds 0 there, which under z-score is the mean and not the lowest.
    """
    runs = checked_runs(runs)
    several = checked_weights(weights, len(runs))
    aligned = align(runs, normalise, depth)
    return aligned.fused(np.array(several), name)


@dataclass(frozen=True)
class Aligned:
    """The normalised scores of several runs, side by side: ready to be weighed again and again.

    Attributes:
        runs: The runs; m of them.
        normalise: How their scores were normalised.
        depth: How many documents were read of each ranking, and are kept.
        query_ids: Every query that a run was asked; shape (q,).
        query: Number of the query of each pair of query and document; shape (n,).
        doc_id: Its document; shape (n,).
        values: Its normalised score in each run, the lowest where the run lacks it; shape (n, m).
        held: Whether the run has it; shape (n, m).
    """

    runs: list[Run]
    normalise: str
    depth: int | None
    query_ids: pl.Series
    query: Ints
    doc_id: pl.Series
    values: Floats
    held: NDArray[np.bool_]

    def fused(self, weights: Floats, name: str) -> Run:
        """The weighted sum.

        Args:
            weights: Of the runs, 0 or more; shape (m,). A run of weight 0 is left out, with the
                documents that only it has and with its answers.
            name: What results call the fused run.
        """
        used = np.flatnonzero(weights > 0)
        among = np.logical_or.reduce(self.held[:, used], axis=1)
        shares = self.values[np.ix_(among, used)] * weights[used]
        if len(used) > 2:  # two numbers have one sum in either order
            shares = np.sort(shares, axis=1)[:, ::-1]
        score = shares[:, 0] + 0.0  # -0.0 is 0.0
        for column in shares.T[1:]:
            score = score + column
        fused = pl.DataFrame(
            {
                "query": self.query[among],
                "doc_id": self.doc_id.filter(pl.Series(among)),
                "score": score,
            }
        )
        fused = cut(fused, self.depth)
        rows = fused.select(self.query_ids.gather(fused["query"]), "doc_id", "score")
        runs = [self.runs[index] for index in used]
        about = {
            "fusion": f"weighted sum, scores normalised by {self.normalise}"
            if self.normalise != "none"
            else "weighted sum of scores as they are",
            "weights": ", ".join(f"{weight:g}" for weight in weights[used]),
            "fused": ", ".join(run.name for run in runs),
        }
        return Run.from_batches(name, [rows], answers=unanswered(runs, rows), about=about)


def align(runs: list[Run], normalise: str = "min-max", depth: int | None = None) -> Aligned:
    """Normalise the scores of some runs, and lay them side by side; see ``weighted_sum``.

    Raises:
        UsageError, InputError: as there.
    """
    if normalise not in NORMALISATIONS:
        near = nearest(normalise, NORMALISATIONS, 1) if isinstance(normalise, str) else []
        raise UsageError(
            f"there is no normalisation called {normalise!r}",
            nearest=near,
            fix=f"one of {', '.join(NORMALISATIONS)}",
        )
    depth = checked_depth(depth)
    asked = pl.concat([run.answers.select("query_id") for run in runs]).unique(maintain_order=True)
    at = {query_id: number for number, query_id in enumerate(asked["query_id"])}
    lowest = np.zeros((len(at), len(runs)))
    columns = []
    for place, run in enumerate(runs):
        rows, starts = _read(run, depth)
        value = np.empty(0)
        query = np.array([at[query_id] for query_id in run.query_ids], np.int64)
        counts = np.diff(starts)
        if rows.height:
            score = rows["score"].to_numpy()
            _refuse_infinite(score, rows, run, starts)
            value = NORMALISATIONS[normalise](score, starts[:-1], counts)
            if normalise not in _FROM_ZERO:
                lowest[query, place] = value[starts[1:] - 1]  # rankings stand best first
        columns.append(
            rows.select(
                pl.Series("query", np.repeat(query, counts)),
                "doc_id",
                pl.lit(place, pl.UInt32).alias("run"),
                pl.Series("value", value),
            )
        )
    pairs = pl.concat(columns).group_by("query", "doc_id").agg("run", "value")
    query = pairs["query"].to_numpy()
    row = np.repeat(np.arange(pairs.height), pairs["run"].list.len().to_numpy())
    column = pairs["run"].explode().drop_nulls().to_numpy()
    values = lowest[query]
    values[row, column] = pairs["value"].explode().drop_nulls().to_numpy()
    held = np.zeros(values.shape, np.bool_)
    held[row, column] = True
    return Aligned(runs, normalise, depth, asked["query_id"], query, pairs["doc_id"], values, held)


def _read(run: Run, depth: int | None) -> tuple[pl.DataFrame, Ints]:
    """The best so many rows of each query, and where each query starts, with the end."""
    if depth is None:
        return run.rows, run.starts
    counts = np.diff(run.starts)
    position = np.arange(run.rows.height) - np.repeat(run.starts[:-1], counts)
    starts = np.concatenate(([0], np.minimum(counts, depth))).cumsum()
    return run.rows.filter(position < depth), starts


def _refuse_infinite(score: Floats, rows: pl.DataFrame, run: Run, starts: Ints) -> None:
    bad = np.flatnonzero(~(np.abs(score) <= LARGEST))
    if not len(bad):
        return
    row = int(bad[0])
    value, doc_id = float(score[row]), rows["doc_id"][row]
    raise InputError(
        f"the score of document {doc_id} is {value:g}, and what is "
        f"{'infinite' if np.isinf(value) else 'so large'} cannot be added up",
        file=run.source,
        query=run.query_ids[int(np.searchsorted(starts, row, side="right")) - 1],
        doc_id=doc_id,
        fix="fuse by reciprocal rank, which looks at ranks only, or give it a score within 1e100",
    )


Normalisation = Callable[[Floats, Ints, Ints], Floats]
"""Takes scores best first, where each query starts, and its count: each shape (n,) or (q,)."""


def _min_max(score: Floats, starts: Ints, counts: Ints) -> Floats:
    above, spread = _above_lowest(score, starts, counts)
    return np.where(spread > 0, above / np.where(spread > 0, spread, 1.0), 1.0)


def _share(score: Floats, starts: Ints, counts: Ints) -> Floats:
    above, spread = _above_lowest(score, starts, counts)
    total = np.repeat(np.add.reduceat(above, starts), counts)
    return np.where(
        spread > 0, above / np.where(spread > 0, total, 1.0), 1 / np.repeat(counts, counts)
    )


def _z_score(score: Floats, starts: Ints, counts: Ints) -> Floats:
    above, spread = _above_lowest(score, starts, counts)
    # In units of the spread, so that no square is too large or too small for a float.
    unit = above / np.where(spread > 0, spread, 1.0)
    mean = np.add.reduceat(unit, starts) / counts
    off = unit - np.repeat(mean, counts)
    deviation = np.repeat(np.sqrt(np.add.reduceat(off * off, starts) / counts), counts)
    return np.where(spread > 0, off / np.where(spread > 0, deviation, 1.0), 0.0)


def _as_it_is(score: Floats, _starts: Ints, _counts: Ints) -> Floats:
    return score


def _above_lowest(score: Floats, starts: Ints, counts: Ints) -> tuple[Floats, Floats]:
    """How far each score is above the lowest of its query, and how far the highest is."""
    lowest = np.repeat(score[starts + counts - 1], counts)
    highest = np.repeat(score[starts], counts)
    return score - lowest, highest - lowest


NORMALISATIONS: dict[str, Normalisation] = {
    "min-max": _min_max,
    "z-score": _z_score,
    "sum": _share,
    "none": _as_it_is,
}
"""How scores can be made comparable, by name."""

_FROM_ZERO = {"min-max", "sum"}
