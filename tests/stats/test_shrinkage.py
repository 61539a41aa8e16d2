"""Shrinkage of slices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.stats.shrinkage import shrunken


def test_by_hand() -> None:
    # Two slices, 0 and 1, errors .5: weights 4, pooled .5, excess 4 (.25 + .25) - 1 = 1,
    # spread 1 / (8 - 32/8) = .25; trust .25 / (.25 + .25) = 1/2: halfway to the centre .4.
    found = shrunken(np.array([0.0, 1.0]), np.array([0.5, 0.5]), 0.4)
    assert found == pytest.approx([0.2, 0.7])


def test_without_spread_beyond_the_errors_all_are_the_centre() -> None:
    found = shrunken(np.array([0.1, -0.1]), np.array([1.0, 1.0]), 0.02)
    assert found.tolist() == [0.02, 0.02]


def test_a_slice_that_knows_nothing_says_what_all_say() -> None:
    found = shrunken(np.array([0.0, 1.0, 5.0]), np.array([0.1, 0.1, np.nan]), 0.5)
    assert found[2] == 0.5
    assert found[0] < 0.1


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.floats(0.01, 1)), min_size=1, max_size=8),
    st.floats(-1, 1),
)
def test_between_itself_and_the_centre(slices: list[tuple[float, float]], centre: float) -> None:
    estimates, errors = map(np.array, zip(*slices, strict=True))
    found = shrunken(estimates, errors, centre)
    assert (found >= np.minimum(estimates, centre) - 1e-12).all()
    assert (found <= np.maximum(estimates, centre) + 1e-12).all()


def test_the_surer_a_slice_the_less_it_moves() -> None:
    found = shrunken(np.array([1.0, 1.0, -1.0]), np.array([0.1, 0.5, 0.2]), 0.0)
    assert abs(found[0] - 1) < abs(found[1] - 1)
