"""Query logs: what users searched for, with counts or one row per search.

CSV, TSV, JSONL, Parquet, plain text with one query per line, and the output of ``uniq -c``; plain
or compressed. The format is detected by content.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from karat.errors import InputError, nearest
from karat.formats.own.fields import finite
from karat.formats.tables.cells import append_row, column_of
from karat.formats.tables.delimited import records
from karat.formats.tables.detect import refuse_binary
from karat.formats.tables.jsonl import parsed
from karat.formats.tables.lines import refuse_return
from karat.formats.tables.parquet import BROKEN, damaged, refuse_bomb, sound_footer, weight
from karat.formats.tables.source import Source, text_of
from karat.tables.column_names import plain


@dataclass(frozen=True)
class Most:
    """The largest log accepted: bytes, uncompressed, and rows."""

    size: int
    rows: int

    def refuse(self, size: int, rows: int, file: str) -> None:
        if size > self.size or rows > self.rows:
            raise InputError(
                f"the log has more than {self.size >> 20} MiB uncompressed or {self.rows:,} lines",
                file=file,
                fix="list each query once, with its count",
            )


def measure(path: str | Path, most: Most) -> None:
    """Raise InputError if a file is too large or damaged, by decompressing it once."""
    with Source(path) as source:
        size = rows = 0
        parquet = source.head.startswith(b"PAR1")
        for piece in source.pieces():
            size += len(piece)
            rows += 0 if parquet else piece.count(b"\n")
            most.refuse(size, rows, source.name)


TEXT = ("text", "query", "query_text", "user_query", "q", "search_query", "search_term")
"""Names of the column of queries; case, ``-`` and spaces do not matter."""
_TEXT_TOO = ("keyword", "keywords", "search", "searchterm", "term", "phrase", "search_phrase")
COUNT = (
    "count",
    "counts",
    "frequency",
    "freq",
    "searches",
    "search_count",
    "query_count",
    "volume",
)
"""Names of the column of counts."""

_UNIQ = re.compile(r"[ \d]{6}\d+ \S")
_THOUSANDS = re.compile(r"\s*[1-9]\d{0,2}(\.\d{3})+\s*")
_NUMBER = re.compile(r"\s*\d[\d.]*\s*")
_TABLE = re.compile(r"\.[ct]sv(\.\w+)?$", re.IGNORECASE)
_SAMPLE = 100
_ROWS = 3  # rows with equally many cells that make a file a table, whatever its name
_MOST = 1 << 53


def read_query_log(
    path: str | Path,
    *,
    text: str | None = None,
    count: str | None = None,
    notes: list[str] | None = None,
    most: Most | None = None,
) -> pl.DataFrame:
    """Read a query log.

    Returns:
        One row for each row of the file, in its order: ``text``, ``count`` (1 if the file has no
        counts), and its other columns. Equal queries are not merged: see ``karat.golden.traffic``.
    """
    if most is not None:
        measure(path, most)
    with Source(path) as source:
        if source.head.startswith(b"PAR1"):
            return _parquet(source, text, count, most)
        refuse_binary(source)
        if source.head.lstrip()[:1] == b"{":
            return _jsonl(source, text, count)
        if source.head.lstrip()[:1] == b"[":
            raise source.wrong(
                "expected one JSON object per line, got a JSON array",
                fix="write each object on its own line",
                command=f"jq -c '.[]' {source.name} > queries.jsonl",
            )
        return _text(source, text, count, [] if notes is None else notes)


def _text(source: Source, text: str | None, count: str | None, notes: list[str]) -> pl.DataFrame:
    # The end of the head may cut a line.
    head = source.head.decode("utf-8", "replace").split("\n")[:_SAMPLE]
    whole = head[:-1] if len(head) > 1 else head
    # The csv module fails on carriage returns within a line; they are refused later, with the line.
    head = [line.rstrip("\r").replace("\r", " ") for line in whole if line.strip()]
    for separator in ("\t", ",", ";"):
        cells = next(csv.reader(head[:1], delimiter=separator))
        named = text in cells or any(plain(cell) in (*TEXT, *_TEXT_TOO) for cell in cells)
        if len(cells) > 1 and named:
            return _cells(source, separator, None, text, count, notes)
        names = _unnamed(head, separator)
        if names is not None:
            return _cells(source, separator, names, None, None, notes)
    if text is not None and head[0].strip() != text:
        _choose(next(csv.reader(head[:1])), text, count, source.name)
    _refuse_table(source, head)
    if count is not None:
        _choose([head[0].strip()], None, count, source.name)
    return _lines(source, head, text)


def _refuse_table(source: Source, head: Sequence[str]) -> None:
    """Refuse a table without a known column.

    A file is a table by its name, a quoted first line or tabs; or if all rows have equally many
    cells and none begins with a space, as it would after a comma in a sentence.
    """
    if plain(head[0]) in (*TEXT, *_TEXT_TOO):
        return
    told = head[0].startswith('"') or bool(_TABLE.search(source.name))
    for separator in ("\t", ",", ";"):
        rows = list(csv.reader(head, delimiter=separator))
        names = [cell.strip() for cell in rows[0]]
        alike = len(rows) >= _ROWS and all(
            len(row) == len(names) and not any(cell.startswith(" ") for cell in row) for row in rows
        )
        if len(names) > 1 and (told or alike or separator == "\t"):
            raise source.wrong(
                f"no column of queries; the columns are {', '.join(map(repr, names[:12]))}",
                fix=_guess(names, rows[1:]),
            )


def _guess(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = "; if each line is a query, add the header line query"
    if any(_NUMBER.fullmatch(name) for name in names):
        return f"add a header line, such as query,count{lines}"
    columns = {name: [row[at] for row in rows if at < len(row)] for at, name in enumerate(names)}
    numbers = [
        name
        for name, cells in columns.items()
        if cells and all(_NUMBER.fullmatch(cell) for cell in cells)
    ]
    words = [name for name in names if name not in numbers] or list(names)
    fix = f"name the column of queries, such as {words[0]!r}"
    if len(numbers) == 1 and words[0] != numbers[0]:
        fix = f"{fix}, and that of counts, {numbers[0]!r}"
    return fix + lines


def _unnamed(head: Sequence[str], separator: str) -> tuple[str, str] | None:
    """The names of two columns without a header, if exactly one of them contains counts."""
    rows = list(csv.reader(head, delimiter=separator))
    if any(len(row) != 2 for row in rows):
        return None
    whole = [all(_is_count(row[at], separator) for row in rows) for at in (0, 1)]
    if whole == [False, True]:
        return ("text", "count")
    return ("count", "text") if whole == [True, False] else None


def _is_count(cell: str, separator: str) -> bool:
    return cell.strip().isdecimal() or (separator == ";" and bool(_THOUSANDS.fullmatch(cell)))


def _lines(source: Source, head: Sequence[str], text: str | None) -> pl.DataFrame:
    """One query per line, with or without a header; or the output of ``uniq -c``."""
    header = head[0].strip() == text or plain(head[0]) in (*TEXT, *_TEXT_TOO)
    counted = all(_UNIQ.match(line) for line in head) and any(line[0] == " " for line in head)
    texts, counts = [], []
    for number, line in _decoded(source):
        refuse_return(line.encode(), source.name, number)
        if header:
            header = not line.strip()
            continue
        query, number_of = line.rstrip("\r\n"), 1
        if counted and query.strip():
            first, _, query = query.lstrip(" ").partition(" ")
            number_of = int(first) if first.isdecimal() else 0
        if query.startswith('"') and query.endswith('"') and len(query) > 1:
            query = next(csv.reader([query]), [query])[0]
        texts.append(query)
        counts.append(number_of)
    return _framed({"text": texts}, counts, source.name)


def _cells(
    source: Source,
    separator: str,
    names: Sequence[str] | None,
    text: str | None,
    count: str | None,
    notes: list[str],
) -> pl.DataFrame:
    thousands: list[str] = []
    columns: list[list[str]] = []
    counts: list[int] = []
    chosen: tuple[str, str | None] = ("text", "count") if names else ("", None)
    for start, cells in records((line for _, line in _decoded(source)), separator, source.name):
        if names is None:
            names = [cell.strip() for cell in cells]
            chosen = _choose(names, text, count, source.name)
        else:
            if len(cells) != len(names):
                raise source.wrong(
                    f"{len(cells)} cells where there are {len(names)} columns",
                    line=start,
                    fix="quote cells that contain the separator",
                )
            columns = columns or [[] for _ in names]
            for column, cell in zip(columns, cells, strict=True):
                column.append(cell)
            number = None if chosen[1] is None else cells[list(names).index(chosen[1])]
            if number is not None and separator == ";" and _THOUSANDS.fullmatch(number):
                thousands.append(number.strip())
                number = number.replace(".", "")
            counts.append(1 if number is None else _whole(number, source.name, start))
    if separator == ";":
        notes.append("Cells are separated by semicolons.")
    if thousands:
        points, value = thousands[0], int(thousands[0].replace(".", ""))
        counts_are = "1 count was" if len(thousands) == 1 else f"{len(thousands):,} counts were"
        notes.append(f"{counts_are} read with points for thousands: {points} is {value:,}.")
    there = dict(zip(names or (), columns, strict=False))
    others = {name: [cell or None for cell in there[name]] for name in there if name not in chosen}
    return _framed({"text": there.get(chosen[0], []), **others}, counts, source.name)


def _jsonl(source: Source, text: str | None, count: str | None) -> pl.DataFrame:
    columns: dict[str, list[Any]] = {"text": []}
    counts: list[int] = []
    for number, line in _decoded(source):
        if not line.strip():
            continue
        row = parsed(line.rstrip("\n").encode(), source.name, number)
        if not isinstance(row, dict):
            raise source.wrong("expected a JSON object on each line", line=number)
        query, count_column = _choose(list(row), text, count, source.name, number)
        counts.append(1 if count_column is None else _whole(row[count_column], source.name, number))
        if row[query] is not None and not isinstance(row[query], str | int | float):
            raise source.wrong(f"{query!r} is not text", line=number)
        values = {name: value for name, value in row.items() if name not in (query, count_column)}
        append_row(columns, {**values, "text": row[query]}, len(counts) - 1)
    columns["text"] = [None if value is None else str(value) for value in columns["text"]]
    return _framed(columns, counts, source.name)


def _parquet(
    source: Source, text: str | None, count: str | None, most: Most | None
) -> pl.DataFrame:
    data = io.BytesIO(source.whole())
    footer = sound_footer(data, source)
    data.seek(0)
    if footer is not None:
        refuse_bomb(footer.uncompressed, source)
        if most is not None:
            most.refuse(footer.uncompressed, footer.rows, source.name)
    try:
        frame = pl.read_parquet(data)
    except BROKEN as error:
        raise damaged(error, source) from None
    refuse_bomb(weight(frame), source)  # rows share strings in the file, but not in memory
    if most is not None:
        texts = frame.select(pl.col(pl.String).str.len_bytes().sum())
        most.refuse(sum(texts.row(0)), frame.height, source.name)
    query, asked = _choose(frame.columns, text, count, source.name)
    if frame[query].dtype.is_nested() or frame[query].dtype == pl.Binary:
        raise source.wrong(f"column {query!r} is not text")
    counts = [1] * frame.height
    if asked is not None:
        counts = [_whole(value, source.name, None) for value in frame[asked].to_list()]
    others = frame.drop(query, *([asked] if asked else []))
    flat = [name for name, dtype in others.schema.items() if not dtype.is_nested()]
    others = others.select(flat)
    if {"text", "count"} & set(flat):
        raise _clash(source.name)
    first = _framed({"text": frame[query].cast(pl.String).to_list()}, counts, source.name)
    return pl.concat([first, others], how="horizontal")


def _choose(
    names: Sequence[str], text: str | None, count: str | None, file: str, line: int | None = None
) -> tuple[str, str | None]:
    if len(set(names)) < len(names):
        raise InputError("duplicate column name", file=file, line=line, fix="rename one")
    for count_column in (text, count):
        if count_column is not None and count_column not in names:
            near = nearest(count_column, names, 1)
            raise InputError(
                f"no column {count_column!r}; the columns are {', '.join(map(repr, names[:12]))}",
                file=file,
                line=line,
                fix=f"did you mean {near[0]!r}?" if near else None,
            )
    free = [name for name in names if name != count]
    query = text or _one(free, TEXT, file, line) or _one(free, _TEXT_TOO, file, line)
    if query is None:
        raise InputError(
            f"no column of queries; the columns are {', '.join(map(repr, names[:12]))}",
            file=file,
            line=line,
            fix=f"name it, or rename it to one of {', '.join(TEXT)}",
        )
    count_column = count or _one([name for name in names if name != query], COUNT, file, line)
    others = {plain(name) for name in names if name not in (query, count_column)}
    if {"text", "count"} & others:
        raise _clash(file)
    return query, count_column


def _one(names: Sequence[str], spelt: Sequence[str], file: str, line: int | None) -> str | None:
    present = [name for name in names if plain(name) in spelt]
    if len(present) > 1:
        raise InputError(
            f"ambiguous columns {present[0]!r} and {present[1]!r}",
            file=file,
            line=line,
            fix="name the column to use, or keep only one of them",
        )
    return present[0] if present else None


def _clash(file: str) -> InputError:
    return InputError(
        "another column is called 'text' or 'count', which are reserved for queries and counts",
        file=file,
        fix="rename it",
    )


def _whole(value: Any, file: str, line: int | None) -> int:
    try:
        number = finite(float(value.strip()) if isinstance(value, str) else value)
    except ValueError:
        number = None
    if number is None or number < 0 or number != int(number) or number >= _MOST:
        raise InputError(f"the count {value!r} is not a whole number ≥ 0", file=file, line=line)
    return int(number)


def _decoded(source: Source) -> Iterator[tuple[int, str]]:
    for chunk in source.chunks():
        for number, raw in enumerate(chunk.data.removesuffix(b"\n").split(b"\n"), chunk.first_line):
            yield number, text_of(raw, source.name, number) + "\n"


def _framed(columns: dict[str, list[Any]], counts: list[int], file: str) -> pl.DataFrame:
    if not counts:
        raise InputError("the file contains no query", file=file)
    texts = pl.Series("text", columns["text"], dtype=pl.String)
    others = [column_of(name, values) for name, values in columns.items() if name != "text"]
    return pl.DataFrame([texts, pl.Series("count", counts, dtype=pl.Int64), *others])
