"""A table is described once: a column shows in every medium, and text is safe in each."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import Any

import pytest

from karat.reports.offline import comparison as reports
from karat.reports.table import Column, Table
from karat.reports.writers.tables import draw, html_table
from karat.reports.writers.terminal import console
from karat.workflows.offline.compare import compare

QUERIES = [f"q{n}" for n in range(12)]
OLD = {query: {"x": 2.0, "good": 1.0} for query in QUERIES}
NEW = {query: {"good": 2.0, "x": 1.0} for query in QUERIES}


def test_a_new_column_of_a_comparison_shows_in_every_medium(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = reports.differences

    def differences(*rows: Any, **how: Any) -> Table:
        table = before(*rows, **how)
        effect = Column("ratio", "Ratio", "number", digits=1,
                        value=lambda row: row.candidate_value / row.baseline_value)  # fmt: skip
        return replace(table, columns=[*table.columns, effect])

    monkeypatch.setattr(reports, "differences", differences)
    found = compare({query: {"good": 1} for query in QUERIES}, OLD, NEW, ["RR"])
    out = io.StringIO()
    reports.show(found, console(out, 100))
    # From 1/2 to 1.
    assert "Ratio" in out.getvalue()
    assert "| Ratio |" in reports.to_markdown(found)
    page = html_table(reports.differences(found.differences))
    assert '<td role="cell" data-head="Ratio" data-key="2.0">2.0</td>' in page
    assert json.loads(reports.to_json(found))["differences"][0]["ratio"] == 2.0
    [row] = csv.DictReader(io.StringIO(reports.to_csv(found)))
    assert (row["measure"], row["ratio"]) == ("RR", "2.0")


def test_a_table_too_wide_is_divided_evenly_with_its_keys() -> None:
    columns = [Column("name", "Name"), *(Column(f"c{n}", f"column{n}", "count") for n in range(9))]
    rows = [{"name": "a", **{f"c{n}": n for n in range(9)}}]
    out = io.StringIO()
    draw(Table("", columns, rows, keys=1), console(out, 40))
    heads = [line.split() for line in out.getvalue().splitlines() if line.startswith(" Name")]
    assert [len(head) for head in heads] == [4, 4, 4]
    assert [name for head in heads for name in head[1:]] == [f"column{n}" for n in range(9)]


def test_columns_are_left_out_in_order_and_none_without_need() -> None:
    columns = [
        Column("name", "Name"),
        Column("first", "First to go", "count", drop=1),
        Column("second", "Second to go", "count", drop=2),
        Column("none", "Without values", optional=True, value=lambda _: None),
    ]
    row = {"name": "a name", "first": 10**9, "second": 10**9}
    shown = {}
    for width in (60, 30, 14):
        out = io.StringIO()
        draw(Table("", columns, [row]), console(out, width))
        shown[width] = " ".join(out.getvalue().split())
    assert "First" in shown[60]
    assert "First" not in shown[30]
    assert "Second" in shown[30]
    assert "Second" not in shown[14]
    assert not any("Without" in text for text in shown.values())


def test_a_group_is_named_once_in_a_terminal() -> None:
    columns = [Column("group", "Group"), Column("n", "n", "count")]
    rows = [{"group": "one", "n": 1}, {"group": "one", "n": 2}, {"group": "two", "n": 3}]
    out = io.StringIO()
    draw(Table("", columns, rows, group="group"), console(out, 40))
    assert out.getvalue().count("one") == 1
    assert html_table(Table("", columns, rows, group="group")).count("one") == 2


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("number", -1234.5, "−1,234.500"),
        ("signed", 0.25, "+0.250"),
        ("share", 0.995, "99.5 %"),
        ("grade", 2.0, "2"),
        ("count", 1234, "1,234"),
        ("p", 0.0001, "<.001"),
        ("ms", 1500.0, "1.5"),
        ("time", 0, "1970-01-01 00:00"),
        ("flag", False, "no"),
        ("number", None, "–"),
    ],
)
def test_a_value_is_printed_by_its_kind(kind: Any, value: Any, text: str) -> None:
    assert Column("x", "X", kind).cell({"x": value}) == text


def test_an_interval_has_one_style_and_its_unit_once() -> None:
    share = Column("low", "95 %", "share", high="high")
    assert share.cell({"low": 0.25, "high": 0.5}) == "25 to 50 %"
    assert share.cell({"low": 0.25, "high": None}) == "–"


def test_nothing_in_a_table_of_html_is_markup() -> None:
    evil = '<b>"\x1b[31m'
    columns = [
        Column("a", evil, help=evil, link=lambda row: row["a"]),
        Column("b", evil, "verdict", view=lambda _: evil),
    ]
    page = html_table(Table(evil, columns, [{"a": evil, "b": evil}]))
    assert "<b>" not in page
    assert "\x1b" not in page
    assert 'href="#&lt;b&gt;&quot;' in page
