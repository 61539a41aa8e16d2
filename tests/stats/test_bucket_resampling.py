"""Buckets of users drawn again and again: the same for the same seed, open where they must be."""

from __future__ import annotations

import numpy as np
import pytest

from karat.stats.bucket_resampling import RESAMPLES, Draws, percentile_interval


def test_draws_of_so_many_buckets_do_not_depend_on_others() -> None:
    first, second = Draws(3), Draws(3)
    second.of(7)
    assert np.array_equal(first.of(5), second.of(5))
    assert first.of(5).shape == (RESAMPLES, 5)
    assert (first.of(5).sum(axis=1) == 5).all()
    assert not np.array_equal(first.of(5), Draws(4).of(5))


def test_the_ends_are_values_that_were_drawn() -> None:
    # Of 0..999, 2.5 % of the way is 24.975: the lower is 24; 97.5 % is 974.025: the higher is 975.
    values = np.arange(1000.0)
    found = percentile_interval(values, values)
    assert (found.low, found.high) == (24.0, 975.0)


def test_an_upper_end_that_is_not_reached_is_none() -> None:
    values = np.concatenate([np.arange(900.0), np.full(100, np.inf)])
    found = percentile_interval(values, values)
    assert (found.low, found.high) == (24.0, None)
    assert "no upper end" in found.reason
    nothing = percentile_interval(np.full(1000, np.inf), np.full(1000, np.inf))
    assert (nothing.low, nothing.high) == (None, None)


def test_draws_with_nothing_in_them_are_left_out() -> None:
    values = np.concatenate([np.full(500, np.nan), np.arange(500.0)])
    found = percentile_interval(values, values)
    # Of 500 values 2.5 % of the way is 12.475 and 97.5 % is 486.525.
    assert (found.low, found.high) == (12.0, 487.0)
    empty = percentile_interval(np.full(3, np.nan), np.full(3, np.nan))
    assert (empty.low, empty.reason) == (None, "no draw of the users has any")


@pytest.mark.parametrize("buckets", [2, 256])
def test_a_mean_over_buckets_varies_as_it_should(buckets: int) -> None:
    # The mean of n draws of values of variance v has variance v/n; 1,000 of them tell it to 15 %.
    values = np.arange(buckets, dtype=np.float64)
    means = Draws(0).of(buckets) @ values / buckets
    assert means.var() == pytest.approx(values.var() / buckets, rel=0.15)
