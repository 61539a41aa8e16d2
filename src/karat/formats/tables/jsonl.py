"""JSONL: one object per line, with karat's field names, BEIR's (``_id``) or other usual ones.

Further fields of queries and documents become attributes; a ``metadata`` object is flattened.
Duplicate keys are an error: parsers silently keep one. A run may begin with a line
``{"about": {"engine": "prod", …}}`` that describes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import IO, Any

import polars as pl

from karat.errors import InputError
from karat.formats.tables.cells import ANSWER, Careful, append_row, column_of, fast, run_rows
from karat.formats.tables.format import Format, Place, Rows, answered, frame_writers
from karat.formats.tables.lines import FAULTS, ahead
from karat.formats.tables.source import Chunk, Source, not_utf8
from karat.tables import Run
from karat.tables.about import facts, flat
from karat.tables.column_names import choose, known, plain

_LINE = json.JSONEncoder(ensure_ascii=False, default=str)
_INFER = 1000  # lines from which Polars infers the schema

HALF = "a \\u escape is half of a surrogate pair, which is not a character"


class DuplicateKey(ValueError):
    """A duplicate key in an object."""


def no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object without duplicate keys, for ``json.loads(object_pairs_hook=…)``."""
    out = dict(pairs)
    if len(out) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise DuplicateKey(f"duplicate key {key!r}")
            seen.add(key)
    return out


def read_table(source: Source, role: str) -> Rows:
    chunks = source.chunks()
    first, about = _without_header(chunks, role, source.name)
    line, row = next(_objects(first.lines(), source.name), (None, {}))
    if line is None:  # nothing but a header
        return Rows([], about=lambda: about)
    chosen = _chosen(row, role, source.name, line)

    def every() -> Iterator[Chunk]:
        yield first
        yield from chunks

    frames = ahead(lambda chunk: _table(chunk, role, chosen, source.name), every())
    if role == "qrels":
        return Rows(frames)
    # Any line may have a state or lack a rank, not only the first.
    parts = [frame for frame in frames if frame.height]
    columns = {column for frame in parts for column in frame.columns}
    if any(set(frame.columns) != columns for frame in parts):
        parts = [pl.concat(parts, how="diagonal_relaxed")]
    return replace(run_rows(parts, columns), about=lambda: about)


def says_about(row: Mapping[str, Any]) -> bool:
    """Whether an object is the line that describes a run: ``{"about": {…}}``."""
    return list(row) == ["about"] and isinstance(row["about"], dict)


def _without_header(chunks: Iterator[Chunk], role: str, name: str) -> tuple[Chunk, dict[str, str]]:
    """The first chunk with rows, without the ``about`` line; and that line's content."""
    first = next(chunks)
    line, row = next(_objects(first.lines(), name), (first.first_line, {}))
    if role != "run" or not says_about(row):
        return first, {}
    about = flat(row["about"], name)
    rest = first.data.split(b"\n", line - first.first_line + 1)[-1]
    if rest.strip():
        return Chunk(rest, line + 1), about
    return next(chunks, Chunk(b"", line + 1)), about


def read_attributes(source: Source, role: str) -> Rows:
    key = "query_id" if role == "queries" else "doc_id"
    careful = Careful(source.name)
    columns: dict[str, list[Any]] = {}
    chosen: dict[tuple[str, ...], dict[str, str]] = {}
    for count, (line, row) in enumerate(_objects(source.lines(), source.name)):
        names = tuple(row)
        if names not in chosen:
            mapping = choose(names, role, source.name, line)
            chosen[names] = {name: column for column, name in mapping.items()}
        flat = _flat(row, chosen[names])
        flat[key] = careful.identifier(flat.get(key), key, line)
        append_row(columns, flat, count)
    return Rows([pl.DataFrame([column_of(name, values) for name, values in columns.items()])])


def _table(chunk: Chunk, role: str, chosen: Mapping[str, str], name: str) -> pl.DataFrame:
    frame = _polars(chunk.data, chosen)
    if frame is not None and (done := fast(frame, chosen)) is not None:
        return done
    careful = Careful(name)
    by_names: dict[tuple[str, ...], dict[str, str]] = {}
    for line, row in _objects(chunk.lines(), name):
        names = tuple(row)
        if names not in by_names:
            by_names[names] = _chosen(row, role, name, line)
        careful.add({column: row[n] for column, n in by_names[names].items()}, line)
    return careful.frame()


def _chosen(row: Mapping[str, Any], role: str, name: str, line: int) -> dict[str, str]:
    """The columns of one object; with the state ``empty`` or ``failed`` it needs no document."""
    names = list(row)
    state = next((n for n in names if plain(n) == "state"), None)
    if role == "run" and state and row[state] in ("empty", "failed"):
        known_columns = {known(n, role) for n in names}
        lacking = [column for column in ("doc_id", "score") if column not in known_columns]
        columns_of = choose([*names, *lacking], role, name, line)
        return {column: n for column, n in columns_of.items() if n in row}
    return choose(names, role, name, line)


