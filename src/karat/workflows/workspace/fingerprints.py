"""Fingerprints: SHA-256 of what a number was computed from, the same for the same content."""

from __future__ import annotations

import hashlib
import io

import polars as pl

from karat.tables import Qrels, Queries, Run


def fingerprint(table: Qrels | Queries | Run | None) -> str | None:
    """SHA-256 of a table, whatever file or order it came in; None for none.

    Judgments count with their scale and with the queries that have no relevant document, queries
    with all their columns, runs with their ranking and with how each query was answered (documents
    returned twice included), not with how long that took.
    """
    if table is None:
        return None
    digest = hashlib.sha256()
    if isinstance(table, Run):
        _add(digest, table.frame().select("query_id", "doc_id", "score"))
        _add(digest, table.answers.select("query_id", "state"))
        twice = _repeated(table)
        if twice.height:  # any other run keeps the hash that saved baselines have of it
            _add(digest, twice)
    elif isinstance(table, Qrels):
        digest.update(repr(tuple(map(float, table.scale))).encode())
        _add(digest, table.rows)
        if table.without:  # any other judgments keep the hash that saved baselines have of them
            digest.update(repr(sorted(table.without)).encode())
    else:
        _add(digest, table.frame.select(sorted(table.frame.columns)))
    return digest.hexdigest()


def _repeated(run: Run) -> pl.DataFrame:
    """The queries that got a document more than once, and how many were left out."""
    if "repeated" not in run.answers.columns:
        return pl.DataFrame()
    return run.answers.filter(pl.col("repeated") > 0).select("query_id", "repeated")


def _add(digest: hashlib._Hash, frame: pl.DataFrame) -> None:
    plain = frame.select(
        pl.col(name) if not dtype.is_nested() else pl.col(name).map_elements(repr, pl.String)
        for name, dtype in frame.schema.items()
    )
    written = io.BytesIO()
    plain.sort(plain.columns).write_csv(written)
    digest.update(written.getbuffer())
