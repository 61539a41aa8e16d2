"""A table, described once: its columns and rows. Each medium has one writer of tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from karat.reports.phrases.numbers import percent, signed

Kind = Literal["text", "number", "signed", "share", "grade", "count", "p", "time", "flag"]
Style = Literal["", "strong", "quiet"]
DASH = "–"
"""A value that there is none of; never 0."""


@dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
        name: Field of the rows; the key in CSV, in JSON and in addresses.
        heading: Printed above it.
        kind: How its values are printed, aligned, sorted and filtered.
        link: From a row to the address it leads to, without the base path; None for no link.
        shown: Whether tables have it; CSV and JSON always do.
        choices: Whether its values are few, and are offered to filter by.
        vocabulary: All values that a text can have, where these are known.
        longest: Characters of a text that a table shows; CSV and JSON have all of them.
        by: Column of the number that this one words, and is sorted by; None for itself.
        high: Field of the upper end of an interval; ``name`` is that of its lower end.
        digits: Of a number, after the point.
        unit: Printed behind a number.
        help: What it shows, in a sentence.
        text: From a row to the cell, where ``kind`` does not say how it reads.
        style: From a row to the weight of its cell.
        drop: When a narrow screen leaves it out: 1 first; 0 never.
    """

    name: str
    heading: str
    kind: Kind = "text"
    link: Callable[[Any], str | None] | None = None
    shown: bool = True
    choices: bool = False
    vocabulary: Sequence[str] = ()
    longest: int = 200
    by: str | None = None
    high: str | None = None
    digits: int = 3
    unit: str = ""
    help: str = ""
    text: Callable[[Any], str] | None = None
    style: Callable[[Any], Style] | None = None
    drop: int = 0

    @property
    def is_text(self) -> bool:
        """Whether it is aligned to the left, and folded where room is short."""
        return self.kind == "text" and self.by is None

    def cell(self, row: Any) -> str:
        """What people read in a row."""
        if self.text is not None:
            return self.text(row)
        value = value_of(row, self.name)
        if self.high is not None:
            high = value_of(row, self.high)
            return "" if value is None or high is None else self._interval(value, high)
        return DASH if value is None else f"{self._printed(value)}{self.unit}"

    def _interval(self, low: float, high: float) -> str:
        first, last = self._printed(low), self._printed(high)
        return f"{first.removesuffix(' %')} to {last}{self.unit}"

    def _printed(self, value: Any) -> str:
        match self.kind:
            case "number":
                return f"{value:,.{self.digits}f}".replace("-", "−")
            case "signed":
                return signed(value, self.digits)
            case "share":
                return percent(value)
            case "grade":
                return f"{value:g}"
            case "count":
                return f"{value:,}"
            case "p":
                return "<.001" if value < 0.001 else f"{value:.3f}"
            case "time":
                return datetime.fromtimestamp(value / 1e6, UTC).strftime("%Y-%m-%d %H:%M")
            case "flag":
                return "yes" if value else "no"
            case _:
                return str(value)


@dataclass(frozen=True)
class Table:
    """Rows under columns.

    Attributes:
        title: What it shows.
        columns: Its columns.
        rows: Records or mappings that have the fields named by the columns.
        ends: Places of rows that a rule separates from the next.
        notes: Printed below it.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Any]
    ends: frozenset[int] = field(default_factory=frozenset)
    notes: Sequence[str] = ()

    @property
    def visible(self) -> list[Column]:
        """The columns that tables show; one without any value in its rows is left out."""
        return [column for column in self.columns if column.shown]

    def cells(self) -> list[list[str]]:
        """What people read, row by row, in the visible columns."""
        columns = self.visible
        return [[column.cell(row) for column in columns] for row in self.rows]

    def records(self) -> Iterator[dict[str, Any]]:
        """The values of each row, by name: for CSV and JSON."""
        names = [name for column in self.columns for name in (column.name, column.high) if name]
        return ({name: value_of(row, name) for name in names} for row in self.rows)


def value_of(row: Any, name: str) -> Any:
    """A field of a record or of a mapping."""
    return row[name] if isinstance(row, Mapping) else getattr(row, name)


def without_empty(columns: Sequence[Column], rows: Sequence[Any]) -> list[Column]:
    """The columns in which some row has something to read."""
    return [c for c in columns if any(c.cell(row) not in ("", DASH) for row in rows)]
