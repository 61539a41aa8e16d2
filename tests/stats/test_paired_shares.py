"""Differences of shares of the same queries."""

from __future__ import annotations

import pytest

from karat.stats.intervals import paired_share_interval


def test_the_interval_is_walds_after_half_a_query_in_each_cell() -> None:
    # 12 of 76 newly empty: cells 12.5, .5 of 78; centre 12/78 = .1538;
    # variance (13 - 144/78) / 78^2 = .0018333, 1.96 x .042817 = .08392.
    found = paired_share_interval(12, 0, 76)
    assert found.low == pytest.approx(0.15385 - 0.08392, abs=1e-4)
    assert found.high == pytest.approx(0.15385 + 0.08392, abs=1e-4)
    mirrored = paired_share_interval(0, 12, 76)
    assert (mirrored.low, mirrored.high) == (-(found.high or 0), -(found.low or 0))


def test_without_any_change_the_interval_is_around_0() -> None:
    found = paired_share_interval(0, 0, 98)  # 1.96 x sqrt(1) / 100
    assert found.low == pytest.approx(-0.0196, abs=1e-5)
    assert found.high == pytest.approx(0.0196, abs=1e-5)
    assert (paired_share_interval(1, 0, 1).high or 0) <= 1
