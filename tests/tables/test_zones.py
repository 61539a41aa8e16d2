from __future__ import annotations

from datetime import datetime

import polars as pl
import pytest

from karat.tables.zones import is_zone


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
