"""Quepid's ratings: basic CSV, JSON, the ratings API, and learning-to-rank lines.

Quepid identifies queries by their text. Source: its exports and importers, versions 7 and 8,
``app/controllers/api/v1/{export,import}/ratings_controller.rb``.
"""

from __future__ import annotations

import re
from typing import Any

from karat.formats.exchange import rre
from karat.formats.exchange.export import Export, dumped
from karat.formats.exchange.import_ import UNRATED, ImportBuilder
from karat.formats.exchange.source_file import Node, SourceFile, graded
from karat.formats.tables.cells import whole

_LTR = re.compile(r"(\S+)\s+qid:(\S+)\s.*?#\s*(\S+)\s+(\S.*)")


def read_csv(gathered: ImportBuilder, foreign: SourceFile) -> None:
    """``query,docid,rating``; queries without ratings have empty cells."""
    sheet = gathered.sheet(foreign)
    names = [name.casefold().replace("_", "") for name in sheet.names]
    if sorted(names) != ["docid", "query", "rating"]:
        raise sheet.wrong(
            f"the columns are {', '.join(sheet.names[:8])}, not query, docid and rating"
        )
    for row in sheet.rows():
        cells = dict(zip(names, row.values(), strict=True))
        text, doc, rating = cells["query"], cells["docid"], cells["rating"].strip()
        if not text.strip():
            raise sheet.wrong("the query is empty")
        query = gathered.query(text)
        if not doc.strip() and rating:
            raise sheet.wrong("a rating without a document", query=text)
        if doc.strip() and rating:
            gathered.judge(query, doc, sheet.grade(rating, text), line=sheet.line)
        elif doc.strip():
            gathered.lose(UNRATED)


def write_csv(leaving: Export) -> bytes:
    """``query,docid,rating``; without a final newline, as in Quepid's files."""
    rows: list[tuple[str | float | None, ...]] = []
    for query, text in leaving.texts.items():
        rows += [(text, doc, grade) for doc, grade in leaving.grades(query)]
        if not leaving.of(query):
            rows.append((text, None, None))
    return leaving.sheet(("query", "docid", "rating"), rows).removesuffix(b"\n")


def read_json(gathered: ImportBuilder, foreign: SourceFile) -> None:
    """``{"queries": [{"query": TEXT, "ratings": {DOC: RATING}}]}``."""
    root = foreign.json()
    gathered.leave(root, ("queries",), "the file")
    for item in root.need("queries").list():
        query = gathered.entry(item.need("query").text())
        gathered.leave(item, ("query", "ratings"), "a query")
        if (ratings := item.get("ratings")) is not None:
            by_document(gathered, query, ratings)


def by_document(gathered: ImportBuilder, query: str, ratings: Node) -> None:
    """Add the ratings of ``{DOC: RATING}``."""
    for doc, rating in ratings.items():
        if not doc.strip():
            raise rating.wrong("the rating of a document: its id is empty")
        if rating.value is None:
            gathered.lose(UNRATED)
        else:
            gathered.judge(query, doc, rating.number(), node=rating)


def write_json(leaving: Export) -> bytes:
    """``{"queries": [{"query": TEXT, "ratings": {DOC: RATING}}]}``."""
    queries = [
        {"query": text, "ratings": dict(leaving.grades(query))}
        for query, text in leaving.texts.items()
    ]
    return dumped({"queries": queries})


def read_api(gathered: ImportBuilder, foreign: SourceFile) -> None:
    """A body of ``POST /api/import/ratings``: ``file_format`` hash, rre or ltr."""
    root = foreign.json()
    kind = root.get("file_format")
    known = ("case_id", "ratings", "file_format", "clear_queries", "rre_json", "ltr_text")
    if root.has("case_id"):
        gathered.lose("the number of the case")
    gathered.leave(root, known, "the file")
    if kind is not None and kind.value not in ("hash", "rre", "ltr"):
        raise kind.wrong("hash, rre or ltr")
    if root.has("ltr_text") and kind is not None and kind.value == "ltr":
        text = root.need("ltr_text")
        _lines(gathered, SourceFile(foreign.name, foreign.stem, text.text().encode()))
    elif kind is not None and kind.value == "rre":
        node = root.need("rre_json")
        inner = node.text().encode() if isinstance(node.value, str) else dumped(node.value)
        rre.gather(gathered, SourceFile(foreign.name, foreign.stem, inner).json())
    else:
        for item in root.need("ratings").list():
            query = gathered.query(item.need("query_text").text())
            gathered.leave(item, ("query_text", "doc_id", "rating"), "a rating")
            doc, rating = item.get("doc_id"), item.get("rating")
            if doc is not None and rating is not None:
                gathered.judge(query, doc.identifier(), rating.number(), node=rating)
            elif doc is not None:
                gathered.lose(UNRATED)


def write_api(leaving: Export) -> bytes:
    """A body for ``POST /api/import/ratings``, as ``hash``; the case is a placeholder."""
    ratings: list[dict[str, Any]] = [
        {"query_text": leaving.texts[r.query_id], "doc_id": r.doc_id, "rating": whole(r.grade)}
        for r in leaving.judgments
        if r.grade is not None
    ]
    ratings += [
        {"query_text": text, "doc_id": None, "rating": None}
        for query, text in leaving.texts.items()
        if not leaving.of(query)
    ]
    if any(text != text.strip() for text in leaving.texts.values()):
        leaving.assumed.append("Quepid strips white space around queries")
    leaving.assumed.append("case_id is empty: set the number of your case")
    head = {"case_id": None, "file_format": "hash", "clear_queries": False}
    return dumped({**head, "ratings": ratings})


def read_ltr(gathered: ImportBuilder, foreign: SourceFile) -> None:
    """Lines such as ``3 qid:1 # 1370 star trek``."""
    _lines(gathered, foreign)


def _lines(gathered: ImportBuilder, foreign: SourceFile) -> None:
    texts: dict[str, str] = {}
    for line, text in foreign.lines():
        match = _LTR.fullmatch(text)
        if match is None:
            raise foreign.wrong("expected a line such as 3 qid:1 # 1370 star trek", line=line)
        rating, qid, doc, query = match.groups()
        if texts.setdefault(qid, query) != query:
            raise foreign.wrong(
                f"qid:{qid} has two queries, {texts[qid]!r} and {query!r}", line=line
            )
        grade = graded(rating, foreign.name, line, query)
        gathered.judge(gathered.query(query, qid), doc, grade, line=line)
        features = text.partition("#")[0].split()[2:]
        if features:
            gathered.lose("features of a line")


def write_ltr(leaving: Export) -> bytes:
    """Lines such as ``3 qid:1 # 1370 star trek``, numbered in order."""
    numbers = {query: place for place, query in enumerate(leaving.texts, 1)}
    if any(str(place) != query for query, place in numbers.items()):
        leaving.lost.append("the ids of queries: qid counts from 1")
    leaving.refuse((r.doc_id for r in leaving.judgments), " \t\r\n\v\f", "a line of ratings")
    leaving.refuse(leaving.texts.values(), "\r\n\v\f", "a line of ratings")
    if any(text != text.strip() for text in leaving.texts.values()):
        leaving.lost.append("white space around queries")
    lines = (
        f"{grade} qid:{numbers[query]} # {doc} {text.strip()}\n"
        for query, text in leaving.texts.items()
        for doc, grade in leaving.grades(query)
    )
    return "".join(lines).encode()
