"""Corrected p-values against published vectors, statsmodels, and the procedures they stand for."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from karat.errors import UsageError
from karat.stats.multiplicity import benjamini_hochberg, holm

Correction = Callable[[list[float | None]], list[float | None]]
P = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.01, 0.02, 0.05, 1.0]))
MANY = st.lists(P, max_size=12)
BOTH = pytest.mark.parametrize("correct", [holm, benjamini_hochberg])


def test_published_vectors() -> None:
    # tea-tasting, tests/test_multiplicity.py.
    found = benjamini_hochberg([0.005, 0.06, 0.007, 0.04, 0.01, 0.03])
    assert found == pytest.approx([0.02, 0.06, 0.02, 0.048, 0.02, 0.045], rel=1e-12)
    # GrowthBook, packages/shared/test/experiments.test.ts.
    found = holm([0.01, 0.04, 0.03, 0.005, 0.55, 0.6])
    assert found == pytest.approx([0.05, 0.12, 0.12, 0.03, 1, 1], rel=1e-12)
    found = benjamini_hochberg([0.898, 0.138, 0.007, 0.964, 0.538, 0.006, 0.138])
    expected = [0.964, 0.2415, 0.0245, 0.964, 0.7532, 0.0245, 0.2415]
    assert found == pytest.approx(expected, rel=1e-12)


def test_statsmodels_numbers() -> None:
    # statsmodels 0.15.0: multipletests(p, method="holm"), and "fdr_bh".
    p = [0.0001, 0.0001, 0.021, 0.3, 0.04, 0.04, 0.0099, 1.0, 0.76]
    expected = [0.0009, 0.0009, 0.126, 0.9, 0.2, 0.2, 0.0693, 1.0, 1.0]
    assert holm(p) == pytest.approx(expected, rel=1e-12)
    expected = [0.00045, 0.00045, 0.04725, 27 / 70, 0.06, 0.06, 0.0297, 1.0, 0.855]
    assert benjamini_hochberg(p) == pytest.approx(expected, rel=1e-12)


def test_rounding_makes_none_smaller_than_its_p() -> None:
    assert 0.35 * 3 / 3 < 0.35  # in floating point
    assert benjamini_hochberg([0.35] * 3) == [0.35] * 3


@given(MANY)
def test_as_scipys_false_discovery_control(p: list[float]) -> None:
    if p:
        expected = stats.false_discovery_control(p).tolist()
        assert benjamini_hochberg(p) == pytest.approx(expected, rel=1e-12)


@BOTH
@given(p=MANY, data=st.data())
def test_laws(correct: Correction, p: list[float], data: st.DataObject) -> None:
    found = correct([*p])
    assert all(isinstance(value, float) for value in found)
    for before, after in zip(p, found, strict=True):
        assert before <= after <= 1
        assert after <= min(1.0, len(p) * before) + 1e-12  # Bonferroni
    by_size = [after for _, after in sorted(zip(p, found, strict=True))]
    assert by_size == sorted(by_size)
    order = data.draw(st.permutations(range(len(p))))
    assert correct([p[i] for i in order]) == [found[i] for i in order]
    for less, more in zip(benjamini_hochberg(p), holm(p), strict=True):
        assert less <= more + 1e-12  # type: ignore[operator]


@BOTH
@given(p=MANY, places=st.lists(st.integers(0, 12), max_size=4))
def test_no_tests_pass_through_and_do_not_count(
    correct: Correction, p: list[float], places: list[int]
) -> None:
    mixed: list[float | None] = list(p)
    for number, place in enumerate(places):
        mixed.insert(place, None if number % 2 else math.nan)
    found = correct(mixed)
    assert [value for value in found if value is not None and not math.isnan(value)] == correct(
        [*p]
    )
    for before, after in zip(mixed, found, strict=True):
        assert (before is None) == (after is None)
        if before is not None and after is not None:
            assert math.isnan(before) == math.isnan(after)


def step_down(p: list[float], level: float) -> set[int]:
    """Holm's procedure as he writes it: stop at the first that is above level / (those left)."""
    found: set[int] = set()
    for place, i in enumerate(np.argsort(p, kind="stable").tolist()):
        if p[i] * (len(p) - place) > level:
            break
        found.add(i)
    return found


def step_up(p: list[float], level: float) -> set[int]:
    """Benjamini and Hochberg's: find all up to the last that is at most level x rank / m."""
    order = np.argsort(p, kind="stable").tolist()
    last = max(
        (r for r in range(1, len(p) + 1) if p[order[r - 1]] * len(p) / r <= level), default=0
    )
    return set(order[:last])


@given(MANY, st.sampled_from([0.05, 0.1, 0.2]))
def test_they_find_what_the_procedures_find(p: list[float], level: float) -> None:
    assert {i for i, q in enumerate(holm(p)) if q is not None and q <= level} == step_down(p, level)
    found = {i for i, q in enumerate(benjamini_hochberg(p)) if q is not None and q <= level}
    assert found == step_up(p, level)


@pytest.mark.deep  # a simulation
def test_errors_stay_below_the_level_by_simulation() -> None:
    rng = np.random.default_rng(5)
    any_found, share_false = [], []
    for _ in range(3000):
        p = rng.uniform(size=20)
        any_found.append(min(value for value in holm(p) if value is not None) <= 0.05)
        p[:10] = stats.norm.sf(rng.normal(3, 1, 10))  # ten of twenty are real
        hits = np.array(benjamini_hochberg(p), np.float64) <= 0.05
        share_false.append(hits[10:].sum() / max(1, hits.sum()))
    # 1 - (1 - .05/20)^20 = .0488 with an error of .004; and .05 x 10/20 = .025 with one of .001.
    assert np.mean(any_found) == pytest.approx(0.0488, abs=0.016)
    assert np.mean(share_false) == pytest.approx(0.025, abs=0.005)


@BOTH
def test_arrays_and_none_at_all(correct: Correction) -> None:
    assert correct([]) == []
    assert correct([None]) == [None]
    assert correct(np.array([0.03])) == [0.03]  # type: ignore[arg-type]


@BOTH
@pytest.mark.parametrize("wrong", [-0.1, 1.5, math.inf])
def test_what_is_no_p_value_is_told(correct: Correction, wrong: float) -> None:
    with pytest.raises(UsageError, match="is not a p-value"):
        correct([0.5, wrong])
