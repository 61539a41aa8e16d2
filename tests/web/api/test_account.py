"""One's own account, and the catalogue."""

from __future__ import annotations

from pathlib import Path

from starlette.testclient import TestClient
from tests.web.api.conftest import Printed, error_of, rows_of
from tests.web.conftest import ClientOf


def test_a_token_is_somebody(program: TestClient) -> None:
    assert program.get("/api/me").json() == {
        "name": "egon",
        "role": "engineer",
        "scopes": ["judge", "read", "write"],
        "signed_in_by": "token",
        "golden": "shop",
    }


def test_tokens_are_listed_and_revoked_in_a_session_alone(
    client_of: ClientOf, program: TestClient
) -> None:
    assert error_of(program.get("/api/tokens"))[:2] == (403, "not_allowed")
    browser = client_of("engineer")
    [row] = rows_of(browser, "/api/tokens")
    assert row["name"] == "test"
    assert "secret" not in str(row)
    headers = {"x-csrf": browser.csrf}
    assert browser.delete(f"/api/tokens/{row['id']}", headers=headers).json() == {
        "revoked": row["id"]
    }
    assert error_of(program.get("/api/me"))[:2] == (401, "not_signed_in")
    assert error_of(browser.delete("/api/tokens/99", headers=headers))[:2] == (404, "not_found")


def test_measures_and_the_plan_are_what_the_command_prints(
    program: TestClient, printed: Printed
) -> None:
    assert rows_of(program, "/api/measures") == printed(
        "measures", "--format", "json", within=False
    )
    one = printed("measures", "ndcg_cut_10", "--format", "json", within=False)
    assert program.get("/api/measures/ndcg_cut_10").json() == one
    assert error_of(program.get("/api/measures/nDGC"))[:2] == (404, "not_found")
    plan = printed("golden", "plan", "--difference", "0.1", "--format", "json", within=False)
    assert program.get("/api/plan", params={"difference": 0.1}).json() == plan


def test_a_trend_is_what_the_command_prints(
    program: TestClient, printed: Printed, workspace: Path
) -> None:
    [row] = rows_of(program, "/api/trends")
    assert (row["name"], row["points"]) == ("history.jsonl", 0)
    assert row["lacking"]
    missing = program.get("/api/trends/history.jsonl")
    assert error_of(missing)[:2] == (404, "not_found")
    path = workspace / "history.jsonl"
    words = ("evaluate", str(workspace / "qrels.trec"), str(workspace / "run.trec"))
    (workspace / "qrels.trec").write_text("q1 0 d1 1\nq2 0 d2 1\n")
    (workspace / "run.trec").write_text("q1 Q0 d1 1 2 x\nq2 Q0 d1 1 2 x\nq2 Q0 d2 2 1 x\n")
    for _ in range(2):
        printed(*words, "--history", str(path), "--format", "json", within=False)
    wanted = printed("trend", str(path), "-m", "RR@10", "--format", "json", within=False)
    answer = program.get("/api/trends/history.jsonl", params={"measure": "RR@10"})
    assert answer.json() == wanted
    [row] = rows_of(program, "/api/trends")
    assert (row["points"], row["lacking"]) == (2, None)
    path.write_text("no json\n")
    assert error_of(program.get("/api/trends/history.jsonl"))[:2] == (400, "input")
