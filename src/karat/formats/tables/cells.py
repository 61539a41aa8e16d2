"""Cells of named columns to the columns of a table, for all formats.

There are two ways to the same frame: the fast one casts whole columns and gives up (None) when
in doubt; the careful one reads row by row and reports what is wrong.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from karat.errors import InputError
from karat.formats.tables.format import Rows

STATES = ("ok", "empty", "failed")
ANSWER = ("state", "latency_us", "error", "repeated")
"""Columns of a run file with the state of each query."""
_COUNTS = ("latency_us", "repeated")
NUMBERS = {
    "grade": pl.Float64,
    "score": pl.Float64,
    "rank": pl.Float64,
    **dict.fromkeys(_COUNTS, pl.Int64),
}


def fast(frame: pl.DataFrame, chosen: Mapping[str, str]) -> pl.DataFrame | None:
    """Columns of qrels or a run, cast as a whole; None if any cell needs the careful way."""
    if any(column in chosen for column in ANSWER):
        return None
    out = []
    for column, name in chosen.items():
        series = frame[name].alias(column)
        number: type[pl.DataType] | None = NUMBERS.get(column)
        if series.dtype.is_integer() and number is None:
            series = series.cast(pl.String)
        if number is None and series.dtype in (pl.Categorical, pl.Enum):
            series = series.cast(pl.String)
        if column == "rank" and series.dtype.is_integer():
            number = pl.Int64
        if number is not None and (series.dtype.is_numeric() or series.dtype == pl.String):
            series = series.cast(number, strict=False)
        if series.dtype != (number or pl.String) or series.null_count():
            return None
        if series.dtype == pl.String and (series == "").any():
            return None
        if series.dtype.is_float() and series.is_nan().any():
            return None
        out.append(series)
    return settled(pl.DataFrame(out))


def settled(frame: pl.DataFrame) -> pl.DataFrame:
    """Without scores, score = -rank; with scores, ranks are only checked."""
    if "rank" not in frame.columns:
        return frame
    if "score" not in frame.columns:
        return frame.with_columns(score=-pl.col("rank")).drop("rank")
    if frame["rank"].dtype == pl.Int64:
        return frame
    rank = pl.col("rank")
    is_rank = rank.is_finite() & (rank.abs() < 1e15)
    return frame.with_columns(pl.when(is_rank).then(rank).cast(pl.Int64).alias("rank"))


class Careful:
    """Rows of qrels or a run, added one at a time."""

    def __init__(self, source: str, unit: str = "line") -> None:
        self.source, self.unit = source, unit
        self.columns: dict[str, list[Any]] = {}
        self._count = 0

    def add(self, row: Mapping[str, Any], place: int) -> None:
        """Add one row: cells by column of the table; None and "" are empty."""
        out: dict[str, Any] = {"query_id": self.identifier(row.get("query_id"), "query_id", place)}
        query: str = out["query_id"]
        state = row.get("state")
        if state in (None, ""):
            state = None
        elif state not in STATES:
            raise self.wrong(
                f"unknown state {state!r}; expected {', '.join(STATES)}", place, query=query
            )
        answer = state in ("empty", "failed") and row.get("doc_id") in (None, "")
        for column, cell in row.items():
            if column == "query_id":
                continue
            if column == "doc_id":
                out[column] = None if answer else self.identifier(cell, column, place, query)
            elif column == "state":
                out[column] = state
            elif column == "subtopic":
                blank = cell in (None, "")
                out[column] = None if blank else self.identifier(cell, column, place, query)
            elif column == "error":
                out[column] = None if cell in (None, "") else str(cell)
            elif answer or (cell in (None, "") and column in ("rank", *_COUNTS)):
                blank = cell in (None, "")
                keep = column in _COUNTS and not blank
                out[column] = self._number(cell, column, place, query) if keep else None
            else:
                out[column] = self._number(cell, column, place, query)
        append_row(self.columns, out, self._count)
        self._count += 1

    def frame(self) -> pl.DataFrame:
        if not self._count:
            return pl.DataFrame()
        schema = {name: NUMBERS.get(name, pl.String) for name in self.columns}
        return settled(pl.DataFrame(self.columns, schema=schema))

    def identifier(self, cell: Any, column: str, place: int, query: str | None = None) -> str:
        """An id as text; integers become decimal text."""
        if isinstance(cell, str) and cell:
            return cell
        if isinstance(cell, int) and not isinstance(cell, bool):
            return str(cell)
        if cell is None or cell == "":
            raise self.wrong(f"the {column} is empty", place, query=query)
        raise self.wrong(
            f"the {column} {cell!r} is not text; ids are strings",
            place,
            query=query,
            fix=f'write it as text: "{cell}"' if isinstance(cell, float) else None,
        )

    def _number(self, cell: Any, column: str, place: int, query: str) -> float | int:
        try:
            if isinstance(cell, bool) or not isinstance(cell, (int, float, str)):
                raise TypeError
            if isinstance(cell, str) and ("_" in cell or not cell.isascii()):
                raise ValueError
            value = float(cell)
            if math.isnan(value):
                raise ValueError
            return int(value) if column in _COUNTS else value
        except (TypeError, ValueError, OverflowError):
            shown = "the " + column + (f" {cell!r}" if cell not in (None, "") else "")
            wrong = "is not a number" if cell not in (None, "") else "is empty"
            raise self.wrong(f"{shown} {wrong}", place, query=query) from None

    def wrong(
        self, what: str, place: int, query: str | None = None, fix: str | None = None
    ) -> InputError:
        if self.unit == "line":
            return InputError(what, file=self.source, line=place, query=query, fix=fix)
        return InputError(f"{self.unit} {place}: {what}", file=self.source, query=query, fix=fix)


def append_row(columns: dict[str, list[Any]], row: Mapping[str, Any], count: int) -> None:
    """Append a row to columns of ``count`` rows; what it or the rows before lack is None."""
    for name, value in row.items():
        if name not in columns:
            columns[name] = [None] * count
        columns[name].append(value)
    for values in columns.values():
        if len(values) == count:
            values.append(None)


def column_of(name: str, values: list[Any]) -> pl.Series:
    """A column of the values' common type; otherwise text, with lists and objects as JSON."""
    kinds = {type(value) for value in values if value is not None}
    try:
        if kinds in ({float}, {int, float}):
            return pl.Series(name, [None if v is None else float(v) for v in values], pl.Float64)
        if kinds in ({int}, {bool}):
            return pl.Series(name, values, dtype=pl.Int64 if kinds == {int} else pl.Boolean)
    except (OverflowError, TypeError, pl.exceptions.PolarsError):
        pass  # an integer that is too large
    texts = [v if v is None or isinstance(v, str) else json.dumps(v) for v in values]
    return pl.Series(name, texts, dtype=pl.String)


