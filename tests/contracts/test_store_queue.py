"""The queue's rules, as SQLite and PostgreSQL keep them."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
import pytest
import sqlalchemy as sa
from tests.choosing import deep_but
from tests.contracts.conftest import ON_BOTH

from karat.errors import KaratError, UsageError
from karat.golden.queue import MODULUS, place, shuffle_keys, shuffle_number
from karat.store.sql import golden_sets, judgments, pairs, queries, queue
from karat.store.sql.opening import Store
from karat.store.sql.schema import slot

NOW = 1_700_000_000_000_000
SECOND = 1_000_000
LEASE = 600 * SECOND


@pytest.fixture
def c(store: Store) -> Iterator[sa.Connection]:
    with store.begin() as connection:
        yield connection


def declared(c: sa.Connection, n_queries: int, *, repeats: float = 0) -> int:
    set_id = golden_sets.make(
        c,
        "shop",
        scale=(0, 3),
        grades={},
        repeats=repeats,
        salt="salt",
        guideline="Judge.",
        now=NOW,
    )
    asked = pl.DataFrame({"query_id": [f"q{i}" for i in range(n_queries)], "text": "shoes"})
    queries.put(c, set_id, asked, NOW)
    return set_id


def pool(n_queries: int, n_docs: int) -> pl.DataFrame:
    asked = pl.DataFrame({"query_id": [f"q{i}" for i in range(n_queries)]})
    return asked.join(pl.DataFrame({"doc_id": [f"d{i}" for i in range(n_docs)]}), how="cross")


def with_pool(
    c: sa.Connection, n_queries: int, n_docs: int, *, raters: int = 2, repeats: float = 0
) -> int:
    set_id = declared(c, n_queries, repeats=repeats)
    pairs.put(c, set_id, pool(n_queries, n_docs), raters, NOW)
    return set_id


def claimed(
    c: sa.Connection, set_id: int, rater: str, now: int = NOW, kind: str = "rating"
) -> queue.Claim:
    claim = queue.claim(c, set_id, rater, now=now, kind=kind)
    assert claim is not None
    return claim


def judge_all(
    c: sa.Connection, set_id: int, rater: str, order: str = "query", golds: float = 0
) -> list[queue.Claim]:
    """Every pair the rater is given until there is none, each graded 1."""
    given = []
    while (claim := queue.claim(c, set_id, rater, now=NOW, order=order, golds=golds)) is not None:
        judgments.submit(c, set_id, claim.slot_id, rater, grade=1, now=NOW)
        given.append(claim)
    return given


def test_a_pair_has_as_many_raters_as_it_may_and_no_more(c: sa.Connection) -> None:
    set_id = with_pool(c, 2, 3, raters=2)
    assert [len(judge_all(c, set_id, rater)) for rater in ("ann", "ben", "cy")] == [6, 6, 0]
    frame = pairs.frame(c, set_id)
    assert frame["judgments"].to_list() == [2] * 6
    assert frame["open"].to_list() == [0] * 6


@ON_BOTH
def test_the_database_itself_refuses_one_rating_too_many(store: Store) -> None:
    with store.begin() as c:
        set_id = with_pool(c, 1, 1, raters=2)
        judge_all(c, set_id, "ann")
        judge_all(c, set_id, "ben")
        (one, two) = c.execute(sa.select(slot).order_by(slot.c.id)).mappings().all()
    third = {"pair_id": one["pair_id"], "kind": "rating", "place": 2}
    with pytest.raises(KaratError, match="rejected a change"), store.begin() as c:
        c.execute(sa.insert(slot).values(third))
    again = sa.update(slot).where(slot.c.id == two["id"])
    with pytest.raises(KaratError, match="rejected a change"), store.begin() as c:
        c.execute(again.values(rater=one["rater"]))  # one rater in both places
    with pytest.raises(KaratError, match="rejected a change"), store.begin() as c:
        c.execute(again.values(judgment_id=one["judgment_id"]))  # one judgment in both


def test_a_page_loaded_again_shows_the_same_pair(c: sa.Connection) -> None:
    set_id = with_pool(c, 3, 3)
    first = claimed(c, set_id, "ann")
    again = claimed(c, set_id, "ann", NOW + SECOND)
    assert again.slot_id == first.slot_id
    assert again.leased_until_us == NOW + SECOND + LEASE
    late = claimed(c, set_id, "ann", NOW + 10 * LEASE)
    assert late.slot_id == first.slot_id, "nobody took it meanwhile"


@ON_BOTH
def test_a_lease_that_ended_goes_to_the_next_who_asks(c: sa.Connection) -> None:
    set_id = with_pool(c, 1, 1, raters=1)
    held = claimed(c, set_id, "ann")
    assert queue.claim(c, set_id, "ben", now=NOW + LEASE - 1) is None
    taken = claimed(c, set_id, "ben", NOW + LEASE)
    assert taken.slot_id == held.slot_id
    with pytest.raises(judgments.LeaseLost, match="another rater has it"):
        judgments.submit(c, set_id, held.slot_id, "ann", grade=1, now=NOW + LEASE)
    with pytest.raises(UsageError, match="not yours"):
        queue.later(c, set_id, held.slot_id, "ann", NOW)
    queue.later(c, set_id, taken.slot_id, "ben", NOW)
    with pytest.raises(judgments.LeaseLost, match="no lease"):
        judgments.submit(c, set_id, held.slot_id, "ben", grade=1, now=NOW + LEASE)
    with pytest.raises(judgments.LeaseLost):
        judgments.submit(c, set_id, 999, "ben", grade=1, now=NOW + LEASE)
    assert len(judgments.current(c, set_id)) == 0


def test_a_lease_that_ended_is_good_while_nobody_took_the_pair(c: sa.Connection) -> None:
    set_id = with_pool(c, 1, 1)
    held = claimed(c, set_id, "ann")
    late = NOW + 100 * LEASE
    number = judgments.submit(c, set_id, held.slot_id, "ann", grade=1, now=late)
    assert judgments.current(c, set_id).frame["judgment"].to_list() == [number]


@ON_BOTH
@pytest.mark.parametrize("order", deep_but(["mixed"], ["query", "mixed"]))
def test_each_rater_has_an_order_of_their_own_and_it_is_that_of_the_rules(
    c: sa.Connection, order: str
) -> None:
    set_id = declared(c, 4)
    bands = pl.col("doc_id").is_in(["d0", "d1"]).cast(pl.Int64)  # the others are of band 0
    pairs.put(c, set_id, pool(4, 5).with_columns(priority=bands), 2, NOW)
    seen = {}
    for rater in ("ann", "ben"):
        keys = shuffle_keys("salt", rater)

        def at(*ids: str, keys: tuple[int, int] = keys) -> int:
            return place(shuffle_number("salt", *ids), keys)

        def rank(row: tuple[str, str]) -> tuple[int, ...]:
            query_id, doc_id = row
            by_query = (at(query_id),) if order == "query" else ()
            return (int(doc_id in {"d0", "d1"}), *by_query, at(query_id, doc_id))

        given = [(each.query_id, each.doc_id) for each in judge_all(c, set_id, rater, order)]
        assert given == sorted(given, key=rank)
        assert len(set(given)) == 20
        seen[rater] = given
    assert seen["ann"] != seen["ben"]


@ON_BOTH
def test_the_order_is_worked_out_alike_with_the_largest_numbers(c: sa.Connection) -> None:
    largest = sa.literal(MODULUS - 1, sa.BigInteger)
    inside = c.execute(sa.select((largest * largest + largest) % MODULUS)).scalar_one()
    assert inside == place(MODULUS - 1, (MODULUS - 1, MODULUS - 1))


def test_what_is_put_off_comes_back_when_it_is_time(c: sa.Connection) -> None:
    set_id = with_pool(c, 1, 2, raters=1)
    first = claimed(c, set_id, "ann")
    queue.later(c, set_id, first.slot_id, "ann", NOW + 5 * SECOND)
    second = claimed(c, set_id, "ann", NOW + SECOND)
    assert second.doc_id != first.doc_id
    queue.later(c, set_id, second.slot_id, "ann", NOW + 60 * SECOND)
    assert claimed(c, set_id, "ann", NOW + 5 * SECOND).slot_id == first.slot_id
    queue.later(c, set_id, first.slot_id, "ann", NOW + 30 * SECOND)
    far = queue.progress(c, set_id, "ann", now=NOW + 40 * SECOND)
    assert (far.done, far.left, far.later) == (0, 2, 1)
    assert claimed(c, set_id, "ben", NOW + SECOND) is not None, "only Ann put it off"


def test_progress_counts_what_is_done_and_what_waits(c: sa.Connection) -> None:
    set_id = with_pool(c, 2, 2, raters=1)
    claim = claimed(c, set_id, "ann")
    judgments.submit(c, set_id, claim.slot_id, "ann", grade=1, seconds=3, now=NOW)
    held = claimed(c, set_id, "ben")
    ann, ben = (queue.progress(c, set_id, rater, now=NOW) for rater in ("ann", "ben"))
    assert (ann.done, ann.left, ann.total, ann.seconds) == (1, 2, 3, (3.0,))
    assert (ben.done, ben.left, ben.total, ben.later) == (0, 3, 3, 0)
    later = queue.progress(c, set_id, "ann", now=held.leased_until_us)
    assert later.left == 3, "Ben's lease has ended"


def from_elsewhere(c: sa.Connection, set_id: int, rater: str, grade: float = 1) -> None:
    """Record a rating of q0, d0 that is of no import."""
    said = pool(1, 1).with_columns(
        grade=pl.lit(float(grade)),
        rater=pl.lit(rater),
        source=pl.lit("human"),
        time_us=pl.lit(NOW),
    )
    assert judgments.record(c, set_id, said, None) == judgments.Recorded(1, 0)


def test_what_was_recorded_without_an_import_is_rated_too(c: sa.Connection) -> None:
    set_id = with_pool(c, 1, 2)
    from_elsewhere(c, set_id, "ann")
    from_elsewhere(c, set_id, "zed", 3)
    from_elsewhere(c, set_id, "yan", 0)
    queue.open_adjudications(c, set_id, pool(1, 1), NOW)
    assert queue.progress(c, set_id, "ann", now=NOW).left == 1
    assert [each.doc_id for each in judge_all(c, set_id, "ann")] == ["d1"]
    assert queue.claim(c, set_id, "ann", now=NOW, kind="adjudication") is None, "her own case"
    assert len(judge_all(c, set_id, "ben")) == 2


def test_what_is_imported_while_the_rater_holds_the_pair_is_superseded(c: sa.Connection) -> None:
    set_id = with_pool(c, 1, 1)
    held = claimed(c, set_id, "ann")
    for rater in ("ann", "ben"):
        from_elsewhere(c, set_id, rater, grade=3)
    judgments.submit(c, set_id, held.slot_id, "ann", grade=1, now=NOW)
    counts = judgments.current(c, set_id).frame.select("rater", "grade")
    assert sorted(counts.rows()) == [("ann", 1.0), ("ben", 3.0)]
    undone = judgments.undo(c, set_id, "ann", NOW)
    assert undone is not None
    judgments.submit(c, set_id, undone.claim.slot_id, "ann", grade=2, now=NOW)
    counts = judgments.current(c, set_id).frame.select("rater", "grade")
    assert sorted(counts.rows()) == [("ann", 2.0), ("ben", 3.0)]


@pytest.mark.parametrize("rater", ["", "  ", "a\0b", "x" * 201])
def test_a_rater_has_a_name(c: sa.Connection, rater: str) -> None:
    set_id = with_pool(c, 1, 1)
    with pytest.raises(UsageError, match="name"):
        queue.claim(c, set_id, rater, now=NOW)


def test_an_unknown_order_or_kind_is_refused(c: sa.Connection) -> None:
    set_id = with_pool(c, 1, 1)
    with pytest.raises(UsageError, match="order"):
        queue.claim(c, set_id, "ann", now=NOW, order="random")
    with pytest.raises(UsageError, match="rating or adjudication"):
        queue.claim(c, set_id, "ann", now=NOW, kind="repeat")
