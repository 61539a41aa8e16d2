"""CSV and TSV with a header line, quoted as in RFC 4180.

Records may span lines, so the file is cut where quotes are balanced; pieces are parsed by Polars,
and row by row if Polars is in doubt. Where a comma is the decimal sign, spreadsheets write CSV with
semicolons, which is detected from the header.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import IO, TYPE_CHECKING

import polars as pl

from karat.errors import InputError
from karat.formats.tables.cells import NUMBERS, Careful, fast, run_rows
from karat.formats.tables.format import ROLES, Format, Place, Rows, answered, refuse_unwritable
from karat.formats.tables.lines import FAULTS, ahead, only_crlf, within
from karat.formats.tables.source import BOM, LONGEST_LINE, Chunk, Source, text_of
from karat.tables import Documents, Qrels, Queries, Run
from karat.tables.column_names import SPELLINGS, choose, known

if TYPE_CHECKING:
    from polars._typing import CsvQuoteStyle

# The csv module has one limit for the whole process, 131,072 characters by default: too short for
# a document. Lines are limited by the source.
csv.field_size_limit(max(csv.field_size_limit(), 2 * LONGEST_LINE))
_DECIMAL = r"^(\s*[+-]?\d+),(\d+(?:[eE][+-]?\d+)?\s*)$"
_FLOATS = ("weight", "probability")  # of queries; other attributes are text
_HEADER = 1 << 16  # bytes of the longest header


def is_semicolon_header(header: str) -> bool:
    """Whether a header is separated by semicolons rather than commas.

    It is if that gives more known columns, or equally many known columns and more in all.
    """
    line = header[:_HEADER].replace("\r", " ")  # the parser rejects carriage returns
    commas, semis = (next(csv.reader([line], delimiter=mark), []) for mark in ",;")
    if len(semis) < 2:
        return False
    return (_known(semis), len(semis)) > (_known(commas), len(commas))


def _known(cells: Sequence[str]) -> int:
    """How many cells name a column of any role."""
    return sum(any(known(cell, role) for role in SPELLINGS) for cell in cells)


def decimal_point(cell: str) -> str:
    """A cell with a decimal comma written with a point (``1,5`` as 1.5); others unchanged."""
    return re.sub(_DECIMAL, r"\1.\2", cell, flags=re.ASCII)


@dataclass(frozen=True, slots=True)
class Sheet:
    """The layout of a file."""

    names: tuple[str, ...]
    chosen: dict[str, str]
    separator: str
    role: str


def read(source: Source, role: str, separator: str, names: Sequence[str] | None = None) -> Rows:
    """Read a CSV or TSV file; ``names`` are the columns if it has no header."""
    pieces = _pieces(source)
    sheet, rest = _sheet(source, pieces, role, separator, names)
    read_piece = _table if role in ("qrels", "run") else _attributes

    def every() -> Iterator[Chunk]:
        yield rest
        yield from pieces

    frames = ahead(lambda piece: read_piece(piece, sheet, source.name), every())
    return run_rows(frames, sheet.chosen) if role == "run" else Rows(frames)


def places(
    source: Source, role: str, separator: str, names: Sequence[str] | None = None
) -> Iterator[Place]:
    pieces = _pieces(source)
    sheet, rest = _sheet(source, pieces, role, separator, names)
    ids = [c for c in sheet.chosen if c.endswith("_id") or c == "subtopic"]
    at = [sheet.names.index(sheet.chosen[c]) for c in ids]
    for piece in (rest, *pieces):
        for line, cells in _records(piece, sheet.separator, source.name):
            if len(cells) > max(at):
                yield Place(line, tuple(cells[i] for i in at))


def _pieces(source: Source) -> Iterator[Chunk]:
    """Chunks that do not end within a quoted cell."""
    waiting: list[bytes] = []
    line, quotes = 1, 0
    for chunk in source.chunks():
        quotes += chunk.data.count(b'"')
        if not waiting:
            line = chunk.first_line
        waiting.append(chunk.data)
        if quotes % 2 == 0:
            yield Chunk(b"".join(waiting), line)
            waiting, quotes = [], 0
    if waiting:
        yield Chunk(b"".join(waiting), line)


def _sheet(
    source: Source,
    pieces: Iterator[Chunk],
    role: str,
    separator: str,
    names: Sequence[str] | None,
) -> tuple[Sheet, Chunk]:
    """The layout, and the first piece without its header."""
    first = next(pieces)
    if names is not None:
        named = tuple(names)
        return Sheet(named, choose(named, role, source.name), separator, role), first
    skipped = 0
    while skipped < len(first.data):  # blank lines above the header
        end = first.data.find(b"\n", skipped) + 1 or len(first.data)
        if first.data[skipped:end].strip():
            break
        skipped = end
    line = first.first_line + first.data.count(b"\n", 0, skipped)
    end = skipped
    while True:  # a quoted name may span lines
        end = first.data.find(b"\n", end) + 1 or len(first.data)
        if end == len(first.data) or first.data.count(b'"', skipped, end) % 2 == 0:
            break
    if separator == "," and is_semicolon_header(first.data[skipped:end].decode("utf-8", "replace")):
        separator = ";"
    header = list(_records(Chunk(first.data[skipped:end], line), separator, source.name))
    named = tuple(name.strip() for name in header[0][1]) if header else ()
    if len(set(named)) < len(named):
        twice = next(name for i, name in enumerate(named) if name in named[:i])
        raise source.wrong(f"two columns are called {twice!r}", line=line, fix="rename one")
    chosen = choose(named, role, source.name, line)
    rest = Chunk(first.data[end:], line + first.data.count(b"\n", skipped, end))
    return Sheet(named, chosen, separator, role), rest


def _table(piece: Chunk, sheet: Sheet, name: str) -> pl.DataFrame:
    frame = _polars(piece, sheet)
    if frame is not None and (done := fast(frame, sheet.chosen)) is not None:
        return done
    careful = Careful(name)
    at = {column: sheet.names.index(chosen) for column, chosen in sheet.chosen.items()}
    decimal = NUMBERS.keys() if sheet.separator == ";" else ()
    for line, cells in _whole_records(piece, sheet, name):
        row = {c: decimal_point(cells[i]) if c in decimal else cells[i] for c, i in at.items()}
        careful.add(row, line)
    return careful.frame()


def _attributes(piece: Chunk, sheet: Sheet, name: str) -> pl.DataFrame:
    frame = _polars(piece, sheet)
    key = f"{'query' if sheet.role == 'queries' else 'doc'}_id"
    if frame is None or (frame[sheet.chosen[key]] == "").any():
        careful = Careful(name)
        at = sheet.names.index(sheet.chosen[key])
        rows = []
        for line, cells in _whole_records(piece, sheet, name):
            careful.identifier(cells[at], key, line)
            rows.append(cells)
        schema = dict.fromkeys(sheet.names, pl.String())
        frame = pl.DataFrame(rows, schema=schema, orient="row")
    for column in _FLOATS if sheet.role == "queries" else ():
        if column in sheet.names and column not in sheet.chosen.values():
            frame = _floats(frame, column, piece, sheet, name)
    frame = frame.rename({chosen: column for column, chosen in sheet.chosen.items()})
    never_null = {key, "text", "title"}
    return frame.with_columns(
        pl.when(pl.col(column) != "").then(pl.col(column)).alias(column)
        for column in frame.columns
        if column not in never_null
    )


def _floats(
    frame: pl.DataFrame, column: str, piece: Chunk, sheet: Sheet, name: str
) -> pl.DataFrame:
    """The frame with the numbers of a column written with a decimal point."""
    if sheet.separator == ";":
        frame = frame.with_columns(pl.col(column).str.replace(_DECIMAL, "${1}.${2}"))
    values = frame[column]
    invalid = (values != "") & values.cast(pl.Float64, strict=False).is_null()
    if column != "weight" or not invalid.any():
        return frame  # evaluation does not use probabilities
    at = int(invalid.arg_max() or 0)
    line, cells = next(islice(_whole_records(piece, sheet, name), at, None))
    plain = decimal_point(values[at])
    alternative = ", or separate the cells by semicolons" if sheet.separator == "," else ""
    raise InputError(
        f"the {column} {values[at]!r} is not a number",
        file=name,
        line=line,
        query=cells[sheet.names.index(sheet.chosen["query_id"])],
        fix="write a number with a decimal point"
        if plain == values[at]
        else f"write {plain}{alternative}",
    )


def _polars(piece: Chunk, sheet: Sheet) -> pl.DataFrame | None:
    data = piece.data
    quotes = data.count(b'"')
    # Polars panics on some cells whose quote is never closed.
    odd = b"\x00" in data or data.startswith(BOM) or not only_crlf(data)
    if odd or quotes % 2 or not data.strip():
        return None
    numbers = [sheet.chosen[column] for column in NUMBERS if column in sheet.chosen]
    read_as = {sheet.chosen[c]: dtype for c, dtype in NUMBERS.items() if c in sheet.chosen}
    if "state" in sheet.chosen or sheet.separator == ";":
        read_as = {}
    try:
        frame = pl.read_csv(
            data,
            has_header=False,
            separator=sheet.separator,
            quote_char='"' if quotes else None,
            schema={name: read_as.get(name, pl.String) for name in sheet.names},
            extra_columns="raise",
            missing_columns="raise",
        )
    except FAULTS:
        return None
    # Missing and empty cells are both null. Short and blank lines lack the last cell; if no last
    # cell is null, all other nulls are empty cells.
    if frame[:, -1].null_count():
        return None
    frame = frame.with_columns(pl.col(pl.String).fill_null(""))
    if sheet.separator != ";":
        return frame
    return frame.with_columns(pl.col(numbers).str.replace(_DECIMAL, "${1}.${2}"))


def _whole_records(piece: Chunk, sheet: Sheet, name: str) -> Iterator[tuple[int, list[str]]]:
    for line, cells in _records(piece, sheet.separator, name):
        if len(cells) != len(sheet.names):
            kind = "TSV" if sheet.separator == "\t" else "CSV"
            raise InputError(
                f"{len(cells)} cell{'s' * (len(cells) != 1)} where there are "
                f"{len(sheet.names)} columns ({', '.join(sheet.names[:8])})",
                file=name,
                line=line,
                fix=f"quote cells that contain the {kind} separator",
            )
        yield line, cells


def _records(piece: Chunk, separator: str, name: str) -> Iterator[tuple[int, list[str]]]:
    raws = piece.data.removesuffix(b"\n").split(b"\n")
    lines = (text_of(raw, name, line) + "\n" for line, raw in enumerate(raws, piece.first_line))
    return records(lines, separator, name, piece.first_line)


def records(
    lines: Iterable[str], separator: str, name: str, first_line: int = 1
) -> Iterator[tuple[int, list[str]]]:
    """Every record that is not blank, with the line it starts on."""
    reader = csv.reader(lines, delimiter=separator, strict=True)
    while True:
        start = first_line + reader.line_num
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "new-line character" in str(error):
                raise within(name, start) from None
            what = _plainly(str(error), separator)
            raise InputError(what, file=name, line=start, fix=_QUOTES) from None
        if any(cell.strip() for cell in cells):
            yield start, cells


_QUOTES = 'quote cells that contain a quote, and double the quote: "say ""hi"""'


