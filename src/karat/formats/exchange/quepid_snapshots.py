"""Quepid's snapshots of a case's results, which become runs.

Source: ``app/views/api/v1/snapshots/_snapshot.json.jbuilder`` (export),
``app/services/snapshot_manager.rb`` (import) and
``app/assets/javascripts/services/caseCSVSvc.js`` (CSV). They have positions and no scores.
"""

from __future__ import annotations

from typing import Any

from karat.formats.exchange.export import Export, dumped
from karat.formats.exchange.import_ import ImportBuilder
from karat.formats.exchange.quepid import by_document
from karat.formats.exchange.quepid_books import as_fields
from karat.formats.exchange.source_file import Node, SourceFile

HEADER = ("Snapshot Name", "Snapshot Time", "Case ID", "Query Text", "Doc ID", "Doc Position")
_NAMES = {
    "snapshot name": "name",
    "snapshot time": "time",
    "case id": "case",
    "query text": "query",
    "query": "query",
    "doc id": "doc",
    "doc": "doc",
    "docid": "doc",
    "doc position": "position",
    "position": "position",
}


def read_csv(gathered: ImportBuilder, foreign: SourceFile) -> None:
    """A CSV file of snapshots, of a static endpoint, or of Quepid's command line."""
    sheet = gathered.sheet(foreign)
    meant = {name: _NAMES.get(name.casefold().replace("_", " ")) for name in sheet.names}
    column = {what: name for name, what in meant.items() if what is not None}
    lacking = [what for what in ("query", "doc", "position") if what not in column]
    if lacking:
        raise sheet.wrong(
            f"no column for the {lacking[0]}; the columns are {', '.join(sheet.names[:8])}",
            fix=",".join(HEADER),
        )
    fields = [name for name, what in meant.items() if what is None]
    for what, note in (("time", "the time of a snapshot"), ("case", "the number of the case")):
        if what in column:
            gathered.lose(note)
    ranked: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for row in sheet.rows():
        text, doc = row[column["query"]], row[column["doc"]]
        run = row[column["name"]] if "name" in column else foreign.stem
        if not text.strip() or not run.strip():
            raise sheet.wrong("the query or the name is empty")
        query = gathered.query(text)
        ranking = ranked.setdefault((run, query), [])
        if not doc.strip():
            gathered.lose("queries without results")
            continue
        ranking.append((sheet.position(row[column["position"]].strip()), doc))
        gathered.document(doc, {name: row[name] for name in fields})
    for (run, query), ranking in ranked.items():
        gathered.run(run)
        for _, doc in sorted(ranking, key=lambda each: each[0]):
            gathered.rank(run, query, doc)


def write_csv(leaving: Export) -> bytes:
    names = dict.fromkeys(name for row in leaving.documents.values() for name in row)
    rows = []
    for run, queries in leaving.runs.items():
        for query, ranking in queries.items():
            for place, (doc, _) in enumerate(ranking, 1):
                fields = leaving.documents.get(doc, {})
                cells = [None if fields.get(name) is None else str(fields[name]) for name in names]
                rows.append((run, None, None, leaving.texts[query], doc, place, *cells))
    _check_runs(leaving)
    return leaving.sheet((*HEADER, *names), rows)


def _check_runs(leaving: Export) -> None:
    if not leaving.runs:
        raise leaving.wrong(f"no runs to write, and {leaving.format} stores nothing else")
    leaving.lost.append("scores: the format stores positions")
    leaving.assumed.append("time and case are empty: Quepid asks for the case on import")


def read(gathered: ImportBuilder, foreign: SourceFile) -> None:
    """Snapshots as JSON: one as exported, or several as imported."""
    root = foreign.json()
    if root.has("snapshots"):
        gathered.leave(root, ("snapshots",), "the file")
        for snapshot in root.each("snapshots"):
            _imported(gathered, snapshot, foreign.stem)
    else:
        _exported(gathered, root, foreign.stem)


def _imported(gathered: ImportBuilder, node: Node, stem: str) -> None:
    name = node.get("name")
    run = name.text() if name else stem
    gathered.leave(node, ("name", "queries"), "a snapshot")
    gathered.run(run)
    for text, query in node.need("queries").items():
        if not text.strip():
            raise query.wrong("the results of a query: its text is empty")
        gathered.leave(query, ("docs",), "a query")
        query_id = gathered.query(text)
        docs = list(query.each("docs"))
        places = [doc.get("position") for doc in docs]
        if all(place is not None for place in places):
            order = {
                id(doc): place.number() for doc, place in zip(docs, places, strict=True) if place
            }
            docs.sort(key=lambda doc: order[id(doc)])
        _ranked(gathered, run, query_id, docs)


def _exported(gathered: ImportBuilder, root: Node, stem: str) -> None:
    name = root.get("name")
    run = name.text() if name else stem
    gathered.leave(root, ("name", "docs", "queries"), "the snapshot")
    gathered.run(run)
    for query in root.each("queries"):
        query_id = query.need("query_id").identifier()
        need, notes = query.get("information_need"), query.get("notes")
        gathered.query(
            query.need("query_text").text(),
            query_id,
            need=need.value if need and isinstance(need.value, str) else None,
            notes=notes.value if notes and isinstance(notes.value, str) else None,
        )
        if (ratings := query.get("ratings")) is not None:
            by_document(gathered, query_id, ratings)
    for query_id, docs in root.need("docs").items():
        if not query_id.strip():
            raise docs.wrong("a ranking: the id of its query is empty")
        gathered.query(None, query_id)
        _ranked(gathered, run, query_id, list(docs.list()))


def _ranked(gathered: ImportBuilder, run: str, query_id: str, docs: list[Node]) -> None:
    if not docs:
        gathered.lose("queries answered with nothing")
    for doc in docs:
        gathered.leave(doc, ("id", "position", "fields"), "a document")
        doc_id = doc.need("id").identifier()
        gathered.rank(run, query_id, doc_id)
        if (fields := doc.get("fields")) is not None:
            gathered.document(doc_id, {key: value.value for key, value in fields.items()})


def write(leaving: Export) -> bytes:
    """A body for ``POST /api/cases/ID/snapshots/imports``."""
    _check_runs(leaving)
    snapshots: list[dict[str, Any]] = []
    for run, queries in leaving.runs.items():
        answers = {}
        for query, ranking in queries.items():
            docs: list[dict[str, Any]] = []
            for place, (doc, _) in enumerate(ranking, 1):
                document: dict[str, Any] = {"id": doc, "position": place}
                if fields := leaving.documents.get(doc):
                    document["fields"] = as_fields(fields)
                docs.append(document)
            answers[leaving.texts[query]] = {"docs": docs}
        snapshots.append({"name": run, "queries": answers})
    return dumped({"snapshots": snapshots})
