"""Conversion of input data: frames, dictionaries, ranked lists, sets of relevant ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from numbers import Integral
from typing import TYPE_CHECKING, Any

import polars as pl

from karat.errors import InputError, nearest
from karat.tables.returned import Ranked, Unusable, kind_of, ranked
from karat.tables.schema import Column

if TYPE_CHECKING:
    import narwhals as nw


def to_polars(frame: Any, source: str) -> pl.DataFrame:
    """Any eager or lazy frame Narwhals reads (pandas, PyArrow, DuckDB, Polars …) as Polars.

    Raises:
        InputError: the object is not a data frame, or is a lazy Polars frame.
    """
    if isinstance(frame, pl.DataFrame):
        return frame
    if isinstance(frame, pl.LazyFrame):
        raise InputError(
            "a lazy Polars frame is a plan, not data", file=source, fix="call .collect() on it"
        )
    import narwhals as nw  # takes 0.15 s, and reading files does not need it

    try:
        native = nw.from_native(frame)
    except TypeError:
        raise InputError(
            f"a {type(frame).__name__} is not a data frame",
            file=source,
            fix="pass a path, a dict, or a frame of Polars, pandas, PyArrow or DuckDB",
        ) from None
    if isinstance(native, nw.LazyFrame):
        collected: pl.DataFrame = native.collect(backend="polars").to_native()
        return collected
    return pl.DataFrame({name: _column(native[name]) for name in native.columns})


def relevant_ids(value: Any, query_id: str, source: str) -> Mapping[Any, Any]:
    """``{doc_id: 1}`` for the relevant documents of a query; a mapping is returned as it is.

    Args:
        value: A set, list or tuple of ids, or ``{doc_id: grade}``.
        query_id: The query, for error messages.
        source: Name of the judgments in error messages.

    Raises:
        InputError: the value is neither, or an id is not text.
    """
    if isinstance(value, Mapping):
        return value
    fix = '{"q1": {"a", "c"}}, or with grades {"q1": {"a": 3, "c": 1}}'
    ids = _listed(value, "the ids of relevant documents", query_id, source, fix)
    if any(isinstance(one, tuple | list) for one in ids):
        raise InputError(
            "the relevant documents are pairs; expected ids, or {document: grade}",
            file=source,
            query=query_id,
            fix=fix,
        )
    for one in ids:
        _text(one, source)
    return dict.fromkeys(ids, 1.0)


def ranking(value: Any, query_id: str, source: str) -> Ranked:
    """The ranking in a list of ids, of (id, score) pairs, or of dicts with these; best first.

    Of duplicate documents the first counts.

    Raises:
        InputError: the value has none of these shapes, or an id is not text.
    """
    fix = '{"q1": ["a", "b"]}, {"q1": [("a", 1.5), ("b", 0.5)]} or {"q1": {"a": 1.5, "b": 0.5}}'
    if isinstance(value, AbstractSet):
        raise InputError(
            f"{kind_of(value)} has no order, so it is not a ranking",
            file=source,
            query=query_id,
            fix=f"pass a list, best first: {fix} (judgments are the first argument, runs the next)",
        )
    items = _listed(value, "a ranking", query_id, source, fix)
    for one in items:
        doc_id = one[0] if isinstance(one, tuple | list) and one else one
        if isinstance(doc_id, Integral):
            _text(doc_id, source)
    try:
        return ranked(items)
    except Unusable as error:
        raise InputError(str(error), file=source, query=query_id, fix=fix) from None


def records(value: Any, source: str) -> pl.DataFrame | None:
    """A list of namedtuples, such as ``ScoredDoc`` of ir_measures, as a frame; otherwise None.

    Raises:
        InputError: an id is not text, or the rows have different types.
    """
    if not isinstance(value, list | tuple) or not value or not hasattr(value[0], "_fields"):
        return None
    fields = value[0]._fields
    if any(getattr(row, "_fields", None) != fields for row in value):
        raise InputError("the list has rows of different types", file=source)
    columns = dict(zip(fields, map(list, zip(*value, strict=True)), strict=True))
    for name, values in columns.items():
        if name.endswith("_id"):
            for one in values:
                _text(one, source)
    return pl.DataFrame(columns, strict=False)


def _listed(value: Any, expected: str, query_id: str, source: str, fix: str) -> list[Any]:
    """An iterable of ids as a list; text and tables are rejected."""
    if (
        isinstance(value, str | bytes | Mapping)
        or hasattr(type(value), "columns")
        or not isinstance(value, Iterable)
    ):
        shown = f"the text {value!r}" if isinstance(value, str) else kind_of(value)
        raise InputError(f"expected {expected}, got {shown}", file=source, query=query_id, fix=fix)
    return list(value)


def from_pairs(values: Mapping[Any, Any], column: str, source: str) -> pl.DataFrame:
    """``{query_id: {doc_id: number}}`` as a frame; queries whose value is None are left out.

    Raises:
        InputError: an id is not text, or a value is not a number.
    """
    rows: list[tuple[str, str, float]] = []
    for query_id, docs in values.items():
        _text(query_id, source)
        if docs is None:
            continue
        for doc_id, value in docs.items():
            _text(doc_id, source)
            try:
                rows.append((query_id, doc_id, float(value)))
            except (TypeError, ValueError, OverflowError):
                raise InputError(
                    f"the {column} {value!r} of document {doc_id} is not a number",
                    file=source,
                    query=query_id,
                ) from None
    schema = {"query_id": pl.String, "doc_id": pl.String, column: pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _text(value: Any, source: str) -> None:
    if not isinstance(value, str):
        raise InputError(
            f"id {value!r} is {kind_of(value)}; ids are strings",
            file=source,
            fix="use str(id); then 007 stays 007",
        )


def conform(
    frame: pl.DataFrame, columns: Sequence[Column], source: str, *, keep_others: bool = False
) -> pl.DataFrame:
    """Select and cast the columns of a table; ids become strings without losing a character.

    Raises:
        InputError: a required column is missing (the nearest existing one is named), an id is
            null or empty, or a value does not fit its type.
    """
    for column in columns:
        if column.name not in frame.columns and not column.optional:
            near = nearest(column.name, frame.columns, 1)
            raise InputError(
                f"no column {column.name!r}; there are {', '.join(frame.columns) or 'none'}",
                file=source,
                fix=f"rename {near[0]!r} to {column.name!r}" if near else None,
            )
    present = [column for column in columns if column.name in frame.columns]
    cast = [_cast(frame[column.name], column, source) for column in present]
    if keep_others:
        known = {column.name for column in columns}
        cast += [frame[name] for name in frame.columns if name not in known]
    return pl.DataFrame(cast)


def _column(series: nw.Series[Any]) -> pl.Series:
    # NumPy for numbers and lists for the rest: neither needs PyArrow.
    if series.dtype.is_numeric() and series.null_count() == 0:
        values = series.to_numpy()
        if values.dtype != object:
            return pl.Series(series.name, values)
    # In pandas missing text is the number NaN, which must not become the id "NaN".
    pairs = zip(series.to_list(), series.is_null().to_list(), strict=True)
    texts = [None if missing else value for value, missing in pairs]
    return pl.Series(series.name, texts, strict=False)


def _cast(series: pl.Series, column: Column, source: str) -> pl.Series:
    if column.dtype == pl.String() and series.dtype.is_float() and column.name.endswith("_id"):
        raise InputError(
            f"column {column.name!r} has numbers with a decimal point; ids are strings",
            file=source,
            fix=f"read {column.name!r} as text; then 007 stays 007",
        )
    if series.dtype in (pl.Categorical, pl.Enum):
        series = series.cast(pl.String)
    if series.dtype == column.dtype:
        out = series
    else:
        out = series.cast(column.dtype, strict=False)
        invalid = out.is_null() & series.is_not_null()
        if invalid.any():
            row = int(invalid.arg_max() or 0)
            raise InputError(
                f"row {row + 1}: {column.name} {series[row]!r} is not a {_plain(column.dtype)}",
                file=source,
            )
    if column.name.endswith("_id") and column.name != "parent_id":
        empty = out.is_null() | (out == "")
        if empty.any():
            row = int(empty.arg_max() or 0)
            raise InputError(f"row {row + 1}: {column.name} is empty", file=source)
    return out


def refuse_rows(
    frame: pl.DataFrame, wrong: pl.Series, what: str, source: str, fix: str | None = None
) -> None:
    """Raise InputError for the first wrong row, with its query and document.

    Args:
        frame: ``query_id`` and, if rows are of documents, ``doc_id``.
        wrong: Whether each row is wrong.
        what: The error, which may name columns of the row: ``grade {grade:g} is too high``.
        source: Name of the table in the error.
        fix: How to correct it.
    """
    if wrong.any():
        row = frame.row(int(wrong.arg_max() or 0), named=True)
        raise InputError(
            what.format_map(row),
            file=source,
            query=row["query_id"],
            doc_id=row.get("doc_id"),
            fix=fix,
        )


def _plain(dtype: pl.DataType) -> str:
    return "number" if dtype.is_numeric() else "text"
