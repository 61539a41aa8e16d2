"""A file of the store that is as long as it was and yet damaged: engines name it."""

from __future__ import annotations

from pathlib import Path

import narwhals as nw
import polars as pl
import pytest
from tests.event_stores import keep_events

from karat.engines.frames.files import reading
from karat.engines.frames.opening import open_engine
from karat.errors import InputError
from karat.store.events.log import read_event_log
from karat.tables.online.events import EventLog


@pytest.fixture
def damaged(tmp_path: Path) -> EventLog:
    rows = 500
    times = [1_795_168_800_000_000 + at * 7_919_000 for at in range(rows)]
    users = [f"u{at * 7919 % 97}" for at in range(rows)]
    frame = pl.DataFrame({"user_id": users, "time_us": times, "kind": ["search"] * rows})
    log = keep_events(tmp_path / "s", frame)
    path = Path(log.files[0].path)
    data = bytearray(path.read_bytes())
    # All of the data and nothing of the footer, which is at the end and has its length there.
    footer = int.from_bytes(data[-8:-4], "little") + 8
    data[4 : len(data) - footer] = b"\xa5" * (len(data) - footer - 4)
    path.write_bytes(data)
    return read_event_log(tmp_path / "s")


@pytest.mark.parametrize("name", ["polars", "duckdb"])
@pytest.mark.parametrize("what", ["collect", "keep"])
def test_a_damaged_file_is_named(name: str, what: str, damaged: EventLog) -> None:
    with open_engine(name) as engine:
        (plan,) = engine.batches(damaged, ["user_key", "time_us"], None, None)
        with pytest.raises(InputError, match="a file of the event store is damaged") as caught:
            getattr(engine, what)(plan)
    assert caught.value.file == damaged.files[0].path


def test_a_file_that_is_damaged_at_its_end_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    frame = pl.DataFrame({"number": pl.int_range(200_000, eager=True).hash(seed=7)})
    frame.write_parquet(path, row_group_size=20_000)
    data = bytearray(path.read_bytes())
    footer = int.from_bytes(data[-8:-4], "little") + 8
    # The last of ten row groups, and some of the one before it.
    last = slice(len(data) - footer - 200_000, len(data) - footer)
    data[last] = b"\xa5" * 200_000
    path.write_bytes(data)
    named = pytest.raises(InputError, match="a file of the event store is damaged")
    with named as caught, reading([str(path)]):
        raise RuntimeError("the plan failed")
    assert caught.value.file == str(path)


@pytest.mark.parametrize("name", ["polars", "duckdb"])
def test_a_plan_that_is_wrong_is_not_laid_to_the_files(name: str, tmp_path: Path) -> None:
    row = {"user_id": ["u"], "time_us": [1_795_168_800_000_000], "kind": ["search"]}
    log = keep_events(tmp_path / "s", pl.DataFrame(row))
    with open_engine(name) as engine:
        for plan in engine.batches(log, ["kind"], None, None):
            with pytest.raises(Exception, match="search") as caught:
                engine.collect(plan.select(nw.col("kind").cast(nw.Int64)))
            assert not isinstance(caught.value, InputError)
