"""MS MARCO: tab-separated lines without a header or quotes.

Collection ``pid text``, queries ``qid text``, qrels ``qid 0 pid grade`` (TREC's, with tabs), run
``qid pid rank``. Runs have ranks only: the score is -rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

import polars as pl

from karat.formats.tables import trec
from karat.formats.tables.format import Format, Place, Rows, parts_of, refuse_unwritable
from karat.formats.tables.lines import Layout, frames, places
from karat.formats.tables.source import Source
from karat.tables import Documents, Qrels, Queries, Run

RUN = Layout(
    what="an MS MARCO run line",
    fields=("query", "document", "rank"),
    keep={0: ("query_id", pl.String), 1: ("doc_id", pl.String), 2: ("rank", pl.Int64)},
    tabs=True,
)


def _texts(what: str, field: str, column: str) -> Layout:
    return Layout(
        what=what,
        fields=(field, "text"),
        keep={0: (column, pl.String), 1: ("text", pl.String)},
        tabs=True,
        comments=False,
        blank=frozenset({"text"}),
    )


_QUERIES = _texts("an MS MARCO query line", "query", "query_id")
_DOCUMENTS = _texts("an MS MARCO collection line", "document", "doc_id")
_BREAKS = r"[\t\n\r\x00]"


def read_run(source: Source) -> Rows:
    """A run: the score is -rank."""
    score = -pl.col("rank").cast(pl.Float64)
    return Rows(
        frame.select("query_id", "doc_id", score.alias("score")) for frame in frames(source, RUN)
    )


def _places(source: Source, role: str) -> Iterator[Place]:
    if role == "qrels":
        return places(source, trec.QRELS, (0, 2))
    if role == "run":
        return places(source, RUN, (0, 1))
    return places(source, _QUERIES if role == "queries" else _DOCUMENTS, (0,))


def _write_qrels(qrels: Qrels, stream: IO[bytes]) -> None:
    trec.write_qrels(qrels, stream, separator="\t")


def _write_run(run: Run, stream: IO[bytes]) -> None:
    ids = ("query_id", "doc_id")
    for part in parts_of(run):
        frame = part.frame().select(*ids, "rank")
        refuse_unwritable(frame, ids, _BREAKS, "a line of tab-separated fields", run.source)
        refuse_unwritable(frame, ids[:1], r"^\s*#", "an MS MARCO run (it is a comment)", run.source)
        _lines(frame, stream)


def _write_texts(table: Queries | Documents, stream: IO[bytes]) -> None:
    key = "query_id" if isinstance(table, Queries) else "doc_id"
    frame = table.frame
    if "text" not in frame.columns:
        frame = frame.with_columns(text=pl.lit(""))
    frame = frame.select(key, pl.col("text").fill_null(""))
    refuse_unwritable(frame, (key, "text"), _BREAKS, "a line of tab-separated fields", table.source)
    _lines(frame, stream)


def _lines(frame: pl.DataFrame, stream: IO[bytes]) -> None:
    frame.write_csv(stream, include_header=False, separator="\t", quote_style="never")


MSMARCO = Format(
    name="msmarco",
    what="MS MARCO's tab-separated lines without a header",
    readers={
        "qrels": trec.read_qrels,
        "run": read_run,
        "queries": lambda source: Rows(frames(source, _QUERIES)),
        "documents": lambda source: Rows(frames(source, _DOCUMENTS)),
    },
    writers={
        "qrels": _write_qrels,
        "run": _write_run,
        "queries": _write_texts,
        "documents": _write_texts,
    },
    places=_places,
)
