"""Browsing: a golden set as lists, with what each row is."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

from karat.errors import UsageError
from karat.tables import Pairs, Run
from karat.tables.golden.golden_sets import Exchange
from karat.workflows.golden.agreement import put_before_adjudicator
from karat.workflows.golden.editions import freeze
from karat.workflows.golden.import_ import import_exchange
from karat.workflows.golden.pooling import enqueue, pool
from karat.workflows.golden.queries import (
    column_of,
    disagreements_listed,
    given_by,
    imports_in,
    judgments_in,
    pair_in,
    pairs_in,
    queries_in,
    query_in,
    ready_in,
)
from karat.workflows.judging.queue import Judging
from karat.workflows.workspace.stored_inputs import classes_in
from karat.workflows.workspace.workspace import Workspace

Tick = Callable[[], int]


@pytest.fixture
def judged(shop: Workspace, tick: Tick) -> Workspace:
    """Query q1 with documents a and b, which ann and ben judged: 0 and 3, 1 and 1."""
    documents = pl.DataFrame({"doc_id": ["a", "b"], "title": ["A", None], "text": ["x", "y"]})
    queries = pl.DataFrame({"query_id": ["q1", "q2"], "text": ["door", None], "tags": [["x"], []]})
    found = Exchange("csv", queries=queries, documents=documents)
    import_exchange(shop, found, file="f", sha256="", now=tick())
    pool(shop, [Run.from_dict({"q1": {"a": 2, "b": 1}}, "lexical")], now=tick())
    for name, grades in (("ann", {"a": 0, "b": 1}), ("ben", {"a": 3, "b": 1})):
        rater = Judging(shop, name, tick)
        while (card := rater.card()) is not None:
            rater.submit(card, grades[card.claim.doc_id])
    return shop


def states(opened: Workspace) -> dict[str, str]:
    """What each pair is."""
    return dict(pairs_in(opened).select("doc_id", "state").iter_rows())


def test_a_pair_is_what_it_is_waiting_for(judged: Workspace, tick: Tick) -> None:
    assert states(judged) == {"a": "disagreement", "b": "graded"}
    more = pl.DataFrame({"query_id": ["q2", "q2"], "doc_id": ["a", "b"], "gold_grade": [None, 2.0]})
    enqueue(judged, Pairs(more, "more"), now=tick())
    found = pairs_in(judged).filter(query_id="q2").select("doc_id", "state", "waiting")
    assert found.rows() == [("a", "to judge", 2), ("b", "gold", 0)]
    assert put_before_adjudicator(judged, None, person="eve", now=tick()) == 1
    assert pairs_in(judged)["state"][0] == "to adjudicate"
    eve = Judging(judged, "eve", tick, adjudicate=True)
    card = eve.card()
    assert card is not None
    eve.submit(card, 2)
    row = pairs_in(judged).row(0, named=True)
    assert (row["state"], row["grade"], row["adjudicated"]) == ("settled", 2.0, 2.0)
    assert (row["said"], row["low"], row["high"]) == ("ann 0, ben 3", 0.0, 3.0)
    assert not disagreements_listed(judged).height


def test_cells_count_each_rating_once(judged: Workspace) -> None:
    frame = pairs_in(judged)
    assert given_by(frame, ("ann", 0.0), ("ben", 3.0))["doc_id"].to_list() == ["a"]
    assert given_by(frame, (None, 3.0), (None, 0.0))["doc_id"].to_list() == ["a"]
    assert given_by(frame, (None, 1.0), (None, 1.0))["doc_id"].to_list() == ["b"]
    assert not given_by(frame, (None, 1.0), (None, 1.0), (None, 1.0)).height


def test_queries_are_counted(judged: Workspace, tick: Tick) -> None:
    freeze(judged, "first", now=tick())
    frame, names = queries_in(judged, {"tags"})
    counts = frame.select("query_id", "documents", "graded", "judgments", "waiting", "editions")
    assert counts.rows() == [("q1", 2, 2, 4, 0, 1), ("q2", 0, 0, 0, 0, 1)]
    assert names == {"attribute tags": "tags"}
    assert frame["attribute tags"].to_list() == ["x", ""]
    assert frame["words"].to_list() == ["1", None]
    found = query_in(judged, "q1")
    assert found.editions == ["first"]
    assert found.documents["title"].to_list() == ["A", None]
    with pytest.raises(UsageError, match="no query 'q9'"):
        query_in(judged, "q9")


def test_a_pair_keeps_its_history(judged: Workspace, tick: Tick) -> None:
    ann = Judging(judged, "ann", tick)
    ann.undo()
    found = pair_in(judged, "q1", "b")
    assert (found.text, found.document and found.document["text"]) == ("door", "y")
    assert found.history["counts"].sum() + 2 == found.history.height or found.history.height == 2
    assert judgments_in(judged).height == 3
    with pytest.raises(UsageError, match="neither queued nor judged"):
        pair_in(judged, "q1", "c")


def test_judgments_are_stale_when_their_document_changes(judged: Workspace, tick: Tick) -> None:
    assert not judgments_in(judged)["stale"].any()
    changed = Exchange("csv", documents=pl.DataFrame({"doc_id": ["a"], "text": ["new"]}))
    import_exchange(judged, changed, file="g", sha256="", now=tick())
    found = judgments_in(judged)
    assert found.filter("stale")["doc_id"].to_list() == ["a", "a"]
    assert found["judgment"].is_sorted(descending=True)
    assert imports_in(judged)["file"].to_list() == ["g", "f"]


def test_what_an_edition_would_be(shop: Workspace, judged: Workspace) -> None:
    found = ready_in(judged)
    assert (found.queries, found.grades, found.contradicted) == (2, 2, 0)
    assert found.agreed.verdict == "warn"
    assert shop is judged


def test_strangers_names_are_harmless() -> None:
    assert column_of("class") == "class"
    for odd in ("=cmd", "q", "graded", "a b", "é", ""):
        assert column_of(odd, {"q"}) == f"attribute {odd}"


def test_numbers_are_seen_by_what_queries_are_and_not_by_how_they_came(
    shop: Workspace, tick: Tick
) -> None:
    queries = pl.DataFrame(
        {
            "query_id": ["q1", "q2", "q3", "q4"],
            "text": ["door", "window", "roof", "wall"],
            "band": ["head", "tail", "head", "tail"],
            "origin": ["log", "clicks", "log", "clicks"],
            "why": ["nothing was found", "nobody clicks", "nobody clicks", "nothing was found"],
            "kind": ["a", "a", "b", "b"],
        }
    )
    import_exchange(shop, Exchange("csv", queries=queries), file="f", sha256="", now=tick())
    assert sorted(classes_in(shop)) == ["band", "kind"]
