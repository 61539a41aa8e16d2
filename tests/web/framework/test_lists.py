"""Lists: what is found, in which order, on which page, is what plain Python finds."""

from __future__ import annotations

import csv
import io
import time
from types import SimpleNamespace
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlencode

import polars as pl
import pytest
from fastapi import Query
from fastapi.routing import APIRoute
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from karat.errors import UsageError
from karat.reports.table import Column
from karat.web.framework import lists
from karat.web.framework.lists import Ask, Listed, listed
from karat.web.framework.pages import environment, to_csv

COLUMNS = (
    Column("name", "Name"),
    Column("band", "Band", choices=True),
    Column("n", "Number", "count"),
    Column("share", "Share", "share"),
    Column("ok", "Right", "flag", choices=True),
    Column("at", "When", "time"),
)
SCHEMA = {
    "name": pl.String(),
    "band": pl.String(),
    "n": pl.Int64(),
    "share": pl.Float64(),
    "ok": pl.Boolean(),
    "at": pl.Int64(),
}
DAY = 86_400_000_000
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.one_of(st.none(), st.text("aAbBΣσςß 1", max_size=4)),
            "band": st.sampled_from([None, "head", "torso", "none"]),
            "n": st.one_of(st.none(), st.integers(-3, 3)),
            "share": st.sampled_from([None, 0.0, 0.25, 0.5, 1.0]),
            "ok": st.sampled_from([None, True, False]),
            "at": st.one_of(st.none(), st.integers(0, 3 * DAY)),
        }
    ),
    max_size=30,
)


def found_in(rows: list[dict[str, Any]], ask: Ask, per_page: int = 7) -> Listed:
    """The list of rows, searched by name."""
    frame = pl.DataFrame(rows, schema=SCHEMA)
    return listed(frame, COLUMNS, ask, search=["name"], per_page=per_page)


async def _route(part: Annotated[list[str] | None, Query()] = None, last: int = 1) -> None: ...


def request(query: str) -> Request:
    """A request of an address, of a route that takes ``last``, and ``part`` several times."""
    scope = {"type": "http", "query_string": query.encode(), "headers": []}
    return Request(scope | {"route": APIRoute("/", _route)})


@given(ROWS, st.sampled_from([None, "name", "-name", "n", "-n", "share", "-at", "nothing"]))
def test_pages_part_what_was_found(rows: list[dict[str, Any]], sort: str | None) -> None:
    first = found_in(rows, Ask(sort=sort))
    shown: list[Any] = []
    for page in range(1, first.pages + 1):
        shown += [
            {name: row[name] for name in SCHEMA}
            for row in found_in(rows, Ask(sort=sort, page=page)).rows
        ]
    assert shown == first.every.to_dicts()
    assert first.found == first.total == len(rows)
    beyond = found_in(rows, Ask(sort=sort, page=99))
    assert beyond.ask.page == beyond.pages


@given(ROWS, st.booleans())
def test_sorting_is_stable_and_puts_what_is_lacking_last(
    rows: list[dict[str, Any]], down: bool
) -> None:
    shown = found_in(rows, Ask(sort="-n" if down else "n")).every["n"].to_list()
    at = found_in(rows, Ask(sort="-n" if down else "n")).every.to_dicts()
    known = [row for row in rows if row["n"] is not None]
    known.sort(key=lambda row: -row["n"] if down else row["n"])  # Python's sort is stable
    assert at == known + [row for row in rows if row["n"] is None]
    assert len(shown) == len(rows)


@given(
    ROWS,
    st.sampled_from(
        [
            ("n", "2", lambda v: v == 2),
            ("n", ">=1", lambda v: v is not None and v >= 1),
            ("n", "≤0", lambda v: v is not None and v <= 0),
            ("n", "-1..1", lambda v: v is not None and -1 <= v <= 1),
            ("n", "none", lambda v: v is None),
            ("n", "some", lambda v: v is not None),
            ("share", "50%", lambda v: v == 0.5),
            ("share", "< 0.5", lambda v: v is not None and v < 0.5),
            ("band", "head", lambda v: v == "head"),
            ("band", "none", lambda v: v in (None, "none")),
            ("ok", "yes", lambda v: v is True),
            ("ok", "False", lambda v: v is False),
            ("ok", "none", lambda v: v is None),
            ("at", "1970-01-02", lambda v: v is not None and DAY <= v < 2 * DAY),
            ("at", ">1970-01-01", lambda v: v is not None and v >= DAY),
            ("at", ">=1970-01-02", lambda v: v is not None and v >= DAY),
            ("at", "<=1970-01-01", lambda v: v is not None and v < DAY),
            ("at", "1970-01-01..1970-01-02", lambda v: v is not None and v < 2 * DAY),
            ("n", "many", lambda v: True),
            ("n", "1e", lambda v: True),
            ("at", "1970-13-45", lambda v: True),
            ("ok", "perhaps", lambda v: True),
            ("unknown", "1", lambda v: True),
        ]
    ),
)
def test_filters_are_those_of_plain_python(rows: list[dict[str, Any]], case: Any) -> None:
    column, said, meets = case
    found = found_in(rows, Ask(where={column: said}))
    assert found.every.to_dicts() == [row for row in rows if meets(row.get(column))]
    not_understood = {"many", "1e", "1970-13-45", "perhaps"}
    assert list(found.passed_over) == ([column] if said in not_understood else [])


