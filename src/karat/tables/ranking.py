"""The one rule of order: score descending, then document id descending by bytes.

``settle`` puts a batch of rows into that order and finds what must be known before any number
is computed: duplicates, NaN scores, tied groups, and ranks that contradict the scores. Files
are nearly always in order already, so neighbours are compared first and only a batch that is
out of order is sorted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.errors import InputError

# Mixes the query into the hash of a document id: 2^64 divided by the golden ratio, made odd.
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Settled:
    """A batch in order: whole queries, each with its documents best first.

    Attributes:
        query_ids: The queries, in order of first appearance.
        counts: Documents of each query.
        rows: ``doc_id`` and ``score``, query by query.
        tie_start: First row of each group of equal scores with more than one member.
        tie_size: Members of that group.
        contradicted: Ids of the queries whose given ranks contradict their scores.
    """

    query_ids: list[str]
    counts: NDArray[np.int64]
    rows: pl.DataFrame
    tie_start: NDArray[np.int64]
    tie_size: NDArray[np.int64]
    contradicted: list[str]


def settle(batch: pl.DataFrame, source: str) -> Settled:
    """Order one batch of whole queries.

    Args:
        batch: ``query_id``, ``doc_id``, ``score`` and perhaps ``rank``; at least one row.
        source: What messages call it.

    Raises:
        InputError: a score is NaN or null, or a document stands twice for one query.
    """
    code, starts, query_ids = _queries(batch)
    if len(set(query_ids)) < len(query_ids):
        batch = _contiguous(batch)
        code, starts, query_ids = _queries(batch)
    score = batch["score"].to_numpy()
    if batch["score"].null_count() or np.isnan(score).any():
        bad = batch["score"].is_null() | batch["score"].is_nan().fill_null(value=True)
        row = batch.row(int(bad.arg_max() or 0), named=True)
        raise InputError(
            f"the score of document {row['doc_id']} is not a number",
            file=source,
            query=row["query_id"],
            doc_id=row["doc_id"],
            fix="give it a score, or leave the document out",
        )
    counts = np.diff(np.append(starts, len(code)))
    _refuse_duplicates(batch, code, counts, source)

    same = code[1:] == code[:-1]
    equal = same & (score[1:] == score[:-1])
    rising = same & (score[1:] > score[:-1])
    if rising.any() or not _ties_descend(batch["doc_id"], equal):
        batch = (
            batch.with_columns(pl.Series("code", code), pl.col("score") + 0.0)  # -0.0 equals 0.0
            .sort(["code", "score", "doc_id"], descending=[False, True, True])
            .drop("code")
        )
        score = batch["score"].to_numpy()
        equal = same & (score[1:] == score[:-1])

    tie_start, tie_size = _groups(equal)
    return Settled(
        query_ids=query_ids,
        counts=counts,
        rows=batch.select("doc_id", "score"),
        tie_start=tie_start,
        tie_size=tie_size,
        contradicted=[query_ids[index] for index in _contradicted(batch, code, equal)],
    )


def _queries(
    batch: pl.DataFrame,
) -> tuple[NDArray[np.uint32], NDArray[np.int64], list[str]]:
    """The stretch of rows each row belongs to, where each starts, and its query."""
    code = batch["query_id"].rle_id().to_numpy()
    starts = np.flatnonzero(np.concatenate(([True], code[1:] != code[:-1])))
    return code, starts, batch["query_id"].gather(starts).to_list()


def _contiguous(batch: pl.DataFrame) -> pl.DataFrame:
    """Bring the rows of each query together, queries in order of first appearance."""
    first = batch.group_by("query_id", maintain_order=True).agg().with_row_index("first")
    return (
        batch.join(first, on="query_id", how="left")
        .sort("first", maintain_order=True)
        .drop("first")
    )


def _refuse_duplicates(
    batch: pl.DataFrame, code: NDArray[np.uint32], counts: NDArray[np.int64], source: str
) -> None:
    # Sorting 64-bit hashes is far cheaper than grouping strings; equal hashes are confirmed.
    key = batch["doc_id"].hash().to_numpy() ^ (code * _MIX)
    if (counts == counts[0]).all():
        key = key.reshape(len(counts), -1)  # the usual case, and short rows sort faster
    key = np.sort(key, axis=-1)
    if not (key[..., 1:] == key[..., :-1]).any():
        return
    twice = batch.select("query_id", "doc_id").is_duplicated()
    if twice.any():
        query, doc = batch.select("query_id", "doc_id").row(int(twice.arg_max() or 0))
        raise InputError(
            f"document {doc} stands twice in one ranking",
            file=source,
            query=query,
            doc_id=doc,
            fix="keep each document once for each query (karat lint lists them all)",
        )


def _ties_descend(doc_id: pl.Series, equal: NDArray[np.bool_]) -> bool:
    below = np.flatnonzero(equal) + 1
    if not len(below):
        return True
    return bool((doc_id.gather(below) < doc_id.gather(below - 1)).all())


def _groups(equal: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Start and size of each run of rows whose score equals the row before."""
    if not equal.any():
        return np.empty(0, np.int64), np.empty(0, np.int64)
    edge = np.diff(np.concatenate(([False], equal, [False])).astype(np.int8))
    start = np.flatnonzero(edge == 1)
    return start, np.flatnonzero(edge == -1) - start + 1


def _contradicted(
    batch: pl.DataFrame, code: NDArray[np.uint32], equal: NDArray[np.bool_]
) -> list[int]:
    """Queries in which a lower score was given an equal or better rank."""
    if "rank" not in batch.columns:
        return []
    rank, limit = batch["rank"].cast(pl.Int64), np.iinfo(np.int64)
    if not rank.null_count():
        given = rank.to_numpy()
        if ((given[1:] > given[:-1]) | (code[1:] != code[:-1])).all():
            return []  # the usual case: ranks ascend
    # Among documents of one score any order will do, so it is groups of them that must fall.
    group = np.flatnonzero(np.concatenate(([True], ~equal)))
    worst = np.maximum.reduceat(rank.fill_null(int(limit.min)).to_numpy(), group)
    best = np.minimum.reduceat(rank.fill_null(int(limit.max)).to_numpy(), group)
    query = code[group]
    wrong = (query[1:] == query[:-1]) & (best[1:] <= worst[:-1])
    found: list[int] = np.unique(query[1:][wrong]).tolist()
    return found
