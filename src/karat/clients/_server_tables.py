"""Conversion of JSON rows to frames, and of runs and pairs to files and back."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from karat.tables import Pairs, Run
from karat.tables.lists import LISTS
from karat.tables.schema import ANSWERS, JUDGMENTS


def table(rows: Sequence[Mapping[str, Any]], name: str) -> pl.DataFrame:
    """Rows of a list as a frame with the types of its columns; with these if there are no rows."""
    columns = [each for each in LISTS[name] if not each.optional or each in JUDGMENTS]
    if not rows:
        return pl.DataFrame(schema={each.name: each.dtype for each in columns})
    known = {each.name: each.dtype for each in LISTS[name] if each.name in rows[0]}
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