@given(ROWS, st.text("aABbΣσς 1", max_size=3))
def test_search_finds_rows_with_every_word(rows: list[dict[str, Any]], words: str) -> None:
    def small(text: str | None) -> str:
        return (text or "").lower().replace("ς", "σ")

    wanted = [row for row in rows if all(small(w) in small(row["name"]) for w in words.split())]
    assert found_in(rows, Ask(search=words)).every.to_dicts() == wanted


def test_so_many_words_are_searched_and_no_more() -> None:
    rows = [dict.fromkeys(SCHEMA) | {"name": " ".join(f"w{i}" for i in range(10, 30))}]
    twenty = [f"W{i}" for i in range(10, 30)]
    found = found_in(rows, Ask(search=" ".join(twenty * 3)))
    assert (found.found, list(found.passed_over)) == (1, [])  # each counts once
    more = found_in(rows, Ask(search=" ".join([*twenty, "other"])))
    assert (more.found, list(more.passed_over)) == (1, ["q"])
    assert "Only the first 20 words" in html(more)
    frame = pl.DataFrame({"name": ["a word " * 20] * 20_000}).with_columns(
        pl.lit(None, kind).alias(name) for name, kind in SCHEMA.items() if name != "name"
    )
    many = Ask(search=" ".join(f"{i}" for i in range(2_000)))
    began = time.perf_counter()
    listed(frame, COLUMNS, many, search=["name"])
    assert time.perf_counter() - began < 2


@pytest.mark.parametrize(
    ("query", "page"),
    [("page=3", 3), ("page=²", 1), ("page=-1", 1), ("page=1" + "0" * 30, 1), ("page=", 1)],
)
def test_pages_that_are_no_number_are_the_first(query: str, page: int) -> None:
    assert Ask.of(request(query)).page == page


ASKED = [
    (
        "sort=bnad",
        "There is no column “bnad” to sort by. Did you mean band or name?",
        ["band", "name"],
    ),
    ("nmae=x", "There is no column “nmae” to filter by. Did you mean name?", ["name"]),
    ("page=999", "There is no page 999: the list has 2 pages, and this is the last.", ["page=2"]),
    ("page=x", "“x” is not a page: pages are numbered from 1.", []),
    ("page=0", "“0” is not a page: pages are numbered from 1.", []),
    ("n=many", "“many” is not a valid filter for a number. Write n=2, >=2, 1..3, or none.", []),
    ("at=soon", "“soon” is not a valid filter for a day. Write at=2026-03-01, ", []),
    ("ok=perhaps", "“perhaps” is not a valid filter for yes or no. Write ok=yes, no, or none.", []),
]


@pytest.mark.parametrize(("query", "said", "near"), ASKED)
def test_what_a_list_cannot_do_is_said_and_is_an_error_for_programs(
    query: str, said: str, near: list[str]
) -> None:
    rows = [dict.fromkeys(SCHEMA) | {"name": f"r{k}", "band": "head", "n": k} for k in range(9)]
    found = found_in(rows, Ask.of(request(query)))
    assert (found.found, found.ask.page) == (9, 2 if "999" in query else 1)
    assert len(found.notes) == 1
    assert found.notes[0].startswith(said)
    assert said[:20] in html(found)
    for kind in ("json", "csv"):
        with pytest.raises(UsageError) as refused:
            found_in(rows, Ask.of(request(f"{query}&format={kind}")))
        assert list(refused.value.nearest) == near


@pytest.mark.parametrize("query", ["last=3", "sort=-n", "band=head", "page=2", "q=r"])
def test_what_a_list_or_its_page_can_do_is_not_complained_of(query: str) -> None:
    rows = [dict.fromkeys(SCHEMA) | {"name": f"r{k}", "band": "head", "n": k} for k in range(9)]
    assert found_in(rows, Ask.of(request(f"{query}&format=json"))).notes == []


def test_a_parameter_of_the_page_is_no_filter_of_a_column_that_is_called_so() -> None:
    frame = pl.DataFrame({"name": ["a", "b"], "last": [1, 2]})
    columns = (Column("name", "Name"), Column("last", "Last", "count"))
    found = listed(frame, columns, Ask.of(request("last=3&format=json")), search=["name"])
    assert (found.found, found.notes, found.narrowed) == (2, [], {})
    assert found.carried == [("last", "3")]
    assert found.by_hand == []


