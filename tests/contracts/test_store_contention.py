"""Many raters at once, and raters killed without warning: nothing is lost, nothing is doubled."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import polars as pl
import pytest
import sqlalchemy as sa

from karat.store.sql import golden_sets, judgments, pairs, queries
from karat.store.sql.opening import Store
from karat.store.sql.schema import pair, slot

NOW = 1_700_000_000_000_000
PROCESSES = Path(__file__).with_name("rating_processes.py")

# Threads at once are asked with every build, in test_store_claim_pair.py and test_store_locks.py.
pytestmark = pytest.mark.deep

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes as POSIX does")


def a_queue(store: Store, n_queries: int, n_docs: int, raters: int) -> int:
    with store.begin() as c:
        set_id = golden_sets.make(
            c,
            "shop",
            scale=(0, 3),
            grades={},
            raters=raters,
            salt="s",
            guideline="Judge.",
            now=NOW,
        )
        asked = pl.DataFrame({"query_id": [f"q{i}" for i in range(n_queries)], "text": "shoes"})
        queries.put(c, set_id, asked, NOW)
        docs = pl.DataFrame({"doc_id": [f"d{i}" for i in range(n_docs)]})
        pool = asked.select("query_id").join(docs, how="cross")
        assert pairs.put(c, set_id, pool, raters, NOW).added == n_queries * n_docs
    return set_id


def judge(
    url: str, set_id: int, folder: Path, *, raters: int, kills: int = 0, lease_ms: int = 60_000
) -> dict[int, tuple[str, str, str]]:
    """Let raters judge; the judgments that were acknowledged: rater, query, document."""
    folder.mkdir()
    numbers = [str(each) for each in (set_id, folder, raters, kills, lease_ms)]
    done = subprocess.run(
        [sys.executable, str(PROCESSES), url, *numbers],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    acknowledged: dict[int, tuple[str, str, str]] = {}
    for file in folder.iterdir():
        for line in file.read_text().splitlines():
            number, query_id, doc_id, _ = line.split("\t")
            assert int(number) not in acknowledged, "one judgment was acknowledged twice"
            acknowledged[int(number)] = (file.name, query_id, doc_id)
    return acknowledged


def rated(store: Store, set_id: int) -> dict[int, tuple[str, str, str]]:
    """First ratings that count, after looking that each pair has as many as it may have."""
    with store.read() as c:
        frame = judgments.current(c, set_id).ratings
        unfilled = c.execute(sa.select(slot.c.id).where(slot.c.judgment_id.is_(None))).all()
        filled = c.execute(
            sa.select(slot.c.judgment_id, slot.c.rater, pair.c.query_id, pair.c.doc_id)
            .join(pair, pair.c.id == slot.c.pair_id)
            .where(slot.c.kind == "rating")
        ).all()
    assert not unfilled
    by_pair = defaultdict(list)
    for row in frame.iter_rows(named=True):
        by_pair[row["query_id"], row["doc_id"]].append(row["rater"])
    assert {len(raters) for raters in by_pair.values()} == {2}
    assert all(len(set(raters)) == 2 for raters in by_pair.values())
    named = frame.select("judgment", "rater", "query_id", "doc_id").iter_rows()
    ratings = {number: (rater, query, doc) for number, rater, query, doc in named}
    assert {number: tuple(rest) for number, *rest in filled} == ratings
    return ratings


@needs_fork
def test_twenty_processes_judge_one_queue_at_once(store: Store, url: str, tmp_path: Path) -> None:
    n_queries = 15
    set_id = a_queue(store, n_queries, 10, raters=2)
    acknowledged = judge(url, set_id, tmp_path / "said", raters=20)
    ratings = rated(store, set_id)
    assert len(ratings) == n_queries * 10 * 2
    with store.read() as c:
        everything = judgments.current(c, set_id).frame
    assert set(acknowledged) == set(everything["judgment"])  # hidden repeats among them, perhaps
    assert ratings.items() <= acknowledged.items()
    shares = Counter(rater for rater, _, _ in acknowledged.values())
    assert len(shares) >= 5, "a few took it all: they were hardly at it at once"


@needs_fork
def test_what_was_acknowledged_survives_kill_9(store: Store, url: str, tmp_path: Path) -> None:
    kills = 50
    set_id = a_queue(store, 10, kills // 2, raters=2)
    acknowledged = judge(url, set_id, tmp_path / "said", raters=6, kills=kills, lease_ms=200)
    ratings = rated(store, set_id)
    with store.read() as c:
        frame = judgments.current(c, set_id).frame
    named = frame.select("judgment", "rater", "query_id", "doc_id").iter_rows()
    there = {number: (rater, query, doc) for number, rater, query, doc in named}
    assert acknowledged.items() <= there.items()
    # One is there that was not acknowledged for each kill between the two, and no more.
    assert len(there) - len(acknowledged) <= kills
    assert len(ratings) == 10 * (kills // 2) * 2
