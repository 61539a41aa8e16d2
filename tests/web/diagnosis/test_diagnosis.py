"""The diagnosis of a run in the browser: its numbers, its queries, and who may see it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import polars as pl
import pytest
import sqlalchemy as sa
from fastapi import FastAPI
from tests.web.conftest import NOW, ClientOf

from karat.cli.main import main
from karat.formats import write_run
from karat.store.sql import golden_sets
from karat.store.sql.schema import query
from karat.tables import Run
from karat.web.diagnosis import diagnosis
from karat.web.offline import comparisons
from karat.workflows.diagnosis.stored_diagnoses import Diagnosing, StoredDiagnosis
from karat.workflows.workspace import run_stages, stored_comparisons
from karat.workflows.workspace.stored_comparisons import Asked
from karat.workflows.workspace.stored_inputs import judged
from karat.workflows.workspace.stored_runs import (
    file_of,
    read_stored,
    store_runs,
    stored_by_name,
    trace_of,
)
from karat.workflows.workspace.workspace import Workspace

ASK = "stage=old&stage=few&stage=both"
PATH = f"/runs/4/diagnosis?{ASK}"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page waits for its numbers, however slow the machine."""
    monkeypatch.setattr(diagnosis, "WAIT_S", 60.0)
    monkeypatch.setattr(comparisons, "WAIT_S", 60.0)


@pytest.fixture(autouse=True)
def opened(app: FastAPI) -> Workspace:
    """The workspace, with a short run and one of documents of that and of ``old``."""
    workspace: Workspace = app.state.site.opened("shop")
    few = {q: {"d1": 2.0, "d6": 1.0} for q in ("q1", "q2", "q3")}
    both = {q: {"d6": 3.0, "d5": 2.0, "d1": 1.0} for q in ("q1", "q2", "q3")}
    runs = [Run.from_dict(few, name="few"), Run.from_dict(both | {"q4": {"d5": 1.0}}, name="both")]
    store_runs(workspace, runs, now=NOW)
    return workspace


