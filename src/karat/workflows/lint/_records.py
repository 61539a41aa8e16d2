"""Reads records with named columns: CSV, TSV, JSONL, nested JSON, Parquet, and MS MARCO texts."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from karat.errors import InputError
from karat.formats.tables.cells import NUMBERS
from karat.formats.tables.delimited import decimal_point, is_semicolon_header
from karat.formats.tables.jsonl import HALF, parsed, refuse_half, says_about
from karat.formats.tables.parquet import BROKEN, damaged, scan
from karat.formats.tables.source import LONGEST_LINE, Chunk, Source
from karat.tables.column_names import choose, is_header, known
from karat.tables.queries import YES
from karat.workflows.lint.fields import LineEnds, Piece, number_of, odd_ids, text_of
from karat.workflows.lint.tally import Tally

_BATCH = 50_000
_BLANK = " \t\r\v\f"  # JSON has no other blanks

SCHEMAS: dict[str, dict[str, type[pl.DataType]]] = {
    "qrels": {
        "query_id": pl.String,
        "doc_id": pl.String,
        "grade": pl.Float64,
        "subtopic": pl.String,
    },
    "run": {
        "query_id": pl.String,
        "doc_id": pl.String,
        "score": pl.Float64,
        "rank": pl.Int64,
        "state": pl.String,
    },
    "queries": {"id": pl.String, "empty": pl.Boolean, "no_answer": pl.Boolean},
    "documents": {"id": pl.String, "empty": pl.Boolean},
}
_ID = {"queries": "query_id", "documents": "doc_id"}
_SEPARATOR = {"csv": ",", "tsv": "\t"}
_BEIR = ("query-id", "corpus-id", "score")

Record = tuple[int, Mapping[str, Any], str]
"""Line, values by column of the table, the record as text."""


def pieces(source: Source, role: str, name: str, ends: LineEnds) -> Iterator[Piece]:
    if name == "parquet":
        yield from _parquet(source, role)
        return
    sized = _Sized(source, ends)
    if name == "json":
        records: Iterable[Record] = _nested(source, role, sized.tally)
        sized.size = len(source.head)
    elif name in _SEPARATOR or (name == "beir" and role == "qrels"):
        first = source.head.partition(b"\n")[0].decode("utf-8", "replace")
        bare = name == "beir" and not is_header(first.strip("\r").split("\t"), role)
        separator = (
            ";" if name == "csv" and is_semicolon_header(first) else _SEPARATOR.get(name, "\t")
        )
        records = _table(sized, role, separator, _BEIR if bare else ())
    elif name == "msmarco":
        records = _id_tab_text(sized, role)
    else:
        records = _objects(sized, role)
    yield from _checked(records, role, sized)


class _Sized:
    """The lines of a file, with findings and bytes read."""

    def __init__(self, source: Source, ends: LineEnds) -> None:
        self.name = source.name
        self.tally = Tally()
        self.size = 0
        self._source, self._ends = source, ends

    def lines(self) -> Iterator[tuple[int, str]]:
        """Number and text of each line, without its line end."""
        for chunk in self._source.chunks():
            self._ends.see(chunk)
            self.size += len(chunk.data)
            yield from self._lines(chunk)

    def taken(self) -> tuple[Tally, int]:
        """Findings and bytes read since the last call."""
        taken = self.tally, self.size
        self.tally, self.size = Tally(), 0
        return taken

    def _lines(self, chunk: Chunk) -> Iterator[tuple[int, str]]:
        raws = chunk.data.split(b"\n")
        last = chunk.first_line + len(raws) - 1
        if raws[-1] == b"":
            raws.pop()
        else:
            self.tally.add("no-final-newline", [last])
        for number, raw in enumerate(raws, chunk.first_line):
            yield number, text_of(raw.rstrip(b"\r"), self.tally, number)


def _checked(records: Iterable[Record], role: str, sized: _Sized) -> Iterator[Piece]:
    schema = SCHEMAS[role]
    columns: dict[str, list[Any]] = {column: [] for column in schema}
    numbers: list[int] = []

    def piece() -> Piece:
        rows = pl.DataFrame(columns, schema=schema).with_columns(
            pl.Series("line", numbers, dtype=pl.Int64)
        )
        tally, size = sized.taken()
        odd_ids(rows, tally, *(name for name in schema if name.endswith("id")))
        return Piece(rows, tally, size)

    for number, values, text in records:
        row = _row(values, role, text, sized.tally, number)
        if row is None:
            continue
        for column in schema:
            columns[column].append(row.get(column))
        numbers.append(number)
        if len(numbers) >= _BATCH:
            yield piece()
            columns, numbers = {column: [] for column in schema}, []
    yield piece()


def _row(
    values: Mapping[str, Any], role: str, text: str, tally: Tally, line: int
) -> dict[str, Any] | None:
    row: dict[str, Any] = {}
    state = values.get("state") if role == "run" else None
    for column in _ids(role):
        value = values.get(column)
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str) or value == "":
            if column == "doc_id" and state in ("empty", "failed"):
                value = None
            else:
                tally.add("missing-id", [line], example=text, says=f"the {column} is missing")
                return None
        row["id" if role in _ID else column] = value
    if role in _ID:
        texts = [values.get("text"), values.get("title")]
        has_text = any(name in values for name in ("text", "title"))
        row["empty"] = has_text and not any(isinstance(t, str) and t.strip() for t in texts)
        row["no_answer"] = str(values.get("no_answer")).strip().lower() in YES
        return row
    if state in ("empty", "failed"):
        return {**row, "state": state}
    return (
        _grade(row, values, text, tally, line)
        if role == "qrels"
        else _score(row, values, text, tally, line)
    )


def _ids(role: str) -> tuple[str, ...]:
    return (_ID[role],) if role in _ID else ("query_id", "doc_id")


def _grade(
    row: dict[str, Any], values: Mapping[str, Any], text: str, tally: Tally, line: int
) -> dict[str, Any] | None:
    value = values.get("grade")
    if value is None or value == "":
        tally.add("missing-grade", [line], example=text, query=row["query_id"])
        return None
    row["grade"] = number_of(value)
    if row["grade"] is None:
        tally.add("grade-not-a-number", [line], example=text, query=row["query_id"])
        return None
    subtopic = values.get("subtopic")
    row["subtopic"] = None if subtopic in (None, "") else str(subtopic)
    return row


def _score(
    row: dict[str, Any], values: Mapping[str, Any], text: str, tally: Tally, line: int
) -> dict[str, Any] | None:
    rank, query = values.get("rank"), row["query_id"]
    row["rank"] = _whole(rank)
    if row["rank"] is None and rank not in (None, ""):
        says = "the rank is not a whole number"
        tally.add("score-not-a-number", [line], example=text, query=query, says=says)
        return None
    if "score" not in values and row["rank"] is not None:
        row["score"] = -float(row["rank"])
        return row
    row["score"] = number_of(values.get("score"))
    if row["score"] is None:
        tally.add("score-not-a-number", [line], example=text, query=query)
        return None
    return row


def _whole(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if abs(number) < 1 << 62 and number == float(value) else None


def _table(sized: _Sized, role: str, separator: str, names: Sequence[str] = ()) -> Iterator[Record]:
    """CSV or TSV with names in the first line; a record may span several lines."""
    csv.field_size_limit(max(csv.field_size_limit(), 2 * LONGEST_LINE))
    last, quotes = 0, 0

    def physical() -> Iterator[str]:
        nonlocal last, quotes
        for number, text in sized.lines():
            last = number
            parts = text.split('"')  # every other part is in quotes, where a CR is allowed
            if any("\r" in part for part in parts[quotes % 2 :: 2]):
                sized.tally.add("carriage-return", [number], example=text)
            quotes += len(parts) - 1
            # A CR would end the record; a blank is reported if it is in an id.
            yield text.replace("\r", " ") + "\n"

    reader = csv.reader(physical(), delimiter=separator, strict=True)
    chosen = {column: at for at, column in enumerate(("query_id", "doc_id", "grade")) if names}
    begins = 1
    decimal = NUMBERS.keys() if separator == ";" else ()
    try:
        for cells in reader:
            here, begins = begins, last + 1
            if not names:
                if not any(cell.strip() for cell in cells):
                    sized.tally.add("blank-line", [here])
                    continue
                names = [cell.strip() for cell in cells]
                named = _chosen(names, role, sized.name, here)
                chosen = {column: names.index(name) for column, name in named.items()}
                continue
            text = separator.join(cells)
            if not any(cell.strip() for cell in cells):
                sized.tally.add("blank-line", [here])
                continue
            if len(cells) != len(names):
                short = len(cells) == len(names) - 1 and chosen.get("grade") == len(cells)
                code = "missing-grade" if short else "wrong-field-count"
                says = f"{len(cells)} fields where there are {len(names)} columns"
                sized.tally.add(code, [here], example=text, says=says)
                continue
            values = {column: cells[at] for column, at in chosen.items()}
            values |= {
                column: decimal_point(values[column]) for column in decimal if column in values
            }
            yield here, values, text
    except csv.Error as error:
        raise InputError(
            f"a quoted field is not closed, or followed by other text ({error})",
            file=sized.name,
            line=begins,
            fix='close the quotes; double a quote inside a quoted field: ""',
        ) from None


def _id_tab_text(sized: _Sized, role: str) -> Iterator[Record]:
    for number, text in sized.lines():
        if not text.strip():
            sized.tally.add("blank-line", [number])
            continue
        if "\r" in text:
            sized.tally.add("carriage-return", [number], example=text)
            continue
        cells = text.split("\t")
        if len(cells) != 2:
            says = f"{len(cells)} fields where an MS MARCO line has 2 (id, tab, text)"
            sized.tally.add("wrong-field-count", [number], example=text, says=says)
            continue
        yield number, {_ID[role]: cells[0], "text": cells[1]}, text


def _objects(sized: _Sized, role: str) -> Iterator[Record]:
    meanings: dict[tuple[str, ...], dict[str, str] | str] = {}
    for number, text in sized.lines():
        if not text.strip(_BLANK):
            sized.tally.add("blank-line", [number])
            continue
        try:
            record = json.loads(text)
            refuse_half(record, text)
        except UnicodeEncodeError:
            sized.tally.add("not-json", [number], example=text, says=HALF)
            continue
        except (ValueError, RecursionError) as error:
            says = f"the line is not a JSON object ({getattr(error, 'msg', 'too deep')})"
            sized.tally.add("not-json", [number], example=text, says=says)
            continue
        if not isinstance(record, dict):
            sized.tally.add("not-json", [number], example=text)
            continue
        if role == "run" and says_about(record):
            continue
        keys = tuple(record)
        if keys not in meanings:
            meanings[keys] = _meaning(keys, role, sized.name)
        meaning = meanings[keys]
        if isinstance(meaning, str):
            sized.tally.add("missing-field", [number], example=text, says=meaning)
            continue
        yield number, {column: record[key] for column, key in meaning.items()}, text


def _meaning(keys: Sequence[str], role: str, file: str) -> dict[str, str] | str:
    """The key of each column, or an error message."""
    try:
        return _chosen(keys, role, file)
    except InputError as error:
        by_column = {known(key, role): key for key in keys}
        if role == "run" and {"query_id", "state"} <= set(by_column):
            return {column: key for column, key in by_column.items() if column}
        return error.what


def _chosen(names: Sequence[str], role: str, file: str, line: int | None = None) -> dict[str, str]:
    """The columns of a role, and ``no_answer`` of queries."""
    chosen = choose(names, role, file, line)
    if role == "queries" and "no_answer" in names:
        chosen["no_answer"] = "no_answer"
    return chosen


def _nested(source: Source, role: str, tally: Tally) -> Iterator[Record]:
    """``{query: {document: number}}``, including duplicate keys."""
    queries = parsed(source.whole(), source.name, 1, _Pairs)
    column = "grade" if role == "qrels" else "score"
    seen: set[str] = set()
    for query, documents in queries if isinstance(queries, _Pairs) else ():
        if query in seen:
            tally.add("duplicate-query", [0], query=query, example=query)
        seen.add(query)
        if not isinstance(documents, _Pairs):
            state = "failed" if documents is None else ""
            yield 0, {"query_id": query, "state": state}, f"{query}: {documents}"
        elif not documents:
            yield 0, {"query_id": query, "state": "empty"}, f"{query}: {{}}"
        for doc, value in documents if isinstance(documents, _Pairs) else ():
            yield 0, {"query_id": query, "doc_id": doc, column: value}, f"{query}: {doc}: {value}"


class _Pairs(list[tuple[str, Any]]):
    """The pairs of a JSON object, so that duplicate keys are seen."""


def _parquet(source: Source, role: str) -> Iterator[Piece]:
    frame, names = scan(source)
    named = _chosen(names, role, source.name)
    try:
        height = frame.select(pl.len()).collect().item()
        for start in range(0, height, 10 * _BATCH):
            columns = [pl.col(name).alias(column) for column, name in named.items()]
            part = frame.select(columns).slice(start, 10 * _BATCH).collect()
            yield _typed(part, role, start)
    except BROKEN as error:
        raise damaged(error, source) from None


def _typed(part: pl.DataFrame, role: str, start: int) -> Piece:
    """The rows of a role's schema from those of a Parquet file, with findings."""
    tally = Tally()
    part = part.with_columns(line=pl.int_range(start + 1, start + part.height + 1, dtype=pl.Int64))
    ids = _ids(role)
    texts = [*ids, *(name for name in ("subtopic",) if name in part.columns)]
    part = part.with_columns(pl.col(*texts).cast(pl.String, strict=False))
    unstated = pl.lit(value=True)
    if "state" in part.columns:
        unstated = ~pl.col("state").is_in(["empty", "failed"]).fill_null(value=False)
    for column in ids:
        bad = pl.col(column).fill_null("") == ""
        if column == "doc_id":
            bad &= unstated
        invalid = part.filter(bad)
        if invalid.height:
            says = f"the {column} is missing"
            tally.add("missing-id", invalid["line"].to_numpy(), says=says)
            part = part.filter(~bad)
    odd_ids(part, tally, *ids)
    if role in _ID:
        shown = [c for c in ("text", "title") if c in part.columns]
        empty = [
            pl.col(c).cast(pl.String, strict=False).fill_null("").str.strip_chars() == ""
            for c in shown
        ]
        without_text = pl.all_horizontal(empty) if empty else pl.lit(value=False)
        marked = pl.lit(value=False)
        if "no_answer" in part.columns:
            marked = pl.col("no_answer").cast(pl.String, strict=False).str.strip_chars()
            marked = marked.str.to_lowercase().is_in(list(YES)).fill_null(value=False)
        rows = part.select(
            pl.col(ids[0]).alias("id"),
            without_text.alias("empty"),
            marked.alias("no_answer"),
            "line",
        )
        return Piece(rows, tally, rows.height * 16)
    value = "grade" if role == "qrels" else "score"
    if value not in part.columns:
        part = part.with_columns(score=-pl.col("rank").cast(pl.Float64, strict=False))
    part = part.with_columns(pl.col(value).cast(pl.Float64, strict=False))
    if "rank" in part.columns:
        part = part.with_columns(pl.col("rank").cast(pl.Int64, strict=False))
    invalid = part.filter(pl.col(value).is_null() & unstated)
    if invalid.height:
        code = "missing-grade" if role == "qrels" else "score-not-a-number"
        tally.add(code, invalid["line"].to_numpy(), query=invalid["query_id"][0])
        part = part.filter(pl.col(value).is_not_null() | ~unstated)
    return Piece(part, tally, part.height * 32)
