from __future__ import annotations

from datetime import datetime

import polars as pl
import pytest

from karat.tables.days import is_zone, local_time


@pytest.mark.parametrize("name", ["UTC", "Europe/Berlin", "Asia/Kathmandu", "GMT", "Etc/GMT+5"])
def test_zones_that_there_are_and_that_polars_knows(name: str) -> None:
    assert is_zone(name)
    assert pl.Series([datetime.fromisoformat("2026-11-20")]).dt.replace_time_zone(name).len() == 1


@pytest.mark.parametrize(
    "name",
    [
        "localtime",
        "posixrules",
        "Mars/X",
        "",
        "../../etc/passwd",
        "/etc/passwd",
        "UTC\0",
        "a" * 999,
    ],
)
def test_what_is_no_zone(name: str) -> None:
    assert not is_zone(name)


def test_clocks_show_the_time_of_their_zone_and_season() -> None:
    # 2026-10-25 01:00 UTC: in Berlin clocks have just gone back from 3:00 to 2:00.
    time = 1_792_890_000_000_000
    said = [f"{local_time(time + at * 3_600_000_000, 'Europe/Berlin'):%d %H:%M}" for at in (-1, 0)]
    assert said == ["25 02:00", "25 02:00"]
    assert f"{local_time(time, 'Asia/Kathmandu'):%d %H:%M}" == "25 06:45"
    assert f"{local_time(-1, 'UTC'):%Y-%m-%d %H:%M:%S.%f}" == "1969-12-31 23:59:59.999999"
