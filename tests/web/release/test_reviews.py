"""The design review of a stored comparison: a page, and the same record by the API."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fastapi import FastAPI
from tests.web.conftest import NOW, ClientOf

from karat.tables.judgments import Judgments
from karat.web.release import reviews
from karat.workflows.diagnosis.stored_traces import store_trace
from karat.workflows.release.review import review
from karat.workflows.workspace import stored_comparisons
from karat.workflows.workspace.stored_comparisons import Asked
from karat.workflows.workspace.stored_inputs import judged, single_judgments
from karat.workflows.workspace.stored_runs import read_stored, stored_by_name
from karat.workflows.workspace.workspace import Workspace


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page waits for its numbers, however slow the machine."""
    monkeypatch.setattr(reviews, "WAIT_S", 60.0)


@pytest.fixture
def number(app: FastAPI) -> int:
    """The comparison of new with old, and of no other run."""
    workspace: Workspace = app.state.site.opened("shop")
    number = stored_comparisons.ask(
        workspace, Asked([1, 2], by=["query_length"]), by="egon", now=NOW
    )
    stored_comparisons.compute(workspace, number, lambda: NOW)
    return number


def test_the_page_and_the_api_say_what_the_command_does(
    client_of: ClientOf, app: FastAPI, number: int
) -> None:
    egon = client_of("engineer")
    page = egon.get(f"/comparisons/{number}")
    assert f'href="/comparisons/{number}/review">Review of <bdi>new</bdi>' in page.text
    shown = egon.get(f"/comparisons/{number}/review")
    for words in ("Review of new against old", "What it catches", "First slice to improve",
                  "Rollback signal", "Not measured", "online metrics: no log"):  # fmt: skip
        assert words in shown.text, words
    assert "--trace" not in shown.text  # a page has no options
    record = egon.get(f"/api/comparisons/{number}/review").json()
    assert egon.get(f"/comparisons/{number}/review?format=json").json()["review"] == {
        name: value for name, value in record.items() if name != "schema_version"
    } | {"schema_version": 1}
    workspace: Workspace = app.state.site.opened("shop")
    inputs, rows = judged(workspace, with_documents=True), stored_by_name(workspace)
    single: Judgments = single_judgments(workspace)
    found = review(
        inputs.qrels, *read_stored(workspace, [rows["old"], rows["new"]]),
        [record["measure"]], judgments=single, queries=inputs.queries, by=["query_length"],
        documents=inputs.documents,
    ).to_dict()  # fmt: skip
    for name in ("gain", "slice", "bad", "rollback", "below"):
        assert record[name] == json.loads(json.dumps(found[name])), name
    crossed = [{q for row in each["catches"] for q in row["queries"]} for each in (record, found)]
    assert crossed[0] == crossed[1]
    assert client_of("rater").get(f"/comparisons/{number}/review").status_code == 403
    assert egon.get(f"/comparisons/{number}/review?candidate=nwe").status_code == 400
    assert egon.get("/api/comparisons/99/review").status_code == 404


def test_a_trace_that_is_stored_later_names_the_failures(
    client_of: ClientOf, app: FastAPI, number: int, tmp_path: Path
) -> None:
    egon = client_of("engineer")
    before = egon.get(f"/api/comparisons/{number}/review").json()
    workspace: Workspace = app.state.site.opened("shop")
    lines = [
        {"query_id": query, "stage": "words", "kind": "retrieve", "candidates": [{"doc_id": "d9"}]}
        for query in ("q1", "q2", "q3", "q4")
    ]
    trace = tmp_path / "trace.jsonl"
    trace.write_text("\n".join(map(json.dumps, lines)))
    for name in ("old", "new"):
        row = stored_by_name(workspace)[name]
        store_trace(workspace, row, trace, trace.name, person="egon", now=NOW)
    after = egon.get(f"/api/comparisons/{number}/review").json()
    modes = [{row["mode"] for name in ("catches", "worse") for row in each[name]}
             for each in (before, after)]  # fmt: skip
    assert modes[0] <= {"debugging", "feedback", "cannot_tell"}
    assert not modes[1] & {"debugging"}


def test_a_comparison_that_is_not_computed_has_no_review(client_of: ClientOf, app: FastAPI) -> None:
    workspace: Workspace = app.state.site.opened("shop")
    failed = stored_comparisons.ask(workspace, Asked([1, 2], by=["lang"]), by="egon", now=NOW)
    stored_comparisons.compute(workspace, failed, lambda: NOW)
    egon = client_of("engineer")
    page = egon.get(f"/comparisons/{failed}/review", follow_redirects=False)
    assert page.headers["location"] == f"/comparisons/{failed}"
    answer = egon.get(f"/api/comparisons/{failed}/review")
    assert answer.status_code == 400
    assert "not computed" in answer.json()["error"]["message"]
