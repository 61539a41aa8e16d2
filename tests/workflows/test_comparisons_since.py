"""A comparison is behind once judgments, queries or documents are others than they were."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

from karat.store import comparisons, documents, queries
from karat.store.comparisons import ComparisonRow
from karat.tables import Run
from karat.tables.exchange import Exchange
from karat.workflows import comparisons_since
from karat.workflows.comparisons_since import Older, Since
from karat.workflows.editions import freeze
from karat.workflows.exchanging import take_exchange
from karat.workflows.kept_comparisons import Asked, ask, compute
from karat.workflows.kept_runs import keep_runs
from karat.workflows.rating_in_place import rate
from karat.workflows.workspace import Opened

Tick = Callable[[], int]
RED, BLUE = (
    pl.DataFrame({"doc_id": ["a"], "title": ["A"], "colour": [name]}) for name in ("red", "blue")
)


@pytest.fixture
def judged(shop: Opened, tick: Tick) -> Opened:
    """Two queries of which a is good, its colour known, and two runs."""
    facts = pl.DataFrame({"query_id": ["q1", "q2"], "doc_id": ["a", "a"], "grade": [3.0, 1.0]})
    facts = facts.with_columns(pl.lit(None, pl.String).alias(name) for name in ("rater", "reason"))
    asked = pl.DataFrame({"query_id": ["q1", "q2"], "text": ["one", "two"]})
    found = Exchange("csv", queries=asked, judgments=facts, documents=RED)
    take_exchange(shop, found, file="f", sha256="0" * 64, now=tick())
    for name, score in (("old", 1.0), ("new", 3.0)):
        rows = {query: {"a": score, "b": 2.0} for query in ("q1", "q2")}
        keep_runs(shop, [Run.from_dict(rows, name)], now=tick())
    return shop


def made(opened: Opened, tick: Tick, **said: object) -> ComparisonRow:
    number = ask(opened, Asked([1, 2], ["nDCG@10"], **said), by="ann", now=tick())  # type: ignore[arg-type]
    assert compute(opened, number, tick)
    with opened.store.read() as c:
        row = comparisons.find(c, number)
    assert row is not None
    assert row.state == "done", row.error
    return row


def test_queries_and_documents_make_it_older_as_judgments_do(judged: Opened, tick: Tick) -> None:
    freeze(judged, "first", now=tick())
    plain, sliced = made(judged, tick), made(judged, tick, by=["returned.colour"])
    frozen = made(judged, tick, edition="first")
    since = Since(judged)
    assert [since.older(row) for row in (plain, sliced, frozen)] == [Older()] * 3
    with judged.store.begin() as c:
        documents.put(c, judged.golden.id, BLUE, tick())
    since = Since(judged)
    assert [since.older(row).changed for row in (plain, sliced, frozen)] == [False, True, False]
    with judged.store.begin() as c:
        weighed = pl.DataFrame({"query_id": ["q1"], "text": ["one"], "weight": [9.0]})
        queries.put(c, judged.golden.id, weighed, tick())
    since = Since(judged)
    assert [since.older(row).changed for row in (plain, sliced, frozen)] == [True, True, False]
    assert since.older(plain).said == "Queries or documents changed since this was computed."
    rate(judged, "ann", "q1", "b", 1.0, now=tick())
    behind = Since(judged).older(plain)
    assert behind == Older(1, changed=True)
    assert behind.said == "1 judgment was given since this was computed."
    assert Since(judged).older(frozen) == Older()


def test_of_numbers_that_do_not_say_what_they_are_of_judgments_tell(
    judged: Opened, tick: Tick, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = made(judged, tick)
    monkeypatch.setattr(comparisons_since, "in_short", lambda *_: {"clock": None})
    assert Since(judged).older(row) == Older()
    rate(judged, "ann", "q1", "b", 1.0, now=tick())
    assert Since(judged).older(row) == Older(1, changed=True)
