"""Click logs in the research form: what is skipped, what counts, and damaged lines."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from karat.errors import InputError
from karat.formats.events import click_pages
from karat.formats.events.click_pages import looks_like_pages, read_pages
from karat.formats.tables import source


def file_of(folder: Path, text: str) -> Path:
    path = folder / "pages.txt"
    path.write_bytes(text.encode())
    return path


def rows(path: Path, depth: int = 10) -> list[tuple[str, str, str, float]]:
    """Query, documents, those clicked, and count of each page, in order."""
    pages = read_pages(path, depth=depth).pages
    names = pages.pairs["doc_id"].to_list()
    queries = pages.pairs["query"].to_list()
    found = []
    for docs, clicked, count in zip(pages.docs, pages.clicked, pages.count, strict=True):
        shown = "".join(names[doc] for doc in docs if doc >= 0)
        hits = "".join(names[doc] for doc, hit in zip(docs, clicked, strict=True) if hit)
        found.append((queries[docs[0]], shown, hits, float(count)))
    return found


def test_pages_of_a_line(tmp_path: Path) -> None:
    path = file_of(tmp_path, "q\ta,b,c : b , a;q\tb,a : ;q\ta,b,c:a,b\nr\tc : c\n")
    # The first and the third page are the same: the same documents, and the same two clicks.
    assert rows(path) == [("q", "abc", "ab", 2), ("q", "ba", "", 1), ("r", "c", "c", 1)]


def test_blanks_and_empty_pages_are_skipped(tmp_path: Path) -> None:
    path = file_of(tmp_path, " q x \t a ,  b : b ;; ;\r\n\r\n\n  ;r\tb,a, : ,a,\r\n")
    assert rows(path) == [("q x", "ab", "b", 1), ("r", "ba", "a", 1)]


def test_a_page_without_a_query_has_that_of_its_line(tmp_path: Path) -> None:
    path = file_of(tmp_path, "q\ta : a;b : ;\tc : c\nr\ta : \n")
    assert [row[:2] for row in rows(path)] == [("q", "a"), ("q", "b"), ("q", "c"), ("r", "a")]


def test_ids_with_colons(tmp_path: Path) -> None:
    path = file_of(tmp_path, "q\thttp://a, http://b : http://b\n")
    pages = read_pages(path).pages
    assert pages.pairs["doc_id"].to_list() == ["http://a", "http://b"]
    assert pages.clicked.tolist() == [[False, True]]


def test_what_is_counted_and_not_shown(tmp_path: Path) -> None:
    path = file_of(tmp_path, "q\ta,b,a : a , a , x , y;q\ta,b,c : c , a;q\tb,a\n")
    read = read_pages(path, depth=2)
    # x and y are on no page, and each rank of a repeated document counts. Below rank 2 are a and c,
    # both clicked.
    assert (read.off_page, read.below, read.clicks_below, read.uncut) == (2, 2, 2, 1)
    assert rows(path, depth=2) == [("q", "ab", "a", 2), ("q", "ba", "", 1)]
    assert read_pages(path).pages.clicked[0].tolist() == [True, False, True]


def test_empty_places_are_minus_one(tmp_path: Path) -> None:
    pages = read_pages(file_of(tmp_path, "q\ta,b : b\nq\tb : b\n")).pages
    assert pages.docs.tolist() == [[0, 1], [1, -1]]
    assert pages.clicked.tolist() == [[False, True], [True, False]]
    assert pages.docs.dtype == np.int32


def test_a_compressed_file_in_small_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"q{n % 7}\td{n},d{n + 1} : d{n}\n" for n in range(400))
    whole = rows(file_of(tmp_path, text))
    path = tmp_path / "pages.gz"
    path.write_bytes(gzip.compress(text.encode()))
    monkeypatch.setattr(source, "CHUNK", 200)
    monkeypatch.setattr(source, "HEAD", 100)
    assert rows(path) == whole


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("a,b : a", "a page without a query"),
        ("q\ta : b : c", "several ':'"),
        ("q\tx:a,y:b", "several ':'"),
        ("q\t : a", "a page without documents"),
        ("q\ta,,b : a", "an empty document id"),
        ("q\t,a : a", "an empty document id"),
        ("q\ta\tb : a", "a second tab"),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: str, what: str) -> None:
    path = file_of(tmp_path, f"q\ta : a\n\n{line}\nq\ta : a\n")
    with pytest.raises(InputError, match=what) as error:
        read_pages(path)
    assert (error.value.file, error.value.line) == (str(path), 3)
    assert error.value.fix is not None


def test_text_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    path = tmp_path / "pages.txt"
    path.write_bytes(b"q\ta : a\nq\t\xff : a\n")
    with pytest.raises(InputError, match="UTF-8") as error:
        read_pages(path)
    assert error.value.line == 2


def test_a_file_without_pages(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no pages of results"):
        read_pages(file_of(tmp_path, ";;\n"))


@pytest.mark.parametrize(
    ("text", "pages"),
    [
        ("\n;q\ta,b : a;q\tb : \n", True),
        ("q\ta : \n", True),
        ("user_id,time,action\nu,1,search\n", False),
        ("user_id\taction\nu\tsearch\n", False),
        ("user_id\ttime\taction\nu\t12:00\tsearch\n", False),
        ('{"q":\t"a, b: c"}\n', False),
        ('[{"q":\t"a, b: c"}]\n', False),
        ("", False),
    ],
)
def test_the_form_is_detected(tmp_path: Path, text: str, pages: bool) -> None:
    assert looks_like_pages(file_of(tmp_path, text)) is pages


def test_a_folder_or_nothing_is_not_in_the_form(tmp_path: Path) -> None:
    assert not looks_like_pages(tmp_path)
    assert not looks_like_pages(tmp_path / "none.txt")
    assert click_pages.looks_like_pages("events/*.jsonl") is False
