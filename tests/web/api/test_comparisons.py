"""Comparisons by the API: their queries are as many as their numbers say."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient
from tests.web.api.conftest import rows_of

from karat.store.schema import query
from karat.web.site import Site


@pytest.fixture
def weighted(app: object) -> None:
    """A log counted two of the four queries, and not the others."""
    site: Site = app.state.site  # type: ignore[attr-defined]
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
