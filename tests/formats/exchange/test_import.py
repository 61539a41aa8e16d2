"""What is put together of one file, and what is said about it."""

from __future__ import annotations

import pytest

from karat.errors import InputError
from karat.formats.exchange.import_ import ImportBuilder, counted
from karat.formats.exchange.source_file import Node


def test_ids_are_given_in_order_and_one_text_is_one_query() -> None:
    gathered = ImportBuilder("x", "f")
    ids = [gathered.query(text) for text in ("a", "b", "a")]
    assert ids == ["q1", "q2", "q1"]


def test_the_first_word_counts_and_the_second_is_said() -> None:
    gathered = ImportBuilder("x", "f")
    gathered.query("a", need="one")
    gathered.query("a", need="two", notes="n")
    gathered.document("d", {"title": "one", "size": 1})
    gathered.document("d", {"title": "two", "size": 1})
    made = gathered.exchange()
    assert made.queries is not None
    assert made.queries.rows() == [("q1", "a", "one", "n")]
    assert made.lost == ["a second 'need' of one query", "a second 'title' of one document"]


def test_columns_keep_a_type_they_share() -> None:
    gathered = ImportBuilder("x", "f")
    gathered.query("a")
    gathered.document(
        "d", {"year": 1, "price": 1, "mixed": 1, "big": 10**30, "title": 7, "far": 10**400}
    )
    gathered.document("e", {"year": 2, "price": 0.5, "mixed": "x", "title": "t", "far": 0.5})
    made = gathered.exchange().documents
    assert made is not None
    assert made.rows() == [
        ("d", 1, 1.0, "1", str(10**30), "7", str(10**400)),
        ("e", 2, 0.5, "x", None, "t", "0.5"),
    ]


def test_one_grade_of_a_rater_and_not_two() -> None:
    gathered = ImportBuilder("x", "f")
    query = gathered.query("star wars")
    gathered.judge(query, "d", 1.0, "ann")
    gathered.judge(query, "d", 2.0, "bob")
    gathered.judge(query, "d", None, "cy")
    with pytest.raises(InputError, match=r"twice by cy: cannot be judged and 2 \(query star wars"):
        gathered.judge(query, "d", 2.0, "cy")


def test_falling_scores_are_kept_and_others_are_not() -> None:
    gathered = ImportBuilder("x", "f")
    for query, scores in (("1", (3.0, 2.0)), ("2", (1.0, 1.0)), ("3", (None, 1.0))):
        gathered.query(None, query)
        for doc, score in zip("ab", scores, strict=True):
            gathered.rank("r", query, doc, score)
    rows = gathered.exchange().runs["r"].rows()
    assert rows == [
        ("1", "a", 3.0),
        ("1", "b", 2.0),
        ("2", "a", -1.0),
        ("2", "b", -2.0),
        ("3", "a", -1.0),
        ("3", "b", -2.0),
    ]


def test_nothing_is_an_error() -> None:
    with pytest.raises(InputError, match="f: the file contains no queries and no judgments"):
        ImportBuilder("x", "f").exchange()


@pytest.mark.parametrize(
    ("count", "what", "want"),
    [(1, "query", "1 query"), (2, "query", "2 queries"), (1200, "judgment", "1,200 judgments")],
)
def test_counts_read_as_words(count: int, what: str, want: str) -> None:
    assert counted(count, what) == want


def test_two_grades_of_one_rater_have_their_place_in_json() -> None:
    gathered = ImportBuilder("x", "f.json")
    query = gathered.query("a")
    list_ = list(Node([1, 2], ".ratings", "f.json").list())
    gathered.judge(query, "d", 1, " ann", node=list_[0])
    with pytest.raises(InputError, match=r"f\.json: \.ratings\[1\]: document d is judged twice"):
        gathered.judge(query, "d", 2, "ann ", node=list_[1])
    made = gathered.exchange()
    assert made.places == {("q1", "d", "ann"): ".ratings[0]"}
    assert made.made_ids


def test_a_file_without_content_says_what_to_do() -> None:
    with pytest.raises(InputError, match="fix: nothing follows its header"):
        ImportBuilder("x", "f").exchange()
