"""Weights chosen by cross-validation: no query is fused with weights that it helped to choose."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.errors import UsageError
from karat.fusion.parts import checked_runs
from karat.fusion.scores import Aligned, align
from karat.measures import Measure
from karat.measures.scores import Rules, score
from karat.tables import Qrels, Run

Floats = NDArray[np.float64]

MOST_RUNS = 8
"""The grid for more would have thousands of points to fuse and measure."""


@dataclass(frozen=True, slots=True)
class Fold:
    """One fold of the queries, held out while its weights were chosen."""

    weights: tuple[float, ...]  # of the runs, in their order; 0 or more, adding up to 1
    query_ids: tuple[str, ...]  # the queries fused with them, sorted
    value: float | None  # mean of the measure over its queries that have a value; None if none has


@dataclass(frozen=True, slots=True)
class Tuned:
    """A fusion with tuned weights, and its expected value on unseen queries."""

    # The held-out folds combined. Queries without a value under any weights are fused with
    # `weights`.
    run: Run
    measure: str  # the measure that the weights were chosen for
    value: float | None  # its mean over the queries of the held-out folds that have a value
    n: int  # number of these queries
    # Chosen on all queries, for future use; `value` estimates their performance
    weights: tuple[float, ...]
    folds: tuple[Fold, ...]


def tuned(
    runs: Iterable[Run],
    qrels: Qrels,
    measure: Measure,
    *,
    folds: int = 5,
    seed: int = 0,
    normalise: str = "min-max",
    depth: int | None = None,
    rules: Rules | None = None,
    name: str = "tuned",
) -> Tuned:
    """Fuse by weighted sum, each query with weights chosen without it.

    The queries with a value are split into folds. Each fold is fused with the weights of ``grid``
    that have the highest mean over the other folds; of equally good ones, those nearest to equal
    weights, then the first of the grid. A query that failed under some weights counts 0 for them.
    A run with zero weight is left out.

    Args:
        runs: Two to eight.
        qrels: The judgments.
        measure: The measure to maximise: a mean over queries, higher is better.
        folds: Number of folds; 2 up to the number of queries with a value.
        seed: Random seed of the split; the same seed and queries give the same folds, in any
            order of the files.
        normalise: As in ``weighted_sum``.
        depth: As in ``weighted_sum``.
        rules: How fused runs are read before they are measured; the defaults if None.
        name: Name of the fused run.

    Raises:
        UsageError: too few or too many runs, folds or queries; a measure that is not supported;
            and as in ``weighted_sum``.
        InputError: as in ``weighted_sum``, or the judgments are of other queries.
    """
    runs = checked_runs(runs)
    rules = rules or Rules()
    if not 2 <= len(runs) <= MOST_RUNS:
        raise UsageError(f"expected 2 to {MOST_RUNS} runs to tune weights for, got {len(runs)}")
    if measure.entry.direction != "higher" or measure.aggregate != "mean":
        raise UsageError(
            f"weights cannot be tuned for {measure}: expected a measure for which higher is "
            "better, averaged over queries",
            fix="nDCG@10, for example",
        )
    aligned = align(runs, normalise, depth)
    weighings = grid(len(runs))
    query_ids, values = _values(aligned, weighings, qrels, measure, rules, name)
    with_value = np.flatnonzero(~np.isnan(values).all(axis=0))
    parts = _dealt(with_value, query_ids, folds, seed)
    worth = np.nan_to_num(values, nan=0.0)
    # The grid from equal weights outwards, as the first of the best wins.
    order = np.argsort(((weighings - 1 / len(runs)) ** 2).sum(axis=1).round(9), kind="stable")
    chosen = [_best(worth, np.setdiff1d(with_value, part), order) for part in parts]
    overall = _best(worth, with_value, order)
    of_query = {query_ids[i]: best for part, best in zip(parts, chosen, strict=True) for i in part}
    run = _together(aligned, weighings, of_query, overall, name)
    held_out = [
        [float(values[best, i]) for i in part if not np.isnan(values[best, i])]
        for part, best in zip(parts, chosen, strict=True)
    ]
    every = [value for part in held_out for value in part]
    return Tuned(
        run=run,
        measure=str(measure),
        value=_mean(every),
        n=len(every),
        weights=_plain(weighings[overall]),
        folds=tuple(
            Fold(_plain(weighings[best]), tuple(sorted(query_ids[i] for i in part)), _mean(found))
            for part, best, found in zip(parts, chosen, held_out, strict=True)
        ),
    )


def grid(count: int) -> Floats:
    """The weights to try: all multiples of a step that add up to 1.

    Steps of 1/10 for two runs (11 points), 1/5 for three (21), 1/4 for four (35), 1/3 for more
    (35 to 120 for five to eight).

    Returns:
        Shape (points, count); each row from 0 to 1.
    """
    steps = {2: 10, 3: 5, 4: 4}.get(count, 3)
    return np.array(list(_split(steps, count)), np.float64) / steps


def _split(total: int, count: int) -> Iterator[tuple[int, ...]]:
    """All ways to write ``total`` as an ordered sum of ``count`` numbers from 0."""
    if count == 1:
        yield (total,)
        return
    for first in range(total, -1, -1):
        for rest in _split(total - first, count - 1):
            yield (first, *rest)


def _values(
    aligned: Aligned,
    weighings: Floats,
    qrels: Qrels,
    measure: Measure,
    rules: Rules,
    name: str,
) -> tuple[list[str], Floats]:
    """The judged queries (q), and the value of each under all weights; shape (points, q)."""
    found: list[Floats] = []
    query_ids: list[str] = []
    for weights in weighings:
        scores = score(aligned.fused(weights, name), qrels, [measure], rules)
        query_ids = scores.evidence.query_ids
        found.append(scores.values[measure])
    return query_ids, np.stack(found)


def _dealt(
    with_value: NDArray[np.int64], query_ids: list[str], folds: int, seed: int
) -> list[NDArray[np.int64]]:
    n = len(with_value)
    if isinstance(folds, bool) or not isinstance(folds, int) or folds < 2:
        raise UsageError(f"folds={folds!r} is not a whole number from 2", fix="folds=5")
    if n < folds:
        raise UsageError(
            f"{folds} folds need at least {folds} queries with a value, got {n}",
            fix=f"folds={n}" if n > 1 else "judge more queries",
        )
    by_id = with_value[np.argsort([query_ids[i] for i in with_value], kind="stable")]
    shuffled = np.random.default_rng(seed).permutation(by_id)
    return [shuffled[at::folds] for at in range(folds)]


def _best(worth: Floats, queries: NDArray[np.int64], order: NDArray[np.int64]) -> int:
    """The weights with the highest mean over some queries; the first in ``order`` breaks ties."""
    # Exactly rounded sums, so the order of queries cannot break a tie.
    sums = [math.fsum(row.tolist()) for row in worth[np.ix_(order, queries)]]
    return int(order[int(np.argmax(sums))])


def _together(
    aligned: Aligned, weighings: Floats, of_query: dict[str, int], overall: int, name: str
) -> Run:
    """One run: each query fused with the weights of its fold, others with the overall ones."""
    frames, answers = [], []
    for best in sorted({*of_query.values(), overall}):
        part = aligned.fused(weighings[best], name)
        mine = pl.col("query_id").replace_strict(
            pl.Series(list(of_query), dtype=pl.String),
            pl.Series(list(of_query.values()), dtype=pl.Int64),
            default=overall,
            return_dtype=pl.Int64,
        )
        frames.append(part.frame().filter(mine == best).drop("rank"))
        answers.append(part.answers.filter(mine == best).filter(pl.col("state") != "ok"))
    # Queries in the order of the runs.
    place = pl.DataFrame({"query_id": aligned.query_ids}).with_row_index("place")
    rows = (
        pl.concat(frames)
        .join(place, on="query_id")
        .sort("place", "score", "doc_id", descending=[False, True, True])
        .drop("place")
    )
    about = {
        "fusion": f"weighted sum, scores normalised by {aligned.normalise}, weights by "
        f"cross-validation",
        "fused": ", ".join(run.name for run in aligned.runs),
    }
    return Run.from_batches(name, [rows], answers=pl.concat(answers, how="diagonal"), about=about)


def _mean(values: list[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _plain(weights: Floats) -> tuple[float, ...]:
    return tuple(float(weight) for weight in weights)
