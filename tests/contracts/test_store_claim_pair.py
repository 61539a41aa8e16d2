"""A pair claimed by name: within its places, blind, and the rater's own to correct."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import polars as pl
import pytest
import sqlalchemy as sa
from tests.contracts.conftest import ON_BOTH

from karat.store.sql import golden_sets, judgments, pairs, queries, queue
from karat.store.sql.opening import Store

NOW = 1_700_000_000_000_000
LEASE = 600_000_000
PAIR = ("q0", "d0")


@pytest.fixture
def c(store: Store) -> Iterator[sa.Connection]:
    with store.begin() as connection:
        yield connection


def a_pair(c: sa.Connection, raters: int = 2, gold: float | None = None) -> int:
    """One query with two documents, the first of which may have a known grade."""
    made = {"scale": (0, 3), "grades": {}, "repeats": 0, "salt": "s", "guideline": "", "now": NOW}
    set_id = golden_sets.make(c, "shop", **made)
    queries.put(c, set_id, pl.DataFrame({"query_id": ["q0"], "text": ["shoes"]}), NOW)
    frame = pl.DataFrame({"query_id": ["q0"] * 2, "doc_id": ["d0", "d1"]})
    known = pl.Series("gold_grade", [gold, None], pl.Float64)
    pairs.put(c, set_id, frame.with_columns(known), raters, NOW)
    return set_id


def claimed(c: sa.Connection, set_id: int, rater: str, now: int = NOW) -> queue.Claim:
    return queue.claim_pair(c, set_id, rater, *PAIR, now=now, lease_us=LEASE)


def rated(c: sa.Connection, set_id: int, rater: str, grade: float, now: int = NOW) -> int:
    slot_id = claimed(c, set_id, rater, now).slot_id
    return judgments.submit(c, set_id, slot_id, rater, grade=grade, now=now)


def test_the_cap_holds_and_one_may_correct_oneself(c: sa.Connection) -> None:
    set_id = a_pair(c, raters=2)
    assert claimed(c, set_id, "ann").query_id == "q0"
    rated(c, set_id, "ann", 1)
    rated(c, set_id, "ben", 2)
    with pytest.raises(queue.PairRefused, match="as many ratings as it may have"):
        claimed(c, set_id, "cleo")
    rated(c, set_id, "ann", 3)  # corrects: two judgments count, ann's is 3 now
    counting = judgments.current(c, set_id).frame.sort("rater")
    assert counting.select("rater", "grade").rows() == [("ann", 3.0), ("ben", 2.0)]


def test_what_another_has_is_not_taken_until_the_lease_ends(c: sa.Connection) -> None:
    set_id = a_pair(c, raters=1)
    first = claimed(c, set_id, "ann")
    with pytest.raises(queue.PairRefused, match="another rater has it just now"):
        claimed(c, set_id, "ben", NOW + LEASE - 1)
    assert claimed(c, set_id, "ann", NOW + 1).slot_id == first.slot_id  # renewed
    assert claimed(c, set_id, "ben", NOW + 1 + LEASE).slot_id == first.slot_id
    with pytest.raises(judgments.LeaseLost):
        judgments.submit(c, set_id, first.slot_id, "ann", grade=1, now=NOW + LEASE + 2)


def test_what_is_not_in_the_queue_or_tests_raters_has_no_place(c: sa.Connection) -> None:
    set_id = a_pair(c, gold=3.0)
    with pytest.raises(queue.PairRefused, match="not in the queue"):
        queue.claim_pair(c, set_id, "ann", "q0", "none", now=NOW)
    with pytest.raises(queue.PairRefused, match="as many ratings"):
        claimed(c, set_id, "ann")


def test_who_saw_the_votes_rates_no_more(c: sa.Connection) -> None:
    set_id = a_pair(c, raters=3)
    rated(c, set_id, "ann", 0)
    rated(c, set_id, "ben", 3)
    queue.open_adjudications(
        c, set_id, pl.DataFrame([PAIR], ["query_id", "doc_id"], orient="row"), NOW
    )
    assert queue.claim(c, set_id, "eve", now=NOW, kind="adjudication") is not None
    with pytest.raises(queue.PairRefused, match="seen what others said"):
        claimed(c, set_id, "eve")


def test_what_was_rated_elsewhere_is_not_rated_again(c: sa.Connection) -> None:
    set_id = a_pair(c)
    said = {"query_id": ["q0"], "doc_id": ["d0"], "rater": ["ann"], "grade": [2.0]}
    frame = pl.DataFrame(said).with_columns(source=pl.lit("human"), time_us=pl.lit(NOW))
    judgments.record(c, set_id, frame, None)
    with pytest.raises(queue.PairRefused, match="elsewhere"):
        claimed(c, set_id, "ann")


def test_the_newest_is_what_an_undo_takes(c: sa.Connection) -> None:
    set_id = a_pair(c)
    assert queue.newest(c, set_id, "ann") is None
    first = rated(c, set_id, "ann", 1)
    assert queue.newest(c, set_id, "ann") == first
    assert queue.newest(c, set_id, "ann", "adjudication") is None
    undone = judgments.undo(c, set_id, "ann", NOW)
    assert undone is not None
    assert undone.judgment == first
    assert queue.newest(c, set_id, "ann") is None


@ON_BOTH
def test_many_at_once_get_no_more_places_than_there_are(store: Store) -> None:
    with store.begin() as c:
        set_id = a_pair(c, raters=3)
    together = threading.Barrier(8)
    got: list[str] = []

    def rate(rater: str) -> None:
        together.wait()
        try:
            with store.begin() as c:
                rated(c, set_id, rater, 1)
            got.append(rater)
        except queue.PairRefused:
            pass

    threads = [threading.Thread(target=rate, args=(f"r{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with store.read() as c:
        counting = judgments.current(c, set_id).frame
    assert sorted(counting["rater"]) == sorted(got)
    assert len(got) == 3
