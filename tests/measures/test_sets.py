"""Precision, recall, success and the set measures, by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

Value = Callable[..., float]
# Retrieved A X B Y Z C W V U T; relevant are A B C D E.
TEN = (1, 0, 1, 0, 0, 1, 0, 0, 0, 0)
MISSED = (1, 1)


@pytest.mark.parametrize(
    ("measure", "value"),
    [
        ("R@10", 3 / 5),  # A B C of A B C D E
        ("P@10", 3 / 10),
        ("P@3", 2 / 3),  # A and B of A X B
        ("P@20", 3 / 20),  # k counts though ten were returned
        ("R@1", 1 / 5),
        ("Rcap@3", 2 / 3),  # three places, five relevant
        ("Rcap@10", 3 / 5),  # ten places, five relevant
        ("Success@1", 1.0),
        ("SetP", 3 / 10),
        ("SetR", 3 / 5),
        ("SetF", 0.4),  # 2 x .3 x .6 / .9
        ("SetF(beta=2)", 0.5),  # 5 x .3 x .6 / (4 x .3 + .6) = .9 / 1.8
        ("SetAP", 9 / 50),  # 3 x 3 / (10 x 5)
        ("SetRcap", 3 / 5),  # min(10, 5)
    ],
)
def test_ten_retrieved_and_five_relevant(measure: str, value: float, value_of: Value) -> None:
    assert value_of(measure, TEN, MISSED) == pytest.approx(value, abs=1e-15)


def test_unjudged_counts_as_not_relevant(value_of: Value) -> None:
    assert value_of("P@2", (None, 1)) == 0.5


def test_a_grade_of_0_is_judged_and_not_relevant(value_of: Value) -> None:
    # Judged A2 B0 C3 D1 F3, retrieved A B C D E: A C D of A C D F.
    assert value_of("R@5", (2, 0, 3, 1, None), (3,)) == 0.75
    assert value_of("P@5", (2, 0, 3, 1, None), (3,)) == 0.6


def test_rel_moves_the_level(value_of: Value) -> None:
    # Of grades 2 0 3 1 and one missed of 3, at level 2: A and C of A C F.
    assert value_of("R(rel=2)@5", (2, 0, 3, 1, None), (3,)) == pytest.approx(2 / 3)
    assert value_of("P(rel=2)@5", (2, 0, 3, 1, None), (3,)) == 0.4
    assert value_of("P(rel=0.5)@2", (0.5, 0.4)) == 0.5


@pytest.mark.parametrize("measure", ["R@5", "Rcap@5", "SetR", "SetF", "SetAP", "SetRcap"])
def test_no_relevant_document_is_no_value(measure: str, value_of: Value) -> None:
    assert np.isnan(value_of(measure, (0, None)))


@pytest.mark.parametrize("measure", ["P@5", "Success@5", "SetP"])
def test_but_precision_of_it_is_0(measure: str, value_of: Value) -> None:
    assert value_of(measure, (0, None)) == 0


@pytest.mark.parametrize(
    "measure", ["P@5", "R@5", "Rcap@5", "Success@5", "SetP", "SetR", "SetF", "SetAP", "SetRcap"]
)
def test_nothing_returned_is_0(measure: str, value_of: Value) -> None:
    assert value_of(measure, (), (1, 2)) == 0


def test_success_looks_at_the_top_only(value_of: Value) -> None:
    assert value_of("Success@2", (0, None, 1)) == 0
    assert value_of("Success@3", (0, None, 1)) == 1
