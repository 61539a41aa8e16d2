"""Results on a held-out part that was used before."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from karat.stats.power import smallest_difference
from karat.stats.reuse import MOST_USES, reused
from karat.workflows.offline.compare import compare


@pytest.fixture(scope="module")
def row():
    """A gain on 60 queries, of which each has one relevant document."""
    draw = np.random.default_rng(3)
    qrels = {f"q{n}": {"a": 1} for n in range(60)}

    def run(share):
        first = draw.random(60) < share
        return {f"q{n}": ["a", "b"] if first[n] else ["b", "c", "d", "e", "a"] for n in range(60)}

    return compare(qrels, run(0.4), run(0.7), ["nDCG@10"]).differences[0]


def test_the_first_use_is_the_comparison_itself(row):
    first = reused(row, 1, 1.0)
    assert (first.ci_low, first.ci_high, first.p) == (row.ci_low, row.ci_high, row.p)
    assert (first.level, first.smallest_detected) == (0.05, row.smallest_detected)
    assert first.state == "good"


@pytest.mark.parametrize("uses", [2, 5, 10])
def test_further_uses_have_a_lower_level(row, uses):
    part = reused(row, uses, 1.0)
    # Student's t at 5 % / u, by SciPy.
    low, high = stats.t.interval(
        1 - 0.05 / uses, row.n - 1, loc=row.difference, scale=row.standard_error
    )
    assert (part.ci_low, part.ci_high) == pytest.approx((low, high), abs=1e-12)
    assert part.p == pytest.approx(min(1, row.p * uses))
    spread = row.standard_error * math.sqrt(row.n)
    assert part.smallest_detected == smallest_difference(spread, row.n, alpha=0.05 / uses)


def test_a_part_is_worn_by_its_uses_and_small_by_its_size(row):
    least = row.smallest_detected
    assert reused(row, MOST_USES, 10 * least).state == "good"
    assert reused(row, MOST_USES + 1, 10 * least).state == "worn"
    assert reused(row, 1, least * 0.99).state == "small"
    assert reused(row, 1, -least * 1.01).state == "good"
    # Detectable in the first use, and not at the level of the eighth.
    assert reused(row, 8, least * 1.01).state == "worn"


def test_the_number_of_uses_is_where_choosing_by_results_gains_less_than_the_interval(row):
    """The attack of Blum & Hardt: 0.8 √k standard errors, k uses before this one."""
    gains = [math.sqrt(2 / math.pi) * math.sqrt(uses - 1) for uses in range(1, 17)]
    reach = [stats.norm.ppf(1 - 0.025 / uses) for uses in range(1, 17)]
    covered = [uses for uses in range(1, 17) if gains[uses - 1] < reach[uses - 1]]
    assert covered == list(range(1, 15))
    assert MOST_USES in covered
