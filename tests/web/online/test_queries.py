"""Worst queries in the browser: listed, explained by their rows, put into the golden set."""

from __future__ import annotations

import csv
import html
import io
import re
import shutil
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import polars as pl
import pytest
from tests.event_stores import keep_events
from tests.web.conftest import Browser, ClientOf
from tests.web.online_log import put_users

from karat.store.sql import queries


@pytest.fixture
def engineer(client_of: ClientOf, workspace: Path) -> Browser:
    put_users(workspace)
    return client_of("engineer")


def strange(workspace: Path, text: str) -> None:
    """Three people who search for something and find nothing."""
    rows = [
        {"user_id": f"other {n}", "time_us": (1_799_600_000 + n) * 1_000_000, "kind": "search",
         "query": text, "query_id": f"s{n}", "returned": 0, "total_hits": 0, "status": "ok"}
        for n in range(3)
    ]  # fmt: skip
    types = {"returned": pl.Int32, "total_hits": pl.Int64}
    keep_events(workspace / "events", pl.DataFrame(rows, schema_overrides=types))


def test_the_worst_stands_first_with_its_reason(engineer: Browser) -> None:
    found = engineer.get("/online/queries?format=json").json()
    # All 48 searches for a hat find nothing. Without a click: of shoes 6 × 4, of hoses 9 × 4, of
    # ladders 3 × 4 searches.
    rows = {row["text"]: row for row in found["queries"]}
    assert {name: row["failed"] for name, row in rows.items()} == {
        "wool hat": 48, "garden hose": 36, "red shoes": 24, "tall ladder": 12
    }  # fmt: skip
    first = found["queries"][0]
    assert (first["text"], first["reason"], first["zero"]) == ("wool hat", "zero results", 48)
    assert rows["tall ladder"]["reason"] == "nobody clicks"
    assert found["said"].startswith("120 of 192 searches (62.5 %) failed")
    assert first["golden"] == "q4"  # where it stands in the golden set


def test_a_query_of_the_golden_set_leads_to_its_diagnosis(engineer: Browser) -> None:
    """In the newest run whose stages are known: ``new`` has the documents of ``old``."""
    page = engineer.get("/online/queries").text
    assert 'href="/runs/2/diagnosis/q4?stage=old&amp;stage=new"' in page
    row = engineer.get("/online/queries?format=json").json()["queries"][0]
    assert row["diagnosis"] == "new"


def test_a_query_leads_to_its_searches(engineer: Browser) -> None:
    page = engineer.get("/online/queries").text
    where = "/online/rows?from=2027-01-10&amp;to=2027-01-14&amp;slice=query%3Dwool+hat"
    assert f'href="{where}"' in page
    rows = engineer.get(f"{html.unescape(where)}&format=json").json()
    assert rows["total"] == 48


@pytest.mark.deep  # tests/net/test_pages.py has the text
def test_how_it_is_ordered_and_drawn_is_said_as_the_command_says_it(
    engineer: Browser, workspace: Path
) -> None:
    found = engineer.get("/online/queries?format=json").json()
    assert "shrunk towards that of all queries" in found["ordering"][0]
    page = engineer.get("/online/queries").text
    for sentence in found["ordering"]:
        assert sentence[1:] in html.unescape(page)
    assert "--limit" not in page
    shutil.rmtree(workspace / "events")
    strange(workspace, "snow shovel")  # one query alone says nothing of how queries differ
    page = engineer.get("/online/queries").text
    assert "Queries differ no more than by chance" in page


def test_failed_searches_stand_in_the_table_and_lost_ones_are_not_rounded(
    engineer: Browser,
) -> None:
    page = engineer.get("/online/queries").text
    assert 'data-head="Failed">48<' in re.sub(r"\s", "", page)
    found = engineer.get("/online/queries?format=json").json()["queries"]
    for row in found:
        assert row["lost"] == row["searches"] * row["share"]
    assert any(row["lost"] != round(row["lost"], 1) for row in found)
    lines = csv.DictReader(io.StringIO(engineer.get("/online/queries?format=csv").text))
    assert [float(line["lost"]) for line in lines] == [row["lost"] for row in found]


@pytest.mark.deep
def test_a_slice_that_is_called_as_none_is_leads_to_its_own_rows(
    engineer: Browser, workspace: Path
) -> None:
    shutil.rmtree(workspace / "events")
    put_users(workspace, shop="(none)")
    strange(workspace, "snow shovel")  # of no shop
    page = html.unescape(engineer.get("/online/queries?by=shop").text)
    days = "from=2027-01-10&to=2027-01-14"
    for query, value in (("wool+hat", "%28none%29"), ("snow+shovel", "")):
        where = f"/online/rows?{days}&slice=query%3D{query}&slice=shop%3D{value}"
        assert f'href="{where}"' in page
    rows = engineer.get(f"/online/rows?{days}&slice=shop%3D%28none%29&format=json").json()
    assert rows["total"] == 192


def test_it_is_filtered_sorted_and_sliced_on_the_server(engineer: Browser) -> None:
    asks = "reason=nobody+clicks&sort=searches&format=csv"
    answer = engineer.get(f"/online/queries?{asks}")
    names = {row["text"] for row in csv.DictReader(io.StringIO(answer.text))}
    assert names == {"garden hose", "red shoes", "tall ladder"}
    found = engineer.get("/online/queries?by=arm&format=json").json()
    by_arm = {(row["text"], row["slice"]): row["failed"] for row in found["queries"]}
    assert by_arm["red shoes", "b"] == 24  # the clicks are all in arm a
    assert by_arm["red shoes", "a"] == 0
    # Of arm b all but the three ladders that are clicked on each day: 96 − 12; a: 24 + 12 + 0.
    groups = {value: failed for value, _, _, failed, _, _ in found["groups"]}
    assert groups == {"b": 84, "a": 36}
    page = engineer.get("/online/queries?by=arm")
    assert page.status_code == 200
    assert "Failed searches by slice" in page.text


