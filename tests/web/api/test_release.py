"""Gate and trends by the API equal those of the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient
from tests.web.api.conftest import Printed, error_of, near, rows_of
from tests.web.conftest import ClientOf

from karat.cli.main import karat

POLICY = """
[[rule]]
measure = "nDCG@5"
max_drop = 0.2

[health]
min_queries = 2
"""


def test_gate_is_what_the_command_prints(
    program: TestClient, printed: Printed, files: dict[str, str], tmp_path: Path
) -> None:
    asked = {"policy": POLICY, "baseline": "old", "candidate": "new"}
    answer = program.post("/api/gate", json=asked)
    assert answer.status_code == 200, answer.text
    path = tmp_path / "policy"
    path.write_text(POLICY)
    words = ("gate", "--policy", str(path), files["qrels"], files["old"], files["new"])
    done = CliRunner().invoke(
        karat, [*words, "--scale", "0-3", "--format", "json"], standalone_mode=False
    )
    wanted, found = json.loads(done.stdout), answer.json()
    assert found["exit_code"] == done.return_value
    assert found["verdict"] == wanted["verdict"]
    for key in ("policy", "hashes", "notes"):  # of files, whose names and bytes are others
        found.pop(key), wanted.pop(key)
    assert near(found, wanted), (found, wanted)


def test_a_gate_is_stored_and_listed(program: TestClient, workspace: Path) -> None:
    asked = {"policy": POLICY, "baseline": "old", "candidate": "new", "commit": "abc"}
    answer = program.post("/api/gate", json=asked)
    assert answer.headers["content-location"] == "/api/gates/1"
    record = program.get("/api/gates/1").json()
    assert record["gate"] == answer.json()
    row = record["row"]
    assert (row["source"], row["person"], row["commit"]) == ("api", "egon", "abc")
    assert (record["places"]["candidate"], record["places"]["baseline"]) == (2, 1)
    assert rows_of(program, "/api/gates") == [row]
    for name, value in (("candidate", "new"), ("policy", "policy"), ("verdict", row["verdict"])):
        assert rows_of(program, "/api/gates", **{name: value}) == [row]
    assert rows_of(program, "/api/gates", candidate="old") == []
    assert error_of(program.get("/api/gates?verdict=good"))[0] == 400
    assert error_of(program.get("/api/gates?golden=shoe"))[0] == 404
    assert error_of(program.get("/api/gates/2"))[:2] == (404, "not_found")
    # A request that is repeated, as after a lost answer, adds nothing.
    assert program.post("/api/gate", json=asked).headers["content-location"] == "/api/gates/1"


def test_a_token_that_may_only_read_stores_nothing(
    program: TestClient, client_of: ClientOf
) -> None:
    egon = client_of("engineer")
    assert egon.person is not None
    secret = egon.site.accounts.make_token(egon.person, "reads", ["read"]).text
    asked = {"policy": POLICY, "baseline": "old", "candidate": "new"}
    reads = {"authorization": f"Bearer {secret}"}
    answer = program.post("/api/gate", json=asked, headers=reads)
    assert answer.status_code == 200
    assert "content-location" not in answer.headers
    assert rows_of(program, "/api/gates") == []


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("", "empty"),
        ("[health]\n", "no rule"),
        ("[[rule]", "not valid TOML"),
        ("[[rule]]\nmeasure = 'nDCG@5'\nmax_dorp = 1\n", "max_dorp"),
        ("x" * 90_000, "not valid TOML"),
    ],
)
def test_a_policy_that_is_none_is_said_to_be_none(
    program: TestClient, policy: str, words: str
) -> None:
    answer = program.post("/api/gate", json={"policy": policy, "candidate": "new"})
    status, code, said = error_of(answer)
    assert (status, code) == (400, "input")
    assert words in said
    assert answer.json()["error"]["where"]["file"] == "policy"
    assert "/tmp" not in answer.text


@pytest.mark.parametrize("policy", ["x=" + "[" * 50_000, "x=" + "9" * 5_000, "\ud800"])
def test_a_policy_that_cannot_be_read_is_no_bug(program: TestClient, policy: str) -> None:
    body = json.dumps({"policy": policy, "candidate": "new", "baseline": "old"})
    answer = program.post("/api/gate", content=body)
    assert answer.status_code == 400, answer.text


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
