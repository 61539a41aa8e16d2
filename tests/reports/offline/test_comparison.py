"""A comparison in the terminal: what is decided first, nothing wider than the screen."""

from __future__ import annotations

import io
import json

import polars as pl
import pytest
from tests.choosing import deep_but

from karat.reports.offline.comparison import show, to_json
from karat.reports.writers.terminal import console
from karat.tables.comparison import Comparison
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
