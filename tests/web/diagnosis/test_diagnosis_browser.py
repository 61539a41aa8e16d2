"""From a comparison to why a query fails, in a real browser."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fastapi import FastAPI
from tests.web.conftest import LAPTOP, NOW, PageOf, axe, sound

from karat.tables import Run
from karat.web.diagnosis import diagnosis
from karat.web.offline import comparisons
from karat.workflows.diagnosis.stored_traces import store_trace
from karat.workflows.workspace import stored_comparisons
from karat.workflows.workspace.stored_comparisons import Asked
from karat.workflows.workspace.stored_runs import store_runs, stored_by_name

QUERIES = ("q1", "q2", "q3")


@pytest.mark.deep  # test_diagnosis.py asks for the same pages
def test_from_a_comparison_to_why_a_query_fails(
    page_of: PageOf, app: FastAPI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnosis, "WAIT_S", 60.0)
    monkeypatch.setattr(comparisons, "WAIT_S", 60.0)
    shop = app.state.site.opened("shop")
    top = {query: {"d6": 3.0, "d5": 2.0, "d1": 1.0} for query in QUERIES}
    store_runs(shop, [Run.from_dict(top, name="top")], now=NOW)
    stages = (("words", "retrieve", [], ["d1", "d5", "d6"]),
              ("top", "rerank", ["words"], ["d6", "d5", "d1"]))  # fmt: skip
    lines = [
        {"query_id": query, "stage": stage, "kind": kind, "parents": parents, "latency_us": 4100,
         "candidates": [{"doc_id": doc, "score": 3.0 - at, "parts": {"title": 3.0 - at}}
                        for at, doc in enumerate(docs)]}
        for query in QUERIES
        for stage, kind, parents, docs in stages
    ]  # fmt: skip
    trace = tmp_path / "trace.jsonl"
    trace.write_text("\n".join(map(json.dumps, lines)))
    store_trace(shop, stored_by_name(shop)["top"], trace, "trace.jsonl", person="egon", now=NOW)
    number = stored_comparisons.ask(shop, Asked([2, 3]), by="egon", now=NOW)
    stored_comparisons.compute(shop, number, lambda: NOW)
    with page_of("egon", "engineer", **LAPTOP) as page:
        page.goto(f"/comparisons/{number}?view=queries")
        # One click on the failure that its row names.
        failing = page.locator("#queries tr").filter(has_text="red shoes")
        failing.get_by_role("link").last.click()
        page.wait_for_url("**/runs/3/diagnosis/*baseline=2")
        assert "d2: not in words, not in top, not served." in page.locator("main").inner_text()
        # The long way, by the rankings side by side.
        page.goto(f"/comparisons/{number}?view=queries")
        page.locator("#queries").get_by_role("link", name="red shoes").click()
        page.wait_for_url("**/queries/*")
        page.get_by_role("listitem").filter(has_text="stage by stage").get_by_text("top").click()
        page.wait_for_url("**/runs/3/diagnosis/*baseline=2")
        page.get_by_text("Ranks of the relevant documents of").first.wait_for()
        assert "4.1 ms" in page.locator("figure").first.inner_text()
        page.get_by_role("heading", name="The same documents in new").wait_for()
        page.locator(".scores summary").first.click()
        assert "at rank" in page.locator(".scores details[open]").inner_text()
        sound(page, on_both=True)
        assert axe(page) == []
        page.get_by_role("link", name="Diagnosis", exact=True).first.click()
        page.get_by_role("link", name="top", exact=True).wait_for()
        sound(page, on_both=True)
        assert axe(page) == []