@pytest.mark.deep  # both call karat.workflows.diagnosis
def test_the_numbers_are_those_of_the_command(
    client_of: ClientOf,
    opened: Workspace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = client_of("engineer").get(f"{PATH}&format=json").json()
    content = judged(opened)
    content.qrels.frame.select(
        "query_id", pl.lit(0), "doc_id", pl.col("grade").cast(pl.Int64)
    ).write_csv(tmp_path / "qrels.txt", separator=" ", include_header=False)
    content.queries.frame.select("query_id", "text").write_csv(tmp_path / "queries.csv")
    for stage in run_stages.choices(opened):
        write_run(read_stored(opened, [stage.row])[0], tmp_path / f"{stage.stage}.parquet")
    monkeypatch.chdir(tmp_path)
    stages = [f"--stage={name}={name}.parquet" for name in ("old", "few", "both")]
    more = ["--queries=queries.csv", "-w", str(opened.workspace.root), "--format=json"]
    monkeypatch.setattr(
        sys, "argv", ["karat", "diagnose", "qrels.txt", "both.parquet", *stages, *more]
    )
    with pytest.raises(SystemExit):
        main()
    command = json.loads(capsys.readouterr().out)
    assert shown["diagnosis"] == command
    assert client_of("engineer").get(f"/api/runs/both/diagnosis?{ASK}").json() == command
    assert command["pipeline"] == "old, few → both"
    assert command["failing"] > 1
    assert command["fixes"]


def test_a_page_leads_to_the_queries_of_a_mode_and_to_the_road_of_each(client_of: ClientOf) -> None:
    egon = client_of("engineer")
    assert 'href="/runs/4/diagnosis"' in egon.get("/runs/4").text
    page = egon.get(PATH)
    shown = egon.get(f"{PATH}&format=json").json()
    for words in ("through the stages", "What a fix is worth", "Why queries fail", "Holds when"):
        assert words in page.text
    assert shown["summary"] in page.text
    assert all(f'name="stage" value="{name}" checked' in page.text for name in shown["stages"])
    one = shown["queries"][0]
    assert f"/runs/4/diagnosis/{one['query_id']}?{ASK}" in page.text.replace("&amp;", "&")
    chosen = egon.get(f"{PATH}&mode={one['mode']}&format=json").json()["queries"]
    assert chosen == [row for row in shown["queries"] if row["mode"] == one["mode"]]
    assert egon.get(f"{PATH}&format=csv").text.count("\n") == len(shown["queries"]) + 1
    where = f"/runs/4/diagnosis/{one['query_id']}?{ASK}"
    road = egon.get(f"{where}&format=json").json()
    assert list(road["roads"][0]["ranks"]) == ["old", "few", "both", "served"]
    query = egon.get(where).text
    assert f'href="?{ASK}&format=json"' in query.replace("&amp;", "&")
    assert "Ranks of the relevant documents" in query
    assert f'href="/runs/4/queries/{one["query_id"]}"' in query
    assert f"/golden/shop/pair?query={one['query_id']}&amp;document=" in query
    assert egon.get(f"/runs/4/diagnosis/nothing?{ASK}").status_code == 404
    back = egon.get("/runs/4/diagnosis/q1", follow_redirects=False)
    assert back.headers["location"] == "/runs/4/diagnosis"


def test_stages_whose_documents_make_a_run_are_proposed_and_listed(client_of: ClientOf) -> None:
    egon = client_of("engineer")
    form = egon.get("/runs/4/diagnosis?format=json").json()
    assert form["diagnosis"] is None
    assert form["proposed"] == ["new", "few", "both"]
    assert 'href="/runs/4/diagnosis"' not in egon.get("/diagnosis").text
    ready = "stage=new&stage=few&stage=both"
    path = f"/runs/4/diagnosis?{ready}"
    shown = egon.get("/runs/4/diagnosis").text.replace("&amp;", "&")
    assert f'href="?{ready}">Diagnose with <bdi>new, few → both</bdi>' in shown
    [row] = egon.get("/diagnosis?q=both&format=json").json()["runs"]
    assert (row["name"], row["address"], row["failing"]) == ("both", path, None)
    numbers = egon.get(f"{path}&format=json").json()["diagnosis"]
    [row] = egon.get("/diagnosis?q=both&format=json").json()["runs"]
    assert row["stages"] == numbers["pipeline"]
    assert row["failing"] == numbers["failing"]
    assert row["mode"].startswith("Doubtful label")
    assert "of" in row["lost"]
    page = egon.get("/diagnosis").text
    assert 'aria-current="page">Diagnosis' in page
    assert f'href="{path}"' in page.replace("&amp;", "&")


@pytest.mark.deep  # by the command, too
def test_a_query_that_nothing_answers_has_a_page_without_documents(
    client_of: ClientOf, opened: Workspace
) -> None:
    with opened.store.begin() as connection:
        connection.execute(sa.update(query).where(query.c.query_id == "q4").values(no_answer=True))
    egon = client_of("engineer")
    rows = egon.get(f"{PATH}&format=json").json()["diagnosis"]["queries"]
    (row,) = [row for row in rows if row["query_id"] == "q4"]
    assert (row["value"], row["mode"]) == (None, "missing_content")
    page = egon.get(f"/runs/4/diagnosis/q4?{ASK}")
    assert page.status_code == 200
    assert "it is marked no_answer, and a document is served" in page.text


def test_comparisons_and_runs_lead_to_the_diagnosis_of_a_query(
    client_of: ClientOf, opened: Workspace
) -> None:
    number = stored_comparisons.ask(opened, Asked([1, 4]), by="egon", now=NOW)
    stored_comparisons.compute(opened, number, lambda: NOW)
    egon = client_of("engineer")
    ready = "stage=new&stage=few&stage=both"
    page = egon.get(f"/comparisons/{number}").text.replace("&amp;", "&")
    assert f'href="/runs/4/diagnosis?{ready}&baseline=1"><bdi>both</bdi></a>' in page
    assert "<bdi>old</bdi></a> </p>" not in page  # its stages are not known
    side = egon.get(f"/comparisons/{number}/queries/q1").text.replace("&amp;", "&")
    where = f"/runs/4/diagnosis/q1?{ready}"
    button = "Why, stage by stage: <bdi>both</bdi></a>"
    assert f'href="{where}&baseline=1">{button} Ranked too low: d2: ' in side
    assert f'href="{where}">{button}' in egon.get("/runs/4/queries/q1").text.replace("&amp;", "&")
    # The rows of failing queries name the mode, which leads to the road of their documents.
    rows = egon.get(f"/comparisons/{number}?format=json").json()["queries"]
    failing = egon.get(f"/runs/4/diagnosis?{ready}&baseline=1&format=json").json()["queries"]
    assert {r["query_id"]: r["why"] for r in rows if r["why"]} == {
        r["query_id"]: r["mode"] for r in failing if r["query_id"] in {r["query_id"] for r in rows}
    }
    page = egon.get(f"/comparisons/{number}?view=queries").text.replace("&amp;", "&")
    assert "Ranked too low" in page[page.index(f'href="{where}&baseline=1"') :][:300]
    assert egon.get(f"{where}&baseline=1").status_code == 200


@pytest.mark.deep
def test_stages_are_in_the_order_of_the_address_and_the_run_itself_is_the_last(
    client_of: ClientOf,
) -> None:
    egon = client_of("engineer")
    page = egon.get("/runs/4/diagnosis?stage=both&stage=few&stage=old")
    shown = egon.get("/runs/4/diagnosis?stage=both&stage=few&stage=old&format=json").json()
    assert shown["stages"] == ["few", "old", "both"]
    assert [each["stage"] for each in shown["offered"]] == ["few", "old", "new", "both"]
    assert shown["offered"][1]["earlier"] == "?stage=old&stage=few&stage=both"
    assert page.text.count(">Earlier<") == 1
    form = egon.get("/runs/4/diagnosis?format=json").json()
    assert form["diagnosis"] is None
    assert not any(each["chosen"] for each in form["offered"])


def test_a_query_that_lost_against_the_baseline_fails_whatever_its_value(
    client_of: ClientOf, opened: Workspace
) -> None:
    """The second run has all documents one place lower, and still more than half the value."""
    [(_, grades)] = judged(opened).qrels.frame.filter(query_id="q1").group_by("query_id")
    best = grades.sort("grade", descending=True)["doc_id"].to_list()
    lists = {"first": best, "second": ["d99", *best]}
    runs = [
        Run.from_dict({"q1": {doc: 1 / at for at, doc in enumerate(docs, 1)}}, name=name)
        for name, docs in lists.items()
    ]
    store_runs(opened, runs, now=NOW)
    egon = client_of("engineer")
    path = "/api/runs/second/diagnosis?stage=second"
    assert [row["query_id"] for row in egon.get(path).json()["queries"]] == ["q2", "q3", "q4"]
    [row, *_] = [r for r in egon.get(f"{path}&baseline=first").json()["queries"] if r["value"]]
    assert (row["query_id"], row["baseline_value"]) == ("q1", 1.0)
    assert 0.5 < row["value"] < 1
    page = egon.get("/runs/6/diagnosis?stage=second&baseline=first").text
    assert "or less than in <bdi>first</bdi>, fails" in page
    assert "In first" in page
    assert "stage=second&amp;baseline=5" in page
    query = egon.get("/runs/6/diagnosis/q1?stage=second&baseline=first").text
    assert "second at rank 2, served at rank 2." in query
    assert egon.get(f"{path}&baseline=frist").status_code == 400


def test_a_diagnosis_is_computed_once(client_of: ClientOf, monkeypatch: pytest.MonkeyPatch) -> None:
    egon, computed = client_of("engineer"), []
    compute = Diagnosing.compute

    def counted(asked: Diagnosing) -> StoredDiagnosis:
        computed.append(asked)
        return compute(asked)

    monkeypatch.setattr(Diagnosing, "compute", counted)
    first = egon.get(f"{PATH}&format=json").json()
    egon.site.workspace.artifacts.forget()
    assert egon.get(f"{PATH}&format=json").json() == first
    assert len(computed) == 1


def test_unknown_stages_and_runs_are_refused(client_of: ClientOf) -> None:
    egon = client_of("engineer")
    page = egon.get("/runs/4/diagnosis?stage=odl")
    assert page.status_code == 400
    assert "no run" in page.text
    assert "old" in page.text
    assert egon.get("/runs/4/diagnosis?stage=old&stage=old").status_code == 400
    assert egon.get("/runs/99/diagnosis").status_code == 404


def test_a_golden_set_without_judgments_says_so(client_of: ClientOf) -> None:
    egon = client_of("engineer")
    with egon.site.workspace.store.begin() as c:
        golden_sets.make(c, "fresh", scale=(0, 3), grades={}, salt="s", guideline="", now=NOW)
    fresh = egon.site.opened("fresh")
    store_runs(fresh, [Run.from_dict({"q1": {"d1": 1.0}}, name=n) for n in ("a", "b")], now=NOW)
    page = egon.get("/runs/5/diagnosis?stage=a")
    assert page.status_code == 200
    assert "nothing is judged yet" in page.text


@pytest.mark.deep  # framework/test_auth.py asks every route
def test_raters_see_no_diagnosis(client_of: ClientOf) -> None:
    for path in (PATH, f"/runs/4/diagnosis/q1?{ASK}"):
        assert client_of("rater").get(path).status_code == 403
        assert client_of("owner").get(path).status_code == 200


TRACE = "\n".join(
    json.dumps({
        "query_id": query, "stage": stage, "kind": kind, "parents": parents,
        "candidates": [{"doc_id": doc} for doc in docs],
    })
    for query in ("q1", "q2", "q3")
    for stage, kind, parents, docs in (
        ("words", "retrieve", [], ["d6", "d1"]),
        ("reranked", "rerank", ["words"], ["d1"]),
    )
)  # fmt: skip


def test_a_query_shows_times_scores_and_what_else_was_served(
    client_of: ClientOf, opened: Workspace
) -> None:
    lines = [json.loads(line) for line in TRACE.splitlines()]
    for line in lines:
        line |= {"latency_us": 4100, "parse": "+red +shoes"}
        for at, candidate in enumerate(line["candidates"]):
            candidate |= {"score": 7.5 - at, "parts": {"title": 5.25, "text": 2.25 - at}}
    content = "\n".join(map(json.dumps, lines)).encode()
    egon = client_of("engineer")
    egon.post("/runs/3/diagnosis", data={"csrf": egon.csrf}, files={"file": ("t.jsonl", content)})
    shown = egon.get("/runs/3/diagnosis/q1?format=json").json()
    words, _, served = shown["details"]
    assert (words["latency_us"], words["parse"]) == (4100, "+red +shoes")
    assert words["parts"]["d6"] == {"title": 5.25, "text": 2.25}
    assert served["ranks"] == {"d1": 1, "d6": 2}  # of the run, whatever the trace says
    relevant = {road["doc_id"] for road in shown["roads"]}
    assert [each["doc_id"] for each in shown["others"]] == ["d6"]
    assert "d6" not in relevant
    assert shown["others"][0]["ranks"] == {"words": 1, "reranked": None, "served": 2}
    assert shown["others"][0]["grade"] is None
    page = egon.get("/runs/3/diagnosis/q1").text
    for text in ("In grey: 1 other served document", "words 4.1 ms",
                 "<code>+red +shoes</code>", "Other served documents", "<bdi>title</bdi> 5.25",
                 "not judged"):  # fmt: skip
        assert text in page, text
    assert "Median, ms" in egon.get("/runs/3/diagnosis").text


@pytest.mark.deep
def test_a_query_that_does_not_count_shows_what_was_served(
    client_of: ClientOf, opened: Workspace
) -> None:
    store_runs(
        opened, [Run.from_dict({"q1": {"d1": 2.0}, "q9": {"d7": 1.0}}, name="more")], now=NOW
    )
    page = client_of("engineer").get("/runs/5/diagnosis/q9?stage=more")
    assert page.status_code == 200
    assert "No document that was judged for this query is relevant" in page.text
    assert "Other served documents" in page.text
    assert "Relevant documents, with their ranks" not in page.text


@pytest.mark.deep  # asked for from a comparison, too
def test_a_query_is_shown_next_to_a_baseline(client_of: ClientOf, opened: Workspace) -> None:
    egon = client_of("engineer")
    where = f"/runs/4/diagnosis/q1?{ASK}"
    # Of ``few`` no stages are known: only what it served.
    few = egon.get(f"{where}&baseline=few")
    assert "served by few" in few.text
    assert "The same documents in" not in few.text
    egon.get("/runs/2?format=json")  # computes its values
    shown = egon.get(f"{where}&baseline=2&format=json").json()["baseline"]
    assert shown["run"] == "new"
    assert shown["value"] > 0
    assert shown["address"] == "/runs/2/diagnosis/q1?stage=old&stage=new&baseline=4"
    roads = {road["doc_id"]: road["ranks"] for road in shown["roads"]}
    assert roads["d1"] == {"old": 1, "new": 5, "served": 5}
    page = egon.get(f"{where}&baseline=2").text
    assert "The same documents in <bdi>new</bdi>" in page
    assert "Ranks of the relevant documents of q1 in new" in page
    assert egon.get(f"{where}&baseline=nwe").status_code == 400


def test_a_run_with_a_trace_is_diagnosed_by_its_stages(
    client_of: ClientOf, opened: Workspace
) -> None:
    egon = client_of("engineer")
    assert "no trace" in egon.get("/api/runs/few/diagnosis").json()["error"]["message"]
    sent = {"file": ("trace.jsonl", TRACE.encode())}
    done = egon.post(
        "/runs/3/diagnosis", data={"csrf": egon.csrf}, files=sent, follow_redirects=False
    )
    assert done.headers["location"] == "/runs/3/diagnosis"
    shown = egon.get("/runs/3/diagnosis?format=json").json()
    assert shown["diagnosis"]["pipeline"] == "words → reranked"
    assert egon.get("/api/runs/few/diagnosis").json() == shown["diagnosis"]
    page = egon.get("/runs/3/diagnosis").text
    assert "Stages of its trace" in page
    assert "Replace the trace" in page
    query = shown["queries"][0]["query_id"]
    road = egon.get(f"/runs/3/diagnosis/{query}?format=json").json()["roads"][0]
    assert list(road["ranks"]) == ["words", "reranked", "served"]
    # Stages that are named go before the trace, and another trace replaces its numbers.
    assert egon.get("/runs/3/diagnosis?stage=old&format=json").json()["stages"] == ["old"]
    other = TRACE.replace("reranked", "again").encode()
    head = {"x-csrf": egon.csrf}
    stored = egon.post("/api/runs/few/trace?name=t.jsonl", content=other, headers=head)
    assert stored.json() == {"run": 3, "stages": ["words", "again"]}
    assert egon.get("/api/runs/few/diagnosis").json()["pipeline"] == "words → again"
    # It goes with the run.
    file = trace_of(file_of(opened, stored_by_name(opened)["few"]))
    assert file.is_file()
    egon.fill("/runs/3/remove", sure="yes", seen=stored_by_name(opened)["few"].sha256)
    assert not file.is_file()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "o trace was chosen"),
        (b'{"query_id": "q1", "stge": "a"}', "did you mean stage?"),
        (TRACE.replace(' "q', ' "x').encode(), "t traces none of the queries of few"),
    ],
)
def test_a_file_that_is_not_the_trace_of_the_run_is_refused(
    content: bytes, message: str, client_of: ClientOf
) -> None:
    egon = client_of("engineer")
    sent = {"file": ("trace.jsonl" if content else "", content)}
    page = egon.post("/runs/3/diagnosis", data={"csrf": egon.csrf}, files=sent)
    assert page.status_code == 400
    assert message in page.text
    assert "Add the trace" in page.text
    assert client_of("rater").post("/runs/3/diagnosis", files=sent).status_code == 403
