"""Query logs: what people searched for, with counts or one line for each search.

CSV, TSV, JSONL, Parquet, plain text with one query to a line, and what ``uniq -c`` prints; plain or
compressed. Told by content, as everywhere.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from karat.errors import Advice, InputError, nearest
from karat.formats.own.fields import finite
from karat.formats.tables.detect import refuse_binary
from karat.formats.tables.jsonl import parsed
from karat.formats.tables.line_ends import WITHIN, refuse_return, return_advice
from karat.formats.tables.log_size import Most, measure
from karat.formats.tables.parquet import BROKEN, damaged, refuse_bomb, sound_footer, weight
from karat.formats.tables.source import Source, in_utf8
from karat.tables.column_names import plain

TEXT = ("text", "query", "query_text", "user_query", "q", "search_query", "search_term")
"""What the column of queries may be called; case, ``-`` and spaces do not matter."""
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
"""What the column of counts may be called."""

_UNIQ = re.compile(r"[ \d]{6}\d+ \S")
_THOUSANDS = re.compile(r"\s*[1-9]\d{0,2}(\.\d{3})+\s*")
_NUMBER = re.compile(r"\s*\d[\d.]*\s*")
_TABLE = re.compile(r"\.[ct]sv(\.\w+)?$", re.IGNORECASE)
_SAMPLE = 100
_ROWS = 3
"""Rows of equally many cells that make a table of a file whose name does not."""
_MOST = 1 << 53


def read_query_log(
    path: str | Path,
    *,
    text: str | None = None,
    count: str | None = None,
    notes: list[str] | None = None,
    most: Most | None = None,
) -> pl.DataFrame:
    """Read a log of queries.

    Args:
        path: The file, or ``-`` for standard input.
        text: The column of queries, if it has no usual name.
        count: The column of counts, if it has no usual name.
        notes: Where to put what a person should know of how it was read, in sentences.
        most: How large a file may be; then it must be one that can be read twice.

    Returns:
        One row for each row of the file, in its order: ``text``, ``count`` (1 where the file has
        none), and its other columns. Equal queries are not merged: see ``karat.golden.traffic``.

    Raises:
        InputError: a damaged file, no column of queries or two, a count that is not a whole
            number, 0 or more; or it is larger than it may be.
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
            raise InputError(
                "a JSON array, and a log has one object to a line",
                file=source.name,
                fix=Advice(
                    f"jq -c '.[]' {source.name} > queries.jsonl",
                    page="write each object on a line of its own",
                ),
            )
        return _text(source, text, count, [] if notes is None else notes)


