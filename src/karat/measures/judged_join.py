"""Join a run with its judgments into evidence."""

from __future__ import annotations

import numpy as np
import polars as pl
import polars.selectors as cs

from karat.measures.evidence import Evidence, Subtopics
from karat.tables.qrels import Qrels
from karat.tables.ranking import mixed
from karat.tables.run import Run

_BLOCK = 1 << 18  # rows in a block that fits the cache


def reduce(run: Run, qrels: Qrels) -> Evidence:
    """Join a settled run with its judgments.

    Returns:
        Evidence over every query of the qrels, sorted by query id (bytes). Queries of the run
        without judgments are not in it.
    """
    query_ids = qrels.query_ids
    topic = pl.DataFrame({"query_id": query_ids}, schema={"query_id": pl.String}).with_columns(
        pl.Series("topic", np.arange(len(query_ids)))
    )
    in_run = pl.DataFrame({"query_id": run.query_ids}, schema={"query_id": pl.String}).with_columns(
        pl.Series("query", np.arange(len(run.query_ids), dtype=np.uint32))
    )
    counts = np.diff(run.starts)
    judged = qrels.frame.join(topic, on="query_id", maintain_order="left")
    if qrels.subtopics is not None:
        in_order = judged.sort("topic", "doc_id", descending=[False, True])
        judged = in_order.with_columns(document=pl.int_range(pl.len(), dtype=pl.Int64))
    pairs = judged.join(in_run, on="query_id").select(
        "query", "doc_id", "topic", "grade", cs.by_name("document", require_all=False)
    )

    hits = _hits(run, pairs)
    query = hits["query"].to_numpy()
    row = hits["row"].to_numpy()
    start = run.starts[query]
    tie_start, tie_size = run.ties_of(row)

    of_topic = in_run.join(topic, on="query_id")
    in_topic, in_query = of_topic["topic"].to_numpy(), of_topic["query"].to_numpy()
    returned = np.zeros(len(query_ids), np.int64)
    returned[in_topic] = counts[in_query]
    tied = np.zeros(len(query_ids), np.int64)
    tied[in_topic] = _tied_per_query(run)[in_query]

    ideals = judged.select("topic", "grade").sort("topic", "grade", descending=[False, True])
    return Evidence(
        query_ids=query_ids,
        returned=returned,
        tied=tied,
        query=hits["topic"].to_numpy(),
        grade=hits["grade"].to_numpy(),
        rank=row - start + 1,
        tie_start=tie_start - start + 1,
        tie_size=tie_size,
        ideal_query=ideals["topic"].to_numpy(),
        ideal_grade=ideals["grade"].to_numpy(),
        scale=qrels.scale,
        subtopics=None if qrels.subtopics is None else _subtopics(qrels.subtopics, judged),
        document=None if qrels.subtopics is None else hits["document"].to_numpy(),
    )


def _subtopics(subtopics: pl.DataFrame, judged: pl.DataFrame) -> Subtopics:
    """Judgments by subtopic, their documents numbered as in ``judged``."""
    rows = subtopics.drop("grade").with_columns(by_subtopic=subtopics["grade"])
    rows = rows.join(judged, on=["query_id", "doc_id"]).sort("topic", "subtopic", "document")
    number = pl.struct("topic", "subtopic").rle_id().cast(pl.Int64)
    rows = rows.with_columns(number=number).sort("document", "number")
    columns = ("topic", "document", "number", "by_subtopic")
    return Subtopics(*(rows[column].to_numpy() for column in columns))


def _hits(run: Run, pairs: pl.DataFrame) -> pl.DataFrame:
    """The judged pairs that the run has, with their row.

    A hash table of the pairs' keys passes one or two rows in a hundred; only those are joined by
    string. Block by block, which bounds memory.
    """
    counts = np.diff(run.starts)
    mask = np.uint64((1 << min(26, max(20, (64 * pairs.height).bit_length()))) - 1)
    marked = np.zeros(int(mask) + 1, np.bool_)
    marked[mixed(pairs["doc_id"].hash(), pairs["query"].to_numpy()) & mask] = True
    candidates = [np.empty(0, np.int64)]
    last = 0
    while last < len(counts):
        first = last
        last = max(first + 1, int(np.searchsorted(run.starts, run.starts[first] + _BLOCK)) - 1)
        start, stop = int(run.starts[first]), int(run.starts[last])
        query = np.repeat(np.arange(first, last, dtype=np.uint32), counts[first:last])
        key = mixed(run.rows["doc_hash"].slice(start, stop - start), query)
        candidates.append(np.flatnonzero(marked[key & mask]) + start)
    row = np.concatenate(candidates)
    query = (np.searchsorted(run.starts, row, side="right") - 1).astype(np.uint32)
    likely = pl.DataFrame({"query": query, "doc_id": run.rows["doc_id"].gather(row), "row": row})
    return pairs.join(likely, on=["query", "doc_id"]).sort("topic", "row")


def _tied_per_query(run: Run) -> np.ndarray:
    query = np.searchsorted(run.starts, run.tie_start, side="right") - 1
    return np.bincount(query, run.tie_size, minlength=len(run.query_ids)).astype(np.int64)
