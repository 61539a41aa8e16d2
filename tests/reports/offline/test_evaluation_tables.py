"""Sheets beside the measures, drawn in a terminal and in Markdown."""

from __future__ import annotations

import io

from karat.reports.offline.evaluation import (
    CURVE_ROWS,
    curve,
    others,
    outcomes,
    show,
    to_markdown,
)
from karat.reports.table import Table
from karat.reports.writers.terminal import console
from karat.tables import Result, Results
from karat.tables.results import Latency, NoAnswer, Outcome, Silence

CURVE = [Silence(float(n), n / 50, max(0.0, (n - 30) / 50)) for n in range(51)]
RESULTS = Results(
    [Result("bm25", "RR", 0.5, "mean", None, None, None, 9, 0, 0, 0, 0, 0, None, None)],
    no_answer=[NoAnswer("bm25", 8, 2, 0.25, 1, 0, None, CURVE)],
    latency=[Latency("bm25", 9, 1500.0, 20_000.0, 300_000.0, 400_000.0)],
    outcomes=[Outcome("bm25", "RR", "answered", 9, 0.5, 0.1, 0.8, 0.4, None)],
)


def cells(table: Table) -> list[list[str]]:
    return [[column.cell(row) for column in table.visible] for row in table.rows]


def test_each_kind_is_a_table() -> None:
    assert [(table.title, cells(table)) for table in others(RESULTS)] == [
        ("Queries without a right answer", [["bm25", "8", "2", "25 %"]]),
        ("Latency, milliseconds", [["bm25", "9", "1.5", "20", "300", "400"]]),
        (
            "With outcomes, over queries",
            [["RR", "answered", "0.500", "0.10 to 0.80", "0.400", "–", "9"]],
        ),
    ]
    assert list(others(Results([]))) == []


def test_a_threshold_is_in_the_heading() -> None:
    below = NoAnswer("bm25", 8, 2, 0.25, 1, 0, 1.5, [])
    [table] = others(Results([], no_answer=[below]))
    assert table.columns[2].heading == "Nothing, or below 1.5"


def test_a_long_curve_keeps_its_first_best_and_last_point() -> None:
    scores = [row[0] for row in cells(curve(RESULTS.no_answer[0]))]
    # Youden's J rises by .02 a point up to 30, and stays there; the lowest of the best is 30.
    assert {"0", "30", "50"} <= set(scores)
    assert len(scores) <= CURVE_ROWS


def test_several_runs_are_told_apart() -> None:
    other = Outcome("dense", "RR", "answered", 9, None, None, None, None, None)
    table = outcomes([*RESULTS.outcomes, other])
    assert [c.heading for c in table.visible][:3] == ["Measure", "Run", "Outcome"]


def test_a_terminal_draws_them() -> None:
    out = io.StringIO()
    show(RESULTS, console(out, 80), full=True)
    text = out.getvalue()
    for table in others(RESULTS):
        assert table.title in text
    assert "withhold answers whose best score is below" in text
    assert max(map(len, text.splitlines())) <= 80


def test_markdown_has_them() -> None:
    text = to_markdown(RESULTS)
    assert (
        "Queries without a right answer\n\n| Run | Queries | Answered with nothing | Share |"
        in text
    )
    assert "| bm25 | 8 | 2 | 25 % |" in text
