"""The playground: asking, grading in place, refused forms, tries as jobs, and who may do it."""

from __future__ import annotations

import html
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from tests.searchable_shop import SQL
from tests.web.conftest import Browser, ClientOf

from karat.web.framework import progress
from karat.workflows.workspace.known_queries import query_frame

FORM = {
    "q": "red shoes",
    "a_engine": "shop",
    "a_shown": "shop",
    "a_template": SQL,
    "a_param.title": "1.0",
    "b_engine": "",
}


def ask(browser: Browser, **fields: object) -> Any:
    return browser.fill("/playground", **{**FORM, **fields})


def test_a_query_is_asked_of_two_variants_and_all_that_was_typed_is_kept(client_of: ClientOf):
    egon = client_of("engineer")
    page = egon.get("/playground?q=red+shoes&engine=shop&against=titles")
    assert page.status_code == 200
    for words in ("nDCG@10", "Red shoes", "was 4", "3 of 4 judged", 'value="1.0"'):
        assert words in page.text
    other = SQL.replace("-bm25", "bm25").replace("docs WHERE", "docs\r\nWHERE")
    page = ask(egon, **{"a_template": other, "a_param.title": "<b>", "b_engine": "shop"})
    assert "edited" in page.text
    assert 'value="&lt;b&gt;"' in page.text
    assert html.escape(other.replace("\r\n", "\n"), quote=False).replace("'", "&#39;") in page.text
    assert "docs\r" not in page.text
    # Another engine than the one shown begins as declared.
    page = ask(egon, a_engine="titles")
    assert 'name="a_template"' not in page.text


def test_scores_are_opened_into_their_parts(client_of: ClientOf):
    egon = client_of("engineer")
    template = SQL.replace("SELECT id,", "SELECT id, 0.25 AS freshness,")
    page = ask(egon, a_template=template)
    assert "<dt><bdi>freshness</bdi></dt><dd>0.25</dd>" in page.text
    body = {"engine": "shop", "query": "red shoes", "template": template, "explain": True}
    sent = egon.post("/api/try", json=body, headers={"x-csrf": egon.csrf}).json()
    assert sent["variants"][0]["hits"][0]["parts"] == {"freshness": 0.25}


def test_an_error_is_in_the_column_of_its_variant(client_of: ClientOf):
    egon = client_of("engineer")
    page = ask(egon, b_engine="away")
    assert page.status_code == 200
    assert "cannot reach 127.0.0.1" in page.text
    assert "Wool hat" in page.text
    page = ask(egon, a_template="SELECT nonsense, {query}")
    assert "no such column: nonsense" in page.text
    page = ask(egon, a_template=SQL.replace("1)", "{params.body})"))
    assert "uses {params.body}, which has no value" in page.text
    assert 'name="a_param.body"' in page.text


def test_a_document_is_graded_and_undone_in_the_same_form(client_of: ClientOf):
    egon = client_of("engineer")
    text = ask(egon).text
    [value] = re.findall(r'name="grade" value="([^"]+)" title="[^"]*" data-key="3"', text)
    page = ask(egon, grade=html.unescape(value))
    assert page.status_code == 200
    assert "Your grade: 3" in page.text
    assert "4 of 4 judged" in page.text
    assert ask(egon, grade=html.unescape(value)).text.count("Your grade: 3") == 1  # sent twice
    [undo] = re.findall(r'name="undo" value="([^"]+)"', page.text)
    assert "3 of 4 judged" in ask(egon, undo=html.unescape(undo)).text
    page = ask(egon, grade='["d5", "9", "x", null, "1"]')
    assert page.status_code == 400
    assert "9 is not a grade of shop" in page.text
    assert "Wool hat" in page.text  # the page, with what was asked
    assert ask(egon, q="shoes", grade=html.unescape(value)).status_code == 400


def test_a_typed_query_becomes_one_of_the_golden_set_once(app: FastAPI, client_of: ClientOf):
    egon = client_of("engineer")
    assert "not in <bdi>shop</bdi>" in ask(egon, q="blue  shoes").text
    assert "Saved as query q5" in ask(egon, q="blue  shoes", do="save").text
    assert "Saved as query q5" in ask(egon, q="Blue shoes", do="save").text
    assert query_frame(app.state.site.workspace)["text"].to_list().count("blue shoes") == 1


def ended(browser: Browser, where: str) -> str:
    """The page of the result of a job, which may be there already."""
    end = time.monotonic() + 60
    while where.startswith("/jobs/"):
        assert time.monotonic() < end
        job = json.loads(browser.get(f"{where}?format=json").text)["job"]
        assert job["state"] in {"waiting", "running", "done"}, job["error"]
        where = job["page"] if job["state"] == "done" else where
        time.sleep(0.05)
    return where


