"""Only LF and CR LF end a line, in every reader (decision 0005)."""

from __future__ import annotations

from pathlib import Path

import pytest

from karat import formats
from karat.errors import InputError
from karat.formats.events.log import UNEVEN, read_cells
from karat.formats.events.tally import Tally
from karat.formats.tables.lines import only_crlf, return_within
from karat.formats.tables.query_log import read_query_log
from karat.formats.tables.source import Source
from karat.formats.tables.trec import RUN

OTHERS = ["\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
"""What ``str.splitlines`` takes for line ends besides LF and CR."""


@pytest.mark.parametrize(
    ("data", "only", "within"),
    [
        (b"a\n", True, False),
        (b"a\r\n", True, False),
        (b"a\r\r\n", False, False),  # forgiven, but not by the fast ways
        (b"a\r", False, False),
        (b"a\rb\r\n", False, True),
        (b"\ra\n", False, True),
    ],
)
def test_what_is_a_line_end(data: bytes, only: bool, within: bool) -> None:
    assert only_crlf(data) == only
    assert return_within(data) == within


@pytest.mark.parametrize(
    ("text", "line"),
    [("foo\nbar\rbaz\n", 2), ("query,count\nfoo,3\nb\rar,2\n", 3), ("query\r\nfoo\rbar\r\n", 2)],
)
def test_a_query_log(text: str, line: int, tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(text.encode())
    with pytest.raises(InputError, match="carriage return") as caught:
        read_query_log(path)
    assert caught.value.line == line


def test_rows_of_an_event_log_are_counted_as_left_out(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(b"time,user_id,query\n1,u,a\r\n2,u,b\rc\r\n3,u,d\r\n")
    tally = Tally(str(path))
    with Source(path) as source:
        rows = [row["query"] for frame in read_cells(source, tally) for row in frame.to_dicts()]
    assert rows == ["a", "d"]
    assert dict(tally.dropped) == {UNEVEN: 1}


@pytest.mark.parametrize("mark", OTHERS)
def test_other_separators_end_no_line(mark: str, tmp_path: Path) -> None:
    """They are characters of ids and texts; in TREC files \\v and \\f separate, as in C."""
    path = tmp_path / "x.tsv"
    path.write_text(f"query_id\tdoc_id\tscore\nq\ta{mark}b\t2\nq\tc\t1\n", encoding="utf-8")
    assert formats.read_run(path).to_dict() == {"q": {f"a{mark}b": 2.0, "c": 1.0}}
    path.write_text(f"q1\tfoo{mark}bar\n", encoding="utf-8")
    assert formats.read_queries(path).frame["text"].to_list() == [f"foo{mark}bar"]


@pytest.mark.parametrize("blank", [" ", "\t", "  \t", "\v", "\f", *OTHERS, ""])
def test_no_run_line_swallows_another(blank: str, tmp_path: Path) -> None:
    path = tmp_path / "x.run"
    joined = f"q1 Q0 a 1 9 t{blank}q1 Q0 b 2 8 t\nq1 Q0 c 3 7 t\n"
    path.write_text(joined, encoding="utf-8")
    with pytest.raises(InputError, match="another line begins") as caught:
        formats.read_run(path)
    assert caught.value.line == 1


def test_what_might_be_joined_is_looked_for_where_it_is() -> None:
    """The pattern for whole chunks misses no line that the test of fields refuses."""
    assert RUN.more is not None
    lines = [
        "q Q0 a 1 9 t q Q0 b 2 8 t",
        "q Q0 a 1 9 t q Q0",
        "q Q0 a 1 9 Q0 b",
        "q q q0 b 2 8 t",
        "q 0 a 1 9 t q 0 b 2 8 t",
        "q 0 a 1 9 tq 0 b 2 -8.5 t",
        "q 0 a 1 9 t of words q 0 b 2 .5",
        "q Q0 a 1 9 t and more",
        "q 0 a 1 9 t 0 b 2 x",
        "q Q0 q0 1 9 t x",
        "q 1 a 1 9 t 1 2 3 4",
    ]
    refused = [line for line in lines if RUN.more.joined(line.split())]
    assert refused == [*lines[:7], lines[10]]  # its further fields are those of a run line
    assert all(RUN.more.like.search(f"q Q0 a 1 9 t\n{line}\n".encode()) for line in refused)
