"""Values and cells that know where they stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.errors import InputError
from karat.formats.exchange.export import Export, Holds
from karat.formats.exchange.source_file import Node, SourceFile, number, open_source_file
from karat.tables.golden.golden_sets import Exchange


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (3, 3.0),
        ("3.000", 3.0),
        (" -1 ", -1.0),
        (".5", 0.5),
        ("1e2", 100.0),
        ("1_0", None),
        ("٣", None),  # an Arabic-Indic three, which float() reads
        ("nan", None),
        ("inf", None),
        ("1e999", None),
        (10**400, None),
        (float("inf"), None),
        (True, None),
        (None, None),
        ([], None),
        ("", None),
    ],
)
def test_what_is_a_number(value: Any, want: float | None) -> None:
    assert number(value) == want


def test_a_value_says_where_it_stands_as_jq_does() -> None:
    root = Node({"a": [{"b c": "x"}]}, "", "f.json")
    (item,) = root.need("a").list()
    with pytest.raises(InputError, match=r'f\.json: \.a\[0\]\["b c"\] is "x", not a finite number'):
        item.need("b c").number()
    with pytest.raises(InputError, match=r"\.a is \[.*\], not an object"):
        root.need("a").get("b")


def test_one_id_is_a_whole_number_or_text() -> None:
    assert Node(7, "", "f").identifier() == "7"
    for wrong in (1.0, True, None, "", " "):
        with pytest.raises(InputError):
            Node(wrong, "", "f").identifier()


CELL = st.text(" =+-@\t\r\n\"',;aü\u2028", max_size=6)


@given(st.lists(st.lists(CELL, min_size=2, max_size=2), min_size=1, max_size=4))
def test_cells_go_out_guarded_and_come_back(rows: list[list[str]]) -> None:
    leaving = Export(Exchange("x"), "x", Holds(), "x")
    data = leaving.sheet(("a", "b"), rows)
    found = [list(row.values()) for row in SourceFile("x", "x", data).sheet().rows()]
    assert found == [row for row in rows if any(cell.strip() for cell in row)]
    raw = SourceFile("x", "x", data).sheet()
    raw.restore = lambda cell: cell  # type: ignore[method-assign]
    for cells in raw.rows():
        assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in cells.values())


def test_lines_are_counted_through_cells_of_several(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b'a,b\r\n\r\n"1\r\n2",x\r\n3,y\r\n')
    sheet = open_source_file(path).sheet()
    rows = [(sheet.line, row) for row in sheet.rows()]
    assert rows == [(3, {"a": "1\r\n2", "b": "x"}), (5, {"a": "3", "b": "y"})]


def test_a_file_is_named_without_its_endings(tmp_path: Path) -> None:
    path = tmp_path / "bm25.json"
    path.write_text("{}")
    assert open_source_file(path).stem == "bm25"
    assert open_source_file(path).ending == ".json"
