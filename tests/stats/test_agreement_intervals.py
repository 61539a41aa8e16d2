"""Intervals of agreement: worked through by hand, and how often they hold the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.choosing import deep_but

from karat.stats.agreement import (
    Ratings,
    Sums,
    agreement_interval,
    kappa,
    mean_kappa,
    more_needed,
    ratio,
    share_equal,
)
from karat.stats.intervals import t_interval
from karat.stats.student import t_quantile


def shares(equal: list[int], of: int = 4) -> Sums:
    """A query for each, with so many of its pairs equal."""
    query = np.repeat(np.arange(len(equal)), of)
    second = (np.arange(of) >= np.array(equal, np.int64)[:, None]).ravel().astype(np.int64)
    return share_equal(query, np.zeros(len(query), np.int64), second, len(equal))


def test_of_a_mean_over_queries_of_one_size_it_is_students() -> None:
    values = np.array([0.3, 1.7, -0.4, 0.9, 2.2])
    found = agreement_interval(ratio(np.arange(5), values, np.ones(5), 5))
    plain = t_interval(values)
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high))


def test_of_a_share_it_is_on_the_logarithm_of_disagreement() -> None:
    """3, 2 and 4 of 4 pairs equal: the share is 9 / 12 = .75.

    Without each query in turn 8 pairs are left, of which 2, 1 and 3 are not equal. Their logarithms
    have the mean m; the error is the root of 2/3 times the sum of their squared distances from m;
    t of 2 degrees of freedom is 4.302653.
    """
    logs = [math.log(x / 8) for x in (2, 1, 3)]
    m = sum(logs) / 3
    times = math.exp(4.302652729911275 * math.sqrt(2 / 3 * sum((x - m) ** 2 for x in logs)))
    found = agreement_interval(shares([3, 2, 4]))
    assert 1 - 0.25 * times < 0
    assert found.low == 0.0
    assert found.high == pytest.approx(1 - 0.25 / times)


def test_it_leans_away_from_one_and_stays_within_bounds() -> None:
    found = agreement_interval(shares([9, 10, 8, 10, 9, 10, 9, 10], of=10))
    assert found.low is not None
    assert found.high is not None
    assert 75 / 80 - found.low > found.high - 75 / 80 > 0
    assert 0 <= found.low < found.high < 1


def test_all_disagreement_in_one_query_leaves_no_logarithm() -> None:
    """10, 10, 10, 5 of 10 equal: .875; without each .8333, .8333, .8333, 1.

    Mean .875; error: the root of 3/4 (3 x .0417² + .125²) = .125; t(3) = 3.182446.
    """
    found = agreement_interval(shares([10, 10, 10, 5], of=10))
    assert found.low == pytest.approx(0.875 - t_quantile(0.975, 3) * 0.125)
    assert found.high == 1.0


def test_a_query_that_says_nothing_does_not_count() -> None:
    with_more = shares([3, 2, 4, 1])
    empty = Sums(
        np.vstack([with_more.table, np.zeros((20, 2))]),
        with_more.value,
        np.append(with_more.weight, np.zeros(20)),
        with_more.floor,
    )
    assert agreement_interval(empty) == agreement_interval(with_more)


@pytest.mark.parametrize(
    ("sums", "reason"),
    [
        (shares([4, 4, 4]), "no disagreement was observed"),
        (shares([3, 3, 3]), "all queries give the same value"),
        (shares([3]), "one query has no spread"),
        (shares([]), "the statistic is undefined"),
    ],
)
def test_where_there_is_none_it_says_why(sums: Sums, reason: str) -> None:
    found = agreement_interval(sums)
    assert (found.low, found.high, found.reason) == (None, None, reason)


def test_a_figure_that_hangs_on_one_query_has_no_interval() -> None:
    """Without the second query both raters said 0 throughout."""
    query = np.array([0, 0, 1, 1])
    first, second = np.array([0, 0, 1, 0]), np.array([0, 0, 1, 1])
    sums = kappa(query, first, second, np.arange(2.0), 2)
    assert (
        agreement_interval(sums).reason == "without one of the queries the statistic is undefined"
    )


def test_how_many_more() -> None:
    """Disagreement .2 at κ = .8, with an upper end of .4; the target allows .3.

    log(.4 / .2) / log(.3 / .2) = 1.7095; squared 2.9224: 100 pairs have to become 292.24.
    """
    assert more_needed(0.8, 0.6, 100, 0.7) == 193
    assert more_needed(0.8, 0.7, 100, 0.7) == 0
    assert more_needed(0.7, 0.6, 100, 0.7) is None
    assert more_needed(0.2, -0.1, 100, 0.7) is None


def test_so_many_more_do_suffice() -> None:
    """The same queries over again, as often as said: the interval then lies above the target."""
    few = shares([9, 10, 8, 10, 9, 7, 10, 9, 10, 8] * 3, of=10)
    span = agreement_interval(few)
    assert span.low is not None
    target = 0.88
    more = more_needed(few.whole, span.low, 300, target)
    assert more is not None
    assert more > 0
    times = math.ceil((300 + more) / 100)
    many = agreement_interval(shares([9, 10, 8, 10, 9, 7, 10, 9, 10, 8] * times, of=10))
    assert many.low is not None
    assert many.low >= target > span.low


def grade(rng: np.random.Generator, queries: int, documents: int = 10) -> Ratings:
    """Two raters who each read a whole query a little stricter or laxer."""
    n = queries * documents
    relevance = rng.normal(0, 1, (queries, documents)) + rng.normal(0, 0.7, (queries, 1))
    levels = [
        np.digitize(
            relevance
            + 0.5 * rng.normal(size=relevance.shape)
            + 0.5 * rng.normal(size=(queries, 1)),
            (0.3, 1.0, 1.7),
        ).ravel()
        for _ in range(2)
    ]
    return Ratings(
        np.tile(np.repeat(np.arange(queries), documents), 2),
        np.tile(np.arange(n), 2),
        np.repeat([0, 1], n),
        np.concatenate(levels).astype(np.int64),
        np.arange(4.0),
        queries,
    )


@pytest.mark.parametrize("queries", deep_but([10], [10, 20, 50]))
def test_it_holds_the_truth_about_as_often_as_it_says(queries: int) -> None:
    """400 samples: 95 % has a standard error of 1.1, so 91.5 is three of them below.

    A percentile bootstrap at 10 queries is below that (benchmarks/agreement_coverage.py, which
    compares six intervals at length).
    """
    rng = np.random.default_rng(20_261_121)
    truth = mean_kappa(grade(rng, 20_000), "quadratic").whole
    held = 0
    for _ in range(400):
        span = agreement_interval(mean_kappa(grade(rng, queries), "quadratic"))
        assert span.low is not None
        assert span.high is not None
        held += span.low <= truth <= span.high
    assert 0.915 <= held / 400 <= 0.985
