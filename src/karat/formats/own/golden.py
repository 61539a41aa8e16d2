"""Golden sets: queries with their text, attributes and judged documents.

Two formats, distinguished by content. karat's own::

    {"karat_golden_set": 1, "name": "docs", "scale": [0, 3], "queries": [ITEM, ITEM]}

and a plain list of items, as a JSON array or one object per line. An item is::

    {"query": "join two lists", "relevant_docs": {"a": 3, "b": 0}, "category": "task"}

``relevant_docs`` may be a list of ids, with grade 1 each. If it is empty, the query was judged and
has no relevant document; if it is missing or null, the query is not judged yet. ``query_id`` may be
omitted in all items of a plain list: they are then q1, q2, … in order. ``no_answer: true`` marks a
query without a right answer, ``sources`` gives the source of grades that are not by a person, and
every other key is an attribute.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from karat.errors import InputError, UsageError, nearest
from karat.formats.own import fields
from karat.formats.tables.cells import whole
from karat.formats.tables.detect import refuse_binary
from karat.formats.tables.format import Format, Rows
from karat.formats.tables.jsonl import parsed
from karat.formats.tables.source import Source
from karat.golden.query import (
    PERSON,
    GoldenQuery,
    ImportedExchange,
    Where,
    golden_query,
    identifier,
    judgment_frame,
    query_frame,
    short,
    text_of,
    without_relevant,
)
from karat.tables.schema import Scale, read_scale

VERSION = 1  # version of karat's own format

_MARK = "karat_golden_set"
_OWN = re.compile(rb'\s*\{\s*"karat_golden_set"\s*:')
IDS = ("query_id", "qid", "id", "_id")  # names of the query id
_TEXTS = ("query", "text")
_MISNAMED = {
    "relevant",
    "relevance",
    "relevances",
    "relevant_documents",
    "relevant_ids",
    "relevant_doc_ids",
    "docs",
    "documents",
    "grades",
    "labels",
    "ratings",
    "judgments",
    "judgements",
    "qrels",
}  # a query with one of these was judged, but under a wrong key
_AN_ITEM = '{"query": "join two lists", "relevant_docs": {"a": 3, "b": 0}}'


@dataclass(frozen=True, slots=True)
class GoldenFile:
    """The content of a file: queries in order, and name and scale if it states them."""

    queries: list[GoldenQuery]
    name: str | None = None
    scale: tuple[float, float] | None = None


def parse(data: bytes, name: str) -> GoldenFile:
    """A golden set from bytes; raises InputError with line or item if it is not one."""
    if data.lstrip()[:1] not in (b"{", b"["):
        raise InputError(
            "not a golden set: the file is not JSON", file=name, line=1, fix=f"a list of {_AN_ITEM}"
        )
    if data.lstrip().startswith(b"["):
        return GoldenFile(listed(parsed(data, name, 1, _Object), name))
    content = _own(data, name)
    if content is None:
        return GoldenFile(_gather(_lines(data, name), None))
    _refuse_twice(content, Where(name))
    fields.check_version(content[_MARK], VERSION, "golden set", name, f'"{_MARK}": {VERSION}')
    scale = _scale(content.get("scale"), name)
    if not isinstance(content.get("queries"), list):
        raise InputError("the golden set has no list of queries", file=name)
    title = content.get("name")
    if title is not None:
        title = text_of(title, "name", Where(name), None)
    return GoldenFile(listed(content["queries"], name, scale), title, scale)


def listed(
    items: Sequence[Any], name: str, scale: tuple[float, float] | None = None
) -> list[GoldenQuery]:
    """Queries from items (see the module's docstring); errors give the item's number, from 1."""
    return _gather(((Where(name, item=i), item) for i, item in enumerate(items, 1)), scale)


def read(path: str | Path) -> GoldenFile:
    """Read a golden set from a file, plain or compressed, or ``-`` for standard input."""
    with Source(path) as source:
        refuse_binary(source)
        return parse(source.whole(), source.name)


def is_own(data: bytes, name: str) -> bool:
    """Whether a golden set is in karat's own format rather than a plain list."""
    return not data.lstrip().startswith(b"[") and _own(data, name) is not None


def to_bytes(golden: GoldenFile) -> bytes:
    """Bytes in karat's own format, one query per line; equal golden sets give equal bytes."""
    scale = None if golden.scale is None else [whole(value) for value in golden.scale]
    head = {"karat_golden_set": VERSION, "name": golden.name, "scale": scale}
    stated = {key: value for key, value in head.items() if value is not None}
    return fields.to_bytes({**stated, "queries": [_item(query) for query in golden.queries]})


SIMPLE = ("query", "relevant_docs", "category", "difficulty")
"""The keys of each object in the simple format."""


def simple(queries: Iterable[GoldenQuery]) -> bytes:
    """A JSON array of objects with the keys of ``SIMPLE``, one query per line, for other programs.

    Queries that are not judged yet are omitted, as are ids, other attributes, sources and the
    scale; ``category`` and ``difficulty`` may be null.
    """
    lines = ",\n".join(
        fields.dumped(
            {
                "query": query.text,
                "relevant_docs": {doc: whole(j.grade) for doc, j in query.judgments.items()},
                "category": query.attributes.get("category"),
                "difficulty": query.attributes.get("difficulty"),
            }
        )
        for query in queries
        if query.judged
    )
    return f"[\n{lines}\n]\n".encode()


class _Object(dict[str, Any]):
    """An object that remembers a duplicate key."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.twice: str | None = None
        if len(self) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            self.twice = next(key for key, _ in pairs if counts[key] > 1)


def _refuse_twice(value: Any, where: Where, query: str | None = None) -> None:
    if isinstance(value, _Object) and value.twice is not None:
        raise where.wrong(f"duplicate key {value.twice!r}", query, fix="keep one")


def _own(data: bytes, name: str) -> _Object | None:
    """The object of karat's own format, with its keys in any order."""
    if _OWN.match(data):
        return cast(_Object, parsed(data, name, 1, _Object))
    if f'"{_MARK}"'.encode() not in data:
        return None
    try:
        content = parsed(data, name, 1, _Object)
    except InputError:
        return None  # more than one object: a list
    return content if isinstance(content, _Object) and _MARK in content else None


def _lines(data: bytes, name: str) -> Iterator[tuple[Where, Any]]:
    for line, raw in enumerate(data.split(b"\n"), 1):
        if raw.strip():
            yield Where(name, line=line), parsed(raw, name, line, _Object)


def _gather(
    items: Iterable[tuple[Where, Any]], scale: tuple[float, float] | None
) -> list[GoldenQuery]:
    gathered = ImportedExchange()
    for where, item in items:
        query, named = _of_item(item, gathered.fresh(), where, scale)
        gathered.refuse(query.query_id, query.text, named=named, where=where)
        gathered.put(query)
    return list(gathered.queries.values())


def _of_item(
    item: Any, made: str, where: Where, scale: tuple[float, float] | None
) -> tuple[GoldenQuery, bool]:
    """The query of an item, and whether it came with an id."""
    if not isinstance(item, Mapping):
        raise where.wrong(f"expected a query, got {short(item)}", fix=_AN_ITEM)
    if any(not isinstance(key, str) for key in item):
        raise where.wrong("a key is not text", fix=_AN_ITEM)
    key = next((key for key in IDS if item.get(key) is not None), None)
    query_id = made if key is None else identifier(item[key], "query_id", where)
    _refuse_twice(item, where, query_id)
    texts = [key for key in _TEXTS if key in item]
    if len(texts) > 1:
        raise where.wrong("both 'query' and 'text' are set", query_id, fix="keep one")
    if not texts:
        raise where.wrong(f"no key 'query'; the keys are {_names(item)}", fix=_AN_ITEM)
    if "relevant_docs" not in item:
        wrong = [name for name in item if name.casefold() in _MISNAMED]
        wrong += [name for name in nearest("relevant_docs", item, 1) if _like(name)]
        if wrong:
            raise where.wrong(
                f"no key 'relevant_docs'; the keys are {_names(item)}",
                query_id,
                fix=f"rename {wrong[0]!r} to 'relevant_docs', or to something else if it does not "
                "contain judged documents",
            )
    no_answer = item.get("no_answer", False)
    relevant = item.get("relevant_docs")
    _refuse_twice(relevant, where, query_id)
    _refuse_twice(item.get("sources"), where, query_id)
    used = {key, *texts, "relevant_docs", "sources", "no_answer"}
    others = {name: value for name, value in item.items() if name not in used}
    if key == "_id" and isinstance(others.get("metadata"), Mapping):  # a line of BEIR's queries
        others = {**others.pop("metadata"), **others}
    query = golden_query(
        where,
        query_id,
        item[texts[0]],
        relevant,
        no_answer=no_answer,
        sources=item.get("sources"),
        scale=scale,
        attributes={
            name: json.dumps(value, ensure_ascii=False, default=str)
            if isinstance(value, dict | list)
            else value
            for name, value in others.items()
        },
    )
    return query, key is not None


def _item(query: GoldenQuery) -> dict[str, Any]:
    out: dict[str, Any] = {"query_id": query.query_id, "query": query.text, **query.attributes}
    if query.no_answer:
        out["no_answer"] = True
    if query.judged:
        out["relevant_docs"] = {doc: whole(j.grade) for doc, j in query.judgments.items()}
    sources = {doc: j.source for doc, j in query.judgments.items() if j.source != PERSON}
    return out | ({"sources": sources} if sources else {})


def _scale(value: Any, name: str) -> Scale | None:
    if value is None:
        return None
    try:
        return read_scale(value)
    except UsageError:
        raise InputError(
            f"invalid scale {short(value)}", file=name, fix='"scale": [0, 3]'
        ) from None


def _like(name: str) -> bool:
    """Whether a key is probably a misspelling of ``relevant_docs``."""
    return "rel" in name.casefold() and "doc" in name.casefold()


def _names(item: Mapping[str, Any]) -> str:
    return ", ".join(repr(name) for name in list(item)[:12]) or "nothing"


def _rows(source: Source, role: str) -> Rows:
    golden = parse(source.whole(), source.name)
    if role == "queries":
        return Rows([query_frame(golden.queries, source.name)])
    about = {} if golden.scale is None else {"scale": f"{golden.scale[0]!r} {golden.scale[1]!r}"}
    if without := without_relevant(golden.queries):
        about["without"] = json.dumps(without)
    return Rows([judgment_frame(golden.queries)], about=lambda: about)


GOLDEN = Format(
    name="golden",
    what="a karat golden set, or a plain list of queries with relevant_docs",
    readers={
        "qrels": lambda source: _rows(source, "qrels"),
        "queries": lambda source: _rows(source, "queries"),
    },
)
