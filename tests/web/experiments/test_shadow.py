"""Pages and the API of shadow logs: the list, one of them, and its priorities in the queue."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.net.visible import visible
from tests.shadow_traffic import write_shadow_log
from tests.web.conftest import Browser, ClientOf

from karat.web.experiments import shadow as pages


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "WAIT_S", 60.0)


@pytest.fixture
def engineer(client_of: ClientOf) -> Browser:
    return client_of("engineer")


def test_without_a_log_the_page_says_how_to_get_one(engineer: Browser) -> None:
    said = visible(engineer.get("/shadow").text)
    assert "karat shadow run OLD NEW" in said
    assert engineer.get("/shadow/next").status_code == 404
    assert engineer.get("/api/shadow").json()["items"] == []


def test_a_log(workspace: Path, engineer: Browser) -> None:
    write_shadow_log(workspace / "shadow" / "next.jsonl", changed=20)
    page = visible(engineer.get("/shadow/next?by=query_length").text)
    assert "Pass: within all 7 limits." in page
    assert "new against old: 400 requests of 400 queries" in page
    assert "Queries with equal answers" in page
    assert page.index("Limits") < page.index("Candidate against baseline") < page.index("Notes")
    assert "1 word" in page
    result = engineer.get("/api/shadow/next").json()
    assert (result["verdict"], result["exit_code"], result["queries"]) == ("pass", 0, 400)
    assert engineer.get("/shadow/next?format=json").json()["result"]["reason"] == result["reason"]
    [row] = engineer.get("/shadow?format=json").json()["logs"]
    assert (row["name"], row["verdict"], row["requests"]) == ("next", "pass", 400)
    [item] = engineer.get("/api/shadow").json()["items"]
    assert (item["name"], item["baseline"], item["candidate"]) == ("next", "old", "new")


def test_a_bar_opens_its_queries(workspace: Path, engineer: Browser) -> None:
    write_shadow_log(workspace / "shadow" / "next.jsonl", changed=20)
    text = engineer.get("/shadow/next").text
    # 2 of 3 documents in common.
    assert 'href="?bin=0.6+to+0.7#queries"' in text
    assert 'href="?bin=1#queries"' not in text
    rows = engineer.get("/shadow/next?bin=0.6+to+0.7&format=csv").text.splitlines()
    assert len(rows) == 21


def test_limits_of_the_workspace(workspace: Path, engineer: Browser) -> None:
    write_shadow_log(workspace / "shadow" / "next.jsonl")
    limits = workspace / "shadow" / "limits.toml"
    limits.write_text("[shadow]\nmax_p95_ms = 0.1\n", encoding="utf-8")
    assert engineer.get("/api/shadow/next").json()["verdict"] == "fail"
    limits.write_text("[shadow]\nmax_p95 = 0.1\n", encoding="utf-8")
    said = visible(engineer.get("/shadow/next").text)
    assert "unknown key 'max_p95'" in said
    assert str(workspace) not in said


def test_files_that_are_none(workspace: Path, engineer: Browser) -> None:
    (workspace / "shadow").mkdir()
    (workspace / "shadow" / "<b>.jsonl").write_text("no\n", encoding="utf-8")
    page = engineer.get("/shadow")
    assert "<b>.jsonl" not in page.text
    assert "&lt;b&gt;" in page.text
    assert "not a shadow log" in visible(page.text)
    assert str(workspace) not in page.text


def test_priorities_go_into_the_queue(workspace: Path, engineer: Browser) -> None:
    write_shadow_log(workspace / "shadow" / "next.jsonl", changed=3)
    page = engineer.get("/shadow/next")
    assert "Judging priorities" in visible(page.text)
    done = engineer.post("/shadow/next/queue", data={"csrf": engineer.csrf})
    assert done.status_code == 400
    assert "no query of these documents is in the golden set" in visible(done.text).lower()
    write_shadow_log(workspace / "shadow" / "known.jsonl", changed=3, ids=True)
    engineer.get("/shadow/known")
    done = engineer.post("/shadow/known/queue", data={"csrf": engineer.csrf})
    assert done.status_code == 200
    # d1 and d2 are judged.
    said = visible(done.text)
    assert "2 of 22 · Chosen by: shadow" in said
    assert "/golden/shop/pair?query=q1&document=new" in said
