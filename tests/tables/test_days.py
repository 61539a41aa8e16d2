"""Days as numbers and as texts."""

from __future__ import annotations

from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.errors import UsageError
from karat.tables.days import day_number, day_text, span_text


def test_day_0_and_a_day_in_november() -> None:
    assert day_text(0) == "1970-01-01"
    assert day_text(20_758) == "2026-11-01"
    assert day_number(" 2026-11-01 ") == 20_758
    assert day_number(datetime(2026, 11, 1, 23, 59)) == 20_758  # noqa: DTZ001  (local time)


@given(st.dates())
def test_a_day_comes_back(day: date) -> None:
    assert day_text(day_number(day)) == day.isoformat()
    assert day_number(day.isoformat()) == day_number(day)


@pytest.mark.parametrize("said", ["yesterday", "2026-13-01", "", "20.11.2026"])
def test_what_is_no_day_is_told_with_its_option(said: str) -> None:
    with pytest.raises(UsageError, match=r"is not a date\n  fix: as in 2026-11-01"):
        day_number(said)
    with pytest.raises(UsageError, match=r"--to .* is not a date\n  fix: as in --to 2026-11-01"):
        day_number(said, "--to")


def test_a_period_of_one_day_is_that_day() -> None:
    assert span_text(0, 0) == "1970-01-01"
    assert span_text(0, 1) == "1970-01-01 to 1970-01-02"
