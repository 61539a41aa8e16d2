"""Agreement against scikit-learn, statsmodels, krippendorff, and published values.

Vectors are of their tests and documentation; the places are named beside them. Oracles are
scikit-learn 1.9.1, statsmodels 0.15.0 and krippendorff 0.9.0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import fleiss_kappa

from karat.stats.agreement import (
    METRICS,
    WEIGHTS,
    Ratings,
    Sums,
    ac1,
    alpha,
    confusion,
    fleiss,
    kappa,
    mean_kappa,
    mean_share_equal,
    ratio,
    share_equal,
)

NAN = math.nan


def ratings_of(rows: Sequence[Sequence[float]], per_query: int = 3) -> Ratings:
    """One row for each rater, one column for each item, NaN for none."""
    table = np.array(rows, np.float64)
    rater, item = np.nonzero(~np.isnan(table))
    grades, level = np.unique(table[rater, item], return_inverse=True)
    queries = -(-table.shape[1] // per_query)
    return Ratings(item // per_query, item, rater, level, grades, queries)


def counted(table: Sequence[Sequence[int]]) -> Ratings:
    """From how often each item (row) got each grade (column)."""
    most = max(sum(row) for row in table)
    rows = [[g for g, n in enumerate(row) for _ in range(n)] for row in table]
    full = [row + [NAN] * (most - len(row)) for row in rows]
    return ratings_of(np.array(full).T.tolist())


def cohen(a: Sequence[int], b: Sequence[int], weights: str, grades: Sequence[float]) -> float:
    one, other = np.array(a), np.array(b)
    query = np.arange(len(one)) // 4
    values = np.array(grades, np.float64)
    return kappa(query, one, other, values, int(query.max()) + 1, weights).whole  # type: ignore[arg-type]


def spread(table: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
    """Two gradings from how often each pair of grades was seen."""
    cells = [(i, j) for i, row in enumerate(table) for j, n in enumerate(row) for _ in range(n)]
    return [i for i, _ in cells], [j for _, j in cells]


V3 = (
    [0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 0, 1, 2, 3, 0, 0, 1, 3],
    [0, 0, 0, 1, 1, 1, 0, 2, 2, 1, 3, 3, 0, 2, 2, 2, 0, 0, 1, 3],
)
V5 = ([0, 0, 1, 1, 3, 3, 0, 1, 3, 3], [0, 0, 1, 3, 3, 1, 0, 1, 3, 3])
# Krippendorff's examples with gaps (krippendorff 0.9.0, krippendorff.py, the docstring of alpha).
V11 = [
    [NAN, NAN, NAN, NAN, NAN, 3, 4, 1, 2, 1, 1, 3, 3, NAN, 3],
    [1, NAN, 2, 1, 3, 3, 4, 3, NAN, NAN, NAN, NAN, NAN, NAN, NAN],
    [NAN, NAN, 2, 1, 3, 4, 4, NAN, 2, 1, 1, 3, 3, NAN, 4],
]
V12 = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
    [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
]
# Fleiss' example on Wikipedia (statsmodels stats/tests/test_inter_rater.py, table0).
V8 = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]
# Fleiss 1971 (the same file, diagnoses): each line a patient, six diagnoses of 1 to 5.
V9 = (
    "444444 222555 233335 555555 222444 113333 333355 113334 114444 555555 144444 124444 222333 "
    "144444 224445 333335 111455 111112 224444 133555 555555 244444 224555 114444 144445 222224 "
    "111155 224444 133333 555555"
)


# --- Cohen's kappa ---


@pytest.mark.parametrize(
    ("pair", "weights", "expected"),
    [
        # scikit-learn, metrics/tests/test_classification.py (.348).
        (spread([[20, 20], [10, 50]]), "none", 0.3478260870),
        # The same file: 46 x 0, 44 x 1, 10 x 2 against 50 x 0, 40 x 1, 10 x 2.
        (([0] * 46 + [1] * 44 + [2] * 10, [0] * 50 + [1] * 40 + [2] * 10), "none", 0.9315068493),
        (([0] * 46 + [1] * 44 + [2] * 10, [0] * 50 + [1] * 40 + [2] * 10), "linear", 0.9411764706),
        (
            ([0] * 46 + [1] * 44 + [2] * 10, [0] * 50 + [1] * 40 + [2] * 10),
            "quadratic",
            0.9541284404,
        ),
        # scikit-learn 1.9.1 with labels=[0, 1, 2, 3].
        (V3, "none", 0.6598639456),
        (V3, "linear", 0.7959183673),
        (V3, "quadratic", 0.8979591837),
        # SAS, by way of statsmodels' test_inter_rater.py (four decimals).
        (spread([[0, 4, 1], [0, 8, 0], [0, 1, 5]]), "none", 0.4842),
        (spread([[0, 4, 1], [0, 8, 0], [0, 1, 5]]), "linear", 0.4701),
        # The documentation of scikit-learn's cohen_kappa_score: negative, neutral, positive.
        (([0, 2, 0, 1, 2], [0, 2, 0, 1, 0]), "none", 0.6875),
    ],
)
def test_kappa_of_published_tables(
    pair: tuple[list[int], list[int]], weights: str, expected: float
) -> None:
    digits = 5e-5 if round(expected, 4) == expected else 1e-10
    assert cohen(*pair, weights, range(4)) == pytest.approx(expected, abs=digits)


def test_a_grade_that_nobody_used_keeps_its_place_on_the_scale() -> None:
    """Grade 2 is not used: where it is left out, 1 and 3 seem to be neighbours (.7778, .8551)."""
    seen = [0.0, 1.0, 3.0]
    at = [[seen.index(grade) for grade in side] for side in V5]
    for weights, expected in (("linear", 0.7101449275), ("quadratic", 0.7575757576)):
        assert cohen(*V5, weights, range(4)) == pytest.approx(expected, abs=1e-10)
        assert cohen(*at, weights, seen) == pytest.approx(expected, abs=1e-10)


def test_where_one_grade_is_rare_kappa_and_ac1_part() -> None:
    """[[80, 10], [5, 5]]: equal .85, κ .3182, AC1 .8080.

    Chance by κ: .9 x .85 + .1 x .15 = .78; (.85 - .78) / .22 = .3182. By AC1, the mean share of
    grade 0 being .875: 2 x .875 x .125 = .21875; (.85 - .21875) / .78125 = .8080.
    """
    rows = spread([[80, 10], [5, 5]])
    ratings = ratings_of(rows)
    assert mean_share_equal(ratings).whole == pytest.approx(0.85)
    assert mean_kappa(ratings).whole == pytest.approx(0.07 / 0.22)
    assert ac1(ratings, 2).whole == pytest.approx(0.63125 / 0.78125)
    assert fleiss(ratings).whole < mean_kappa(ratings).whole  # its chance is (.875² + .125²)


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 2), min_size=1, max_size=40), st.data())
def test_kappa_is_scikit_learns(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    weights = data.draw(st.sampled_from(WEIGHTS))
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    found = cohen(a, b, weights, range(4))
    if len({*a, *b}) == 1:
        assert math.isnan(found)  # every grade the same: undefined, never 1 nor 0
        return
    theirs = cohen_kappa_score(
        a, b, labels=[0, 1, 2, 3], weights=None if weights == "none" else weights
    )
    assert found == pytest.approx(theirs, abs=1e-12)
    assert found == pytest.approx(cohen(b, a, weights, range(4)), abs=1e-12)


def test_linear_weights_are_of_values_not_of_places() -> None:
    """Grades 0, 1, 10: taking 1 for 0 costs 1 of 10, and not 1 of 2.

    a = 0 1 2, b = 0 0 2 (places).
    Disagreement 1 / 3. Chance, rows (1 1 1) / 3, columns (2 0 1) / 3:
    (0 to 10: 10 x 1, 1 to 0: 1 x 2, 1 to 10: 9 x 1, 10 to 0: 10 x 2) / 9 = 41 / 9.
    """
    assert cohen([0, 1, 2], [0, 0, 2], "linear", [0, 1, 10]) == pytest.approx(1 - 3 / 41)


def test_mean_kappa_weighs_each_two_raters_by_what_they_share() -> None:
    rows = [
        [0, 1, 2, 3, 0, 1, 2, 3],
        [0, 1, 2, 2, 0, 0, 2, 3],
        [NAN, NAN, NAN, NAN, 1, 1, 2, 2],
    ]
    each = [
        (cohen([0, 1, 2, 3, 0, 1, 2, 3], [0, 1, 2, 2, 0, 0, 2, 3], "linear", range(4)), 8),
        (cohen([0, 1, 2, 3], [1, 1, 2, 2], "linear", range(4)), 4),
        (cohen([0, 0, 2, 3], [1, 1, 2, 2], "linear", range(4)), 4),
    ]
    expected = sum(value * n for value, n in each) / 16
    assert mean_kappa(ratings_of(rows), "linear").whole == pytest.approx(expected)


def test_two_raters_without_a_kappa_are_left_out_of_the_mean() -> None:
    rows = [[0, 1, 2, 3, 0], [0, 1, 1, 3, NAN], [NAN, NAN, NAN, NAN, 0]]
    assert mean_kappa(ratings_of(rows)).whole == pytest.approx(
        cohen([0, 1, 2, 3], [0, 1, 1, 3], "none", range(4))
    )


# --- more raters ---


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (V8, 0.2099307044),
        ([[row.count(g) for g in "12345"] for row in V9.split()], 0.4302445),  # R, package irr
        ([[7, 1], [3, 5]], 0.161905),
        ([[6, 1, 0], [0, 7, 0]], 0.708333),
    ],
)
def test_fleiss_of_published_tables(table: list[list[int]], expected: float) -> None:
    assert fleiss(counted(table)).whole == pytest.approx(expected, abs=5e-7)


def test_unequal_numbers_of_raters_as_in_irrcac() -> None:
    """irrCAC 0.4.4 on its raw_4raters: Fleiss .76117, AC1 .77544."""
    ratings = ratings_of(V12)
    assert fleiss(ratings).whole == pytest.approx(0.76117, abs=5e-6)
    assert ac1(ratings, 5).whole == pytest.approx(0.77544, abs=5e-6)


@given(st.integers(2, 5), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_fleiss_is_statsmodels(raters: int, items: int, seed: int) -> None:
    table = np.random.default_rng(seed).multinomial(raters, [0.4, 0.3, 0.2, 0.1], size=items)
    found = fleiss(counted(table.tolist())).whole
    if (table.sum(axis=0) > 0).sum() == 1:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(fleiss_kappa(table), abs=1e-12)


@pytest.mark.parametrize(
    ("rows", "metric", "expected"),
    [
        (V3, "nominal", 0.6678023850),
        (V3, "ordinal", 0.8947308394),
        (V3, "interval", 0.9004594181),
        (V11, "nominal", 0.6913580247),
        (V11, "ordinal", 0.8067214199),
        (V11, "interval", 0.8108448928),
        (V12, "nominal", 0.7434210526),
        (V12, "ordinal", 0.8153875038),
        (V12, "interval", 0.8491071429),
        # inspect_ai, tests/scorer/test_krippendorff.py: one column for each unit.
        ([[1, 3, 5], [1, 4, 5]], "ordinal", 94 / 99),
        ([[1, 3, 1], [2, 4, 1]], "interval", 19 / 24),
        ([[1, 0], [1, 0], [0, NAN]], "nominal", 1 / 3),
        ([[0, 0, 1, 1], [1, 1, 0, 0]], "nominal", -0.75),
        ([[1, 0, 1, 0], [1, 0, 1, 0], [1, 0, 1, 1]], "nominal", 1 - 132 / 420),
    ],
)
def test_alpha_of_published_tables(rows: list[list[float]], metric: str, expected: float) -> None:
    found = alpha(ratings_of(rows), metric).whole  # type: ignore[arg-type]
    assert found == pytest.approx(expected, abs=1e-10)


@given(st.integers(2, 4), st.integers(2, 12), st.integers(0, 2**32 - 1))
def test_alpha_is_krippendorffs(raters: int, items: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 4, (raters, items)).astype(np.float64)
    table[rng.random(table.shape) < 0.3] = NAN
    table[:2, 0] = 0, 1  # two grades at least, in one unit
    ratings = ratings_of(table.tolist())
    for metric in METRICS:
        theirs = krippendorff.alpha(table, level_of_measurement=metric)
        assert alpha(ratings, metric).whole == pytest.approx(theirs, abs=1e-10), metric


# --- laws ---


FIGURES = {
    "none": lambda r: mean_kappa(r, "none"),
    "quadratic": lambda r: mean_kappa(r, "quadratic"),
    "fleiss": fleiss,
    "ac1": lambda r: ac1(r, 4),
    "nominal": lambda r: alpha(r, "nominal"),
    "ordinal": lambda r: alpha(r, "ordinal"),
    "interval": lambda r: alpha(r, "interval"),
}


@pytest.mark.parametrize("name", FIGURES)
def test_chance_cannot_be_told_where_all_is_equal_or_nothing_is_judged_twice(name: str) -> None:
    for rows in ([[2.0] * 6] * 3, [[0, 1, NAN, NAN], [NAN, NAN, 2, 3]], [[1.0] * 4] * 7):
        found: Sums = FIGURES[name](ratings_of(rows))
        assert math.isnan(found.whole), rows
        assert np.isnan(found.without()).all(), rows


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_without_a_query_is_the_figure_of_the_others(name: str) -> None:
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 4, 24)
    table = np.where(rng.random((3, 24)) < 0.6, truth, rng.integers(0, 4, (3, 24))).astype(float)
    table[rng.random((3, 24)) < 0.2] = NAN
    found = FIGURES[name](ratings_of(table.tolist())).without()
    for query in range(8):
        rest = np.delete(table, np.s_[3 * query : 3 * query + 3], axis=1)
        alone = FIGURES[name](ratings_of(rest.tolist())).whole
        assert found[query] == pytest.approx(alone, abs=1e-12)


@pytest.mark.parametrize("name", FIGURES)
def test_resampled_is_computed_anew(name: str) -> None:
    """A query drawn twice is two queries: sums say the same as ratings written twice."""
    table = np.array([[0, 1, 2, 3, 1, 1], [0, 1, 1, 3, 2, 1], [0, 2, 2, 2, 1, 0]], float)
    sums = FIGURES[name](ratings_of(table.tolist()))
    found = sums.value(np.array([[2.0, 0.0], [3.0, 1.0]]) @ sums.table)
    twice, four = table[:, [0, 1, 2] * 2], table[:, [0, 1, 2] * 3 + [3, 4, 5]]
    assert found[0] == pytest.approx(FIGURES[name](ratings_of(twice.tolist())).whole, abs=1e-12)
    assert found[1] == pytest.approx(FIGURES[name](ratings_of(four.tolist())).whole, abs=1e-12)


def test_one_figure_minus_another() -> None:
    query = np.array([0, 0, 1])
    one = share_equal(query, np.array([0, 1, 2]), np.array([0, 1, 1]), 2)
    other = ratio(query, np.array([1.0, 2.0, 3.0]), np.ones(3), 2)
    assert one.minus(other).whole == pytest.approx(2 / 3 - 2)
    assert one.minus(other).without() == pytest.approx([0 - 3, 1 - 1.5])


def test_confusion_counts_what_who_said() -> None:
    found = confusion(np.array([0, 0, 2]), np.array([1, 1, 2]), 3)
    assert found.tolist() == [[0, 2, 0], [0, 0, 0], [0, 0, 1]]
