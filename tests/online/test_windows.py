"""Windows of local time."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.errors import UsageError
from karat.online.watch import Window, earlier, hours_of, latest
from karat.tables.days import day_text

# 2026-11-20, a Friday: 56 years of 365 days and 14 leap days to 2026-01-01 are 20,454; and
# 31 + 28 + 31 + 30 + 31 + 30 + 31 + 31 + 30 + 31 + 19 = 323 days more.
FRIDAY = 20_777


def test_days_as_text() -> None:
    assert day_text(FRIDAY) == "2026-11-20"
    assert day_text(0) == "1970-01-01"


@pytest.mark.parametrize(
    ("text", "hours"), [("1h", 1), ("6H", 6), ("1d", 24), (" 7 d", 168), ("1w", 168), ("28d", 672)]
)
def test_spans(text: str, hours: int) -> None:
    assert hours_of(text) == hours


@pytest.mark.parametrize("text", ["", "0d", "d", "-1d", "1.5h", "1m", "10000d", "1d2h"])
def test_no_spans(text: str) -> None:
    with pytest.raises(UsageError, match=r"not a duration\n  fix: --window"):
        hours_of(text)


@pytest.mark.parametrize(
    ("text", "hour", "label"),
    [
        ("1d", 0, "2026-11-19"),
        ("1d", 23, "2026-11-19"),  # today is not over
        ("1d", 24, "2026-11-20"),
        ("7d", 9, "2026-11-13 to 2026-11-19"),
        ("2d", 9, "2026-11-18 to 2026-11-19"),
        ("6h", 13, "2026-11-20 06:00-12:00"),
        ("6h", 12, "2026-11-20 06:00-12:00"),
        ("6h", 5, "2026-11-19 18:00-24:00"),
        ("6h", 24, "2026-11-20 18:00-24:00"),
        ("1h", 1, "2026-11-20 00:00-01:00"),
        ("24h", 13, "2026-11-19"),
    ],
)
def test_the_latest_that_is_complete(text: str, hour: int, label: str) -> None:
    assert latest(text, FRIDAY, hour).label == label


@pytest.mark.parametrize("text", ["5h", "36h", "29d", "7h"])
def test_no_such_windows(text: str) -> None:
    with pytest.raises(UsageError, match="fix: --window"):
        latest(text, FRIDAY, 12)


def test_earlier_windows_have_the_same_weekday_and_hours() -> None:
    window = latest("6h", FRIDAY, 13)
    assert [w.label for w in earlier(window, 28)] == [
        "2026-11-13 06:00-12:00",
        "2026-11-06 06:00-12:00",
        "2026-10-30 06:00-12:00",
        "2026-10-23 06:00-12:00",
    ]
    assert [w.label for w in earlier(latest("7d", FRIDAY, 0), 15)] == [
        "2026-11-06 to 2026-11-12",
        "2026-10-30 to 2026-11-05",
    ]
    # Ten days do not fit into a week: the step is two of them.
    assert [w.first_day for w in earlier(Window(FRIDAY - 9, FRIDAY), 30)] == [
        FRIDAY - 23,
        FRIDAY - 37,
    ]
    assert earlier(window, 6) == []


@given(
    st.sampled_from(["1h", "2h", "3h", "4h", "6h", "8h", "12h", *(f"{n}d" for n in range(1, 29))]),
    st.integers(100, 30_000),
    st.integers(0, 24),
    st.integers(0, 200),
)
def test_windows_are_as_long_as_asked_end_in_time_and_do_not_overlap(
    text: str, day: int, hour: int, history: int
) -> None:
    window = latest(text, day, hour)
    days = window.last_day - window.first_day
    assert 24 * days + window.end_hour - window.first_hour == hours_of(text)
    ends = 24 * window.last_day + window.end_hour
    assert ends <= 24 * day + hour < ends + max(24, hours_of(text))
    found = [window, *earlier(window, history)]
    for later, before in pairwise(found):
        assert before.last_day < later.first_day
        assert (later.first_day - before.first_day) % 7 == 0
        assert (before.first_hour, before.end_hour) == (window.first_hour, window.end_hour)
        assert window.first_day - before.first_day <= history
