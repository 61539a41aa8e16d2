"""Queries: filtered by what they are, and one with what each rater said of its documents."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from tests.web.conftest import NOW, ClientOf

from karat.tables.exchange import Exchange
from karat.workflows.exchanging import take_exchange
from karat.workflows.workspace import open_workspace


def test_queries_come_with_their_counts(client_of: ClientOf) -> None:
    answer = client_of("engineer").get("/golden/shop/queries", params={"format": "json"})
    first = answer.json()["queries"][0]
    # 5 documents, of which 4 were judged by three people; the last waits for two judgments.
    assert first["text"] == "red shoes"
    assert (first["documents"], first["graded"], first["judgments"]) == (5, 4, 12)
    assert (first["waiting"], first["editions"], first["words"]) == (2, 0, "2")


def test_queries_are_filtered_by_any_attribute(client_of: ClientOf, workspace: Path) -> None:
    given = {"query_id": ["q1", "q2"], "text": ["red shoes", "garden hose"]}
    odd = {"season": ["summer", "winter"], "q": ["x", "y"], "judgments": [1, 2], "of": [[1], [2]]}
    found = Exchange("csv", queries=pl.DataFrame(given | odd))
    with open_workspace(workspace, now=NOW, environment={}) as opened:
        take_exchange(opened, found, file="more.csv", sha256="", now=NOW)
    browser = client_of("engineer")

    def ids(**where: str) -> list[str]:
        answer = browser.get("/golden/shop/queries", params={"format": "json", **where})
        return [row["query_id"] for row in answer.json()["queries"]]

    assert ids(season="summer") == ["q1"]
    assert ids(season="none") == ["q3", "q4"]
    # Attributes called as a list's own words, or its counts, stand under other names.
    assert ids(**{"attribute q": "y"}) == ["q2"]
    assert ids(**{"attribute judgments": ">=2"}) == ["q2"]
    assert ids(judgments="12") == ["q1", "q2", "q3", "q4"]
    assert ids(q="HOSE") == ["q2"]


def test_a_query_has_every_raters_grade(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    answer = browser.get("/golden/shop/queries/q1")
    assert answer.status_code == 200
    # Pair 0 got grades 0, 1 and 2 of rita, ben and cleo (the workspace's rule: i + j modulo 4).
    assert "ben 1, cleo 2, rita 0" in answer.text
    assert "/golden/shop/pair?query=q1&amp;document=d1" in answer.text
    rows = browser.get("/golden/shop/queries/q1", params={"format": "json"}).json()["documents"]
    assert {row["doc_id"]: row["waiting"] for row in rows}["d5"] == 2


def test_ids_are_any_text(client_of: ClientOf, workspace: Path) -> None:
    odd = "a/b ?#%é"
    found = Exchange("csv", queries=pl.DataFrame({"query_id": [odd], "text": ["odd one"]}))
    with open_workspace(workspace, now=NOW, environment={}) as opened:
        take_exchange(opened, found, file="odd.csv", sha256="", now=NOW)
    browser = client_of("engineer")
    where = "/golden/shop/queries/a%2Fb%20%3F%23%25%C3%A9"
    assert where in browser.get("/golden/shop/queries").text
    assert "odd one" in browser.get(where).text
    assert browser.get("/golden/shop/queries/q11").status_code == 404
