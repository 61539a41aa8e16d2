"""Shrinkage of slices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.stats.verdicts import shrink_slices, shrunken
from karat.tables.comparison import Difference

PLAIN = Difference(
    baseline="old",
    candidate="new",
    measure="P@1",
    baseline_value=0.0,
    candidate_value=0.35,
    difference=0.35,
    standard_error=0.1,
    ci_low=0.1,
    ci_high=0.6,
    ci_method="t",
    n=6,
    p=0.03,
    p_corrected=0.03,
    family=1,
    equivalence_p=None,
    not_worse_p=None,
    standardised=1.0,
    superiority=1.0,
    wins=6,
    ties=0,
    losses=0,
    smallest_detected=0.3,
    queries_needed=5,
    unjudged_low=None,
    unjudged_high=None,
    unjudged_exact=None,
    verdict="better",
    reason="",
)


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


def test_slices_are_drawn_to_the_whole_by_its_pooled_error() -> None:
    plain = replace(PLAIN, attribute="kind")
    whole = replace(plain, attribute=None, difference=0.2, standard_error=0.1, n=16)
    # The slices' own errors play no part.
    high = replace(plain, slice="high", difference=0.8, standard_error=1e-3, n=4)
    low = replace(plain, slice="low", difference=-0.4, standard_error=9.0, n=4)
    same = replace(plain, slice="same", difference=0.0, n=7, verdict="identical")
    one = replace(plain, slice="one", difference=1.0, n=1)
    other = replace(high, measure="RR")
    elsewhere = replace(high, candidate="newer")
    rows = [high, same, low, one, other, elsewhere]
    found = shrink_slices([whole], rows)
    # Errors .1 sqrt(16 / 4) = .2, weights 25 each, pooled .2. Excess 25 (.36 + .36) - 1 = 17, by
    # 50 - 1250 / 50 = 25: a spread of .68, so a slice is trusted by .68 / .72 = 17 / 18.
    assert [row.shrunk for row in found] == [
        pytest.approx(0.2 + 0.6 * 17 / 18),
        0.0,
        pytest.approx(0.2 - 0.6 * 17 / 18),
        None,
        None,
        None,
    ]
    assert [replace(row, shrunk=None) for row in found] == rows
    # A whole for the other measure: one slice alone has no spread beyond its error.
    whole_rr = replace(whole, measure="RR", difference=0.3)
    assert shrink_slices([whole, whole_rr], rows)[4].shrunk == pytest.approx(0.3)


def test_larger_slices_are_trusted_more() -> None:
    plain = PLAIN
    whole = replace(plain, difference=0.0, standard_error=0.1, n=20)
    large = replace(plain, difference=0.5, n=16)
    small = replace(plain, difference=-0.5, n=4)
    first, second = shrink_slices([whole], [large, small])
    # Squared errors .01 * 20 / 16 = .0125 and .05: weights 80 and 20, pooled .3. Excess
    # 80 * .04 + 20 * .64 - 1 = 15, by 100 - 6800 / 100 = 32: a spread of .46875.
    between = 15 / 32
    assert first.shrunk == pytest.approx(0.5 * between / (between + 0.0125))
    assert second.shrunk == pytest.approx(-0.5 * between / (between + 0.05))


def test_without_an_error_of_the_whole_nothing_is_drawn() -> None:
    plain = PLAIN
    constant = replace(plain, standard_error=None)
    assert shrink_slices([constant], [plain])[0].shrunk is None
    nowhere = replace(plain, difference=None, standard_error=None, n=0)
    assert shrink_slices([nowhere], [plain])[0].shrunk is None
    assert shrink_slices([plain], []) == []
