"""Drift: the level by simulation, the power, and numbers worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.choosing import FEW

from karat.stats import drift


def falling(steps: Sequence[float]) -> float:
    """Evidence of leaning downwards; upwards it is that of the mirror image."""
    down, up = drift.evidence(steps)
    assert drift.evidence([-step for step in steps]) == (up, down)
    return down


def ever(steps: np.ndarray, needed: float = 20.0) -> tuple[bool, bool]:
    """Whether somebody who looks after every step is alarmed of a fall, and of a rise."""
    listed = steps.tolist()
    found = [drift.evidence(listed[:k]) for k in range(1, len(listed) + 1)]
    down, up = (max(evidence) for evidence in zip(*found, strict=True))
    return down >= needed, up >= needed


def test_no_steps_no_evidence() -> None:
    assert falling([]) == 1
    assert falling([0.0, 0.0]) == 1


def test_one_step_by_hand() -> None:
    # The size is the median of itself: 1. Half the capital began, half waits.
    # 1/2 + 1/2 · (1 + mean of tanh 1/2, tanh 1, min(tanh 2, .95))
    stake = (math.tanh(0.5) + math.tanh(1) + 0.95) / 3
    assert falling([-0.01]) == pytest.approx(1 + stake / 2, rel=1e-12)
    assert falling([0.01]) == pytest.approx(1 - stake / 2, rel=1e-12)


@FEW
@given(st.lists(st.floats(0.001, 1000), min_size=1, max_size=7), st.floats(1e-6, 1e6))
def test_a_fair_game(sizes: list[float], unit: float) -> None:
    """Over all signs of any sizes the mean is 1: what makes it a martingale. No unit matters."""
    total = 0.0
    for signs in range(2 ** len(sizes)):
        steps = [size if signs >> i & 1 else -size for i, size in enumerate(sizes)]
        found = falling(steps)
        total += found
        assert falling([unit * step for step in steps]) == pytest.approx(found)
    assert total / 2 ** len(sizes) == pytest.approx(1, rel=1e-12)


@pytest.mark.deep  # a simulation
@pytest.mark.parametrize("kind", ["normal", "heavy", "growing", "own noise"])
def test_the_level_holds_for_one_who_looks_after_every_step(kind: str) -> None:
    rng = np.random.default_rng(5)
    # A rise is a fall of the mirror image, which is as likely: 200 histories are 400.
    alarms = 0
    for _ in range(200):
        steps = rng.normal(size=40)
        if kind == "heavy":
            steps = rng.standard_t(1.5, size=40)
        elif kind == "growing":
            steps *= np.linspace(1, 30, 40)
        elif kind == "own noise":
            steps = np.diff(rng.normal(size=41))
        alarms += sum(ever(steps))
    # At most .05 of 400 is 20; three standard errors more is 33. Of noise the next point does not
    # keep it is far less: a step down is followed by one up.
    assert alarms <= (2 if kind == "own noise" else 33)


def test_small_steps_in_one_direction_show() -> None:
    alone = next(k for k in range(1, 30) if falling([-0.001] * k) >= 20)
    assert alone == 7
    # After twenty steps to and fro it takes longer, and is still found.
    calm = [0.001, -0.001] * 10
    later = next(k for k in range(1, 30) if falling([*calm, *[-0.001] * k]) >= 20)
    assert alone < later <= 14
    rng = np.random.default_rng(6)
    found = sum(ever(rng.normal(-0.5, 1, 60))[0] for _ in range(100))
    assert found >= 60, "steps that lean by half their spread"


def test_one_great_step_is_no_drift_and_hides_none() -> None:
    assert falling([0.001, -0.001, -5.0]) < 5
    assert falling([0.001, -5.0, *[-0.001] * 9]) >= 20
    assert falling([-5e-324] * 9) >= 20, "however small"
    assert math.isfinite(falling([-1.0] * 5000))


def test_the_shares_of_all_stretches_are_the_level() -> None:
    shares = [1 / drift.needed(3, k) for k in range(1, 20001)]
    assert sum(shares) * 3 == pytest.approx(0.05, rel=1e-4)
    # 20 π² / 6 = 32.899
    assert drift.needed(1, 1) == pytest.approx(32.8987, rel=1e-5)


@pytest.mark.deep  # a level, as that of looks after every step
def test_the_level_holds_over_breaks() -> None:
    """Eight stretches of 20 steps, looked at after every step, each begun anew."""
    rng = np.random.default_rng(7)
    alarms = anew = 0
    for _ in range(100):  # and their mirror images
        stretches = rng.normal(size=(8, 20))
        shared = [ever(steps, drift.needed(1, k)) for k, steps in enumerate(stretches, 1)]
        alarms += sum(map(any, zip(*shared, strict=True)))
        anew += sum(map(any, zip(*(ever(steps) for steps in stretches), strict=True)))
    # .05 of 200 is 10; three standard errors more is 19. Without shares it is more than stated.
    assert alarms <= 19
    assert anew > alarms


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([5, 4, 3, 2], (0, True)),
        ([5, 4, 3, 2, 6], (0, False)),  # the newest value is the best
        ([5, 4, 3, 2, 5], (0, False)),
        ([5, 4, 3, 2, 4.9], (0, False)),  # nearly back: above the median of 4.9, 4, 5, 3, 2
        ([1, 3, 5, 4.9, 4.8], (2, True)),  # from the best, though above the start
        ([5, 9, 5, 4, 3], (0, True)),  # one odd night is no best
        ([5, 0, 5, 4.5, 4.2], (2, True)),
        ([5, 5], (0, False)),
        ([5, 4], (0, True)),
        ([5], (0, False)),
    ],
)
def test_since_the_best(values: list[float], found: tuple[int, bool]) -> None:
    assert drift.since_best(values) == found


def test_told_apart() -> None:
    # A 95 % interval of ±0.0196 is a standard error of 0.01; two make 0.0141, and 1.96 of them
    # 0.0277.
    error = drift.standard_error(0.5, 0.5 - 0.0195996, 0.5 + 0.0195996)
    assert error == pytest.approx(0.01, rel=1e-5)
    assert drift.told_apart(0.5, 0.472, (error, error)) is True
    assert drift.told_apart(0.5, 0.4725, (error, error)) is False
    # Where one has no interval, that of the other stands for it.
    assert drift.told_apart(0.5, 0.472, (error, None)) is True
    assert drift.told_apart(0.5, 0.4725, (None, error)) is False
    # A point interval counts as one: 1.96 of 0.01.
    assert drift.told_apart(0.5, 0.48, (error, 0.0)) is True
    assert drift.told_apart(0.5, 0.481, (error, 0.0)) is False
    assert drift.told_apart(0.5, 0.1, (None, None)) is None
    assert drift.standard_error(0.5, None, None) is None
    # The upper end was cut at 1: the error is that of the other.
    assert drift.standard_error(0.99, 0.99 - 0.0195996, 1.0) == pytest.approx(0.01, rel=1e-5)
