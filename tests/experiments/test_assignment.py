"""Assignment: the same arm for ever, in any language, and nobody moves."""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.errors import UsageError
from karat.experiments.assignment import Rollout, arm_of, place

VECTORS = [("user-1", "checkout"), ("", "s"), ("é", "s"), ("😀", "salt"), ("42", "2026-11")]


@pytest.mark.parametrize(("unit", "salt"), VECTORS)
def test_place_is_the_first_53_bits_of_sha256(unit: str, salt: str) -> None:
    bits = f"{int(sha256(f'{salt}.{unit}'.encode()).hexdigest(), 16):0256b}"
    assert place(unit, salt) == int(bits[:53], 2) / 2**53


@pytest.mark.parametrize(
    ("unit", "salt", "expected"),
    # Vectors for other languages: `printf checkout.user-1 | sha256sum` begins with 77e382c9162514,
    # of which the first 53 bits are 0x77e382c9162514 >> 3, over 2^53.
    [
        ("user-1", "checkout", (0x77E382C9162514 >> 3) / 2**53),
        ("é", "s", (0x25BE7CBBD15B6E >> 3) / 2**53),
    ],
)
def test_vectors_for_other_languages(unit: str, salt: str, expected: float) -> None:
    assert place(unit, salt) == expected


def test_a_growing_share_moves_nobody_between_arms() -> None:
    users = [f"u{number}" for number in range(5000)]
    arms = [
        {
            user: arm_of(user, Rollout("e", "s", control_share=share, treatment_share=share))
            for user in users
        }
        for share in (0.05, 0.1, 0.25, 0.5)
    ]
    for small, large in pairwise(arms):
        assert all(large[user] == arm for user, arm in small.items() if arm is not None)
    assert None not in arms[-1].values()
    # 5,000 users at 5 %: 250 in an arm, with a standard deviation of 15.
    assert 190 < list(arms[0].values()).count("control") < 310
    assert 190 < list(arms[0].values()).count("treatment") < 310


def test_another_salt_is_independent() -> None:
    one, two = (Rollout("e", salt, control_share=0.5, treatment_share=0.5) for salt in "ab")
    users = [f"u{number}" for number in range(4000)]
    same = sum(arm_of(user, one) == arm_of(user, two) for user in users)
    assert 1850 < same < 2150  # 2,000, standard deviation 32


def test_the_kill_switch_and_units() -> None:
    full = Rollout("e", "s", treatment_share=1.0)
    assert arm_of("u", full) == arm_of(7, full) == "treatment"
    assert arm_of("u", Rollout("e", "s", treatment_share=1.0, stopped=True)) is None
    for unit in ("", None, 1.5, True):
        with pytest.raises(UsageError, match="not the id of a unit"):
            arm_of(unit, full)  # type: ignore[arg-type]


@pytest.mark.parametrize(("control", "treatment"), [(0.6, 0.5), (-0.1, 0.5), (0.0, 1.1)])
def test_impossible_shares(control: float, treatment: float) -> None:
    with pytest.raises(UsageError, match="not shares of all units"):
        Rollout("e", "s", control_share=control, treatment_share=treatment)


@given(st.text(), st.text())
def test_places_are_in_the_unit_interval(unit: str, salt: str) -> None:
    try:
        at = place(unit, salt)
    except UnicodeEncodeError:  # a lone surrogate is no text
        return
    assert 0 <= at < 1