def _polars(data: bytes, chosen: Mapping[str, str]) -> pl.DataFrame | None:
    if b"\x00" in data or b"\\u" in data:
        return None
    try:
        frame = pl.read_ndjson(data, infer_schema_length=_INFER)
    except FAULTS:
        return None
    names = list(chosen.values())
    if not set(names) <= set(frame.columns):
        return None
    # Polars silently keeps one of two equal keys: count them.
    if any(data.count(json.dumps(name).encode()) != frame.height for name in names):
        return None
    # It also turns numbers among strings into text: 7.0 would become an id.
    for column, name in chosen.items():
        text = column.endswith("_id") or column == "subtopic"
        if text and frame[name].dtype == pl.String:
            key = json.dumps(name).encode()
            if data.count(key + b': "') + data.count(key + b':"') != frame.height:
                return None
    if any(plain(name) in ANSWER for name in frame.columns):
        return None
    if "subtopic" not in chosen and any(known(n, "qrels") == "subtopic" for n in frame.columns):
        return None  # the first line lacks what a later one has
    return frame


def _objects(lines: Iterable[tuple[int, bytes]], name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every object with its line."""
    for line, raw in lines:
        if not raw.strip():
            continue
        row = parsed(raw, name, line)
        if not isinstance(row, dict):
            raise InputError(
                f"expected a JSON object, got {_kind(row)}",
                file=name,
                line=line,
                fix='each line is an object, such as {"query_id": "7", …}',
            )
        yield line, row


def parsed(raw: bytes, name: str, line: int, hook: Any = no_twins) -> Any:
    """Parse JSON."""
    try:
        text = raw.decode("utf-8")
        row = json.loads(text, object_pairs_hook=hook)
        refuse_half(row, text)
        return row
    except UnicodeDecodeError as error:
        at = raw.count(b"\n", 0, error.start)
        raise not_utf8("the line is not UTF-8", name, line + at) from None
    except UnicodeEncodeError:
        raise InputError(HALF, file=name, line=line) from None
    except json.JSONDecodeError as error:
        raise InputError(
            f"not JSON: {error.msg.removesuffix(' at')} at character {error.colno}",
            file=name,
            line=line + error.lineno - 1,
            fix=_hint(raw),
        ) from None
    except DuplicateKey as error:
        raise InputError(str(error), file=name, line=line, fix="keep one of them") from None
    except RecursionError:
        raise InputError("objects are nested too deeply", file=name, line=line) from None
    except ValueError as error:
        raise InputError(f"not JSON: {error}", file=name, line=line) from None


def refuse_half(row: Any, text: str) -> None:
    """Raise UnicodeEncodeError if an escape is half of a surrogate pair, not a character."""
    if "\\ud" in text.lower():
        json.dumps(row, ensure_ascii=False).encode("utf-8")


def _hint(raw: bytes) -> str | None:
    if b"'" in raw and b'"' not in raw:
        return "JSON strings are quoted with \", not with '"
    if raw.strip().startswith(b"{") and not raw.strip().endswith(b"}"):
        return "is the file complete? The line ends early"
    return None


def _flat(row: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The object under the table's column names, with its metadata flattened."""
    out = {names.get(name, name): value for name, value in row.items() if name != "metadata"}
    metadata = row.get("metadata")
    if isinstance(metadata, dict):
        for name, value in metadata.items():
            out[f"metadata.{name}" if name in out else name] = value
    elif metadata not in (None, ""):
        out["metadata"] = metadata
    return out


def _kind(value: Any) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _places(source: Source, role: str) -> Iterator[Place]:
    for line, row in _objects(source.lines(), source.name):
        if role == "run" and says_about(row):
            continue
        columns = _chosen(row, role, source.name, line)
        ids = (str(row[n]) for c, n in columns.items() if c.endswith("_id") or c == "subtopic")
        yield Place(line, tuple(ids))


def write_frame(frame: pl.DataFrame, stream: IO[bytes]) -> None:
    """Rows as objects, without empty cells."""
    sparse = any(frame.null_count().row(0))
    infinite = any(
        frame[name].is_infinite().any() for name, d in frame.schema.items() if d.is_float()
    )
    if not sparse and not infinite and not any(d.is_nested() for d in frame.dtypes):
        frame.write_ndjson(stream)
        return
    for row in frame.iter_rows(named=True):
        filled = {name: value for name, value in row.items() if value is not None}
        stream.write(line_of(filled))


def _write_run(run: Run, stream: IO[bytes]) -> None:
    about = facts(flat(run.about, run.source))
    if about:
        stream.write(line_of({"about": about}))
    for frame in answered(run):
        write_frame(frame, stream)


def line_of(row: Mapping[str, Any]) -> bytes:
    """An object as a line of JSONL."""
    return (_LINE.encode(row) + "\n").encode()


JSONL = Format(
    name="jsonl",
    what="one JSON object per line",
    extensions=(".jsonl", ".ndjson"),
    readers={
        "qrels": lambda source: read_table(source, "qrels"),
        "run": lambda source: read_table(source, "run"),
        "queries": lambda source: read_attributes(source, "queries"),
        "documents": lambda source: read_attributes(source, "documents"),
    },
    writers=frame_writers(write_frame) | {"run": _write_run},
    places=_places,
    keeps=frozenset({"about", "answers"}),
)
