"""An exchange on its way to a file of another tool: what that can hold, and what it cannot."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from karat.errors import Advice, InputError
from karat.formats.exchange.import_ import counted
from karat.formats.exchange.source_file import FORMULA
from karat.tables.golden.exchange import Exchange

ANY_TEXT = Advice("--format csv, which holds any text", page="choose csv, which holds any text")
"""What helps where a format cannot hold a text."""


class Rated(NamedTuple):
    """One judgment."""

    query_id: str
    doc_id: str
    grade: float | None
    rater: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Holds:
    """What a format has a place for.

    Attributes:
        ids: The ids of queries; without them a query is known by its text.
        text: The text of queries.
        columns: Further columns of queries; True for any.
        bare: Queries for which nothing is judged.
        judgments: Grades.
        raters: Several grades for one pair, and who gave them.
        named: Who gave a grade, where there is one grade for a pair.
        reasons: Why.
        unjudged: That a document could not be judged.
        whole: Grades are whole numbers.
        scale: The scale of the grades.
        documents: Columns of documents; True for any.
        corpus: Documents that stand in no judgment and no run.
        runs: Rankings.
    """

    ids: bool = False
    text: bool = True
    columns: tuple[str, ...] | bool = ()
    bare: bool = True
    judgments: bool = True
    raters: bool = False
    named: bool = False
    reasons: bool = False
    unjudged: bool = False
    whole: bool = False
    scale: bool = False
    documents: tuple[str, ...] | bool = ()
    corpus: bool = False
    runs: bool = False


class Leaving:
    """An exchange, looked at by the format it is to be written in.

    Attributes:
        queries: Columns of each query by its id; those that only judgments or runs name too.
        texts: Text of each query by its id; different for each where the format has no ids.
        documents: Columns of each document by its id.
        judgments: What is to be written of the judgments.
        runs: Documents by query by run, best first, with their scores.
        assumed: What the format wants and the exchange does not say.
        lost: What the format has no place for.

    Args:
        exchange: What is to be written.
        name: Name of the format.
        holds: What that has a place for.
        file: Where it is to be written, for errors.

    Raises:
        InputError: the format would change what it holds: two queries of one text in a format
            that knows queries by it, raters who disagree in one that holds one grade for a
            pair, fractions in one that holds whole numbers; or there is nothing it holds.
    """

    def __init__(self, exchange: Exchange, name: str, holds: Holds, file: str) -> None:
        self.exchange, self.format, self.holds, self.file = exchange, name, holds, file
        self.assumed: list[str] = []
        self.lost: list[str] = []
        self.guarded = 0
        self.documents = _rows(exchange.documents, "doc_id")
        self.runs = {name: _ranked(frame) for name, frame in exchange.runs.items()}
        given = _given(exchange)
        self.queries = _rows(exchange.queries, "query_id")
        in_runs = (query for run in self.runs.values() for query in run)
        for query_id in (*(rated.query_id for rated in given), *in_runs):
            self.queries.setdefault(query_id, {})
        self.texts = self._texts()
        self.judgments = self._judgments(given)
        self._lose_rest()
        if not holds.judgments and not holds.runs and not self.queries:
            raise InputError(f"there is no query, and {name} holds nothing else", file=file)
        if not holds.runs and not holds.bare and not self.judgments:
            raise InputError(f"there is no judgment, and {name} holds nothing else", file=file)

    def of(self, query_id: str) -> list[Rated]:
        """The judgments of one query."""
        return self._by_query.get(query_id, [])

    def cell(self, text: str) -> str:
        """A cell that no spreadsheet runs as a formula."""
        if FORMULA.match(text):
            self.guarded += 1
            return f" {text}"
        return text

    def sheet(
        self, header: Sequence[str], rows: Iterable[Sequence[Any]], separator: str = ","
    ) -> bytes:
        """Cells under a header: text guarded, numbers as they are, None empty.

        Raises:
            InputError: a cell holds a NUL byte, which no text file may.
        """
        out = []
        for row in (header, *rows):
            cells = [
                "" if c is None else self.cell(c) if isinstance(c, str) else str(c) for c in row
            ]
            if any("\x00" in cell for cell in cells):
                raise InputError("a cell holds a NUL byte, which no text may", file=self.file)
            out.append(separator.join(_quoted(cell, separator) for cell in cells))
        if self.guarded:
            self.assumed.append(
                f"{counted(self.guarded, 'cell')} would be run as a formula by a spreadsheet: a "
                "space stands before each"
            )
        return ("\n".join(out) + "\n").encode()

    def refuse(self, texts: Iterable[str], bad: str, what: str) -> None:
        """Refuse text that a file of lines would read as something else.

        Raises:
            InputError: one holds one of the characters.
        """
        for text in texts:
            if found := set(text) & set(bad):
                raise InputError(
                    f"{text!r} holds {min(found)!r}, which cannot stand in {what}",
                    file=self.file,
                    fix=ANY_TEXT,
                )

    def told(self) -> Exchange:
        """The exchange, with what became of it when it was written."""
        held = []
        if self.holds.judgments and self.judgments:
            queries = {rated.query_id for rated in self.judgments}
            judged = counted(len(self.judgments), "judgment")
            held.append(f"{judged} of {counted(len(queries), 'query')}")
        if self.holds.bare:
            held.append(counted(len(self.queries), "query"))
        place = self.holds.documents
        columns = [
            row for row in self.documents.values() if place is True or row.keys() & set(place or ())
        ]
        if columns:
            held.append(counted(len(columns), "document"))
        if self.holds.runs and self.runs:
            held.append(counted(len(self.runs), "run"))
        return replace(
            self.exchange, format=self.format, kept=held, assumed=self.assumed, lost=self.lost
        )

    def _texts(self) -> dict[str, str]:
        texts = {query: row.get("text") or query for query, row in self.queries.items()}
        without = sum(not row.get("text") for row in self.queries.values())
        if self.holds.text and without:
            what = counted(without, "query")
            self.assumed.append(f"{what} without text: the id stands where the text is wanted")
        if self.holds.ids:
            return texts
        seen: dict[str, str] = {}
        for query, text in texts.items():
            if text in seen:
                raise InputError(
                    f"queries {seen[text]} and {query} have one text, {text!r}, and "
                    f"{self.format} knows queries by their text",
                    file=self.file,
                    query=query,
                    fix="write a format that has ids: csv, beir or rank-eval",
                )
            seen[text] = query
        if any(query != text for query, text in texts.items()):
            self.lost.append("the ids of queries: the format knows them by their text")
        return texts

    def _judgments(self, given: list[Rated]) -> list[Rated]:
        holds = self.holds
        if not holds.judgments:
            if given:
                self.lost.append(counted(len(given), "judgment"))
            return []
        kept = [rated for rated in given if holds.unjudged or rated.grade is not None]
        if len(kept) < len(given):
            n = counted(len(given) - len(kept), "document")
            self.lost.append(f"that {n} could not be judged")
        if not holds.raters:
            kept = self._single(kept)
        if not holds.reasons and (why := sum(rated.reason is not None for rated in kept)):
            self.lost.append(f"the reasons of {counted(why, 'judgment')}")
        if holds.whole:
            broken = next((r for r in kept if r.grade is not None and r.grade % 1), None)
            if broken is not None:
                raise InputError(
                    f"grade {broken.grade:g} of document {broken.doc_id} is no whole number, and "
                    f"{self.format} holds no others",
                    file=self.file,
                    query=broken.query_id,
                    doc_id=broken.doc_id,
                    fix="write csv or opensearch-judgments, which hold any number",
                )
        self._by_query: dict[str, list[Rated]] = {}
        for rated in kept:
            self._by_query.setdefault(rated.query_id, []).append(rated)
        return kept

    def _single(self, given: list[Rated]) -> list[Rated]:
        """One judgment for each pair; who gave it is lost unless one person did."""
        pairs: dict[tuple[str, str], Rated] = {}
        several = 0
        for rated in given:
            first = pairs.setdefault(rated[:2], rated)
            if first is rated:
                continue
            if first.grade != rated.grade:
                raise InputError(
                    f"document {rated.doc_id} has grades {_shown(first.grade)} and "
                    f"{_shown(rated.grade)} by different raters, and {self.format} holds one "
                    "grade for a pair",
                    file=self.file,
                    query=rated.query_id,
                    doc_id=rated.doc_id,
                    fix="write an edition, which has one; or csv or quepid-book, which hold all",
                )
            several += 1
        if several:
            self.lost.append(
                f"{counted(several, 'judgment')} that said the same as another rater's"
            )
        named = {rated.rater for rated in given if rated.rater is not None}
        if named and not self.holds.named:
            self.lost.append(f"who judged: {counted(len(named), 'rater')}")
        return list(pairs.values())

    def _lose_rest(self) -> None:
        holds = self.holds
        told = {"text"} if holds.text else set()
        if not holds.bare and (rest := self.queries.keys() - self._named(0)):
            what = "nothing is judged" if holds.judgments else "no run has an answer"
            self.lost.append(f"{counted(len(rest), 'query')} for which {what}")
            self.queries = {q: row for q, row in self.queries.items() if q not in rest}
            self.texts = {q: text for q, text in self.texts.items() if q not in rest}
        if (
            holds.documents
            and not holds.corpus
            and (rest := self.documents.keys() - self._named(1))
        ):
            where = "judgment" if holds.judgments else "run"
            self.lost.append(f"{counted(len(rest), 'document')} in no {where}")
            self.documents = {d: row for d, row in self.documents.items() if d not in rest}
        if not holds.runs and self.runs:
            self.lost.append(counted(len(self.runs), "run"))
        if holds.judgments and not holds.scale:
            self._lose_scale()
        self._lose_columns("query", self.queries, holds.columns, told)
        self._lose_columns("document", self.documents, holds.documents, set())

    def _lose_scale(self) -> None:
        """Note the scale where a reader of the grades alone would assume another."""
        grades = [rated.grade for rated in self.judgments if rated.grade is not None]
        if self.exchange.scale is None or not grades:
            return
        low, high = self.exchange.scale
        if low == 0 and high <= max(grades):
            return
        what = f"the scale {low:g}-{high:g}: the largest grade in it is {max(grades):g}"
        self.lost.append(
            Advice(
                f"{what}; evaluate with --scale {low:g}-{high:g}",
                page=f"{what}; name the scale where you evaluate",
            )
        )

    def _named(self, part: int) -> set[str]:
        """The queries (part 0) or documents (part 1) of all that is written."""
        out = {rated[:2][part] for rated in self.judgments}
        if self.holds.runs:
            ranked = (
                (q, d) for run in self.runs.values() for q, docs in run.items() for d, _ in docs
            )
            out |= {pair[part] for pair in ranked}
        return out

    def _lose_columns(
        self,
        what: str,
        rows: dict[str, dict[str, Any]],
        held: tuple[str, ...] | bool,
        told: set[str],
    ) -> None:
        if held is True:
            return
        counts: dict[str, int] = {}
        for row in rows.values():
            for name in row.keys() - told - set(held or ()):
                counts[name] = counts.get(name, 0) + 1
        for name in sorted(counts):
            self.lost.append(f"{name!r} of {counted(counts[name], what)}")


def whole(value: float) -> float | int:
    """A grade without a point where it is whole."""
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def dumped(value: Any) -> bytes:
    """JSON that people can read, with its line end."""
    return (
        json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False, default=str) + "\n"
    ).encode()


def unpacked(value: Any) -> Any:
    """What a column holds: the array or object where it was put into text."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value, parse_constant=_refuse)
        except (ValueError, RecursionError):
            return value
    return value


