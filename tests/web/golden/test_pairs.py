"""Pairs and judgments: what each is, and everything that was ever said of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.web.conftest import Browser, ClientOf

from karat.store.sql import audit
from karat.web.framework.lists import OWN
from karat.workflows.golden.queries import STATES, queries_in


def rows(browser: Browser, page: str, key: str, **where: str) -> list[dict[str, object]]:
    """The rows of a list."""
    answer = browser.get(f"/golden/shop/{page}", params={"format": "json", **where})
    found: list[dict[str, object]] = answer.json()[key]
    return found


def test_pairs_say_what_they_are(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    assert len(rows(browser, "pairs", "pairs")) == 20
    waiting = rows(browser, "pairs", "pairs", state="to judge")
    assert [row["doc_id"] for row in waiting] == ["d5"] * 4
    # Grades i, i+1 and i+2 modulo 4 of three raters: all cross the line between 0 and 1, or are 2
    # apart, but where i is 1: there they are 1, 2, 3, which are 2 apart.
    assert len(rows(browser, "pairs", "pairs", state="disagreement")) == 16


@pytest.mark.deep
def test_states_that_no_pair_is_in_are_no_slips(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    for where in ("pairs", "queries/q1"):
        for state in STATES:
            page = browser.get(f"/golden/shop/{where}", params={"state": state})
            assert 'class="wrong"' not in page.text, (where, state)
        page = browser.get(f"/golden/shop/{where}", params={"state": "to adjudge"})
        assert "Did you mean to judge or to adjudicate?" in page.text


def test_a_cell_of_the_matrix_has_its_pairs(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    both = {"a": "rita", "a_grade": "0", "b": "ben", "b_grade": "1"}
    found = rows(browser, "pairs", "pairs", **both)
    assert len(found) == 4
    assert all("rita 0" in str(row["said"]) and "ben 1" in str(row["said"]) for row in found)
    assert rows(browser, "pairs", "pairs", **{**both, "b_grade": "0"}) == []
    # Any two raters: 0 and 1 stand together in 0 1 2, 3 0 1 and, with rita's 3, nowhere else.
    anybody = rows(browser, "pairs", "pairs", a_grade="0", b_grade="1")
    assert {row["said"] for row in anybody} >= {"ben 1, cleo 2, rita 0", "ben 0, cleo 1, rita 3"}
    assert rows(browser, "pairs", "pairs", a_grade="0", b_grade="0") == []
    page = browser.get("/golden/shop/pairs", params=both).text
    assert "Only pairs to which <bdi>rita gave 0 and ben gave 1</bdi>" in page


def test_a_pair_has_its_history(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    answer = browser.get("/golden/shop/pair", params={"query": "q1", "document": "d1"})
    assert answer.status_code == 200
    assert "What d1 says of shoes" in answer.text
    where = {"query": "q1", "document": "d1", "format": "json"}
    found = browser.get("/golden/shop/pair", params=where).json()
    assert [row["rater"] for row in found["history"]] == ["rita", "ben", "cleo"]
    assert all(row["counts"] for row in found["history"])
    none = browser.get("/golden/shop/pair", params={"query": "q1", "document": "d99"})
    assert none.status_code == 404


def test_judgments_lead_to_their_pair(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    found = rows(browser, "judgments", "judgments", rater="ben")
    assert len(found) == 16
    assert found[0]["judgment"] == max(row["judgment"] for row in found)  # type: ignore[type-var]
    text = browser.get("/golden/shop/judgments").text
    assert "/golden/shop/pair?query=q4&amp;document=d4" in text


@pytest.mark.deep
def test_queries_that_no_run_answers_are_called_by_their_texts(
    client_of: ClientOf, tmp_path: Path
) -> None:
    browser = client_of("engineer")
    (tmp_path / "few.trec").write_text("q1 Q0 d1 1 1 few\n", encoding="utf-8")
    with (tmp_path / "few.trec").open("rb") as run:
        browser.post("/runs", data={"csrf": browser.csrf}, files={"file": ("few.trec", run)})
    answer: Any = browser.fill("/golden/shop/pairs", runs=["few"], k=5)
    text = dict(queries_in(browser.site.opened("shop"), OWN)[0].select("query_id", "text").rows())
    said = answer.text.partition("No run returned anything for")[2].partition("</p>")[0]
    for query in ("q2", "q3", "q4"):
        assert f'/queries/{query}"><bdi>{text[query]}</bdi>' in said


def test_pairs_are_chosen_from_kept_runs(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    answer = browser.fill("/golden/shop/pairs", runs=["old", "new"], k=5)
    text = answer.text  # type: ignore[attr-defined]
    assert "0 of them new" in text  # all five are judged, or wait
    with browser.site.workspace.store.read() as c:
        noted = audit.frame(c).filter(pl.col("action") == "choose pairs")
    assert noted["person"].to_list() == ["egon"]
    for fields, said in (
        ({"runs": ["older"]}, "no run &#39;older&#39;"),
        ({}, "No run is selected"),
        ({"runs": ["old"], "budget": "many"}, "is not a number of pairs"),
        ({"runs": ["old"], "method": "magic"}, "nknown pooling method"),
        ({"runs": ["old"], "k": 0}, 'role="alert"'),
    ):
        wrong = browser.fill("/golden/shop/pairs", **fields)
        assert wrong.status_code == 400  # type: ignore[attr-defined]
        assert said in wrong.text  # type: ignore[attr-defined]
