"""A rater at the queue: versions, hashes, tokens, and what a card holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import polars as pl
import pytest

from karat.errors import UsageError
from karat.store.sql import golden_sets, judgments, pairs
from karat.workflows.golden.agreement import disagreements_in
from karat.workflows.golden.editions import stale_judgments
from karat.workflows.golden.import_ import import_from
from karat.workflows.golden.pooling import pool
from karat.workflows.judging.queue import Card, Judging
from karat.workflows.workspace.workspace import Workspace, open_workspace

Tick = Callable[[], int]


def documents(path: Path, text: str) -> Path:
    """Two documents; the first says ``text``."""
    rows = f'{{"_id": "d1", "text": "{text}"}}\n{{"_id": "d2", "text": "A wall"}}\n'
    path.write_text(rows, encoding="utf-8")
    return path


@pytest.fixture
def queued(shop: Workspace, tick: Tick, tmp_path: Path) -> Workspace:
    """Two documents of one query in the queue."""
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "door"}\n', encoding="utf-8")
    (tmp_path / "a.trec").write_text("q1 Q0 d1 1 2 a\nq1 Q0 d2 2 1 a\n", encoding="utf-8")
    import_from(shop, tmp_path / "queries.jsonl", now=tick())
    import_from(shop, documents(tmp_path / "corpus.jsonl", "A door"), now=tick())
    pool(shop, [tmp_path / "a.trec"], now=tick())
    return shop


def next_card(judging: Judging) -> Card:
    """A card there is."""
    card = judging.card()
    assert card is not None
    return card


def facts(opened: Workspace) -> pl.DataFrame:
    """What counts."""
    with opened.store.read() as c:
        return judgments.current(c, opened.golden.id).frame


def test_documents_that_changed_make_their_judgments_stale(
    queued: Workspace, tick: Tick, tmp_path: Path
) -> None:
    ann = Judging(queued, "ann", tick)
    for _ in range(2):
        ann.submit(next_card(ann), 2)
    assert stale_judgments(queued).judgments.height == 0
    import_from(queued, documents(tmp_path / "corpus.jsonl", "A new door"), now=tick())
    (row,) = stale_judgments(queued).judgments.rows(named=True)
    assert (row["query_id"], row["doc_id"], row["rater"]) == ("q1", "d1", "ann")
    # Who is shown the new text judges that.
    ben = Judging(queued, "ben", tick)
    for _ in range(2):
        ben.submit(next_card(ben), 2)
    assert stale_judgments(queued).judgments["rater"].to_list() == ["ann"]


def test_what_was_shown_counts_and_not_what_came_in_meanwhile(
    queued: Workspace, tick: Tick, tmp_path: Path
) -> None:
    ann = Judging(queued, "ann", tick)
    card = next_card(ann)
    import_from(queued, documents(tmp_path / "corpus.jsonl", "Another door"), now=tick())
    ann.submit(card, 2)
    ann.submit(next_card(ann), 2)
    stale = stale_judgments(queued).judgments["doc_id"].to_list()
    assert stale == (["d1"] if card.claim.doc_id == "d1" else [])


def test_a_guideline_that_was_edited_is_another_version(queued: Workspace, tick: Tick) -> None:
    ann = Judging(queued, "ann", tick)
    ann.submit(next_card(ann), 2)
    guideline = queued.workspace.guideline
    guideline.write_text("Only doors count.\n", encoding="utf-8")
    with open_workspace(queued.workspace.root, now=tick()) as later:
        again = Judging(later, "ann", tick)
        again.submit(next_card(again), 3)
        assert later.golden.guideline_text == "Only doors count.\n"
    with open_workspace(queued.workspace.root, now=tick()) as unchanged:
        assert unchanged.golden.guideline == "2"
    assert facts(queued)["guideline"].to_list() == ["1", "2"]


def test_a_submission_sent_twice_counts_once(queued: Workspace, tick: Tick) -> None:
    ann = Judging(queued, " ann ", tick)
    card = next_card(ann)
    assert ann.submit(card, 2, seconds=1.5) == ann.submit(card, 2, seconds=1.5)
    assert facts(queued).select("rater", "grade", "seconds").rows() == [("ann", 2, 1.5)]


def test_an_undone_judgment_is_asked_again(queued: Workspace, tick: Tick) -> None:
    ann = Judging(queued, "ann", tick)
    assert ann.undo() is None
    first = next_card(ann)
    ann.submit(first, 0)
    waiting = next_card(ann)
    undone = ann.undo()
    assert undone is not None
    assert undone.card.claim.doc_id == first.claim.doc_id
    assert undone.card.token != first.token
    ann.submit(undone.card, 3)
    assert next_card(ann).claim.doc_id == waiting.claim.doc_id
    assert facts(queued)["grade"].to_list() == [3]


def test_each_desk_takes_back_its_own(queued: Workspace, tick: Tick) -> None:
    for rater, grade in (("ann", 0), ("ben", 3)):
        desk = Judging(queued, rater, tick)
        for _ in range(2):
            desk.submit(next_card(desk), grade)
    assert disagreements_in(queued, now=tick(), queue_them=True).queued == 2
    settling, rating = Judging(queued, "cat", tick, adjudicate=True), Judging(queued, "cat", tick)
    settled = next_card(settling)
    assert [vote.grade for vote in settled.votes] == [0, 3]
    settling.submit(settled, 2)
    assert rating.undo() is None, "it is no rating"
    undone = settling.undo()
    assert undone is not None
    assert (undone.card.claim.kind, undone.card.claim.doc_id) == (
        "adjudication",
        settled.claim.doc_id,
    )


def test_disagreements_that_wait_are_those_that_are_dealt(queued: Workspace) -> None:
    now = [0]
    for rater, grade in (("ann", 0), ("ben", 3)):
        desk = Judging(queued, rater, lambda: now[0])
        for _ in range(2):
            desk.submit(next_card(desk), grade)
    assert disagreements_in(queued, now=1, queue_them=True).queued == 2
    cat, dan, ann = (
        Judging(queued, rater, lambda: now[0], adjudicate=True) for rater in ("cat", "dan", "ann")
    )
    first = next_card(cat)
    assert cat.progress() == "2 disagreements to settle"
    assert dan.progress() == "1 disagreement to settle"
    assert ann.progress() == "no disagreements to settle"
    cat.later(first.claim.slot_id)
    assert cat.progress() == "1 disagreement to settle, 1 put off"
    cat.submit(next_card(cat), 2)
    assert cat.card() is None
    assert cat.progress() == "no disagreements to settle, 1 put off"


def test_the_text_that_is_shown_is_of_the_version_that_is_recorded(
    queued: Workspace, tick: Tick
) -> None:
    """Somebody else's command brings in a new guideline while Ann judges."""
    ann = Judging(queued, "ann", tick)
    first = next_card(ann)
    assert first.claim.guideline_text == queued.golden.guideline_text
    with queued.store.begin() as c:
        golden_sets.new_guideline(c, queued.golden.id, "Only doors count.", tick())
    ann.submit(first, 2)
    second = next_card(ann)
    assert (second.claim.guideline, second.claim.guideline_text) == ("2", "Only doors count.")
    ann.submit(second, 2)
    assert facts(queued)["guideline"].to_list() == ["1", "2"]


