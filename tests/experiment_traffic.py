"""Logs of experiments with a known truth."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

DAY = 86_400_000_000
START = 20_700 * DAY  # 2026-09-04
TEXTS = ("red shoes", "blue hat", "sofa", "lamp")


def traffic(
    *,
    users: int = 600,
    days: int = 14,
    before: int = 7,
    lift: float = 0.0,
    slower: float = 0.0,
    lost: float = 0.0,
    several: float = 0.0,
    seed: int = 1,
) -> pl.DataFrame:
    """Searches and clicks of users, half of them in arm b from day 0 on.

    Args:
        users: Number of users.
        days: Days with arms.
        before: Days before, without.
        lift: Added to the probability of a click in arm b.
        slower: Added to the latency in arm b, in milliseconds.
        lost: Share of users of arm b that are not logged.
        several: Share of users who change their arm with each search.
        seed: Random seed.
    """
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for number in range(users):
        arm = "ab"[int(rng.random() < 0.5)]
        if arm == "b" and rng.random() < lost:
            continue
        likes, often, moves = rng.beta(4, 6), rng.gamma(2.0, 0.4), rng.random() < several
        for day in range(-before, days):
            for at in range(min(int(rng.poisson(often)), 20)):
                # Apart, so that each request is a search of its own.
                time = START + day * DAY + int((3 + at + rng.uniform(0, 0.4)) * 3_600e6)
                here = "ab"[at % 2] if moves else arm
                search = {
                    "user_id": f"u{number}",
                    "timestamp": time,
                    "action_name": "search",
                    "query_id": f"{number}.{day}.{at}",
                    "user_query": TEXTS[int(rng.integers(4))],
                    "returned": 10,
                    "total_hits": 10,
                    "latency_ms": float(rng.lognormal(4, 0.3)) + slower * (here == "b"),
                    "arm": here if day >= 0 else None,
                }
                rows.append(search)
                if rng.random() < likes + lift * (here == "b" and day >= 0):
                    click = {
                        **search,
                        "timestamp": time + 5_000_000,
                        "action_name": "click",
                        "object_id": f"d{int(rng.integers(30))}",
                        "position": (1, 1, 1, 2, 3, 5)[int(rng.integers(6))],
                        "latency_ms": None,
                        "returned": None,
                        "total_hits": None,
                    }
                    rows.append(click)
    return pl.DataFrame(rows, infer_schema_length=None)


def welch(frame: pl.DataFrame) -> Callable[[str], float]:
    """CTR of both arms by user from raw events: another way to the same numbers."""
    seen = frame.filter(pl.col("arm").is_not_null())
    clicked = seen.filter(pl.col("action_name") == "click")["query_id"].unique()
    searches = seen.filter(pl.col("action_name") == "search").with_columns(
        clicked=pl.col("query_id").is_in(clicked.implode())
    )
    by_user = searches.group_by("user_id", "arm").agg(
        y=pl.col("clicked").sum().cast(pl.Float64), d=pl.len().cast(pl.Float64)
    )
    values: dict[str, float] = {}
    for arm in by_user["arm"].unique():
        of_arm = by_user.filter(pl.col("arm") == arm)
        y, d = of_arm["y"].to_numpy(), of_arm["d"].to_numpy()
        ratio = y.sum() / d.sum()
        residual = (y - ratio * d) / d.mean()
        values[arm] = float(ratio)
        values[f"error {arm}"] = math.sqrt(float(residual.var(ddof=1)) / len(y))
        values[f"users {arm}"] = float(len(y))
    return values.__getitem__
