"""Quepid cases, as JSON and as the CSV files that its web app exports.

Source: ``app/views/api/v1/export/cases``, ``app/services/case_importer.rb`` and
``app/assets/javascripts/services/caseCSVSvc.js``. The search engine of a case (its try and
endpoint, which may include a password) is never imported.
"""

from __future__ import annotations

from typing import Any

from karat.formats.exchange.export import Export, dumped
from karat.formats.exchange.import_ import UNRATED, ImportBuilder
from karat.formats.exchange.quepid import by_document
from karat.formats.exchange.quepid_books import about, written
from karat.formats.exchange.source_file import SourceFile
from karat.formats.tables.cells import whole

_QUERY = ("query_text", "ratings", "information_need", "notes", "options")
_ORDER = ("arranged_at", "arranged_next")
_LOST = {
    "try": "the try, with its search endpoint (karat engine import takes it)",
    "scorer": "the scorer",
}


def read(gathered: ImportBuilder, foreign: SourceFile) -> None:
    root = foreign.json()
    for key, what in _LOST.items():
        if root.has(key):
            gathered.lose(what)
    gathered.leave(root, ("queries", *_LOST), "the case")
    for item in root.need("queries").list():
        query = gathered.entry(item.need("query_text").text(), **about(item))
        gathered.leave(item, (*_QUERY, *_ORDER), "a query")
        if any(item.has(key) for key in _ORDER):
            gathered.lose("the display order of a query")
        ratings = item.get("ratings")
        if ratings is not None and isinstance(ratings.value, dict):
            by_document(gathered, query, ratings)
            continue
        for rating in item.each("ratings"):
            gathered.leave(rating, ("doc_id", "rating", "user_email"), "a rating")
            doc, grade = rating.need("doc_id").identifier(), rating.get("rating")
            if grade is None:
                gathered.lose(UNRATED)
                continue
            rater = rating.text_of("user_email")
            gathered.judge(query, doc, grade.number(), rater, node=grade)


def write(leaving: Export) -> bytes:
    """A case as JSON; scorer and search engine are placeholders."""
    queries = []
    for query, text in leaving.texts.items():
        ratings: list[dict[str, Any]] = []
        for rated in leaving.of(query):
            if rated.grade is not None:
                named = {} if rated.rater is None else {"user_email": rated.rater}
                ratings.append({"doc_id": rated.doc_id, "rating": whole(rated.grade), **named})
        columns = written(leaving.queries[query])
        queries.append({"query_text": text, **columns, "ratings": ratings})
    leaving.assumed.append(
        "the scorer is nDCG@10 and the search engine Quepid's static one: replace them by yours"
    )
    engine = {"search_engine": "static", "endpoint_url": "http://localhost/", "api_method": "GET"}
    case = {"case_name": "karat", "public": False, "archived": False, "scorer": {"name": "nDCG@10"}}
    tried = {"name": "karat", "query_params": "#$query##", "search_endpoint": engine}
    return dumped({**case, "queries": queries, "try": tried})


def read_csv(gathered: ImportBuilder, foreign: SourceFile) -> None:
    """The general, detailed or information need export of a case; read only."""
    sheet = gathered.sheet(foreign)
    names = {name.casefold().replace("_", " "): name for name in sheet.names}
    text_of = names.get("query text") or names.get("query")
    if text_of is None:
        raise sheet.wrong("no column Query Text")
    if not names.keys() & {"information need", "case name"}:
        raise sheet.wrong(f"not a Quepid case: its columns are {', '.join(sheet.names[:8])}")
    used = {"query text", "query", "information need", "notes", "options"}
    used |= {"doc id", "doc position", "title", "rating"}
    case = ("team name", "case name", "case id", "score", "date last scored", "count")
    for name in case:
        if name in names:
            gathered.lose(f"the column {names[name]!r}")
    detailed = "doc id" in names
    fields = [name for key, name in names.items() if key not in used and key not in case]
    if not detailed:
        for name in fields:
            gathered.lose(f"the column {name!r}")
    for row in sheet.rows():
        cells = {key: row[name] for key, name in names.items()}
        text = row[text_of]
        if not text.strip():
            raise sheet.wrong("the query is empty")
        query = gathered.query(
            text,
            need=cells.get("information need"),
            notes=cells.get("notes"),
            options=cells.get("options"),
        )
        doc = cells.get("doc id", "")
        if not detailed or not doc.strip():
            continue
        gathered.document(doc, {"title": cells.get("title")} | {name: row[name] for name in fields})
        rating = cells.get("rating", "").strip()
        if rating and rating not in ("null", "undefined", "--"):
            gathered.judge(query, doc, sheet.grade(rating, text), line=sheet.line)
        if place := cells.get("doc position", "").strip():
            sheet.position(place)
            gathered.rank(foreign.stem, query, doc)