def _plainly(message: str, separator: str) -> str:
    if "unexpected end of data" in message:
        return "a quote is never closed"
    if "expected after" in message:
        return f"text between a closing quote and the next {separator!r}"
    return f"invalid CSV: {message}"


def write(
    frame: pl.DataFrame,
    stream: IO[bytes],
    separator: str,
    source: str,
    *,
    header: bool = True,
) -> None:
    """Write a frame; raises InputError if a cell contains a NUL byte."""
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    refuse_unwritable(frame, tuple(texts), r"\x00", "a text file", source)
    # Polars does not quote cells with carriage returns by itself.
    odd = any(frame[name].str.contains("\r", literal=True).any() for name in texts)
    style: CsvQuoteStyle = "non_numeric" if odd else "necessary"
    frame.write_csv(stream, include_header=header, separator=separator, quote_style=style)


def _named(name: str, what: str, extension: str, separator: str) -> Format:
    def write_qrels(qrels: Qrels, stream: IO[bytes]) -> None:
        write(qrels.rows, stream, separator, qrels.source)

    def write_run(run: Run, stream: IO[bytes]) -> None:
        for number, frame in enumerate(answered(run)):
            write(frame, stream, separator, run.source, header=number == 0)

    def write_rows(table: Queries | Documents, stream: IO[bytes]) -> None:
        nested = [
            pl.col(column).map_elements(str, return_dtype=pl.String)
            for column, dtype in table.frame.schema.items()
            if dtype.is_nested()
        ]
        write(table.frame.with_columns(nested), stream, separator, table.source)

    return Format(
        name=name,
        what=what,
        extensions=(extension,),
        readers={role: partial(read, role=role, separator=separator) for role in ROLES},
        writers={
            "qrels": write_qrels,
            "run": write_run,
            "queries": write_rows,
            "documents": write_rows,
            "pairs": write_rows,
        },
        places=lambda source, role: places(source, role, separator),
        keeps=frozenset({"answers"}),
    )


CSV = _named("csv", "comma-separated values with a header line", ".csv", ",")
TSV = _named("tsv", "tab-separated values with a header line", ".tsv", "\t")
