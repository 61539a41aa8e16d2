"""Sessions: gaps, the cut at 24 hours, and laws."""

from __future__ import annotations

from itertools import pairwise
from types import ModuleType
from typing import Any

import narwhals as nw
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from karat.online.rules import MINUTE, Rules
from karat.online.sessions import bounds, in_sessions, with_next

RULES = Rules()


def split(times: dict[str, list[float]], rules: Rules = RULES) -> dict[str, list[int]]:
    """The sessions of events at minutes, by user."""
    rows = [(user, at) for user, each in times.items() for at in each]
    frame = pl.DataFrame(rows, schema=["user", "at"], orient="row").select(
        user_key=pl.col("user").rank("dense").cast(pl.Int64),
        time_us=(pl.col("at") * MINUTE).round().cast(pl.Int64),
        tie=pl.int_range(pl.len()),
        kind=pl.lit("other"),
    )
    order = ["user_key", "time_us", "tie"]
    found = nw.to_native(in_sessions(nw.from_native(frame.lazy()), rules)).collect().sort(order)
    parts = found.partition_by("user_key", maintain_order=True)
    return {
        user: part["session"].to_list() for user, part in zip(sorted(times), parts, strict=True)
    }


def test_vector_v29() -> None:
    # shared/field/online.md, V29 (DuckDB): minutes, gap > 30; exactly 30 stays.
    found = split({"a": [0, 10, 45, 46, 80], "b": [0, 30, 61]})
    assert found == {"a": [1, 1, 2, 2, 3], "b": [1, 1, 2]}


def test_a_microsecond_more_than_idle_is_another_session() -> None:
    assert split({"a": [0, 30, 60 + 1 / MINUTE]}) == {"a": [1, 1, 2]}


def test_a_session_is_cut_at_whole_multiples_of_a_day_from_its_start() -> None:
    # Every 20 min from minute 7 for 49 h: 147 events after the first; 72 intervals are 24 h.
    times = [7 + 20 * number for number in range(148)]
    found = split({"a": times})["a"]
    assert found == [1] * 72 + [2] * 72 + [3] * 4
    # Behind a break the day begins anew: 10 h on, 1 h off, 20 h on is never longer than a day.
    on = [20 * number for number in range(31)] + [660 + 20 * number for number in range(61)]
    assert split({"a": on})["a"] == [1] * 31 + [2] * 61


def test_what_comes_next_is_what_was_done_not_that_a_page_was_looked_at() -> None:
    kinds = ["search", "click", "heartbeat", "hide", "hide", "click", "click"]
    frame = pl.DataFrame(
        {
            "user_key": [1] * 7,
            "time_us": [number * MINUTE for number in (0, 1, 2, 3, 4, 5, 50)],
            "tie": [0] * 7,
            "kind": kinds,
            "doc_id": [None, "a", None, None, "a", "b", "c"],
        }
    )
    done = with_next(in_sessions(nw.from_native(frame.lazy()), Rules()))
    found = nw.to_native(done).collect().sort("time_us")
    # The heartbeat and the hide without a document are left out; minute 50 is another session.
    assert found["kind"].to_list() == ["search", "click", "hide", "click", "click"]
    minutes = (found["next_us"] / MINUTE).to_list()
    assert minutes == [1, 4, 5, None, None]


@given(st.lists(st.integers(0, 5_000), min_size=1, max_size=60), st.integers(1, 200))
def test_laws_of_sessions(minutes: list[int], idle: int) -> None:
    rules = Rules(idle=idle * MINUTE)
    times = sorted(minutes)
    found = split({"a": [float(at) for at in times]}, rules)["a"]
    assert found[0] == 1
    steps = [after - before for before, after in pairwise(found)]
    assert set(steps) <= {0, 1}
    assert len(set(found)) <= len(times)
    for number in set(found):
        mine = [at for at, session in zip(times, found, strict=True) if session == number]
        assert mine[-1] - mine[0] < 24 * 60
    for before, after, step in zip(times, times[1:], steps, strict=False):
        assert after - before <= idle or step == 1
    # A longer pause allowed makes no more sessions, where no day is full.
    if times[-1] - times[0] < 24 * 60:
        more = split({"a": [float(at) for at in times]}, Rules(idle=(idle + 7) * MINUTE))["a"]
        assert more[-1] <= found[-1]


def test_bounds_are_the_first_and_last_event(stored: ModuleType) -> None:
    events = nw.from_native(stored.completed(stored.golden_events()).lazy())
    found = nw.to_native(bounds(in_sessions(events, Rules()))).collect()
    bob = found.filter(user_key=stored.key_of("bob")).sort("session")
    spans: list[Any] = ((bob["ended_us"] - bob["began_us"]) // 1_000_000).to_list()
    # 10:00:00 to 10:30:34, and 18:00:00 to 18:00:30.
    assert spans == [1834, 30]
