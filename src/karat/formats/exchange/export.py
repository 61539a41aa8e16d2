"""An exchange prepared for a file format: what the format can store, and what is lost."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from karat.errors import InputError
from karat.formats.exchange.import_ import counted
from karat.formats.exchange.source_file import FORMULA
from karat.formats.tables.cells import whole
from karat.tables.golden.golden_sets import Exchange

ANY_TEXT = "use the format csv, which stores any text"
"""The fix for text that a format cannot store."""


class Rated(NamedTuple):
    query_id: str
    doc_id: str
    grade: float | None
    rater: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Holds:
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


class Export:
    """An exchange prepared for the format it is written in."""

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
            raise InputError(f"no queries to write, and {name} stores nothing else", file=file)
        if not holds.runs and not holds.bare and not self.judgments:
            raise InputError(f"no judgments to write, and {name} stores nothing else", file=file)

    def wrong(self, what: str, **facts: Any) -> InputError:
        """An error about the file; ``facts`` are the arguments of ``InputError``."""
        return InputError(what, file=self.file, **facts)

    def of(self, query_id: str) -> list[Rated]:
        return self._by_query.get(query_id, [])

    def grades(self, query_id: str) -> Iterator[tuple[str, int | float]]:
        """The judged documents of a query, with their grades."""
        for rated in self.of(query_id):
            if rated.grade is not None:
                yield rated.doc_id, whole(rated.grade)

    def cell(self, text: str) -> str:
        """A cell that no spreadsheet runs as a formula."""
        if FORMULA.match(text):
            self.guarded += 1
            return f" {text}"
        return text

    def sheet(
        self, header: Sequence[str], rows: Iterable[Sequence[Any]], separator: str = ","
    ) -> bytes:
        """CSV with a header: text guarded against formulas, None empty."""
        out = []
        for row in (header, *rows):
            cells = [
                "" if c is None else self.cell(c) if isinstance(c, str) else str(c) for c in row
            ]
            if any("\x00" in cell for cell in cells):
                raise self.wrong("a cell contains a NUL byte")
            out.append(separator.join(_quoted(cell, separator) for cell in cells))
        if self.guarded:
            self.assumed.append(
                f"{counted(self.guarded, 'cell')} that a spreadsheet would run as a formula: a "
                "space was added before each"
            )
        return ("\n".join(out) + "\n").encode()

    def refuse(self, texts: Iterable[str], bad: str, what: str) -> None:
        """Raise InputError if a text contains one of the ``bad`` characters."""
        for text in texts:
            if found := set(text) & set(bad):
                raise self.wrong(
                    f"{text!r} contains {min(found)!r}, which cannot be stored in {what}",
                    fix=ANY_TEXT,
                )

    def told(self) -> Exchange:
        """The exchange, with notes on what was kept, assumed and lost."""
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
            self.assumed.append(f"{what} without text: the id is used instead")
        if self.holds.ids:
            return texts
        seen: dict[str, str] = {}
        for query, text in texts.items():
            if text in seen:
                raise self.wrong(
                    f"queries {seen[text]} and {query} have the same text, {text!r}, and "
                    f"{self.format} identifies queries by their text",
                    query=query,
                    fix="use a format with ids: csv, beir or rank-eval",
                )
            seen[text] = query
        if any(query != text for query, text in texts.items()):
            self.lost.append("the ids of queries: the format identifies them by their text")
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
                raise self.wrong(
                    f"grade {broken.grade:g} of document {broken.doc_id} is not a whole number, "
                    f"which {self.format} requires",
                    query=broken.query_id,
                    doc_id=broken.doc_id,
                    fix="use csv or opensearch-judgments, which store any number",
                )
        self._by_query: dict[str, list[Rated]] = {}
        for rated in kept:
            self._by_query.setdefault(rated.query_id, []).append(rated)
        return kept

    def _single(self, given: list[Rated]) -> list[Rated]:
        """One judgment per pair; names of raters are lost unless the format stores them."""
        pairs: dict[tuple[str, str], Rated] = {}
        several = 0
        for rated in given:
            first = pairs.setdefault(rated[:2], rated)
            if first is rated:
                continue
            if first.grade != rated.grade:
                raise self.wrong(
                    f"document {rated.doc_id} has grades {_shown(first.grade)} and "
                    f"{_shown(rated.grade)} by different raters, and {self.format} stores one "
                    "grade per pair",
                    query=rated.query_id,
                    doc_id=rated.doc_id,
                    fix="write an edition, which has one; or csv or quepid-book, which store all",
                )
            several += 1
        if several:
            self.lost.append(f"{counted(several, 'judgment')} equal to another rater's")
        named = {rated.rater for rated in given if rated.rater is not None}
        if named and not self.holds.named:
            self.lost.append(f"the names of {counted(len(named), 'rater')}")
        return list(pairs.values())

    def _lose_rest(self) -> None:
        holds = self.holds
        stored = {"text"} if holds.text else set()
        if not holds.bare and (dropped := self.queries.keys() - self._named(0)):
            what = "without judgments" if holds.judgments else "in no run"
            self.lost.append(f"{counted(len(dropped), 'query')} {what}")
            self.queries = {q: row for q, row in self.queries.items() if q not in dropped}
            self.texts = {q: text for q, text in self.texts.items() if q not in dropped}
        if (
            holds.documents
            and not holds.corpus
            and (dropped := self.documents.keys() - self._named(1))
        ):
            where = "judgment" if holds.judgments else "run"
            self.lost.append(f"{counted(len(dropped), 'document')} in no {where}")
            self.documents = {d: row for d, row in self.documents.items() if d not in dropped}
        if not holds.runs and self.runs:
            self.lost.append(counted(len(self.runs), "run"))
        if holds.judgments and not holds.scale:
            self._lose_scale()
        self._lose_columns("query", self.queries, holds.columns, stored)
        self._lose_columns("document", self.documents, holds.documents, set())

    def _lose_scale(self) -> None:
        """Note the scale as lost if readers of the grades alone would assume another."""
        grades = [rated.grade for rated in self.judgments if rated.grade is not None]
        if self.exchange.scale is None or not grades:
            return
        low, high = self.exchange.scale
        if low == 0 and high <= max(grades):
            return
        what = f"the scale {low:g}-{high:g}: the largest grade is {max(grades):g}"
        self.lost.append(f"{what}; evaluate with the scale {low:g}-{high:g}")

    def _named(self, part: int) -> set[str]:
        """The queries (part 0) or documents (part 1) in judgments and runs that are written."""
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
        columns: tuple[str, ...] | bool,
        stored: set[str],
    ) -> None:
        if columns is True:
            return
        counts: dict[str, int] = {}
        for row in rows.values():
            for name in row.keys() - stored - set(columns or ()):
                counts[name] = counts.get(name, 0) + 1
        for name in sorted(counts):
            self.lost.append(f"{name!r} of {counted(counts[name], what)}")


def dumped(value: Any) -> bytes:
    return (
        json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False, default=str) + "\n"
    ).encode()


def unpacked(cell: Any) -> Any:
    """The value of a column; arrays and objects are parsed from JSON text."""
    if isinstance(cell, str) and cell[:1] in ("{", "["):
        try:
            return json.loads(cell, parse_constant=_refuse)
        except (ValueError, RecursionError):
            return cell
    return cell


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
    # karat's order: score descending, then doc_id descending by bytes.
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
