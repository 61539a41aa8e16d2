"""The rollback signal, costs and other measures of a review."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from karat.reports.release.review import signal_text
from karat.tables import Queries, Run
from karat.tables.online.watch import Change, Watched
from karat.workflows.offline.inputs import qrels, runs
from karat.workflows.release.review import review

IDS = [f"q{n}" for n in range(20)]
QRELS = qrels({query: {"a": 1} for query in IDS})
KINDS = Queries(
    pl.DataFrame({"query_id": IDS, "kind": ["even", "odd"] * 10, "text": IDS}), "queries"
)
BLANK = Change(
    metric="SAT", version=1, direction="higher", unit="share", slice={}, verdict="usual",
    reason="", value=0.5, expected=0.5, usual_low=0.4, usual_high=0.6, change=0.0, margin=0.0,
    n=100, users=50, windows=5, before=(0.5,) * 5, df=4, p=1.0, p_adjusted=1.0,
)  # fmt: skip
WATCHED = Watched(
    verdict="fine", window="2026-03-01", compared=[], absent=[], searches=100,
    searches_before=100.0, health=[], changes=[], tests=1, by=("kind",), rules="r",
    timezone="UTC", notes=[], simulated=False,
)  # fmt: skip


def ranked(name: str, odd: list[str], even: list[str]) -> Run:
    rows = {
        query: {doc: 10.0 - at for at, doc in enumerate(odd if n % 2 else even)}
        for n, query in enumerate(IDS)
    }
    return runs({name: rows})[0]


OLD, NEW = ranked("old", ["x", "y", "a"], ["a"]), ranked("new", ["a"], ["x", "a"])


def signal(*changes: Change, **more: Any) -> Any:
    watched = replace(WATCHED, changes=list(changes), **more)
    return review(QRELS, OLD, NEW, ["RR"], queries=KINDS, by="kind", watched=watched)


def test_the_metric_that_varies_least_in_the_slice_that_loses() -> None:
    even = {"kind": "even"}
    found = signal(
        replace(BLANK, metric="CTR", usual_low=0.49, usual_high=0.51),  # of all queries
        replace(BLANK, slice=even),
        replace(BLANK, metric="Abandonment", direction="lower", slice=even, usual_low=0.45,
                usual_high=0.55),
        replace(BLANK, metric="Latency(p95)", slice=even, usual_low=0.499, usual_high=0.501),
        replace(BLANK, slice={"kind": "odd"}, usual_low=0.49, usual_high=0.51),
    ).rollback  # fmt: skip
    assert (found.source, found.metric, found.slice) == ("online", "Abandonment", even)
    assert (found.limit, found.direction, found.window) == (0.55, "above", "1d")
    assert signal_text(found).startswith("Abandonment, kind=even above 0.55 in a window of 1d")


def test_else_over_all_queries_and_else_offline() -> None:
    found = signal(BLANK, replace(BLANK, metric="CTR", usual_low=None), simulated=True)
    assert (found.rollback.metric, found.rollback.slice, found.rollback.limit) == ("SAT", {}, 0.4)
    assert "the events behind the rollback signal are simulated" in found.notes
    assert not any("no log" in text for text in found.not_measured)
    found = signal(health=["3 earlier windows are needed"])
    assert (found.rollback.source, found.rollback.slice) == ("offline", {"kind": "even"})
    assert found.rollback.limit == 1.0  # the even queries of the old run
    assert "online metrics: 3 earlier windows are needed" in found.not_measured


def test_costs_and_other_measures() -> None:
    old, new = (
        Run.from_batches(run.name, [run.frame().drop("rank")], about={"index_bytes": size})
        for run, size in ((OLD, "1000"), (NEW, "3000"))
    )
    found = review(QRELS, new, old, ["RR", "P@1"], queries=KINDS)
    assert found.costs is not None
    assert [(row.what, row.difference) for row in found.costs.changes] == [("index", -2000.0)]
    assert "costs: latency, memory, price, judgments" in found.not_measured
    assert "slices (--by ATTRIBUTE)" in found.not_measured
    assert found.slice is None
    worse = ranked("worse", ["x", "y", "a"], ["x", "y", "a"])
    assert any(
        note.startswith("worse by P@1: ") for note in review(QRELS, NEW, worse, ["RR", "P@1"]).notes
    )