def test_slices_by_the_golden_set_follow_its_changes(engineer: Browser) -> None:
    def lost(**kinds: list[str]) -> dict[str, int]:
        kind = {text: name for name, texts in kinds.items() for text in texts}
        golden = engineer.site.workspace.golden.id
        with engineer.site.workspace.store.begin() as c:
            frame = queries.frame(c, golden)
            named = frame.with_columns(kind=pl.col("text").replace_strict(kind))
            queries.put(c, golden, named, 1)
        found = engineer.get("/online/queries?by=golden:kind&format=json").json()
        return {value: failed for value, _, _, failed, _, _ in found["groups"]}

    # Failed: 48 searches for the hat, 36 for the hose, 24 for shoes, 12 for the ladder.
    hats, rest = ["wool hat", "red shoes"], ["garden hose", "tall ladder"]
    assert lost(wear=hats, garden=rest) == {"wear": 72, "garden": 48}
    assert lost(wear=hats[1:], garden=[*rest, hats[0]]) == {"wear": 24, "garden": 96}


def test_chosen_ones_go_to_the_golden_set_with_their_counts(
    engineer: Browser, workspace: Path
) -> None:
    strange(workspace, "snow shovel")
    page = engineer.get("/online/queries").text
    assert 'value="snow shovel"' in page
    answer = engineer.fill("/online/queries/golden", query=["snow shovel", "wool hat"])
    assert answer.status_code == 303  # type: ignore[attr-defined]
    done = engineer.get(answer.headers["location"])  # type: ignore[attr-defined]
    assert "1 query was added to the golden set; 1 was already in it." in done.text
    opened = engineer.site.workspace
    with opened.store.read() as connection:
        frame = queries.frame(connection, opened.golden.id)
    [new] = frame.filter(text="snow shovel").to_dicts()
    assert (new["count"], new["origin"]) == (3, "clicks")
    assert frame.height == 5
    again = engineer.fill("/online/queries/golden", query=["snow shovel"])
    assert "added" not in again.headers["location"]  # type: ignore[attr-defined]
    assert "0 queries were added to the golden set; 1 was already in it" in (
        engineer.get("/online/queries").text
    )


def test_adding_leads_back_to_where_one_was(engineer: Browser) -> None:
    asks = "from=2027-01-12&by=arm&q=e&sort=text&slice=b&page=1"
    page = engineer.get(f"/online/queries?{asks}").text
    assert f'name="at" value="{html.escape(asks)}"' in page
    days = {"from": "2027-01-12", "to": "2027-01-14"}
    answer = engineer.fill("/online/queries/golden", query=["wool hat"], by="arm", at=asks, **days)
    where, _, anchor = answer.headers["location"].partition("#")  # type: ignore[attr-defined]
    assert anchor == "queries"
    assert dict(parse_qsl(urlsplit(where).query)) == {
        **days, "by": "arm", "q": "e", "sort": "text", "slice": "b", "page": "1",
    }  # fmt: skip
    assert urlsplit(where).path == "/online/queries"
    back = engineer.get(where).text
    assert "1 was already in it" in back
    assert "sort=-text" in back  # its lists go on from there
    assert "was already in it" not in engineer.get(where).text  # it is said once


def test_nothing_chosen_is_said(engineer: Browser) -> None:
    answer = engineer.fill("/online/queries/golden")
    assert answer.status_code == 400  # type: ignore[attr-defined]
    assert "No query is selected" in answer.text  # type: ignore[attr-defined]


@pytest.mark.deep  # the templates escape: test_dashboard.py and test_judge.py
def test_a_strangers_query_is_text(engineer: Browser, workspace: Path) -> None:
    evil = '"><img src=x onerror=alert(1)>'
    strange(workspace, evil)
    for where in (
        "/online/queries",
        "/online/rows?q=onerror",
        "/online/rows?metric=ZeroResults&counts=yes&q=onerror",
    ):
        page = engineer.get(where).text
        assert "<img src=x" not in page, where
        assert evil in html.unescape(page), where
    cells = csv.reader(io.StringIO(engineer.get("/online/queries?format=csv").text))
    assert not [cell for row in cells for cell in row if cell[:1] in {"=", "+", "@"}]


@pytest.mark.deep
def test_a_long_query_is_cut_in_the_table_alone(engineer: Browser, workspace: Path) -> None:
    text = "x" * 4_000
    strange(workspace, text)
    for where in ("/online/queries?q=xxx", "/online/rows?q=xxx"):
        page = engineer.get(where).text
        assert re.search(rf">{'x' * 199}…</bdi>", page), where
        assert text in engineer.get(f"{where}&format=csv").text, where
        assert text in engineer.get(f"{where}&format=json").text, where


def test_a_log_without_texts_says_what_it_lacks(engineer: Browser, workspace: Path) -> None:
    shutil.rmtree(workspace / "events")
    frame = pl.DataFrame({"user_id": ["u"], "time_us": [1_799_600_000_000_000], "kind": ["search"]})
    keep_events(workspace / "events", frame)
    page = engineer.get("/online/queries")
    assert page.status_code == 200
    assert "The log holds no texts of queries" in page.text
    assert "data-waits" not in page.text
