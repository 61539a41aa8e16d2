"""What a candidate costs: latency, sizes, price and judgments, in every report of compare."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console

from karat.formats import read_run
from karat.reports.offline.comparison import show, to_csv, to_json, to_markdown
from karat.reports.phrases.costs import cost_lines
from karat.tables import Queries
from karat.tables.judgments import Judgments
from karat.workflows.offline.compare import compare
from karat.workflows.offline.costs import with_judgments, with_stages

QUERIES = [f"q{n:03}" for n in range(240)]
QRELS = {query: {f"d{query}": 1} for query in QUERIES}
CLASSES = Queries(
    pl.DataFrame({"query_id": QUERIES, "class": ["question", "keyword"] * 120}), "classes"
)


def run(path: Path, factor: float | None = 1, *, right: Any = lambda n: n % 4 == 0, **about: Any):
    """A run of 240 queries, timed 1 to 40 ms; the right document is first, or second."""
    rows = [{"about": about}] if about else []
    for n, query in enumerate(QUERIES):
        timed = {} if factor is None else {"latency_us": round(1000 * factor * (n % 40 + 1))}
        order = [f"d{query}", f"x{query}"][:: 1 if right(n) else -1]
        rows += [
            {"query_id": query, "doc_id": doc, "score": 2 - at, **timed}
            for at, doc in enumerate(order)
        ]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return read_run(path)


@pytest.fixture
def old(tmp_path: Path) -> Any:
    about = {"index_bytes": 2_400_000_000, "price_per_1000": 0.5, "currency": "EUR"}
    return run(tmp_path / "old.jsonl", **about)


@pytest.fixture
def new(tmp_path: Path) -> Any:
    """Better for questions only."""
    about = {"index_bytes": "3600000000", "price_per_1000": "0.75", "currency": "EUR"}
    return run(tmp_path / "new.jsonl", 2, right=lambda n: n % 4 == 0 or n % 2 == 0, **about)


def test_costs_are_beside_the_gain(old: Any, new: Any) -> None:
    found = compare(QRELS, old, new, ["RR"], queries=CLASSES, by="class")
    [costs] = found.costs
    assert (costs.baseline, costs.candidate) == ("old", "new")
    overall = [row for row in costs.changes if row.slice is None]
    kinds = ["latency p50", "latency p95", "latency p99", "index", "price"]
    assert [row.what for row in overall] == kinds
    # 95 % of the 40 times of 1 to 40 ms, each six times, are at most 38 ms; of the other run 76.
    p95 = costs.find("latency p95")
    assert p95 is not None
    assert (p95.baseline_value, p95.candidate_value, p95.difference, p95.n) == (38, 76, 38, 240)
    [answer] = [row for row in found.answers if row.what == "latency p95"]
    assert (p95.ci_low, p95.ci_high) == (answer.ci_low, answer.ci_high)
    index = costs.find("index")
    assert index is not None
    assert (index.unit, index.difference) == ("bytes", 1.2e9)
    # 60 of 240 queries rise from 1/2 to 1.
    gain, pays = cost_lines(found, "new")
    assert gain.startswith("+0.125 RR (+0.")
    assert gain.endswith(") for +38 ms p95, +1.2 GB index, +0.25 EUR per 1,000 queries")
    # Questions have the even places: 1, 3, …, 39 ms, of which 95 % are at most 37.
    assert pays == (
        "significantly better on class=question (+37 ms p95) only, and +38 ms p95 on all queries"
    )
    question = costs.find("latency p95", "class", "question")
    assert question is not None
    assert (question.difference, question.n) == (37, 120)
    assert question.ci_low is not None


def test_every_report_has_the_line(old: Any, new: Any) -> None:
    found = compare(QRELS, old, new, ["RR"], queries=CLASSES, by="class")
    out = io.StringIO()
    show(found, Console(file=out, width=80))
    for text in (out.getvalue(), to_markdown(found)):
        assert "+1.2 GB index" in " ".join(text.split())
        assert "+37 ms" in text or "class" not in text
    assert max(map(len, out.getvalue().splitlines())) <= 80
    shown = json.loads(to_json(found))
    assert shown["costs"][0]["changes"][3]["difference"] == 1.2e9
    assert "p95_change_ms" not in shown["slices"][0]
    assert "p95_change_ms" in to_csv(found).splitlines()[0]


def test_only_what_both_declare_is_compared(tmp_path: Path, old: Any) -> None:
    new = run(tmp_path / "new.jsonl", None, index_bytes="big", price_per_1000=1, currency="USD")
    found = compare(QRELS, old, new, ["RR"])
    assert found.costs == []
    assert cost_lines(found, "new") == []
    notes = "\n".join(found.notes)
    assert "index_bytes of new is 'big', not a number of 0 or more: left out" in notes
    assert "prices are in different currencies" in notes


def test_judgments_of_new_documents_and_their_time(old: Any, new: Any, tmp_path: Path) -> None:
    rows = [
        ("q000", "new1", "human", 90.0),
        ("q000", "new2", "human", None),
        ("q000", "new3", "llm", 1.0),  # not by people
        ("q001", "dq001", "human", 60.0),  # the baseline has it too
    ]
    path = tmp_path / "more.jsonl"
    more = [{"query_id": "q000", "doc_id": f"new{n}", "score": 9 - n} for n in (1, 2, 3)]
    more.append({"query_id": "q001", "doc_id": "dq001", "score": 1})
    path.write_text("\n".join(map(json.dumps, more)) + "\n")
    candidate = read_run(path)
    found = compare(QRELS, old, candidate, ["RR"])
    assert found.costs == []
    frame = pl.DataFrame(
        [
            {
                "judgment": at, "query_id": query, "doc_id": doc, "grade": 1.0, "rater": f"r{at}",
                "source": source, "state": "graded", "kind": "rating", "seconds": seconds,
                "time_us": 1,
            }
            for at, (query, doc, source, seconds) in enumerate(rows, 1)
        ]
    )  # fmt: skip
    judged = with_judgments(found, [old, candidate], Judgments(frame, (0.0, 1.0)))
    [costs] = judged.costs
    assert [(row.what, row.difference, row.n) for row in costs.changes] == [
        ("judgments", 2, None),
        ("judging", 90.0, 1),
    ]
    [line] = cost_lines(judged, "more")
    assert line.endswith("for 2 judgments (2 min for 1 of them)")


def stages(**times: Any) -> pl.DataFrame:
    """The times of stages, by milliseconds of each query; the first query of each failed."""
    return pl.DataFrame(
        [
            (query, stage, "failed" if n == 0 else "ok", round(1000 * of(n)))
            for stage, of in times.items()
            for n, query in enumerate(QUERIES)
        ],
        schema=["query_id", "stage", "state", "latency_us"],
        orient="row",
    )


def test_latency_by_stage_where_both_runs_have_a_trace(old: Any, new: Any) -> None:
    found = compare(QRELS, old, new, ["RR"])
    before = stages(words=lambda n: n % 40 + 1, spelling=lambda _: 3)
    after = stages(words=lambda n: n % 40 + 1, rerank=lambda n: 2 * (n % 40) + 10)
    assert with_stages(found, {"new": after}).costs == found.costs  # the baseline has none
    timed = with_stages(found, {"old": before, "new": after})
    [costs] = timed.costs
    assert costs.find("latency p95") == found.costs[0].find("latency p95")  # the whole search
    rows = {(row.stage, row.what.removeprefix("latency ")): row for row in costs.stages}
    assert list(rows) == [
        (stage, quantile)
        for stage in ("words", "rerank", "spelling")
        for quantile in ("p50", "p95", "p99")
    ]
    # 239 queries are timed: 1 is in 5 of them, every other of 1 to 40 in 6. The 120th smallest is
    # 20, the 228th (of .95 * 239 = 227.05) 39.
    same = rows["words", "p95"]
    assert (same.baseline_value, same.candidate_value, same.n) == (39, 39, 239)
    assert (same.difference, same.ci_low, same.ci_high) == (0, 0, 0)
    added = rows["rerank", "p50"]  # 2 * (21 - 1) + 10, as its first query is the failed one
    assert (added.baseline_value, added.candidate_value) == (None, added.difference)
    assert added.ci_low is not None
    assert added.ci_low < added.difference < added.ci_high
    gone = rows["spelling", "p99"]
    assert (gone.candidate_value, gone.difference, gone.ci_low, gone.ci_high) == (None, -3, -3, -3)
    assert "p95 in rerank" in cost_lines(timed, "new")[0]
    out = io.StringIO()
    show(timed, Console(file=out, width=100))
    for text in ("Latency by stage", "rerank", "+86 ms"):
        assert text in out.getvalue(), text
    assert "Latency by stage" in to_markdown(timed)
    shown = json.loads(to_json(timed))["costs"][0]["changes"]
    assert [row["stage"] for row in shown if row["stage"]][:1] == ["words"]
