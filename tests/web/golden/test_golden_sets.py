"""Golden sets: their list and overview, and that their pages stand whatever they hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import polars as pl
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.web.conftest import NOW, Browser, ClientOf, Clock, with_deep

from karat.store.sql import people
from karat.tables.golden.golden_sets import Exchange
from karat.web.app import create_app
from karat.web.framework.settings import Settings
from karat.web.golden.golden_sets import address, place
from karat.workflows.golden.import_ import import_exchange
from karat.workflows.workspace.workspace import make_workspace, open_workspace

PAGES = (
    "",
    "/queries",
    "/pairs",
    "/judgments",
    "/agreement",
    "/disagreements",
    "/disagreements?between=import",
    "/editions",
    "/exchange",
)
EVIL = "=<script>alert(1)</script>\"'&"


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """An engineer's browser of a golden set called ``new``, in which there is nothing yet."""
    root = tmp_path_factory.mktemp("empty") / "new"
    make_workspace(root, now=NOW, name="new", environment={})
    made: FastAPI = create_app(Settings(root), Clock())
    with TestClient(made, base_url="http://127.0.0.1"):
        with made.state.site.workspace.store.begin() as c:
            person = people.add(c, "egon", "engineer", None, NOW)
        yield Browser(made, person)


@pytest.mark.parametrize("page", [*PAGES[:2], *with_deep(*PAGES[2:])])  # test_every_page.py
def test_pages_show_what_there_is(client_of: ClientOf, page: str) -> None:
    answer = client_of("engineer").get(f"/golden/shop{page}")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "<h1>" in answer.text
    as_json = client_of("engineer").get(f"/golden/shop{page}", params={"format": "json"})
    assert as_json.json()["golden"] == "shop"


def test_every_number_of_the_overview_leads_to_its_rows(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    text = browser.get("/golden/shop").text
    stats = re.findall(r"<dt>([^<]+).*?<a href=\"([^\"]+)\">([\d,]+)<", text)
    assert {name for name, _, _ in stats} >= {"Queries", "Pairs with a grade", "Judgments to give"}
    for name, where, number in stats:
        if where == "/runs":
            continue
        at = unescape(where)
        answer = browser.get(f"{at}{'&' if '?' in at else '?'}format=csv")
        rows = len(answer.text.splitlines()) - 1
        if name == "Judgments to give":  # two judgments of each pair that waits
            rows *= 2
        assert (name, rows) == (name, int(number.replace(",", "")))
    for where in re.findall(r'class="text"><a href="([^"]+)"', text):
        assert browser.get(unescape(where)).status_code == 200


def test_the_list_has_every_golden_set(client_of: ClientOf) -> None:
    answer = client_of("engineer").get("/golden", params={"format": "json"})
    row = answer.json()["sets"][0]
    assert (row["name"], row["queries"], row["judged"], row["waiting"]) == ("shop", 4, 4, 8)
    assert client_of("engineer").get("/golden").status_code == 200


@pytest.mark.parametrize("page", [*PAGES[:2], *with_deep(*PAGES[2:])])  # test_every_page.py
def test_pages_of_an_empty_golden_set_say_what_to_do(empty: Browser, page: str) -> None:
    answer = empty.get(f"/golden/new{page}")
    assert answer.status_code == 200, answer.text
    if page == "":
        assert "hoose queries from a log, or import them" in answer.text
        assert 'href="/golden/new/exchange"' in answer.text


def test_there_is_no_such_golden_set(client_of: ClientOf) -> None:
    for page in (*PAGES, "/queries/q1", "/pair?query=q1&document=d1", "/changes?old=a"):
        answer = client_of("engineer").get(f"/golden/shp{page}")
        assert answer.status_code == 404
        assert "Did you mean" in answer.text or "shp" in answer.text


@pytest.mark.deep  # the templates escape: test_dashboard.py and test_judge.py
def test_what_strangers_wrote_is_text(client_of: ClientOf, workspace: Path) -> None:
    named = {"query_id": ["q9"], "text": [EVIL], "need": [EVIL], EVIL: [EVIL], "sort": ["x"]}
    found = Exchange(
        "csv",
        queries=pl.DataFrame(named),
        documents=pl.DataFrame(
            {"doc_id": [EVIL], "title": [EVIL], "text": [EVIL], "url": ["javascript:alert(1)"]}
        ),
        judgments=pl.DataFrame(
            {
                "query_id": ["q9", "q9"],
                "doc_id": [EVIL, EVIL],
                "rater": [EVIL, "ben"],
                "grade": [0.0, 3.0],
                "reason": [EVIL, EVIL],
            }
        ),
    )
    with open_workspace(workspace, now=NOW, environment={}) as opened:
        import_exchange(opened, found, file=EVIL, sha256="", now=NOW)
    browser = client_of("engineer")
    one = ("/queries/q9", address("", "pair", query="q9", document=EVIL).removeprefix("/golden/"))
    for page in (*PAGES, *one):
        answer = browser.get(f"/golden/shop{page}")
        assert answer.status_code == 200, (page, answer.text)
        assert "<script>alert" not in answer.text
        assert 'href="javascript:' not in answer.text
    for page in ("queries", "pairs", "judgments", "disagreements"):
        cells = browser.get(f"/golden/shop/{page}", params={"format": "csv"}).text
        assert "=<script>" in cells
        assert not re.search(r'(^|,)"?=<script>', cells, re.MULTILINE)


def test_commands_have_their_pages() -> None:
    assert place("a b/c", "karat judge --terminal --adjudicate") == "/judge/a%20b%2Fc/adjudicate"
    assert place("shop", "karat golden freeze NAME") == "/golden/shop/editions#freeze"
    assert place("shop", "karat golden something new") == "/golden/shop"


def test_a_set_that_no_address_names_is_said_to_have_no_pages(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    with browser.site.workspace.store.begin() as c:
        c.exec_driver_sql("UPDATE golden_set SET name = 'a/<b>' WHERE name = 'shop'")
    text = unescape(browser.get("/golden").text)
    assert "has no pages: its name cannot be part of an address" in text
    assert "a%2F" not in text
