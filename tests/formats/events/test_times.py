"""Times of logs: texts and numbers of every kind, to microseconds UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.formats.events.times import UNITS, times

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOMENTS = st.integers(946_684_800_000_000, 4_102_444_800_000_000).map(  # 2000 to 2100
    lambda us: EPOCH + timedelta(microseconds=us)
)
NOON = 1_795_176_000_000_000  # 2026-11-20T12:00:00Z


def micros(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def read(*said: object, zone: str = "UTC", unit: str | None = None) -> list[int | None]:
    """When each says it was."""
    return times(pl.Series(said, strict=False), zone, unit)["time_us"].to_list()


@given(MOMENTS, st.integers(-14 * 60, 14 * 60))
def test_iso_8601_in_any_zone(moment: datetime, minutes: int) -> None:
    shown = moment.astimezone(timezone(timedelta(minutes=minutes)))
    assert read(shown.isoformat(), shown.isoformat(sep=" ")) == [micros(moment)] * 2


@given(MOMENTS)
def test_numbers_are_told_apart_by_their_size(moment: datetime) -> None:
    us = micros(moment)
    assert read(us) == [us]
    assert read(str(us)) == [us]
    assert read(us // 1000) == [us // 1000 * 1000]
    assert read(us // 1_000_000) == [us // 1_000_000 * 1_000_000]
    assert read(us * 1000, unit="ns") == [us]


@given(MOMENTS, st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Kolkata"]))
def test_clocks_without_a_zone_stood_where_it_is_said(moment: datetime, zone: str) -> None:
    local = moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0)
    # Of the hour that comes twice the first is meant, as fold=0 has it.
    expected = micros(local.replace(tzinfo=ZoneInfo(zone)))
    assert read(local.isoformat(), zone=zone) == [expected]
    assert times(pl.Series([local]), zone)["time_us"].to_list() == [expected]


def test_nights_in_which_clocks_change() -> None:
    # Berlin, 29 March 2026: 02:30 was not; by the clock before the change it is 01:30 UTC.
    # 25 October: 02:30 was twice; the first is 00:30 UTC.
    assert read("2026-03-29T02:30:00", "2026-10-25T02:30:00", zone="Europe/Berlin") == [
        micros(datetime(2026, 3, 29, 1, 30, tzinfo=UTC)),
        micros(datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),
    ]


@pytest.mark.parametrize(
    "said",
    ["2026-11-20T12:00:00Z", "2026-11-20 12:00:00.000 UTC", "2026-11-20T13:00+01", "1795176000",
     "2026-11-20T07:00:00-0500", " 2026-11-20T12:00:00,0z ", "1795176000.0", "1.795176e9"],
)  # fmt: skip
def test_one_moment_in_many_spellings(said: str) -> None:
    assert read(said) == [NOON]


@pytest.mark.parametrize("said", ["", "soon", "2026-13-01", "2026-11-20T25:00:00", "12:00", "nan"])
def test_what_is_no_time_is_null(said: str) -> None:
    assert read(said, "2026-11-20T12:00:00Z") == [None, NOON]


def test_of_numbers_the_unit_is_said_and_of_naive_times_that() -> None:
    found = times(pl.Series(["1795176000", "1795176000000", "2026-11-20T12:00:00"]), "UTC")
    assert found["number"].to_list() == ["s", "ms", None]
    assert found["naive"].to_list() == [False, False, True]
    assert found["time_us"].to_list() == [NOON] * 3


def test_every_unit_can_be_said() -> None:
    for unit, factor in UNITS.items():
        assert read(round(NOON / factor), unit=unit) == [NOON]


def test_a_form_of_ones_own() -> None:
    found = times(pl.Series(["20/Nov/2026:13:00:00 +0100"]), "UTC", form="%d/%b/%Y:%H:%M:%S %z")
    assert found["time_us"].to_list() == [NOON]
    local = times(pl.Series(["20.11.2026 13:00"]), "Europe/Berlin", form="%d.%m.%Y %H:%M")
    assert local["time_us"].to_list() == [NOON]


def test_hours_that_clocks_showed_twice_or_never_are_told() -> None:
    """Berlin, 2026: put forward on 29 March at 2:00, put back on 25 October at 3:00."""
    said = pl.Series(["2026-03-29 02:30:00", "2026-10-25 02:30:00", "2026-10-25 03:30:00", None])
    found = times(said, "Europe/Berlin")
    assert found["clock"].to_list() == ["never", "twice", None, None]
    # 3:30 in summer time (UTC+2), the first 2:30 (UTC+2), 3:30 in winter time (UTC+1).
    expected = read("2026-03-29T01:30Z", "2026-10-25T00:30Z", "2026-10-25T02:30Z")
    assert found["time_us"].to_list() == [*expected, None]
    assert times(said, "UTC")["clock"].null_count() == 4
    zoned = pl.Series(["2026-10-25T02:30:00+01:00"])
    assert times(zoned, "Europe/Berlin")["clock"].to_list() == [None]
    stamps = said.str.to_datetime(strict=False)
    assert times(stamps, "Europe/Berlin")["clock"].to_list() == ["never", "twice", None, None]
