"""A golden set by the API says what the command line prints of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.web.api.conftest import Printed, error_of, rows_of


@pytest.mark.parametrize("what", ["status", "agreement", "stale"])
def test_it_is_what_the_command_prints(program: TestClient, printed: Printed, what: str) -> None:
    answer = program.get(f"/api/golden/shop/{what}")
    assert answer.status_code == 200
    assert answer.json() == printed("golden", what, "--format", "json")


def test_agreement_by_an_attribute_there_is_not_names_those_there_are(program: TestClient) -> None:
    status, code, words = error_of(program.get("/api/golden/shop/agreement", params={"by": "lang"}))
    assert (status, code) == (400, "usage")
    assert "no attribute 'lang'" in words


def test_coverage_of_kept_runs_is_that_of_their_files(
    program: TestClient, printed: Printed, tmp_path: Path
) -> None:
    before = rows_of(program, "/api/runs")
    asked = {"run": ["old", "new"], "k": 5}
    answer = program.get("/api/golden/shop/coverage", params=asked)
    files = []
    for name in ("old", "new"):
        number = next(row["id"] for row in before if row["name"] == name)
        path = tmp_path / f"{name}.parquet"
        path.write_bytes(program.get(f"/api/runs/{number}/file").content)
        files.append(str(path))
    assert rows_of(program, "/api/runs") == before  # to look changes nothing
    words = ("golden", "coverage", *files, "-k", "5", "--format", "json")
    assert answer.json() == printed(*words)
    assert answer.json()["runs"][0]["unjudged"] == 4  # d5 of each of the 4 queries
    by_number = program.get("/api/golden/shop/coverage", params={"run": before[0]["id"], "k": 5})
    assert by_number.json()["runs"][0]["run"] == before[0]["name"]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"run": ["odl"]}, "no run 'odl'"),
        ({"run": ["99999999999999999999999"]}, "no run"),
        ({"run": ["old", "old"]}, "named twice"),
        ({"run": ["old"], "edition": "x"}, "no edition"),
        ({}, "run"),
    ],
)
def test_coverage_says_what_is_wrong(
    program: TestClient, params: dict[str, object], words: str
) -> None:
    status, code, said = error_of(program.get("/api/golden/shop/coverage", params=params))
    assert (status, code) == (400, "usage")
    assert words in said


def test_an_unknown_golden_set_is_not_found_and_the_nearest_is_named(program: TestClient) -> None:
    answer = program.get("/api/golden/shob/status")
    assert error_of(answer)[:2] == (404, "not_found")
    assert answer.json()["error"]["nearest"] == ["shop"]


def test_the_list_of_golden_sets_tells_no_salt(program: TestClient) -> None:
    assert [set(row) for row in rows_of(program, "/api/golden")] == [
        {"name", "scale", "raters", "guideline", "created_us"}
    ]


def test_disagreements_and_editions_are_the_rows_that_the_command_prints(
    program: TestClient, printed: Printed
) -> None:
    told = printed("golden", "disagreements", "--format", "json")
    assert told["frame"]
    assert rows_of(program, "/api/golden/shop/disagreements") == told["frame"]
    assert program.post("/api/golden/shop/editions", json={"name": "a"}).status_code == 201
    editions = printed("golden", "editions", "--format", "json")
    assert rows_of(program, "/api/golden/shop/editions") == editions
    diff = printed("golden", "diff", "a", "now", "--by", "no_answer", "--format", "json")
    asked = {"old": "a", "by": "no_answer"}
    assert program.get("/api/golden/shop/diff", params=asked).json() == diff
