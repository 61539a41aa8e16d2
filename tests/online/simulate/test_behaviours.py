"""Click behaviours: their chances are those of the papers, and what they draw has these chances."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.errors import UsageError
from karat.online.simulate.behaviours import (
    BEHAVIOURS,
    Cascade,
    DynamicBayesian,
    PositionBased,
    Taste,
    find_behaviour,
)

TASTE = Taste(attractive=(0.0, 1.0), satisfying=(0.0, 1.0))  # the gain is the chance itself
GAIN = np.array([[0.5, 0.25, 0.8]])
SHOWN = np.ones((1, 3), bool)


def test_the_chances_of_each_model_by_hand() -> None:
    # Position-based, decay 1: attraction / place = .5/1, .25/2, .8/3.
    position = PositionBased(TASTE, decay=1.0).chances(GAIN, SHOWN)
    assert position[0] == pytest.approx([0.5, 0.125, 0.8 / 3])
    # Cascade: .5; (1-.5) × .25 = .125; .5 × .75 × .8 = .3.
    assert Cascade(TASTE).chances(GAIN, SHOWN)[0] == pytest.approx([0.5, 0.125, 0.3])
    # DBN, patience .9: place 2 is reached with .9 × (1 - .5 × .5) = .675, so .675 × .25 = .16875;
    # place 3 with .675 × .9 × (1 - .25 × .25) = .56953125, times .8 = .455625.
    dbn = DynamicBayesian(TASTE, patience=0.9).chances(GAIN, SHOWN)
    assert dbn[0] == pytest.approx([0.5, 0.16875, 0.455625])


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_what_is_drawn_has_these_chances(name: str) -> None:
    behaviour = BEHAVIOURS[name]
    gain = np.tile(np.array([[1.0, 0.0, 3 / 7, 0.0, 1 / 7]], np.float32), (200_000, 1))
    shown = np.ones_like(gain, bool)
    shown[:, 4] = False
    looked = behaviour.look(gain, shown, np.random.default_rng(5))
    chance = behaviour.chances(gain[:1], shown[:1])[0]
    error = np.sqrt(chance * (1 - chance) / len(gain))
    assert np.all(np.abs(looked.clicked.mean(axis=0) - chance) <= 5 * error)
    # Given a click, satisfaction is what the taste says: .85 at gain 1 and .06 at gain 0.
    for place, wanted in ((0, 0.85), (1, 0.06)):
        clicks = looked.clicked[:, place].sum()
        share = looked.satisfied[:, place].sum() / clicks
        assert abs(share - wanted) < 5 * np.sqrt(wanted * (1 - wanted) / clicks)


@given(
    name=st.sampled_from(sorted(BEHAVIOURS)),
    gains=st.lists(st.lists(st.floats(0, 1), min_size=4, max_size=4), min_size=1, max_size=6),
    results=st.integers(0, 4),
    seed=st.integers(0, 1 << 32),
)
def test_nobody_clicks_what_is_not_seen_or_not_there(
    name: str, gains: list[list[float]], results: int, seed: int
) -> None:
    gain = np.array(gains)
    shown = np.broadcast_to(np.arange(4) < results, gain.shape)
    behaviour = BEHAVIOURS[name]
    looked = behaviour.look(gain, shown, np.random.default_rng(seed))
    assert not (looked.examined & ~shown).any()
    assert not (looked.clicked & ~looked.examined).any()
    assert not (looked.satisfied & ~looked.clicked).any()
    chances = behaviour.chances(gain, shown)
    assert ((chances >= 0) & (chances <= 1)).all()
    assert not chances[:, results:].any()
    if name == "cascade":
        assert looked.clicked.sum(axis=1).max() <= 1
    if name != "position":
        # Looked at from the top down, without a gap.
        assert (np.diff(looked.examined.astype(int), axis=1) <= 0).all()
    if name == "dbn":
        # Nothing behind the click that satisfied.
        behind = np.cumsum(looked.satisfied, axis=1) - looked.satisfied
        assert not (looked.examined & (behind > 0)).any()


def test_a_strange_name_is_told_the_nearest() -> None:
    assert find_behaviour(" Cascade ") is BEHAVIOURS["cascade"]
    with pytest.raises(UsageError, match="cascade") as raised:
        find_behaviour("casade")
    assert "cascade" in str(raised.value)
