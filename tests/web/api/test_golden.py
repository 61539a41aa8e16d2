"""Golden sets by the API: the same as the command line; files in and out, whole or not at all."""

from __future__ import annotations

import gzip
import io
import json
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from starlette.testclient import TestClient
from tests.web.api.conftest import Printed, ProgramOf, error_of, rows_of
from tests.web.conftest import with_deep

from karat.store.sql import audit
from karat.tables import Run
from karat.web.app import create_app
from karat.web.framework.settings import Settings


@pytest.mark.parametrize("what", ["status", *with_deep("agreement", "stale")])
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


@pytest.mark.deep  # both call karat.workflows.golden
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


CSV = b"query_id,query,doc_id,grade,rater\nq7,blue door,d1,2,ann\nq7,blue door,d2,0,ann\n"


def send(program: TestClient, data: bytes, name: str, **params: str):  # type: ignore[no-untyped-def]
    """Import a file."""
    return program.post("/api/golden/shop/import", content=data, params={"name": name, **params})


def held(program: TestClient) -> tuple[int, int, int]:
    """How many queries, judgments and runs there are."""
    return (
        len(rows_of(program, "/api/golden/shop/queries")),
        len(rows_of(program, "/api/golden/shop/judgments")),
        len(rows_of(program, "/api/runs")),
    )


def test_a_file_comes_in_as_on_the_command_line(
    program: TestClient, printed: Printed, tmp_path: Path
) -> None:
    answer = send(program, CSV, "ratings.csv")
    assert answer.status_code == 200, answer.text
    assert answer.json()["judgments"] == 2
    assert held(program)[:2] == (5, 50)
    path = tmp_path / "ratings.csv"
    path.write_bytes(CSV)
    [again] = printed("golden", "import", str(path), "--json")
    assert set(again) == set(answer.json())
    assert again["judgments"] == 0  # there they were
    with program.app.state.site.workspace.store.read() as c:  # type: ignore[attr-defined]
        noted = audit.frame(c).filter(pl.col("action") == "import file")
    assert noted["person"].to_list() == ["egon"]


def test_grades_of_a_model_say_so(program: TestClient) -> None:
    machine = CSV.replace(b"ann", b"gpt-5")
    status, _, said = error_of(send(program, machine, "m.csv"))
    assert status == 400
    assert "the rater 'gpt-5' reads like a model" in said
    assert error_of(send(program, machine, "m.csv", source="lm"))[0] == 400
    assert send(program, machine, "m.csv", source="gpt-5=llm").json()["judgments"] == 2
    rows = rows_of(program, "/api/golden/shop/judgments")
    assert {row["source"] for row in rows if row["rater"] == "gpt-5"} == {"llm"}
    with program.app.state.site.workspace.store.read() as c:  # type: ignore[attr-defined]
        [about] = audit.frame(c).filter(pl.col("action") == "import file")["about"]
    assert "source gpt-5 llm" in about


BAD = [
    ("grades.csv", CSV.replace(b",2,", b",9,"), ""),
    ("x.csv", CSV, "magic"),
    ("half.csv.gz", gzip.compress(CSV * 9)[:-20], ""),
    ("../../etc/passwd", b"", ""),
]
BAD_AS_OTHERS = [  # what is wrong with each is in the tests of its format
    ("empty.csv", b"", ""),
    ("photo.png", b"\x89PNG\r\n\x1a\n\x00\x00", ""),
    ("twice.csv", CSV + b"q7,blue door,d1,1,ann\n", ""),
    ("bad.json", b'{"a": [1, 2', "quepid-json"),
    ("deep.json", b"[" * 100_000, "rre"),
    ("run.trec", b"q1 Q0 d1 1 2.5 bm25\n", ""),
    ("half.zip", b"PK\x03\x04 not a zip", ""),
    ("x.csv.gz", b"\x1f\x8b\x08 broken", ""),
    ("bomb.csv.gz", gzip.compress(bytes(30_000_000)), ""),
    ("nul.csv", CSV.replace(b"blue", b"bl\x00ue"), ""),
    ("latin.csv", CSV.replace(b"blue", b"bl\xe9"), ""),
]


@pytest.mark.parametrize(
    ("name", "data", "named"),
    [*BAD, *with_deep(*BAD_AS_OTHERS)],
    ids=[each[0] for each in BAD + BAD_AS_OTHERS],
)
def test_what_cannot_come_in_leaves_nothing_and_says_why(
    program: TestClient, name: str, data: bytes, named: str
) -> None:
    before = held(program)
    answer = send(program, data, name, format=named)
    status, code, words = error_of(answer)
    assert (status, code) in {(400, "input"), (400, "usage")}, words
    assert tempfile.gettempdir() not in answer.text
    assert held(program) == before
    ranked = program.post("/api/runs", content=data, params={"name": name})
    if name != "run.trec":
        assert ranked.status_code == 400 or name == "x.csv", ranked.text


@pytest.mark.parametrize("name", [None, "", "x" * 201])
def test_a_file_has_a_name(program: TestClient, name: str | None) -> None:
    params = {} if name is None else {"name": name}
    answer = program.post("/api/golden/shop/import", content=CSV, params=params)
    assert error_of(answer)[:2] == (400, "usage")
    assert answer.json()["error"]["where"] == {"field": "name"}


