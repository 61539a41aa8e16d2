"""Quepid's books, with several raters: CSV with one column per rater, and JSON.

Source: ``app/controllers/api/v1/judgements_controller.rb`` and ``app/views/api/v1/export/books``.
The JSON may be in a ZIP file.
"""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

from karat.errors import InputError
from karat.formats.exchange.export import Export, Rated, dumped, unpacked
from karat.formats.exchange.import_ import UNRATED, ImportBuilder
from karat.formats.exchange.source_file import Node, SourceFile
from karat.formats.tables.cells import whole
from karat.formats.tables.jsonl import parsed

ANONYMOUS = "Anonymous"
_PAIR = ("query_text", "doc_id", "judgements", "information_need", "notes", "options")


def read_csv(gathered: ImportBuilder, foreign: SourceFile) -> None:
    """``query,docid,<judge>…``: one column per judge, ``Anonymous`` without a name."""
    sheet = gathered.sheet(foreign)
    if [name.casefold() for name in sheet.names] == ["query", "docid"]:
        raise sheet.wrong(
            "the book has no ratings yet: it has no column of a judge",
            fix="export it again when it is rated, or as JSON, which includes its documents",
        )
    if [name.casefold() for name in sheet.names[:2]] != ["query", "docid"] or not sheet.names[2:]:
        raise sheet.wrong(
            f"the columns are {', '.join(sheet.names[:8])}, not query, docid and one per judge"
        )
    judges = sheet.names[2:]
    if "" in judges:
        raise sheet.wrong("a column has no name")
    if sheet.twice:
        gathered.assumed.append(
            f"several judges are called {', '.join(sheet.twice)}: the second is imported as "
            f"{sheet.twice[0]} (2), and so on"
        )
    for row in sheet.rows():
        text, doc, *cells = row.values()
        if not text.strip() or not doc.strip():
            lacks = "docid" if text.strip() else "query"
            raise sheet.wrong(f"the {lacks} is empty")
        query = gathered.query(text)
        for judge, cell in zip(judges, cells, strict=True):
            if cell.strip():
                rater = None if judge == ANONYMOUS else judge
                grade = sheet.grade(cell.strip(), text)
                gathered.judge(query, doc, grade, rater, line=sheet.line)
        if not any(cell.strip() for cell in cells):
            gathered.lose(UNRATED)


def write_csv(leaving: Export) -> bytes:
    """``query,docid,<judge>…``."""
    _refuse_repeated(leaving)
    named = {rated.rater: rated.rater or ANONYMOUS for rated in leaving.judgments}
    if named.get(None) and ANONYMOUS in [name for rater, name in named.items() if rater]:
        raise leaving.wrong(
            f"a rater is called {ANONYMOUS}, Quepid's name for raters without a name"
        )
    rows = []
    for (query, doc), of in _pairs(leaving).items():
        by = {rated.rater: rated.grade for rated in of}
        grades = (by.get(rater) for rater in named)
        cells = (None if grade is None else whole(grade) for grade in grades)
        rows.append((leaving.texts[query], doc, *cells))
    return leaving.sheet(("query", "docid", *named.values()), rows)


def read(gathered: ImportBuilder, foreign: SourceFile) -> None:
    """A book as JSON: its pairs and their judgments."""
    root = foreign.json()
    gathered.leave(root, ("query_doc_pairs",), "the book")
    for pair in root.need("query_doc_pairs").list():
        others = about(pair)
        query = gathered.query(pair.need("query_text").text(), **others)
        doc = pair.need("doc_id").identifier()
        gathered.leave(pair, (*_PAIR, "document_fields"), "a pair")
        if (fields := pair.get("document_fields")) is not None:
            gathered.document(doc, _fields(gathered, fields))
        judgements = list(pair.each("judgements"))
        if not judgements:
            gathered.lose(UNRATED)
        for judgement in judgements:
            _judge(gathered, query, doc, judgement)


def about(node: Node) -> dict[str, str]:
    """Information need, notes and options of a query, as columns."""
    out = {}
    for key, column in (("information_need", "need"), ("notes", "notes"), ("options", "options")):
        value_node = node.get(key)
        if value_node is None or value_node.value in ("", "{}", {}, []):
            continue
        if isinstance(value_node.value, dict | list):
            out[column] = json.dumps(value_node.value, ensure_ascii=False)
        else:
            out[column] = value_node.text()
    return out


