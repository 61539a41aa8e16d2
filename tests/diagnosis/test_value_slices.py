"""Values to slices: texts, numbers and their bands, times."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.diagnosis.value_slices import EACH, labelled
from karat.errors import UsageError


def by_column(values: list[Any]) -> dict[str, str]:
    """The queries of each slice of a column, one value for each of a, b, c …"""
    every = np.arange(len(values))
    found = labelled(pl.Series("it", values, strict=False)).slices(every, every >= 0, "it")
    ids = np.array([chr(ord("a") + i) for i in every])
    return {name: "".join(ids[mask]) for name, mask in found}


def test_few_numbers_are_slices_of_their_own_in_their_order() -> None:
    assert by_column([10, 2, 10, None]) == {"2": "b", "10": "ac", "(none)": "d"}
    assert by_column(["10", "2", "10", ""]) == {"2": "b", "10": "ac", "(none)": "d"}
    assert by_column([0.5, float("nan"), 0.5]) == {"0.5": "ac", "(none)": "b"}
    assert by_column([True, False, True]) == {"false": "b", "true": "ac"}


def test_many_numbers_are_bands_cut_at_the_quartiles() -> None:
    # 1 to 16: a quarter of the values is 4, 8, 12 or less.
    sixteen = {"1 to 4": "abcd", "5 to 8": "efgh", "9 to 12": "ijkl", "13 to 16": "mnop"}
    assert by_column(list(range(1, 17))) == sixteen
    assert by_column([str(i) for i in range(1, 17)]) == sixteen
    assert len(by_column(list(range(EACH)))) == EACH


def test_equal_numbers_stay_in_one_band() -> None:
    # 14 zeros of 28: the first two quartiles are 0, the third is the 21st value, 7.
    found = labelled(pl.Series("it", [0] * 14 + list(range(1, 15))))
    assert found.names == ["0", "1 to 7", "8 to 14"]


def test_bands_have_as_few_digits_as_tell_them_apart() -> None:
    wide = labelled(pl.Series("it", [i + 1 / 3 for i in range(16)])).names
    assert wide == ["0.3333 to 3.333", "4.333 to 7.333", "8.333 to 11.33", "12.33 to 15.33"]
    close = labelled(pl.Series("it", [1 + i * 1e-7 for i in range(16)])).names
    assert close[0] == "1 to 1.0000003"
    assert len(set(close)) == 4


def test_codes_with_leading_zeros_are_no_numbers() -> None:
    assert len(labelled(pl.Series("it", [f"{i:03}" for i in range(20)])).names) == 20


@pytest.mark.parametrize(
    "values",
    [
        [date(2024, 3, 1), date(2019, 1, 1), None, date(2024, 12, 31)],
        ["2024-03-01", "2019-01", "", "2024-12-31T23:59:59Z"],
    ],
)
def test_times_are_years(values: list[Any]) -> None:
    assert by_column(values) == {"2019": "b", "2024": "ad", "(none)": "c"}


def test_times_without_a_zone_are_as_they_are_written() -> None:
    assert labelled(pl.Series("it", [date(2024, 3, 1)]).cast(pl.Datetime("ms"))).names == ["2024"]


def test_a_time_is_of_the_year_it_had_in_utc() -> None:
    there = pl.Series("it", [datetime(2023, 12, 31, 23, 30, tzinfo=UTC)])
    ahead = there.dt.convert_time_zone("Europe/Berlin")  # already 2024 there
    assert labelled(ahead).names == ["2023"]


@pytest.mark.parametrize("unit", [1, 1_000, 1_000_000, 1_000_000_000])
@pytest.mark.parametrize("name", ["updated_at", "date", "createdAt"])
def test_whole_numbers_since_1970_are_years_where_the_name_says_so(name: str, unit: int) -> None:
    # 1,700,000,000 s is 14 November 2023, 1,600,000,000 s is 13 September 2020.
    values = [1_700_000_000 * unit, 1_600_000_000 * unit]
    assert labelled(pl.Series(name, values)).names == ["2020", "2023"]
    assert labelled(pl.Series(name, [str(value) for value in values])).names == ["2020", "2023"]
    assert labelled(pl.Series("candidate", values)).names == [str(v) for v in reversed(values)]


def test_what_only_looks_like_a_date_is_text() -> None:
    assert by_column(["2024-03-01", "2024-99", "x"]) == {
        "2024-03-01": "a",
        "2024-99": "b",
        "x": "c",
    }
    assert labelled(pl.Series("date", [3, 2])).names == ["2", "3"]


def test_objects_are_no_values() -> None:
    with pytest.raises(UsageError, match="it has objects"):
        by_column([{"x": 1}, {"x": 2}])


def test_too_many_slices_are_refused() -> None:
    with pytest.raises(UsageError, match="it has 1,001 different values"):
        by_column([f"v{i}" for i in range(1001)])


@given(st.lists(st.integers(-99, 99), min_size=20, max_size=60))
def test_bands_follow_the_numbers_and_their_names_hold_them(values: list[int]) -> None:
    found = labelled(pl.Series("it", values))
    assert (np.diff(found.code[np.argsort(values)]) >= 0).all()
    assert len(found.names) <= (4 if len(set(values)) > EACH else EACH)
    for value, code in zip(values, found.code, strict=True):
        low, _, high = found.names[code].partition(" to ")
        assert int(low) <= value <= int(high or low)
