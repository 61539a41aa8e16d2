"""A comparison is behind once judgments, queries or documents are others than they were."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
import sqlalchemy as sa

from karat.store.sql import comparisons, documents, queries
from karat.tables import Run
from karat.tables.golden.golden_sets import Exchange
from karat.tables.workspace import ComparisonRow
from karat.workflows.diagnosis.stored_traces import store_trace
from karat.workflows.golden.editions import freeze
from karat.workflows.golden.import_ import import_exchange
from karat.workflows.judging.in_place import own_of, rate, take_back
from karat.workflows.workspace.stored_comparisons import (
    Asked,
    Older,
    ask,
    compute,
    described,
    kept,
)
from karat.workflows.workspace.stored_runs import store_runs, stored_by_name
from karat.workflows.workspace.workspace import Workspace

Tick = Callable[[], int]
RED, BLUE = (
    pl.DataFrame({"doc_id": ["a"], "title": ["A"], "colour": [name]}) for name in ("red", "blue")
)


@pytest.fixture
def judged(shop: Workspace, tick: Tick) -> Workspace:
    """Two queries of which a is good, its colour known, and two runs."""
    facts = pl.DataFrame({"query_id": ["q1", "q2"], "doc_id": ["a", "a"], "grade": [3.0, 1.0]})
    facts = facts.with_columns(pl.lit(None, pl.String).alias(name) for name in ("rater", "reason"))
    asked = pl.DataFrame({"query_id": ["q1", "q2"], "text": ["one", "two"]})
    found = Exchange("csv", queries=asked, judgments=facts, documents=RED)
    import_exchange(shop, found, file="f", sha256="0" * 64, now=tick())
    for name, score in (("old", 1.0), ("new", 3.0)):
        rows = {query: {"a": score, "b": 2.0} for query in ("q1", "q2")}
        store_runs(shop, [Run.from_dict(rows, name)], now=tick())
    return shop


def made(opened: Workspace, tick: Tick, **said: object) -> ComparisonRow:
    number = ask(opened, Asked([1, 2], ["nDCG@10"], **said), by="ann", now=tick())  # type: ignore[arg-type]
    compute(opened, number, tick)
    with opened.store.read() as c:
        row = comparisons.find(c, number)
    assert row is not None
    assert row.state == "done", row.error
    return row


def older(opened: Workspace, *rows: ComparisonRow) -> list[Older]:
    return [each.older for each in described(opened, rows)]


def test_traces_with_times_make_it_older_and_add_the_latency_of_their_stages(
    judged: Workspace, tick: Tick, tmp_path: Path
) -> None:
    plain = made(judged, tick)
    for name, time in (("old", 1000), ("new", 3000)):
        lines = [
            {"query_id": query, "stage": "words", "kind": "retrieve", "latency_us": time}
            for query in ("q1", "q2")
        ]
        file = tmp_path / f"{name}.jsonl"
        file.write_text("\n".join(map(json.dumps, lines)))
        store_trace(judged, stored_by_name(judged)[name], file, file.name, person="ann", now=tick())
    assert [each.changed for each in older(judged, plain)] == [True]
    found = kept(judged, made(judged, tick, margin=0.1))
    assert found is not None
    rows = found.comparison.costs[0].stages
    assert [(row.what, row.difference, row.n) for row in rows] == [
        (what, 2.0, 2) for what in ("latency p50", "latency p95", "latency p99")
    ]


def test_queries_and_documents_make_it_older_as_judgments_do(judged: Workspace, tick: Tick) -> None:
    freeze(judged, "first", now=tick())
    plain, sliced = made(judged, tick), made(judged, tick, by=["returned.colour"])
    frozen = made(judged, tick, edition="first")
    assert older(judged, plain, sliced, frozen) == [Older()] * 3
    with judged.store.begin() as c:
        documents.put(c, judged.golden.id, BLUE, tick())
    changed = [each.changed for each in older(judged, plain, sliced, frozen)]
    assert changed == [False, True, False]
    with judged.store.begin() as c:
        weighed = pl.DataFrame({"query_id": ["q1"], "text": ["one"], "weight": [9.0]})
        queries.put(c, judged.golden.id, weighed, tick())
    changed = [each.changed for each in older(judged, plain, sliced, frozen)]
    assert changed == [True, True, False]
    assert older(judged, plain)[0].said == (
        "Judgments, queries, documents or traces changed since this was computed."
    )
    rate(judged, "ann", "q1", "b", 1.0, now=tick())
    behind = older(judged, plain)[0]
    assert behind == Older(1, changed=True)
    assert behind.said == "1 judgment was given since this was computed."
    assert older(judged, frozen)[0] == Older()


def test_of_numbers_that_do_not_say_what_they_are_of_judgments_tell(
    judged: Workspace, tick: Tick
) -> None:
    row = made(judged, tick)
    row = replace(row, key="0" * 16)  # as older versions of karat called them
    assert older(judged, row)[0] == Older()
    rate(judged, "ann", "q1", "b", 1.0, now=tick())
    assert older(judged, row)[0] == Older(1, changed=True)
    given = own_of(judged, "ann", "q1")["b"].judgment
    take_back(judged, "ann", "q1", "b", given, now=tick())
    assert older(judged, row)[0] == Older(0, changed=True)


def test_what_was_taken_back_or_corrected_was_not_given_twice(
    judged: Workspace, tick: Tick
) -> None:
    row = made(judged, tick)
    rate(judged, "ann", "q1", "b", 1.0, now=tick())
    given = own_of(judged, "ann", "q1")["b"].judgment
    take_back(judged, "ann", "q1", "b", given, now=tick())
    behind = older(judged, row)[0]
    assert behind == Older(0, changed=True)
    assert behind.said == "Judgments, queries, documents or traces changed since this was computed."
    for grade in (1.0, 3.0):
        rate(judged, "ann", "q1", "b", grade, now=tick())
    assert older(judged, row)[0] == Older(1, changed=True)


def test_judgments_are_looked_up_once_for_many(
    judged: Workspace, tick: Tick, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = []
    for doc in ("b", "c"):
        rows.append(made(judged, tick))
        rate(judged, "ann", "q1", doc, 1.0, now=tick())
    looked: list[int] = []
    plain = comparisons.judged_since

    def counted(c: sa.Connection, set_id: int, since: int) -> list[int]:
        looked.append(since)
        return plain(c, set_id, since)

    monkeypatch.setattr(comparisons, "judged_since", counted)
    assert [each.judgments for each in older(judged, *rows[::-1])] == [1, 2]
    assert looked == [rows[0].judgment_id]
