"""Pooling: which documents of several runs to judge.

A pool holds documents near the top of a run. Three methods are fixed in advance, and one uses the
grades given so far. Raters do not see which system returned a document, or at which rank:
``systems`` and ``score`` are for inspecting the pool, and do not enter the queue.

Of tied documents, the one with the greater id by bytes comes first, as everywhere in karat.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import polars as pl

from karat.errors import UsageError
from karat.tables import Pairs, Run

_KEY = ["query_id", "doc_id"]


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits on new judgments: judged pairs do not count."""

    total: int | None = None  # pairs in all, spread evenly over the queries, the best of each first
    per_query: int | None = None  # pairs per query

    def __post_init__(self) -> None:
        for what, number in (("total", self.total), ("per_query", self.per_query)):
            if number is not None:
                _whole(number, f"the budget {what}")


ALL = Budget()  # no limit: the whole pool


def depth_pool(
    runs: Iterable[Run],
    k: int,
    *,
    judged: pl.DataFrame | None = None,
    queries: Sequence[str] | None = None,
    budget: Budget = ALL,
    bands: int = 1,
) -> Pairs:
    """The top k of each run: every document that a measure at cutoff k uses.

    A budget keeps those with the best rank in any run, then with the largest sum of 1 / rank.

    Args:
        runs: One or more, with distinct names.
        k: Depth, from 1.
        judged: ``query_id`` and ``doc_id`` of pairs to leave out.
        queries: The golden set's queries; if None, those the runs answered.
        budget: Limits on the number of pairs.
        bands: Parts of each query's pool that are judged in turn, the best first. A band is
            shuffled; with one band, the position in the queue reveals nothing.

    Returns:
        Pairs, query by query, best first: ``query_id``, ``doc_id``, ``priority`` (the band; 1 is
        first), ``chosen_by`` (``depth 10``), ``chance`` (null: not a random draw), ``score``,
        ``best_rank`` (in any run), ``systems`` (names of the runs with it in their top k).

    Raises:
        UsageError: no runs, two runs with the same name, or a number out of range.

    Source: Spärck Jones & van Rijsbergen 1975, Report on the need for and provision of an "ideal"
    information retrieval test collection.
    """
    _whole(k, "the depth")
    pooled = _pooled(runs, queries, 1.0 / pl.col("rank"), k)
    ordered = pooled.sort(
        "query", "best_rank", "score", "doc_id", descending=[False, False, True, True]
    )
    return _chosen(ordered, f"depth {k}", None, judged, budget, bands)


def reciprocal_rank_pool(
    runs: Iterable[Run],
    size: int | None = None,
    *,
    k: float = 60,
    judged: pl.DataFrame | None = None,
    queries: Sequence[str] | None = None,
    budget: Budget = ALL,
    bands: int = 1,
) -> Pairs:
    """The best of each query by reciprocal rank fusion: the sum over runs of 1 / (k + rank).

    Documents in several runs come before those in a single one.

    Args:
        runs: As in ``depth_pool``; the whole of each run counts.
        size: Documents per query, judged or not; all of them if None.
        k: Constant of the fusion, 0 or more; the larger, the less the first ranks stand out.
        judged: As in ``depth_pool``.
        queries: As in ``depth_pool``.
        budget: As in ``depth_pool``.
        bands: As in ``depth_pool``.

    Returns:
        As ``depth_pool``.

    Raises:
        UsageError: as ``depth_pool``.

    Source: Cormack, Clarke & Büttcher 2009, doi:10.1145/1571941.1572114. Equals trectools'
    ``make_pool(strategy="rrf", topX=size, rrf_den=k)`` except for ties.
    """
    if not (math.isfinite(k) and k >= 0):
        raise UsageError(f"k is {k}, not a number from 0", fix="the paper uses 60")
    pooled = _pooled(runs, queries, 1.0 / (k + pl.col("rank")), None)
    name = "reciprocal rank" if size is None else f"reciprocal rank {size}"
    return _chosen(_by_score(pooled), f"{name}, k={k:g}", size, judged, budget, bands)


