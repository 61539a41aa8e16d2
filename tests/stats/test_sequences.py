"""Vectors of GrowthBook and confseq."""

from __future__ import annotations

import math

import numpy as np
import pytest

from karat.stats import sequences


def test_tuning() -> None:
    # gbstats tests/frequentist/test_tests.py:218-233 (8f1db44): N* = 5000.
    assert sequences.tuning(5000, 0.05) == pytest.approx(0.0398401, abs=5e-8)


@pytest.mark.parametrize(
    ("error", "planned", "low", "high"),
    # :197-233: 3,000 and 3,461 users; the ends of lifts .50386 and .50336.
    [(0.03386, 5000, 0.40098, 0.60675), (0.33341, 1000, -0.55844, 1.56516)],
)
def test_means(error: float, planned: int, low: float, high: float) -> None:
    found = sequences.reach(error, 6461, planned)
    assert found == pytest.approx((high - low) / 2, abs=2e-5)


def test_one_sided() -> None:
    # :463-560: difference .2343767, lower end -.1265684, upper .5953218, N* = 5000. The error is
    # that of the sums 1396.87 and 52377.9767 over 3,000 users, 2422.7 and 134698.29 over 3,461.
    one = (52377.9767 - 1396.87**2 / 3000) / 2999 / 3000
    error = math.sqrt(one + (134698.29 - 2422.7**2 / 3461) / 3460 / 3461)
    found = sequences.reach_one_sided(error, 6461, 5000)
    assert 0.2343767 - found == pytest.approx(-0.1265684, abs=1e-6)
    assert 0.2343767 + found == pytest.approx(0.5953218, abs=1e-6)


@pytest.mark.parametrize(
    ("successes", "trials", "planned", "low", "high"),
    # confseq 70b1ef3, test/uniform_boundaries_unittest.cpp:124-158.
    [
        (700, 1000, 100, 0.651629, 0.745949),
        (15, 50, 50, 0.129556, 0.511896),
        (1, 50, 50, 0.0, 0.13489),
        (1, 2, 50, 0.0, 1.0),
        (100, 200, 1, 0.328923, 0.671076),
    ],
)
def test_shares(successes: int, trials: int, planned: int, low: float, high: float) -> None:
    found = sequences.share(successes, trials, planned)
    assert found == pytest.approx((low, high), abs=2e-6)


def test_no_trials() -> None:
    assert sequences.share(0, 0, 100) == (0.0, 1.0)


def test_a_share_is_missed_at_most_5_percent_of_times() -> None:
    """2,000 coins, looked at after each of 400 tosses: the exact sequence misses at most 5 %.

    The miss is checked where it can be largest: at the ends of runs of the count. 2,000 coins have
    a standard error of .5 %.
    """
    rng = np.random.default_rng(1)
    tosses = rng.random((300, 400)) < 0.5
    heads = tosses.cumsum(axis=1)
    looks = np.unique(np.geomspace(5, 400, 25).astype(int))
    ends = {
        (n, k): sequences.share(k, n, 100)
        for n in looks.tolist()
        for k in np.unique(heads[:, n - 1]).tolist()
    }
    missed = sum(
        any(
            not ends[n, int(row[n - 1])][0] <= 0.5 <= ends[n, int(row[n - 1])][1]
            for n in looks.tolist()
        )
        for row in heads
    )
    assert missed <= 0.05 * len(heads)
