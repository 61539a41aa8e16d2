"""A pool: which pairs go into the queue, and that what is judged stays out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from karat.errors import InputError, UsageError
from karat.store import pairs
from karat.tables import Run
from karat.workflows.exchanging import take_in
from karat.workflows.judging import Judging
from karat.workflows.kept_runs import kept_runs
from karat.workflows.pool import METHODS, Method, enqueue, pool
from karat.workflows.workspace import Opened

Tick = Callable[[], int]
UP = Run.from_dict({"q1": {"a": 4, "b": 3, "c": 2}, "q2": {"a": 4, "d": 3}}, "up")
DOWN = Run.from_dict({"q1": {"c": 4, "b": 3, "a": 2}}, "down")


@pytest.fixture
def asked(shop: Opened, tick: Tick, tmp_path: Path) -> Opened:
    """Three queries, of which the runs know two."""
    rows = "".join(f'{{"_id": "q{n}", "text": "query {n}"}}\n' for n in (1, 2, 3))
    (tmp_path / "queries.jsonl").write_text(rows, encoding="utf-8")
    take_in(shop, tmp_path / "queries.jsonl", now=tick())
    return shop


def queued(opened: Opened) -> set[tuple[str, str]]:
    """Every pair of the queue."""
    with opened.store.read() as c:
        return set(pairs.frame(c, opened.golden.id).select("query_id", "doc_id").iter_rows())


def test_the_top_of_each_run_is_queued_once(asked: Opened, tick: Tick) -> None:
    made = pool(asked, [UP, DOWN], now=tick(), k=1)
    assert queued(asked) == {("q1", "a"), ("q1", "c"), ("q2", "a")}
    assert (made.chosen, made.added, made.queries, made.lacking) == (3, 3, 2, ["q3"])
    assert made.waiting == 6
    deeper = pool(asked, [UP, DOWN], now=tick(), k=2)
    assert (deeper.added, deeper.waiting) == (2, 10)


@pytest.mark.parametrize("method", METHODS)
def test_what_is_judged_stays_out(method: Method, asked: Opened, tick: Tick) -> None:
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


def test_a_budget_is_kept(asked: Opened, tick: Tick) -> None:
    assert pool(asked, [UP, DOWN], now=tick(), k=9, budget=2).chosen == 2
    assert pool(asked, [UP, DOWN], now=tick(), k=9, per_query=1).chosen == 2


def test_pairs_of_a_file_are_judged_in_its_order(asked: Opened, tick: Tick, tmp_path: Path) -> None:
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
    asked: Opened, shop: Opened, tick: Tick, tmp_path: Path
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
    with pytest.raises(UsageError, match="takes no budget"):
        pool(asked, [UP], now=tick(), method="mtf", budget=1)
    assert queued(asked) == set()
    assert kept_runs(asked) == []  # what is refused leaves nothing behind


def test_without_queries_there_is_nothing_to_pool(shop: Opened, tick: Tick) -> None:
    with pytest.raises(UsageError, match="no queries yet"):
        pool(shop, [UP], now=tick())
