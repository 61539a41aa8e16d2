"""Runs by the API: named as everywhere else, and told with who kept them."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient
from tests.web.api.conftest import error_of, rows_of
from tests.web.conftest import ClientOf

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


@pytest.mark.parametrize("said", ["odl", "0", "99", "9" * 30, "-1", "%20", "old%2Fnone"])
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


@pytest.mark.parametrize("name", ["x\N{RIGHT-TO-LEFT OVERRIDE}y", "..", "../../etc/passwd"])
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
