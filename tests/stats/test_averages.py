"""Means by exactly rounded sums."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.stats import geometric_mean, mean

VALUES = st.lists(st.floats(0, 1e6, allow_subnormal=False), min_size=1, max_size=60)


@given(values=VALUES, data=st.data())
def test_the_order_of_queries_changes_no_bit(values: list[float], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(values))))
    weights = data.draw(st.lists(st.floats(0.01, 100), min_size=len(values), max_size=len(values)))
    value, weight = np.array(values), np.array(weights)
    assert mean(value[order]) == mean(value)
    assert mean(value[order], weight[order]) == mean(value, weight)
    assert geometric_mean(value[order]) == geometric_mean(value)


@given(values=VALUES)
def test_the_sum_is_exact_and_rounded_once(values: list[float]) -> None:
    exact = float(sum(map(Fraction, values)))
    assert mean(np.array(values)) == exact / len(values)


def test_where_adding_in_turn_fails() -> None:
    # 1e16 + 1 is 1e16 in floating point, so that adding in turn loses both ones.
    assert mean(np.array([1e16, 1.0, 1.0, -1e16])) == 0.5


def test_weights() -> None:
    # (3 x 1 + 1 x 0) / 4
    assert mean(np.array([1.0, 0.0]), np.array([3.0, 1.0])) == 0.75
    assert mean(np.array([0.25, 0.5, 1.0]), np.full(3, 2.0)) == mean(np.array([0.25, 0.5, 1.0]))


def test_the_geometric_mean_has_a_floor() -> None:
    # sqrt(1 x .00001): a value of 0 counts as .00001, as in trec_eval (MIN_GEO_MEAN).
    assert geometric_mean(np.array([1.0, 0.0])) == pytest.approx(math.sqrt(0.00001), rel=1e-14)
    assert geometric_mean(np.array([0.5, 0.125])) == pytest.approx(0.25, rel=1e-14)
    # exp((3 ln .5 + ln .125) / 4) = (1/64)^(1/4)
    weighted = geometric_mean(np.array([0.5, 0.125]), np.array([3.0, 1.0]))
    assert weighted == pytest.approx((1 / 64) ** 0.25, rel=1e-14)
