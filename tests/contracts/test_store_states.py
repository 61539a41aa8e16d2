"""The state of a golden set is another once anything is that figures are made of, and only then."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import polars as pl
import pytest
import sqlalchemy as sa
from tests.contracts.conftest import ON_BOTH

from karat.store.sql import documents, editions, golden_sets, judgments, pairs, queries, queue
from karat.store.sql.opening import Store
from karat.store.sql.states import state_of
from karat.tables.schema import JUDGMENTS

NOW = 1_700_000_000_000_000
Change = Callable[[sa.Connection, int], object]


@pytest.fixture
def c(store: Store) -> Iterator[sa.Connection]:
    with store.begin() as connection:
        yield connection


@pytest.fixture
def set_id(c: sa.Connection) -> int:
    """Two queries, two documents, their pairs in the queue, and one of them judged by ann."""
    made = {"scale": (0, 3), "grades": {}, "repeats": 0, "salt": "s", "guideline": "", "now": NOW}
    number = golden_sets.make(c, "shop", raters=2, **made)
    put_queries(c, number, ["a", "b"], [1.0, 2.0])
    put_documents(c, number, ["one", "two"])
    rows = {"query_id": ["q0", "q1"], "doc_id": ["d0", "d1"]}
    pairs.put(c, number, pl.DataFrame(rows), 2, NOW)
    rate(c, number, "ann", 1)
    return number


def put_queries(c: sa.Connection, set_id: int, texts: list[str], weights: list[float]) -> None:
    ids = [f"q{i}" for i in range(len(texts))]
    frame = pl.DataFrame({"query_id": ids, "text": texts, "weight": weights})
    queries.put(c, set_id, frame, NOW)


def put_documents(c: sa.Connection, set_id: int, texts: list[str], now: int = NOW) -> None:
    frame = pl.DataFrame({"doc_id": [f"d{i}" for i in range(len(texts))], "text": texts})
    documents.put(c, set_id, frame, now)


def rate(c: sa.Connection, set_id: int, rater: str, grade: float) -> int:
    claim = queue.claim_pair(c, set_id, rater, "q0", "d0", now=NOW)
    return judgments.submit(c, set_id, claim.slot_id, rater, grade=grade, now=NOW)


def put_golds(c: sa.Connection, set_id: int, grade: float) -> None:
    row = {"query_id": ["q1"], "doc_id": ["d1"], "gold_grade": [grade]}
    pairs.put(c, set_id, pl.DataFrame(row), 2, NOW)


def take(c: sa.Connection, set_id: int, grade: float) -> None:
    """A judgment that a file holds."""
    row: dict[str, object] = {each.name: None for each in JUDGMENTS}
    row |= {"query_id": "q0", "doc_id": "d0", "grade": grade, "state": "graded", "rater": "zoe"}
    row |= {"source": "human", "kind": "rating", "time_us": NOW}
    schema = {each.name: each.dtype for each in JUDGMENTS}
    frame = pl.DataFrame([row], schema=schema).drop("judgment")
    judgments.record(c, set_id, frame, None)


def freeze(c: sa.Connection, set_id: int) -> None:
    grades = {"query_id": ["q0"], "doc_id": ["d0"], "grade": [1.0], "votes": [1], "rule": ["mean"]}
    frame = pl.DataFrame(grades).with_columns(raters=pl.lit(["ann"]))
    asked = queries.frame(c, set_id)
    said = {"name": "one", "sha256": "0" * 64, "about": {}, "queries": asked, "grades": frame}
    editions.freeze(c, set_id, now=NOW, **said)  # type: ignore[arg-type]


def disagree(c: sa.Connection, set_id: int) -> None:
    row = pl.DataFrame({"query_id": ["q0"], "doc_id": ["d0"]})
    queue.open_adjudications(c, set_id, row, NOW)


CHANGES: dict[str, Change] = {
    "a judgment": lambda c, s: rate(c, s, "ben", 3),
    "a judgment that is undone": lambda c, s: judgments.undo(c, s, "ann", NOW),
    "a judgment that is corrected": lambda c, s: rate(c, s, "ann", 2),
    "a judgment of a file": lambda c, s: take(c, s, 2),
    "a query": lambda c, s: put_queries(c, s, ["a", "b", "c"], [1.0, 2.0, 3.0]),
    "the text of a query": lambda c, s: put_queries(c, s, ["a", "c"], [1.0, 2.0]),
    "the weight of a query": lambda c, s: put_queries(c, s, ["a", "b"], [1.0, 2.000000001]),
    "weights change places": lambda c, s: put_queries(c, s, ["a", "b"], [2.0, 1.0]),
    "a query is dropped": lambda c, s: queries.drop(c, s, ["q1"], NOW),
    "a document": lambda c, s: put_documents(c, s, ["one", "two", "three"]),
    "a document changes": lambda c, s: put_documents(c, s, ["one", "other"], NOW + 1),
    "a pair": lambda c, s: pairs.put(
        c, s, pl.DataFrame({"query_id": ["q0"], "doc_id": ["d1"]}), 2, NOW
    ),
    "more raters of a pair": lambda c, s: pairs.put(
        c, s, pl.DataFrame({"query_id": ["q0"], "doc_id": ["d0"]}), 3, NOW
    ),
    "a known grade": lambda c, s: put_golds(c, s, 2),
    "an adjudication": disagree,
    "an edition": freeze,
    "the raters that are declared": lambda c, s: golden_sets.change(
        c, s, grades={}, raters=3, repeats=0
    ),
    "a guideline": lambda c, s: golden_sets.new_guideline(c, s, "New.", NOW),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_another_state(c: sa.Connection, set_id: int, what: str) -> None:
    before = state_of(c, set_id)
    assert state_of(c, set_id) == before
    CHANGES[what](c, set_id)
    assert state_of(c, set_id) != before


def test_another_known_grade_is_another_state(c: sa.Connection, set_id: int) -> None:
    put_golds(c, set_id, 2)
    before = state_of(c, set_id)
    put_golds(c, set_id, 3)
    assert state_of(c, set_id) != before


@ON_BOTH
def test_the_later_of_two_changes_may_be_written_first(c: sa.Connection, set_id: int) -> None:
    """Then the newest time of all stays, and it is another state all the same."""
    put_documents(c, set_id, ["one", "two, second"], NOW + 9)
    before = state_of(c, set_id)
    put_documents(c, set_id, ["one, second", "two, second"], NOW + 3)
    assert state_of(c, set_id) != before


def test_a_lease_is_no_change(c: sa.Connection, set_id: int) -> None:
    before = state_of(c, set_id)
    queue.claim_pair(c, set_id, "ben", "q0", "d0", now=NOW)
    assert state_of(c, set_id) == before
