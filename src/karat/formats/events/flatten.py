"""A chunk of a log, its columns looked up by karat's names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import polars as pl

from karat.formats.events.fields import flag, number
from karat.formats.events.json import LINE
from karat.formats.events.mapping import Mapped
from karat.formats.events.tally import Tally
from karat.formats.events.times import times
from karat.formats.events.vocabulary import ANYWHERE, COLUMNS, EVENT, QUERY, snake

_MOST_PLACE = 1_000_000
_CONTROL = r"[\p{Cc}]"


@dataclass
class Reading:
    """How to read a log, and what has been seen of it; ``now`` is in microseconds UTC."""

    now: int
    zone: str = "UTC"
    mapped: Mapped = field(default_factory=Mapped)
    attributes: dict[str, None] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)


class Flat:
    def __init__(self, frame: pl.DataFrame, reading: Reading, tally: Tally) -> None:
        self.frame, self.reading, self.tally = frame, reading, tally
        self.used: set[str] = {LINE}

    def there(self, column: str) -> list[str]:
        """The columns of the log that may be this column of karat's, most specific first."""
        mapped = self.reading.mapped.columns.get(column)
        names: Iterable[str]
        if mapped is not None:
            names = (mapped, snake(mapped))
        elif column in ANYWHERE:
            names = (f"{lead}{name}" for name in ANYWHERE[column] for lead in ("", QUERY, EVENT))
        else:
            names = COLUMNS.get(column, ())
        taken = self.reading.mapped.columns.values() if mapped is None else ()
        taken_names = {*taken, *map(snake, taken)}
        columns = set(self.frame.columns) - taken_names
        present = [name for name in dict.fromkeys(names) if name in columns]
        self.used.update(present)
        return present

    def texts(self, names: Sequence[str]) -> list[pl.Expr]:
        """Columns as text; whole numbers without a decimal point, blanks as null."""
        expressions: list[pl.Expr] = []
        for name in names:
            dtype, column = self.frame.schema[name], pl.col(name)
            if dtype.is_float():
                whole = column.cast(pl.Int64, strict=False)
                column = (
                    pl.when(whole == column)
                    .then(whole.cast(pl.String))
                    .when(column.is_finite())
                    .then(column.cast(pl.String))
                )
            elif dtype.is_nested() or dtype == pl.Binary:
                continue
            elif dtype != pl.String:
                column = column.cast(pl.String)
            expressions.append(pl.when(column.str.contains(r"\S")).then(column))
        return expressions

    def text(self, column: str, longest: int | None = None) -> pl.Series:
        """A column as text, without control characters; null where the log has none."""
        candidates = self.texts(self.there(column))
        constant = self.reading.mapped.constants.get(column)
        if constant is not None:
            candidates.append(pl.repeat(constant, self.frame.height))
        if not candidates:
            return pl.repeat(None, self.frame.height, dtype=pl.String, eager=True)
        found = self.frame.select(pl.coalesce(candidates).alias(column)).to_series()
        odd = found.str.contains(_CONTROL).fill_null(value=False)
        if odd.any():
            self.change(f"control characters in {column}, removed", odd)
            clean = found.str.replace_all(_CONTROL, " " if longest else "").str.strip_chars()
            found = clean.to_frame().select(pl.when(pl.first() != "").then(pl.first())).to_series()
        if longest is not None:
            over = (found.str.len_chars() > longest).fill_null(value=False)
            if over.any():
                self.change(f"{column} longer than {longest:,} characters, truncated", over)
                found = found.str.slice(0, longest)
        return found

    def numbers(self, names: Sequence[str]) -> list[pl.Expr]:
        """Columns as Float64, parsed in the mapping's number format."""
        written = self.reading.mapped.written
        return [number(text, written) for text in self.texts(names)]

    def flags(
        self, what: str, names: Sequence[str], only: pl.Series | None = None
    ) -> list[pl.Expr]:
        """Columns as booleans; values that are neither yes nor no are counted."""
        parsed = [flag(text, self.reading.mapped.written) for text in self.texts(names)]
        self.unread(f"{what} is neither yes nor no", names, self.first(parsed, pl.Boolean()), only)
        return parsed

    def number(self, column: str, wrong: str, only: pl.Series | None = None) -> pl.Series:
        """A column as whole numbers ≥ 0; other values become null and are counted."""
        names = self.there(column)
        most = _MOST_PLACE if column == "position" else 2**53
        candidates = [
            pl.when(each.is_between(0, most) & (each == each.floor())).then(each)
            for each in self.numbers(names)
        ]
        values = self.first(candidates, pl.Int64())
        self.unread(wrong, names, values, only)
        constant = self.reading.mapped.constants.get(column)
        if constant is None:
            return values
        value = pl.lit(constant).cast(pl.Float64, strict=False).cast(pl.Int64)
        return values.to_frame().select(pl.first().fill_null(value)).to_series()

    def first(self, expressions: Sequence[pl.Expr], dtype: pl.DataType) -> pl.Series:
        if not expressions:
            return pl.repeat(None, self.frame.height, dtype=dtype, eager=True)
        return self.frame.select(pl.coalesce(expressions).cast(dtype).alias("said")).to_series()

    def unread(
        self, wrong: str, names: Sequence[str], parsed: pl.Series, only: pl.Series | None = None
    ) -> None:
        """Count rows whose columns hold a value that could not be parsed."""
        candidates = self.texts(names)
        if not candidates:
            return
        # An object, as in position: {"xy": …}, is not an invalid number.
        flat = [pl.when(~text.str.contains(r"^\s*[\[{]")).then(text) for text in candidates]
        texts = self.first(flat, pl.String())
        unparsed = texts.is_not_null() & parsed.is_null()
        if only is not None:
            unparsed &= only.fill_null(value=False)
        if unparsed.any():
            self.change(wrong, unparsed, texts.filter(unparsed)[0])

    def times(self) -> pl.DataFrame:
        mapped, names = self.reading.mapped, self.there("time")
        zone = mapped.zone or self.reading.zone
        result = times(pl.repeat(None, self.frame.height, eager=True), zone)
        for name in names:
            lacking = result["time_us"].is_null()
            if not lacking.any():
                break
            unit = "us" if name == "time_us" and mapped.unit is None else mapped.unit
            read = times(self.frame[name], zone, unit, mapped.form)
            both = result.hstack(read.rename(lambda each: f"other_{each}"))
            result = both.select(
                pl.when(lacking).then(f"other_{each}").otherwise(each).alias(each)
                for each in read.columns
            )
        if names and self.tally.strange_time is None and result["time_us"].null_count():
            invalid = self.first(self.texts(names), pl.String())
            invalid = invalid.filter(result["time_us"].is_null()).drop_nulls()
            self.tally.strange_time = invalid[0] if len(invalid) else None
        return result

    def change(self, what: str, rows: pl.Series, first: str | None = None) -> None:
        """Count rows of which something is left out or changed, with the first such value."""
        self.tally.change(what, self.frame[LINE].filter(rows), first)
