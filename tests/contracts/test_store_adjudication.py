"""Adjudications: who settles what, while there is something to settle."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
import pytest
import sqlalchemy as sa
from tests.contracts.conftest import ON_BOTH

from karat.golden.aggregation import contradictions, disagreements
from karat.store.sql import golden_sets, judgments, pairs, queries, queue
from karat.store.sql.opening import Store

NOW = 1_700_000_000_000_000
SECOND = 1_000_000
LEASE = 600 * SECOND


@pytest.fixture
def c(store: Store) -> Iterator[sa.Connection]:
    with store.begin() as connection:
        yield connection


def pool(n_queries: int, n_docs: int) -> pl.DataFrame:
    asked = pl.DataFrame({"query_id": [f"q{i}" for i in range(n_queries)]})
    return asked.join(pl.DataFrame({"doc_id": [f"d{i}" for i in range(n_docs)]}), how="cross")


def with_pool(c: sa.Connection, n_queries: int, n_docs: int, *, raters: int = 2) -> int:
    set_id = golden_sets.make(
        c,
        "shop",
        scale=(0, 3),
        grades={},
        repeats=0,
        salt="salt",
        guideline="Judge.",
        now=NOW,
    )
    asked = pl.DataFrame({"query_id": [f"q{i}" for i in range(n_queries)], "text": "shoes"})
    queries.put(c, set_id, asked, NOW)
    pairs.put(c, set_id, pool(n_queries, n_docs), raters, NOW)
    return set_id


def claimed(
    c: sa.Connection, set_id: int, rater: str, now: int = NOW, kind: str = "rating"
) -> queue.Claim:
    claim = queue.claim(c, set_id, rater, now=now, kind=kind)
    assert claim is not None
    return claim


def rate(c: sa.Connection, set_id: int, rater: str, *grades: float) -> list[queue.Claim]:
    """Judge the next pairs."""
    given = []
    for grade in grades:
        given.append(claimed(c, set_id, rater))
        judgments.submit(c, set_id, given[-1].slot_id, rater, grade=grade, now=NOW)
    return given


def record(c: sa.Connection, set_id: int, rater: str, grade: float, source: str = "human") -> None:
    """Record a rating of q0, d0 from elsewhere."""
    said = pool(1, 1).with_columns(
        grade=pl.lit(float(grade)),
        rater=pl.lit(rater),
        source=pl.lit(source),
        time_us=pl.lit(NOW),
    )
    done = judgments.record(c, set_id, said, None)
    assert done.added + done.corrected == 1


def waiting(c: sa.Connection, set_id: int) -> int:
    """Adjudications that are open."""
    return int(pairs.frame(c, set_id)["adjudications_open"].sum())


@ON_BOTH
def test_disagreements_go_to_somebody_who_did_not_rate_the_pair(c: sa.Connection) -> None:
    set_id = with_pool(c, 1, 1)
    rate(c, set_id, "ann", 0)
    rate(c, set_id, "ben", 3)
    elsewhere = pl.DataFrame({"query_id": "q0", "doc_id": "imported", "rater": ["dan", "eve"]})
    facts = elsewhere.with_columns(
        grade=pl.Series([0.0, 2.0]), source=pl.lit("human"), time_us=pl.lit(NOW)
    )
    judgments.record(c, set_id, facts, None)
    unsettled = pl.DataFrame({"query_id": ["q0", "q0"], "doc_id": ["d0", "imported"]})
    assert queue.open_adjudications(c, set_id, unsettled, NOW) == 2
    assert queue.open_adjudications(c, set_id, unsettled, NOW) == 0
    assert claimed(c, set_id, "ann", kind="adjudication").doc_id == "imported"
    assert queue.claim(c, set_id, "cy", now=NOW) is None, "not to be rated, only to be settled"
    claim = claimed(c, set_id, "cy", kind="adjudication")
    assert (claim.doc_id, claim.kind) == ("d0", "adjudication")
    judgments.submit(c, set_id, claim.slot_id, "cy", grade=2, now=NOW)
    assert queue.claim(c, set_id, "cy", now=NOW, kind="adjudication") is None
    kinds = judgments.current(c, set_id).frame["kind"].to_list()
    assert kinds == ["rating"] * 4 + ["adjudication"]
    assert pairs.frame(c, set_id)["adjudications_open"].to_list() == [0, 1]
    assert judgments.undo(c, set_id, "cy", NOW) is None, "no rating of theirs"
    undone = judgments.undo(c, set_id, "cy", NOW, kind="adjudication")
    assert undone is not None
    assert claimed(c, set_id, "cy", kind="adjudication").slot_id == undone.claim.slot_id


def test_each_desk_takes_back_its_own(c: sa.Connection) -> None:
    set_id = with_pool(c, 1, 2)
    record(c, set_id, "ann", 0)
    record(c, set_id, "ben", 3)
    queue.open_adjudications(c, set_id, pool(1, 1), NOW)
    held = claimed(c, set_id, "cat", kind="adjudication")
    judgments.submit(c, set_id, held.slot_id, "cat", grade=2, now=NOW)
    (rated,) = rate(c, set_id, "cat", 1)
    settled = judgments.undo(c, set_id, "cat", NOW, kind="adjudication")
    assert settled is not None
    assert settled.claim.slot_id == held.slot_id, "though the rating is newer"
    judgments.submit(c, set_id, held.slot_id, "cat", grade=3, now=NOW)
    undone = judgments.undo(c, set_id, "cat", NOW)
    assert undone is not None
    assert undone.claim.slot_id == rated.slot_id, "though the adjudication is newer"


@pytest.mark.parametrize("how", ["undo", "correction", "import"])
def test_what_raters_came_to_agree_on_is_settled_by_nobody(c: sa.Connection, how: str) -> None:
    set_id = with_pool(c, 1, 1)
    rate(c, set_id, "ann", 0)
    (bens,) = rate(c, set_id, "ben", 3)
    queue.open_adjudications(c, set_id, pool(1, 1), NOW)
    assert waiting(c, set_id) == 1
    if how == "undo":
        assert judgments.undo(c, set_id, "ben", NOW) is not None
        assert waiting(c, set_id) == 0
    if how == "import":
        record(c, set_id, "ben", 0)
    else:
        judgments.submit(c, set_id, bens.slot_id, "ben", grade=0, now=NOW)
    assert waiting(c, set_id) == 0
    assert queue.claim(c, set_id, "cat", now=NOW, kind="adjudication") is None
    # They fall out again: it need not be queued again.
    judgments.submit(c, set_id, bens.slot_id, "ben", grade=3, now=NOW)
    assert waiting(c, set_id) == 1
    assert claimed(c, set_id, "cat", kind="adjudication").doc_id == "d0"


VOTES = [(0, 0), (0, 1), (1, 2), (1, 3), (2, 3), (0, 3), (3, 3), (0.5, 1), (0, 0.5), (0.5, 2.5)]


@ON_BOTH
def test_raters_disagree_here_as_they_do_by_the_rule(c: sa.Connection) -> None:
    set_id = with_pool(c, 1, 2 * len(VOTES))
    rows = []
    for n, votes in enumerate(VOTES):
        for rater, grade in zip(("ann", "ben"), votes, strict=True):
            rows.append(("q0", f"d{n}", rater, float(grade), "human"))
            # Or people agree, and contradict what was imported.
            there = f"d{n + len(VOTES)}"
            source = "human" if rater == "ann" else "import"
            rows.append(("q0", there, rater, float(grade), source))
    names = ["query_id", "doc_id", "rater", "grade", "source"]
    said = pl.DataFrame(rows, schema=names, orient="row").with_columns(time_us=pl.lit(NOW))
    judgments.record(c, set_id, said, None)
    queue.open_adjudications(c, set_id, said.select("query_id", "doc_id").unique(), NOW)
    judged = judgments.current(c, set_id)
    by_rule = {*disagreements(judged)["doc_id"], *contradictions(judged)["doc_id"]}
    frame = pairs.frame(c, set_id).filter(pl.col("adjudications_open") == 1)
    assert set(frame["doc_id"]) == by_rule
    assert 0 < len(by_rule) < 2 * len(VOTES)


def settled_by_cat(c: sa.Connection) -> tuple[int, queue.Claim]:
    """A pair for three raters: Ann and Bob rated it, Cat holds its adjudication."""
    set_id = with_pool(c, 1, 1, raters=3)
    rate(c, set_id, "ann", 0)
    rate(c, set_id, "bob", 3)
    queue.open_adjudications(c, set_id, pool(1, 1), NOW)
    return set_id, claimed(c, set_id, "cat", kind="adjudication")


def nothing_to_rate(c: sa.Connection, set_id: int, rater: str, now: int = NOW) -> bool:
    n_left = queue.progress(c, set_id, rater, now=now).left
    return queue.claim(c, set_id, rater, now=now) is None and n_left == 0


def test_who_settles_a_pair_does_not_rate_it(c: sa.Connection) -> None:
    set_id, held = settled_by_cat(c)
    assert nothing_to_rate(c, set_id, "cat"), "it is held"
    judgments.submit(c, set_id, held.slot_id, "cat", grade=2, now=NOW)
    assert nothing_to_rate(c, set_id, "cat"), "it is settled"
    assert claimed(c, set_id, "dan").kind == "rating", "the place is there for others"


@pytest.mark.parametrize("how", ["later", "lease", "undo"])
def test_who_gave_an_adjudication_back_has_seen_the_votes(c: sa.Connection, how: str) -> None:
    set_id, held = settled_by_cat(c)
    late = NOW + 2 * LEASE
    if how == "later":
        queue.later(c, set_id, held.slot_id, "cat", NOW + SECOND)
    if how == "undo":
        judgments.submit(c, set_id, held.slot_id, "cat", grade=2, now=NOW)
        assert judgments.undo(c, set_id, "cat", NOW, kind="adjudication") is not None
    assert claimed(c, set_id, "dan", late, "adjudication").slot_id == held.slot_id
    assert nothing_to_rate(c, set_id, "cat", late)
    judgments.submit(c, set_id, held.slot_id, "dan", grade=2, now=late)
    assert nothing_to_rate(c, set_id, "cat", late), "settled by another"
    assert claimed(c, set_id, "eve", late).kind == "rating"


def test_who_put_a_disagreement_off_is_dealt_it_again(c: sa.Connection) -> None:
    set_id, held = settled_by_cat(c)
    queue.later(c, set_id, held.slot_id, "cat", NOW + SECOND)
    assert queue.claim(c, set_id, "cat", now=NOW, kind="adjudication") is None
    again = claimed(c, set_id, "cat", NOW + 2 * SECOND, "adjudication")
    assert again.slot_id == held.slot_id


def unsettled(c: sa.Connection, set_id: int, rater: str, now: int = NOW) -> tuple[int, int]:
    return queue.unsettled(c, set_id, rater, now)


def test_who_put_a_rating_off_saw_no_votes(c: sa.Connection) -> None:
    set_id = with_pool(c, 1, 1, raters=3)
    put_off = claimed(c, set_id, "cat")
    queue.later(c, set_id, put_off.slot_id, "cat", NOW + SECOND)
    rate(c, set_id, "ann", 0)
    rate(c, set_id, "bob", 3)
    queue.open_adjudications(c, set_id, pool(1, 1), NOW)
    assert queue.claim(c, set_id, "cat", now=NOW) is None
    assert queue.progress(c, set_id, "cat", now=NOW).later == 1
    late = NOW + 2 * SECOND
    assert queue.progress(c, set_id, "cat", now=late).left == 1
    rating = claimed(c, set_id, "cat", late)
    assert rating.kind == "rating"
    # It is the votes that bar from rating, put off before and after as may be.
    queue.later(c, set_id, rating.slot_id, "cat", late)
    held = claimed(c, set_id, "cat", late, "adjudication")
    queue.later(c, set_id, held.slot_id, "cat", late)
    assert nothing_to_rate(c, set_id, "cat", late + SECOND)


def test_an_adjudication_that_is_held_is_given_back_when_raters_agree(c: sa.Connection) -> None:
    set_id = with_pool(c, 1, 1)
    (anns,) = rate(c, set_id, "ann", 0)
    rate(c, set_id, "bob", 3)
    queue.open_adjudications(c, set_id, pool(1, 1), NOW)
    held = claimed(c, set_id, "cat", kind="adjudication")
    judgments.submit(c, set_id, anns.slot_id, "ann", grade=3, now=NOW)
    before = judgments.history(c, set_id, "q0", "d0").height
    with pytest.raises(judgments.LeaseLost, match="the raters agree now"):
        judgments.submit(c, set_id, held.slot_id, "cat", grade=2, now=NOW)
    assert judgments.history(c, set_id, "q0", "d0").height == before
    assert queue.claim(c, set_id, "cat", now=NOW, kind="adjudication") is None
    judgments.submit(c, set_id, anns.slot_id, "ann", grade=0, now=NOW)
    again = claimed(c, set_id, "dan", kind="adjudication")
    assert again.slot_id == held.slot_id, "Cat holds it no more"
    judgments.submit(c, set_id, again.slot_id, "dan", grade=2, now=NOW)
    judgments.submit(c, set_id, anns.slot_id, "ann", grade=3, now=NOW)
    judgments.submit(c, set_id, again.slot_id, "dan", grade=3, now=NOW)
    assert judgments.current(c, set_id).frame["grade"].to_list() == [3, 3, 3], "it was settled"


def test_what_waits_is_what_would_be_dealt(c: sa.Connection) -> None:
    set_id, held = settled_by_cat(c)
    assert unsettled(c, set_id, "cat") == (1, 0), "her own, that she holds"
    assert unsettled(c, set_id, "ann") == (0, 0), "her own case"
    assert unsettled(c, set_id, "dan") == (0, 0), "Cat holds it"
    assert unsettled(c, set_id, "dan", NOW + LEASE) == (1, 0), "her lease has ended"
    queue.later(c, set_id, held.slot_id, "cat", NOW + SECOND)
    assert unsettled(c, set_id, "cat") == (0, 1)
    assert unsettled(c, set_id, "cat", NOW + SECOND) == (1, 0)
    assert unsettled(c, set_id, "dan") == (1, 0)


def test_who_has_put_three_disagreements_off_puts_off_no_fourth(c: sa.Connection) -> None:
    set_id = with_pool(c, 1, 5)
    rate(c, set_id, "ann", *[0] * 5)
    rate(c, set_id, "bob", *[3] * 5)
    queue.open_adjudications(c, set_id, pool(1, 5), NOW)
    late, read = NOW + 3600 * SECOND, []
    for _ in range(3):
        held = claimed(c, set_id, "cat", kind="adjudication")
        read.append(held.slot_id)
        queue.later(c, set_id, held.slot_id, "cat", late, NOW)
    fourth = claimed(c, set_id, "cat", kind="adjudication")
    with pytest.raises(queue.TooManyPutOff, match="3 disagreements"):
        queue.later(c, set_id, fourth.slot_id, "cat", late, NOW)
    # (It was let go in this transaction, which whoever is refused does not end well.)
    fourth = claimed(c, set_id, "cat", kind="adjudication")
    judgments.submit(c, set_id, fourth.slot_id, "cat", grade=2, now=NOW)
    fifth = claimed(c, set_id, "cat", kind="adjudication")
    with pytest.raises(queue.TooManyPutOff):
        queue.later(c, set_id, fifth.slot_id, "cat", late, NOW)
    # What comes back counts no more; nor does what others put off.
    queue.later(c, set_id, claimed(c, set_id, "dan", kind="adjudication").slot_id, "dan", late, NOW)
    again = claimed(c, set_id, "cat", late, "adjudication")
    queue.later(c, set_id, again.slot_id, "cat", late + SECOND, late)
