"""What is said of a log before any number."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from karat.online.health import health, period
from karat.online.rules import Rules
from karat.tables.online.events import EventLog

HOUR = 3_600_000_000
DAY = 24 * HOUR
NOVEMBER = 20_758  # 2026-11-01, a Sunday, in days since 1970-01-01
# Ten whole days, from half past midnight to half past eleven at night.
GOOD = EventLog(
    folder=Path("events"), files=(), rows=1000, bots=0, kinds={"search": 900, "click": 100},
    attributes=(), arms=(), known=frozenset(), first_us=NOVEMBER * DAY + HOUR // 2,
    last_us=(NOVEMBER + 10) * DAY - HOUR // 2, first_day=NOVEMBER, last_day=NOVEMBER + 9,
    timezone="UTC", simulated=False, version="1",
)  # fmt: skip


def said(log: EventLog = GOOD, **counts: int) -> list[str]:
    return health(counts, log, Rules())


def test_of_a_good_log_nothing_is_said() -> None:
    assert said(events=1000, users=100, searches=900) == []


def test_robots_and_simulated_users_are_said() -> None:
    assert said(replace(GOOD, bots=120)) == [
        "bots made 120 of 1,000 events (12 %); they are excluded"
    ]
    # Of a part of the log nobody knows them, and its events are not those of the log.
    assert health({}, replace(GOOD, bots=120), Rules(), NOVEMBER + 1) == [
        "bots made 120 of 1,000 events of the whole log (12 %); they are excluded"
    ]
    assert said(replace(GOOD, simulated=True)) == [
        "users were simulated: these numbers are not of real users"
    ]


def test_users_in_several_arms_above_one_percent_forbid_a_comparison() -> None:
    assert said(users=1000, users_in_several_arms=10) == [
        "10 of 1,000 users (1 %) were in several arms"
    ]
    assert said(users=1000, users_in_several_arms=11) == [
        (
            "11 of 1,000 users (1.1 %) were in several arms; that is more than 1 %: do not compare "
            "the arms"
        )
    ]


def test_what_was_assumed_or_lost_is_said() -> None:
    found = said(
        events=1000, searches=900, derived_items=450, unknown_query_ids=5, unattributed_carts=1,
        unattributed_purchases=3,
    )  # fmt: skip
    assert found == [
        (
            "450 of 900 searches (50 %) have no logged impressions: the number of "
            "returned documents is used instead"
        ),
        (
            "5 of 1,000 events (0.5 %) name a search that is not in the log; they are attributed "
            "to the search before them, or to none"
        ),
        (
            "1 cart could not be attributed to a search: no click or impression of the "
            "document in the 30 min before; it is excluded"
        ),
        (
            "3 purchases could not be attributed to a search: no click or impression of the "
            "document in the 24 h before; they are excluded"
        ),
    ]


def test_what_is_joined_is_said() -> None:
    assert said(requests=6385, searches=6114) == [
        "6,385 requests are 6,114 searches: typing, paging and repetitions are merged"
    ]
    assert said(requests=2, searches=1)[0].startswith("2 requests are 1 search: ")
    assert said(requests=900, searches=900) == []


def test_days_that_may_not_be_whole_are_said() -> None:
    late = replace(
        GOOD, first_us=NOVEMBER * DAY + 9 * HOUR, last_us=(NOVEMBER + 10) * DAY - 9 * HOUR
    )
    assert said(late) == [
        "2026-11-01 may be incomplete: its first event is at 09:00",
        "2026-11-10 may be incomplete: its last event is at 15:00",
    ]
    # Days that are not asked for do not matter; in Tokyo it is nine hours later.
    assert health({}, late, Rules(), NOVEMBER + 1, NOVEMBER + 8) == []
    tokyo = replace(GOOD, timezone="Asia/Tokyo")
    assert said(tokyo)[0] == "2026-11-01 may be incomplete: its first event is at 09:30"


def test_less_than_a_week_is_said() -> None:
    found = health({}, GOOD, Rules(), NOVEMBER + 1, NOVEMBER + 6)
    assert found == ["6 days are less than a week: weekdays and weekends differ"]
    assert health({}, GOOD, Rules(), NOVEMBER + 1, NOVEMBER + 7) == []
    assert health({}, GOOD, Rules(), NOVEMBER + 1, NOVEMBER + 1) == [
        "1 day is less than a week: weekdays and weekends differ"
    ]


def test_purchases_that_may_still_come_are_said() -> None:
    shop = replace(GOOD, kinds={"search": 900, "purchase": 10})
    (found,) = said(shop)
    assert found.startswith("searches of the last 24 h of the log do not count for Conversion")
    assert health({}, shop, Rules(), NOVEMBER, NOVEMBER + 7) == []  # all their windows have closed


def test_the_period_is_what_there_is_of_what_was_asked_for() -> None:
    assert period(GOOD, None, None) == (NOVEMBER, NOVEMBER + 9)
    assert period(GOOD, NOVEMBER + 3, NOVEMBER + 99) == (NOVEMBER + 3, NOVEMBER + 9)
    assert period(GOOD, NOVEMBER + 30, None) is None
    nothing = replace(GOOD, first_us=None, last_us=None, first_day=None, last_day=None)
    assert period(nothing, None, None) is None
    assert health({}, nothing, Rules()) == []
