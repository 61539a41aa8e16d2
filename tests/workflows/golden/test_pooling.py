"""A pool: which pairs go into the queue, and that what is judged stays out."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from tests.stored_runs import stored_run_rows

from karat.errors import InputError, UsageError
from karat.store.sql import pairs, runs
from karat.tables import Run
from karat.workflows.golden.import_ import import_from
from karat.workflows.golden.pooling import METHODS, Method, enqueue, pool
from karat.workflows.judging.queue import Judging
from karat.workflows.workspace.workspace import Workspace

Tick = Callable[[], int]
UP = Run.from_dict({"q1": {"a": 4, "b": 3, "c": 2}, "q2": {"a": 4, "d": 3}}, "up")
DOWN = Run.from_dict({"q1": {"c": 4, "b": 3, "a": 2}}, "down")


@pytest.fixture
def asked(shop: Workspace, tick: Tick, tmp_path: Path) -> Workspace:
    """Three queries, of which the runs know two."""
    rows = "".join(f'{{"_id": "q{n}", "text": "query {n}"}}\n' for n in (1, 2, 3))
    (tmp_path / "queries.jsonl").write_text(rows, encoding="utf-8")
    import_from(shop, tmp_path / "queries.jsonl", now=tick())
    return shop


def queued(opened: Workspace) -> set[tuple[str, str]]:
    """Every pair of the queue."""
    with opened.store.read() as c:
        return set(pairs.frame(c, opened.golden.id).select("query_id", "doc_id").iter_rows())


def test_the_top_of_each_run_is_queued_once(asked: Workspace, tick: Tick) -> None:
    made = pool(asked, [UP, DOWN], now=tick(), k=1)
    assert queued(asked) == {("q1", "a"), ("q1", "c"), ("q2", "a")}
    assert (made.chosen, made.added, made.queries, made.lacking) == (3, 3, 2, ["q3"])
    assert made.waiting == 6
    deeper = pool(asked, [UP, DOWN], now=tick(), k=2)
    assert (deeper.added, deeper.waiting) == (2, 10)


@pytest.mark.parametrize("method", METHODS)
def test_what_is_judged_stays_out(method: Method, asked: Workspace, tick: Tick) -> None:
    pool(asked, [UP, DOWN], now=tick(), k=1)
    for name in ("ann", "ben"):
        rater = Judging(asked, name, tick)
        while (card := rater.card()) is not None:
            rater.submit(card, 3)
    made = pool(asked, [UP, DOWN], now=tick(), k=3, method=method)
    assert 0 < made.added == made.chosen
    assert made.waiting == 2 * made.added
    with asked.store.read() as c:
        frame = pairs.frame(c, asked.golden.id)
    assert frame.filter(pl.col("judgments") > 0)["open"].sum() == 0


def test_a_budget_is_kept(asked: Workspace, tick: Tick) -> None:
    assert pool(asked, [UP, DOWN], now=tick(), k=9, budget=2).chosen == 2
    assert pool(asked, [UP, DOWN], now=tick(), k=9, per_query=1).chosen == 2


def test_pairs_of_a_file_are_judged_in_its_order(
    asked: Workspace, tick: Tick, tmp_path: Path
) -> None:
    (tmp_path / "next.csv").write_text("query_id,doc_id\nq2,z\nq1,y\nq2,x\nq2,z\n", "utf-8")
    made = enqueue(asked, tmp_path / "next.csv", now=tick())
    assert (made.chosen, made.added, made.queries) == (3, 3, 2)
    ann = Judging(asked, "ann", tick)
    order = []
    while (card := ann.card()) is not None:
        order.append(card.claim.doc_id)
        ann.submit(card, 0)
    assert order == ["z", "y", "x"]


def test_what_cannot_be_pooled_is_refused(
    asked: Workspace, shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="none of its queries is in the golden set"):
        pool(asked, [Run.from_dict({"x": {"a": 1}}, "odd")], now=tick())
    with pytest.raises(UsageError):
        pool(asked, [], now=tick())
    with pytest.raises(UsageError):
        pool(asked, [UP], now=tick(), k=0)
    (tmp_path / "bad.csv").write_text("query_id,doc_id\nq9,z\n", encoding="utf-8")
    with pytest.raises(InputError, match="not in the golden set"):
        enqueue(asked, tmp_path / "bad.csv", now=tick())
    with pytest.raises(UsageError, match="has no budget"):
        pool(asked, [UP], now=tick(), method="mtf", budget=1)
    assert queued(asked) == set()
    assert stored_run_rows(asked) == []  # what is refused leaves nothing behind


@pytest.mark.skipif(os.name == "nt", reason="names there are text")
def test_a_name_that_is_no_utf_8_is_mended(asked: Workspace, tick: Tick, tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/bm\xff.trec"))
    try:
        path.write_text("q1 Q0 a 1 2.5 x\n", encoding="utf-8")
    except OSError:
        pytest.skip("this disk takes no such name")
    assert pool(asked, [path], now=tick()).chosen == 1
    (run,) = stored_run_rows(asked)
    assert run.name == "bm\ufffd"
    with asked.store.read() as c:
        (row,) = runs.runs(c, asked.golden.id)
    assert row.about["source"].endswith("/bm\ufffd.trec")


def test_without_queries_there_is_nothing_to_pool(shop: Workspace, tick: Tick) -> None:
    with pytest.raises(UsageError, match="no queries yet"):
        pool(shop, [UP], now=tick())


def test_queries_of_a_run_are_known_by_the_ids_of_a_file(
    asked: Workspace, tick: Tick, tmp_path: Path
) -> None:
    (tmp_path / "file.csv").write_text("query_id,text\n1,Query 1\n2,query 2\n", encoding="utf-8")
    import_from(asked, tmp_path / "file.csv", now=tick())
    run = Run.from_dict({"1": {"a": 2.0}, "q2": {"b": 1.0}, "7": {"c": 1.0}, "2": {}}, "up")
    made = pool(asked, [run], now=tick(), k=1)
    assert queued(asked) == {("q1", "a"), ("q2", "b")}
    assert made.lacking == ["q3"]
    # q2 stands in the run itself, so that 2 cannot be it too.
    known_as, unknown = made.notes
    assert known_as.startswith("1 query of run 'up' is known here under another id since an earlie")
    assert known_as.endswith("such as 1 → q1")
    assert unknown == "run 'up' has 2 queries that the golden set does not have: 7, 2"
    (kept,) = stored_run_rows(asked)
    assert kept.to_dict() == run.to_dict()  # as it was given
