"""Search intents: what a search of several requests was shown, whoever clicks."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest
from tests.choosing import deep_but

import karat
from karat.engines.frames.opening import open_engine
from karat.workflows.online.facts import look

# What each user asks for, "-" being not logged: user, time, words, returned, hits, status, filtered
REQUESTS = """
ann 09:00:00 boots 0 0 ok -
ann 09:25:00 boots 2 2 ok -
bob 09:00:00 boots 0 0 ok -
bob 09:25:00 boots 2 2 ok -
# Page 1 of 10, page 2 of 3; and the other way, as a filter is taken off.
pages 09:00:00 tent 10 13 ok -
pages 09:01:00 tent 3 13 ok -
wider 09:00:00 tent 3 3 ok true
wider 09:01:00 tent 10 13 ok false
# The filter was on from the start.
alone 09:00:00 tent 0 0 ok true
alone 09:01:00 tent 5 5 ok false
# What the keys on the way found is not what was searched for.
keys 09:00:00 bo 8 8 ok -
keys 09:00:02 boots 0 0 ok -
# Nobody knows what the second try showed; that it had hits is no number shown.
dim 09:00:00 rope 0 0 ok -
dim 09:10:00 rope - 7 ok -
# A second try that failed and of which nothing is known showed nothing.
fail 09:00:00 rope 0 0 ok -
fail 09:10:00 rope - - error -
# No hits is nothing shown, whatever was returned was not logged.
none 09:00:00 rope - 0 ok -
none 09:10:00 rope - 0 ok -
# What came too late came all the same.
slow 09:00:00 rope 4 - timeout -
# Of a list of 6, one was seen.
seer 09:00:00 lamp 0 0 ok -
seer 09:10:00 lamp 6 6 ok -
"""
# Items, seen, zero: the most that was shown, whether it was any, and the first answer.
SHOWN: dict[str, tuple[int | None, int | None, int | None]] = {
    "ann": (2, 1, 1),
    "bob": (2, 1, 1),
    "pages": (10, 1, 0),
    "wider": (10, 1, 0),
    "alone": (5, 1, 0),
    "keys": (0, 0, 1),
    "dim": (None, None, 1),
    "fail": (0, 0, 1),
    "none": (0, 0, 1),
    "slow": (4, 1, None),
    "seer": (1, 1, 1),
}


def requests(stored: ModuleType) -> pl.DataFrame:
    """The events of REQUESTS; their query_id is the user and the time."""
    lines = [line.split() for line in REQUESTS.splitlines() if line and not line.startswith("#")]
    names = ["user_id", "time", "query_key", "returned", "total_hits", "status", "filtered"]
    frame = pl.DataFrame(lines, schema=names, orient="row")
    frame = frame.with_columns(pl.exclude("user_id").replace({"-": None})).with_columns(
        pl.col("returned").cast(pl.Int32),
        pl.col("total_hits").cast(pl.Int64),
        filtered=pl.col("filtered") == "true",
        query_id=pl.format("{} {}", "user_id", "time"),
        kind=pl.lit("search"),
    )
    return timed(frame, stored)


def on(stored: ModuleType, kind: str, *users: str, at: str, of: str) -> pl.DataFrame:
    """Each user does this to the second document of the request of a time."""
    frame = pl.DataFrame({"user_id": users}).with_columns(
        time=pl.lit(at), kind=pl.lit(kind), doc_id=pl.lit("d2"),
        position=pl.lit(2, pl.Int32), query_id=pl.format("{} {}", "user_id", pl.lit(of)),
    )  # fmt: skip
    return timed(frame, stored)


def timed(frame: pl.DataFrame, stored: ModuleType) -> pl.DataFrame:
    made = frame.with_columns(time=pl.format("11-16 {}", "time"), action="kind")
    return made.with_columns(time_us=stored.when()).drop("time")


def together(*frames: pl.DataFrame) -> pl.DataFrame:
    return pl.concat(frames, how="diagonal_relaxed")


@pytest.mark.parametrize("engine", deep_but(["polars"], ["polars", "duckdb"]))
def test_a_search_was_shown_the_most_that_a_request_of_it_showed(
    stored: ModuleType, tmp_path: Path, engine: str
) -> None:
    events = together(
        requests(stored),
        on(stored, "impression", "seer", at="09:10:01", of="09:10:00"),
        on(stored, "click", "bob", at="09:25:07", of="09:25:00"),
    )
    with open_engine(engine) as opened:
        found, count = look(stored.store(tmp_path, events), opened, "searches", {})
    assert count == len(SHOWN)
    columns = ("items", "seen", "zero")
    for user, wanted in SHOWN.items():
        mine = found.row(by_predicate=pl.col("user_key") == stored.key_of(user), named=True)
        assert (user, tuple(mine[name] for name in columns)) == (user, wanted)


# What was counted, of Ann and Bob: 2 items each, and the second of them clicked.
PAIR: dict[str, tuple[float, float]] = {  # one clicks, both do
    "CTR": (1 / 2, 2 / 2),
    "CTR@5": (1 / 2, 2 / 2),
    "MRCR": (0.5 / 2, 1 / 2),
    "PaulScore(F=0.5)": (0.5 / 2, 1 / 2),
    "ItemCTR": (1 / 4, 2 / 4),
    "ZeroResults": (2 / 2, 2 / 2),  # the first answer was empty
    "Abandonment": (1 / 2, 0 / 2),
    "Abandonment(zero)": (1 / 2, 0 / 2),
    "SAT": (1 / 2, 2 / 2),  # the last click, of unknown dwell
    # 25 min 7 s from the first request; who does not click leaves 7 s before.
    "TimeToFirstClick": (1507.0, 1507.0),
}


@pytest.mark.parametrize("engine", deep_but(["polars"], ["polars", "duckdb"]))
@pytest.mark.parametrize("clickers", [("ann",), ("bob",), ("ann", "bob")])
def test_whether_a_search_counts_is_no_matter_of_clicks(
    stored: ModuleType, tmp_path: Path, clickers: tuple[str, ...], engine: str
) -> None:
    events = together(
        requests(stored).filter(pl.col("user_id").is_in(["ann", "bob"])),
        on(stored, "click", *clickers, at="09:25:07", of="09:25:00"),
    )
    log = stored.store(tmp_path, events)
    found: Any = karat.evaluate_online(log, list(PAIR), engine=engine)
    for row in found.results:
        value = PAIR[row.metric][len(clickers) - 1]
        n = 4 if row.metric == "ItemCTR" else 2
        assert (row.metric, row.value, row.n) == (row.metric, pytest.approx(value), n)
    assert "4 requests are 2 searches: typing, paging and repetitions are merged" in found.health
