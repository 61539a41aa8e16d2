"""Grades from relevance: cut points, the naive rule, and what raw click rates get wrong."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from karat.errors import UsageError
from karat.online.clicks.counts import Cells
from karat.online.clicks.grading import (
    Grading,
    by_grade,
    cut_points,
    graded,
    naive,
    opposing,
    rated_by_ctr,
)

SCALE = (0.0, 1.0, 2.0, 3.0)
NUMBERS = (
    "value", "ci_low", "ci_high", "logit", "logit_se", "shown", "clicked", "effective", "rank",
)  # fmt: skip
RELEVANCE = {"query": pl.String, "doc_id": pl.String, **dict.fromkeys(NUMBERS, pl.Float64)}


def relevance(*rows: dict[str, object]) -> pl.DataFrame:
    """Relevance of documents of q, with usual values for what is not given."""
    usual = {"query": "q", "ci_low": 0.0, "ci_high": 1.0, "logit": 0.0, "logit_se": 1.0}
    usual |= {"shown": 100.0, "clicked": 10.0, "effective": 50.0, "rank": 1.0}
    return pl.DataFrame([usual | row for row in rows], schema=RELEVANCE)


def test_default_cut_points_by_scale() -> None:
    assert cut_points(SCALE).cuts == (0.1, 0.3, 0.6)
    assert cut_points((0.0, 1.0)).cuts == (0.3,)
    assert cut_points((1.0, 2.0, 3.0)).grades == (1.0, 2.0, 3.0)


@pytest.mark.parametrize(
    ("grades", "cuts", "said"),
    [
        (SCALE, (0.1, 0.3), "expected 3 cut points for the grades 0 to 3, got 2"),
        (SCALE, (0.3, 0.1, 0.6), "not ascending"),
        (SCALE, (0.1, 0.3, 1.0), "between 0 and 1"),
        (SCALE, (0.1, 0.3, float("nan")), "between 0 and 1"),
        (tuple(range(11)), None, "no default cut points for 11 grades"),
    ],
)
def test_cut_points_that_are_refused(grades: object, cuts: object, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        cut_points(grades, cuts)  # type: ignore[arg-type]


def test_pairs_with_few_impressions_get_no_grade() -> None:
    frame = relevance(
        {"doc_id": "a", "value": 0.7, "effective": 20.0},
        {"doc_id": "b", "value": 0.7, "effective": 19.9},
        {"doc_id": "c", "value": 0.05, "ci_low": 0.01, "ci_high": 0.2},
        {"doc_id": "d", "value": None},
    )
    points = cut_points(SCALE)
    found = graded(frame, Grading(points))
    assert found.select("doc_id", "grade").rows() == [("a", 3.0), ("c", 0.0)]
    # The interval of a, 0 to 1, has all cut points; that of c has .1.
    assert [(r.grade, r.pairs, r.uncertain) for r in by_grade(found, points)] == [
        (0.0, 1, 1), (1.0, 0, 0), (2.0, 0, 0), (3.0, 1, 1),
    ]  # fmt: skip
    with pytest.raises(UsageError, match="not a number above 0"):
        Grading(points, 0.0)


def test_the_naive_rule_by_hand() -> None:
    # a: 10 times at rank 1 and 10 times at rank 2, 5 clicks satisfied and one perhaps; b never.
    cells = Cells(
        pl.DataFrame({"query": ["q", "q"], "doc_id": ["a", "b"]}),
        pl.DataFrame({"rank": [1, 2], "presentation": [None, None]}),
        np.array([0, 0, 1]),
        np.array([0, 1, 1]),
        shown=np.array([10.0, 10.0, 5.0]),
        clicked=np.array([7.0, 1.0, 0.0]),
        satisfied_low=np.array([4.0, 1.0, 0.0]),
        satisfied_high=np.array([5.0, 1.0, 0.0]),
        share=np.array([5.0, 5.0, 2.5]),
        share_clicked=np.array([3.5, 0.5, 0.0]),
        pages=10.0,
    )
    names = ("doc_id", "value", "ci_low", "ci_high", "shown", "clicked", "effective", "rank")
    assert naive(cells).select(*names).rows() == [
        ("a", 0.25, 0.25, 0.3, 20.0, 8.0, 20.0, 1.5),
        ("b", 0.0, 0.0, 0.0, 5.0, 0.0, 5.0, 2.0),
    ]
    assert naive(cells)["logit_se"].null_count() == 2


def test_a_document_that_was_shown_first_is_overrated() -> None:
    frame = relevance(
        {"doc_id": "first", "value": 0.6, "clicked": 60.0, "rank": 1.0},
        {"doc_id": "fifth", "value": 0.8, "clicked": 20.0, "rank": 5.0},
    ).rename({"query": "query_id"})
    # 80 clicks where relevance alone gives 140: expected are .34 and .46.
    [over], [under] = rated_by_ctr(frame)
    assert (over.doc_id, over.ctr, over.ctr_place, over.value_place) == ("first", 0.6, 1, 2)
    assert (under.doc_id, under.ctr, under.ctr_place, under.value_place) == ("fifth", 0.2, 2, 1)
    alike = frame.with_columns(clicked=pl.col("value") * 50)  # as clicks say: nothing to report
    assert rated_by_ctr(alike) == ([], [])
    assert rated_by_ctr(frame.head(0)) == ([], [])


def test_intervals_on_the_other_side_of_relevant() -> None:
    rows = [
        ("low", 2.0, 0.01, 0.05),  # relevant to people, below .1 by clicks: .05 away
        ("lower", 1.0, 0.0, 0.02),
        ("unsure", 2.0, 0.01, 0.2),
        ("high", 0.0, 0.1, 0.9),
        ("agrees", 3.0, 0.5, 0.9),
    ]
    both = pl.DataFrame(rows, ["doc_id", "people", "ci_low", "ci_high"], orient="row")
    found = opposing(both.with_columns(query_id=pl.lit("q")), cut_points(SCALE))
    assert found.select("doc_id", "clicks").rows() == [
        ("lower", "lower"), ("low", "lower"), ("high", "higher"),
    ]  # fmt: skip
    assert opposing(both.with_columns(query_id=pl.lit("q")), cut_points(SCALE), 0.0).is_empty()