def test_the_share_of_gold_items_is_the_workspaces(queued: Workspace, tick: Tick) -> None:
    known = pl.DataFrame({"query_id": ["q1"] * 6, "doc_id": [f"g{n}" for n in range(6)]})
    with queued.store.begin() as c:
        pairs.put(c, queued.golden.id, known.with_columns(gold_grade=3.0), 2, tick())

    def kinds(rater: str, golds: float) -> list[str]:
        how = replace(queued.workspace, golds=golds, order="mixed")
        desk = Judging(replace(queued, workspace=how), rater, tick)
        first, given = desk.progress(), []
        while (card := desk.card()) is not None:
            given.append(card.claim.kind)
            desk.submit(card, 1)
        assert first == f"0 of {len(given)} judged"
        assert desk.progress().startswith(f"all {len(given)} judged")
        return given

    assert kinds("ann", 0.0) == ["rating"] * 2
    # Of every three places one is gold, by the rater's hash: "ben" has his among the first two.
    assert sorted(kinds("ben", 0.5)) == ["gold", "rating", "rating"]


def test_what_was_put_off_comes_back_in_an_hour(queued: Workspace) -> None:
    now = [0]
    ann = Judging(queued, "ann", lambda: now[0])
    first = next_card(ann)
    ann.later(first.claim.slot_id)
    ann.submit(next_card(ann), 1)
    assert ann.card() is None
    assert ann.progress() == "1 of 2 judged, 1 put off"
    now[0] = 3_600_000_001
    assert next_card(ann).claim.doc_id == first.claim.doc_id


def test_a_card_of_ratings_holds_nothing_of_others(queued: Workspace, tick: Tick) -> None:
    ben = Judging(queued, "ben", tick)
    for _ in range(2):
        ben.submit(next_card(ben), 3, "splendid")
    card = next_card(Judging(queued, "ann", tick))
    assert card.votes == []
    held = {each.name: getattr(card.claim, each.name) for each in fields(card.claim)}
    assert not {"rank", "score", "run", "chosen_by", "priority", "rater"} & set(held)
    assert "ben" not in held.values()


def test_what_cannot_be_recorded_is_not(queued: Workspace, tick: Tick) -> None:
    ann = Judging(queued, "ann", tick)
    card = next_card(ann)
    for grade, reason in ((4.0, None), (1.5, None), (None, None), (None, "tired")):
        with pytest.raises(UsageError):
            ann.submit(card, grade, reason)
    with pytest.raises(UsageError, match="not yours"):
        Judging(queued, "ben", tick).submit(card, 2)
    with pytest.raises(UsageError, match="no name"):
        Judging(queued, " ", tick)
    assert facts(queued).height == 0
