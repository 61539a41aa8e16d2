"""Effect sizes by hand, by simulation, and their laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.stats.effects import standardised, superiority, win_tie_loss

DIFFERENCES = st.lists(st.integers(-8, 8).map(lambda k: k / 8), min_size=1, max_size=30)


def test_by_hand() -> None:
    # Mean 1/4; squares about it 9/16 + 9/16 + 1/16 + 1/16 = 20/16, over 3: 5/12. d_z is
    # .25 / sqrt(5/12) = .387298.
    difference = np.array([1.0, -0.5, 0.5, 0.0])
    assert standardised(difference) == pytest.approx(0.25 / math.sqrt(5 / 12), rel=1e-14)
    assert win_tie_loss(difference) == (2, 1, 1)
    assert superiority(difference) == (2 + 0.5) / 4


def test_weights_by_hand() -> None:
    # Weights 3 and 1: mean (3 - 1) / 4 = 1/2; mean square about it (3/4 + 9/4) / 4 = 3/4, times
    # 2/1: 3/2. The candidate wins where 3 of 4 lie.
    difference, weights = np.array([1.0, -1.0]), np.array([3.0, 1.0])
    assert standardised(difference, weights) == pytest.approx(0.5 / math.sqrt(1.5), rel=1e-14)
    assert superiority(difference, weights) == 0.75


def test_what_sums_leave_behind_is_a_tie() -> None:
    differences = np.array([0.1 + 0.2 - 0.3, -1e-16, 0.0, 1e-9])
    assert win_tie_loss(differences) == (1, 3, 0)
    assert superiority(differences) == 2.5 / 4


@given(DIFFERENCES)
def test_laws(values: list[float]) -> None:
    difference = np.array(values)
    found, back = win_tie_loss(difference), win_tie_loss(-difference)
    assert sum(found) == len(values)
    assert back == (found.losses, found.ties, found.wins)
    share, against = superiority(difference), superiority(-difference)
    assert share is not None
    assert against == pytest.approx(1 - share, abs=1e-15)
    size = standardised(difference)
    if size is None:
        assert len(values) == 1 or len(set(values)) == 1
        return
    expected = difference.mean() / difference.std(ddof=1)
    assert size == pytest.approx(expected, abs=1e-12)
    assert standardised(-difference) == -size
    assert standardised(difference * 64) == pytest.approx(size, abs=1e-12)
    even = np.full(len(values), 2.0)
    assert standardised(difference, even) == pytest.approx(size, abs=1e-12)


def test_what_has_no_size() -> None:
    none = np.array([])
    assert standardised(none) is superiority(none) is None
    assert win_tie_loss(none) == (0, 0, 0)
    assert standardised(np.array([0.3])) is None
    assert standardised(np.array([0.3, 0.1 + 0.2])) is None
