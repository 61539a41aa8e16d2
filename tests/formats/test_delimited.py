from __future__ import annotations

from pathlib import Path

import pytest

from karat import formats
from karat.errors import InputError
from karat.formats.delimited import semicolons


def test_quoted_as_rfc_4180_says(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(
        b'query_id,doc_id,"text"\r\n"1","a ""b"", c","two\r\nlines"\r\n2,,""\r\n'
    )
    frame = formats.read_queries(tmp_path / "x").frame
    assert frame.rows() == [("1", "two\r\nlines", 'a "b", c'), ("2", "", None)]


def test_cells_that_span_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk may end within quotes; the rows are the same, and so is the line of a fault."""
    rows = [(str(i), f"line\n{i}" * (i % 50)) for i in range(60_000)]
    text = "doc_id,text\n" + "".join(f'{i},"{cell}"\n' for i, cell in rows)
    assert len(text) > 9_000_000
    (tmp_path / "x").write_text(text)
    assert formats.read_documents(tmp_path / "x").frame.select("doc_id", "text").rows() == rows
    (tmp_path / "x").write_text(text + "7,again\n")
    with pytest.raises(InputError) as caught:
        formats.read_documents(tmp_path / "x")
    assert caught.value.line == text.count("\n") + 1


def test_a_stray_quote_is_read_where_it_can_be(tmp_path: Path) -> None:
    (tmp_path / "x").write_text('doc_id,text\n1,a 5" disk\n2,b\n')
    assert formats.read_documents(tmp_path / "x").frame["text"].to_list() == ['a 5" disk', "b"]


def test_empty_cells_of_attributes(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("query_id,lang,text,year\n1,,,\n2,de,x,\n")
    frame = formats.read_queries(tmp_path / "x").frame
    assert frame.to_dicts() == [
        {"query_id": "1", "text": "", "lang": None, "year": None},
        {"query_id": "2", "text": "x", "lang": "de", "year": None},
    ]


def test_semicolons_where_a_comma_is_the_decimal_sign(tmp_path: Path) -> None:
    """As European spreadsheets write CSV; a name that holds a semicolon is quoted."""
    text = 'query_id;doc_id;score\r\n1;a;2,5\r\n1;b;"1"\r\n1;"c;d";-0,25\r\n'
    (tmp_path / "x").write_text(text, newline="")
    run = formats.read_run(tmp_path / "x", "csv")
    assert run.to_dict() == {"1": {"a": 2.5, "b": 1, "c;d": -0.25}}
    (tmp_path / "x").write_text("query_id;text\n1;a, b\n2;c\n")
    assert formats.read_queries(tmp_path / "x", "csv").frame.rows() == [("1", "a, b"), ("2", "c")]
    # Read with care, as a cell is no number or the state says more: the same.
    (tmp_path / "x").write_text("query_id;doc_id;score;state\n1;a;2,5;ok\n2;;;empty\n")
    run = formats.read_run(tmp_path / "x", "csv")
    assert (run.to_dict(), run.answers.height) == ({"1": {"a": 2.5}, "2": {}}, 2)
    (tmp_path / "x").write_text("query_id;doc_id;grade\n1;a;1,5\n1;b;1,5,0\n")
    with pytest.raises(InputError, match=r"line 3: the grade '1,5,0' is not a number"):
        formats.read_qrels(tmp_path / "x", "csv")
    (tmp_path / "x").write_text("query_id;doc_id;grade\n1;a;1\n1;b\n")
    with pytest.raises(InputError, match=r"line 3: 2 cells where there are 3 columns"):
        formats.read_qrels(tmp_path / "x", "csv")


@pytest.mark.parametrize(
    ("header", "are"),
    [
        ("query_id;doc_id", True),
        ('"query, typed";doc_id', True),
        ("query_id,doc_id", False),
        ("query_id,doc;id", False),  # a comma parts it already
        ("query_id", False),
        ('"query;id"', False),
        ("", False),
        ('"never closed;x', False),
        ("a\rb;c", True),
    ],
)
def test_a_header_tells_semicolons(header: str, are: bool) -> None:
    assert semicolons(header) == are
