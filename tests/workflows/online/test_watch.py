"""Watching a log: seasons, jumps and their queries, broken logging, too little history."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.choosing import deep_but
from tests.workflows.online.weeks import (
    FRIDAY,
    QUERIES,
    SUNDAY,
    SUNDAYS,
    broken_on_friday,
    searches,
    weeks,
)

from karat.engines.frames.opening import open_engine
from karat.errors import UsageError
from karat.online.metrics.registry import find
from karat.online.rules import DAY, HOUR, MINUTE, SECOND
from karat.online.watch import Window
from karat.tables.online.events import EventLog
from karat.tables.online.watch import Watched
from karat.workflows.online.evidence import Selection
from karat.workflows.online.watch import WindowReader, event, watch

LogOf = Callable[..., EventLog]


@pytest.fixture(scope="module")
def broken(log_of: LogOf) -> EventLog:
    return log_of(broken_on_friday())


@pytest.fixture(scope="module")
def sound(log_of: LogOf) -> EventLog:
    return log_of(weeks({}))


def watched(log: EventLog, engine: str = "polars", **how: Any) -> Watched:
    with open_engine(engine) as opened:
        usual = {"now": (SUNDAY + 1) * DAY + 3 * HOUR}
        return watch(log, opened, **(usual | how))


def test_a_sunday_is_compared_with_sundays(sound: EventLog) -> None:
    found = watched(sound)
    assert found.window == "2026-11-22"
    assert found.compared == ["2026-11-15", "2026-11-08", "2026-11-01", "2026-10-25"]
    assert (found.verdict, found.exit_code, found.health) == ("fine", 0, [])
    ctr = next(change for change in found.changes if change.metric == "CTR")
    assert ctr.value == pytest.approx(0.31, abs=0.03)
    assert ctr.verdict == "usual"
    # Four queries by 60 people each, every Sunday.
    assert (found.searches, found.searches_before) == (240, 240)


def test_a_broken_synonym_is_found_with_its_slice_and_query(broken: EventLog) -> None:
    found = watched(broken, until="2026-11-20", by=["kind"], metrics=["ZeroResults", "CTR"])
    assert (found.verdict, found.exit_code) == ("worse", 1)
    worse = {json.dumps(dict(change.slice)): change for change in found.found("worse")}
    code = worse['{"kind": "code"}']
    # 54 of 60 in vain; the weeks before had 1 to 3 of 60.
    assert code.value == pytest.approx(0.9)
    assert code.expected == pytest.approx(sum(code.before) / 4)
    assert all(1 / 60 <= value <= 3 / 60 for value in code.before)
    assert [one.text for one in code.queries] == ["CMS"]
    assert (code.queries[0].query, code.queries[0].n) == ("cms", 60)
    whole = worse["{}"]
    assert whole.metric == "ZeroResults"
    assert whole.queries[0].text == "CMS"
    assert '{"kind": "name"}' not in worse
    for change in (code, whole):
        assert change.others is not None
        assert change.change is not None
        total = sum(one.adds for one in change.queries) + change.others
        assert total == pytest.approx(change.change, abs=1e-12)
    assert found.changes[0].verdict == "worse"
    # Both of all and of each kind, but for CTR of code: 6 people saw results, and 30 are needed.
    assert found.tests == 5


@pytest.mark.deep  # tests/online/test_watch.py
def test_improvements_are_said_and_are_no_failure(log_of: LogOf) -> None:
    better = log_of(weeks({SUNDAY: {"clicked": 75}}, SUNDAYS))
    found = watched(better, metrics=["CTR"])
    assert (found.verdict, found.exit_code) == ("fine", 0)
    assert [change.metric for change in found.found("better")] == ["CTR"]
    assert event(found, time="2026-11-23T03:00:00Z") is None


@pytest.mark.deep  # slices are the same on both in test_evidence.py, numbers in contracts
def test_engines_see_the_same(broken: EventLog) -> None:
    # Slices are the same on both in test_evidence.py; here what is made of it.
    how: dict[str, Any] = {"until": "2026-11-20", "history": "21d", "metrics": ["ZeroResults"]}
    one, other = watched(broken, **how), watched(broken, "duckdb", **how)
    assert (one.engine, other.engine) == ("polars", "duckdb")
    assert one.verdict == other.verdict
    for left, right in zip(one.changes, other.changes, strict=True):
        assert (left.metric, left.slice, left.verdict) == (right.metric, right.slice, right.verdict)
        for name in ("value", "expected", "p", "usual_low"):
            ends = getattr(left, name), getattr(right, name)
            assert ends[0] == (None if ends[1] is None else pytest.approx(ends[1], abs=1e-9))
        assert [q.text for q in left.queries] == [q.text for q in right.queries]


@pytest.mark.deep  # which hours: test_windows.py; people of an hour window: below
def test_hours(broken: EventLog) -> None:
    # 12:00 to 18:00 of Friday: people 30 to 44 of each of 4 queries, all of CMS in vain.
    found = watched(broken, until="2026-11-20 18:00", window="6h", metrics=["ZeroResults"])
    assert found.window == "2026-11-20 12:00-18:00"
    assert (found.searches, found.verdict) == (60, "worse")
    assert found.changes[0].value == pytest.approx(15 / 60)
    assert found.changes[0].queries[0].text == "CMS"


@pytest.mark.deep  # which windows there are: tests/online/test_windows.py
def test_weeks(broken: EventLog) -> None:
    week = watched(broken, window="7d", metrics=["ZeroResults"])
    assert week.window == "2026-11-16 to 2026-11-22"
    assert week.compared[0] == "2026-11-09 to 2026-11-15"
    assert len(week.compared) == 4
    assert (week.searches, week.verdict) == (7 * 240, "worse")


@pytest.mark.deep  # tests/online/test_windows.py
def test_the_latest_window_is_not_today(sound: EventLog) -> None:
    # On Sunday at noon, Saturday is the latest that is over.
    assert watched(sound, now=SUNDAY * DAY + 12 * HOUR, metrics=["CTR"]).window == "2026-11-21"
    # At noon the log has Sunday up to 24:00, as it came later; asked for, Sunday it is.
    assert watched(sound, until="2026-11-22", metrics=["CTR"]).window == "2026-11-22"


def test_no_events_is_said_first(sound: EventLog) -> None:
    found = watched(sound, now=(SUNDAY + 2) * DAY + HOUR)
    assert (found.verdict, found.exit_code) == ("unhealthy", 3)
    assert found.health[0].startswith("no events in 2026-11-23: the log ends at 2026-11-22 23:")
    assert not found.changes
    posted = event(found, time="2026-11-24T01:00:00Z")
    assert posted is not None
    assert posted["event"] == "online.unhealthy"
    assert "no events" in posted["text"]


def test_events_without_searches_are_no_healthy_log(log_of: LogOf) -> None:
    rows = weeks({}, SUNDAYS[:-1])
    rows.append({"user_id": "u", "kind": "click", "doc_id": "d", "time_us": (SUNDAY + 1) * DAY - 1})
    found = watched(log_of(rows))
    assert (found.verdict, found.health) == (
        "unhealthy",
        ["no searches in 2026-11-22, though the log goes on: is logging complete?"],
    )


def test_an_incomplete_window_is_compared_only_if_asked(log_of: LogOf) -> None:
    rows = [row for row in weeks({}, SUNDAYS) if row["time_us"] < SUNDAY * DAY + 12 * HOUR]
    log = log_of(rows)
    found = watched(log)
    assert (found.verdict, found.exit_code, found.tests) == ("cannot_tell", 3, 0)
    assert found.health == [
        (
            "2026-11-22 is not complete: the log ends at 2026-11-22 11:36: --until 2026-11-22 "
            "compares it as it is"
        )
    ]
    asked = watched(log, until="2026-11-22")
    assert asked.verdict == "fine"
    assert any("it is compared anyway" in note for note in asked.notes)
    assert watched(log, until="2026-11-22 12:00", window="12h").verdict == "fine"


def test_too_little_history_says_what_is_missing(sound: EventLog) -> None:
    short = watched(sound, history="14d")
    assert (short.verdict, short.exit_code) == ("cannot_tell", 3)
    assert short.health == [
        (
            "3 earlier windows like 2026-11-22 are needed, and 14 days of history have 2: "
            "--history 21d has enough"
        )
    ]
    young = watched(sound, until="2026-11-06")
    # The log begins on 2026-10-19, and has 10-23 and 10-30 before Friday 11-06.
    assert young.health[0].endswith(
        "the log begins on 2026-10-19, and 21 days before the window are needed"
    )
    assert young.compared == ["2026-10-30", "2026-10-23"]


def test_what_is_logged_no_more_cannot_be_told(log_of: LogOf) -> None:
    rows = weeks({}, SUNDAYS)
    for row in rows:
        if row["kind"] == "search" and row["time_us"] >= SUNDAY * DAY:
            row["latency_us"] = None
    found = watched(log_of(rows), metrics=["CTR", "Latency:p95"])
    assert (found.verdict, found.exit_code) == ("cannot_tell", 3)
    assert found.health == [
        "Latency(p95): a denominator of 0 in the window, and 240 in earlier ones"
    ]


def test_much_less_traffic_is_said(log_of: LogOf) -> None:
    found = watched(log_of(weeks({SUNDAY: {"per_query": 20, "zeros": {}}}, SUNDAYS)))
    assert found.health == [
        "80 searches in 2026-11-22, and 240 to 240 in earlier windows: is logging complete?"
    ]


@pytest.mark.deep  # of one series: tests/online/test_watch.py
def test_a_margin(broken: EventLog) -> None:
    how: dict[str, Any] = {"until": "2026-11-20", "metrics": ["ZeroResults"]}
    assert watched(broken, **how).verdict == "worse"
    assert watched(broken, **how, margins=["ZeroResults=0.3"]).verdict == "fine"


def test_metrics_the_log_lacks_are_said(sound: EventLog) -> None:
    found = watched(sound)
    assert "not watched: Conversion: the log has no purchases" in found.notes
    none = watched(sound, metrics=["Conversion"])
    assert (none.verdict, none.exit_code) == ("cannot_tell", 3)


def test_what_cannot_be_asked(sound: EventLog) -> None:
    with pytest.raises(UsageError, match="has no direction"):
        watched(sound, metrics=["SearchesPerUser"])
    with pytest.raises(UsageError, match="bounds but no value"):
        watched(sound, metrics=["GoodAbandonment"])
    with pytest.raises(UsageError, match="cannot slice by day"):
        watched(sound, by=["day"])
    with pytest.raises(UsageError, match="did you mean kind"):
        watched(sound, by=["kinds"])
    for until in ("yesterday", "2026-11-20 12:30", "2026-11-20T12:00+01:00", "2026-13-01"):
        with pytest.raises(UsageError, match="neither a day nor a whole hour"):
            watched(sound, until=until)
    with pytest.raises(UsageError, match="less than a day"):
        watched(sound, history="6h")


def test_a_simulated_log_has_its_own_clock(log_of: LogOf) -> None:
    log = log_of(weeks({}, SUNDAYS), simulated=True)
    found = watched(log, now=(SUNDAY + 400) * DAY, metrics=["CTR"])
    assert (found.window, found.simulated) == ("2026-11-22", True)
    said = "users are simulated: the window ends with the log, not now"
    assert said in found.notes


def test_the_clock_changes_at_night(log_of: LogOf) -> None:
    """In Berlin, 2026-10-25 has 25 hours: a window is one of local days, each search once."""
    rows = []
    for week in range(5):
        start = (FRIDAY - 26 - 7 * week) * DAY - 2 * HOUR  # 00:00 in Berlin, in summer
        hours = 25 if week == 0 else 24
        for i in range(hours * 10):
            user, time = f"{week}-{i}", start + i * 6 * MINUTE
            rows.append({
                "user_id": user, "time_us": time, "kind": "search", "query_id": user,
                "query": "pump", "returned": i % 20, "total_hits": i % 20, "status": "ok",
            })  # fmt: skip
    log = log_of(rows, timezone="Europe/Berlin")
    found = watched(log, until="2026-10-25", metrics=["ZeroResults"])
    assert (found.window, found.timezone) == ("2026-10-25", "Europe/Berlin")
    assert (found.searches, found.searches_before) == (250, 240)


def bought(day: int) -> Iterator[dict[str, Any]]:
    """What 40 people of each query buy an hour after they searched on a day."""
    for row in searches(day, {}, 0):
        yield row
        if int(row["user_id"].rpartition("-")[2]) < 40:
            sold = {"user_id": row["user_id"], "query_id": row["user_id"], "kind": "purchase"}
            yield sold | {"time_us": row["time_us"] + HOUR, "doc_id": "d", "value": 9.5}


@pytest.mark.parametrize(
    ("hours", "until"), deep_but([6], [(0, "2026-11-20"), (6, "2026-11-21"), (24, "")])
)
def test_what_may_still_be_bought_is_not_watched(log_of: LogOf, hours: int, until: str) -> None:
    """The log ends with the window, hours later (then of its first searches alone it is known), or
    a day later, and then all is known: 160 of 240 bought something, as ever."""
    rows = [row for week in range(5) for row in bought(SUNDAY - 7 * week)]
    rows = [row for row in rows if row["time_us"] < (SUNDAY + 1) * DAY]
    last = (SUNDAY + 1) * DAY + (hours * HOUR or -1)
    rows.append({"user_id": "late", "kind": "click", "doc_id": "d", "time_us": last})
    log = log_of(rows)
    found = watched(log, metrics=["ZeroResults", "Conversion"])
    assert (found.verdict, found.health) == ("fine", [])
    note = (
        "not watched: Conversion: purchases after searches of 2026-11-22 are not complete "
        f"yet; --until {until} has them"
    )
    if until:
        assert [change.metric for change in found.changes] == ["ZeroResults"]
        assert note in found.notes
        alone = watched(log, metrics=["Conversion"])
        assert (alone.verdict, alone.changes) == ("cannot_tell", [])
    else:
        assert len(found.changes) == 2
        conversion = next(each for each in found.changes if each.metric == "Conversion")
        # 160 of 240, but for those of the last hour of Sunday, whose purchases were cut off.
        assert conversion.value == pytest.approx(160 / 240, abs=0.01)


def test_an_hour_window_counts_each_person_once(log_of: LogOf) -> None:
    """60 people with 6 sessions each, one in every hour from 06:00 to 12:00; every other finds
    nothing in the hours before 06:00 + i % 6, so that shares differ by person."""
    rows = []
    for week in range(4):
        for i in range(60):
            for hour in range(6, 12):
                time = (FRIDAY - 7 * week) * DAY + hour * HOUR + i * 20 * SECOND
                name = f"{week}-{i}-{hour}"
                found = 0 if i % 2 and hour < 6 + i % 6 else 10
                rows.append({
                    "user_id": f"u{i}", "time_us": time, "kind": "search", "query_id": name,
                    "query": "pump", "returned": found, "total_hits": found, "status": "ok",
                })  # fmt: skip
    rows.append({"user_id": "x", "kind": "click", "doc_id": "d", "time_us": (FRIDAY + 1) * DAY})
    log = log_of(rows)
    with open_engine("polars") as opened:
        reader = WindowReader(Selection(log, engine=opened))
        both = [find("SessionsPerUser"), find("ZeroResults")]
        [found] = reader.read([Window(FRIDAY, FRIDAY, 6, 12)], both, [()])
        [whole] = reader.read([Window(FRIDAY, FRIDAY)], both[1:], [()])
        [half] = reader.read([Window(FRIDAY, FRIDAY, 6, 9)], both[:1], [()])
    assert found.searches == 360
    sessions, zero = found.readings["SessionsPerUser", ()], found.readings["ZeroResults", ()]
    assert (sessions.value, sessions.users) == (6.0, 60)
    assert half.readings["SessionsPerUser", ()].value == 3.0
    # All of the day is in these hours. People are the units: each has 6 searches, so the variance
    # of the share is that of their own shares over 60.
    day = whole.readings["ZeroResults", ()]
    # Threads add in any order, so the last bit of a sum may differ.
    assert zero.error == pytest.approx(day.error, rel=1e-12)
    assert replace(zero, error=day.error) == day
    shares = [sum(hour < 6 + i % 6 for hour in range(6, 12)) / 6 if i % 2 else 0 for i in range(60)]
    assert zero.error == pytest.approx(statistics.stdev(shares) / 60**0.5)


def test_only_one_arm_is_watched(log_of: LogOf) -> None:
    rows = weeks({SUNDAY: {"zeros": dict.fromkeys(QUERIES, 50)}}, SUNDAYS)
    for row in rows:
        row["arm"] = "ab"[int(row["user_id"].rpartition("-")[2]) >= 50]
    log = log_of(rows)
    how: dict[str, Any] = {"metrics": ["ZeroResults"]}
    # The first 50 of 60 of each query are in arm a, and find nothing.
    assert watched(log, **how, only={"arm": "a"}).verdict == "worse"
    other = watched(log, **how, only={"arm": "b"})
    assert (other.verdict, other.searches) == ("fine", 40)
    assert "only searches with arm=b are counted" in other.notes
    with pytest.raises(UsageError, match="cannot filter by day"):
        watched(log, only={"day": "2026-11-22"})


def test_searches_that_do_not_say_what_they_found_are_said(log_of: LogOf) -> None:
    # As of a log whose list of hits is empty where nothing was found: on the day CMS broke nothing
    # is in ZeroResults.
    rows = broken_on_friday(range(FRIDAY - 28, FRIDAY + 1, 7))
    for row in rows:
        if row["kind"] == "search" and not row["returned"]:
            row["returned"] = row["total_hits"] = None
    found = watched(log_of(rows), until="2026-11-20", metrics=["ZeroResults"])
    # 54 of CMS, 2, 1 and 1 of the others, of four queries by 60 people each.
    assert found.health == [
        (
            "the number of results is unknown for 58 of 240 searches (24 %): ZeroResults "
            "excludes them"
        )
    ]