def run_rows(frames: Iterable[pl.DataFrame], chosen: Iterable[str]) -> Rows:
    """Rows of a run, split into rankings and states of queries."""
    if not set(chosen) & {*ANSWER}:
        return Rows(frames)
    parts = [frame for frame in frames if frame.height]
    if not parts:
        return Rows([])
    frame = pl.concat(parts, how="diagonal_relaxed")
    answer = [column for column in ANSWER if column in frame.columns]
    rankings = pl.DataFrame()  # no query returned documents
    if "doc_id" in frame.columns:
        rankings = frame.filter(pl.col("doc_id").is_not_null()).drop(answer)
    if "state" not in answer:
        frame = frame.with_columns(state=pl.lit(None, pl.String))
    # The first state of a query counts; a row with a document and no state is ok.
    columns = dict.fromkeys(("state", *answer))
    answers = (
        frame.group_by("query_id", maintain_order=True)
        .agg(
            # But keep "failed" or "empty" next to an "ok": together they are an error.
            pl.coalesce(
                pl.col(column).filter(pl.col(column) != "ok").first(),
                pl.col(column).drop_nulls().first(),
            )
            if column == "state"
            else pl.col(column).drop_nulls().first()
            for column in columns
        )
        .with_columns(pl.col("state").fill_null("ok"))
    )
    return Rows([rankings], answers)


def whole(value: float) -> float:
    """Whole numbers as int, which JSON and tables show without a decimal point."""
    return int(value) if value.is_integer() and abs(value) < 1e15 else value
