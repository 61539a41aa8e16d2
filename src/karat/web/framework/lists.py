"""Lists: filtered, sorted and paged by the address; in full as CSV and JSON."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

import polars as pl
from fastapi import Request
from fastapi.routing import APIRoute

from karat.errors import UsageError, nearest
from karat.reports.table import Column

PER_PAGE = 50
MOST_ON_A_PAGE = 2_000
"""Rows of the largest page, as for printing."""
ALL = "all"
"""Value of ``page=`` for all rows on one page."""
_MOST_CHOICES = 30
MOST_WORDS = 20
"""Words of a search; further ones are ignored."""
OWN = {"q", "sort", "page", "format"}
"""Query parameters of every list; no column can be filtered under these names."""
NONE = "none"
"""Filter value for missing values."""
SOME = "some"
"""Filter value of numbers, times and flags for any value."""
_NUMBER = r"[+-]?\d{1,20}(?:\.\d{1,20})?(?:[eE][+-]?\d{1,3})?\s?%?"
_DAY = r"\d{4}-\d{2}-\d{2}"
_COMPARED: dict[str, Callable[[pl.Expr, Any], pl.Expr]] = {
    ">=": pl.Expr.ge,
    "<=": pl.Expr.le,
    ">": pl.Expr.gt,
    "<": pl.Expr.lt,
}
_TYPES: dict[str, Any] = {
    **dict.fromkeys(("count", "time"), pl.Int64),
    **dict.fromkeys(("number", "signed", "share", "grade", "p", "ms"), pl.Float64),
    "flag": pl.Boolean,
}
_YES, _NO = {"1", "true", "yes"}, {"0", "false", "no"}
_DAY_US = 86_400_000_000


@dataclass(frozen=True)
class Ask:
    """The query of a list, from an address."""

    search: str = ""  # text that a row must contain; empty for all
    # Filters by column: a text; for numbers ``2``, ``>=1``, ``0..1``, ``50%``; for times a day
    # (UTC) or days, likewise; ``yes`` or ``no``; ``none`` or ``some``. May also have parameters of
    # the page that no column is named after.
    where: Mapping[str, str] = field(default_factory=dict)
    # Column to sort by, ``-name`` for descending; None for the list's own order
    sort: str | None = None
    page: int = 1  # from 1
    whole: bool = False  # whether all rows are requested on one page, as for printing: ``page=all``
    # Whether a program asks, as for CSV or JSON: an invalid query is then an error
    strict: bool = field(default=False, compare=False)
    # Parameters of the page's route, which are not filters even if a column has the same name. None
    # if the route is unknown.
    others: frozenset[str] | None = field(default=None, compare=False)
    # The value of ``page``, if it is invalid; else None
    unread: str | None = field(default=None, compare=False)
    # All values of route parameters that the address has more than once; a filter has one value,
    # the last
    repeated: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, request: Request) -> Ask:
        """Parse the address of a request; ``listed`` reports what is invalid."""
        params, route = request.query_params, request.scope.get("route")
        page = params.get("page") or "1"
        whole = page == ALL
        valid = whole or (page.isascii() and page.isdecimal() and len(page) < 9 and int(page) > 0)
        others = None
        if isinstance(route, APIRoute):
            dependants = [route.dependant, *route.dependant.dependencies]
            others = frozenset(p.alias for each in dependants for p in each.query_params)
        every = {name: params.getlist(name) for name in params if name in (others or ())}
        return cls(
            search=params.get("q", "").strip(),
            where={key: value for key, value in params.items() if key not in OWN and value != ""},
            sort=params.get("sort") or None,
            page=int(page) if valid and not whole else 1,
            whole=whole,
            strict=params.get("format") in {"csv", "json"},
            others=others,
            unread=None if valid else page[:50],
            repeated={name: values for name, values in every.items() if len(values) > 1},
        )

    def address(self, **changed: Any) -> str:
        """The same address with some parameters changed; ``None`` removes one."""
        params: dict[str, Any] = {**self.where, **self.repeated}
        params |= {"q": self.search, "sort": self.sort}
        params |= {"page": ALL if self.whole else self.page if self.page > 1 else None} | changed
        return "?" + urlencode({k: v for k, v in params.items() if v not in (None, "")}, doseq=True)


@dataclass(frozen=True)
class Listed:
    """One page of a list."""

    columns: Sequence[Column]  # those that the table shows
    rows: Sequence[Mapping[str, Any]]  # values by column; ``_links`` has the addresses by column
    every: pl.DataFrame  # all matching rows, for CSV and JSON
    found: int  # number of matching rows
    total: int  # number of rows before filtering
    ask: Ask  # the query
    pages: int  # number of pages, at least 1
    choices: Mapping[str, Sequence[str]]  # values to filter by, by column
    heads: Mapping[str, str]  # heading of each column, shown or not
    # Invalid filters, which were ignored; ``q`` if the search has too many words
    passed_over: Sequence[str] = ()
    notes: Sequence[str] = ()  # what is invalid in the query, in sentences
    cut: str = ""  # which rows these are, if there are more: ``newest``; empty for all
    whole: int | None = None  # number of rows that these are part of; None for all

    @property
    def on_one_page(self) -> str:
        """The address of all rows on one page; empty if there are too many."""
        return self.ask.address(page=ALL) if self.found <= MOST_ON_A_PAGE else ""

    def cut_from(self, which: str, whole: int) -> Listed:
        """The same list, marked as a part of ``whole`` rows; unchanged if it has them all."""
        return self if whole <= self.total else replace(self, cut=which, whole=whole)

    @property
    def by_hand(self) -> Sequence[Column]:
        """Columns with a typed filter: numbers and times."""
        others = {*self.choices, *(self.ask.others or ())}
        return [c for c in self.columns if c.kind != "text" and c.name not in others]

    @staticmethod
    def hint(column: Column) -> str:
        """An example of a filter; empty for text."""
        hints = {
            "time": "2026-03-01, or >=2026-03-01",
            "flag": "yes or no",
            "text": "",
            "share": "50%, or >=50%",
        }
        return hints.get(column.kind, "2, >=2, or 1..3")

    @property
    def carried(self) -> Sequence[tuple[str, str]]:
        """Parameters without a field in the filter form, to be kept as hidden fields."""
        fields = {*self.choices, *(column.name for column in self.by_hand)}
        return [
            (name, text)
            for name, value in self.ask.where.items()
            if name not in fields
            for text in self.ask.repeated.get(name, [value])
        ]

    @property
    def narrowed(self) -> Mapping[str, str]:
        """Active filters, by the headings of their columns."""
        return {
            self.heads[name]: value
            for name, value in self.ask.where.items()
            if name in self.heads and name not in {*self.passed_over, *(self.ask.others or ())}
        }

    def sort_by(self, name: str) -> str:
        """The address that sorts by a column, or reverses the order if it does already."""
        sort = f"-{name}" if self.ask.sort == name else name
        return self.ask.address(sort=sort, page=None)

    def sorted_as(self, name: str) -> str | None:
        """``ascending`` or ``descending`` if sorted by this column, else None."""
        if self.ask.sort is None or self.ask.sort.removeprefix("-") != name:
            return None
        return "descending" if self.ask.sort.startswith("-") else "ascending"

    def without(self) -> str:
        """The address without filters, in the current order."""
        params = {name: value for name, value in self.ask.where.items() if name not in self.every}
        return Ask(where=params, sort=self.ask.sort, repeated=self.ask.repeated).address()


def listed(
    frame: pl.DataFrame,
    columns: Sequence[Column],
    ask: Ask,
    *,
    search: Sequence[str],
    per_page: int = PER_PAGE,
) -> Listed:
    """The requested page of a list.

    ``frame`` has all rows, in the list's own order, perhaps with further columns for links. Unknown
    columns, invalid values and pages beyond the last are ignored with a note, or an error if a
    program asks. A row matches a search if it has every word in any column of ``search``, ignoring
    case. Texts that ``frame`` lacks are made for the rows of the page only, unless more are asked
    for.
    """
    by_name = {column.name: column for column in columns}
    made = {c.name: c.value for c in columns if c.name not in frame.columns and c.value}
    if ask.strict or made.keys() & ask.where.keys():
        frame, made = _with_texts(frame, made), {}
    others = ask.others or frozenset()
    offered = {
        column.name: _choices(column, frame)
        for column in columns
        if column.choices and column.name not in others
    }
    found, passed_over, errors = frame, [], list(_unknown(by_name, ask))
    for name, value in ask.where.items():
        if name in by_name and name not in others:
            condition = _condition(by_name[name], value)
            if condition is None:
                passed_over.append(name)
                errors.append(_no_filter(by_name[name], value))
            else:
                found = found.filter(condition.fill_null(value=False))
            if not ask.strict and _unknown_value(by_name[name], value, frame):
                # A program just gets no rows.
                near = nearest(value, [*by_name[name].vocabulary, *offered.get(name, ())])
                errors.append(UsageError(f"no row has “{value[:50]}”", nearest=near))
    words = list(dict.fromkeys(word.lower().replace("ς", "σ") for word in ask.search.split()))
    if words:
        folded = found.select(_folded(pl.col(name)).alias(name) for name in search)
        matches = [
            pl.any_horizontal(pl.col(name).str.contains(word, literal=True) for name in search)
            for word in words[:MOST_WORDS]
        ]
        found = found.filter(folded.select(pl.all_horizontal(matches)).to_series())
    if len(words) > MOST_WORDS:
        passed_over.append("q")
        errors.append(UsageError(f"only the first {MOST_WORDS} words are searched for"))
    key = (ask.sort or "").removeprefix("-")
    if key in by_name:
        down = str(ask.sort).startswith("-")
        key = by_name[key].by or key
        text = frame.schema[key] == pl.String
        by = [_folded(pl.col(key)), pl.col(key)] if text else [pl.col(key)]
        missing = pl.col(key).is_null()  # missing values come last in either order
        found = found.sort(missing, *by, descending=[False] + [down] * len(by), maintain_order=True)
    if ask.whole and found.height > MOST_ON_A_PAGE and not ask.strict:
        what = f"one page has at most {MOST_ON_A_PAGE:,} rows, and the list has {found.height:,}"
        errors.append(UsageError(f"{what}: CSV has all of them"))
        ask = replace(ask, whole=False)
    if ask.whole:
        per_page = max(found.height, 1)
    pages = max(1, -(-found.height // per_page))
    if ask.page > pages:
        count = "one page" if pages == 1 else f"{pages:,} pages"
        what = f"there is no page {ask.page:,}: the list has {count}"
        if ask.strict:
            raise UsageError(what, nearest=[f"page={pages}"])
        errors.append(UsageError(f"{what}, and this is the last" if pages > 1 else what))
        ask = replace(ask, page=pages)
    if errors and ask.strict:
        raise errors[0]
    shown = found.slice((ask.page - 1) * per_page, per_page)
    return Listed(
        columns=[c for c in columns if c.shown and not (c.optional and _is_empty(frame[c.name]))],
        rows=[_linked(row, columns, made) for row in shown.iter_rows(named=True)],
        every=found.select(name for name in by_name if name not in made),
        found=found.height,
        total=frame.height,
        ask=ask,
        pages=pages,
        choices={name: values for name, values in offered.items() if values},
        heads={column.name: column.heading for column in columns},
        passed_over=passed_over,
        notes=[_sentence(error) for error in errors],
    )


def _linked(
    row: Mapping[str, Any], columns: Sequence[Column], made: Mapping[str, Callable[[Any], Any]]
) -> dict[str, Any]:
    links = {c.name: c.link(row) for c in columns if c.link is not None}
    return {**row, **{name: make(row) for name, make in made.items()}, "_links": links}


def _with_texts(frame: pl.DataFrame, made: Mapping[str, Callable[[Any], Any]]) -> pl.DataFrame:
    rows = list(frame.iter_rows(named=True)) if made else []
    return frame.with_columns(
        pl.Series(name, [make(row) for row in rows], pl.String) for name, make in made.items()
    )


def _is_empty(values: pl.Series) -> bool:
    return values.null_count() == len(values)


def frame_of(
    records: Iterable[tuple[object, Mapping[str, Any]]],
    columns: Sequence[Column] = (),
    *,
    text: str = "",
    whole: str = "",
    real: str = "",
    flag: str = "",
) -> pl.DataFrame:
    """A frame of records, typed by columns, and by the names of texts and so on.

    Each record has a mapping of the values that differ from its attributes.
    """
    types = (text, pl.String), (whole, pl.Int64), (real, pl.Float64), (flag, pl.Boolean)
    schema = {column.name: _TYPES.get(column.kind, pl.String) for column in columns}
    schema |= {name: dtype for names, dtype in types for name in names.split()}
    rows = [
        [more[name] if name in more else getattr(record, name) for name in schema]
        for record, more in records
    ]
    return pl.DataFrame(rows, schema=schema, orient="row")


def _unknown(columns: Mapping[str, Column], ask: Ask) -> Iterator[UsageError]:
    key = (ask.sort or "").removeprefix("-")
    if key and key not in columns:
        near = nearest(key, columns)
        yield UsageError(f"there is no column “{key[:50]}” to sort by", nearest=near)
    known = None if ask.others is None else ask.others | columns.keys()
    for name in ask.where:
        if known is not None and name not in known:
            near = nearest(name, columns)
            yield UsageError(f"there is no column “{name[:50]}” to filter by", nearest=near)
    if ask.unread is not None:
        yield UsageError(f"“{ask.unread}” is not a page: pages are numbered from 1")


def _unknown_value(column: Column, value: str, frame: pl.DataFrame) -> bool:
    """Whether no row has this text, or could have it."""
    if column.kind != "text" or value == NONE or value in column.vocabulary or frame.is_empty():
        return False
    return not (frame[column.name].cast(pl.String) == value).any()


def _no_filter(column: Column, value: str) -> UsageError:
    kinds = {
        "time": ("a day", f"{column.name}=2026-03-01, >=2026-03-01, or 2026-03-01..2026-03-31"),
        "flag": ("yes or no", f"{column.name}=yes, no, or {NONE}"),
    }
    kind, fix = kinds.get(column.kind, ("a number", f"{column.name}=2, >=2, 1..3, or {NONE}"))
    return UsageError(f"“{value[:50]}” is not a valid filter for {kind}", fix=fix)


def _sentence(error: UsageError) -> str:
    meant = f" Did you mean {' or '.join(error.nearest)}?" if error.nearest else ""
    fix = f" Write {error.fix}." if error.fix else ""
    return f"{error.what[:1].upper()}{error.what[1:]}.{meant}{fix}"


def _folded(text: pl.Expr) -> pl.Expr:
    """Case-folded for comparison; final sigma as sigma."""
    return text.cast(pl.String).fill_null("").str.to_lowercase().str.replace_all("ς", "σ")


def _choices(column: Column, frame: pl.DataFrame) -> list[str]:
    values = frame[column.name]
    unique = values.drop_nulls().unique().sort()
    if len(unique) > _MOST_CHOICES:
        return []
    if column.kind == "flag":
        choices = ["yes" if value else "no" for value in unique.to_list()]
    else:
        choices = [
            f"{v:g}" if isinstance(v, float) and float(f"{v:g}") == v else str(v)
            for v in unique.to_list()
        ]
    return choices + [NONE] * (values.null_count() > 0 and bool(choices) and NONE not in choices)


def _condition(column: Column, value: str) -> pl.Expr | None:
    """The condition of a filter; None if its value is invalid."""
    it = pl.col(column.name)
    if column.kind == "text":
        same = it.cast(pl.String) == value
        return same | it.is_null() if value == NONE else same
    if value in (NONE, SOME):
        return it.is_null() if value == NONE else it.is_not_null()
    if column.kind == "flag":
        flag = value.strip().casefold()
        return it if flag in _YES else ~it if flag in _NO else None
    one = _DAY if column.kind == "time" else _NUMBER
    match = re.fullmatch(
        rf"(>=|<=|>|<|≥|≤|=)?\s*({one})(?:\s*(?:\.\.|–)\s*({one}))?", value.strip(), re.ASCII
    )
    if match is None or (match[1] and match[3]):
        return None
    compared = {"≥": ">=", "≤": "<="}.get(match[1] or "=", match[1] or "=")
    spans = [_span(column, text) for text in match.groups()[1:] if text is not None]
    valid = [span for span in spans if span is not None]
    if len(valid) < len(spans):
        return None
    if match[3] is not None or compared == "=":
        return it.is_between(valid[0][0], valid[-1][1])
    # After a day means after its end, before a day before its start.
    return _COMPARED[compared](it, valid[0][int(compared in {">", "<="})])


def _span(column: Column, text: str) -> tuple[float, float] | None:
    """Lowest and highest value meant: start and end of a day, or one number twice."""
    if column.kind == "time":
        try:
            day = dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)
        except ValueError:
            return None
        start = int(day.timestamp()) * 1_000_000
        return start, start + _DAY_US - 1
    number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    return number, number
