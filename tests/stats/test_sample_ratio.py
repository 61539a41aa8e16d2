"""Vectors of GrowthBook's TypeScript, tea-tasting and ssrm."""

from __future__ import annotations

import numpy as np
import pytest

from karat.stats.sample_ratio import log_bayes_factor, mismatch, sequential_mismatch


@pytest.mark.parametrize(
    ("counts", "shares", "p"),
    # growthbook back-end/test/stats.test.ts:6-39 (8f1db44).
    [
        ((1000, 1200), (0.5, 0.5), 0.000020079),
        ((135, 115), (0.5, 0.5), 0.205903211),
        ((310, 98), (0.75, 0.25), 0.647434186),
        ((500, 500, 600), (0.34, 0.33, 0.33), 0.000592638),
        ((0, 10, 10), (0.34, 0.33, 0.33), 0.005790624),
        ((0, 0), (0.5, 0.5), 1.0),
        ((10, 0), (1.0, 0.0), 1.0),
        # gbstats counts the users of an arm without weight and gets 2.9e-60; its TypeScript twin
        # leaves the arm out, as we do.
        ((1000, 1200, 900), (0.5, 0.5, 0.0), 0.000020079),
    ],
)
def test_once(counts: tuple[int, ...], shares: tuple[float, ...], p: float) -> None:
    assert mismatch(counts, shares) == pytest.approx(p, abs=5e-10)


@pytest.mark.parametrize(
    ("counts", "with_prior", "with_shares"),
    # optimizely/ssrm test_ssrm_test.py:152-185: shares .4, .4, .2 and a prior of ones.
    [((20, 17, 9), -7.028201432, -4.077640647)],
)
def test_bayes_factor(counts: tuple[int, ...], with_prior: float, with_shares: float) -> None:
    found = log_bayes_factor(np.array(counts, float), np.array([0.4, 0.4, 0.2]), np.ones(3))
    assert found == pytest.approx(with_prior - with_shares, abs=2e-9)


@pytest.mark.parametrize(
    ("counts", "concentration", "p"),
    # Field notes V12.
    [((1000, 1200), 100, 0.000792513), ((50_500, 49_500), 100, 0.214754),
     ((50_500, 49_500), 10_000, 0.035204)],
)  # fmt: skip
def test_every_day(counts: tuple[int, int], concentration: float, p: float) -> None:
    assert sequential_mismatch(counts, (1, 1), concentration) == pytest.approx(p, rel=2e-5)


def test_looking_every_day_is_legal() -> None:
    """1,000 healthy experiments of 2,000 users, looked at 20 times: at most 5 % below .05."""
    rng = np.random.default_rng(3)
    control = rng.binomial(100, 0.5, (1000, 20)).cumsum(axis=1)
    sizes = 100 * np.arange(1, 21)
    below = [
        any(
            sequential_mismatch((c, n - c), (1, 1), 2000) < 0.05
            for c, n in zip(row, sizes, strict=True)
        )
        for row in control.tolist()[:250]
    ]
    assert np.mean(below) <= 0.05
