"""Judged queries and their users from evidence made by hand: the join, and slices of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from karat.online.evidence import Evidence
from karat.online.histograms import empty_histogram, empty_positions
from karat.online.metrics.expressions import EVERY_SEARCH
from karat.online.metrics.registry import find
from karat.online.offline_correlation import CLASS, QUERY, Worlds
from karat.online.rules import Rules
from karat.tables import Queries
from karat.tables.online.events import EventLog

ABOUT = Queries(pl.DataFrame({"query_id": ["q1", "q2", "q3"], "text": ["Red", "Green", "Blue"]}))
PARTS = {"q1": "colour", "q2": "colour"}
OFFLINE: dict[str, dict[str, float | None]] = {
    "q1": {"RR": 1.0}, "q2": {"RR": 0.5}, "q3": {"RR": 0.0},
}  # fmt: skip


def moments(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Moments of people who search once each: ``of`` of them, and ``many`` whom the metric counts.

    The squared deviations of so many ones and zeros from their mean add up to many·(1 - mean).
    """
    made = []
    for row in rows:
        of, many = row.pop("of"), row.pop("many")
        mean = many / of
        made.append(
            row | {
                "term": "value", "users": of, "numerator": float(many), "denominator": float(of),
                "mean_numerator": mean, "mean_denominator": 1.0, "m2_numerator": many * (1 - mean),
                "m2_denominator": 0.0, "comoment": 0.0,
            }
        )  # fmt: skip
    return pl.DataFrame(made)


def worlds() -> Worlds:
    """Red 10 times and Green 20, both judged; Blue judged and never; black and none not judged."""
    zero = find("ZeroResults")
    counts = {"red": (10, 1), "green": (20, 4), "black": (7, 7), None: (3, 3)}
    by_query = [
        {"query": query, "metric": name, "of": of, "many": of if name != zero.name else many}
        for query, (of, many) in counts.items()
        for name in (zero.name, EVERY_SEARCH.name)
    ]
    by_class = [{"class": "colour", "metric": zero.name, "of": 30, "many": 5}]
    # Milliseconds of the answers: red 10 at 100; green 19 at 200 and 1 at 900, on two buckets.
    bins = [("red", 1, 100, 10), ("green", 1, 200, 9), ("green", 2, 200, 10), ("green", 2, 900, 1)]
    histogram = pl.DataFrame(bins, ["query", "user_bucket", "ms", "count"], orient="row")
    histogram = histogram.select(
        "query", pl.lit("latency").alias("name"), "user_bucket", "count",
        bin_us=pl.col("ms") * 1000, censored=pl.lit(0),
        sum_us=pl.col("ms") * 1000 * pl.col("count"),
    )  # fmt: skip
    places = [("green", 1, 2), ("green", 2, 1), ("green", 3, 3), ("green", None, 9)]
    positions = pl.DataFrame(places, ["query", "position", "clicks"], orient="row")
    evidence = Evidence(
        {QUERY: moments(by_query), CLASS: moments(by_class)},
        {QUERY: histogram, CLASS: empty_histogram(CLASS)},
        {QUERY: positions, CLASS: empty_positions(CLASS)}, {},
    )  # fmt: skip
    log = EventLog(
        folder=Path("events"), files=(), rows=9, bots=0, kinds={"search": 40}, attributes=(),
        arms=(), known=frozenset({"returned", "total_hits", "status", "query"}), first_us=0,
        last_us=1, first_day=0, last_day=0, timezone="UTC", simulated=False, version="1",
    )  # fmt: skip
    of_key = {"red": "q1", "green": "q2", "blue": "q3"}
    return Worlds(evidence, log, Rules(), [zero], of_key)


def test_a_judged_query_has_a_row_where_somebody_searched_for_it() -> None:
    green, red = worlds().rows(OFFLINE, ["RR"], ABOUT, PARTS)
    assert (green.query_id, green.text, green.slice) == ("q2", "Green", "colour")
    assert (green.searches, green.users, red.searches, red.users) == (20, 20, 10, 10)
    assert (green.offline, red.offline) == ({"RR": 0.5}, {"RR": 1.0})
    assert green.online["ZeroResults"].value == pytest.approx(4 / 20)
    assert green.online["ZeroResults"].low is not None
    # 19 of 20 took 200 ms: 95 % did, and no more are needed.
    assert (green.p50_ms, green.p95_ms) == (pytest.approx(200), pytest.approx(200))
    # Of six clicks at known positions three are at 2 or above.
    assert (green.position, red.position) == (2, None)


def test_all_is_over_all_searches_and_a_slice_has_its_own_interval() -> None:
    found = worlds()
    whole, colour = found.slices(found.rows(OFFLINE, ["RR"], ABOUT, PARTS), ["RR"], "class")
    assert (whole.slice, whole.queries, whole.searches) == (None, 2, 30)
    assert whole.offline == {"RR": pytest.approx(0.75)}
    assert whole.weighted == {"RR": pytest.approx((10 * 1.0 + 20 * 0.5) / 30)}
    assert whole.online["ZeroResults"].value == pytest.approx(5 / 30)
    assert whole.online["ZeroResults"].low is None
    assert colour.online["ZeroResults"].low is not None
    # 10 answers in 100 ms, 19 in 200, 1 in 900: the 29th of 30 is the first that 95 % reach.
    assert (whole.p50_ms, whole.p95_ms) == (pytest.approx(200), pytest.approx(200))


def test_searches_for_what_is_not_judged_are_counted() -> None:
    assert worlds().others() == (1, 7)  # black; searches for nothing are of no query
