"""Nested fields (``event_attributes``, ``_source`` …) flattened into columns."""

from __future__ import annotations

import io
import json
import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import polars as pl

from karat.formats.events.times import near
from karat.formats.events.vocabulary import NO, YES, snake

_BLANKS = "[ \u00a0\u202f]"


@dataclass(frozen=True)
class Written:
    """How a log writes numbers and booleans."""

    decimal: str | None = None  # decimal sign, `.` | `,`; None: a point, without grouping
    thousands: str | None = None  # thousands separator; None: the other of point and comma
    without: tuple[str, ...] = ()  # prefixes and suffixes to strip, such as `€` or `ms`
    yes: tuple[str, ...] = ()  # further words for true, in lower case
    no: tuple[str, ...] = ()  # further words for false, in lower case


def number(text: pl.Expr, written: Written) -> pl.Expr:
    """Text as Float64; null if it is not a number.

    If a decimal sign is set, groups must have three digits: with a decimal comma, ``1.23`` is not
    a number.
    """
    bare = text.str.strip_chars()
    for affix in sorted(written.without, key=len, reverse=True):
        bare = bare.str.strip_prefix(affix).str.strip_suffix(affix).str.strip_chars()
    if written.decimal is None:
        return bare.cast(pl.Float64, strict=False)
    group = written.thousands or ("." if written.decimal == "," else ",")
    between = _BLANKS if group == " " else f"[{group}]"
    form = rf"^[+-]?(?:\d{{1,3}}(?:{between}\d{{3}})+|\d+)(?:[{written.decimal}]\d+)?$"
    plain = bare.str.replace_all(between, "").str.replace(written.decimal, ".", literal=True)
    return pl.when(bare.str.contains(form)).then(plain.cast(pl.Float64, strict=False))


def flag(text: pl.Expr, written: Written) -> pl.Expr:
    bare = text.str.strip_chars().str.to_lowercase()
    return (
        pl.when(bare.is_in([*YES, *written.yes]))
        .then(pl.lit(value=True))
        .when(bare.is_in([*NO, *written.no]))
        .then(pl.lit(value=False))
    )


WRAPPED = ("_source",)
_INSIDE = ("query_attributes", "event_attributes", "user")
_DEEPER = ("event_attributes.position", "event_attributes.object", "position", "object")
MOST_NAMES = 256  # most names within one field of a chunk; a log with more uses values as names
ODD = r"\\(?:[\\bfnrt]|u(?:00[01]|[dD][89a-fA-F]))"
"""Escapes that Polars loses when it turns nested values into text, or misreads (half of a surrogate
pair): lines with them are parsed one by one."""
_AS_TEXT = (pl.Categorical, pl.Enum, pl.Time)
_NO_TEXT = (pl.Duration, pl.Binary, pl.Object)
_KEY = r'"([^"\\]{1,64})"\s*:'


def spread(frame: pl.DataFrame, left_out: set[str]) -> pl.DataFrame:
    """Objects flattened into columns such as ``event_attributes.object.object_id``.

    Returns:
        The same rows, names in snake case; of two columns with one name, the first value counts.
    """
    there = frame.select(each for each in frame if each.null_count() < frame.height)
    frame = _named(there, left_out)
    for name in WRAPPED:
        if name in frame.columns:
            inner = _named(_opened(frame[name], name, left_out), left_out)
            frame = _together(frame.drop(name), inner)
    for level in (_INSIDE, _DEEPER):
        for name in level:
            if name not in frame.columns:
                continue
            inner = _opened(frame[name], name, left_out)
            if inner.width:
                inner = _named(inner, left_out)
                inner = inner.rename({each: f"{name}.{each}" for each in inner.columns})
                rest = frame.drop(name) if isinstance(frame[name].dtype, pl.Struct) else frame
                frame = _together(rest, inner)
    return frame


def _plain(frame: pl.DataFrame, left_out: set[str]) -> pl.DataFrame:
    """The frame without types that only Parquet has: as text, or left out and noted."""
    columns = []
    for name, dtype in frame.schema.items():
        column = pl.col(name)
        inner = dtype
        if isinstance(dtype, pl.List | pl.Array):
            inner = dtype.inner  # type: ignore[assignment]
            column = column.cast(pl.List(inner)) if isinstance(dtype, pl.Array) else column
        if inner in _NO_TEXT:
            left_out.add(f"{name} ({str(dtype).lower()})")
            continue
        if inner in _AS_TEXT:
            column = column.cast(pl.List(pl.String) if inner is not dtype else pl.String)
        elif isinstance(dtype, pl.Datetime | pl.Date):
            column = near(column, dtype)
        columns.append(column)
    return frame.select(columns)


def _named(frame: pl.DataFrame, left_out: set[str]) -> pl.DataFrame:
    """Names in snake case; types are text, numbers, times or nested."""
    frame = _plain(frame, left_out)
    names: dict[str, list[str]] = {}
    for name, dtype in frame.schema.items():
        group = names.setdefault(snake(name), [])
        if group and dtype.is_nested():
            continue
        if group and frame.schema[group[0]].is_nested():
            group.clear()
        group.append(name)
    if all(group == [name] for name, group in names.items()):
        return frame
    return frame.select(
        (
            pl.col(group[0])
            if len(group) == 1
            else pl.coalesce(pl.col(each).cast(pl.String, strict=False) for each in group)
        ).alias(name)
        for name, group in names.items()
    )


