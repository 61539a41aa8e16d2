"""Agreement of clicks with people: κ, order, and cut points chosen on other queries."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from karat.online.clicks.agreement import agreement, best_cuts
from karat.stats.agreement import kappa
from karat.tables.online.clicks import ClickOrigin
from karat.tables.provenance import CutPoints

ORIGIN = ClickOrigin("PBM", (0.1, 0.3, 0.6), (0.0, 1.0, 2.0, 3.0), 20.0, None, "log", 0, True)
POINTS = CutPoints(tuple(ORIGIN.cuts), tuple(ORIGIN.grades))


def clicks(values: np.ndarray, docs: int) -> pl.DataFrame:
    """Grades of so many documents a query from their values, by the cut points of ``ORIGIN``."""
    return pl.DataFrame(
        {
            "query_id": [f"q{i // docs}" for i in range(len(values))],
            "doc_id": [f"d{i % docs}" for i in range(len(values))],
            "value": values,
            "ci_low": np.maximum(values - 0.02, 0),
            "ci_high": np.minimum(values + 0.02, 1),
            "grade": POINTS.grade(values),
            "effective": 100.0,
            "rank": (np.arange(len(values)) % docs) + 1.0,
        }
    )


def test_by_hand() -> None:
    found = clicks(np.array([0.7, 0.2, 0.05, 0.05, 0.65, 0.2]), 3)
    # As grades: 3 1 0 | 0 3 1. People give 3 1 0 | 3 0 1: four of six are equal.
    people = found.select("query_id", "doc_id", grade=pl.Series([3.0, 1.0, 0.0, 3.0, 0.0, 1.0]))
    more = pl.DataFrame({"query_id": ["q9"], "doc_id": ["d0"], "grade": [2.0]})
    result = agreement(found, pl.concat([people, more]), ORIGIN, weights="none")
    # Chance: each has two of each of three grades, so 1/3; κ = (4/6 - 1/3) / (2/3) = 1/2.
    assert result.all.kappa.value == pytest.approx(0.5)
    # Three ordered pairs a query: all of the first as people do. Of the second people have
    # d0 > d2 > d1, clicks d1 > d2 > d0: none.
    assert result.all.ordered.value == pytest.approx(0.5)
    assert (result.only_clicks, result.only_people) == (0, 1)
    assert [row.value for row in result.ranks] == ["1", "2-3"]
    assert [(row.doc_id, row.clicks) for row in result.opposing] == [
        ("d1", "higher"),
        ("d0", "lower"),
    ]
    assert result.confusion.counts[0] == (1, 0, 0, 1)
    assert result.best_cuts is None  # too few pairs to choose from
    assert "too few" not in result.cross_fitted.reason
    assert result.cross_fitted.value is None


def test_grades_of_the_naive_rule_oppose_nothing() -> None:
    found = clicks(np.array([0.05, 0.65]), 2)
    people = found.select("query_id", "doc_id", grade=pl.Series([3.0, 0.0]))
    corrected = agreement(found, people, ORIGIN)
    assert corrected.oppose == 2
    uncorrected = ClickOrigin("naive", ORIGIN.cuts, ORIGIN.grades, 20.0, None, "log", 0, False)
    assert agreement(found, people, uncorrected).oppose == 0


@pytest.mark.parametrize("weights", ["none", "linear", "quadratic"])
def test_the_best_cut_points_are_those_of_the_highest_kappa(weights: str) -> None:
    rng = np.random.default_rng(3)
    values = rng.random(60)
    # People grade from .25, .5 and .75 on, with some noise.
    grades = np.clip(np.floor(4 * values + rng.normal(0, 0.3, 60)), 0, 3)
    both = clicks(values, 3).with_columns(people=grades)
    found = best_cuts(both, POINTS, weights)  # type: ignore[arg-type]
    assert found is not None

    def value(points: CutPoints) -> float:
        levels = np.arange(4.0)
        places = (grades.astype(int), points.grade(values).astype(int))
        return kappa(np.zeros(60, int), *places, levels, 1, weights).whole  # type: ignore[arg-type]

    best = value(found)
    tried = np.quantile(values, np.arange(1, 40) / 40)
    for _ in range(300):
        cuts = np.sort(rng.choice(tried, 3, replace=False))
        assert value(CutPoints(tuple(cuts.tolist()), POINTS.grades)) <= best + 1e-12


def test_cross_fitted_cut_points_agree_better_than_bad_ones_and_not_by_chance() -> None:
    rng = np.random.default_rng(4)
    values = rng.random(400)
    wrong = CutPoints((0.01, 0.02, 0.03), POINTS.grades)
    origin = ClickOrigin("PBM", wrong.cuts, wrong.grades, 20.0, None, "log", 0, True)
    found = clicks(values, 4).with_columns(grade=wrong.grade(values))
    people = found.select("query_id", "doc_id", grade=pl.Series(POINTS.grade(values)))
    result = agreement(found, people, origin)
    assert result.all.kappa.value is not None
    assert result.cross_fitted.value is not None
    assert result.all.kappa.value < 0.2
    assert result.cross_fitted.value > 0.95
    assert result.best_cuts == pytest.approx(ORIGIN.cuts, abs=0.05)
    # Grades that have nothing to do with clicks: what is chosen does not agree on other queries.
    shuffled = people.with_columns(pl.col("grade").shuffle(5))
    noise = agreement(found, shuffled, origin).cross_fitted
    assert noise.value == pytest.approx(0.0, abs=0.15)


def test_classes_and_no_common_pair() -> None:
    found = clicks(np.array([0.7, 0.2, 0.05, 0.05]), 2)
    classed = {"q0": "code", "q1": None}
    people = found.select(
        "query_id", "doc_id", "grade", pl.col("query_id").replace(classed).alias("class")
    )
    result = agreement(found, people, ORIGIN, by="class")
    assert [row.value for row in result.classes] == ["code", "(no class)"]
    assert result.classes[0].kappa.value == 1.0
    nothing = agreement(found, people.with_columns(query_id=pl.lit("x")), ORIGIN, by="class")
    assert (nothing.all.kappa.pairs, nothing.all.kappa.value, nothing.oppose) == (0, None, 0)
    assert nothing.classes == []
