from __future__ import annotations

from pathlib import Path

import pytest

from karat import formats
from karat.errors import InputError


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
