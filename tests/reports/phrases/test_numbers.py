"""Numbers as people read them."""

from __future__ import annotations

import pytest

from karat.reports.phrases.numbers import (
    counted,
    milliseconds,
    moves,
    percent,
    value_text,
)
from karat.tables import Result


def row(value: float | None, aggregate: str = "mean") -> Result:
    return Result("r", "m", value, aggregate, None, None, None, 1, 0, 0, 0, 0, 0, None, None)


def test_values() -> None:
    assert value_text(row(0.5), 0.5) == "0.5000"
    assert value_text(row(1234.0, "sum"), 1234.0) == "1,234"
    assert value_text(row(None), None) == "–"


@pytest.mark.parametrize(
    ("value", "low", "high", "digits", "moved"),
    [
        (0.5, 0.5, 0.50001, 4, False),  # prints 0.5000 both
        (0.5, 0.5, 0.50009, 4, True),  # 0.5001
        (0.5, 0.496, 0.504, 2, False),
        (0.5, 0.494, 0.5, 2, True),  # 0.49
        (0.5, None, 0.6, 4, False),
        (None, 0.4, 0.6, 4, False),
    ],
)
def test_what_moves_a_printed_digit(
    value: float | None, low: float | None, high: float | None, digits: int, moved: bool
) -> None:
    assert moves(row(value), low, high, digits) is moved


def test_a_sum_moves_in_whole_numbers() -> None:
    assert not moves(row(12.0, "sum"), 12.0, 12.4)
    assert moves(row(12.0, "sum"), 12.0, 13.0)


def test_the_rest() -> None:
    assert [percent(share) for share in (None, 0, 0.5, 1)] == ["", "0 %", "50 %", "100 %"]
    assert [milliseconds(us) for us in (1_234_567, 12_345, 12)] == ["1,235", "12.3", "0.012"]
    assert [counted(n, "query", "queries") for n in (1, 1200)] == ["1 query", "1,200 queries"]
