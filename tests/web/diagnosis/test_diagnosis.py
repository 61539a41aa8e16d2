"""The diagnosis of a run in the browser: its numbers, its queries, and who may see it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from fastapi import FastAPI
from tests.web.conftest import NOW, ClientOf

from karat.cli.main import main
from karat.formats import write_run
from karat.store.sql import golden_sets
from karat.tables import Run
from karat.web.diagnosis import diagnosis
from karat.workflows.diagnosis import stored_diagnoses
from karat.workflows.diagnosis.stored_diagnoses import StoredDiagnosis
from karat.workflows.workspace.stored_inputs import judged
from karat.workflows.workspace.stored_runs import read_stored, store_runs
from karat.workflows.workspace.workspace import Workspace

ASK = "stage=old&stage=few&stage=both"
PATH = f"/runs/4/diagnosis?{ASK}"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page waits for its numbers, however slow the machine."""
    monkeypatch.setattr(diagnosis, "WAIT_S", 60.0)


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
    for stage in stored_diagnoses.choices(opened):
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


def test_a_diagnosis_is_computed_once(client_of: ClientOf, monkeypatch: pytest.MonkeyPatch) -> None:
    egon, computed = client_of("engineer"), []
    compute = stored_diagnoses.compute

    def counted(*of: Any) -> StoredDiagnosis:
        computed.append(of)
        return compute(*of)

    monkeypatch.setattr(stored_diagnoses, "compute", counted)
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
