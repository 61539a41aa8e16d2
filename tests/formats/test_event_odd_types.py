"""Columns of types that only Parquet has, numbers that are too large, and too many columns."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path

import polars as pl
import pytest

from karat.errors import InputError
from karat.formats.events.flatten import Reading
from karat.formats.events.log import MOST_COLUMNS, read_events
from karat.formats.events.rows import MOST_ATTRIBUTES
from karat.formats.events.tally import Tally
from karat.formats.events.times import times

NOW = 1_795_305_600_000_000  # 2026-11-22T00:00:00Z
STAMP = dt.datetime.fromisoformat("2026-11-20T10:00")
TEN = 1_795_168_800_000_000  # the same in UTC


def read(path: Path) -> tuple[pl.DataFrame, Tally]:
    tally = Tally(path.name)
    return pl.concat(read_events(path, Reading(NOW), tally), how="diagonal"), tally


def searches(tmp_path: Path, *columns: pl.Series) -> tuple[pl.DataFrame, Tally]:
    """Two searches from Parquet, with columns instead of their own or further ones."""
    two = {"user_id": ["u", "v"], "timestamp": [STAMP] * 2, "action": ["search"] * 2}
    frame = pl.DataFrame({**two, "query": ["shoes"] * 2}).with_columns(columns)
    frame.write_parquet(tmp_path / "x.parquet")
    return read(tmp_path / "x.parquet")


def test_categories_are_texts(tmp_path: Path) -> None:
    found, _ = searches(
        tmp_path,
        pl.Series("query", ["shoes", "boots"], dtype=pl.Categorical),
        pl.Series("action", ["search"] * 2, dtype=pl.Enum(["search"])),
        pl.Series("timestamp", ["2026-11-20T10:00:00Z"] * 2, dtype=pl.Categorical),
        pl.Series("hits", [["a"], ["b"]], dtype=pl.List(pl.Categorical)),
    )
    assert found["query"].to_list() == ["shoes", "boots"]
    assert found["time_us"].to_list() == [TEN, TEN]
    assert found["hits"].to_list() == [["a"], ["b"]]


def test_durations_and_bytes_are_left_out_and_that_is_said(tmp_path: Path) -> None:
    second = dt.timedelta(seconds=1)
    found, tally = searches(
        tmp_path,
        pl.Series("latency_ms", [second] * 2),
        pl.Series("style", [second] * 2),
        pl.Series("raw", [b"\xff"] * 2),
        pl.Series("hits", [[second]] * 2),
        pl.Series("query_response_hit_ids", [[b"\xff"]] * 2),
        pl.Series("event_attributes", [{"page": 2, "took": second}] * 2),
    )
    assert found["latency_us"].to_list() == [None, None]
    assert found["hits"].to_list() == [None, None]
    assert "attribute_style" not in found.columns
    for name in ("latency_ms", "style", "raw", "hits", "query_response_hit_ids", "took"):
        assert any(said.startswith(f"{name} (") for said in tally.left_out), name


def test_a_time_without_a_day_is_none(tmp_path: Path) -> None:
    found, tally = searches(tmp_path, pl.Series("timestamp", [dt.time(10)] * 2))
    assert (found.height, dict(tally.dropped)) == (0, {"no valid time": 2})


def test_arrays_of_documents_are_lists(tmp_path: Path) -> None:
    found, _ = searches(tmp_path, pl.Series("hits", [[1, 2]] * 2, dtype=pl.Array(pl.Int64, 2)))
    assert found["hits"].to_list() == [["1", "2"], ["1", "2"]]


def test_of_two_columns_of_one_name_the_nested_is_none(tmp_path: Path) -> None:
    found, _ = searches(
        tmp_path,
        pl.Series("USER_ID", [[1], [2]]),
        pl.Series("userId", [5, 6]),
        pl.Series("_line", [9, 9]),
    )
    assert found["user_id"].to_list() == ["u", "v"]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_times_that_no_calendar_has_are_null(unit: str, zone: str) -> None:
    factor = {"ms": 1, "us": 1_000, "ns": 1_000_000}[unit]
    ten = TEN // 1_000 * factor
    far = pl.Series([2**63 - 1, -(2**63) + 1, ten]).cast(pl.Datetime(unit))  # type: ignore[arg-type]
    read = times(far, zone)["time_us"].to_list()
    hour = 3_600_000_000
    # Only nanoseconds cannot be further away than the year 2262.
    assert read[2] == TEN - (hour if zone != "UTC" else 0)
    assert unit == "ns" or read[:2] == [None, None]
    days = pl.Series([2**31 - 1, -(2**31) + 1, 20_777]).cast(pl.Int32).cast(pl.Date)
    assert times(days, "UTC")["time_us"].to_list() == [None, None, 20_777 * 24 * hour]


def test_a_log_of_such_times_has_no_events(tmp_path: Path) -> None:
    far = pl.Series("timestamp", [2**62] * 2).cast(pl.Datetime("ms"))
    found, tally = searches(tmp_path, far)
    assert (found.height, dict(tally.dropped)) == (0, {"no valid time": 2})


def test_numbers_that_would_overflow_are_no_times() -> None:
    # 2**62 seconds times a million wrap to 0 in 64 bits.
    assert times(pl.Series([2**62, 1_795_168_800]), "UTC", "s")["time_us"].to_list() == [None, TEN]


def test_revenue_that_nobody_earns_is_left_out(tmp_path: Path) -> None:
    money = ["9.5", "1e12", "1e300", "-1e308", "inf"]
    lead = "2026-11-20T10:00:00Z,u,purchase"
    rows = "".join(f"{lead},d{at},{each}\n" for at, each in enumerate(money))
    (tmp_path / "x.csv").write_text(f"timestamp,user_id,action,doc_id,revenue\n{rows}")
    found, tally = read(tmp_path / "x.csv")
    assert found["value"].to_list() == [9.5, 1e12, None, None, None]
    assert [count for said, count in tally.changed.items() if said.startswith("revenue")] == [3]


def test_time_grows_with_the_columns_and_not_with_their_square(tmp_path: Path) -> None:
    names = ",".join(f"c{at}" for at in range(MOST_COLUMNS - 3))
    row = "2026-11-20T10:00:00Z,u,shoes," + ",".join("1" * (MOST_COLUMNS - 3)) + "\n"
    (tmp_path / "x.csv").write_text(f"timestamp,user_id,query,{names}\n{row * 50}")
    began = time.process_time()
    found, tally = read(tmp_path / "x.csv")
    assert time.process_time() - began < 3  # 0.2 s; by the square 6 s
    kept = [name for name in found.columns if name.startswith("attribute_")]
    assert len(kept) == MOST_ATTRIBUTES
    assert len(tally.left_out) == MOST_COLUMNS - 3 - MOST_ATTRIBUTES


def test_more_columns_than_a_log_has_are_refused(tmp_path: Path) -> None:
    names = ",".join(f"c{at}" for at in range(MOST_COLUMNS + 1))
    (tmp_path / "x.csv").write_text(f"{names}\n{names}\n")
    with pytest.raises(
        InputError, match="the header has 2,001 columns; the maximum is 2,000"
    ) as caught:
        read(tmp_path / "x.csv")
    assert "remove columns" in (caught.value.fix or "")
