"""Gate, with queries of weight 0: only rules about their slices look at them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from karat.errors import InputError
from karat.formats.own.baseline import read_baseline
from karat.tables import Run
from karat.workflows.offline.benchmark import benchmark
from karat.workflows.offline.report import write_report
from karat.workflows.release.baseline import save_baseline
from karat.workflows.release.gate import gate

LOG = [f"q{n:02}" for n in range(30)]
HARD = [f"h{n:02}" for n in range(10)]
QRELS = {query: {f"d{query}": 1} for query in LOG + HARD}
GOOD = {query: {f"d{query}": 2.0, "x": 1.0} for query in LOG + HARD}
JUNK = {query: {"x": 2.0, "y": 1.0} for query in LOG + HARD}
NDCG: dict[str, Any] = {"measure": "nDCG@10", "max_drop": "5%", "min": 0.9}
POLICY = {"rule": [NDCG]}
EACH = {"rule": [NDCG, {**NDCG, "each": "kind"}]}


def about(**more: Any) -> pl.DataFrame:
    kind, weight = ["log"] * 30 + ["hard"] * 10, [2.0] * 30 + [0.0] * 10
    return pl.DataFrame(
        {"query_id": LOG + HARD, "text": LOG + HARD, "kind": kind, "weight": weight} | more
    )


def alone(found: Any) -> Any:
    """A gate without what hashes and names its inputs."""
    return replace(found, hashes={}, notes=[], policy="")


def of_log(content: dict[str, Any]) -> dict[str, Any]:
    return {query: docs for query, docs in content.items() if query in LOG}


@pytest.mark.parametrize(
    "hard",
    [
        JUNK,
        dict.fromkeys(HARD),
        pytest.param({}, marks=pytest.mark.deep),
        pytest.param({query: {} for query in HARD}, marks=pytest.mark.deep),
    ],
)
def test_what_becomes_of_them_changes_no_check_over_all(hard: dict[str, Any]) -> None:
    now = of_log(GOOD) | {query: hard[query] for query in HARD if query in hard}
    health = {"health": {"min_queries": 30, "min_judged": 0.1}}
    found = gate(POLICY | health, QRELS, GOOD, now, queries=about())
    without = gate(POLICY | health, of_log(QRELS), of_log(GOOD), of_log(now), queries=about())
    assert alone(found) == alone(without)
    assert (found.verdict, found.lost, found.results[0].n) == ("pass", [], 30)
    assert found.notes == [
        "30 of 40 queries count; 10 with zero weight are shown in their slices only"
    ]
    # Were they to count, they would not be let pass.
    assert gate(POLICY, QRELS, GOOD, now, queries=about(weight=1.0)).verdict != "pass"


def test_a_rule_about_their_slice_holds_them() -> None:
    found = gate(EACH, QRELS, GOOD, of_log(GOOD) | {q: JUNK[q] for q in HARD}, queries=about())
    checks = {(c.slice, c.rule.split()[1]): (c.verdict, c.n) for c in found.checks if c.measure}
    assert checks == {
        (None, "drops"): ("pass", 30),
        (None, "is"): ("pass", 30),
        ("log", "drops"): ("pass", 30),
        ("log", "is"): ("pass", 30),
        ("hard", "drops"): ("fail", 10),
        ("hard", "is"): ("fail", 10),
    }
    assert {row.query_id for row in found.lost} == set(HARD)
    shown = {row.slice: (row.n, row.value) for row in found.results}
    assert shown == {None: (30, 1.0), "log": (30, 1.0), "hard": (10, 0.0)}


def test_a_slice_held_to_nothing_says_why() -> None:
    kind = ["log"] * 29 + ["hard"] * 11  # with q29, which has a weight and is known to fail
    known = {"known_failure": [{"query": "q29", "min": 0.5}]}
    found = gate(EACH | known, QRELS, GOOD, GOOD, queries=about(kind=kind))
    assert (
        "no rule covers kind hard: none of its queries counts (1 known to fail, 10 of weight 0)"
        in found.notes
    )


def test_a_saved_baseline_holds_them_and_knows_their_weights(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    save_baseline(path, QRELS, GOOD, ["nDCG@10"], queries=about())
    assert len(read_baseline(path).values) == 40
    now = of_log(GOOD) | {q: JUNK[q] for q in HARD}
    assert gate(POLICY, QRELS, path, now, queries=about()).verdict == "pass"
    assert gate(EACH, QRELS, path, now, queries=about()).verdict == "fail"
    stale = gate(POLICY, QRELS, path, now, queries=about(weight=1.0))
    assert stale.verdict != "pass"
    assert "the queries changed since" in stale.checks[0].reason
    # Of queries that count, nothing was returned.
    nothing: dict[str, dict[str, float]] = {query: {} for query in LOG}
    nothing |= {query: GOOD[query] for query in HARD}
    with pytest.raises(InputError, match="returned nothing for any query that counts"):
        save_baseline(tmp_path / "n.json", QRELS, nothing, ["nDCG@10"], queries=about())


def test_a_benchmark_asks_them_and_leaves_them_out_of_its_means() -> None:
    def search(text: str) -> list[str]:
        return [f"d{text}"] if text in LOG else ["x"]

    found = benchmark((about(), QRELS), search, "RR", progress=False, by="kind")
    assert [(row.value, row.n) for row in found.results] == [(1.0, 30)]
    assert {row.slice: (row.value, row.n) for row in found.slices} == {
        "hard": (0.0, 10),
        "log": (1.0, 30),
    }
    with pytest.raises(InputError, match="every judged query has weight 0"):
        benchmark((about(weight=0.0), QRELS), search, "RR", progress=False)


def test_a_report_counts_and_lists_them_so(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    from karat.workflows.offline.evaluate import evaluate

    run = Run.from_dict(of_log(GOOD) | {q: JUNK[q] for q in HARD}, "new")
    found = evaluate(QRELS, run, "RR", queries=about(), by="kind", per_query=True)
    write_report(tmp_path / "r.html", found, runs=[run], qrels=QRELS, queries=about())
    page = (tmp_path / "r.html").read_text()
    assert "0 of 30 queries have 0." in page
    assert "30 of 40 queries count; 10 with zero weight are shown in their slices only" in page
    assert "h09" in page
