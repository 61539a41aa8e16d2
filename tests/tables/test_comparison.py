"""Rows of a comparison."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

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


@pytest.mark.parametrize(
    ("verdict", "low", "high", "turns"),
    [
        ("better", 0.1, 0.2, False),
        ("better", 0.0, 0.2, True),
        ("better", 1e-13, 0.2, True),  # a sum leaves that behind
        ("worse", -0.2, -0.1, False),
        ("worse", -0.2, -1e-13, True),
        ("cannot tell", -0.2, 0.1, True),
        ("identical", 0.0, 1e-13, False),
        ("identical", 0.0, 0.1, True),
        ("better", None, 0.1, None),
        ("better", 0.1, None, None),
    ],
)
def test_could_turn(
    verdict: Any, low: float | None, high: float | None, turns: bool | None
) -> None:
    row = replace(PLAIN, verdict=verdict, unjudged_low=low, unjudged_high=high)
    assert row.sign_could_flip is turns