def rbp_pool(
    runs: Iterable[Run],
    size: int | None = None,
    *,
    p: float = 0.8,
    judged: pl.DataFrame | None = None,
    queries: Sequence[str] | None = None,
    budget: Budget = ALL,
    bands: int = 1,
) -> Pairs:
    """The best of each query by the sum over runs of (1 - p) p^(rank - 1).

    That is what a document can add to the RBP of all runs together: of all pools of a given size,
    this one leaves the smallest sum of residuals.

    Args:
        runs: As in ``depth_pool``; the whole of each run counts.
        size: Documents per query, judged or not; all of them if None.
        p: Persistence: probability of going on to the next document, above 0 and below 1.
        judged: As in ``depth_pool``.
        queries: As in ``depth_pool``.
        budget: As in ``depth_pool``.
        bands: As in ``depth_pool``.

    Returns:
        As ``depth_pool``.

    Raises:
        UsageError: as ``depth_pool``.

    Source: Moffat, Webber & Zobel 2007, doi:10.1145/1277741.1277806, method A; within each query.
    Equals trectools' ``make_pool(strategy="rbp", rbp_strategy="sum", topX=size, rbp_p=p)`` except
    for ties.
    """
    if not 0 < p < 1:
        raise UsageError(f"p is {p}, not above 0 and below 1", fix="0.8 is usual")
    pooled = _pooled(runs, queries, (1.0 - p) * pl.lit(p).pow(pl.col("rank") - 1), None)
    name = "RBP" if size is None else f"RBP {size}"
    return _chosen(_by_score(pooled), f"{name}, p={p:g}", size, judged, budget, bands)


def move_to_front(
    runs: Iterable[Run],
    grades: Mapping[str, Mapping[str, float | None]],
    *,
    depth: int = 100,
    queries: Sequence[str] | None = None,
    salt: str = "",
) -> Pairs:
    """The next document of each query, from the run with the fewest non-relevant documents so far.

    All runs of a query start with the same priority. One of those with the highest, by hash,
    contributes its documents in order as long as they are relevant; after one that is not, the run
    loses priority and another continues. It finds more relevant documents with fewer judgments
    than a depth pool, but the pool depends on the grades: means over it differ from those over a
    depth pool.

    The order is computed anew from the grades each time: there is no state, and judgments made for
    other reasons count too.

    Args:
        runs: One or more, with distinct names.
        grades: ``{query: {document: grade}}`` so far; None for documents that cannot be judged.
        depth: Documents considered in each run, from 1.
        queries: The golden set's queries; if None, those the runs answered.
        salt: The golden set's salt.

    Returns:
        A pair of each query, as ``depth_pool`` without ``score``; none for a query whose documents
        are all judged.

    Raises:
        UsageError: no runs, two runs with the same name, or a number out of range.

    Source: Cormack, Palmer & Clarke 1998, doi:10.1145/290941.291009, local move-to-front.
    """
    _whole(depth, "the depth")
    several = _checked(runs)
    ids = _queries(several, queries)
    pooled = _pooled(several, ids, 1.0 / pl.col("rank"), depth)
    lists: list[list[list[str]]] = [[[] for _ in several] for _ in ids]
    for number, run in enumerate(several):
        for query, doc_id, _ in run.top(ids, depth).iter_rows():
            lists[query][number].append(doc_id)
    names = [run.name for run in several]
    rows = [
        (query, _front(ranked, grades.get(ids[query], {}), _order(salt, ids[query], names)))
        for query, ranked in enumerate(lists)
    ]
    schema = {"query": pl.Int64, "doc_id": pl.String}
    pairs = pl.DataFrame(rows, schema, orient="row").join(
        pooled, on=["query", "doc_id"], maintain_order="left"
    )
    return _chosen(pairs, "move to front", None, None, ALL, 1, scored=False)


