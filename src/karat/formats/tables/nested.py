"""Nested JSON, ``{query: {document: number}}``, as in ranx and pytrec_eval.

``{query: [document, …]}`` is read too: in a run the documents best first, in judgments the relevant
documents, with grade 1. In a run, ``{}`` is a query that returned nothing and ``null`` one that
failed; in judgments, ``[]`` is a query without relevant documents. A duplicate query or document is
an error: parsers silently keep one.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

import polars as pl

from karat.errors import InputError
from karat.formats.tables.cells import Careful, whole
from karat.formats.tables.format import Format, Rows, parts_of, refuse_subtopics
from karat.formats.tables.jsonl import parsed
from karat.formats.tables.source import Source
from karat.tables import Qrels, Run


class _Pairs(list[tuple[str, Any]]):
    """An object with all its pairs, including duplicate keys."""


def read(source: Source, role: str) -> Rows:
    data = source.whole()
    table = parsed(data, source.name, 1, _Pairs)
    if not isinstance(table, _Pairs):
        raise _shape(source, "", 1)
    number = "grade" if role == "qrels" else "score"
    finder = _Place(data)
    columns: dict[str, list[Any]] = {"query_id": [], "doc_id": [], number: []}
    states: dict[str, str] = {}
    without: list[str] = []
    seen: set[str] = set()
    careful = Careful(source.name)
    for query, value in table:
        documents = value
        if query in seen:
            raise source.wrong(
                "duplicate query",
                line=finder.line(query, second=True),
                query=query,
                fix="put its documents into one object",
            )
        seen.add(query)
        if not query:
            raise source.wrong("a query_id is empty", line=finder.line(query))
        if documents is None and role == "run":
            states[query] = "failed"
            continue
        if isinstance(documents, list) and not isinstance(documents, _Pairs):
            if not documents:
                without.append(query)
            documents = _listed(documents, query, role, source, finder)
        if not isinstance(documents, _Pairs):
            raise _shape(source, query, finder.line(query))
        if not documents:
            states[query] = "empty"
        _check(documents, query, number, careful, finder)
        columns["query_id"] += [query] * len(documents)
        columns["doc_id"] += [doc for doc, _ in documents]
        columns[number] += [float(value) for _, value in documents]
    schema = {"query_id": pl.String, "doc_id": pl.String, number: pl.Float64}
    answers = pl.DataFrame(
        {"query_id": list(states), "state": list(states.values())},
        schema={"query_id": pl.String, "state": pl.String},
    )
    frame = pl.DataFrame(columns, schema=schema)
    if role == "qrels":
        return Rows([frame], about=lambda: {"without": json.dumps(without)} if without else {})
    return Rows([frame], answers if states else None)


def _listed(docs: list[Any], query: str, role: str, source: Source, finder: _Place) -> _Pairs:
    """The documents of a list with numbers: grade 1, or the score -rank."""
    odd = next((doc for doc in docs if not isinstance(doc, str)), None)
    if odd is not None:
        raise source.wrong(
            f"the list of documents contains {_shown(odd)}; expected ids, as strings",
            line=finder.line(query),
            query=query,
            fix='{"q1": ["a", "b"]}, or with numbers {"q1": {"a": 2, "b": 1}}',
        )
    if role == "qrels":
        return _Pairs((doc, 1.0) for doc in docs)
    return _Pairs((doc, float(-rank)) for rank, doc in enumerate(docs, 1))


def _check(docs: _Pairs, query: str, number: str, careful: Careful, finder: _Place) -> None:
    """Refuse duplicate documents and values that are not numbers."""
    if len(dict(docs)) < len(docs):
        names = [doc for doc, _ in docs]
        twice = next(doc for i, doc in enumerate(names) if doc in names[:i])
        raise InputError(
            f"duplicate document {twice}",
            file=careful.source,
            line=finder.line(query, twice, second=True),
            query=query,
            doc_id=twice,
            fix="keep one of them",
        )
    for doc, value in docs:
        if doc and _is_number(value, infinite=number == "score"):
            continue
        line = finder.line(query, doc)
        what = (
            "a doc_id is empty"
            if not doc
            else f"the {number} of document {doc} is {_shown(value)}, not a number"
        )
        raise InputError(what, file=careful.source, line=line, query=query, doc_id=doc or None)


def _is_number(value: Any, *, infinite: bool) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return not math.isnan(value) and (infinite or math.isfinite(value))
    except OverflowError:
        return False  # an integer beyond the range of floats


def _shown(value: Any) -> str:
    if isinstance(value, _Pairs):
        return "an object"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 40 else text[:40] + "…"


def _shape(source: Source, query: str, line: int | None) -> InputError:
    return source.wrong(
        "the query has no object of documents" if query else "the file is not a JSON object",
        line=line,
        query=query or None,
        fix="nested JSON is {query: {document: number}} or {query: [document, …]}",
    )


class _Place:
    """Finds the line of a key, for errors."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def line(self, query: str, doc: str | None = None, *, second: bool = False) -> int | None:
        """The line of a query, or of a document of it."""
        at = self._key(query, 0, second=second and doc is None)
        if at is not None and doc is not None:
            at = self._key(doc, at + 1, second=second)
        return None if at is None else self._data.count(b"\n", 0, at) + 1

    def _key(self, key: str, start: int, *, second: bool) -> int | None:
        spelt = {json.dumps(key), json.dumps(key, ensure_ascii=False)}
        either = "|".join(re.escape(spelling) for spelling in sorted(spelt))
        matches = re.compile(rf"(?:{either})\s*:".encode()).finditer(self._data, start)
        first = next(matches, None)
        match = next(matches, first) if second else first
        return match.start() if match else None


def _write(table: Iterable[tuple[str, Mapping[str, float] | None]], stream: IO[bytes]) -> None:
    stream.write(b"{")
    between = "\n"
    for query, docs in table:
        pairs = None if docs is None else {doc: whole(value) for doc, value in docs.items()}
        key, value = (json.dumps(part, ensure_ascii=False) for part in (query, pairs))
        stream.write(f"{between}{key}: {value}".encode())
        between = ",\n"
    stream.write(b"\n}\n")


def _write_qrels(qrels: Qrels, stream: IO[bytes]) -> None:
    refuse_subtopics(qrels, "nested JSON")
    _write(qrels.to_dict().items(), stream)


def _write_run(run: Run, stream: IO[bytes]) -> None:
    _write(_by_query(run), stream)


def _by_query(run: Run) -> Iterator[tuple[str, Mapping[str, float] | None]]:
    for part in parts_of(run):
        yield from part.to_dict().items()
        for query, state in part.answers.select("query_id", "state").iter_rows():
            if state == "failed":
                yield query, None


JSON = Format(
    name="json",
    what="nested JSON, {query: {document: number}} or {query: [document, …]}, as in ranx and "
    "pytrec_eval",
    extensions=(".json",),
    readers={
        "qrels": lambda source: read(source, "qrels"),
        "run": lambda source: read(source, "run"),
    },
    writers={"qrels": _write_qrels, "run": _write_run},
)