def _together(left: pl.DataFrame, right: pl.DataFrame) -> pl.DataFrame:
    """The columns of both; of a column in both, the first value that is not null."""
    if not right.width:
        return left
    shared = [name for name in left.columns if name in right.columns]
    merged = []
    for name in shared:
        pair = [left[name].alias("a"), right[name].alias("b")]
        nested = [series.dtype.is_nested() for series in pair]
        if pair[0].dtype != pair[1].dtype and any(nested):
            merged.append(pair[nested[0]].alias(name))
            continue
        if pair[0].dtype != pair[1].dtype:
            pair = [series.cast(pl.String, strict=False) for series in pair]
        merged.append(pl.DataFrame(pair).select(pl.coalesce("a", "b").alias(name)).to_series())
    return left.with_columns(merged).hstack(right.drop(shared))


def _opened(series: pl.Series, name: str, left_out: set[str]) -> pl.DataFrame:
    """The fields of objects as columns, row by row; null where there is no object."""
    if isinstance(series.dtype, pl.Struct):
        fields = series.dtype.fields
        if len(fields) > MOST_NAMES:
            left_out.add(f"{name} (more than {MOST_NAMES} names)")
        wanted = [field.name for field in fields][:MOST_NAMES]
        return series.struct.unnest().select(wanted) if wanted else pl.DataFrame()
    if series.dtype != pl.String:
        return pl.DataFrame()
    # JSON text: parsed separately and joined back by row.
    is_object = (series.str.starts_with("{") & series.str.ends_with("}")).fill_null(value=False)
    texts = series.filter(is_object)
    if texts.is_empty():
        return pl.DataFrame()
    key_counts = texts.alias("key").str.extract_all(_KEY).explode().drop_nulls().value_counts()
    keys = key_counts.sort("count", "key", descending=[True, False])["key"]
    names = dict.fromkeys(key[1:].partition('"')[0] for key in keys)
    if len(names) > MOST_NAMES:
        left_out.add(f"{name} (more than {MOST_NAMES} names)")
        names = dict.fromkeys(list(names)[:MOST_NAMES])
    if not names:
        return pl.DataFrame()
    read = _objects(texts, list(names))
    at = pl.Series(is_object.arg_true(), dtype=pl.UInt32)
    rows = pl.DataFrame({"": pl.int_range(len(series), dtype=pl.UInt32, eager=True)})
    opened = rows.join(
        read.with_columns(at.alias("")), on="", how="left", maintain_order="left"
    ).drop("")
    return opened.select(each for each in opened if each.null_count() < opened.height)


def _objects(texts: pl.Series, names: list[str]) -> pl.DataFrame:
    """JSON objects, one per text, as text columns; nested values stay JSON."""
    schema = dict.fromkeys(names, pl.String())
    odd = texts.str.contains(ODD)
    plain = texts.filter(~odd)
    data = "\n".join(plain.str.replace_all("\n", " ", literal=True)).encode()
    read: pl.DataFrame | None = None
    with suppress(pl.exceptions.PolarsError, pl.exceptions.PanicException):
        read = pl.read_ndjson(io.BytesIO(data), schema=schema) if data else pl.DataFrame({}, schema)
    if read is None or read.height != len(plain):
        return _slowly(texts, names, schema)
    if len(plain) == len(texts):
        return read
    slow = _slowly(texts.filter(odd), names, schema)
    places = pl.Series("", [*(~odd).arg_true(), *odd.arg_true()], dtype=pl.UInt32)
    return pl.concat([read, slow]).with_columns(places).sort("").drop("")


def _slowly(texts: pl.Series, names: list[str], schema: dict[str, pl.String]) -> pl.DataFrame:
    rows = [parsed(text) or {} for text in texts]
    return pl.DataFrame({name: [as_text(row.get(name)) for row in rows] for name in names}, schema)


def parsed(text: str | bytes) -> dict[str, Any] | None:
    """A JSON object; None for anything else. Of duplicate keys the first counts."""
    try:
        if isinstance(text, bytes):
            text = text.decode()
        row = json.loads(text, object_pairs_hook=_first, parse_constant=lambda _: None)
    except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
        return None
    return row if is_object(row, text) else None


def is_object(row: object, text: str) -> bool:
    """Whether parsed JSON is an object without half of a surrogate pair."""
    if isinstance(row, dict) and "\\ud" in text.lower():
        try:
            json.dumps(row, ensure_ascii=False).encode()
        except (UnicodeEncodeError, RecursionError):
            return False
    return isinstance(row, dict)


def as_text(value: object) -> str | None:
    """A JSON value as column text; objects and lists stay JSON."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else None
    if isinstance(value, int):
        return str(value)
    return json.dumps(value, ensure_ascii=False)  # infinite numbers within become null on reading


def _first(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):  # duplicate keys: the first counts, as in Polars
        row.update(reversed(pairs))
    return row