@pytest.fixture
def small(workspace: Path, program_of: ProgramOf) -> Iterator[TestClient]:
    """The same site, by a server that takes two megabytes and no more."""
    secret = program_of("engineer").headers["authorization"]
    app = create_app(Settings(workspace, max_upload=2 * 2**20))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        client.headers["authorization"] = secret
        yield client


@pytest.mark.deep  # framework/test_middleware.py has it
def test_more_than_is_allowed_is_refused_whether_it_says_so_or_not(
    small: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "uploads").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "uploads"))
    line = b"q1 Q0 d%d 1 %d x\n"
    large = b"".join(line % (n, -n) for n in range(200_000))
    fits = large[: 2**21].rpartition(b"\n")[0] + b"\n"

    def drip() -> Iterator[bytes]:
        for at in range(0, len(large), 65_536):
            yield large[at : at + 65_536]

    before = held(small)
    for content in (large, drip()):
        answer = small.post("/api/runs", content=content, params={"name": "x.trec"})
        assert error_of(answer)[:2] == (413, "too_large")
    assert held(small) == before
    assert small.post("/api/runs", content=fits, params={"name": "x.trec"}).status_code == 201
    assert not list((tmp_path / "uploads").iterdir())


def test_json_is_never_longer_than_a_form(program: TestClient) -> None:
    answer = program.post("/api/evaluate", content=b'{"runs": ["' + b"x" * 2**20 + b'"]}')
    assert error_of(answer)[:2] == (413, "too_large")


@pytest.mark.parametrize(
    "body", [b"{", *with_deep(b"", b"\xff", b"[" * 100_000, b'{"runs": [NaN]}', b"null")]
)
def test_what_is_no_json_is_said_to_be_none(program: TestClient, body: bytes) -> None:
    answer = program.post("/api/evaluate", content=body)
    assert error_of(answer)[:2] == (400, "usage")


def test_an_export_is_the_file_and_says_what_it_lost(
    program: TestClient, printed: Printed, tmp_path: Path
) -> None:
    answer = program.get("/api/golden/shop/export", params={"format": "csv"})
    assert 'filename="shop-now.csv"' in answer.headers["content-disposition"]
    there = tmp_path / "there.csv"
    told = printed("golden", "export", str(there), "--format", "csv", "--json")
    assert answer.content == there.read_bytes()
    assert json.loads(answer.headers["x-karat-notes"]) == told | {"file": "shop-now.csv"}
    folder = program.get("/api/golden/shop/export")
    with zipfile.ZipFile(io.BytesIO(folder.content)) as archive:
        assert "shop-now/qrels/test.tsv" in archive.namelist()
    status, code, words = error_of(
        program.get("/api/golden/shop/export", params={"format": "csvv"})
    )
    assert (status, code) == (400, "usage")
    assert "csvv" in words


def test_a_run_comes_back_as_it_went_with_what_failed(program: TestClient) -> None:
    rows = b"query_id,doc_id,score,state\nq1,d1,2.5,ok\nq2,,,failed\nq3,,,empty\n"
    made = program.post("/api/runs", content=rows, params={"name": "mine.csv"})
    assert made.status_code == 201, made.text
    assert (made.json()["name"], made.json()["rows"]) == ("mine", 1)
    again = program.post("/api/runs", content=rows, params={"name": "other.csv", "run": "other"})
    assert again.json()["id"] == made.json()["id"]  # the same content is kept once
    assert (made.json()["said"], again.status_code, again.json()["name"]) == (None, 200, "other")
    assert again.json()["said"].endswith("'other' is another name of it")
    assert program.get(f"/api/runs/{made.json()['id']}").json()["also"] == ["other"]
    number = made.json()["id"]
    back = program.get(f"/api/runs/{number}/file", params={"format": "json"}).json()
    assert back == {"q1": {"d1": 2.5}, "q2": None, "q3": {}}
    refused = program.get(f"/api/runs/{number}/file", params={"format": "trec"})
    assert error_of(refused)[:2] == (400, "input")
    assert Run.from_dict(back).answers.height == 3


def test_pairs_are_queued_and_pooled(program: TestClient, printed: Printed) -> None:
    rows = b'{"query_id": "q1", "doc_id": "d9"}\n{"query_id": "q1", "doc_id": "d8"}\n'
    answer = program.post("/api/golden/shop/queue", content=rows, params={"name": "next.jsonl"})
    assert answer.status_code == 200, answer.text
    assert (answer.json()["chosen"], answer.json()["added"]) == (2, 2)
    assert answer.json()["waiting"] == printed("golden", "status", "--format", "json")["waiting"]
    made = program.post("/api/golden/shop/pool", json={"runs": ["new"], "k": 3, "method": "rr"})
    assert made.status_code == 200, made.text
    assert made.json()["chosen"] == 4  # d5 leads each ranking of new, and is not judged
    wrong = program.post("/api/golden/shop/pool", json={"runs": ["new"], "method": "rand"})
    assert error_of(wrong)[:2] == (400, "usage")
    unknown = b'{"query_id": "q99", "doc_id": "d9"}\n'
    answer = program.post("/api/golden/shop/queue", content=unknown, params={"name": "next.jsonl"})
    assert error_of(answer)[:2] == (400, "input")
