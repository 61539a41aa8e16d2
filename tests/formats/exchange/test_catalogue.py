"""What the catalogue promises: no change that is not said, no file by halves."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from karat.errors import InputError, UsageError
from karat.formats.exchange.catalogue import EXCHANGES, read_exchange, write_exchange
from karat.tables.golden.golden_sets import Exchange

ONE_GRADE = [
    peer.name
    for peer in EXCHANGES.values()
    if peer.write and peer.holds.judgments and not peer.holds.raters
]
BY_TEXT = [peer.name for peer in EXCHANGES.values() if peer.write and not peer.holds.ids]
TWO = pl.DataFrame(
    {"query_id": ["1", "1"], "doc_id": ["a", "a"], "grade": [3.0, 1.0], "rater": ["m", "n"]}
)


def test_every_format_says_what_it_is_good_for() -> None:
    for name, peer in EXCHANGES.items():
        assert peer.name == name
        assert peer.what
        assert peer.reads
        assert bool(peer.writes) == (peer.write is not None)
        assert set(peer.writes) <= {"queries", "documents", "judgments", "runs"}


@pytest.mark.parametrize("name", ONE_GRADE)
def test_raters_who_disagree_are_not_made_one(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="grades 3 and 1 by different raters"):
        write_exchange(Exchange("made", judgments=TWO), tmp_path / "out", name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ONE_GRADE)
def test_raters_who_agree_are_one_grade_and_that_is_said(name: str, tmp_path: Path) -> None:
    same = TWO.with_columns(grade=pl.lit(2.0))
    told = write_exchange(Exchange("made", judgments=same), tmp_path / "out", name)
    assert "1 judgment equal to another rater's" in told.lost


@pytest.mark.parametrize("name", BY_TEXT)
def test_two_queries_of_one_text_are_not_made_one(name: str, tmp_path: Path) -> None:
    queries = pl.DataFrame({"query_id": ["1", "2"], "text": ["a", "a"]})
    with pytest.raises(InputError, match="queries 1 and 2 have the same text, 'a'"):
        write_exchange(Exchange("made", queries=queries, judgments=TWO[:1]), tmp_path / "o", name)


@pytest.mark.parametrize("grade", [float("nan"), float("inf")])
def test_a_grade_that_is_no_number_is_not_written(grade: float, tmp_path: Path) -> None:
    judged = pl.DataFrame({"query_id": ["1"], "doc_id": ["a"], "grade": [grade]})
    with pytest.raises(InputError, match="not a finite number"):
        write_exchange(Exchange("made", judgments=judged), tmp_path / "out", "csv")


def test_a_number_json_has_no_word_for_leaves_no_file(tmp_path: Path) -> None:
    run = pl.DataFrame({"query_id": ["1"], "doc_id": ["a"], "score": [1.0]})
    documents = pl.DataFrame({"doc_id": ["a"], "price": [float("nan")]})
    with pytest.raises(InputError, match="cannot be written"):
        write_exchange(
            Exchange("made", documents=documents, runs={"r": run}),
            tmp_path / "o",
            "quepid-snapshot",
        )
    assert list(tmp_path.iterdir()) == []


def test_names_of_formats_are_checked(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean quepid-csv"):
        read_exchange(tmp_path / "x", "quepid_csv")
    with pytest.raises(UsageError, match="rankquest can only be read"):
        write_exchange(Exchange("made"), tmp_path / "x", "rankquest")


def test_a_file_may_be_compressed(tmp_path: Path) -> None:
    path = tmp_path / "out.csv.gz"
    write_exchange(Exchange("made", judgments=TWO), path, "csv")
    assert path.read_bytes().startswith(b"\x1f\x8b")
    found = read_exchange(path).judgments
    assert found is not None
    assert found.drop("reason").equals(TWO)


@pytest.mark.parametrize(
    "text",
    [
        "just words\n",
        '{"a": 1}',
        "[1]",
        '"text"',
        "a,b,c\n1,2,3\n",
        "query_id,doc_id,score\n1,a,2\n",
    ],
)
def test_what_fits_no_format_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(text)
    with pytest.raises(InputError, match="unknown format"):
        read_exchange(path)


def test_missing_and_empty_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        read_exchange(tmp_path / "none")
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(InputError, match="the file is empty"):
        read_exchange(tmp_path / "empty")
    with pytest.raises(InputError, match="expected a file, got a folder"):
        read_exchange(tmp_path, "csv")


@pytest.mark.parametrize(
    ("text", "name", "says"),
    [
        (
            "query_id\tdoc_id\tgrade\n1\ta\t2\n",
            "rre",
            "fix: this looks like csv: choose that format",
        ),
        ("just words\n", "rre", "fix: rre is RRE's ratings: choose another format"),
        ("query_id,doc_id,grade\n1,a,three\n", "csv", "fix: write grades as numbers, such as 2"),
    ],
)
def test_what_is_in_another_format_is_told(text: str, name: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        read_exchange(path, name)
