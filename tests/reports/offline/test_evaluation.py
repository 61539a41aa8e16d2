"""Rows for machines and papers: JSON, CSV, Markdown, LaTeX."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from typing import Any

import pytest

from karat.reports.offline.evaluation import to_csv, to_latex, to_markdown
from karat.reports.writers.latex import results_table
from karat.reports.writers.plain import to_json
from karat.tables import QueryValue, Result, Results, Run

ROW = Result(
    run="bm25", measure="nDCG@10", value=0.5, aggregate="mean", ci_low=0.25, ci_high=0.75,
    ci_method="t", n=30, empty=0, missing=1, failed=2, undefined=3, unjudged=4, judged=0.9,
    tied=0.125,
)  # fmt: skip
NONE: dict[str, Any] = {"ci_low": None, "ci_high": None, "ci_method": None}


def cells(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_json_holds_all_digits_and_letters() -> None:
    results = Results([replace(ROW, run="größe", value=0.1 + 0.2)], notes=["ein Satz"])
    text = to_json(results)
    assert "größe" in text
    assert text.endswith("}\n")
    found = json.loads(text)
    assert found["results"][0]["value"] == 0.1 + 0.2
    assert found["notes"] == ["ein Satz"]


def test_json_refuses_what_json_has_not() -> None:
    with pytest.raises(ValueError, match="Out of range float"):
        to_json(Results([replace(ROW, value=float("nan"))]))


def test_csv_has_a_column_for_each_field() -> None:
    [row] = cells(to_csv(Results([ROW])))
    assert row == {
        "run": "bm25", "measure": "nDCG@10", "value": "0.5", "aggregate": "mean",
        "ci_low": "0.25", "ci_high": "0.75", "ci_method": "t", "n": "30", "empty": "0",
        "missing": "1", "failed": "2", "undefined": "3", "unjudged": "4", "judged": "0.9",
        "tied": "0.125", "tie_low": "", "tie_expected": "", "tie_high": "", "unjudged_low": "",
        "unjudged_high": "", "ci_reason": "",
    }  # fmt: skip


def test_csv_with_slices_says_which() -> None:
    part = replace(ROW, attribute="kind", slice="head")
    rows = cells(to_csv(Results([ROW], [part])))
    assert [(row["attribute"], row["slice"]) for row in rows] == [("", ""), ("kind", "head")]


def test_csv_of_queries() -> None:
    values = [
        QueryValue("bm25", "RR", "q1", 0.5, "ok"),
        QueryValue("bm25", "RR", "q2", None, "failed"),
    ]
    rows = cells(to_csv(Results([ROW], per_query=values)))
    assert [(row["query_id"], row["value"], row["state"]) for row in rows] == [
        ("q1", "0.5", "ok"),
        ("q2", "", "failed"),
    ]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_csv_cells_that_start_a_formula_are_defused(start: str) -> None:
    evil = f"{start}cmd|' /C calc'!A0"
    values = [QueryValue(evil, "RR", evil, 0.5, "ok")]
    [row] = cells(to_csv(Results([ROW], per_query=values)))
    shown = f"'{evil}".replace("\r", " ")  # a return would end the row
    assert row["run"] == row["query_id"] == shown
    # A number is no formula, whatever its sign.
    [row] = cells(to_csv(Results([replace(ROW, value=-0.5, run=evil)])))
    assert (row["value"], row["run"]) == ("-0.5", shown)


def test_csv_quotes_separators() -> None:
    [row] = cells(to_csv(Results([replace(ROW, run='a,"b"\nc')])))
    assert row["run"] == 'a,"b"\nc'


def test_csv_of_nothing_is_nothing() -> None:
    assert to_csv(Results([])) == ""


def test_markdown_is_a_table_for_each_slicing_and_the_notes() -> None:
    parts = [replace(ROW, attribute="kind", slice=value, **NONE, value=None, n=0) for value in "ab"]
    text = to_markdown(Results([ROW, replace(ROW, measure="AP", **NONE)], parts, notes=["So."]))
    assert (
        text
        == """\
| Run | nDCG@10 | AP | Queries |
| --- | ---: | ---: | ---: |
| bm25 | 0.5000 (0.250 to 0.750) | 0.5000 | 30 |

| Run | kind | nDCG@10 | Queries |
| --- | --- | ---: | ---: |
| bm25 | a | – | 0 |
| bm25 | b | – | 0 |

- So.
"""
    )


def test_markdown_escapes_what_would_end_a_cell_or_a_row() -> None:
    part = replace(ROW, run="a|b", attribute="k|d", slice="x\ny")
    text = to_markdown(Results([replace(ROW, run="a|b")], [part]))
    lines = text.splitlines()
    assert lines[2].startswith("| a&#124;b | ")
    assert lines[4].startswith("| Run | k&#124;d | ")
    assert lines[6].startswith("| a&#124;b | x y | ")
    assert len(lines) == 7


def test_latex_is_the_table_of_a_paper() -> None:
    assert to_latex(Results([ROW])) == results_table(Results([ROW]))


def test_what_a_run_says_of_itself_is_no_markup() -> None:
    runs = {
        name: Run.from_batches(name, [], about={"engine": f"\x1b[2J<b>{name}</b>"})
        for name in ("old", "new")
    }
    notes = ["1 query not in the run (<i>q1</i>\x1b[0m)"]
    both = [replace(ROW, run=name) for name in runs]
    text = to_markdown(Results(both, runs=runs, notes=notes))
    assert "&#60;b&#62;old" in text
    assert "- 1 query not in the run (&#60;i&#62;q1" in text
    assert "\x1b" not in text
    assert not re.search("<[bi/]", text)
