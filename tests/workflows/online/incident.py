"""Five weeks of a log, Wednesdays to Saturdays, with an incident: howto queries find nothing."""

from __future__ import annotations

import numpy as np
import polars as pl

from karat.online.rules import DAY, HOUR, SECOND

FRIDAY = 20_777  # 2026-11-20; see tests/online/test_windows.py
BEGAN = FRIDAY * DAY + 3 * HOUR
SATURDAY_MORNING = (FRIDAY + 1) * DAY + 6 * HOUR
AN_HOUR = 20  # searches


def incident(ended: int | None = None, last: int = FRIDAY, seed: int = 5) -> pl.DataFrame:
    """480 searches a day, two in five by howto queries, each by a user of its own; 5 % in vain.

    From Friday at 3 on 78 % of the howto queries are in vain. Half of the others get a click.

    Args:
        ended: When the incident ends, in microseconds; None for not in the log.
        last: The last day, whose weekday may be Friday or Saturday.
        seed: Of chance.
    """
    rng = np.random.default_rng(seed)
    days = [FRIDAY + 7 * week + day for week in range(-4, 1) for day in (-2, -1, 0, 1)]
    days = [day for day in days if day <= last]
    size = 24 * AN_HOUR
    day = np.repeat(days, size)
    hour = np.tile(np.repeat(np.arange(24), AN_HOUR), len(days))
    time = day * DAY + hour * HOUR + rng.integers(0, 3600 - 10, day.size) * SECOND
    kind = rng.choice(["howto", "name", "code"], day.size, p=[0.4, 0.4, 0.2])
    bad = (kind == "howto") & (time >= BEGAN) & (time < (ended or 2**60))
    found = np.where(rng.random(day.size) < np.where(bad, 0.78, 0.05), 0, 10)
    user = [f"u{at}" for at in range(day.size)]
    query = np.char.add(np.char.add(kind, " "), rng.integers(0, 6, day.size).astype(str))
    device = rng.choice(["phone", "desktop"], day.size)
    searches = pl.DataFrame(
        {
            "user_id": user, "time_us": time, "kind": "search", "query_id": user, "query": query,
            "returned": found, "total_hits": found, "status": "ok", "latency_us": 90_000,
            "attribute_topic": kind, "attribute_device": device,
        },
        schema_overrides={"returned": pl.Int32, "total_hits": pl.Int64},
    )  # fmt: skip
    clicked = searches.filter(pl.Series((found > 0) & (rng.random(day.size) < 0.5))).select(
        "user_id", "query_id", "attribute_topic", "attribute_device",
        pl.col("time_us") + 4 * SECOND, kind=pl.lit("click"), doc_id=pl.lit("d"),
        position=pl.lit(1, pl.Int32),
    )  # fmt: skip
    return pl.concat([searches, clicked], how="diagonal").sort("time_us", "kind")
