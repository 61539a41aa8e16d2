"""A table, described once: its columns and rows. Each medium has one writer of tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from operator import itemgetter
from typing import Any, Literal

from karat.reports.phrases.numbers import milliseconds, percent, signed
from karat.tables.days import time_text

Kind = Literal[
    "text", "code", "words", "sentence", "verdict", "number", "signed", "share", "grade", "count",
    "p", "ms", "time", "flag",
]  # fmt: skip
"""How a value is printed, aligned, sorted and filtered.

``code``: an id or a name · ``words``: a few, which are not folded · ``sentence``: a reason, which
only pages have room for · ``verdict``: words, as a chip on pages · ``share``: 0 to 1, as a
percentage · ``signed``: a difference · ``ms``: microseconds, as milliseconds · ``time``:
microseconds, UTC.
"""
Style = Literal["", "strong", "quiet", "up", "down"]
DASH = "–"
"""A missing value; never 0."""
_LEFT = {"text", "code", "words", "sentence", "verdict"}


@dataclass(frozen=True)
class Column:
    name: str  # field of the rows; the key in CSV, in JSON and in addresses
    heading: str  # in sentence case
    kind: Kind = "text"  # see ``Kind``
    # From a row to an address: on pages of the server without the base path, in a report the id
    # of an element; None for no link
    link: Callable[[Any], str | None] | None = None
    shown: bool = True  # whether tables have it; CSV and JSON always do
    optional: bool = False  # whether it is left out if no row has a value
    choices: bool = False  # whether it has few values, offered as filters
    # All possible values, if known: filtering by one is valid even if no row has it now
    vocabulary: Sequence[str] = ()
    longest: int = 200  # characters of a text that a web list shows; CSV and JSON have all of them
    by: str | None = None  # column to sort by instead: the number behind a text; None for itself
    high: str | None = None  # field of the upper end of an interval, whose lower end is ``name``
    digits: int = 3  # after the point
    unit: str = ""  # after the number
    short: str | None = None  # heading in a terminal, if it is another
    help: str = ""  # one sentence, as a tooltip of the heading
    value: Callable[[Any], Any] | None = None  # from a row to the value, if it is not a field
    # From a row to the text, if ``kind`` does not say it all
    text: Callable[[Any], str] | None = None
    style: Callable[[Any], Style] | None = None  # from a row to the weight or colour of its cell
    # From a row to the view of a report's queries that a link opens
    view: Callable[[Any], str | None] | None = None
    # From a row to trusted HTML, in place of the text on pages
    html: Callable[[Any], str] | None = None
    least: int = 10  # width of a text, for the sake of which columns are left out
    drop: int = 0  # order in which narrow screens leave columns out: 1 first; 0 never

    @property
    def is_text(self) -> bool:
        return self.kind in _LEFT and self.by is None

    def of(self, row: Any, name: str = "") -> Any:
        """Its value in a row; with ``name`` another field of the row."""
        if self.value is not None and not name:
            return self.value(row)
        name = name or self.name
        return row.get(name) if isinstance(row, Mapping) else getattr(row, name)

    def cell(self, row: Any) -> str:
        if self.text is not None:
            return self.text(row)
        value = self.of(row)
        if value is None:
            return DASH
        if self.high is None:
            return self.printed(value)
        high = self.of(row, self.high)
        return DASH if high is None else to(self.printed(value), self.printed(high))

    def printed(self, value: Any) -> str:
        match self.kind:
            case "number":
                text = f"{value:,.{self.digits}f}".replace("-", "−")
            case "signed":
                text = signed(value, self.digits)
            case "share":
                text = percent(value)
            case "grade":
                text = f"{value:g}"
            case "count":
                text = f"{round(value, 1) if isinstance(value, float) else value:,}"
            case "p":
                text = "<.001" if value < 0.001 else f"{value:.3f}"
            case "ms":
                text = milliseconds(value)
            case "time":
                text = time_text(value)
            case "flag":
                text = "yes" if value else "no"
            case _:
                text = str(value)
        return text + self.unit


@dataclass(frozen=True)
class Table:
    title: str  # what it shows; empty for none
    columns: Sequence[Column]  # its columns
    rows: Sequence[Any]  # records or mappings with the fields that the columns name
    # Column whose repeated values a terminal leaves blank, with a rule after each group
    group: str = ""
    # Places of further rows that a rule separates from the next
    ends: frozenset[int] = field(default_factory=frozenset)
    # Columns that each part repeats if a screen is too narrow for all; 0: not divided
    keys: int = 0
    notes: Sequence[str] = ()  # sentences to print below it
    row_class: Callable[[Any], str] | None = None  # from a row to classes of its element on pages

    @property
    def visible(self) -> list[Column]:
        return [column for column in self.columns if column.shown and self._needed(column)]

    def _needed(self, column: Column) -> bool:
        return not column.optional or any(column.cell(r) not in {"", DASH} for r in self.rows)

    def records(self) -> list[dict[str, Any]]:
        """All values by name, for CSV and JSON: the fields of each row, then its columns."""
        return [record(row, self.columns) for row in self.rows]

    def texts(self) -> dict[str, Any]:
        """What it shows, for pages without a list."""
        return {
            "title": self.title,
            "heads": [(column.heading, column.is_text) for column in self.visible],
            "rows": [[column.cell(row) for column in self.visible] for row in self.rows],
        }


def of_texts(
    title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1
) -> Table:
    """A table of texts, of which the first ``texts`` columns are aligned to the left."""
    columns = [
        Column(str(at), head, "text" if at < texts else "count", text=itemgetter(at))
        for at, head in enumerate(heads)
    ]
    return Table(title, columns, rows)


def record(row: Any, columns: Sequence[Column]) -> dict[str, Any]:
    """The fields of a row, then the columns that are not fields."""
    if is_dataclass(row):
        values = {each.name: getattr(row, each.name) for each in fields(row)}
    else:
        values = dict(row)
    return {**values, **{c.name: c.of(row) for c in columns if c.name not in values}}


def to(low: str, high: str) -> str:
    """An interval of two printed ends: a unit that both have is printed once."""
    for unit in (" %", " s", " ms"):
        if low.endswith(unit) and high.endswith(unit):
            low = low.removesuffix(unit)
    return f"{low} to {high}"
