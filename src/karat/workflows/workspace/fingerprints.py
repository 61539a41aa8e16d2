"""Fingerprints: SHA-256 of the content of tables."""

from __future__ import annotations

import hashlib
import io

import polars as pl

from karat.tables import Qrels, Queries, Run


def fingerprint(table: Qrels | Queries | Run | None) -> str | None:
    """SHA-256 of a table, independent of file format and row order; None for None.

    It covers, of judgments, the scale and the queries without relevant documents; of queries, all
    columns; of runs, the rankings and how each query was answered, with duplicate documents but
    without latencies.
    """
    if table is None:
        return None
    digest = hashlib.sha256()
    if isinstance(table, Run):
        _add(digest, table.frame().select("query_id", "doc_id", "score"))
        _add(digest, table.answers.select("query_id", "state"))
        twice = _repeated(table)
        if twice.height:  # other runs keep the hash stored in older baselines
            _add(digest, twice)
    elif isinstance(table, Qrels):
        digest.update(repr(tuple(map(float, table.scale))).encode())
        _add(digest, table.rows)
        if table.without:  # other judgments keep the hash stored in older baselines
            digest.update(repr(sorted(table.without)).encode())
    else:
        _add(digest, table.frame.select(sorted(table.frame.columns)))
    return digest.hexdigest()


def _repeated(run: Run) -> pl.DataFrame:
    """Queries with duplicate documents, and their number."""
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
