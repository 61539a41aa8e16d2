"""Hidden repeats and gold items, as SQLite and PostgreSQL keep them."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
import pytest
import sqlalchemy as sa
from tests.contracts.conftest import ON_BOTH

from karat.golden.queue import REPEAT_GAP
from karat.store.sql import golden_sets, judgments, pairs, queries, queue
from karat.store.sql.opening import Store
from karat.store.sql.schema import slot

NOW = 1_700_000_000_000_000


@pytest.fixture
def c(store: Store) -> Iterator[sa.Connection]:
    with store.begin() as connection:
        yield connection


@pytest.fixture(scope="module")
def every(deep: bool) -> int:
    """Around one pair of how many the progress is looked at."""
    return 1 if deep else 3  # what is hidden comes at other steps than these


def pool(n_queries: int, n_docs: int) -> pl.DataFrame:
    asked = pl.DataFrame({"query_id": [f"q{i}" for i in range(n_queries)]})
    return asked.join(pl.DataFrame({"doc_id": [f"d{i}" for i in range(n_docs)]}), how="cross")


def with_pool(c: sa.Connection, n_queries: int, n_docs: int, *, repeats: float = 0) -> int:
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
    pairs.put(c, set_id, pool(n_queries, n_docs), 2, NOW)
    return set_id


def know(c: sa.Connection, set_id: int, grades: dict[tuple[str, str], float]) -> pairs.Queued:
    """Put pairs whose grade is known into the queue."""
    rows = [(*pair, grade) for pair, grade in grades.items()]
    known = pl.DataFrame(rows, schema=["query_id", "doc_id", "gold_grade"], orient="row")
    return pairs.put(c, set_id, known, 2, NOW)


def judge_all(
    c: sa.Connection,
    set_id: int,
    rater: str,
    every: int,
    order: str = "query",
    golds: float = 0,
) -> list[queue.Claim]:
    """Every pair the rater is given until there is none; progress falls by one with each.

    It is looked at around one pair of ``every``.
    """
    given: list[queue.Claim] = []

    def total() -> int:
        far = queue.progress(c, set_id, rater, now=NOW, order=order, golds=golds)
        assert far.done == len(given)
        return far.total

    counted = [total()]
    while (claim := queue.claim(c, set_id, rater, now=NOW, order=order, golds=golds)) is not None:
        looked = len(given) % every == 0
        if looked:
            counted.append(total())
        judgments.submit(c, set_id, claim.slot_id, rater, grade=1, now=NOW)
        given.append(claim)
        if looked:
            counted.append(total())
    assert set(counted) == {len(given)}, "what is hidden shows in the progress"
    return given


@pytest.mark.parametrize(
    ("order", "docs"),
    [
        pytest.param("query", 4, marks=pytest.mark.deep),
        ("query", 10),
        pytest.param("mixed", 10, marks=pytest.mark.deep),
    ],
)
def test_hidden_repeats_come_among_the_others_and_are_the_raters_own(
    c: sa.Connection, order: str, docs: int, every: int
) -> None:
    set_id = with_pool(c, 80 // docs, docs, repeats=0.1)
    given = judge_all(c, set_id, "ann", every, order)
    kinds = [each.kind for each in given]
    # 80 pairs in blocks of 11, a repeat in each block but the first two (REPEAT_GAP = 20).
    assert kinds.count("rating") == 80
    assert 5 <= kinds.count("repeat") <= 7
    pairs_given = [(each.query_id, each.doc_id) for each in given]
    repeats = [i for i, kind in enumerate(kinds) if kind == "repeat"]
    assert all(i - pairs_given.index(pairs_given[i]) > REPEAT_GAP for i in repeats)
    assert len({pairs_given[i] for i in repeats}) == len(repeats)
    judged = judgments.current(c, set_id)
    assert judged.frame["kind"].value_counts().height == 2
    assert judged.ratings.height == 80
    bens = [each.kind for each in judge_all(c, set_id, "ben", every, order)]
    assert bens.count("rating") == 80, "Ann's repeats took nobody's place"


def test_nothing_hidden_comes_between_two_documents_of_a_query(
    c: sa.Connection, every: int
) -> None:
    set_id = with_pool(c, 10, 8, repeats=0.2)
    assert know(c, set_id, {(f"q{n}", "g"): 1.0 for n in range(10)}) == pairs.Queued(10, 0, 0)
    for rater in ("ann", "ben"):
        given = judge_all(c, set_id, rater, every, golds=0.1)
        hidden = [each.kind for each in given if each.kind != "rating"]
        assert min(hidden.count("repeat"), hidden.count("gold")) >= 5
        rated = [each.query_id for each in given if each.kind == "rating"]
        for place, each in enumerate(given):
            if each.kind != "rating":
                done = sum(one.kind == "rating" for one in given[:place])
                assert done == 0 or rated[done - 1] != rated[done]
                assert each.query_id != rated[done], "nor is it the first of the next"


@pytest.mark.deep
def test_a_rater_with_one_query_is_dealt_nothing_hidden(c: sa.Connection, every: int) -> None:
    set_id = with_pool(c, 1, 60, repeats=0.5)
    assert {each.kind for each in judge_all(c, set_id, "ann", every)} == {"rating"}
    assert "repeat" in {each.kind for each in judge_all(c, set_id, "ben", every, "mixed")}


def test_gold_items_go_to_every_rater_once(c: sa.Connection, every: int) -> None:
    set_id = with_pool(c, 5, 4)
    know(c, set_id, {("q0", "g"): 3.0, ("q1", "g"): 0.0})
    for rater in ("ann", "ben", "cy"):
        given = judge_all(c, set_id, rater, every, golds=0.2)
        gold = [each for each in given if each.kind == "gold"]
        assert len(given) - len(gold) == (0 if rater == "cy" else 20)
        assert len({each.query_id for each in gold}) == len(gold)
        if rater != "cy":
            assert len(gold) == 2
    assert judgments.current(c, set_id).ratings.height == 40


def test_no_share_is_no_gold_items(c: sa.Connection, every: int) -> None:
    set_id = with_pool(c, 5, 4)
    know(c, set_id, {("q0", "g"): 3.0})
    assert {each.kind for each in judge_all(c, set_id, "ann", every, golds=0)} == {"rating"}


@ON_BOTH
def test_a_known_grade_of_a_queued_pair_is_taken_on(c: sa.Connection) -> None:
    set_id = with_pool(c, 1, 3)
    claim = queue.claim(c, set_id, "ann", now=NOW)
    assert claim is not None
    judgments.submit(c, set_id, claim.slot_id, "ann", grade=1, now=NOW)
    given = {("q0", "d0"): 3.0, ("q0", "d1"): 0.0, ("q0", "d2"): 2.0, ("q0", "new"): 1.0}
    assert know(c, set_id, given) == pairs.Queued(added=1, raised=0, golds=3)
    assert know(c, set_id, given) == pairs.Queued(added=0, raised=0, golds=0)
    assert know(c, set_id, {("q0", "d0"): 1.0}) == pairs.Queued(added=0, raised=0, golds=1)
    assert pairs.put(c, set_id, pool(1, 3), 2, NOW).added == 0, "a pool takes no grade away"
    frame = pairs.frame(c, set_id)
    assert frame["gold_grade"].to_list() == [1.0, 0.0, 2.0, 1.0]
    assert frame["open"].to_list() == [0] * 4, "it tests raters, and is not rated"
    assert frame["judgments"].sum() == 1, "what was said stays"


@pytest.mark.parametrize("leased", [True, False])
def test_a_known_grade_leaves_no_slot_to_rate(c: sa.Connection, *, leased: bool) -> None:
    set_id = with_pool(c, 1, 1)
    claim = queue.claim(c, set_id, "ann", now=NOW, lease_us=10)
    assert claim is not None
    at = NOW + (9 if leased else 10)
    known = pool(1, 1).with_columns(gold_grade=pl.lit(2.0))
    assert pairs.put(c, set_id, known, 2, at).golds == 1
    assert pairs.frame(c, set_id)["open"].to_list() == [0]
    left = c.execute(sa.select(slot.c.rater)).scalars().all()
    assert left == (["ann"] if leased else [])
    if leased:
        assert queue.progress(c, set_id, "ann", now=at).left == 1
        again = queue.claim(c, set_id, "ann", now=at, lease_us=1)
        assert again is not None, "who is at it may end it"
        assert again.slot_id == claim.slot_id
    for rater in ("ann", "ben"):
        assert queue.claim(c, set_id, rater, now=NOW + 10) is None
        assert queue.progress(c, set_id, rater, now=NOW + 10, golds=0).left == 0


@ON_BOTH
def test_a_correction_makes_no_old_query_the_present_one(c: sa.Connection) -> None:
    set_id = with_pool(c, 6, 12, repeats=0.5)
    first: queue.Claim | None = None

    def step() -> queue.Claim:
        claim = queue.claim(c, set_id, "ann", now=NOW)
        assert claim is not None
        judgments.submit(c, set_id, claim.slot_id, "ann", grade=1, now=NOW)
        return claim

    first = step()
    kinds: list[str] = []
    while kinds[-3:] != ["repeat", "rating", "rating"]:  # a repeat is owed again in the query
        kinds.append(step().kind)
    present = step().query_id
    far = queue.progress(c, set_id, "ann", now=NOW)
    for how in ("import", "correction", "undo"):
        if how == "import":
            said = pl.DataFrame({"query_id": [first.query_id], "doc_id": [first.doc_id]})
            given = {"grade": 2.0, "rater": "ann", "source": "human", "time_us": NOW}
            facts = said.with_columns(pl.lit(v).alias(k) for k, v in given.items())
            assert judgments.record(c, set_id, facts, None) == judgments.Recorded(0, 1)
        else:
            judgments.submit(c, set_id, first.slot_id, "ann", grade=3, now=NOW)
        if how == "undo":  # the newest judgment is the correction
            undone = judgments.undo(c, set_id, "ann", NOW)
            assert undone is not None
            assert undone.claim.slot_id == step().slot_id == first.slot_id
        assert queue.progress(c, set_id, "ann", now=NOW).left == far.left, how
        following = step()
        assert (following.kind, following.query_id) == ("rating", present), how
        far = queue.progress(c, set_id, "ann", now=NOW)


@pytest.mark.deep  # 60 judgments; other corrections: above
def test_a_correction_brings_no_repeat_forward(c: sa.Connection) -> None:
    set_id = with_pool(c, 6, 12, repeats=0.5)
    given: list[tuple[str, str]] = []
    n_repeats = 0
    for turn in range(60):
        claim = queue.claim(c, set_id, "ann", now=NOW, order="mixed")
        assert claim is not None
        judgments.submit(c, set_id, claim.slot_id, "ann", grade=1, now=NOW)
        shown = (claim.query_id, claim.doc_id)
        if claim.kind == "repeat":
            n_repeats += 1
            assert len(given) - given.index(shown) > REPEAT_GAP
        given.append(shown)
        old = pl.DataFrame(given[:REPEAT_GAP], schema=["query_id", "doc_id"], orient="row")
        facts = old.with_columns(
            grade=pl.lit(2.0 + turn % 2),
            rater=pl.lit("ann"),
            source=pl.lit("human"),
            time_us=pl.lit(NOW),
        )
        assert judgments.record(c, set_id, facts, None).corrected == old.height
    assert n_repeats > 5


def test_of_filled_places_only_the_newest_is_corrected_if_asked_so(c: sa.Connection) -> None:
    set_id = with_pool(c, 1, 3)
    first, second = (claimed_and_judged(c, set_id) for _ in range(2))
    held = queue.claim(c, set_id, "ann", now=NOW)
    assert held is not None

    def again(slot_id: int, **more: object) -> int:
        values = {"grade": 3, "now": NOW, "newest_only": True} | more
        return judgments.submit(c, set_id, slot_id, "ann", **values)  # type: ignore[arg-type]

    with pytest.raises(judgments.Overtaken, match="another pair since"):
        again(first)
    new = again(second)
    assert judgments.superseded_by(c, new) == (1,)
    assert again(second) > new
    again(held.slot_id)
    with pytest.raises(judgments.Overtaken):
        again(second)
    for _ in range(2):
        judgments.undo(c, set_id, "ann", NOW)
    again(first)  # by undoing one gets there
    assert again(first, newest_only=False)
    with pytest.raises(judgments.LeaseLost):  # as if its slot had gone, and left its number
        again(first, pair_shown=judgments.pair_key("q0", "elsewhere"))


def claimed_and_judged(c: sa.Connection, set_id: int) -> int:
    """Judge ann's next pair; returns its slot."""
    claim = queue.claim(c, set_id, "ann", now=NOW)
    assert claim is not None
    number = judgments.submit(c, set_id, claim.slot_id, "ann", grade=1, now=NOW)
    assert judgments.superseded_by(c, number) is None
    return claim.slot_id


@pytest.mark.parametrize(
    ("said", "kept"), [(0, 0), (86_400, 86_400), (86_401, None), (1e300, None), (-1, None)]
)
def test_a_time_that_cannot_be_is_not_kept(
    c: sa.Connection, said: float, kept: float | None
) -> None:
    set_id = with_pool(c, 1, 1)
    claim = queue.claim(c, set_id, "ann", now=NOW)
    assert claim is not None
    judgments.submit(c, set_id, claim.slot_id, "ann", grade=1, seconds=said, now=NOW)
    assert judgments.current(c, set_id).frame["seconds"].to_list() == [kept]
