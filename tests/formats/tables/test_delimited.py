from __future__ import annotations

from pathlib import Path

import pytest

from karat import formats
from karat.errors import InputError
from karat.formats.tables import source
from karat.formats.tables.delimited import is_semicolon_header


def test_quoted_as_rfc_4180_says(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(
        b'query_id,doc_id,"text"\r\n"1","a ""b"", c","two\r\nlines"\r\n2,,""\r\n'
    )
    frame = formats.read_queries(tmp_path / "x").frame
    assert frame.rows() == [("1", "two\r\nlines", 'a "b", c'), ("2", "", None)]


def test_cells_that_span_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deep: bool
) -> None:
    """A chunk may end within quotes; the rows are the same, and so is the line of a fault."""
    if not deep:
        monkeypatch.setattr(source, "CHUNK", 1 << 16)
    rows = [(str(i), f"line\n{i}" * (i % 50)) for i in range(60_000 if deep else 1_500)]
    text = "doc_id,text\n" + "".join(f'{i},"{cell}"\n' for i, cell in rows)
    assert len(text) > 2 * source.CHUNK
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


def test_a_comma_in_a_name_hides_no_semicolons(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("query_id;doc_id;grade;Comment, free\n1;a;1,5;\n")
    assert formats.read_qrels(tmp_path / "x").to_dict() == {"1": {"a": 1.5}}


def test_weights_with_a_decimal_comma(tmp_path: Path) -> None:
    text = "query_id;text;weight;probability;size\n1;a, b;1,5;0,25;1,5\n2;c;1,5E-05;1e-3;2\n"
    (tmp_path / "x").write_text(text)
    frame = formats.read_queries(tmp_path / "x", "csv").frame
    assert frame["weight"].to_list() == [1.5, 1.5e-5]
    assert frame["probability"].to_list() == ["0.25", "1e-3"]
    assert frame["size"].to_list() == ["1,5", "2"]  # an attribute is text
    (tmp_path / "x").write_text("query_id;doc_id;score\n1;a;1,5E-05\n")
    assert formats.read_run(tmp_path / "x", "csv").to_dict() == {"1": {"a": 1.5e-5}}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "1;a;1\n2;b;much\n",
            "line 3: the weight 'much' is not a number \\(query 2\\)\n.*a decimal point",
        ),
        ('1,"a\nb",1\n2,b,"1,5"\n', "line 4: .*'1,5'.*\n.*write 1.5, or separate .* semicolons"),
        ("1\ta\t1\n2\tb\t1,5\n", "line 3: .*'1,5'.*\n  fix: write 1.5$"),
    ],
)
def test_a_weight_that_is_none_is_named_with_its_line(tmp_path: Path, text: str, says: str) -> None:
    separator = next(each for each in ";\t," if each in text.partition("\n")[0])
    (tmp_path / "x").write_text(separator.join(("query_id", "text", "weight")) + "\n" + text)
    with pytest.raises(InputError, match=says):
        formats.read_queries(tmp_path / "x", "tsv" if separator == "\t" else "csv")


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
        ("query_id;doc_id;grade;Comment, free", True),
        ("query_id;Text, typed", True),
        ("query_id,doc_id,note; a; b; c; d", False),
        ("x;y;z, w", True),  # none is known: the more
    ],
)
def test_a_header_tells_semicolons(header: str, are: bool) -> None:
    assert is_semicolon_header(header) == are
