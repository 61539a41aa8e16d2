"""Numbers by the API are those of the command line, over the same grades and runs."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient
from tests.web.api.conftest import Printed, error_of, rows_of

from karat.cli.main import karat

POLICY = """
[[rule]]
measure = "nDCG@5"
max_drop = 0.2

[health]
min_queries = 2
"""


@pytest.fixture
def files(program: TestClient, tmp_path: Path) -> dict[str, str]:
    """The golden set as a BEIR folder, and both runs, by name."""
    found = {}
    packed = tmp_path / "set.zip"
    answer = program.get("/api/golden/shop/export")
    packed.write_bytes(answer.content)
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(tmp_path)
    found["qrels"] = str(tmp_path / "shop-now")
    for row in rows_of(program, "/api/runs"):
        path = tmp_path / f"{row['name']}.parquet"
        path.write_bytes(program.get(f"/api/runs/{row['id']}/file").content)
        found[row["name"]] = str(path)
    return found


def near(one: Any, other: Any) -> bool:
    """Whether two objects are the same, their numbers but for rounding."""
    if isinstance(one, float) or isinstance(other, float):
        return one == pytest.approx(other, abs=1e-12)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(near(one[k], other[k]) for k in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(near, one, other))
    return bool(one == other)


def test_evaluate_is_what_the_command_prints(
    program: TestClient, printed: Printed, files: dict[str, str]
) -> None:
    asked = {
        "runs": ["old", "new"],
        "measures": ["nDCG@5", "P@3"],
        "by": ["query_length"],
        "per_query": True,
    }
    answer = program.post("/api/evaluate", json=asked)
    assert answer.status_code == 200, answer.text
    wanted = printed(
        "evaluate",
        *(files[name] for name in ("qrels", "old", "new")),
        *("-m", "nDCG@5", "-m", "P@3", "--by", "query_length", "-q"),
        *("--scale", "0-3", "--format", "json"),
        within=False,
    )
    assert near(answer.json(), wanted), (answer.json(), wanted)
    assert len(answer.json()["per_query"]) == 2 * 2 * 4  # runs × measures × queries


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


def test_explain_is_what_the_command_prints(
    program: TestClient, printed: Printed, files: dict[str, str]
) -> None:
    number = next(row["id"] for row in rows_of(program, "/api/runs") if row["name"] == "old")
    asked = {"query_id": "q2", "measure": "nDCG@5"}
    answer = program.get(f"/api/runs/{number}/explain", params=asked)
    words = ("explain", files["qrels"], files["old"], "q2", "-m", "nDCG@5", "--scale", "0-3")
    wanted = printed(*words, "--format", "json", within=False)
    assert near(answer.json(), wanted), (answer.json(), wanted)


def test_a_comparison_is_kept_and_says_what_the_command_prints(
    program: TestClient, printed: Printed, files: dict[str, str]
) -> None:
    asked = {
        "baseline": "old",
        "candidates": ["new"],
        "measures": ["nDCG@5"],
        "by": ["query_length"],
        "margin": 0.05,
    }
    made = program.post("/api/comparisons", json=asked)
    assert made.status_code == 201, made.text
    number = made.json()["id"]
    waited = program.get(f"/api/comparisons/{number}", params={"wait": 30}).json()
    assert waited["state"] == "done"
    assert [run["name"] for run in waited["runs"]] == ["old", "new"]
    found = program.get(f"/api/comparisons/{number}/result").json()
    words = ("compare", files["qrels"], files["old"], files["new"], "-m", "nDCG@5")
    wanted = printed(
        *words,
        *("--by", "query_length", "--margin", "0.05", "--scale", "0-3", "--judge-next", "50"),
        *("--format", "json"),
        within=False,
    )
    for each in (found, wanted):  # their order differs where two weigh the same
        each["queries"].sort(key=lambda row: row["query_id"])
    assert near(found, wanted), (found, wanted)
    rows = rows_of(program, f"/api/comparisons/{number}/queries")
    assert {row["query_id"] for row in rows} == {"q1", "q2", "q3", "q4"}
    listed = rows_of(program, "/api/comparisons")
    assert [row["id"] for row in listed] == [number]
    put = program.post(f"/api/comparisons/{number}/queue")
    # d5 of each query waits already; one of the four goes first as it is.
    assert put.json() == {"added": 0, "raised": 3, "golds": 0}
    assert len(found["judge_next"]) == 4
    assert program.post(f"/api/comparisons/{number}/again").json()["id"] == number


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"runs": ["nwe"]}, "no run 'nwe'"),
        ({"runs": []}, "at least 1"),
        ({"runs": ["new"], "measures": ["nDGC@5"]}, "nDGC"),
        ({"runs": ["new"], "mesures": ["P@5"]}, "mesures"),
        ({"runs": ["new"], "by": ["lnag"]}, "lnag"),
        ({"runs": ["new"], "edition": "x"}, "no edition"),
        ({"runs": ["new"], "seed": -1}, "seed"),
        ({"runs": ["new\0"]}, "character 0"),
        ({"runs": [10**40]}, "no run"),
        ([], "object"),
    ],
)
def test_what_is_asked_wrongly_is_said(program: TestClient, asked: Any, words: str) -> None:
    status, code, said = error_of(program.post("/api/evaluate", json=asked))
    assert (status, code) == (400, "usage"), said
    assert words in said


def test_a_comparison_of_one_run_with_itself_is_refused(program: TestClient) -> None:
    asked = {"baseline": "old", "candidates": ["old"]}
    status, code, words = error_of(program.post("/api/comparisons", json=asked))
    assert (status, code) == (400, "usage")
    assert "twice" in words


def test_a_comparison_there_is_not_is_not_found(program: TestClient) -> None:
    for path in ("", "/result", "/queries"):
        assert error_of(program.get(f"/api/comparisons/77{path}"))[0] == 404


@pytest.mark.parametrize("policy", ["x=" + "[" * 50_000, "x=" + "9" * 5_000, "\ud800"])
def test_a_policy_that_cannot_be_read_is_no_bug(program: TestClient, policy: str) -> None:
    body = json.dumps({"policy": policy, "candidate": "new", "baseline": "old"})
    answer = program.post("/api/gate", content=body)
    assert answer.status_code == 400, answer.text
