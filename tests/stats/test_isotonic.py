"""Isotonic regression equals scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest

from karat.stats.isotonic import isotonic


def test_the_example_of_a_violation() -> None:
    # 3 and 1 are out of order: both become their mean.
    x, y = isotonic(np.array([1.0, 2.0, 3.0]), np.array([0.0, 3.0, 1.0]))
    assert (x.tolist(), y.tolist()) == ([1, 2, 3], [0, 2, 2])


@pytest.mark.parametrize("seed", range(5))
def test_it_equals_scikit_learn(seed: int) -> None:
    module = pytest.importorskip("sklearn.isotonic")
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 30, 200) / 7, rng.random(200)
    places, fit = isotonic(x, y)
    theirs = module.IsotonicRegression().fit(x, y).predict(places)
    np.testing.assert_allclose(fit, theirs, atol=1e-9)