def test_a_value_that_no_row_has_is_said_with_the_nearest_and_is_no_error() -> None:
    rows = [dict.fromkeys(SCHEMA) | {"name": "a", "band": band} for band in ("head", "torso")]
    found = found_in(rows, Ask.of(request("band=hed")))
    assert (found.found, found.notes) == (0, ["No row has “hed”. Did you mean head?"])
    assert found_in(rows, Ask.of(request("band=hed&format=json"))).found == 0


@pytest.mark.parametrize(
    ("value", "notes"),
    [
        ("to adjudicate", []),  # what a row can be, though none is
        ("to judge", []),
        ("to adjudge", ["No row has “to adjudge”. Did you mean to judge or to adjudicate?"]),
        ("none", []),
    ],
)
def test_a_value_that_no_row_has_now_is_no_slip(value: str, notes: list[str]) -> None:
    columns = (
        Column("name", "Name"),
        Column("s", "S", choices=True, vocabulary=("to adjudicate", "to judge", "done")),
    )
    frame = pl.DataFrame({"name": ["a", "b"], "s": ["to judge", "not gone"]})
    found = listed(frame, columns, Ask(where={"s": value}), search=["name"])
    assert (found.found, found.notes) == (int(value == "to judge"), notes)
    assert found.choices["s"] == ["not gone", "to judge"]  # offered is what there is


def test_an_address_keeps_what_was_asked() -> None:
    ask = Ask.of(request("q=red+shoes&band=head&a=ann&sort=-n&page=2&format=csv&n="))
    assert ask == Ask("red shoes", {"band": "head", "a": "ann"}, "-n", 2)
    again = Ask.of(request(ask.address().removeprefix("?")))
    assert again == ask
    assert "page" not in ask.address(page=None)


def test_all_rows_on_one_page_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [dict.fromkeys(SCHEMA) | {"name": f"r{k:03}", "n": k} for k in range(120)]
    found = found_in(rows, Ask.of(request("page=all&sort=-n")))
    assert (len(found.rows), found.pages, found.notes) == (120, 1, [])
    assert found.ask.address() == "?sort=-n&page=all"
    assert found.sort_by("name") == "?sort=name"  # another order begins with its first page
    paged = found_in(rows, Ask.of(request("sort=-n")))
    assert paged.pages > 1
    assert paged.on_one_page == "?sort=-n&page=all"
    monkeypatch.setattr(lists, "MOST_ON_A_PAGE", 100)
    many = found_in(rows, Ask.of(request("page=all")))
    assert many.pages > 1
    assert many.on_one_page == ""
    assert many.notes == [
        "One page has at most 100 rows, and the list has 120: CSV has all of them."
    ]
    assert found_in(rows, Ask.of(request("page=all&format=csv"))).found == 120


def test_what_a_page_is_told_several_times_is_kept_whole() -> None:
    rows = [dict.fromkeys(SCHEMA) | {"name": f"r{k}", "band": "head", "n": k} for k in range(9)]
    said = [("part", "device=desktop"), ("part", "query=red shoes"), ("last", "3"), ("n", ">=0")]
    ask = Ask.of(request(urlencode([*said, ("q", "r")])))
    found = found_in(rows, ask)
    whole, most = set(said), set(said[:3])
    for address, kept in (
        (ask.address(), whole),
        (ask.address(format="csv"), whole | {("format", "csv")}),
        (ask.address(page=2), whole | {("page", "2")}),
        (found.sort_by("n"), whole | {("sort", "n")}),
        (ask.address(part=None), whole - set(said[:2])),
    ):
        assert set(parse_qsl(address.removeprefix("?"))) == kept | {("q", "r")}
    assert set(parse_qsl(found.without().removeprefix("?"))) == most
    assert set(found.carried) == most  # the form has fields for the others
    for _, value in said[:2]:
        assert f'<input type="hidden" name="part" value="{value}">' in html(found)
    # A column has one filter, the last.
    twice = found_in(rows, Ask.of(request("n=1&n=2")))
    assert (twice.every["n"].to_list(), twice.sort_by("n")) == ([2], "?n=2&sort=n")


def test_a_count_with_digits_is_rounded_in_the_table_alone() -> None:
    frame = pl.DataFrame({"lost": [1234.5678]})
    found = listed(frame, [Column("lost", "Lost", "count")], Ask(), search=[])
    assert "1,234.6" in html(found)
    assert to_csv(found).splitlines()[1] == "1234.5678"


def html(found: Listed, **how: Any) -> str:
    """The list as a page shows it."""
    shell = SimpleNamespace(base="/base", now=0)
    macros = environment().get_template("list.html.j2").make_module({"shell": shell})
    return str(macros.table(found, "Things", **how))  # type: ignore[attr-defined]


