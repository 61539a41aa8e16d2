"""CSV files of judgments, TREC qrels, BEIR folders, and Rankquest's test cases."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from karat.errors import InputError, but
from karat.formats.exchange.export import ANY_TEXT, Export
from karat.formats.exchange.import_ import JUDGED, ImportBuilder
from karat.formats.exchange.source_file import SourceFile
from karat.formats.tables.beir import BEIR
from karat.formats.tables.cells import whole
from karat.formats.tables.lines import parse
from karat.formats.tables.reading import read_documents, read_qrels, read_queries
from karat.formats.tables.source import Chunk
from karat.formats.tables.trec import QRELS, write_qrels
from karat.tables import Documents, Qrels, Queries
from karat.tables.column_names import DOC_ID, GRADE, QUERY_ID
from karat.tables.golden.golden_sets import Exchange

_SPELT = {
    "query_id": QUERY_ID,
    "text": ("query", "query_text", "text", "querytext"),
    "doc_id": (*DOC_ID, "document"),
    "grade": GRADE,
    "rater": ("rater", "grader", "judge", "assessor", "annotator", "user", "user_email"),
    "reason": ("reason", "explanation", "comment", "note"),
}
_NONE = ("", "cannot_judge", "null", "na", "n/a")


def columns(names: list[str]) -> dict[str, str]:
    """Meaning to column name: query_id, text, doc_id, grade, rater, reason."""
    plain = {name.strip().casefold().replace("-", "_").replace(" ", "_"): name for name in names}
    columns_by_meaning = {
        what: next(plain[each] for each in spelt if each in plain)
        for what, spelt in _SPELT.items()
        if any(each in plain for each in spelt)
    }
    if "corpus_id" in plain and "score" in plain:  # BEIR's qrels; elsewhere a score is a system's
        columns_by_meaning |= {"doc_id": plain["corpus_id"], "grade": plain["score"]}
    return columns_by_meaning


def read_csv(gathered: ImportBuilder, foreign: SourceFile) -> None:
    """One row per judgment: query (id or text), document, grade, optionally rater and reason."""
    sheet = gathered.sheet(foreign)
    column_of = columns(sheet.names)
    for what, either in (("query", ("query_id", "text")), ("doc_id",) * 2, ("grade",) * 2):
        if not {either, *either} & set(column_of):
            raise sheet.wrong(
                f"no column {what!r}; the columns are {', '.join(sheet.names[:8])}",
                fix="query_id,doc_id,grade,rater,reason",
            )
    for name in sheet.names:
        if name not in column_of.values():
            gathered.lose(f"the column {name!r}")
    if "query_id" not in column_of:
        gathered.assumed.append(
            f"column {column_of['text']!r} is the query text: rename it to query_id if it is the id"
        )
    said = pairs = False
    header = sheet.line
    for row in sheet.rows():
        cells = {what: row[name] for what, name in column_of.items()}
        text = cells.get("text", "")
        query_id, doc = cells.get("query_id", ""), cells["doc_id"]
        if not (query_id if "query_id" in column_of else text).strip():
            raise sheet.wrong("the query is empty")
        query = gathered.query(text if text.strip() else None, query_id or None)
        grade = cells["grade"].strip()
        if doc.strip() and sheet.cells <= sheet.names.index(column_of["grade"]):
            raise sheet.wrong(
                "the row ends before its grade",
                query=query,
                fix="is the file complete? An empty grade means that it could not be judged",
            )
        if not doc.strip():
            if grade:
                raise sheet.wrong("a grade without a document", query=query)
            continue
        value = None if grade.casefold() in _NONE else sheet.grade(grade, query)
        pairs, said = True, said or bool(grade or cells.get("reason", "").strip())
        gathered.judge(query, doc, value, cells.get("rater"), cells.get("reason"), sheet.line)
    if pairs and not said:
        raise foreign.wrong(
            "the file has no ratings yet: all grades are empty",
            line=header,
            fix="import it when it is rated, or judge its pairs in karat",
        )


def write_csv(leaving: Export) -> bytes:
    """``query_id,query,doc_id,grade,rater,reason``; TSV for .tsv."""
    rows: list[tuple[str | float | None, ...]] = []
    for query, row in leaving.queries.items():
        text = row.get("text")
        for rated in leaving.of(query):
            grade = None if rated.grade is None else whole(rated.grade)
            rows.append((query, text, rated.doc_id, grade, rated.rater, rated.reason))
        if not leaving.of(query):
            rows.append((query, text, None, None, None, None))
    tabs = leaving.file.lower().endswith(".tsv")
    header = ("query_id", "query", "doc_id", "grade", "rater", "reason")
    return leaving.sheet(header, rows, "\t" if tabs else ",")


def read_trec(gathered: ImportBuilder, foreign: SourceFile) -> Exchange:
    """TREC qrels: ``query iteration document grade``."""
    frame = parse(Chunk(foreign.data, 1), QRELS, foreign.name)
    if not frame.height:
        raise foreign.wrong("the file contains no judgment")
    try:
        return _judged(gathered.format, Qrels(frame, source=foreign.name))
    except InputError as error:
        raise error.at_line(_line(foreign, error)) from None


def _line(foreign: SourceFile, error: InputError) -> int | None:
    """The last line with the query and document of an error: the duplicate, if there are two."""
    if error.line is not None or error.doc_id is None:
        return error.line
    last = None
    for line, text in foreign.lines():
        query, _, doc, *_ = [*text.split(), "", "", ""]
        if (query, doc) == (error.query, error.doc_id):
            last = line
    return last


def _judged(name: str, qrels: Qrels) -> Exchange:
    null = pl.lit(None, pl.String)
    judged = qrels.frame.with_columns(rater=null, reason=null).select(*JUDGED)
    exchange = Exchange(name, judgments=judged)
    if qrels.subtopics is not None:
        exchange.lost.append("subtopics: each document gets its best grade")
    return exchange


def _qrels(leaving: Export) -> Qrels:
    # Judgments without a grade have been left out before.
    rows = {query: {r.doc_id: r.grade for r in leaving.of(query)} for query in leaving.queries}
    data = [(q, doc, grade) for q, docs in rows.items() for doc, grade in docs.items()]
    schema = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Float64}
    return Qrels(pl.DataFrame(data, schema=schema, orient="row"), source=leaving.file)


def write_trec(leaving: Export) -> bytes:
    out = io.BytesIO()
    with _by_format():
        write_qrels(_qrels(leaving), out)
    return out.getvalue()


@contextmanager
def _by_format() -> Iterator[None]:
    """Errors with the fix in terms of --format, not of file name extensions."""
    try:
        yield
    except InputError as error:
        raise but(error, fix=ANY_TEXT) from None


def read_beir(folder: Path) -> Exchange:
    """A BEIR folder: queries, documents if any, and the judgments of the test split."""
    qrels = read_qrels(folder)
    judged = _judged("beir", qrels)
    queries = read_queries(folder).frame
    documents = None
    if any(folder.glob("corpus.jsonl*")):
        documents = read_documents(folder).frame
    return Exchange(
        "beir", queries=queries, documents=documents, judgments=judged.judgments, lost=judged.lost
    )


def write_beir(leaving: Export) -> dict[str, bytes]:
    """The files of a BEIR folder, by path within it."""
    rows = [{"query_id": q, **row, "text": leaving.texts[q]} for q, row in leaving.queries.items()]
    queries = pl.DataFrame(rows, infer_schema_length=None)
    tables: dict[str, tuple[str, Qrels | Queries | Documents]] = {
        "queries.jsonl": ("queries", Queries(queries, source=leaving.file)),
        "qrels/test.tsv": ("qrels", _qrels(leaving)),
    }
    if leaving.exchange.documents is not None:
        documents = Documents(leaving.exchange.documents, source=leaving.file)
        tables["corpus.jsonl"] = ("documents", documents)
    else:
        leaving.assumed.append("no documents: the folder has no corpus.jsonl")
    out = {}
    for name, (role, table) in tables.items():
        stream = io.BytesIO()
        with _by_format():
            BEIR.writers[role](table, stream)
        out[name] = stream.getvalue()
    return out


def read_rankquest(gathered: ImportBuilder, foreign: SourceFile) -> None:
    """Rankquest's test cases: ``[{"id", "searchContext", "ratings"}]``."""
    for case in foreign.json().list():
        context = dict(case.need("searchContext").items())
        text_node = next((context[key] for key in ("q", "query", "text") if key in context), None)
        query_id = case.need("id").identifier()
        tags = ", ".join(tag.text() for tag in case.each("tags"))
        query = gathered.query(
            text_node.text() if text_node else None,
            query_id,
            notes=case.text_of("comment"),
            tags=tags or None,
        )
        gathered.leave(case, ("id", "searchContext", "ratings", "tags", "comment"), "a case")
        for key in context.keys() - {"q", "query", "text"}:
            gathered.lose(f"{key!r} of a search")
        for rating in case.each("ratings"):
            gathered.leave(rating, ("documentId", "rating", "comment"), "a rating")
            grade = rating.need("rating")
            gathered.judge(
                query,
                rating.need("documentId").identifier(),
                grade.number(),
                reason=rating.text_of("comment"),
                node=grade,
            )
