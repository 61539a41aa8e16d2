"""Offline against online: both worlds of a kept run, drawn, told and listed."""

from __future__ import annotations

import html
from pathlib import Path

import polars as pl
import pytest
from tests.web.conftest import Browser, ClientOf
from tests.web.online_log import put_users

from karat.store.sql import queries
from karat.workflows.workspace.evaluate_stored import evaluate_stored

pytest.importorskip("vl_convert")


@pytest.fixture
def engineer(client_of: ClientOf, workspace: Path) -> Browser:
    put_users(workspace)
    return client_of("engineer")


def test_each_query_stands_in_both_worlds(engineer: Browser) -> None:
    found = engineer.get("/online/against?run=old&format=json").json()
    assert (found["run"], found["measure"], found["metric"]) == ("old", "nDCG@10", "SAT")
    rows = {row["query_id"]: row for row in found["queries"]}
    # As the page of the run has it: no number is computed in two places.
    results = evaluate_stored(engineer.site.workspace, ["old"], ["nDCG@10"], per_query=True)
    assert {key: row["offline"] for key, row in rows.items()} == {
        row.query_id: row.value for row in results.per_query
    }
    # Of 12 people 6 click on shoes, 3 on hoses, 9 on ladders; a hat shows nothing to be clicked.
    assert {key: row["SAT"] for key, row in rows.items()} == {
        "q1": 0.5, "q2": 0.25, "q3": 0.75, "q4": None
    }  # fmt: skip
    assert {key: row["ZeroResults"] for key, row in rows.items()} == {
        "q1": 0.0, "q2": 0.0, "q3": 0.0, "q4": 1.0
    }  # fmt: skip
    assert {row["searches"] for row in rows.values()} == {48}


def test_it_is_drawn_told_and_leads_to_both_sides(engineer: Browser) -> None:
    page = engineer.get("/online/against?run=old").text
    said = html.unescape(page)
    assert "nDCG@10 (judges)" in said
    assert "red shoes: nDCG@10" in said  # what is said of a dot
    assert "48 searches" in said
    assert "/online/rows?metric=SAT&from=2027-01-10&to=2027-01-14&slice=query%3Dred+shoes" in said
    assert "/runs/1/queries/q1?measure=nDCG%4010" in said
    found = engineer.get("/online/against?run=old&format=json").json()
    # A hat has no SAT, which leaves three.
    assert found["lead"][1] == "These are too few for a conclusion: at least 10 are needed."
    assert found["of_few"] == "a rank correlation over fewer than 10 queries means little"
    assert "A rank correlation over fewer than 10 queries means little." in said
    assert found["concord"]


@pytest.mark.deep
def test_other_measures_metrics_and_slices(engineer: Browser) -> None:
    site = engineer.site
    with site.workspace.store.begin() as c:
        frame = queries.frame(c, site.workspace.golden.id)
        kinds = pl.Series("class", ["wear", "garden", "garden", "wear"])
        queries.put(c, site.workspace.golden.id, frame.with_columns(kinds), 1)
    asks = "run=new&measure=p@5&metric=zeroresults"
    found = engineer.get(f"/online/against?{asks}&format=json").json()
    assert (found["run"], found["measure"], found["metric"]) == ("new", "P@5", "ZeroResults")
    # Three queries found something each time, and one nothing: four are enough to rank, and so few
    # that there is no interval.
    assert "ZeroResults" in found["lead"][0]
    assert found["by"] == "class"  # where queries have it, it is the usual one
    slices = {row["name"]: row["online"]["ZeroResults"] for row in found["slices"]}
    assert {name: each[0] for name, each in slices.items()} == {
        None: "25.0 %", "wear": "50.0 %", "garden": "0.0 %"
    }  # fmt: skip
    rows = engineer.get(f"{slices['wear'][2]}&format=json").json()
    assert rows["total"] == 48
    assert engineer.get(f"/online/against?{asks}&by=&format=json").json()["by"] == ""


@pytest.mark.deep
def test_new_judgments_are_new_numbers(engineer: Browser) -> None:
    before = engineer.get("/online/against?run=old&format=json").json()
    site = engineer.site
    with site.workspace.store.begin() as c:
        frame = queries.frame(c, site.workspace.golden.id)
        named = frame.with_columns(
            text=frame["text"].str.replace("red shoes", "nobody asks this", literal=True)
        )
        queries.put(c, site.workspace.golden.id, named, 1)
    after = engineer.get("/online/against?run=old&format=json").json()
    assert {row["query_id"] for row in before["queries"]} == {"q1", "q2", "q3", "q4"}
    assert {row["query_id"] for row in after["queries"]} == {"q2", "q3", "q4"}
    assert any(each.startswith("1 judged queries") for each in after["counts"])


def test_without_a_run_it_says_what_is_lacking(engineer: Browser) -> None:
    for number in (1, 2):
        engineer.fill(f"/runs/{number}/remove", sure="yes", seen=_sha(engineer, number))
    page = engineer.get("/online/against")
    assert page.status_code == 200
    assert "There are no runs to compare" in page.text


def _sha(engineer: Browser, number: int) -> str:
    return str(engineer.get(f"/runs/{number}?format=json").json()["run"]["sha256"])


@pytest.mark.parametrize(
    ("asks", "said"),
    [("run=odl", "old"), ("measure=ndgc", "nDCG"), ("metric=satt", "SAT"), ("metric=Dwell", "CTR")],
)
def test_what_cannot_be_meant_is_said(engineer: Browser, asks: str, said: str) -> None:
    answer = engineer.get(f"/online/against?{asks}")
    assert answer.status_code == 400
    assert said in html.unescape(answer.text)


@pytest.mark.deep
def test_queries_nobody_searched_for_are_said(engineer: Browser) -> None:
    answer = engineer.get("/online/against?from=2027-01-11&to=2027-01-11")
    assert answer.status_code == 200
    assert "None of the judged queries was searched for" in answer.text
