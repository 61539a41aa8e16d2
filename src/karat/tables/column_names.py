"""The usual names of the columns of qrels, runs, queries and documents."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import polars as pl

from karat.errors import InputError, nearest

QUERY_ID = ("query_id", "qid", "q_id", "queryid", "topic", "topic_id")
DOC_ID = (
    "doc_id",
    "corpus_id",
    "docid",
    "docno",
    "pid",
    "doc",
    "document_id",
    "passage_id",
)
GRADE = ("grade", "relevance", "rel", "label", "judgment", "judgement", "rating")

SPELLINGS: dict[str, dict[str, tuple[str, ...]]] = {
    "qrels": {
        "query_id": QUERY_ID,
        "doc_id": DOC_ID,
        "grade": (*GRADE, "score"),
        "subtopic": ("subtopic", "subtopic_id", "subtopic_number", "iteration"),
    },
    "run": {
        "query_id": QUERY_ID,
        "doc_id": DOC_ID,
        "score": ("score", "sim", "similarity"),
        "rank": ("rank",),
        "state": ("state",),
        "latency_us": ("latency_us",),
        "error": ("error",),
        "repeated": ("repeated",),
    },
    "queries": {
        "query_id": (*QUERY_ID, "_id", "id"),
        "text": ("text", "query", "query_text"),
    },
    "documents": {
        "doc_id": (*DOC_ID, "_id", "id"),
        "title": ("title",),
        "text": ("text", "contents", "body", "passage"),
    },
}
"""The spellings of each column of each kind of table; case, ``-`` and spaces do not matter."""

_REQUIRED = {
    "qrels": ("query_id", "doc_id", "grade"),
    "run": ("query_id", "doc_id", "score"),
    "queries": ("query_id",),
    "documents": ("doc_id",),
}
_LAST_RESORT = {"score", "_id", "id"}  # used only if there is no surer name
_INTERNAL = {"docno": "docid"}  # PyTerrier's frames number each document again as docid


def plain(name: str) -> str:
    """A column name, case-folded, with ``_`` for ``-`` and spaces."""
    return re.sub(r"[-\s]+", "_", name.strip()).casefold()


def known(name: str, role: str) -> str | None:
    """The column that a name means in a role; None if unknown."""
    folded = plain(name)
    for column, spellings in SPELLINGS[role].items():
        if folded in spellings:
            return column
    return None


def is_header(cells: Sequence[str], role: str) -> bool:
    """Whether cells are column names: they name an id column, or at least two columns."""
    columns = {column for cell in cells if (column := known(cell, role)) is not None}
    needed = {column for column in _REQUIRED[role] if column.endswith("_id")}
    return (bool(columns & needed) and len(cells) > 1) or len(columns) > 1


def choose(names: Sequence[str], role: str, file: str, line: int | None = None) -> dict[str, str]:
    """Maps each column of the table to its name in the file.

    Raises:
        InputError: a required column is missing, or two columns mean the same.
    """
    chosen: dict[str, str] = {}
    for column, spellings in SPELLINGS[role].items():
        matching = [name for name in names if plain(name) in spellings]
        sure = [name for name in matching if plain(name) not in _LAST_RESORT] or matching
        internal = {_INTERNAL.get(plain(name)) for name in sure}
        sure = [name for name in sure if plain(name) not in internal]
        exact = [name for name in sure if plain(name) == column]
        if len(exact) == 1:
            sure = exact
        if len(sure) > 1:
            raise InputError(
                f"columns {sure[0]!r} and {sure[1]!r} both mean {column}",
                file=file,
                line=line,
                fix="keep one of them",
            )
        if sure:
            chosen[column] = sure[0]
    missing = [name for name in _REQUIRED[role] if name not in chosen]
    if missing == ["score"] and "rank" in chosen:
        return chosen
    if missing:
        raise InputError(
            f"no column {missing[0]!r}; there are {_listed(names)}",
            file=file,
            line=line,
            fix=_rename(missing[0], names, role, chosen),
        )
    return chosen


def renamed(frame: pl.DataFrame, role: str, source: str) -> pl.DataFrame:
    """A data frame with the usual spellings of its columns replaced by karat's names.

    A run without scores gets them from its ranks, best first: score = -rank.

    Raises:
        InputError: a required column is missing, or two columns mean the same.
    """
    chosen = choose(frame.columns, role, source)
    frame = frame.rename({name: column for column, name in chosen.items()})
    if role == "run" and "score" not in chosen:
        frame = frame.with_columns(score=-pl.col("rank").cast(pl.Float64, strict=False)).drop(
            "rank"
        )
    return frame


def _rename(missing: str, names: Sequence[str], role: str, chosen: Mapping[str, str]) -> str:
    free = [name for name in names if name not in chosen.values()]
    near = nearest(missing, free, 1)
    if near:
        return f"rename {near[0]!r} to {missing!r}"
    spelt = ", ".join(SPELLINGS[role][missing])
    return f"name the columns in the first row; this one may be called {spelt}"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:12]) or "none"
    return f"{shown} and {len(names) - 12} more" if len(names) > 12 else shown
