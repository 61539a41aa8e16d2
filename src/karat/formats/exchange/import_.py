"""Collects the content of another tool's file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import polars as pl

from karat.errors import InputError
from karat.formats.exchange.source_file import Node, Sheet, SourceFile
from karat.formats.tables.cells import column_of
from karat.tables.golden.golden_sets import Exchange
from karat.tables.schema import DOCUMENTS, QUERIES

JUDGED = {
    "query_id": pl.String,
    "doc_id": pl.String,
    "grade": pl.Float64,
    "rater": pl.String,
    "reason": pl.String,
}
_RANKED = {
    "query_id": pl.String,
    "doc_id": pl.String,
    "score": pl.Float64,
}


UNRATED = "documents without a rating"  # note on unrated pairs, which are lost
_TEXTS = {column.name for column in (*QUERIES, *DOCUMENTS) if isinstance(column.dtype, pl.String)}


@dataclass(frozen=True)
class ImportedExchange(Exchange):
    """The content of a file; ``places`` are ``jq`` paths by query, document and rater."""

    places: dict[tuple[str, str, str | None], str] = field(default_factory=dict)
    made_ids: bool = False


class ImportBuilder:
    """The content of one file while it is read; ``exchange`` returns the result.

    Queries without ids get q1, q2, … in the order they first appear; equal texts are one query.
    """

    def __init__(self, name: str, file: str) -> None:
        self.format, self.file = name, file
        self.assumed: list[str] = []
        self._lost: Counter[str] = Counter()
        self._queries: dict[str, dict[str, Any]] = {}
        self._ids: dict[str, str] = {}
        self._made = False
        self._entries: Counter[str] = Counter()
        self._sheet: Sheet | None = None
        self._documents: dict[str, dict[str, Any]] = {}
        self._judged: dict[tuple[str, str, str | None], tuple[float | None, str | None]] = {}
        self._lines: dict[tuple[str, str, str | None], int] = {}
        self._places: dict[tuple[str, str, str | None], str] = {}
        self._again = 0
        self._unnamed: Counter[tuple[str, str]] = Counter()
        self._runs: dict[str, dict[str, list[tuple[str, float | None]]]] = {}

    def lose(self, what: str) -> None:
        """Count something that karat cannot store."""
        self._lost[what] += 1

    def leave(self, node: Node, known: Iterable[str], of: str) -> None:
        """Count the keys of an object that are not imported, unless they are empty."""
        taken = set(known)
        for key, value in node.items():
            if key not in taken and value.value not in (None, "", [], {}):
                self.lose(f"{key!r} of {of}")

    def query(self, text: str | None, query_id: str | None = None, **others: Any) -> str:
        """Add a query, by default with an id made from its text; of others the first counts."""
        if query_id is None:
            assert text is not None
            if text not in self._ids:
                self._ids[text] = f"q{len(self._ids) + 1}"
            query_id, self._made = self._ids[text], True
        row = self._queries.setdefault(query_id, {})
        if text is not None and row.setdefault("text", text) != text:
            raise InputError(
                f"the query id has two texts, {row['text']!r} and {text!r}",
                file=self.file,
                query=query_id,
            )
        self.more(query_id, others)
        return query_id

    def more(self, query_id: str, others: Mapping[str, Any]) -> None:
        """Add further columns of a query, without None; the first value of each counts."""
        row = self._queries[query_id]
        for name, value in others.items():
            if value is None or value == "":
                continue
            if row.setdefault(name, value) != value:
                self.lose(f"a second {name!r} of one query")

    def entry(self, text: str | None, query_id: str | None = None, **others: Any) -> str:
        """Add a query in a format where each query should have one entry, and count the entry."""
        query_id = self.query(text, query_id, **others)
        self._entries[query_id] += 1
        return query_id

    def document(self, doc_id: str, fields: Mapping[str, Any]) -> None:
        """Add the fields of a document; the first value of each counts."""
        filled = {name: value for name, value in fields.items() if value not in (None, "", [], {})}
        if not filled:
            return
        row = self._documents.setdefault(doc_id, {})
        for name, value in filled.items():
            # A field may have the name of one of karat's columns.
            column = f"field.{name}" if name in ("doc_id", "parent_id") else name
            nested = isinstance(value, dict | list)
            stored = json.dumps(value, ensure_ascii=False) if nested else value
            if row.setdefault(column, stored) != stored:
                self.lose(f"a second {name!r} of one document")

    def judge(
        self,
        query_id: str,
        doc_id: str,
        grade: float | None,
        rater: str | None = None,
        reason: str | None = None,
        line: int | None = None,
        node: Node | None = None,
    ) -> None:
        """Add a judgment (None: cannot be judged); duplicates with the same grade count once."""
        rater = (rater or "").strip() or None
        key = (query_id, doc_id, rater)
        if key not in self._judged:
            self._judged[key] = (grade, reason or None)
            if line is not None:
                self._lines[key] = line
            if node is not None:
                self._places[key] = node.path
            return
        if self._judged[key][0] != grade:
            both = " and ".join(_grade(value) for value in (self._judged[key][0], grade))
            by = "" if rater is None else f" by {rater}"
            text = self._queries.get(query_id, {}).get("text", query_id)
            where = f"{node.path}: " if node is not None else ""
            raise InputError(
                f"{where}document {doc_id} is judged twice{by}: {both}",
                file=self.file,
                line=line,
                query=text,
                doc_id=doc_id,
                fix="keep one of them",
            )
        self._again += 1

    def nameless(self, query_id: str, doc_id: str) -> str | None:
        """The name of the next anonymous rater of a document.

        None for the first, then "anonymous 2" and so on, which is noted as assumed.
        """
        self._unnamed[query_id, doc_id] += 1
        count = self._unnamed[query_id, doc_id]
        if count == 1:
            return None
        note = "judgments without a name are by different raters: anonymous 2, and so on"
        if note not in self.assumed:
            self.assumed.append(note)
        return f"anonymous {count}"

    def rank(self, run: str, query_id: str, doc_id: str, score: float | None = None) -> None:
        """Add the next document of a ranking, best first."""
        ranking = self._runs.setdefault(run, {}).setdefault(query_id, [])
        ranking.append((doc_id, score))

    def run(self, name: str) -> None:
        self._runs.setdefault(name, {})

    def sheet(self, foreign: SourceFile) -> Sheet:
        """The file as a sheet; ``exchange`` notes how its cells were read."""
        self._sheet = foreign.sheet()
        return self._sheet

    def _note_cells(self, sheet: Sheet) -> None:
        if sheet.separator == ";":
            decimal = counted(sheet.decimal, "number")
            commas = f"; {decimal} with a decimal comma" if sheet.decimal else ""
            self.assumed.append(f"cells are separated by semicolons{commas}")
        if sheet.restored:
            self.assumed.append(
                f"{counted(sheet.restored, 'cell')} with a space before = + - @, which keeps "
                "spreadsheets from running it: the space was removed"
            )

    def exchange(self) -> ImportedExchange:
        if self._sheet is not None:
            self._note_cells(self._sheet)
        runs = {name: self._run(name, rows) for name, rows in self._runs.items()}
        if not (self._queries or self._judged or runs):
            raise InputError(
                "the file contains no queries and no judgments",
                file=self.file,
                fix="nothing follows its header, or its lists are empty: export it again",
            )
        if not self._judged and self._lost[UNRATED]:
            self.assumed.append("the file has no ratings yet: no judgments are imported")
        if self._made:
            self.assumed.insert(
                0,
                "the file has no query ids: queries are called q1, q2, … in the order they first "
                "appear",
            )
        if repeated := sum(count > 1 for count in self._entries.values()):
            self.assumed.append(
                f"equal texts are one query: the entries of {counted(repeated, 'text')} were merged"
            )
        if self._again:
            more = counted(self._again, "judgment")
            self.assumed.append(f"{more} repeated with the same grade: counted once")
        rows = [(*key[:2], grade, key[2], why) for key, (grade, why) in self._judged.items()]
        judgments = pl.DataFrame(rows, schema=JUDGED, orient="row") if rows else None
        result = ImportedExchange(
            self.format,
            queries=_frame("query_id", self._queries),
            documents=_frame("doc_id", self._documents),
            judgments=judgments,
            runs=runs,
            lines=self._lines,
            places=self._places,
            made_ids=self._made,
            assumed=self.assumed,
            lost=[
                f"{what}, {count} times" if count > 1 else what
                for what, count in self._lost.items()
            ],
        )
        result.kept.extend(held(result))
        return result

    def _run(
        self, name: str, queries: Mapping[str, list[tuple[str, float | None]]]
    ) -> pl.DataFrame:
        rows: list[tuple[str, str, float]] = []
        guessed = False
        for query_id, ranking in queries.items():
            docs = Counter(doc for doc, _ in ranking)
            if (
                duplicate := next((doc for doc, count in docs.items() if count > 1), None)
            ) is not None:
                raise InputError(
                    f"duplicate document {duplicate} in the ranking",
                    file=self.file,
                    query=self._queries.get(query_id, {}).get("text", query_id),
                    doc_id=duplicate,
                )
            scores = [score for _, score in ranking if score is not None]
            # Equal scores would change the order of the file.
            decreasing = all(a > b for a, b in pairwise(scores))
            guessed |= not decreasing or len(scores) < len(ranking)
            ranks = [-float(place) for place in range(1, len(ranking) + 1)]
            has_scores = decreasing and len(scores) == len(ranking)
            pairs = zip(ranking, scores if has_scores else ranks, strict=True)
            rows.extend((query_id, doc, score) for (doc, _), score in pairs)
        if guessed:
            self.assumed.append(
                f"run {name!r}: the score is minus the rank for queries without scores, or whose "
                "scores do not decrease"
            )
        return pl.DataFrame(rows, schema=_RANKED, orient="row")


def held(exchange: Exchange) -> list[str]:
    """The content of an exchange, as sentences with counts."""
    out = []
    judged, queries, documents = exchange.judgments, exchange.queries, exchange.documents
    if judged is not None:
        raters = judged["rater"].drop_nulls().n_unique() if "rater" in judged.columns else 0
        by = f", by {counted(raters, 'rater')}" if raters else ""
        out.append(
            f"{counted(judged.height, 'judgment')} of "
            f"{counted(judged['query_id'].n_unique(), 'query')} and "
            f"{counted(judged['doc_id'].n_unique(), 'document')}{by}"
        )
        if unjudged := judged["grade"].null_count():
            out.append(f"{unjudged} of them could not be judged")
    for frame, what in ((queries, "query"), (documents, "document")):
        if frame is not None:
            names = ", ".join(frame.columns[1:])
            with_ = f" with {names}" if names else ""
            out.append(f"{counted(frame.height, what)}{with_}")
    for name, run in exchange.runs.items():
        rows = counted(run.height, "row")
        out.append(f"run {name!r}: {rows} of {counted(run['query_id'].n_unique(), 'query')}")
    return out


def counted(count: int, what: str) -> str:
    """``1 query``, ``2 queries``, ``1,200 judgments``."""
    many = f"{what[:-1]}ies" if what == "query" else f"{what}s"
    return f"{count:,} {what if count == 1 else many}"


def _frame(key: str, rows: Mapping[str, Mapping[str, Any]]) -> pl.DataFrame | None:
    if not rows:
        return None
    names = dict.fromkeys(name for row in rows.values() for name in row)
    columns = [pl.Series(key, list(rows), dtype=pl.String)]
    columns += [_column(name, [row.get(name) for row in rows.values()]) for name in names]
    return pl.DataFrame(columns)


def _column(name: str, values: list[Any]) -> pl.Series:
    if name in _TEXTS:
        values = [v if v is None or isinstance(v, str) else json.dumps(v) for v in values]
    return column_of(name, values)


def _grade(grade: float | None) -> str:
    return "cannot be judged" if grade is None else f"{grade:g}"
