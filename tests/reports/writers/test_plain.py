"""Tables as text: cells of strangers stay cells."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.reports.table import Column, Table
from karat.reports.writers.markdown import markdown
from karat.reports.writers.plain import csv_table, spreadsheet_safe

TEXTS = st.text(st.characters(exclude_characters="\x00", codec="utf-8"))


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx"])
def test_no_spreadsheet_runs_a_cell(text: str) -> None:
    assert spreadsheet_safe(text) == "'" + text.replace("\r", " ")
    assert spreadsheet_safe(-1.5) == -1.5  # a number is none


@given(st.lists(st.fixed_dictionaries({"a": TEXTS, "b": TEXTS}), min_size=1))
def test_csv_is_read_back(rows: list[dict[str, str]]) -> None:
    read = list(csv.DictReader(io.StringIO(csv_table(rows), newline="")))
    assert read == [{key: spreadsheet_safe(cell) for key, cell in row.items()} for row in rows]


def test_without_rows_there_is_no_csv() -> None:
    assert csv_table([]) == ""


def table_of(heading: str, name: str, number: str) -> str:
    columns = [Column("a", heading), Column("b", "n", "count", text=lambda row: str(row["b"]))]
    return markdown(Table("", columns, [{"a": name, "b": number}]))


def test_a_cell_of_markdown_stays_one() -> None:
    assert table_of("query", "a|b\nc", "2") == (
        "| query | n |\n| --- | ---: |\n| a&#124;b c | 2 |\n"
    )


def test_nothing_in_a_table_of_markdown_is_markup() -> None:
    evil = "\x1b[31m<img src=x>\u202e [a](//b) @me"
    table = table_of("_x_", evil, "0.5 [0.1, 0.9]\x9b<b>")
    head, _, row = table.splitlines()
    assert head == "| &#95;x&#95; | n |"
    # An interval keeps its brackets; the zero-width space after @ prevents a mention on GitHub.
    assert row == (
        "| \N{REPLACEMENT CHARACTER}&#91;31m&#60;img src=x&#62;\N{REPLACEMENT CHARACTER} "
        "&#91;a&#93;(//b) @\N{ZERO WIDTH SPACE}me | 0.5 [0.1, 0.9]\N{REPLACEMENT CHARACTER}"
        "&#60;b&#62; |"
    )
