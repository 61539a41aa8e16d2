"""Conversion of JSON rows to frames, and of runs and pairs to files and back."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from karat.tables import Pairs, Run
from karat.tables.schema import ANSWERS, JUDGMENTS

_S, _F, _I, _B = pl.String(), pl.Float64(), pl.Int64(), pl.Boolean()
SCHEMAS: Mapping[str, Mapping[str, pl.DataType]] = {
    "queries": {"query_id": _S, "text": _S},
    "documents": {"doc_id": _S, "title": _S, "text": _S, "sha256": _S},
    "pairs": {
        "query_id": _S,
        "text": _S,
        "doc_id": _S,
        "title": _S,
        "state": _S,
        "grade": _F,
        "rule": _S,
        "votes": _I,
        "said": _S,
        "raters": pl.List(_S),
        "grades": pl.List(_F),
        "low": _F,
        "high": _F,
        "adjudicated": _F,
        "imported": _F,
        "gold_grade": _F,
        "waiting": _I,
    },
    "judgments": {c.name: c.dtype for c in JUDGMENTS} | {"text": _S, "title": _S, "stale": _B},
    "grades": {
        "query_id": _S,
        "doc_id": _S,
        "grade": _F,
        "votes": _I,
        "rule": _S,
        "raters": pl.List(_S),
    },
    "disagreements": {
        "query_id": _S,
        "doc_id": _S,
        "votes": _I,
        "low": _F,
        "high": _F,
        "spread": _F,
        "raters": pl.List(_S),
        "grades": pl.List(_F),
        "reasons": pl.List(_S),
        "settled": _B,
        "text": _S,
        "between": _S,
        "imported": _F,
    },
    "comparison": {
        "candidate": _S,
        "measure": _S,
        "query_id": _S,
        "text": _S,
        "outcome": _S,
        "baseline_value": _F,
        "candidate_value": _F,
        "difference": _F,
        "share": _F,
        "slices": pl.List(_S),
    },
}
"""Columns that a table always has; queries and documents have more."""


def table(rows: Sequence[Mapping[str, Any]], schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Rows as a frame with the types of the schema; with its columns if there are no rows."""
    if not rows:
        return pl.DataFrame(schema=dict(schema))
    known = {name: kind for name, kind in schema.items() if name in rows[0]}
    return pl.DataFrame(list(rows), schema_overrides=known, infer_schema_length=None, strict=False)


def packed_run(run: Run) -> tuple[str, bytes]:
    """Name and bytes of a run as a Parquet file, including the states of queries."""
    frame = run.frame()
    answers = run.answers.drop("returned")
    with_rows = frame.join(answers, on="query_id", how="left", maintain_order="left")
    without = answers.join(frame, on="query_id", how="anti", maintain_order="left")
    out = io.BytesIO()
    pl.concat([with_rows, without], how="diagonal").write_parquet(out)
    return "run.parquet", out.getvalue()


def packed_pairs(pairs: Pairs) -> tuple[str, bytes]:
    """Name and bytes of pairs as a JSONL file."""
    out = io.BytesIO()
    pairs.frame.write_ndjson(out)
    return "pairs.jsonl", out.getvalue()


def run_of(frame: pl.DataFrame, name: str) -> Run:
    """A run from the frame of its Parquet file."""
    rows = frame.filter(pl.col("doc_id").is_not_null()).select("query_id", "doc_id", "score")
    if "state" not in frame.columns:
        return Run.from_frame(rows, name)
    names = [column.name for column in ANSWERS if column.name not in ("query_id", "returned")]
    columns = [name for name in names if name in frame.columns]
    answers = frame.select("query_id", *columns).unique("query_id", maintain_order=True)
    return Run.from_batches(name, [rows] if rows.height else [], answers=answers)
