"""Looks: what a year of them costs, what they find, and what is no new evidence."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from karat.stats.looks import YEAR, Found, findings, p_worse, references, share, worse
from karat.stats.paired import t_test

Floats = NDArray[np.float64]


def loss(n: int = 76, mean: float = -0.023, spread: float = 0.089, seed: int = 3) -> Floats:
    """Differences of exactly this mean and standard deviation, most of them not 0."""
    drawn = np.random.default_rng(seed).normal(size=n)
    scaled: Floats = (drawn - drawn.mean()) / drawn.std(ddof=1) * spread + mean
    return scaled


def test_a_year_of_looks_spends_the_level_and_no_more() -> None:
    # The first part telescopes to .65 (1 - 1 / 366), the second is .35: .99822 in all.
    spent = sum(share(look) for look in range(1, YEAR + 1))
    assert spent == pytest.approx(0.65 * (1 - 1 / 366) + 0.35)
    for look in (1, 2, 3, 9, 100, 365):
        parts = dict(references(look))
        assert sum(parts.values()) == pytest.approx(1)
        assert all(0 <= state < look for state in parts)
    # 0 is the first state; 8 is the one before look 9, 7 two before, 5 four, 1 eight.
    assert dict(references(9)) == {0: 0.5, **dict.fromkeys((8, 7, 5, 1), 0.125)}
    assert dict(references(1)) == {0: 1.0}


def test_what_compare_finds_in_one_change_is_found() -> None:
    """−.023 over 76 queries with a standard deviation of .089: t = −2.253, p = .0272."""
    change = loss()
    test = t_test(change)
    assert (test.statistic, test.p) == (
        pytest.approx(-2.253, abs=1e-3),
        pytest.approx(0.0272, abs=1e-4),
    )
    before = np.full(76, 0.5)
    # Half of p, .0136, is above the .04 (.65 / 2 + .35 / 365) = .01304 of the first look; a bit
    # more of a loss is not.
    assert worse([before, before + change]) is None
    found = worse([before, before + loss(mean=-0.0235)])
    assert found == Found(1, 0, pytest.approx(0.0121, abs=1e-4), pytest.approx(0.013038, abs=1e-6))
    assert worse([before, before + loss(mean=-0.0235)], series=2) is None, "each has its share"
    assert worse([before, before + loss(mean=-0.0235)], earlier=1) is None, "a look was made before"


def test_the_same_values_again_and_again_are_no_evidence() -> None:
    """Changes of few queries say little, whatever their size: 1 / 2^k at best."""
    before = np.full(100, 0.5)
    for k, least in ((1, 0.5), (5, 1 / 32), (12, 1 / 4096)):
        after = before.copy()
        after[:k] -= 0.4
        assert p_worse(after, before) >= least
    assert p_worse(before - 0.1, before) == 0.5**100, "all lose the same: no spread, and no doubt"
    assert p_worse(before + 0.1, before) == 1
    assert p_worse(before, before) == 1
    lacking = np.where(np.arange(100) < 50, np.nan, before)
    assert p_worse(lacking - 0.1, before) == 0.5**50


def test_a_fall_from_a_level_that_was_reached_later_is_found_and_forgotten_after_recovery() -> None:
    rng = np.random.default_rng(5)
    low = rng.random(200)
    high = low + 0.1 + rng.normal(0, 0.05, 200)
    fallen = high - 0.04 + rng.normal(0, 0.05, 200)
    found = worse([low, high, fallen])
    assert found is not None
    assert (found.look, found.reference) == (2, 1)
    assert worse([low, high, fallen, high + rng.normal(0, 0.01, 200)]) is None


def test_weights_count() -> None:
    before, after = np.full(60, 0.5), np.full(60, 0.5)
    after[:20] -= 0.1 * np.linspace(0.5, 1.5, 20)
    after[20:40] += 0.15 * np.linspace(0.5, 1.5, 20)
    light = np.where((np.arange(60) >= 20) & (np.arange(60) < 40), 0.01, 1.0)
    assert worse([before, after]) is None
    assert worse([before, after], weights=light) is not None


@pytest.mark.parametrize("lasting", [False, True])
def test_months_of_chance_raise_few_alarms(lasting: bool) -> None:
    """40 times 60 nights of 50 queries, a fifth of which chance moves each night, for good or not.

    ``benchmarks/trend.py`` counts more, over years.
    """
    rng, alarms = np.random.default_rng(17), 0
    for _ in range(40):
        moved = rng.laplace(0, 0.1, (60, 50)) * (rng.random((60, 50)) < 0.2)
        nights = 0.5 + (moved.cumsum(axis=0) if lasting else moved)
        alarms += any(True for _ in findings(list(nights)))
    # .04 of 40 is 1.6; three standard errors more is 5.3.
    assert alarms <= 5
