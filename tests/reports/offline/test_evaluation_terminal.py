"""The terminal: readable at 80 columns, ids as they are."""

from __future__ import annotations

import io
from dataclasses import replace

import polars as pl
import pytest

from karat.reports.offline import explanation
from karat.reports.offline.evaluation import show, with_interval
from karat.reports.phrases.numbers import percent
from karat.reports.writers.terminal import console
from karat.tables import Queries, Result, Results, Run
from karat.tables.notes import Concern, Note
from karat.workflows.offline.evaluate import evaluate
from karat.workflows.offline.explain import explain

EVIL = "[red]x[/red]"
QRELS = {f"{i:02}{EVIL}": {"a": 1, "b": 2} for i in range(30)}
QUERIES = Queries(
    pl.DataFrame({"query_id": list(QRELS), "kind": [EVIL, "navigational and more"] * 15})
)


def a_run(name: str) -> Run:
    return Run.from_dict(
        {
            query: {"a": 1.0, "b": float(place % 3), f"c{EVIL}": place / 2}
            for place, query in enumerate(QRELS)
        },
        name=name,
    )


def printed(results: Results, *, full: bool = False) -> str:
    out = io.StringIO()
    show(results, console(out, 80), full=full)
    return out.getvalue()


def evaluated(*names: str, per_query: bool = False, by: tuple[str, ...] = ()) -> Results:
    runs = [a_run(name) for name in names]
    return evaluate(QRELS, runs, queries=QUERIES, per_query=per_query, by=by)


@pytest.mark.parametrize("names", [("bm25",), ("bm25", EVIL), ("bm25", "a-long-name-" * 8)])
def test_no_line_is_longer_than_80_columns(names: tuple[str, ...]) -> None:
    text = printed(evaluated(*names, per_query=True, by=("kind",)), full=True)
    assert max(map(len, text.splitlines())) <= 80
    for cut in ("…", "..."):
        assert cut not in text, "nothing is cut off either"
    for measure in ("nDCG@10", "RR@10", "P@10", "R@100", "AP"):
        assert measure in text


def test_ids_with_markup_are_printed_as_they_are() -> None:
    text = printed(evaluated("bm25", EVIL, per_query=True, by=("kind",)))
    assert text.count(EVIL) > 30
    assert "\x1b" not in text


def test_escape_sequences_in_ids_do_not_reach_the_terminal() -> None:
    evil = "q\x1b[31m\x9b"
    results = evaluate({evil: {"a": 1}}, {evil: {"a": 1.0}}, ["RR"], per_query=True)
    text = printed(results)
    assert "q\N{REPLACEMENT CHARACTER}[31m\N{REPLACEMENT CHARACTER}" in text
    assert not set(text) & {"\x1b", "\x9b"}


def test_one_run_stands_in_the_title_and_several_in_a_column() -> None:
    assert printed(evaluated("bm25")).splitlines()[0].strip() == "bm25"
    assert "Run" not in printed(evaluated("bm25")).splitlines()[2]
    assert "Run" in printed(evaluated("bm25", "dense")).splitlines()[1]


def test_the_columns_of_the_design() -> None:
    heading = printed(evaluated("bm25")).splitlines()[2]
    assert heading.split() == ["Measure", "Value", "95", "%", "n", "Judged"]


def test_full_has_all_digits_and_all_counts() -> None:
    results = evaluated("bm25")
    text = printed(results, full=True)
    assert f"{results.results[0].value:.12g}" in text
    for name in ("Empty", "Missing", "Failed", "Without a", "Not judged", "Tied", "Method"):
        assert name in text
        assert name not in printed(replace(results, notes=[]))


def test_a_value_that_is_not_there_is_a_dash() -> None:
    text = printed(evaluate({"q": {"a": 0}}, {"q": {"a": 1.0}}, ["RR"]))
    assert "–" in text
    assert "nan" not in text.casefold()
    assert "None" not in text


def test_queries_show_their_state() -> None:
    run = Run.from_dict({"q1": {"a": 1.0}, "q2": None, "q4": {"a": 1.0}})
    results = evaluate({f"q{i}": {"a": 1} for i in (1, 2, 3)}, run, ["RR"], per_query=True)
    rows = [line.split() for line in printed(results).splitlines()]
    assert ["q1", "1.0000"] in rows
    assert ["q2", "–", "failed"] in rows
    assert ["q3", "0.0000", "missing"] in rows
    assert ["q4", "–", "unjudged"] in rows


ROW = Result("r", "DCG@10", 20.0, "mean", 9.95, 30.05, "t", 30, 0, 0, 0, 0, 0, None, None)


