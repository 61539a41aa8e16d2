"""The order of all rankings: score descending, then document id descending by bytes.

``settle`` sorts a batch of rows and checks it: duplicates, NaN scores, ties, and ranks that
contradict the scores. Most files are sorted, so only a batch with a rising score is sorted.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.errors import InputError
from karat.tables.incoming import refuse_rows

# Mixes the query into the hash of a document id: 2^64 divided by the golden ratio, made odd.
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Settled:
    """A sorted batch of whole queries, each with its documents best first."""

    query_ids: list[str]  # the queries, in order of first appearance
    counts: NDArray[np.int64]  # documents of each query
    rows: pl.DataFrame  # `doc_id`, `score` and `doc_hash`, query by query
    tie_start: NDArray[np.int64]  # first row of each group of two or more equal scores
    tie_size: NDArray[np.int64]  # rows of that group
    contradicted: list[str]  # ids of the queries whose given ranks contradict their scores


def settle(batch: pl.DataFrame, source: str) -> Settled:
    """Sort and check one batch of whole queries.

    Args:
        batch: ``query_id``, ``doc_id``, ``score`` and optionally ``rank``; at least one row.
        source: Name of the run in error messages.

    Raises:
        InputError: a score is NaN or null, or a query has a duplicate document.
    """
    code, starts, query_ids = _queries(batch)
    if len(set(query_ids)) < len(query_ids):
        batch = gathered(batch)
        code, starts, query_ids = _queries(batch)
    score = batch["score"].to_numpy()
    if batch["score"].null_count() or np.isnan(score).any():
        bad = batch["score"].is_null() | batch["score"].is_nan().fill_null(value=True)
        what = "the score of document {doc_id} is not a number"
        refuse_rows(batch, bad, what, source, "give it a score, or leave the document out")
    same = code[1:] == code[:-1]
    equal = same & (score[1:] == score[:-1])
    # If no score rises, ranks that ascend row by row cannot contradict the scores.
    rising = bool((same & (score[1:] > score[:-1])).any())
    agrees = not rising and _ranks_ascend(batch, same)
    if rising:
        batch = (
            batch.with_columns(pl.Series("code", code), pl.col("score") + 0.0)  # -0.0 equals 0.0
            .sort(["code", "score", "doc_id"], descending=[False, True, True])
            .drop("code")
        )
        score = batch["score"].to_numpy()
        equal = same & (score[1:] == score[:-1])
    else:
        batch = _ties_in_order(batch, equal, ["doc_id"] if agrees else batch.columns)

    counts = np.diff(np.append(starts, len(code)))
    doc_id = batch["doc_id"]
    rows = pl.DataFrame([doc_id, batch["score"], doc_id.hash().alias("doc_hash")])
    _refuse_duplicates(batch, mixed(rows["doc_hash"], code), counts, source)
    tie_start, tie_size = _groups(equal)
    contradicted = [] if agrees else _contradicted(batch, code, equal)
    return Settled(
        query_ids=query_ids,
        counts=counts,
        rows=rows,
        tie_start=tie_start,
        tie_size=tie_size,
        contradicted=[query_ids[index] for index in contradicted],
    )


def _queries(
    batch: pl.DataFrame,
) -> tuple[NDArray[np.uint32], NDArray[np.int64], list[str]]:
    """The block of equal query ids of each row, the start of each block, and its query."""
    code = batch["query_id"].rle_id().to_numpy()
    starts = np.flatnonzero(np.concatenate(([True], code[1:] != code[:-1])))
    return code, starts, batch["query_id"].gather(starts).to_list()


def gathered(batch: pl.DataFrame) -> pl.DataFrame:
    """The rows grouped by query, queries in order of first appearance."""
    first = batch.group_by("query_id", maintain_order=True).agg().with_row_index("first")
    return (
        batch.join(first, on="query_id", how="left", maintain_order="left")
        .sort("first", maintain_order=True)
        .drop("first")
    )


def mixed(doc_hash: pl.Series, query: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """One 64-bit key for each (query, document) pair."""
    key: NDArray[np.uint64] = doc_hash.to_numpy() ^ (query * _MIX)
    return key


def numbered(
    runs: Sequence[pl.DataFrame],
    rows: Sequence[NDArray[np.int64]],
    queries: Sequence[NDArray[np.int64]],
) -> list[NDArray[np.int64]]:
    """Numbers from 0 for some rows of several runs: equal where query and document are.

    Fastest for as many rows as fit the cache.
    """
    hashes = [run["doc_hash"].to_numpy()[row] for run, row in zip(runs, rows, strict=True)]
    query = np.concatenate(queries)
    key = mixed(pl.Series(np.concatenate(hashes)), query.astype(np.uint32))
    order = np.argsort(key)
    key = key[order]
    new = np.diff(key, prepend=~key[:1]) != 0
    number = np.empty(len(key), np.int64)
    number[order] = np.cumsum(new) - 1
    # Numbers are far faster to sort than ids; equal ones are then verified.
    again = np.flatnonzero(~new)
    one, other = order[again - 1], order[again]
    doc_id = pl.concat(
        [run["doc_id"].gather(row) for run, row in zip(runs, rows, strict=True)], rechunk=True
    )
    if (query[one] != query[other]).any() or (doc_id.gather(one) != doc_id.gather(other)).any():
        pairs = pl.DataFrame({"query": query, "doc_id": doc_id})
        number = pairs.select(pl.struct("query", "doc_id").rank("dense")).to_series().to_numpy()
        number = number.astype(np.int64) - 1
    return np.split(number, np.cumsum([len(row) for row in rows])[:-1])


def _refuse_duplicates(
    batch: pl.DataFrame, key: NDArray[np.uint64], counts: NDArray[np.int64], source: str
) -> None:
    # Sorting 64-bit hashes is far cheaper than grouping strings; equal hashes are checked below.
    if (counts == counts[0]).all():
        key = key.reshape(len(counts), -1)  # the usual case; short rows sort faster
    key.sort(axis=-1)
    if not (key[..., 1:] == key[..., :-1]).any():
        return
    twice = batch.select("query_id", "doc_id").is_duplicated()
    if twice.any():
        query, doc = batch.select("query_id", "doc_id").row(int(twice.arg_max() or 0))
        raise InputError(
            f"duplicate document {doc} in one ranking",
            file=source,
            query=query,
            doc_id=doc,
            fix="keep each document once for each query",
            command="karat lint lists them all",
        )


def _ties_in_order(
    batch: pl.DataFrame, equal: NDArray[np.bool_], columns: Collection[str]
) -> pl.DataFrame:
    """The batch with rows of equal score sorted by document id, descending."""
    below = np.flatnonzero(equal) + 1
    doc_id = batch["doc_id"].rechunk()  # Polars gathers strings of one chunk five times faster
    if not len(below) or (doc_id.gather(below) < doc_id.gather(below - 1)).all():
        return batch
    start, size = _groups(equal)
    tied = np.repeat(start - np.concatenate(([0], np.cumsum(size)[:-1])), size)
    tied += np.arange(len(tied))
    group = np.repeat(np.arange(len(start)), size)
    ordered = pl.DataFrame({"group": group, "doc_id": doc_id.gather(tied), "row": tied}).sort(
        ["group", "doc_id"], descending=[False, True]
    )
    order = np.arange(batch.height)
    order[tied] = ordered["row"].to_numpy()
    # Within a tie only the document ids, and their ranks if needed, change places.
    moved = [name for name in ("doc_id", "rank") if name in columns]
    return batch.with_columns(batch[name].rechunk().gather(order) for name in moved)


def _groups(equal: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Start and size of each group of rows with equal scores."""
    above = np.flatnonzero(equal)
    first = np.flatnonzero(np.diff(above, prepend=-2) > 1)
    return above[first], np.diff(np.append(first, len(above))) + 1


def _ranks_ascend(batch: pl.DataFrame, same: NDArray[np.bool_]) -> bool:
    if "rank" not in batch.columns:
        return True
    if batch["rank"].null_count():
        return False
    rank = batch["rank"].to_numpy()
    return bool(((rank[1:] > rank[:-1]) | ~same).all())


def _contradicted(
    batch: pl.DataFrame, code: NDArray[np.uint32], equal: NDArray[np.bool_]
) -> list[int]:
    """Indexes of queries in which a lower score has an equal or better rank."""
    if "rank" not in batch.columns:
        return []
    rank, limit = batch["rank"].cast(pl.Int64), np.iinfo(np.int64)
    # Documents of equal score may have any order, so groups of them are compared.
    group = np.flatnonzero(np.concatenate(([True], ~equal)))
    worst = np.maximum.reduceat(rank.fill_null(int(limit.min)).to_numpy(), group)
    best = np.minimum.reduceat(rank.fill_null(int(limit.max)).to_numpy(), group)
    query = code[group]
    wrong = (query[1:] == query[:-1]) & (best[1:] <= worst[:-1])
    queries: list[int] = np.unique(query[1:][wrong]).tolist()
    return queries
