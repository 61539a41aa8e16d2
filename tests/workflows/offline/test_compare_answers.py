"""How candidates answered: latency, zero results, failures and duplicates as rows of compare."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from karat.formats import read_run
from karat.reports.offline.comparison import show, to_json, to_markdown
from karat.reports.offline.evaluation import answer_changes
from karat.reports.table import Table
from karat.workflows.offline.compare import compare

QUERIES = [f"q{n:03}" for n in range(120)]
QRELS = {query: {f"d{query}": 1} for query in QUERIES}


def run(path: Path, factor: float | None = 1, **broken: Any) -> Any:
    """A run of 120 queries, timed 1 to 40 ms thrice; the first of them broken."""
    rows = []
    for n, query in enumerate(QUERIES):
        row: dict[str, Any] = {"query_id": query}
        if factor is not None:
            row["latency_us"] = round(1000 * factor * (n % 40 + 1))
        if n < broken.get("failed", 0):
            row["state"] = "failed"
        elif n < broken.get("empty", 0):
            row["state"] = "empty"
        else:
            row |= {"doc_id": f"d{query}", "score": 1.0}
            row |= {"repeated": 1} if n < broken.get("twice", 0) else {}
        rows.append(json.dumps(row))
    path.write_text("\n".join(rows) + "\n")
    return read_run(path)


@pytest.fixture
def old(tmp_path: Path) -> Any:
    return run(tmp_path / "old.jsonl")


def cells(table: Table) -> list[list[str]]:
    return [[column.cell(row) for column in table.visible] for row in table.rows]


def test_latency_and_zero_results_are_rows(tmp_path: Path, old: Any) -> None:
    found = compare(QRELS, old, run(tmp_path / "new.jsonl", 4, empty=12), ["RR"])
    rows = {row.what: row for row in found.answers}
    assert list(rows) == ["latency p50", "latency p95", "latency p99", "zero results"]
    # 60 of 120 answers take at most 20 ms, 114 at most 38 ms, 119 at most 40 ms; of the other run
    # four times as long.
    p50, p95, p99, zero = rows.values()
    assert (p50.baseline_value, p50.candidate_value, p50.n) == (20.0, 80.0, 120)
    assert (p95.baseline_value, p95.candidate_value, p95.difference) == (38.0, 152.0, 114.0)
    assert (p99.baseline_value, p99.candidate_value) == (40.0, 160.0)
    assert (p50.verdict, p95.verdict) == ("worse", "worse")
    assert (zero.baseline_value, zero.candidate_value, zero.verdict) == (0.0, 0.1, "worse")
    assert zero.ci_low is not None
    assert 0 < zero.ci_low < 0.1


def test_failures_and_duplicates_too(tmp_path: Path, old: Any) -> None:
    new = run(tmp_path / "new.jsonl", failed=12, twice=60)
    rows = {row.what: row for row in compare(QRELS, old, new, ["RR"]).answers}
    assert (rows["no answer"].candidate_value, rows["no answer"].n) == (0.1, 120)
    # 48 of the 108 that were answered.
    assert rows["documents twice"].candidate_value == pytest.approx(48 / 108)
    assert rows["latency p95"].n == 108  # a failure has no time


def test_where_nothing_is_known_there_are_no_rows(tmp_path: Path) -> None:
    one, other = (run(tmp_path / name, None) for name in ("one.jsonl", "other.jsonl"))
    assert compare(QRELS, one, other, ["RR"]).answers == []
    plain = {query: {f"d{query}": 1.0} for query in QUERIES}
    assert compare(QRELS, plain, plain, ["RR"]).answers == []


def test_the_same_times_are_identical(tmp_path: Path, old: Any) -> None:
    found = compare(QRELS, old, run(tmp_path / "new.jsonl"), ["RR"])
    assert [row.verdict for row in found.answers] == ["identical"] * 3


def test_every_report_shows_the_same_row(tmp_path: Path, old: Any) -> None:
    found = compare(QRELS, old, run(tmp_path / "new.jsonl", 4, empty=12), ["RR"])
    [*_, zero] = cells(answer_changes(found.answers))
    assert zero[:4] == ["zero results", "0.0 %", "10.0 %", "+10.0 %"]
    out = io.StringIO()
    show(found, Console(file=out, width=80))
    for text in (out.getvalue(), to_markdown(found)):
        [line] = [line for line in text.splitlines() if "zero results" in line]
        assert all(cell in line for cell in zero)
    assert max(map(len, out.getvalue().splitlines())) <= 80
    shown = json.loads(to_json(found))["answers"][3]
    assert (shown["what"], shown["candidate_value"]) == ("zero results", 0.1)


def test_several_candidates_are_named(tmp_path: Path, old: Any) -> None:
    new = [run(tmp_path / name, 4) for name in ("b.jsonl", "c.jsonl")]
    table = answer_changes(compare(QRELS, old, new, ["RR"]).answers)
    assert [column.heading for column in table.visible][:2] == ["Run", "Answers"]
    assert [row[0] for row in cells(table)] == ["b"] * 3 + ["c"] * 3
