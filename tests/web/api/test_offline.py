"""Runs, evaluations, comparisons and measures by the API equal those of the command line."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.choosing import deep_but
from tests.web.api.conftest import Printed, error_of, near, rows_of
from tests.web.conftest import NOW, ClientOf, with_deep

from karat.store.sql.schema import query
from karat.web.framework.jobs import JobQueue
from karat.web.framework.state import AppState
from karat.web.offline import stored_comparisons
from karat.workflows.workspace import stored_comparisons as kept_comparisons
from karat.workflows.workspace.stored_comparisons import Asked

RUN = b"q1 Q0 d1 1 2 x\nq2 Q0 d2 1 1 x\n"


def test_a_run_is_asked_for_by_number_or_by_name(program: TestClient) -> None:
    kept = program.post(
        "/api/runs", params={"name": "x.trec", "run": "main/file 7"}, content=RUN
    ).json()
    for said in (str(kept["id"]), "main%2Ffile%207"):
        assert program.get(f"/api/runs/{said}").json()["id"] == kept["id"]
        assert program.get(f"/api/runs/{said}/file", params={"format": "trec"}).text.startswith(
            "q1 Q0 d1 1 2"
        )
        asked = {"query_id": "q1", "measure": "P@1"}
        assert program.get(f"/api/runs/{said}/explain", params=asked).json()["run"] == "main/file 7"
    old = next(row["id"] for row in rows_of(program, "/api/runs") if row["name"] == "old")
    named = program.post("/api/runs", params={"name": "x.trec", "run": str(old)}, content=RUN)
    assert named.json()["also"] == ["main/file 7"]
    assert program.get(f"/api/runs/{old}").json()["name"] == "old"  # a number is a number first
    assert program.delete("/api/runs/main%2Ffile%207").json() == {"removed": kept["id"]}
    assert program.get(f"/api/runs/{kept['id']}").status_code == 404


@pytest.mark.parametrize(
    "said", ["odl", "99", *with_deep("0", "9" * 30, "-1", "%20", "old%2Fnone")]
)
def test_a_run_that_there_is_not_is_said_in_plain_words(program: TestClient, said: str) -> None:
    for method in ("GET", "DELETE"):
        answer = program.request(method, f"/api/runs/{said}")
        status, code, words = error_of(answer)
        assert (status, code) == (404, "not_found")
        assert "there is no run" in words
        assert "shop" in words
    if said == "odl":
        assert answer.json()["error"]["nearest"] == ["old"]


def test_it_is_of_the_golden_set_that_is_named(program: TestClient) -> None:
    assert program.get("/api/runs/old", params={"golden": "shop"}).json()["name"] == "old"
    assert error_of(program.get("/api/runs/old", params={"golden": "x"}))[:2] == (404, "not_found")


def test_a_run_is_told_with_who_kept_it(program: TestClient) -> None:
    made = program.post("/api/runs", params={"name": "new.trec"}, content=RUN).json()
    assert made["kept_by"] == "egon"
    by = {row["id"]: row["kept_by"] for row in rows_of(program, "/api/runs")}
    assert by[made["id"]] == "egon"
    assert None in by.values()  # those that the command line kept, for nobody
    assert program.get(f"/api/runs/{made['id']}").json()["kept_by"] == "egon"


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", *with_deep("x\N{RIGHT-TO-LEFT OVERRIDE}y", "..")]
)
def test_a_name_that_cannot_be_read_or_is_a_path_is_refused(
    program: TestClient, client_of: ClientOf, name: str
) -> None:
    data, before = b"q1 Q0 d1 1 2.0 t\n", rows_of(program, "/api/runs")
    params = {"name": "found.trec", "run": name}
    answer = program.post("/api/runs", content=data, params=params)
    assert error_of(answer)[:2] == (400, "usage")
    assert "the name of a run" in error_of(answer)[2]
    egon = client_of("engineer")
    sent = {"file": ("found.trec", data)}
    form = egon.post("/runs", data={"csrf": egon.csrf, "name": name}, files=sent)
    assert form.status_code == 400
    assert rows_of(program, "/api/runs") == before


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


def test_evaluate_by_whose_judgments(program: TestClient) -> None:
    asked = {"runs": ["old"], "measures": ["P@3"], "judgments": "clicks"}
    status, _, said = error_of(program.post("/api/evaluate", json=asked))
    assert status == 400
    assert "has no judgments of clicks" in said
    assert program.post("/api/evaluate", json=asked | {"judgments": "cats"}).status_code == 400
    answer = program.post("/api/evaluate", json=asked | {"judgments": "human"}).json()
    assert answer["judgments"] == "human"


@pytest.mark.deep  # both call karat.workflows.offline
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
    deep_but(
        [{"runs": ["nwe"]}, {"runs": ["new"], "measures": ["nDGC@5"]}, {"runs": ["new\0"]}, []],
        [
            ({"runs": ["nwe"]}, "no run 'nwe'"),
            ({"runs": []}, "at least 1"),
            ({"runs": ["new"], "measures": ["nDGC@5"]}, "nDGC"),
            ({"runs": ["new"], "mesures": ["P@5"]}, "mesures"),
            ({"runs": ["new"], "by": ["lnag"]}, "lnag"),
            ({"runs": ["new"], "edition": "x"}, "no edition"),
            ({"runs": ["new"], "seed": -1}, "seed"),
            ({"runs": ["new\0"]}, "must not contain NUL"),
            ({"runs": [10**40]}, "no run"),
            ([], "object"),
        ],
    ),
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


@pytest.fixture
def weighted(app: object) -> None:
    """A log counted two of the four queries, and not the others."""
    site: AppState = app.state.site  # type: ignore[attr-defined]
    with site.workspace.store.begin() as c:
        counted = query.c.query_id.in_(["q1", "q2"])
        c.execute(sa.update(query).where(counted).values(weight=2.0))


@pytest.mark.deep  # test_counted.py has the page
@pytest.mark.usefixtures("weighted")
def test_queries_say_whether_they_count(program: TestClient) -> None:
    asked = {"baseline": "old", "candidates": ["new"], "measures": ["nDCG@3", "P@2"]}
    number = program.post("/api/comparisons", json=asked).json()["id"]
    program.get(f"/api/comparisons/{number}", params={"wait": 30})
    found = program.get(f"/api/comparisons/{number}/result").json()
    assert set(found["queries"][0]).isdisjoint({"outcome", "counts"})
    ways = {"better": "wins", "same": "ties", "worse": "losses"}
    path = f"/api/comparisons/{number}/queries"
    for each in found["differences"]:
        assert each["n"] == 2
        for way, count in ways.items():
            of_it = {"measure": each["measure"], "outcome": way, "counts": "yes"}
            assert len(rows_of(program, path, **of_it)) == each[count]
    assert {row["query_id"] for row in rows_of(program, path, counts="no")} == {"q3", "q4"}


@pytest.mark.deep  # workflows/workspace/test_stored_comparisons.py
def test_the_same_asked_twice_is_one(program: TestClient) -> None:
    asked = {"baseline": "old", "candidates": ["new"], "measures": ["P@2"]}
    made = [program.post("/api/comparisons", json=asked).json()["id"] for _ in range(2)]
    assert made[0] == made[1]
    assert len(rows_of(program, "/api/comparisons")) == 1


class Full:
    """A server that computes as much as it can: one thing at once, and nothing may wait.

    Args:
        monkeypatch: Puts it in the place of the process's own until the test ends.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.computing, self._gate = JobQueue(at_once=1, most=0), threading.Event()
        monkeypatch.setattr(stored_comparisons, "COMPUTING", self.computing)
        self.computing.run("something else", lambda: self._gate.wait(30), 0)

    def end(self) -> None:
        """Let what is computed end."""
        self._gate.set()
        assert self.computing.run("something else", lambda: None, 10)