def test_all_queries_are_a_job_then_a_try_that_is_named_saved_and_thrown_away(
    client_of: ClientOf, workspace: Path
):
    egon = client_of("engineer")
    page = ask(egon, do="next")
    assert page.status_code == 400
    assert "No query is known to fail" in page.text
    for _ in range(2):  # sent twice
        sent = ask(egon, do="run-a", name="first", once="drawn by the page")
        first = ended(egon, sent.headers["location"])
        assert first == "/playground/tries/first"
    assert egon.get("/playground/tries/first-2").status_code == 404
    upside = SQL.replace("-bm25", "bm25")
    second = ended(egon, ask(egon, do="run-a", a_template=upside).headers["location"])
    page = egon.get(second)
    for words in ("Compare with <bdi>first</bdi>", "-SELECT id", "+SELECT id"):
        assert words in page.text
    compared = re.search(r"/comparisons/\d+", page.text)
    assert compared is not None
    assert egon.get(compared[0]).status_code == 200
    assert "shop-try-1" in egon.get("/playground").text
    again = egon.get("/playground?again=shop-try-1&q=red+shoes").text
    assert "edited" in again
    assert ask(egon, do="next").status_code == 200
    assert egon.fill(second, do="name", new="first").status_code == 400
    assert egon.fill(second, do="name", new="upside/down").headers["location"].endswith("%2Fdown")
    page = egon.fill("/playground/tries/upside%2Fdown", do="baseline")
    assert "Saved as baseline.json" in page.text
    assert json.loads((workspace / "baseline.json").read_text())["run"] == "upside/down"
    assert egon.fill("/playground/tries/upside/down", do="forget").status_code == 400
    gone = egon.fill("/playground/tries/upside/down", do="forget", sure="yes")
    assert gone.status_code == 303
    assert egon.get("/playground/tries/upside/down").status_code == 404
    assert "upside/down" not in egon.get("/runs").text
    assert ask(egon, do="run-b").status_code == 400


@pytest.mark.deep  # a race
def test_a_job_shows_how_far_it_is_and_can_be_cancelled(app: FastAPI, client_of: ClientOf, clock):
    egon, site = client_of("engineer"), app.state.site
    where: list[str] = []

    def work(step: progress.Progress) -> progress.Outcome:
        step("asking", 0, 4)
        clock.pass_by(3)
        step("asking", 1, 4)
        where.append(egon.get("/jobs/one").text)
        egon.fill("/jobs/one/cancel")
        step("asking", 4, 4)
        raise AssertionError("it goes on")

    job = progress.begin(site, "one", "Something long", work, 30)
    assert "1 of 4, 25%; about 9 s left" in where[0]
    assert (job.state, job.done) == ("cancelled", 1)
    assert "nothing was stored" in egon.get("/jobs/one").text
    assert egon.get("/jobs/two").status_code == 404
    # One whose server was stopped is not waited for for ever.
    text = (site.workspace.workspace.root / "jobs/one.json").read_text()
    (site.workspace.workspace.root / "jobs/lost.json").write_text(
        text.replace("cancelled", "running")
    )
    clock.pass_by(3600)
    assert "the server stopped" in egon.get("/jobs/lost").text


def test_engines_are_checked_when_somebody_says_so(client_of: ClientOf):
    egon = client_of("engineer")
    text = egon.get("/engines").text
    assert text.count("not checked") == 3
    for name in ("shop", "away"):
        assert egon.fill(f"/engines/{name}/check").status_code == 303
    end = time.monotonic() + 30
    while "Checking" in (text := egon.get("/engines").text):
        assert time.monotonic() < end
        time.sleep(0.05)
    for words in ("healthy", "5 documents", "cannot reach 127.0.0.1", "problem", "not checked"):
        assert words in text
    assert egon.fill("/engines/none/check").status_code == 404


@pytest.mark.deep  # framework/test_auth.py asks every route
def test_raters_cannot_run_engines(client_of: ClientOf, stranger: Browser):
    rita = client_of("rater")
    for path in ("/playground?q=red", "/engines", "/jobs/one", "/api/engines", "/api/tries"):
        assert rita.get(path).status_code == 403
    assert ask(rita).status_code == 403
    assert rita.fill("/engines/shop/check").status_code == 403
    assert stranger.post("/api/try", json={}).status_code == 401


def test_programs_ask_and_try_by_the_api(client_of: ClientOf):
    egon = client_of("engineer")
    headers = {"x-csrf": egon.csrf}
    found = egon.post(
        "/api/try",
        json={"query": "q1", "engine": "shop", "params": {"title": 0}, "against": "titles"},
        headers=headers,
    ).json()
    assert [hit["doc_id"] for hit in found["variants"][0]["hits"]][:1] == ["d1"]
    assert found["variants"][0]["params"] == {"title": 0}
    job = egon.post("/api/tries", json={"engine": "shop", "name": "one"}, headers=headers)
    assert job.status_code == 202
    end = time.monotonic() + 60
    while (state := egon.get(f"/api/jobs/{job.json()['id']}").json())["state"] == "running":
        assert time.monotonic() < end
        time.sleep(0.05)
    assert state["result"] == {"try": "one"}
    [row] = egon.get("/api/tries?engine=shop").json()["items"]
    assert row["name"] == "one"
    assert row["values"]["nDCG@10"] > 0
    engines = {each["state"]["name"]: each for each in egon.get("/api/engines").json()["items"]}
    assert engines["shop"]["state"]["run_name"] == "one"
    wrong = egon.post("/api/tries", json={"engine": "shopp"}, headers=headers)
    assert (wrong.status_code, wrong.json()["error"]["nearest"]) == (400, ["shop"])
    assert egon.delete("/api/tries/one", headers=headers).json() == {"removed": row["run"]}
    assert not egon.get("/api/tries").json()["items"]
