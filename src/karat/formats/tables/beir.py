"""BEIR: queries.jsonl, corpus.jsonl and qrels/SPLIT.tsv, with or without a header line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from karat.formats.tables import delimited, jsonl
from karat.formats.tables.format import Format, Place, Rows, refuse_subtopics, whole
from karat.formats.tables.source import Source
from karat.tables import Documents, Qrels, Queries
from karat.tables.column_names import is_header

_NAMES = ("query-id", "corpus-id", "score")


def _read_qrels(source: Source) -> Rows:
    return delimited.read(source, "qrels", "\t", _names(source))


def _names(source: Source) -> tuple[str, ...] | None:
    """The column names, unless the first line is a header."""
    first = source.head.lstrip(b"\r\n").partition(b"\n")[0].decode("utf-8", "replace").rstrip("\r")
    cells = [cell.strip('"') for cell in first.split("\t")]
    return None if is_header(cells, "qrels") else _NAMES


def _places(source: Source, role: str) -> Iterator[Place]:
    if role == "qrels":
        return delimited.places(source, role, "\t", _names(source))
    assert jsonl.JSONL.places is not None
    return jsonl.JSONL.places(source, role)


def _write_qrels(qrels: Qrels, stream: IO[bytes]) -> None:
    refuse_subtopics(qrels, "BEIR qrels")
    frame = whole(qrels.frame, "grade")
    names = dict(zip(("query_id", "doc_id", "grade"), _NAMES, strict=True))
    delimited.write(frame.rename(names), stream, "\t", qrels.source)


def _write_rows(table: Queries | Documents, stream: IO[bytes]) -> None:
    key = "query_id" if isinstance(table, Queries) else "doc_id"
    texts = ("text",) if isinstance(table, Queries) else ("title", "text")
    for row in table.frame.iter_rows(named=True):
        out: dict[str, Any] = {"_id": row.pop(key)}
        for name in texts:
            if (value := row.pop(name, None)) is not None:
                out[name] = value
        if metadata := {name: value for name, value in row.items() if value is not None}:
            out["metadata"] = metadata
        stream.write(jsonl.line_of(out))


BEIR = Format(
    name="beir",
    what="BEIR: a folder, or one of its files",
    readers={
        "qrels": _read_qrels,
        "queries": jsonl.JSONL.readers["queries"],
        "documents": jsonl.JSONL.readers["documents"],
    },
    writers={"qrels": _write_qrels, "queries": _write_rows, "documents": _write_rows},
    places=_places,
)