def _fields(gathered: ImportBuilder, node: Node) -> dict[str, Any]:
    """The fields of a document, from JSON in a string."""
    value = node.value
    if isinstance(value, str):
        try:
            value = parsed(value.encode(), node.file, 1) if value.strip() else {}
        except InputError:
            value = None
    if not isinstance(value, dict):
        gathered.lose("'document_fields' that are not an object")
        return {}
    return value


def _judge(gathered: ImportBuilder, query: str, doc: str, node: Node) -> None:
    known = ("rating", "unrateable", "judge_later", "user_email", "explanation")
    gathered.leave(node, known, "a judgment")
    rater, reason = node.text_of("user_email"), node.text_of("explanation")
    rating = node.get("rating")
    if node.flag("unrateable"):
        if rating is not None:
            gathered.lose("a rating of a document marked as unrateable")
        grade = None
    elif rating is not None:
        grade = rating.number()
    else:
        gathered.lose("judgments postponed" if node.flag("judge_later") else UNRATED)
        return
    if rater is None:
        # In Quepid a rater judges a pair once, so further judgments are by other raters.
        rater = gathered.nameless(query, doc)
    gathered.judge(query, doc, grade, rater, reason, node=rating or node)


def write(leaving: Export) -> bytes:
    pairs = []
    _refuse_repeated(leaving)
    for (query, doc), of in _pairs(leaving).items():
        row = leaving.queries[query]
        pair: dict[str, Any] = {"query_text": leaving.texts[query], "doc_id": doc}
        if fields := leaving.documents.get(doc):
            plain = as_fields(fields)
            pair["document_fields"] = json.dumps(plain, ensure_ascii=False, default=str)
        pair |= written(row)
        pair["judgements"] = [
            {
                "rating": None if rated.grade is None else whole(rated.grade),
                "unrateable": rated.grade is None,
                "judge_later": False,
                **({} if rated.rater is None else {"user_email": rated.rater}),
                "explanation": rated.reason,
            }
            for rated in of
        ]
        pairs.append(pair)
    grades = sorted({rated.grade for rated in leaving.judgments if rated.grade is not None})
    scale = ",".join(str(whole(grade)) for grade in grades)
    leaving.assumed += ["the book's scale consists of the grades in use"]
    if any(rated.rater is not None and "@" not in rated.rater for rated in leaving.judgments):
        leaving.assumed.append("raters' names are used as e-mail addresses")
    head = {"name": "karat", "show_rank": False}
    book = {**head, "support_implicit_judgements": False, "scale": scale, "query_doc_pairs": pairs}
    data = dumped(book)
    return packed(data, "book.json") if leaving.file.lower().endswith(".zip") else data


def written(row: dict[str, Any]) -> dict[str, Any]:
    names = (("need", "information_need"), ("notes", "notes"), ("options", "options"))
    return {
        # Only options are an object; notes may look like one.
        key: unpacked(row[column]) if key == "options" else row[column]
        for column, key in names
        if column in row
    }


def as_fields(row: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix("field."): unpacked(value) for name, value in row.items()}


def packed(data: bytes, name: str) -> bytes:
    """A ZIP file with one file; the same content gives the same bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as folder:
        entry = zipfile.ZipInfo(name)  # dated 1980-01-01
        entry.compress_type = zipfile.ZIP_DEFLATED
        folder.writestr(entry, data)
    return out.getvalue()


def _pairs(leaving: Export) -> dict[tuple[str, str], list[Rated]]:
    out: dict[tuple[str, str], list[Rated]] = {}
    for rated in leaving.judgments:
        out.setdefault((rated.query_id, rated.doc_id), []).append(rated)
    return out


def _refuse_repeated(leaving: Export) -> None:
    """Refuse several judgments of a pair by one rater: a book stores one."""
    seen = set()
    for rated in leaving.judgments:
        if (*rated[:2], rated.rater) in seen:
            raise leaving.wrong(
                f"{rated.rater or 'an anonymous rater'} judged document {rated.doc_id} twice",
                query=rated.query_id,
                doc_id=rated.doc_id,
                fix="remove repeated judgments",
            )
        seen.add((*rated[:2], rated.rater))
