"""Errors of means whose values are drawn: Rubin's rule, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from karat.stats.imputation import combined
from karat.stats.intervals import Estimate


def test_by_hand() -> None:
    # W = .1² = .01; B of .4 and .6 is .02; T = .01 + 1.5 · .02 = .04, three quarters of it B's.
    found = combined(Estimate(0.5, 0.1, 9), np.array([0.4, 0.6]))
    assert found.error == pytest.approx(0.2)
    assert found.share == pytest.approx(0.75)
    # Of the draws 1 / .75² = 1.778; of the queries 9 · 10 / 12 · .25 = 1.875.
    assert found.df == pytest.approx(1 / (0.75**2 + 1 / 1.875))


def test_certain_grades_change_nothing() -> None:
    for drawn in (np.array([0.4, 0.4, 0.4]), np.array([0.4]), np.zeros(0)):
        found = combined(Estimate(0.5, 0.1, 9), drawn)
        assert (found.error, found.df, found.share) == (0.1, 9, 0.0)


@pytest.mark.deep
def test_coverage_where_draws_are_from_the_right_posterior() -> None:
    """A mean of 40 queries; the value of each is known with an error as large as their spread."""
    rng, inside, times = np.random.default_rng(0), 0, 2_000
    for _ in range(times):
        true = rng.normal(0.0, 1.0, 40)
        seen = true + rng.normal(0.0, 1.0, 40)
        drawn = (seen + rng.normal(0.0, 1.0, (20, 40))).mean(axis=1)
        within = Estimate(seen.mean(), seen.std(ddof=1) / np.sqrt(40), 39)
        span = combined(within, drawn).interval(within.centre)
        assert span.low is not None
        assert span.high is not None
        inside += span.low <= 0 <= span.high
    # Noisy values already spread more, so T is 3/2 of the true variance: 1.96 · 1.22 reach 98.4 %.
    assert 0.97 <= inside / times <= 0.995
