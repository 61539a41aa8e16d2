"""Comparisons in the store: their outcomes, and what was judged since."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
import pytest
import sqlalchemy as sa
from tests.contracts.conftest import ON_BOTH

from karat.store.sql import (
    audit,
    comparisons,
    documents,
    golden_sets,
    judgments,
    pairs,
    queries,
    queue,
    runs,
)
from karat.store.sql.opening import Store
from karat.store.sql.schema import comparison
from karat.store.sql.states import inputs_state

NOW = 1_700_000_000_000_000


@pytest.fixture
def c(store: Store) -> Iterator[sa.Connection]:
    with store.begin() as connection:
        yield connection


def a_set(c: sa.Connection, name: str = "shop") -> int:
    made = {"scale": (0, 3), "grades": {}, "repeats": 0, "salt": "s", "guideline": "", "now": NOW}
    set_id = golden_sets.make(c, name, raters=2, **made)
    queries.put(c, set_id, pl.DataFrame({"query_id": ["q0", "q1"], "text": ["a", "b"]}), NOW)
    return set_id


def asked(c: sa.Connection, set_id: int, name: str = "new against old") -> int:
    settings = {"measures": ["AP"], "by": [], "margin": None, "edition": "now"}
    return comparisons.put(
        c, set_id, name=name, runs=[1, 2], settings=settings, made_by="ann", now=NOW
    )


def rated(c: sa.Connection, set_id: int, doc_id: str, grade: float, rater: str = "ann") -> int:
    row = pl.DataFrame({"query_id": ["q0"], "doc_id": [doc_id]})
    pairs.put(c, set_id, row, 2, NOW)
    claim = queue.claim_pair(c, set_id, rater, "q0", doc_id, now=NOW)
    return judgments.submit(c, set_id, claim.slot_id, rater, grade=grade, now=NOW)


@ON_BOTH
def test_what_was_asked_is_there_as_it_was_asked(c: sa.Connection) -> None:
    set_id, other = a_set(c), a_set(c, "other")
    first, second = asked(c, set_id), asked(c, set_id, "again")
    asked(c, other)
    row = comparisons.find(c, first)
    assert row is not None
    assert (row.set_id, row.name, row.runs, row.state) == (
        set_id,
        "new against old",
        (1, 2),
        "waiting",
    )
    assert row.settings["measures"] == ["AP"]
    assert [each.id for each in comparisons.comparisons(c, set_id)] == [second, first]
    assert comparisons.find(c, 999) is None


def test_numbers_are_noted_and_requested_anew_only_when_somebody_asks(c: sa.Connection) -> None:
    made = asked(c, a_set(c))
    assert not comparisons.again(c, made)  # they are requested
    comparisons.finish(c, made, "key", 7, NOW + 1)
    row = comparisons.find(c, made)
    assert row is not None
    assert (row.state, row.judgment_id, row.computed_us, row.key) == ("done", 7, NOW + 1, "key")
    comparisons.finish(c, made, "older", 6, NOW + 2)  # of a slower process
    comparisons.fail(c, made, "too late", NOW + 2)
    assert comparisons.find(c, made) == row
    assert comparisons.keys(c) == {"key"}
    assert comparisons.again(c, made)
    requested = comparisons.find(c, made)
    assert requested is not None
    assert (requested.state, requested.key) == ("waiting", "key")  # the old numbers stay
    comparisons.fail(c, made, "the run is gone", NOW + 3)
    failed = comparisons.find(c, made)
    assert failed is not None
    assert (failed.state, failed.error) == ("failed", "the run is gone")


def test_what_an_older_karat_was_computing_is_requested(c: sa.Connection) -> None:
    made = asked(c, a_set(c))
    c.execute(sa.update(comparison).values(state="running", attempt="0" * 16))
    row = comparisons.find(c, made)
    assert row is not None
    assert row.state == "waiting"


def test_the_clock_moves_with_whatever_numbers_are_computed_from(c: sa.Connection) -> None:
    set_id, other = a_set(c), a_set(c, "other")

    def now(*, live: bool = True, with_documents: bool = True) -> str:
        return inputs_state(c, set_id, live=live, with_documents=with_documents)

    def moved(*, live: bool = True, with_documents: bool = True) -> bool:
        """Whether it is another than when it was last looked at."""
        before, seen[live, with_documents] = (
            seen[live, with_documents],
            now(live=live, with_documents=with_documents),
        )
        return before != seen[live, with_documents]

    both = [(live, documents) for live in (True, False) for documents in (True, False)]
    seen = {(live, docs): now(live=live, with_documents=docs) for live, docs in both}
    assert not moved()
    queries.put(c, other, pl.DataFrame({"query_id": ["q9"], "text": ["x"]}), NOW)
    assert not moved()
    rated(c, set_id, "d0", 1)
    assert moved()
    frame = pl.DataFrame({"query_id": ["q0"], "text": ["a"], "weight": [2.0]})
    queries.put(c, set_id, frame, NOW)  # a weight alone, at the same microsecond
    assert moved()
    queries.put(c, set_id, frame.with_columns(colour=pl.lit("red")), NOW)
    assert moved()
    queries.drop(c, set_id, ["q1"], NOW)
    assert moved()
    assert not moved(live=False)  # of an edition nothing moves so far
    documents.put(c, set_id, pl.DataFrame({"doc_id": ["d0"], "source": ["a"]}), NOW)
    assert moved()
    assert moved(live=False)
    assert not moved(live=False, with_documents=False)
    documents.put(c, set_id, pl.DataFrame({"doc_id": ["d0"], "source": ["b"]}), NOW + 1)
    assert moved(live=False)


def test_judgments_since_are_counted_in_their_own_set(c: sa.Connection) -> None:
    set_id, other = a_set(c), a_set(c, "other")
    assert comparisons.newest_judgment(c, set_id) == 0
    first = rated(c, set_id, "d0", 1)
    assert comparisons.newest_judgment(c, set_id) == first
    rated(c, other, "d0", 1)
    last = rated(c, set_id, "d1", 2)
    assert comparisons.judged_since(c, set_id, first) == [last]
    assert comparisons.judged_since(c, set_id, last) == []
    better = rated(c, set_id, "d1", 3)  # takes its place
    assert comparisons.judged_since(c, set_id, first) == [better]
    judgments.undo(c, set_id, "ann", NOW + 1)
    assert comparisons.judged_since(c, set_id, first) == []
    assert judgments.last_judged(c, set_id) == NOW + 1
    assert judgments.last_judged(c, a_set(c, "empty")) is None


def test_who_kept_each_run_is_told(c: sa.Connection) -> None:
    for who, what, which in (
        ("ann", "keep", "a"),
        ("ben", "keep", "a"),
        ("cleo", "keep", "b"),
        ("ann", "remove", "b"),
        ("dan", "keep", "b"),
        ("eve", "other", "c"),
    ):
        audit.note(c, who, what, "a run", NOW, {"sha256": which})
    assert comparisons.stored_by(c, "keep", "remove") == {"a": "ann", "b": "dan"}


def test_the_judgments_of_a_query_are_those_that_count(c: sa.Connection) -> None:
    set_id = a_set(c)
    rated(c, set_id, "d0", 1)
    rated(c, set_id, "d0", 3)  # a correction: the first counts no more
    rated(c, set_id, "d1", 2, "ben")
    found = judgments.current(c, set_id, "q0").frame
    every = judgments.current(c, set_id).frame
    assert found.equals(every)
    assert sorted(found.select("doc_id", "grade").iter_rows()) == [("d0", 3.0), ("d1", 2.0)]
    assert judgments.current(c, set_id, "q1").frame.height == 0


def test_a_query_is_there_until_it_is_dropped(c: sa.Connection) -> None:
    set_id, other = a_set(c), a_set(c, "other")
    queries.drop(c, set_id, ["q1"], NOW)
    assert queries.ids(c, set_id) == {"q0"}
    for name in ("q0", "q1", "q2", ""):
        assert queries.has(c, set_id, name) == (name == "q0")
    assert queries.has(c, other, "q1")


def test_documents_are_called_by_their_titles_or_how_they_begin(c: sa.Connection) -> None:
    set_id = a_set(c)
    frame = pl.DataFrame(
        {
            "doc_id": ["d0", "d1", "d2", "d3"],
            "title": ["Red  shoes", None, "d2", None],
            "text": ["x", "word " * 100, None, None],
        }
    )
    documents.put(c, set_id, frame, NOW)
    named = comparisons.titles(c, set_id, ["d0", "d1", "d2", "d3", "d4"])
    assert named["d0"] == "Red shoes"
    assert named["d1"].startswith("word word")
    assert len(named["d1"]) == 120
    assert set(named) == {"d0", "d1"}
    assert comparisons.titles(c, set_id, []) == {}


def test_a_run_is_found_by_its_number(c: sa.Connection) -> None:
    set_id = a_set(c)
    held = {"name": "old", "sha256": "0" * 64, "path": "runs/old", "queries": 1, "rows": 2}
    made = runs.put(c, set_id, **held, about={}, now=NOW)
    found = comparisons.find_run(c, made)
    assert found is not None
    assert (found[0], found[1].name) == (set_id, "old")
    assert comparisons.find_run(c, made + 1) is None
