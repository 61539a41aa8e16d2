"""Judgments: what is refused, and what agreement is about."""

from __future__ import annotations

import polars as pl
import pytest

from karat.errors import InputError
from karat.tables.judgments import Judgments

ROW = {
    "judgment": 1,
    "query_id": "q",
    "doc_id": "d",
    "grade": 2.0,
    "state": "graded",
    "rater": "ann",
    "source": "human",
    "kind": "rating",
    "time_us": 5,
}


def judgments(*rows: dict[str, object]) -> Judgments:
    made = [{**ROW, "judgment": n, **row} for n, row in enumerate(rows)]
    return Judgments(pl.DataFrame(made, infer_schema_length=None), (0.0, 3.0), "here")


def test_ratings_are_first_grades_of_people_who_could_judge() -> None:
    held = judgments(
        {},
        {"kind": "repeat"},
        {"kind": "adjudication", "rater": "bob"},
        {"state": "cannot_judge", "grade": None, "reason": "language"},
        {"rater": "bob", "grade": 0.0},
    )
    assert held.ratings["judgment"].to_list() == [0, 4]
    assert held.raters == ["ann", "bob"]
    assert held.frame["document_hash"].to_list() == [None] * 5
    assert len(held) == 5


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"grade": 4.0}, "not on the scale from 0 to 3"),
        ({"grade": None}, "state and grade differ"),
        ({"state": "cannot_judge"}, "state and grade differ"),
        ({"state": "later"}, "unknown state"),
        ({"source": "robot"}, "unknown source"),
        ({"kind": "vote"}, "unknown kind"),
        ({"query_id": ""}, "query_id"),
    ],
)
def test_what_is_refused(row: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        judgments({}, row)
