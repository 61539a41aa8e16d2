"""Lists: filtered, sorted and paged here, by an address worth sharing; whole as CSV and JSON."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import urlencode

import polars as pl
from fastapi import Request
from fastapi.routing import APIRoute

from karat.errors import UsageError, nearest

Kind = Literal["text", "number", "signed", "share", "grade", "count", "time", "flag"]
PER_PAGE = 50
MOST_ON_A_PAGE = 2_000
"""Rows that one page can have, as for printing."""
ALL = "all"
"""What an address calls all rows on one page."""
_MOST_CHOICES = 30
MOST_WORDS = 20
"""Words that are searched for at once; further ones are passed over."""
OWN = {"q", "sort", "page", "format"}
"""What an address says of every list; no column can be filtered by under these names."""
NONE = "none"
"""What a filter calls the lack of a value."""
SOME = "some"
"""What a filter of numbers, times and flags calls any value."""
_NUMBER = r"[+-]?\d{1,20}(?:\.\d{1,20})?(?:[eE][+-]?\d{1,3})?\s?%?"
_DAY = r"\d{4}-\d{2}-\d{2}"
_COMPARED: dict[str, Callable[[pl.Expr, Any], pl.Expr]] = {
    ">=": pl.Expr.ge,
    "<=": pl.Expr.le,
    ">": pl.Expr.gt,
    "<": pl.Expr.lt,
}
_YES, _NO = {"1", "true", "yes"}, {"0", "false", "no"}
_DAY_US = 86_400_000_000


@dataclass(frozen=True)
class Column:
    """A column of a list.

    Attributes:
        name: In the frame, and in addresses.
        head: What stands above it.
        kind: How its values are printed and filtered.
        link: From a row to the address it leads to, without the base path; None for no link.
        shown: Whether it stands in the table; in CSV and JSON it does in any case.
        choices: Whether its values are few, and are offered to filter by.
        vocabulary: All values that a text can have, where these are known: to filter by one is no
            slip, though no row has it now.
        longest: Characters of a text that the table shows; all of them stand in CSV and JSON.
        by: Column of the number that this one says in words, and is sorted by; None for itself.
    """

    name: str
    head: str
    kind: Kind = "text"
    link: Callable[[Mapping[str, Any]], str | None] | None = None
    shown: bool = True
    choices: bool = False
    vocabulary: Sequence[str] = ()
    longest: int = 200
    by: str | None = None

    @property
    def hint(self) -> str:
        """How to filter by it, in an example; empty where its text is to be typed."""
        if self.kind == "time":
            return "2026-03-01, or >=2026-03-01"
        if self.kind == "flag":
            return "yes or no"
        if self.kind == "text":
            return ""
        return "50%, or >=50%" if self.kind == "share" else "2, >=2, or 1..3"


@dataclass(frozen=True)
class Ask:
    """What an address asks of a list.

    Attributes:
        search: Text that a row must contain; empty for all.
        where: By column, what its value must be: a text; for numbers ``2``, ``>=1``, ``0..1``,
            ``50%``; for times a day (UTC) or days, likewise; ``yes`` or ``no``; ``none``, or
            ``some``. A page may put more here, which no column is called.
        sort: Column to sort by, ``-name`` for the largest first; None for the list's own order.
        page: From 1.
        whole: Whether all rows are asked for on one page, as for printing: ``page=all``.
        strict: Whether a program asks, as for CSV or JSON: what it cannot have is an error.
        others: Parameters of the page's route: what the address says of them is not for its list,
            whatever the columns are called. None where no route is known.
        unread: What the address says of the page, if that is no page; else None.
        repeated: All values of the parameters of the page's route that the address says more than
            once; a filter has one value, its last.
    """

    search: str = ""
    where: Mapping[str, str] = field(default_factory=dict)
    sort: str | None = None
    page: int = 1
    whole: bool = False
    strict: bool = field(default=False, compare=False)
    others: frozenset[str] | None = field(default=None, compare=False)
    unread: str | None = field(default=None, compare=False)
    repeated: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, request: Request) -> Ask:
        """What the address of a request asks; ``listed`` says what it cannot mean."""
        said, route = request.query_params, request.scope.get("route")
        page = said.get("page") or "1"
        whole = page == ALL
        read = whole or (page.isascii() and page.isdecimal() and len(page) < 9 and int(page) > 0)
        others = None
        if isinstance(route, APIRoute):
            each_of = [route.dependant, *route.dependant.dependencies]
            named = [one for part in each_of for one in part.query_params]
            others = frozenset(each.alias for each in named)
        every = {name: said.getlist(name) for name in said if name in (others or ())}
        return cls(
            search=said.get("q", "").strip(),
            where={key: value for key, value in said.items() if key not in OWN and value != ""},
            sort=said.get("sort") or None,
            page=int(page) if read and not whole else 1,
            whole=whole,
            strict=said.get("format") in {"csv", "json"},
            others=others,
            unread=None if read else page[:50],
            repeated={name: values for name, values in every.items() if len(values) > 1},
        )

    def address(self, **changed: Any) -> str:
        """The same address with some of it changed; ``None`` takes it out."""
        held: dict[str, Any] = {**self.where, **self.repeated}
        held |= {"q": self.search, "sort": self.sort}
        held |= {"page": ALL if self.whole else self.page if self.page > 1 else None} | changed
        return "?" + urlencode({k: v for k, v in held.items() if v not in (None, "")}, doseq=True)


@dataclass(frozen=True)
class Listed:
    """One page of a list.

    Attributes:
        columns: Those that stand in the table.
        rows: By name of the column; ``_links`` leads from a name to an address.
        every: All rows that were found, for CSV and JSON.
        found: How many were found.
        total: How many there are.
        ask: What was asked.
        pages: How many pages there are, 1 or more.
        choices: By column, the values to filter by.
        heads: What stands above each column, those included that the table does not show.
        passed_over: Filters that cannot be understood, and were left out; ``q`` if too many words
            were searched for.
        notes: What the address asks and the list cannot do, in sentences.
        cut: Which rows these are, where there are more: ``newest``; empty for all of them.
        whole: How many there are of which these are some; None for all of them.
    """

    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Any]]
    every: pl.DataFrame
    found: int
    total: int
    ask: Ask
    pages: int
    choices: Mapping[str, Sequence[str]]
    heads: Mapping[str, str]
    passed_over: Sequence[str] = ()
    notes: Sequence[str] = ()
    cut: str = ""
    whole: int | None = None

    @property
    def on_one_page(self) -> str:
        """The address of all rows on one page; empty where they are too many."""
        return self.ask.address(page=ALL) if self.found <= MOST_ON_A_PAGE else ""

    def cut_from(self, which: str, whole: int) -> Listed:
        """The same, as some of more rows; itself if these are all of them."""
        return self if whole <= self.total else replace(self, cut=which, whole=whole)

    @property
    def by_hand(self) -> Sequence[Column]:
        """Columns that are filtered by typing: numbers and times."""
        others = {*self.choices, *(self.ask.others or ())}
        return [c for c in self.columns if c.kind != "text" and c.name not in others]

    @property
    def carried(self) -> Sequence[tuple[str, str]]:
        """What the form that filters has no field for, and must keep."""
        fields = {*self.choices, *(column.name for column in self.by_hand)}
        return [
            (name, each)
            for name, value in self.ask.where.items()
            if name not in fields
            for each in self.ask.repeated.get(name, [value])
        ]

    @property
    def narrowed(self) -> Mapping[str, str]:
        """Filters that hold, by the heads of their columns."""
        return {
            self.heads[name]: value
            for name, value in self.ask.where.items()
            if name in self.heads and name not in {*self.passed_over, *(self.ask.others or ())}
        }

    def sort_by(self, name: str) -> str:
        """The address that sorts by a column; by the one sorted by already, the other way."""
        turned = f"-{name}" if self.ask.sort == name else name
        return self.ask.address(sort=turned, page=None)

    def sorted_as(self, name: str) -> str | None:
        """``ascending`` or ``descending`` if sorted by this column."""
        if self.ask.sort is None or self.ask.sort.removeprefix("-") != name:
            return None
        return "descending" if self.ask.sort.startswith("-") else "ascending"

    def without(self) -> str:
        """The address of all rows, in the order they are in now."""
        kept = {name: value for name, value in self.ask.where.items() if name not in self.every}
        return Ask(where=kept, sort=self.ask.sort, repeated=self.ask.repeated).address()


def listed(
    frame: pl.DataFrame,
    columns: Sequence[Column],
    ask: Ask,
    *,
    search: Sequence[str],
    per_page: int = PER_PAGE,
) -> Listed:
    """The page of a list that is asked for.

    Args:
        frame: All of it, in its own order; it may hold columns that are not shown, for links.
        columns: What it shows.
        ask: What is asked. An unknown column, a value that no number can be, or a page beyond the
            last is passed over, and noted.
        search: Columns of text that are searched: a row is found that holds every word, in
            whichever of them, whatever the case.
        per_page: Rows of a page.

    Raises:
        UsageError: a program asks for what would be passed over.
    """
    by_name = {column.name: column for column in columns}
    others = ask.others or frozenset()
    offered = {
        column.name: _choices(column, frame)
        for column in columns
        if column.choices and column.name not in others
    }
    found, passed_over, wrong = frame, [], list(_unknown(by_name, ask))
    for name, value in ask.where.items():
        if name in by_name and name not in others:
            wanted = _wanted(by_name[name], value)
            if wanted is None:
                passed_over.append(name)
                wrong.append(_no_filter(by_name[name], value))
            else:
                found = found.filter(wanted.fill_null(value=False))
            if not ask.strict and _unheard_of(by_name[name], value, frame):
                # For a program, no rows are the answer.
                near = nearest(value, [*by_name[name].vocabulary, *offered.get(name, ())])
                wrong.append(UsageError(f"no row has “{value[:50]}”", nearest=near))
    words = list(dict.fromkeys(_lower(word) for word in ask.search.split()))
    if words:
        folded = found.select(_folded(pl.col(name)).alias(name) for name in search)
        held = [
            pl.any_horizontal(pl.col(name).str.contains(word, literal=True) for name in search)
            for word in words[:MOST_WORDS]
        ]
        found = found.filter(folded.select(pl.all_horizontal(held)).to_series())
    if len(words) > MOST_WORDS:
        passed_over.append("q")
        wrong.append(UsageError(f"only the first {MOST_WORDS} words are searched for"))
    key = (ask.sort or "").removeprefix("-")
    if key in by_name:
        down = str(ask.sort).startswith("-")
        key = by_name[key].by or key
        text = frame.schema[key] == pl.String
        by = [_folded(pl.col(key)), pl.col(key)] if text else [pl.col(key)]
        known = pl.col(key).is_null()  # what has no value stands last, whichever way
        found = found.sort(known, *by, descending=[False] + [down] * len(by), maintain_order=True)
    if ask.whole and found.height > MOST_ON_A_PAGE and not ask.strict:
        what = f"one page has at most {MOST_ON_A_PAGE:,} rows, and the list has {found.height:,}"
        wrong.append(UsageError(f"{what}: CSV has all of them"))
        ask = replace(ask, whole=False)
    if ask.whole:
        per_page = max(found.height, 1)
    pages = max(1, -(-found.height // per_page))
    if ask.page > pages:
        count = "one page" if pages == 1 else f"{pages:,} pages"
        what = f"there is no page {ask.page:,}: the list has {count}"
        if ask.strict:
            raise UsageError(what, nearest=[f"page={pages}"])
        wrong.append(UsageError(f"{what}, and this is the last" if pages > 1 else what))
        ask = replace(ask, page=pages)
    if wrong and ask.strict:
        raise wrong[0]
    shown = found.slice((ask.page - 1) * per_page, per_page)
    rows = []
    for row in shown.iter_rows(named=True):
        links = {c.name: c.link(row) for c in columns if c.link is not None}
        rows.append(row | {"_links": links})
    return Listed(
        columns=[column for column in columns if column.shown],
        rows=rows,
        every=found.select(list(by_name)),
        found=found.height,
        total=frame.height,
        ask=ask,
        pages=pages,
        choices={name: values for name, values in offered.items() if values},
        heads={column.name: column.head for column in columns},
        passed_over=passed_over,
        notes=[_sentence(each) for each in wrong],
    )


def _unknown(columns: Mapping[str, Column], ask: Ask) -> Iterator[UsageError]:
    """What an address names that is no column, and a page that is none."""
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
        yield UsageError(f"“{ask.unread}” is no page: pages are numbered from 1")


def _unheard_of(column: Column, value: str, frame: pl.DataFrame) -> bool:
    """Whether a text is filtered by that no row of the list has, or could have."""
    if column.kind != "text" or value == NONE or value in column.vocabulary or frame.is_empty():
        return False
    return not (frame[column.name].cast(pl.String) == value).any()


def _no_filter(column: Column, value: str) -> UsageError:
    kinds = {
        "time": ("a day", f"{column.name}=2026-03-01, >=2026-03-01, or 2026-03-01..2026-03-31"),
        "flag": ("yes or no", f"{column.name}=yes, no, or {NONE}"),
    }
    kind, fix = kinds.get(column.kind, ("a number", f"{column.name}=2, >=2, 1..3, or {NONE}"))
    return UsageError(f"“{value[:50]}” is no filter for {kind}", fix=fix)


def _sentence(error: UsageError) -> str:
    meant = f" Did you mean {' or '.join(error.nearest)}?" if error.nearest else ""
    fix = f" Write {error.fix}." if error.fix else ""
    return f"{error.what[:1].upper()}{error.what[1:]}.{meant}{fix}"


def _folded(text: pl.Expr) -> pl.Expr:
    """As it is compared: small letters, and one small sigma."""
    return text.cast(pl.String).fill_null("").str.to_lowercase().str.replace_all("ς", "σ")


def _lower(word: str) -> str:
    return word.lower().replace("ς", "σ")


def _choices(column: Column, frame: pl.DataFrame) -> list[str]:
    values = frame[column.name]
    unique = values.drop_nulls().unique().sort()
    if len(unique) > _MOST_CHOICES:
        return []
    if column.kind == "flag":
        said = ["yes" if value else "no" for value in unique.to_list()]
    else:
        said = [
            f"{v:g}" if isinstance(v, float) and float(f"{v:g}") == v else str(v)
            for v in unique.to_list()
        ]
    return said + [NONE] * (values.null_count() > 0 and bool(said) and NONE not in said)


def _wanted(column: Column, value: str) -> pl.Expr | None:
    """What a row must meet; None if the value cannot be understood."""
    it = pl.col(column.name)
    if column.kind == "text":
        same = it.cast(pl.String) == value
        return same | it.is_null() if value == NONE else same
    if value in (NONE, SOME):
        return it.is_null() if value == NONE else it.is_not_null()
    if column.kind == "flag":
        said = value.strip().casefold()
        return it if said in _YES else ~it if said in _NO else None
    one = _DAY if column.kind == "time" else _NUMBER
    match = re.fullmatch(
        rf"(>=|<=|>|<|≥|≤|=)?\s*({one})(?:\s*(?:\.\.|–)\s*({one}))?", value.strip(), re.ASCII
    )
    if match is None or (match[1] and match[3]):
        return None
    compared = {"≥": ">=", "≤": "<="}.get(match[1] or "=", match[1] or "=")
    spans = [_span(column, said) for said in match.groups()[1:] if said is not None]
    if any(span is None for span in spans):
        return None
    known = [span for span in spans if span is not None]
    if match[3] is not None or compared == "=":
        return it.is_between(known[0][0], known[-1][1])
    # After a day is after its end, before it before its beginning.
    return _COMPARED[compared](it, known[0][int(compared in {">", "<="})])


def _span(column: Column, said: str) -> tuple[float, float] | None:
    """The least and the greatest value that is meant: of a day its ends, else one number."""
    if column.kind == "time":
        try:
            day = dt.datetime.fromisoformat(said).replace(tzinfo=dt.UTC)
        except ValueError:
            return None
        begins = int(day.timestamp()) * 1_000_000
        return begins, begins + _DAY_US - 1
    number = float(said.removesuffix("%")) / (100 if said.endswith("%") else 1)
    return number, number