@pytest.mark.parametrize("by", ["the API", *with_deep("a form")])
def test_what_is_refused_is_not_kept(
    program: TestClient, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    full, asked = Full(monkeypatch), {"baseline": "old", "candidates": ["new"], "measures": ["P@2"]}
    egon = client_of("engineer")

    def ask() -> int:
        if by == "the API":
            return program.post("/api/comparisons", json=asked).status_code
        return egon.fill("/comparisons/new", baseline=1, candidate=2, measure="P@2").status_code

    assert [ask(), ask()] == [503, 503]
    assert rows_of(program, "/api/comparisons") == []
    full.end()
    assert ask() in {201, 303}
    assert len(rows_of(program, "/api/comparisons")) == 1


@pytest.mark.deep
def test_what_is_refused_again_keeps_its_numbers(
    program: TestClient, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"baseline": "old", "candidates": ["new"], "measures": ["P@2"]}
    number = program.post("/api/comparisons", json=asked).json()["id"]
    path, egon = f"/api/comparisons/{number}", client_of("engineer")
    assert program.get(path, params={"wait": 30}).json()["state"] == "done"
    full = Full(monkeypatch)
    assert program.post(f"{path}/again").status_code == 503
    assert egon.fill(f"/comparisons/{number}/again").status_code == 503  # type: ignore[attr-defined]
    assert program.get(path).json()["state"] == "done"
    full.end()
    assert program.post(f"{path}/again").json()["state"] in {"waiting", "running", "done"}


@pytest.mark.deep  # test_jobs.py has the queue that is full
def test_what_waits_is_shown_where_there_is_no_room(
    program: TestClient, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch, app: FastAPI
) -> None:
    opened = app.state.site.opened("shop")
    number = kept_comparisons.ask(opened, Asked([1, 2]), by="egon", now=NOW)
    full = Full(monkeypatch)
    assert program.get(f"/api/comparisons/{number}").json()["state"] == "waiting"
    assert client_of("engineer").get(f"/comparisons/{number}").status_code == 200
    full.end()
    found = program.get(f"/api/comparisons/{number}", params={"wait": 30}).json()
    assert found["state"] == "done"


@pytest.mark.deep  # a race
def test_forty_at_once_are_kept_or_refused(
    program: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    computing, gate = JobQueue(), threading.Event()
    monkeypatch.setattr(stored_comparisons, "COMPUTING", computing)
    monkeypatch.setattr(stored_comparisons, "WAIT_S", 0.0)
    monkeypatch.setattr(kept_comparisons, "compute", lambda *_: gate.wait(30))

    def ask(number: int) -> int:
        said = {"baseline": "old", "candidates": ["new"], "name": f"{number}"}
        return program.post("/api/comparisons", json=said).status_code

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(ask, range(40)))
    gate.set()
    # Two are computed and 16 wait; as many are kept as were said to be.
    assert answers.count(201) == 18
    assert answers.count(503) == 22
    assert len(rows_of(program, "/api/comparisons")) == 18


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