def _pooled(
    runs: Iterable[Run], queries: Sequence[str] | None, share: pl.Expr, depth: int | None
) -> pl.DataFrame:
    """``query`` (number), ``query_id``, ``doc_id``, ``score``, ``best_rank``, ``systems``."""
    several = _checked(runs)
    ids = _queries(several, queries)
    tops = [
        run.top(ids, depth).with_columns(score=share, system=pl.lit(run.name)) for run in several
    ]
    named = pl.DataFrame({"query_id": ids}, {"query_id": pl.String}).with_row_index("query")
    # Adding the smallest share first makes the sum independent of the order of the runs.
    return (
        pl.concat(tops)
        .group_by("query", "doc_id")
        .agg(
            score=pl.col("score").sort().sum(),
            best_rank=pl.col("rank").min(),
            systems=pl.col("system").sort(),
        )
        .join(named.with_columns(pl.col("query").cast(pl.Int64)), on="query")
    )


def _by_score(pooled: pl.DataFrame) -> pl.DataFrame:
    return pooled.sort("query", "score", "doc_id", descending=[False, True, True])


def _chosen(
    ordered: pl.DataFrame,
    chosen_by: str,
    size: int | None,
    judged: pl.DataFrame | None,
    budget: Budget,
    bands: int,
    *,
    scored: bool = True,
) -> Pairs:
    """The pool from ordered pairs: cut to size, without judged pairs, within the budget."""
    _whole(bands, "the number of bands")
    rank = pl.int_range(pl.len()).over("query")
    if size is not None:
        ordered = ordered.filter(rank < _whole(size, "the size of the pool"))
    if judged is not None:
        ordered = ordered.join(judged.select(_KEY), on=_KEY, how="anti", maintain_order="left")
    ordered = ordered.with_columns(at=rank)
    if budget.per_query is not None:
        ordered = ordered.filter(pl.col("at") < budget.per_query)
    if budget.total is not None:
        # Round by round, one document per query; the last round by score.
        spent = ordered.sort("at", "score", "query", descending=[False, True, False])
        ordered = spent.head(budget.total).sort("query", "at")
    band = pl.col("at") * bands // pl.len().over("query") + 1
    frame = ordered.select(
        *_KEY,
        priority=band.cast(pl.Int64),
        chosen_by=pl.lit(chosen_by),
        chance=pl.lit(None, pl.Float64),
        score=pl.col("score"),
        best_rank=pl.col("best_rank").cast(pl.Int64),
        systems=pl.col("systems"),
    )
    return Pairs(frame if scored else frame.drop("score"), f"pool by {chosen_by}")


def _front(
    ranked: list[list[str]], grades: Mapping[str, float | None], order: list[int]
) -> str | None:
    """The next document of one query: replays the choices up to a document without a grade."""
    demoted = [0] * len(ranked)
    waiting = [iter(docs) for docs in ranked]
    active = list(order)
    seen: set[str] = set()
    current = active[0]
    while active:
        doc_id = next((doc for doc in waiting[current] if doc not in seen), None)
        if doc_id is None:
            active.remove(current)
        else:
            seen.add(doc_id)
            if doc_id not in grades:
                return doc_id
            grade = grades[doc_id]
            if grade is None or grade >= 1:  # "cannot judge" does not count against the run
                continue
            demoted[current] += 1
        current = min(active, key=lambda run: (demoted[run], order.index(run)), default=current)
    return None


def _order(salt: str, query_id: str, names: list[str]) -> list[int]:
    """The order of equal runs for this query: by hash, so no run leads in all queries."""
    keys = [blake2b(f"{salt}\0{query_id}\0{name}".encode()).digest() for name in names]
    return sorted(range(len(names)), key=keys.__getitem__)


def _checked(runs: Iterable[Run]) -> list[Run]:
    several = list(runs)
    if not several:
        raise UsageError("there are no runs to pool", fix="give at least one")
    names = [run.name for run in several]
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise UsageError(f"two runs are called {duplicate!r}", fix="give each its own name")
    return several


def _queries(runs: Sequence[Run], queries: Sequence[str] | None) -> list[str]:
    if queries is not None:
        return list(dict.fromkeys(queries))
    return list(dict.fromkeys(query for run in runs for query in run.query_ids))


def _whole(number: int, what: str) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise UsageError(f"{what} is {number!r}, not a whole number from 1")
    return number
