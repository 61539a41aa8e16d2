"""What counts in no number over all is marked, and no number leads to it."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import polars as pl
import pytest
import sqlalchemy as sa
from tests.web.conftest import Browser, ClientOf

from karat.store.sql.schema import query
from karat.web.offline import runs, stored_comparisons
from karat.web.offline.counted import counts_in, narrowed, tallies, uncounted

ASIDE = {"q3", "q4"}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page waits for its numbers, however slow the machine."""
    for module in (stored_comparisons, runs):
        monkeypatch.setattr(module, "WAIT_S", 60.0)


@pytest.fixture
def egon(client_of: ClientOf) -> Browser:
    """A log counted two of the queries, and not the others."""
    browser = client_of("engineer")
    with browser.site.workspace.store.begin() as c:
        for query_id, weight in (("q1", 1.0), ("q2", 3.0), ("q3", None), ("q4", None)):
            c.execute(sa.update(query).where(query.c.query_id == query_id).values(weight=weight))
    return browser


def compared(browser: Browser) -> str:
    given = {"baseline": 1, "candidate": [2], "measure": ["nDCG@3", "P@2"], "by": ["query_length"]}
    where: str = browser.fill("/comparisons/new", **given).headers["location"]  # type: ignore[attr-defined]
    return where


def rows(browser: Browser, address: str) -> list[dict[str, Any]]:
    """The list that an address gives."""
    tail = "&format=json" if "?" in address else "?format=json"
    found: dict[str, Any] = browser.get(address + tail).json()
    listed: list[dict[str, Any]] = found["queries"]
    return listed


def links(page: str, has: str) -> list[str]:
    """Where a page leads to, of its own lists."""
    found = re.findall(r'(?:xlink:)?href="(\?[^"#]*)#queries"', page)
    return [each for each in map(unescape, found) if has in each]


def test_each_count_of_a_comparison_leads_to_what_it_counts(egon: Browser) -> None:
    where = compared(egon)
    page = egon.get(where).text
    for each in egon.get(f"{where}?format=json").json()["numbers"]["differences"]:
        assert each["n"] == 2
        [name] = {
            at
            for at in links(page, f"measure={each['measure'].replace('@', '%40')}&")
            if "candidate" not in at and "outcome" not in at
        }
        assert {row["query_id"] for row in rows(egon, where + name)} == {"q1", "q2"}
        for way, count in (("better", "wins"), ("same", "ties"), ("worse", "losses")):
            table = re.search(rf'<a href="([^"]*outcome={way}[^"]*)"><span class="hidden">', page)
            assert table is not None
            at = unescape(table[1]).partition("#")[0]
            at = re.sub(r"measure=[^&]*", f"measure={each['measure']}", at)
            assert len(rows(egon, where + at)) == each[count]
    slices = egon.get(f"{where}?view=slices").text
    of_slice = {at for at in links(slices, "slice=") if "measure" not in at}
    assert {len(rows(egon, where + at)) for at in of_slice} == {2}
    text = re.sub(r"<[^>]*>", " ", egon.get(f"{where}?view=queries").text)
    assert "2 queries have zero weight" in text
    for chip in ("all 4", "counted 2", "not counted 2"):
        assert chip in text
    assert {row["query_id"] for row in rows(egon, f"{where}?counts=no")} == ASIDE
    everything = rows(egon, where)
    assert [row["counts"] for row in everything] == [True, True, False, False]


@pytest.mark.deep
def test_the_side_of_a_query_that_does_not_count_says_so(egon: Browser) -> None:
    where = compared(egon)
    assert "Not counted: it has zero weight" in egon.get(f"{where}/queries/q3").text
    assert "to the mean" not in egon.get(f"{where}/queries/q3").text
    assert "Not counted" not in egon.get(f"{where}/queries/q1").text
    egon.get("/runs/1")
    assert "Not counted: it has zero weight" in egon.get("/runs/1/queries/q3").text


@pytest.mark.deep  # the comparison counts in the same way
def test_a_run_counts_and_draws_those_that_count(egon: Browser) -> None:
    page = egon.get("/runs/1?by=query_length").text
    shown = egon.get("/runs/1?format=json").json()
    n = shown["results"]["results"][0]["n"]
    assert n == 2
    assert shown["tallies"] == {"": 4, "yes": 2, "no": 2}
    assert "of 2 queries ha" in page, "under the chart of values"
    measures, slices = set(links(page, "counts=yes")), set(links(page, "slice="))
    assert measures
    assert slices
    for at in measures | slices:
        assert {row["query_id"] for row in rows(egon, "/runs/1" + at)} <= {"q1", "q2"}
    assert [row["counts"] for row in rows(egon, "/runs/1")] == [True, True, False, False]


@pytest.mark.deep
def test_what_got_no_answer_leads_to_those_that_count(egon: Browser) -> None:
    data = "q1 Q0 d2 1 3.0 t\n"
    files = {"file": ("one.trec", data.encode())}
    answer = egon.post("/runs", data={"csrf": egon.csrf}, files=files, follow_redirects=False)
    where = answer.headers["location"]
    shown = egon.get(f"{where}?format=json").json()
    assert shown["outcomes"] == {"missing": 1}
    [at] = set(links(egon.get(where).text, "state=missing"))
    assert [row["query_id"] for row in rows(egon, where + at)] == ["q2"]


@pytest.mark.deep
def test_without_weights_nothing_is_said_of_them(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    where = compared(browser)
    for page in (browser.get(where).text, browser.get("/runs/1").text):
        assert "counts=" not in page
        assert "zero weight" not in page


def test_where_all_are_alike_all_count() -> None:
    frame = pl.DataFrame({"query_id": ["a", "b", "c", "d"], "counts": [True, True, False, False]})
    assert narrowed({"measure": "AP"}, frame) == {"measure": "AP", "counts": "yes"}
    assert narrowed({"slice": "k=hard"}, frame) == {"slice": "k=hard"}
    assert counts_in(frame)["query_id"].to_list() == ["a", "b"]
    assert tallies(frame) == {"": 4, "yes": 2, "no": 2}
    assert uncounted(frame[1:3]).startswith("1 query has zero weight")
    for alike in (frame[:2], frame[2:]):  # as a slice of hard queries alone
        assert narrowed({"measure": "AP"}, alike) == {"measure": "AP"}
        assert counts_in(alike).height == 2
        assert not tallies(alike)
        assert not uncounted(alike)
