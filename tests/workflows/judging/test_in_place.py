"""Rating a pair where it is seen: what is kept is of what was looked at."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

from karat.store.sql import documents, judgments, queries
from karat.store.sql.queue import PairRefused
from karat.workflows.judging.in_place import (
    GradableDocument,
    OwnRating,
    Seen,
    own_of,
    rate,
    rate_pairs,
    read_document,
    take_back,
    to_grade,
)
from karat.workflows.judging.queue import Judging
from karat.workflows.workspace.workspace import Workspace

Tick = Callable[[], int]


@pytest.fixture
def known(shop: Workspace, tick: Tick) -> Workspace:
    """A query and one document."""
    with shop.store.begin() as c:
        asked = pl.DataFrame({"query_id": ["q1"], "text": ["door"]})
        queries.put(c, shop.golden.id, asked, tick())
    describe(shop, "A door", tick())
    return shop


def describe(opened: Workspace, text: str, now: int) -> None:
    with opened.store.begin() as c:
        told = pl.DataFrame({"doc_id": ["d1"], "text": [text]})
        documents.put(c, opened.golden.id, told, now)


def facts(opened: Workspace) -> pl.DataFrame:
    with opened.store.read() as c:
        return judgments.current(c, opened.golden.id).frame


def test_what_was_seen_is_what_is_kept(known: Workspace, tick: Tick) -> None:
    shown = to_grade(known, ["d1", "d2"])
    assert (shown["d1"].text, shown["d2"]) == (
        "A door",
        GradableDocument(None, None, Seen(None, "1")),
    )
    seen = {doc_id: one.seen for doc_id, one in shown.items()}
    for doc_id, what in seen.items():
        rate(known, "ann", "q1", doc_id, 2, now=tick(), seen=what)
    kept = facts(known).sort("doc_id")
    assert kept["document_hash"].to_list() == [seen["d1"].document_sha256, None]
    assert kept["document_hash"][0] is not None


@pytest.mark.parametrize("doc_id", ["d1", "d2"])
def test_what_changed_or_came_since_is_refused_and_the_queue_left_as_it_is(
    known: Workspace, tick: Tick, doc_id: str
) -> None:
    seen = to_grade(known, [doc_id])[doc_id].seen
    with known.store.begin() as c:
        new = pl.DataFrame({"doc_id": [doc_id], "text": ["A window"]})
        documents.put(c, known.golden.id, new, tick())
    with pytest.raises(PairRefused, match="document changed since you opened it"):
        rate(known, "ann", "q1", doc_id, 2, now=tick(), seen=seen)
    with pytest.raises(PairRefused, match="document and guideline changed"):
        rate(known, "ann", "q1", doc_id, 2, now=tick(), seen=Seen("0", "0"))
    assert facts(known).is_empty()
    assert rate(known, "ann", "q1", doc_id, 2, now=tick())  # not checked


def test_the_newest_is_taken_back_once_and_may_be_given_again(known: Workspace, tick: Tick) -> None:
    first = rate(known, "ann", "q1", "d1", 2, now=tick())
    second = rate(known, "ann", "q1", "d2", 3, now=tick())
    held = own_of(known, "ann", "q1")
    assert {doc: (one.grade, one.newest) for doc, one in held.items()} == {
        "d1": (2.0, False),
        "d2": (3.0, True),
    }
    assert not own_of(known, "ben", "q1")
    with pytest.raises(PairRefused, match="judged another pair since"):
        take_back(known, "ann", "q1", "d1", first, now=tick())
    assert not take_back(known, "ben", "q1", "d2", second, now=tick())  # it is not ben's
    assert not take_back(known, "ann", "q1", "d1", second, now=tick())  # nor of this pair
    assert take_back(known, "ann", "q1", "d2", second, now=tick())
    assert not take_back(known, "ann", "q1", "d2", second, now=tick())  # sent twice
    assert facts(known)["doc_id"].to_list() == ["d1"]
    assert take_back(known, "ann", "q1", "d1", first, now=tick())
    assert rate(known, "ann", "q1", "d1", 0, now=tick())
    assert facts(known)["grade"].to_list() == [0.0]


def test_what_was_taken_back_waits_for_others_and_not_for_who_saw_their_votes(
    known: Workspace, tick: Tick
) -> None:
    number = rate(known, "ann", "q1", "d1", 3, now=tick())
    rate_pairs(known, "ben", [("q1", "d1")], 1, now=tick())
    assert take_back(known, "ann", "q1", "d1", number, now=tick())
    (again,) = rate_pairs(known, "ann", [("q1", "d1")], 1, now=tick())
    assert again.refused is not None
    assert "seen what others said" in again.refused
    assert Judging(known, "ann", tick).card() is None
    card = Judging(known, "eve", tick).card()
    assert card is not None
    assert card.claim.doc_id == "d1"


def test_who_opened_the_form_before_others_graded_is_refused(known: Workspace, tick: Tick) -> None:
    rate(known, "ben", "q1", "d1", 1, now=tick())
    with pytest.raises(PairRefused, match="another rater has graded it since"):
        rate(known, "ann", "q1", "d1", 1, now=tick(), token="t1")
    assert facts(known)["rater"].to_list() == ["ben"]
    rate(known, "ben", "q1", "d1", 2, now=tick())  # one's own is corrected
    assert facts(known)["grade"].to_list() == [2.0]


def test_a_form_sent_again_with_another_grade_is_told(known: Workspace, tick: Tick) -> None:
    first = rate(known, "ann", "q1", "d1", 3, now=tick(), token="t1")
    assert rate(known, "ann", "q1", "d1", 3, now=tick(), token="t1") == first
    with pytest.raises(PairRefused, match="sent before, with another grade"):
        rate(known, "ann", "q1", "d1", 1, now=tick(), token="t1")
    assert facts(known)["grade"].to_list() == [3.0]


def test_a_document_is_read_with_its_judgments_and_says_who_may_grade_it(
    known: Workspace, tick: Tick
) -> None:
    found = read_document(known, "ann", "q1", "d1")
    assert (found.text, found.history.height, found.own, found.by_others) == (
        "A door",
        0,
        None,
        False,
    )
    first = rate(known, "ann", "q1", "d1", 2, now=tick(), seen=found.seen)
    rate(known, "ben", "q1", "d2", 1, now=tick(), seen=read_document(known, "ben", "q1", "d2").seen)
    own = read_document(known, "ann", "q1", "d1")
    assert (own.own, own.by_others) == (OwnRating(first, 2.0, newest=True), False)
    other = read_document(known, "ann", "q1", "d2")  # not in the store
    assert (other.text, other.title, other.attributes, other.by_others) == (None, None, {}, True)
    assert other.history.select("rater", "grade", "counts").rows() == [("ben", 1.0, True)]
    rate(known, "ann", "q1", "d1", 3, now=tick(), seen=own.seen)
    both = read_document(known, "ben", "q1", "d1").history  # the newest first
    assert both.select("grade", "counts").rows() == [(3.0, True), (2.0, False)]
