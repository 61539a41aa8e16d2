"""A comparison in the terminal: what is decided first, nothing wider than the screen."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import polars as pl
import pytest
from tests.choosing import deep_but

from karat.reports.offline.comparison import (
    axis,
    costs_and_answers,
    differences,
    judge_next,
    show,
    to_json,
)
from karat.reports.writers.terminal import console
from karat.tables.comparison import Comparison, CostChange, Costs
from karat.workflows.offline.compare import compare

N = 24
QUERIES = [f"q{n:02}" for n in range(N)]
LONG = "a-document-whose-name-is-longer-than-any-column-of-a-terminal-of-eighty"
QRELS = {query: {LONG: 1, "second": 1, "bad": 0} for query in QUERIES}
ABOUT = pl.DataFrame(
    {
        "query_id": QUERIES,
        "text": [f"what was typed for {query}, at some length" for query in QUERIES],
        "class": ["even" if n % 2 == 0 else "odd" for n in range(N)],
    }
)


def ranked(*documents: str) -> dict[str, float]:
    return {document: -float(rank) for rank, document in enumerate(documents)}


OLD = dict.fromkeys(QUERIES, ranked(LONG, "x", "y"))
# Later, and more of them: RR falls from 1 to 1/2, R@3 rises from 1/2 to 1.
WIDE = dict.fromkeys(QUERIES, ranked("bad", LONG, "second"))
NEAR = OLD | {"q00": WIDE["q00"]}


def compared(**more: object) -> Comparison:
    settings: dict[str, object] = {"queries": ABOUT, "by": "class", "review": 2, "judge_next": 2}
    runs = [OLD, WIDE, NEAR]
    return compare(QRELS, runs[0], runs[1:], ["R@3", "RR"], **(settings | more))  # type: ignore[arg-type]


def shown(found: Comparison, *, full: bool = False, width: int = 80) -> str:
    out = io.StringIO()
    show(found, console(out, width), full=full)
    return out.getvalue()


@pytest.mark.parametrize("width", deep_but([80], [80, 60, 120]))
@pytest.mark.parametrize("full", [True, False])
def test_nothing_is_wider_than_the_screen(width: int, *, full: bool) -> None:
    text = shown(compared(), full=full, width=width)
    assert max(map(len, text.splitlines())) <= width


def test_runs_in_order_then_verdicts_then_where_to_look() -> None:
    text = shown(compared())
    places = [
        text.index(said)
        for said in (
            "All runs by R@3",
            "agree least (tau −",
            "candidate against baseline",
            "Look here first",
            "all queries: R@3 +0.500 but RR −0.500",
            "by class",
            "queries that change it most",
            "Relevant documents in the top 3",
            "candidate: shown though judged not relevant",
            "candidate-2: relevant but not shown",
            "Judging priorities",
        )
    ]
    assert places == sorted(places)


def test_a_query_has_its_text_and_the_documents_that_moved() -> None:
    text = shown(compared())
    # "second" stood nowhere and is third now.
    assert "– → 3      1  second" in text
    assert "q00 what was typed" in text
    assert "…" in text  # the long id is cut, and whole in JSON
    assert LONG in to_json(compared())


def test_measures_without_a_table_are_told_in_a_line() -> None:
    text = shown(compared())
    assert "candidate, RR by class" not in text
    assert "even worse by RR; odd worse by RR; nothing else by RR (--full shows them)" in text
    assert "candidate, RR by class" in shown(compared(), full=True)


def test_json_holds_every_row() -> None:
    found = json.loads(to_json(compared()))
    assert list(found) == [
        "baseline", "settings", "differences", "slices", "standings", "orders", "disagreements",
        "queries", "moves", "finds", "only_found", "overlaps", "review", "judge_next", "notes",
        "answers", "costs", "machine_grades", "changes",
    ]  # fmt: skip
    wide = next(row for row in found["overlaps"] if row["right"] == "candidate")
    # The top 3 of both: LONG in common, second only in the wide one; bad, x and y differ.
    assert (wide["relevant_both"], wide["relevant_left"], wide["relevant_right"]) == (N, 0, N)
    assert wide["overlap"] == pytest.approx(1 / 3)


def test_two_runs_need_no_leaderboard() -> None:
    found = compare(QRELS, OLD, WIDE, ["R@3"])
    assert "All runs by" not in shown(found)
    assert found.to_dict()["standings"] == []


def test_an_id_from_a_stranger_cannot_paint_the_screen() -> None:
    evil = "\x1b[31mred"
    qrels = {query: {evil: 1} for query in QUERIES}
    found = compare(qrels, dict.fromkeys(QUERIES, ranked("x", evil)), OLD | {"q00": ranked(evil)})
    assert "\x1b" not in shown(found, full=True)


def test_a_page_has_intervals_drawn_and_judged_shares() -> None:
    rows = compared().differences
    shares = {("R@3", rows[0].baseline): 0.5, ("R@3", rows[0].candidate): 1.0, ("RR", "x"): 1.0}
    table = differences(rows, drawn=lambda row: f"<svg>{row.measure}</svg>", judged=shares)
    [drawn] = [column for column in table.columns if column.name == "ci_low"]
    [judged] = [column for column in table.columns if column.name == "judged"]
    assert drawn.html is not None
    assert drawn.html(rows[0]) == "<svg>R@3</svg>"
    assert [judged.cell(row) for row in rows[:2]] == ["50 % → 100 %", "–"]
    assert "judged" not in {column.name for column in differences(rows).columns}
    # The widest interval is that of RR, which falls by 1/2 in every query; nothing is wider than 1.
    ends = [e for row in rows for e in (row.ci_low, row.ci_high, row.difference) if e is not None]
    assert axis(rows) == max(map(abs, ends)) <= 1.0
    assert axis([]) == 0.01


def test_costs_stand_with_speed_and_answers() -> None:
    found = compared()
    name = found.differences[0].candidate
    changes = [
        CostChange("latency p95", "ms", 10.0, 28.0, 18.0, 1.0, 30.0, 24),  # among the answers
        CostChange("index", "bytes", 1e9, 2.2e9, 1.2e9, None, None, None),
        CostChange("judgments", "judgments", None, None, 240.0, None, None, None),
        CostChange("latency p95", "ms", 1.0, 2.0, 1.0, None, None, 24, "class", "odd"),
    ]
    costs = [Costs(found.baseline, name, changes)]
    table = costs_and_answers(replace(found, answers=[], costs=costs), name)
    cells = [[column.cell(row) for column in table.visible] for row in table.rows]
    assert cells == [
        ["index size", "1 GB", "2.2 GB", "+1.2 GB", "–", ""],
        ["judgments made", "–", "–", "240", "–", ""],
    ]
    assert costs_and_answers(found, "nobody").rows == []


def test_pairs_to_judge_next_lead_to_their_documents_on_a_page() -> None:
    found = compared()
    table = judge_next(found, link=lambda row: f"/{row.query_id}", titles={"x": "A title"})
    query, document = table.columns[:2]
    row = next(each for each in found.judge_next if each.doc_id == "x")
    assert (query.cell(row), document.cell(row)) == (row.text, "A title")
    assert query.link is not None
    assert query.link(row) == f"/{row.query_id}"
    assert judge_next(found).columns[0].cell(row) == row.query_id