@pytest.mark.parametrize(
    ("low", "high", "ends"),
    [(9.95, 30.05, "9.95 to 30.05"), (0.5, 0.716, "0.50 to 0.72"), (0.0, 1.0, "0.00 to 1.00")],
)
def test_the_interval_of_a_slice(low: float, high: float, ends: str) -> None:
    for reason in ("", "cut at 1"):
        row = replace(ROW, ci_low=low, ci_high=high, ci_reason=reason)
        assert with_interval(row) == f"20.000 {ends}"


def test_measures_of_slices_are_spread_over_tables() -> None:
    qrels = {f"q{i}": {"a": 1, "b": 1} for i in range(8)}
    run = {query: {"a": 1.0, "x": float(place)} for place, query in enumerate(qrels)}
    queries = pl.DataFrame({"query_id": list(qrels), "kind": ["k"] * 8})
    results = evaluate(qrels, run, queries=queries, by="kind")  # five measures
    lines = [line.split() for line in printed(results).splitlines()]
    assert [line[2:] for line in lines if line[:2] == ["kind", "n"]] == [
        ["nDCG@10", "RR@10", "P@10"], ["R@100", "AP"],
    ]  # fmt: skip


def test_sums_are_whole_numbers() -> None:
    row = replace(ROW, ci_low=None, ci_high=None, aggregate="sum", value=12345.0)
    assert with_interval(row) == "12,345"
    assert with_interval(replace(row, value=None)) == "–"


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (None, ""),
        (0.0, "0 %"),
        (0.0001, "0.01 %"),
        (0.5, "50 %"),
        (0.994, "99.4 %"),
        (0.9997, "99.97 %"),
        (1.0, "100 %"),
    ],
)
def test_nearly_all_is_not_printed_as_all(share: float | None, shown: str) -> None:
    assert percent(share) == shown


def explained(measure: str, query_id: str = "q", top: int = 10) -> str:
    qrels = {
        "q": {"a": 2, EVIL: 1, "no": 0} | {f"lost{i:02}": 1 for i in range(10)},
        "bare": {"a": 0},
        "gone": {"a": 1},
    }
    run = {
        "q": {"a": 9.0, EVIL: 5.0, "no": 5.0} | {f"u{i}": -float(i) for i in range(20)},
        "bare": {"a": 1.0},
    }
    out = io.StringIO()
    found = explain(qrels, run, query_id, measure, top=top)
    explanation.show(found, console(out, 80))
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    return text


def test_an_explanation_shows_what_adds_up() -> None:
    text = explained("DCG@5")
    rows = [line.split() for line in text.splitlines()]
    # DCG: 2 / log2(2) + 1 / log2(4); "no" comes before "[red]…" by id, descending.
    assert rows[0] == ["DCG@5", "of", "query", "q", "in", "run:", "2.5000"]
    assert ["1", "a", "2", "2", "1.0000", "2.0000"] in rows
    assert ["2=", "no", "0", "0", "0.6309"] in rows
    assert ["3=", EVIL, "1", "1", "0.5000", "0.5000"] in rows
    assert ["4", "u0", "unjudged"] in rows
    assert ["Sum", "2.5000"] in rows
    assert "Relevant and not retrieved (10): lost00 (1)" in text
    assert "and 2 more" in text
    assert "13 more documents below add nothing." in text


def test_an_explanation_of_what_is_no_sum() -> None:
    text = explained("SetF")
    assert "is not a sum over documents" in " ".join(text.split())
    assert "gain" not in text.splitlines()[2]


def test_an_explanation_says_the_state() -> None:
    assert "no value" in explained("RR", "bare")
    assert "The query has no relevant document" in explained("RR", "bare")
    assert "The query is not in the run and scores 0." in explained("RR", "gone")


def test_three_notes_and_how_many_more_unless_all_are_asked_for() -> None:
    found = replace(
        evaluated("bm25"),
        notes=[
            "first reason",
            "second reason",
            Note("few queries", Concern.FEW),
            Note("2 queries not in the run", Concern.QUERIES),
        ],
    )
    out = io.StringIO()
    show(found, console(out, 80))
    assert out.getvalue().splitlines()[-4:] == [
        "· 2 queries not in the run",
        "· few queries",
        "· first reason",
        "1 more note: --notes",
    ]
    for more in ({"full": True}, {"all_notes": True}):
        out = io.StringIO()
        show(found, console(out, 80), **more)
        assert out.getvalue().endswith("· first reason\n· second reason\n")
