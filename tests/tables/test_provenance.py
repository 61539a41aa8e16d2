"""Cut points, and grades drawn from uncertain values."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from karat.tables import Qrels
from karat.tables.provenance import CutPoints, Provenance, Uncertain

POINTS = CutPoints((0.1, 0.3, 0.6), (0.0, 1.0, 2.0, 3.0))


def test_a_value_on_a_cut_point_has_the_higher_grade() -> None:
    values = np.array([0.0, 0.0999, 0.1, 0.29, 0.3, 0.6, 1.0])
    assert POINTS.grade(values).tolist() == [0, 0, 1, 1, 2, 3, 3]


@pytest.mark.parametrize(
    ("rel", "cut"),
    # From 0 on, every grade is relevant; above 3, none.
    [(1.0, 0.1), (1.5, 0.3), (2.0, 0.3), (3.0, 0.6), (0.0, None), (4.0, None)],
)
def test_the_lowest_relevant_value(rel: float, cut: float | None) -> None:
    assert POINTS.lowest(rel) == cut


def _judged(error: float) -> Qrels:
    rows = [("q1", "a", 1.0), ("q1", "b", 3.0), ("q2", "a", 0.0)]
    qrels = Qrels(pl.DataFrame(rows, ["query_id", "doc_id", "grade"], orient="row"))
    # a of q1 is known to be ½, a grade of 2 if it is drawn without an error; b has no error.
    known = pl.DataFrame(
        {"query_id": ["q1", "q2"], "doc_id": ["a", "a"], "logit": [0.0, -9.0]}
    ).with_columns(logit_se=pl.lit(error))
    qrels.provenance = Provenance("clicks", "by PBM", Uncertain(known, POINTS))
    return qrels


def test_draws_follow_the_error_and_leave_certain_grades() -> None:
    [exact] = _judged(0.0).draws(1, np.random.default_rng(1))
    assert exact.frame["grade"].to_list() == [2.0, 3.0, 0.0]
    rng = np.random.default_rng(1)
    drawn = [each.frame["grade"].to_list() for each in _judged(1.0).draws(4000, rng)]
    first, second, third = map(np.array, zip(*drawn, strict=True))
    # Above .6 is above logit .405: P(Z > .405) = .3426; below .1 below -2.197: .0140.
    assert (first == 3).mean() == pytest.approx(0.3426, abs=0.03)
    assert (first == 0).mean() == pytest.approx(0.0140, abs=0.008)
    assert (second == 3).all()
    assert (third == 0).all()


def test_a_selection_of_queries_keeps_whose_grades_they_are() -> None:
    some = _judged(1.0).only(["q1"])
    assert some.provenance is not None
    assert some.provenance.sources == "clicks"
    certain = Qrels.from_dict({"q": {"a": 1}})
    assert [each.to_dict() for each in certain.draws(2, np.random.default_rng(0))] == [
        {"q": {"a": 1.0}}, {"q": {"a": 1.0}},
    ]  # fmt: skip
