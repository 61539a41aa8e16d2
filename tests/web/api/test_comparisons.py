"""Comparisons by the API: their queries are as many as their numbers say."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.web.api.conftest import rows_of
from tests.web.conftest import NOW, ClientOf

from karat.store.sql.schema import query
from karat.web.framework.jobs import JobQueue
from karat.web.framework.state import AppState
from karat.web.offline import stored_comparisons
from karat.workflows.workspace import stored_comparisons as kept_comparisons
from karat.workflows.workspace.stored_comparisons import Asked


@pytest.fixture
def weighted(app: object) -> None:
    """A log counted two of the four queries, and not the others."""
    site: AppState = app.state.site  # type: ignore[attr-defined]
    with site.workspace.store.begin() as c:
        counted = query.c.query_id.in_(["q1", "q2"])
        c.execute(sa.update(query).where(counted).values(weight=2.0))


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


@pytest.mark.parametrize("by", ["the API", "a form"])
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