def _text(source: Source, text: str | None, count: str | None, notes: list[str]) -> pl.DataFrame:
    # The end of the head may cut a line.
    head = source.head.decode("utf-8", "replace").split("\n")[:_SAMPLE]
    whole = head[:-1] if len(head) > 1 else head
    # The parser stumbles on carriage returns within a line, which are refused with its number.
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
    """Refuse what is plainly a table, none of whose columns is known.

    It is one by its name, a quoted first line or tabs; or if all its rows have as many cells as
    the first, and none begins with a space, as it does behind the commas that people type.
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
            raise InputError(
                f"no column of queries; there are {', '.join(map(repr, names[:12]))}",
                file=source.name,
                fix=_guess(names, rows[1:]),
            )


def _guess(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Advice:
    """What helps with a table without a known column."""
    lines = "; if a line is a query, the line query above them"
    if any(_NUMBER.fullmatch(name) for name in names):
        said = f"write a first line with the names of the columns, as in query,count{lines}"
        return Advice(said, page=said)
    columns = {name: [row[at] for row in rows if at < len(row)] for at, name in enumerate(names)}
    numbers = [
        name
        for name, cells in columns.items()
        if cells and all(_NUMBER.fullmatch(cell) for cell in cells)
    ]
    words = [name for name in names if name not in numbers] or list(names)
    said, page = f"--text {shlex.quote(words[0])}", f"the column of queries is {words[0]}"
    if len(numbers) == 1 and words[0] != numbers[0]:
        said, page = f"{said} --count {shlex.quote(numbers[0])}", f"{page}, of counts {numbers[0]}"
    elif len(words) + len(numbers) > 2:
        said, page = f"{said}, or another of them", f"{page}, or another of them"
    return Advice(said + lines, page=f"say below that {page}{lines}")


def _unnamed(head: Sequence[str], separator: str) -> tuple[str, str] | None:
    """Two columns without names, if one of them is counts and the other is not."""
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
    """One query to a line, below its name if there is one; or what ``uniq -c`` prints."""
    header = head[0].strip() == text or plain(head[0]) in (*TEXT, *_TEXT_TOO)
    counted = all(_UNIQ.match(line) for line in head) and any(line[0] == " " for line in head)
    texts, counts = [], []
    for number, line in _decoded(source):
        refuse_return(line.encode(), source.name, number)
        if header:
            header = not line.strip()
            continue
        query, n = line.rstrip("\r\n"), 1
        if counted and query.strip():
            first, _, query = query.lstrip(" ").partition(" ")
            n = int(first) if first.isdecimal() else 0
        if query.startswith('"') and query.endswith('"') and len(query) > 1:
            query = next(csv.reader([query]), [query])[0]
        texts.append(query)
        counts.append(n)
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
    reader = csv.reader((line for _, line in _decoded(source)), delimiter=separator, strict=True)
    columns: list[list[str]] = []
    counts: list[int] = []
    chosen: tuple[str, str | None] = ("text", "count") if names else ("", None)
    while True:
        start = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            cut = "new-line character" in str(error)
            quoted = 'a cell that holds a quote stands in quotes, the quote doubled: "a 3"" pipe"'
            raise InputError(
                WITHIN if cut else f"not readable as cells: {error}",
                file=source.name,
                line=start,
                fix=return_advice(source.name) if cut else quoted,
            ) from None
        if not any(cell.strip() for cell in cells):
            continue
        if names is None:
            names = [cell.strip() for cell in cells]
            chosen = _choose(names, text, count, source.name)
        else:
            if len(cells) != len(names):
                raise InputError(
                    f"{len(cells)} cells where there are {len(names)} columns",
                    file=source.name,
                    line=start,
                    fix="a cell that holds the separator must stand in quotes",
                )
            columns = columns or [[] for _ in names]
            for column, cell in zip(columns, cells, strict=True):
                column.append(cell)
            said = None if chosen[1] is None else cells[list(names).index(chosen[1])]
            if said is not None and separator == ";" and _THOUSANDS.fullmatch(said):
                thousands.append(said.strip())
                said = said.replace(".", "")
            counts.append(1 if said is None else _whole(said, source.name, start))
    if separator == ";":
        notes.append("The cells were taken to stand between semicolons.")
    if thousands:
        points, number = thousands[0], int(thousands[0].replace(".", ""))
        counts_are = "1 count was" if len(thousands) == 1 else f"{len(thousands):,} counts were"
        notes.append(f"{counts_are} read with points for thousands: {points} is {number:,}.")
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
            raise InputError(
                "each line of a log in JSONL is an object", file=source.name, line=number
            )
        query, asked = _choose(list(row), text, count, source.name, number)
        counts.append(1 if asked is None else _whole(row[asked], source.name, number))
        if row[query] is not None and not isinstance(row[query], str | int | float):
            raise InputError(f"{query!r} is no text", file=source.name, line=number)
        values = {name: value for name, value in row.items() if name not in (query, asked)}
        for name, value in {**values, "text": row[query]}.items():
            column = columns.setdefault(name, [])
            column += [None] * (len(counts) - 1 - len(column))
            column.append(value)
    for column in columns.values():
        column.extend([None] * (len(counts) - len(column)))
    columns["text"] = [None if value is None else str(value) for value in columns["text"]]
    return _framed(columns, counts, source.name)


def _parquet(
    source: Source, text: str | None, count: str | None, most: Most | None
) -> pl.DataFrame:
    held = io.BytesIO(source.whole())
    said = sound_footer(held, source)
    held.seek(0)
    if said is not None:
        refuse_bomb(said.uncompressed, source)
        if most is not None:
            most.refuse(said.uncompressed, said.rows, source.name)
    try:
        frame = pl.read_parquet(held)
    except BROKEN as error:
        raise damaged(error, source) from None
    refuse_bomb(weight(frame), source)  # rows may share a text, and each will have its own
    if most is not None:
        texts = frame.select(pl.col(pl.String).str.len_bytes().sum())
        most.refuse(sum(texts.row(0)), frame.height, source.name)
    query, asked = _choose(frame.columns, text, count, source.name)
    if frame[query].dtype.is_nested() or frame[query].dtype == pl.Binary:
        raise InputError(f"column {query!r} is no text", file=source.name)
    counts = [1] * frame.height
    if asked is not None:
        counts = [_whole(value, source.name, None) for value in frame[asked].to_list()]
    others = frame.drop(query, *([asked] if asked else []))
    told = [name for name, dtype in others.schema.items() if not dtype.is_nested()]
    others = others.select(told)
    if {"text", "count"} & set(told):
        raise _clash(source.name)
    first = _framed({"text": frame[query].cast(pl.String).to_list()}, counts, source.name)
    return pl.concat([first, others], how="horizontal")


def _choose(
    names: Sequence[str], text: str | None, count: str | None, file: str, line: int | None = None
) -> tuple[str, str | None]:
    """The columns of queries and of counts."""
    if len(set(names)) < len(names):
        raise InputError("two columns have one name", file=file, line=line, fix="rename one")
    for asked in (text, count):
        if asked is not None and asked not in names:
            near = nearest(asked, names, 1)
            raise InputError(
                f"no column {asked!r}; there are {', '.join(map(repr, names[:12]))}",
                file=file,
                line=line,
                fix=f"did you mean {near[0]!r}?" if near else None,
            )
    free = [name for name in names if name != count]
    query = text or _one(free, TEXT, file, line) or _one(free, _TEXT_TOO, file, line)
    if query is None:
        raise InputError(
            f"no column of queries; there are {', '.join(map(repr, names[:12]))}",
            file=file,
            line=line,
            fix=Advice(
                f"--text COLUMN names it; or call it one of {', '.join(TEXT)}",
                page="say below which column holds the queries",
            ),
        )
    asked = count or _one([name for name in names if name != query], COUNT, file, line)
    others = {plain(name) for name in names if name not in (query, asked)}
    if {"text", "count"} & others:
        raise _clash(file)
    return query, asked


def _one(names: Sequence[str], spelt: Sequence[str], file: str, line: int | None) -> str | None:
    there = [name for name in names if plain(name) in spelt]
    if len(there) > 1:
        raise InputError(
            f"columns {there[0]!r} and {there[1]!r} may both be meant",
            file=file,
            line=line,
            fix="say which column is which, or keep one of them",
        )
    return there[0] if there else None


def _clash(file: str) -> InputError:
    return InputError(
        "a further column is called 'text' or 'count', which are the queries and their counts",
        file=file,
        fix="rename it",
    )


def _whole(value: Any, file: str, line: int | None) -> int:
    """A count."""
    said = value.strip() if isinstance(value, str) else value
    try:
        number = finite(float(said) if isinstance(said, str) else said)
    except ValueError:
        number = None
    if number is None or number < 0 or number != int(number) or number >= _MOST:
        raise InputError(
            f"the count {value!r} is not a whole number, 0 or more", file=file, line=line
        )
    return int(number)


def _decoded(source: Source) -> Iterator[tuple[int, str]]:
    """Every line with its number."""
    for chunk in source.chunks():
        for number, raw in enumerate(_split(chunk.data), chunk.first_line):
            try:
                line = raw.decode("utf-8") + "\n"
            except UnicodeDecodeError:
                raise InputError(
                    "the line is not UTF-8",
                    file=source.name,
                    line=number,
                    fix=in_utf8(source.name),
                ) from None
            if "\x00" in line:
                raise InputError("binary data, not text", file=source.name, line=number)
            yield number, line


def _split(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    return lines if lines[-1] else lines[:-1]


def _framed(columns: dict[str, list[Any]], counts: list[int], file: str) -> pl.DataFrame:
    if not counts:
        raise InputError("the file holds no query", file=file)
    made = {name: _series(name, values) for name, values in columns.items()}
    made["text"] = pl.Series("text", columns["text"], dtype=pl.String)
    asked = pl.Series("count", counts, dtype=pl.Int64)
    others = [series for name, series in made.items() if name != "text"]
    return pl.DataFrame([made["text"], asked, *others])


def _series(name: str, values: list[Any]) -> pl.Series:
    """Values keep their type if they share one; otherwise they become text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds in ({int}, {float}, {bool}, {str}):
        try:
            return pl.Series(name, values)
        except (OverflowError, TypeError, pl.exceptions.PolarsError):
            pass
    spelt = [v if v is None or isinstance(v, str) else json.dumps(v) for v in values]
    return pl.Series(name, spelt, dtype=pl.String)