def _refuse(constant: str) -> float:
    raise ValueError(constant)


def _given(exchange: Exchange) -> list[Rated]:
    frame = exchange.judgments
    if frame is None:
        return []
    names = set(frame.columns)
    if frame.filter(~frame["grade"].is_finite().fill_null(value=True)).height:
        raise InputError("a grade is not a finite number", file=exchange.format)
    return [
        Rated(
            row["query_id"],
            row["doc_id"],
            row["grade"],
            row["rater"] if "rater" in names else None,
            row["reason"] if "reason" in names else None,
        )
        for row in frame.iter_rows(named=True)
    ]


def _rows(frame: Any, key: str) -> dict[str, dict[str, Any]]:
    if frame is None:
        return {}
    return {
        row[key]: {name: value for name, value in row.items() if name != key and value is not None}
        for row in frame.iter_rows(named=True)
    }


def _ranked(frame: Any) -> dict[str, list[tuple[str, float]]]:
    out: dict[str, list[tuple[str, float]]] = {}
    # As everywhere in karat: score descending, then doc_id descending by bytes.
    ordered = frame.sort("doc_id", descending=True).sort(
        "score", descending=True, maintain_order=True
    )
    for query, doc, score in ordered.select("query_id", "doc_id", "score").iter_rows():
        out.setdefault(query, []).append((doc, score))
    return out


def _quoted(cell: str, separator: str) -> str:
    if any(mark in cell for mark in (separator, '"', "\n", "\r")):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def _shown(grade: float | None) -> str:
    return "none" if grade is None else f"{grade:g}"