def test_a_list_says_why_it_is_empty() -> None:
    assert "Come later." in html(found_in([], Ask()), nothing="Come later.")
    rows = [dict.fromkeys(SCHEMA) | {"name": "door", "n": 1}, dict.fromkeys(SCHEMA)]
    none = html(found_in(rows, Ask(search="window")))
    assert "Nothing matches." in none
    assert "Show all" in none
    said = html(found_in(rows, Ask(where={"n": "many"})))
    assert "“many” is not a valid filter for a number" in said
    assert 'aria-invalid="true"' in said


def test_boxes_stand_before_rows_for_the_form_they_belong_to() -> None:
    rows = [dict.fromkeys(SCHEMA) | {"name": '"><script>alert(1)</script>', "n": 1}]
    said = html(found_in(rows, Ask()), pick={"form": "bulk", "name": "chosen", "column": "name"})
    assert 'form="bulk" name="chosen" value="&#34;&gt;&lt;script&gt;' in said
    assert "<script>" not in said


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_no_cell_of_csv_is_a_formula(start: str) -> None:
    rows = [dict.fromkeys(SCHEMA) | {"name": f"{start}HYPERLINK(1)"}]
    lines = list(csv.reader(io.StringIO(to_csv(found_in(rows, Ask())))))
    assert lines[1][0].startswith("'")
    assert len(lines) == 2


def test_ten_thousand_rows_are_listed_fast() -> None:
    frame = pl.DataFrame(
        {
            "name": [f"query number {i}" for i in range(10_000)],
            "band": ["head", "tail"] * 5_000,
            "n": list(range(10_000)),
            "share": [0.5] * 10_000,
            "ok": [True, False] * 5_000,
            "at": list(range(10_000)),
        }
    )
    ask = Ask("number 9", {"band": "head", "n": ">=100"}, "-name", 2)
    html(listed(frame, COLUMNS, ask, search=["name"]))  # the template is compiled
    began = time.perf_counter()
    html(listed(frame, COLUMNS, ask, search=["name"]))
    assert time.perf_counter() - began < 0.3


def test_a_number_in_words_is_sorted_as_the_number() -> None:
    frame = pl.DataFrame({"said": ["9.2 %", "10.1 %", None], "value": [0.092, 0.101, None]})
    columns = [Column("said", "value", by="value"), Column("value", "itself", "number")]
    down = listed(frame, columns, Ask(sort="-said"), search=[])
    assert [row["said"] for row in down.rows] == ["10.1 %", "9.2 %", None]
    assert (down.sorted_as("said"), down.sort_by("said")) == ("descending", "?sort=said")
    assert to_csv(down).splitlines()[:2] == ["said,value", "10.1 %,0.101"]


def test_texts_are_made_for_the_rows_of_the_page_unless_more_are_asked_for() -> None:
    frame, made = pl.DataFrame({"n": [1, 2, 3]}), []

    def text(row: dict[str, Any]) -> str:
        made.append(row["n"])
        return f"{row['n']} of 3"

    columns = [Column("n", "Number", "count"), Column("said", "Text", by="n", value=text)]

    def texts(ask: Ask) -> list[str]:
        return [row["said"] for row in listed(frame, columns, ask, search=[], per_page=1).rows]

    assert texts(Ask(sort="-said")) == ["3 of 3"]
    assert made == [3]
    assert texts(Ask(where={"said": "2 of 3"})) == ["2 of 3"]
    every = listed(frame, columns, Ask(strict=True), search=[], per_page=1).every
    assert every["said"].to_list() == ["1 of 3", "2 of 3", "3 of 3"]


def test_a_list_further_down_is_come_back_to() -> None:
    frame = pl.DataFrame({"band": ["head", "torso", "head"]})
    columns = [Column("band", "Band", choices=True)]
    found = listed(frame, columns, Ask(where={"band": "head"}, page=1), search=[], per_page=1)
    page = html(found, search=False, anchor="bands")
    assert 'action="#bands"' in page
    for where in ("?band=head&amp;sort=band#bands", "?band=head&amp;page=2#bands", '"?#bands"'):
        assert where in page
    assert "format=csv#" not in page
    assert "#" not in html(found, search=False)


def test_long_names_are_cut_and_whole_where_they_are_pointed_at() -> None:
    long = "x" * 5_000
    frame = pl.DataFrame({"band": [long, "b"]})
    found = listed(frame, [Column("band", "Band", choices=True)], Ask(), search=[])
    page = html(found)
    assert f'<bdi title="{long}">{"x" * 199}…</bdi>' in page
    assert f'<option value="{long}">{"x" * 79}…</option>' in page
    assert long in to_csv(found)
