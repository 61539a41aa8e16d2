"""Many pairs at once: one's own ratings, and a list that tells nobody else's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from karat.errors import UsageError
from karat.store.sql import documents, judgments, ratings
from karat.workflows.golden.import_ import import_from
from karat.workflows.golden.pooling import pool
from karat.workflows.judging.in_place import Seen, pairs_of, rate_pairs
from karat.workflows.judging.queue import Judging
from karat.workflows.workspace.workspace import Workspace

Tick = Callable[[], int]


@pytest.fixture
def queued(shop: Workspace, tick: Tick, tmp_path: Path) -> Workspace:
    """Two documents of one query in the queue, of which one is not in the store."""
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "door"}\n', encoding="utf-8")
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d1", "text": "A\\ndoor"}\n', encoding="utf-8")
    (tmp_path / "a.trec").write_text("q1 Q0 d1 1 2 a\nq1 Q0 d2 2 1 a\n", encoding="utf-8")
    import_from(shop, tmp_path / "queries.jsonl", now=tick())
    import_from(shop, tmp_path / "corpus.jsonl", now=tick())
    pool(shop, [tmp_path / "a.trec"], now=tick())
    return shop


def test_a_list_has_one_s_own_grades_and_what_is_free(queued: Workspace, tick: Tick) -> None:
    rate_pairs(queued, "ann", [("q1", "d1")], 2, now=tick())
    rate_pairs(queued, "ben", [("q1", "d1"), ("q1", "d2")], 0, now=tick(), reason="no door")
    columns = ["doc_id", "query", "title", "begins", "yours", "judgments", "free"]
    assert pairs_of(queued, "ann").select(columns).rows() == [
        ("d1", "door", "d1", "A door", "2", 2, 0),
        ("d2", "door", "d2", None, None, 1, 1),
    ]
    assert pairs_of(queued, "eve")["yours"].null_count() == 2


def test_each_pair_is_told_of_in_the_order_given(queued: Workspace, tick: Tick) -> None:
    chosen = [("q1", "none"), ("q1", "d2"), ("q1", "d2")]
    first, second = rate_pairs(queued, "ann", chosen, 3, now=tick())
    assert (first.judgment, first.refused) == (None, "it is not in the queue")
    assert second.judgment is not None
    with queued.store.read() as c:
        row = judgments.current(c, queued.golden.id).frame.row(0, named=True)
    assert (row["rater"], row["grade"], row["kind"], row["seconds"]) == ("ann", 3.0, "rating", None)
    assert row["guideline"] == "1"


@pytest.mark.parametrize(("rater", "grade"), [("ann", 9), ("", 1)])
def test_what_cannot_be_recorded_is_refused_before_anything_is(
    queued: Workspace, tick: Tick, rater: str, grade: float
) -> None:
    with pytest.raises(UsageError):
        rate_pairs(queued, rater, [("q1", "d1")], grade, now=tick())
    with queued.store.read() as c:
        assert judgments.current(c, queued.golden.id).frame.is_empty()


def test_what_changed_since_it_was_looked_at_is_refused(queued: Workspace, tick: Tick) -> None:
    shown = pairs_of(queued, "ann").select("doc_id", "document_sha256", "guideline")
    assert shown["guideline"].to_list() == ["1", "1"]
    assert shown["document_sha256"].null_count() == 1  # of d2 nothing is known
    seen = {("q1", doc): Seen(sha256, version) for doc, sha256, version in shown.iter_rows()}
    with queued.store.begin() as c:
        new = pl.DataFrame({"doc_id": ["d1"], "text": ["A window"]})
        documents.put(c, queued.golden.id, new, tick())
    first, second = rate_pairs(queued, "ann", list(seen), 1, now=tick(), seen=seen)
    assert first.refused == "its document changed since you opened it: reload it"
    assert second.judgment is not None
    with queued.store.read() as c:
        assert judgments.current(c, queued.golden.id).frame["doc_id"].to_list() == ["d2"]


def test_a_correction_with_votes_in_sight_leaves_the_one_before_to_agreement(
    queued: Workspace, tick: Tick
) -> None:
    pair = ("q1", "d1")
    rate_pairs(queued, "ann", [pair], 1, now=tick())
    (alone,) = rate_pairs(queued, "ann", [pair], 2, now=tick())  # nobody else has rated it
    rate_pairs(queued, "ben", [pair], 0, now=tick())
    (told,) = rate_pairs(queued, "ann", [pair], 0, now=tick())
    assert (alone.first_stays, told.first_stays) == (False, True)
    with queued.store.read() as c:
        said = judgments.current(c, queued.golden.id)
        first = ratings.first(c, queued.golden.id, said).frame
    columns = ["rater", "grade"]
    assert said.frame.select(columns).rows() == [("ben", 0.0), ("ann", 0.0)]
    assert first.select(columns).rows() == [("ann", 2.0), ("ben", 0.0)]
    assert first.schema == said.frame.schema


def test_undone_and_given_anew_in_the_queue_it_is_the_one_before_still(
    queued: Workspace, tick: Tick
) -> None:
    pair = ("q1", "d1")
    rate_pairs(queued, "ann", [pair], 1, now=tick())
    rate_pairs(queued, "ben", [pair], 3, now=tick())
    rate_pairs(queued, "ann", [pair], 2, now=tick())  # with ben's 3 in sight
    desk = Judging(queued, "ann", clock=tick)
    undone = desk.undo()
    assert undone is not None
    desk.submit(undone.card, 3)
    with queued.store.read() as c:
        said = judgments.current(c, queued.golden.id)
        first = ratings.first(c, queued.golden.id, said).frame
    assert dict(said.frame.select("rater", "grade").rows()) == {"ann": 3.0, "ben": 3.0}
    assert dict(first.select("rater", "grade").rows()) == {"ann": 1.0, "ben": 3.0}


def test_nothing_waits_in_a_new_set(shop: Workspace) -> None:
    found = pairs_of(shop, "ann")
    assert found.is_empty()
    assert found.schema["yours"] == pl.String
