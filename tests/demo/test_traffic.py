"""The demo's traffic: simulated once, said to be, and with a break that a watch finds."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from tests.event_stores import keep_events

from karat.demo.build import Demo
from karat.demo.traffic import CUT, DAYS, EVENTS, LOG, keep_traffic, last_day, paragraphs
from karat.engines.frames.opening import open_engine
from karat.online.rules import DAY
from karat.store.events.log import read_event_log
from karat.tables.online.events import EventLog
from karat.workflows.online.evaluate import evaluate

NOW = int(datetime(2026, 11, 22, 9, tzinfo=UTC).timestamp()) * 1_000_000  # a Sunday


@pytest.fixture(scope="module")
def log(demo: Demo) -> EventLog:
    """Its traffic, which ends on the last working day before it was made."""
    return read_event_log(demo.directory / EVENTS)


def last_of(log: EventLog) -> date:
    return date(1970, 1, 1) + timedelta(days=log.last_day)


def two_days_after(log: EventLog) -> int:
    return (log.last_day + 3) * DAY


def test_it_is_five_weeks_of_simulated_people(demo: Demo, log: EventLog) -> None:
    assert log.simulated
    assert 40_000 < log.rows < 65_000
    assert last_of(log).weekday() < 5
    assert log.first_day == log.last_day - DAYS + 1
    assert log.arms == ("bm25", "hybrid")
    assert {CUT, "device", "simulated"} <= set(log.attributes)
    assert (demo.directory / LOG).stat().st_size > 1_000_000


@pytest.mark.parametrize(("now", "last"), [(23, 20), (22, 20), (21, 20), (20, 19), (24, 23)])
def test_it_ends_on_a_working_day_that_is_over(now: int, last: int) -> None:
    # November 2026: the 20th is a Friday, the 23rd a Monday.
    time = int(datetime(2026, 11, now, 0, 0, 1, tzinfo=UTC).timestamp()) * 1_000_000
    assert last_day(time) == date(2026, 11, last)


@pytest.mark.deep  # tests/net compares what is told
def test_the_broken_synonym_shows_and_is_told(log: EventLog) -> None:
    with open_engine() as engine:
        found = evaluate(log, engine, ["ZeroResults"], [f"day,{CUT}"]).results
    rows = pl.DataFrame(
        [{**row.slice, "value": row.value, "n": row.n} for row in found if row.slice]
    )
    day = f"{last_of(log)}"
    broken = (pl.col("day") == day) & (pl.col(CUT) == "misspelt")
    ((_, _, share, searches),) = rows.filter(broken).select("day", CUT, "value", "n").rows()
    assert share > 0.6
    assert searches > 30
    before = rows.filter(pl.col(CUT) == "misspelt", ~broken)
    assert before.height == DAYS - 1
    assert before["value"].mean() < 0.1
    elsewhere = rows.filter(pl.col("day") == day, pl.col(CUT) != "misspelt")
    assert elsewhere["value"].max() < 0.15
    words = list(paragraphs(log, now=two_days_after(log)))
    assert "simulated users" in words[0]
    assert "bm25 and hybrid as arms" in words[0]
    assert words[-1].startswith(f"On {day}, ZeroResults of {CUT}=misspelt rose from")
    assert f"to {100 * share:.1f} % since {day}" in words[-1]
    assert "explains" in words[-1]


def test_a_second_demo_leaves_it_as_it_is(demo: Demo, log: EventLog) -> None:
    assert keep_traffic(demo, now=two_days_after(log) + 7 * DAY).version == log.version


def test_events_of_somebody_else_stay(demo: Demo, tmp_path: Path) -> None:
    rows = pl.DataFrame({"user_id": ["a"], "time_us": [NOW], "kind": ["search"], "query": ["mine"]})
    kept = keep_events(tmp_path / "events", rows)
    found = keep_traffic(replace(demo, directory=tmp_path), now=NOW)
    assert found.version == kept.version
    assert list(paragraphs(found, now=NOW)) == [
        f"{tmp_path / 'events'} has events of your own, which the demo does not change."
    ]
