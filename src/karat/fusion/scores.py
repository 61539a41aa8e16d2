"""Fusion by score: scores are normalised within each query of each run, then added."""

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
"""Larger scores are rejected: their squares and sums would overflow."""


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
      equal, so a single document retrieved counts more than one not retrieved.
    - ``z-score``: (score - mean) / standard deviation (of the documents: divided by n, not by
      n - 1); 0 for all where all are equal.
    - ``sum``: (score - lowest) / the sum of these differences, which add up to 1; 1/n for
      all n where all are equal.
    - ``none``: the score itself.

    **A document missing from a run gets the lowest score**, as the run ranked it no higher: 0
    under min-max and sum; under z-score and none, the lowest normalised score in the run for that
    query. A run without documents for a query adds 0 for every document.

    The order of the runs changes no digit. Queries and their states are those of
    ``reciprocal_rank``.

    Args:
        runs: One or more.
        weights: One for each run, above 0. All 1 if None. Only their proportions matter to the
            order of documents.
        normalise: min-max | z-score | sum | none.
        depth: Number of top documents to read of each run and to keep of the fusion; all if None.
        name: Name of the fused run.

    Raises:
        UsageError: no runs; not one weight for each, or one out of range; an unknown
            normalisation; a depth out of range.
        InputError: a score is infinite, or larger than 1e100 in size.

    Source: Fox & Shaw 1994, Combination of multiple searches (CombSUM, TREC-2); Lee 1997,
    Analyses of multiple evidence combination, doi:10.1145/258525.258587 (min-max); Montague &
    Aslam 2001, Relevance score normalization for metasearch, doi:10.1145/502585.502657 (sum,
    z-score under the name ZMUV). Normalised scores equal those of ranx 0.3.21 (norm min-max,
    zmuv, sum; ranx/normalization/) up to the last bits, except where all scores are equal (ranx
    gives 0) or within 1e-9 (ranx divides by 1e-9). The sum equals its ``wsum``, except that there
    a missing document adds 0, which under z-score is the mean, not the lowest.
    """
    runs = checked_runs(runs)
    several = checked_weights(weights, len(runs))
    aligned = align(runs, normalise, depth)
    return aligned.fused(np.array(several), name)


@dataclass(frozen=True)
class Aligned:
    """The normalised scores of several runs in one table, to be fused with any weights."""

    runs: list[Run]  # the runs; m of them
    normalise: str  # how their scores were normalised
    depth: int | None  # number of documents read of each ranking, and kept; None for all
    query_ids: pl.Series  # every query of any run; shape (q,)
    query: Ints  # number of the query of each pair of query and document; shape (n,)
    doc_id: pl.Series  # its document; shape (n,)
    # Its normalised score in each run, the lowest where the run lacks it; shape (n, m)
    values: Floats
    held: NDArray[np.bool_]  # whether the run has it; shape (n, m)

    def fused(self, weights: Floats, name: str) -> Run:
        """The weighted sum.

        Args:
            weights: Of the runs, 0 or more; shape (m,). A run with zero weight is left out, with
                its answers and the documents that only it has.
            name: Name of the fused run.
        """
        used = np.flatnonzero(weights > 0)
        among = np.logical_or.reduce(self.held[:, used], axis=1)
        shares = self.values[np.ix_(among, used)] * weights[used]
        if len(used) > 2:  # the sum of two numbers does not depend on their order
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
    """Normalise the scores of runs into one table; see ``weighted_sum``.

    Raises:
        UsageError, InputError: as there.
    """
    if normalise not in NORMALISATIONS:
        near = nearest(normalise, NORMALISATIONS, 1) if isinstance(normalise, str) else []
        raise UsageError(
            f"unknown normalisation {normalise!r}",
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
                lowest[query, place] = value[starts[1:] - 1]  # rankings are best first
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
    """The top ``depth`` rows of each query, and where each query starts, with the end."""
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
        f"the score of document {doc_id} is {value:g}, "
        f"{'infinite' if np.isinf(value) else 'too large'} for a sum",
        file=run.source,
        query=run.query_ids[int(np.searchsorted(starts, row, side="right")) - 1],
        doc_id=doc_id,
        fix="fuse by reciprocal rank, which uses ranks only, or use scores up to 1e100",
    )


Normalisation = Callable[[Floats, Ints, Ints], Floats]
"""Takes scores, best first, shape (n,); where each query starts and its count, shape (q,)."""


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
    # In units of the spread, so squares do not overflow or underflow.
    unit = above / np.where(spread > 0, spread, 1.0)
    mean = np.add.reduceat(unit, starts) / counts
    off = unit - np.repeat(mean, counts)
    deviation = np.repeat(np.sqrt(np.add.reduceat(off * off, starts) / counts), counts)
    return np.where(spread > 0, off / np.where(spread > 0, deviation, 1.0), 0.0)


def _as_it_is(score: Floats, _starts: Ints, _counts: Ints) -> Floats:
    return score


def _above_lowest(score: Floats, starts: Ints, counts: Ints) -> tuple[Floats, Floats]:
    """Each score minus the lowest of its query, and the highest minus the lowest."""
    lowest = np.repeat(score[starts + counts - 1], counts)
    highest = np.repeat(score[starts], counts)
    return score - lowest, highest - lowest


NORMALISATIONS: dict[str, Normalisation] = {
    "min-max": _min_max,
    "z-score": _z_score,
    "sum": _share,
    "none": _as_it_is,
}
"""Normalisations of scores, by name."""

_FROM_ZERO = {"min-max", "sum"}
