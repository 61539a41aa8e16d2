"""Tables as they leave: rows in the shape a format can hold, or a refusal that says why."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, Any

import polars as pl

from karat.errors import InputError
from karat.tables import Qrels, Run

Writer = Callable[[Any, IO[bytes]], None]


def frame_writers(write: Callable[[pl.DataFrame, IO[bytes]], None]) -> dict[str, Writer]:
    """The writers of a format that holds any frame: one for each role."""
    return {
        "qrels": lambda qrels, stream: write(qrels.rows, stream),
        "run": lambda run, stream: write(answered(run), stream),
        "queries": lambda queries, stream: write(queries.frame, stream),
        "documents": lambda documents, stream: write(documents.frame, stream),
        "pairs": lambda pairs, stream: write(pairs.frame, stream),
    }


def answered(run: Run) -> pl.DataFrame:
    """A run with how each query was answered, where that says more than its rows.

    Columns ``query_id``, ``doc_id``, ``score``, ``rank``; and ``state`` (and ``latency_us``,
    ``error``, ``repeated``) if a query was answered with nothing, failed, was timed, or got a
    document twice. A query without documents has one row.
    """
    frame = run.frame()
    details = details_of(run)
    bare = run.answers.filter(pl.col("state") != "ok")
    if not details and not bare.height:
        return frame
    told = run.answers.select("query_id", "state", *details)
    with_rows = frame.join(told, on="query_id", how="left", maintain_order="left")
    without = told.join(frame, on="query_id", how="anti", maintain_order="left")
    return pl.concat([with_rows, without], how="diagonal")


def details_of(run: Run) -> list[str]:
    """The columns of a run's answers, beside their state, that hold anything."""
    return [
        column
        for column in ("latency_us", "error", "repeated")
        if column in run.answers.columns and run.answers[column].null_count() < len(run.answers)
    ]


def refuse_failed(run: Run, what: str) -> None:
    """Refuse a run with failed queries where a format cannot tell failed from absent.

    Raises:
        InputError: there is one. (A query that was answered with nothing may be left out: absent
            and empty both score 0.)
    """
    failed = run.answers.filter(pl.col("state") == "failed")
    if failed.height:
        raise InputError(
            f"the query failed, which {what} cannot say: it would read as missing, and score 0",
            file=run.source,
            query=failed["query_id"][0],
            fix="write .jsonl, .csv, .parquet or .json, which can",
        )


def refuse_subtopics(qrels: Qrels, what: str) -> None:
    """Refuse judgments by subtopic where a format holds one grade for a document.

    Raises:
        InputError: there are subtopics.
    """
    if qrels.subtopics is not None:
        row = qrels.subtopics.row(0, named=True)
        raise InputError(
            f"document {row['doc_id']} is judged for subtopic {row['subtopic']}, and {what} "
            "cannot hold subtopics",
            file=qrels.source,
            query=row["query_id"],
            fix="write .qrels, .jsonl, .csv or .parquet, which can; or write "
            "karat.Qrels(qrels.frame), which has none",
        )


def refuse_unwritable(
    frame: pl.DataFrame, columns: tuple[str, ...], pattern: str, what: str, source: str
) -> None:
    """Refuse cells that a format would read back as something else.

    Raises:
        InputError: a cell matches the pattern.
    """
    for column in columns:
        if column not in frame.columns:
            continue
        bad = frame[column].str.contains(pattern).fill_null(value=False)
        if bad.any():
            row = frame.row(int(bad.arg_max() or 0), named=True)
            raise InputError(
                f"the {column} {_short(row[column])} cannot stand in {what}",
                file=source,
                query=row.get("query_id"),
                doc_id=row.get("doc_id"),
                fix="write .jsonl or .parquet, which hold any text",
            )


def whole(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    """Numbers without a point where all of them are whole."""
    values = frame[column]
    if (values.is_finite() & (values == values.round()) & (values.abs() < 1e15)).all():
        return frame.with_columns(pl.col(column).cast(pl.Int64))
    return frame


def _short(text: str) -> str:
    return repr(text[:60] + "…" if len(text) > 60 else text)
