"""Five weeks of a log, for a watch: what is in vain, and who clicks, is said day by day."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from karat.online.rules import DAY, HOUR, SECOND

# 2026-11-20, a Friday, is day 20,777; see tests/online/test_windows.py. Sunday is two days later.
FRIDAY, SUNDAY = 20_777, 20_779
QUERIES = ("CMS", "Pump", "Pipe wrench", "Valve")
KINDS = {"CMS": "code", "Pump": "name", "Pipe wrench": "name", "Valve": "name"}


def searches(
    day: int, zeros: dict[str, int], clicked: int, per_query: int = 60, first_hour: int = 0
) -> Iterator[dict[str, Any]]:
    """A day: each query by so many people, ``zeros`` of them in vain, ``clicked`` % clicking.

    People are others each day; they come evenly over the day from ``first_hour`` on.
    """
    step = (24 - first_hour) * HOUR // per_query
    for query in QUERIES:
        for i in range(per_query):
            user = f"{query}-{day}-{i}"
            time = day * DAY + first_hour * HOUR + i * step
            found = 0 if i % per_query < zeros.get(query, 0) else 10
            yield {
                "user_id": user, "time_us": time, "kind": "search", "query_id": user,
                "query": query, "returned": found, "total_hits": found, "status": "ok",
                "latency_us": 90_000 + 1000 * (i % 20), "attribute_kind": KINDS[query],
            }  # fmt: skip
            # 37 and 100 have no common factor: who clicks is spread evenly.
            if found and i * 37 % 100 < clicked:
                click = {"user_id": user, "kind": "click", "query_id": user, "doc_id": "d"}
                yield click | {"time_us": time + 4 * SECOND, "position": 1 + i % 3}


WEEKS = range(SUNDAY - 34, SUNDAY + 1)
SUNDAYS = range(SUNDAY - 28, SUNDAY + 1, 7)


def weeks(last: dict[int, dict[str, Any]], days: Iterable[int] = WEEKS) -> list[dict[str, Any]]:
    """Five weeks to Sunday 2026-11-22: Sundays click at 30 %, other days at 60 %; 1 to 3 in vain.

    Args:
        last: Day to what is otherwise on it, as arguments of ``searches``.
        days: Those of them to have: a watch of Sundays reads no other.
    """
    rows: list[dict[str, Any]] = []
    for day in days:
        clicked = 30 if (day - SUNDAY) % 7 == 0 else 60
        usual = {"zeros": {q: 1 + (day + i) % 3 for i, q in enumerate(QUERIES)}}
        how = usual | {"clicked": clicked + day % 3} | last.get(day, {})
        rows += searches(day, **how)
    return rows


def broken_on_friday(days: Iterable[int] = WEEKS) -> list[dict[str, Any]]:
    """From Friday 2026-11-20 on, nine of ten searches for CMS are in vain."""
    gone = {"zeros": {"CMS": 54, "Pump": 2, "Pipe wrench": 1, "Valve": 1}}
    return weeks(dict.fromkeys(range(FRIDAY, SUNDAY + 1), gone), days)
