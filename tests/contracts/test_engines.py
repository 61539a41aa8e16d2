"""Every engine comes to the same facts and evidence: integers exactly, floats to 1e-9."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import narwhals as nw
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from tests.contracts.conftest import MOSTLY_ON_POLARS

from karat.engines.frames.engine import Engine
from karat.engines.frames.opening import open_engine
from karat.online.evidence import Cut
from karat.online.metrics.entry import Metric
from karat.online.metrics.registry import all_metrics
from karat.online.rules import Rules
from karat.tables.online.events import EventLog
from karat.tables.schema import CLICKS, SEARCHES, SESSIONS
from karat.workflows.online import evidence
from karat.workflows.online.evidence import Selection, gather
from karat.workflows.online.facts import look
from karat.workflows.online.reducers import FactsOf, Reformulations, Scope, facts_of

KEYS = {
    "searches": ["user_key", "intent"],
    "clicks": ["user_key", "intent", "time_us", "doc_id"],
    "sessions": ["user_key", "session"],
}
COLUMNS = {"searches": SEARCHES, "clicks": CLICKS, "sessions": SESSIONS}
CUTS: list[Cut] = [(), ("day", "arm"), ("device",), ("query",)]
pytestmark = pytest.mark.filterwarnings(
    "ignore:PySpark does not yet fully support pandas:FutureWarning"
)


def everything(
    log: EventLog, engine: Engine, batches: list[FactsOf] | None = None
) -> dict[str, pl.DataFrame]:
    """The facts of a log, sorted; ``batches`` gets those of each batch."""
    scope = Scope(log, Rules(), attributes=("attribute_device",), text=True)
    parts: dict[str, list[pl.DataFrame]] = {name: [] for name in KEYS}
    for events in engine.batches(log, scope.columns, None, None):
        facts = facts_of(events, engine, scope, Reformulations())
        if batches is not None:
            batches.append(facts)
        for name in KEYS:
            parts[name].append(engine.collect(getattr(facts, name)))
    return {name: pl.concat(each).sort(KEYS[name]) for name, each in parts.items()}


def micro(column: str) -> pl.Expr:
    """Seconds as text to microseconds."""
    return pl.col(column).cast(pl.Float64).mul(1e6).round().cast(pl.Int64)


def expected(stored: ModuleType, name: str) -> pl.DataFrame:
    """A table of the golden log in the types of the schema."""
    times = {"first_click": "first_click_us", "left": "left_us", "dwell": "dwell_us"}
    frame = stored.table(name)
    keys = {user: stored.key_of(user) for user in frame["user"].unique()}
    frame = frame.with_columns(
        user_key=pl.col("user").replace_strict(keys, return_dtype=pl.Int64),
        time_us=stored.when(),
        local_day=pl.concat_str(pl.lit("2026-"), "day").str.to_date().cast(pl.Int32)
        if "day" in frame.columns
        else None,
        **{new: micro(old) for old, new in times.items() if old in frame.columns},
    ).drop("user", "time", *(old for old in times if old in frame.columns))
    types = {column.name: column.dtype for column in COLUMNS[name]}
    chosen = [column for column in types if column in frame.columns]
    frame = frame.select(
        pl.col(column).cast(pl.Int64 if types[column].is_integer() else types[column])
        for column in chosen
        if not frame[column].is_null().all()
    )
    return frame.sort(KEYS[name])


@MOSTLY_ON_POLARS  # whose evidence is compared with that of others below
def test_the_golden_log_comes_to_what_its_comments_derive(
    engine: Engine, stored: ModuleType, tmp_path: Path
) -> None:
    log = stored.store(tmp_path, stored.golden_events())
    as_derived(everything(log, engine), stored)


@pytest.mark.deep
def test_spark_comes_to_the_same_of_the_golden_and_the_nasty_log(
    spark: None, stored: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both logs in one, whose facts are computed once: each plan takes Spark a second or more."""
    both = pl.concat([stored.golden_events(), nasty(stored)], how="diagonal_relaxed")
    log = stored.store(tmp_path, both)
    asked, cuts = all_metrics()[::6], CUTS[1:2]
    with open_engine("polars") as polars:
        wanted = gather(Selection(log, engine=polars), asked, cuts)
    with open_engine("spark") as engine:
        batches: list[FactsOf] = []
        found = everything(log, engine, batches)
        monkeypatch.setattr(evidence, "facts_of", lambda *_: batches[0])
        reduced = gather(Selection(log, engine=engine), asked, cuts)
    assert len(batches) == 1
    golden = {stored.key_of(user) for user in stored.golden_events()["user_id"]}
    of_golden = pl.col("user_key").is_in(golden)
    as_derived({name: frame.filter(of_golden) for name, frame in found.items()}, stored)
    assert reduced.counts == wanted.counts
    same(reduced, wanted)


def as_derived(found: Mapping[str, pl.DataFrame], stored: ModuleType) -> None:
    """Facts are those that the comments of the golden log derive."""
    for name in KEYS:
        wanted = expected(stored, name)
        assert_frame_equal(found[name].select(wanted.columns), wanted)
        assert set(found[name].columns) >= {column.name for column in COLUMNS[name]}
    ada = found["searches"].filter(user_key=stored.key_of("ada"), intent=1).row(0, named=True)
    # Positions 2, 1 and 11.
    assert ada["paul_5"] == pytest.approx(0.5 + 1 + 0.5**10, rel=1e-12)
    assert ada["paul_9"] == pytest.approx(0.9 + 1 + 0.9**10, rel=1e-12)
    assert (ada["latency_us"], ada["query"], ada["attribute_device"]) == (120_000, "shoes", "phone")


def test_the_golden_log_comes_to_the_evidence_of_polars(
    engine: Engine, stored: ModuleType, tmp_path: Path, deep: bool
) -> None:
    log = stored.store(tmp_path, stored.golden_events())
    asked, cuts = all_metrics(), CUTS if deep and engine.name != "spark" else CUTS[1:2]
    with open_engine("polars") as polars:
        wanted = gather(Selection(log, engine=polars), asked, cuts)
    found = gather(Selection(log, engine=engine), asked, cuts)
    assert found.counts == wanted.counts
    same(found, wanted)
    # Counted by hand in events.csv. 40 rows are no robot's. Carts without a search: bob's of d5,
    # too late, and fay's two. Only dan is in both arms, and he refers to ada's a2. Of 12 searches
    # ada's first has impressions, fay's does not say what it returned, and three returned nothing.
    # All say whether they found anything, fay's by its total_hits.
    assert found.counts == {
        "events": 40,
        "users": 5,
        "sessions": 6,
        "searches": 12,
        "requests": 15,
        "clicks": 8,
        "unattributed_carts": 3,
        "unattributed_purchases": 0,
        "users_in_several_arms": 1,
        "derived_items": 7,
        "unknown_results": 0,
        "unknown_query_ids": 1,
    }


def wanted_on(engine: Engine, *, deep: bool) -> tuple[list[Metric], list[Cut]]:
    """What is asked of an engine on any log: less of those that take long for each plan."""
    if engine.name == "spark" or (engine.name == "duckdb" and not deep):
        return all_metrics()[::6], CUTS[1:2]
    return all_metrics(), CUTS if deep else CUTS[:2]


def same(found: Any, wanted: Any) -> None:
    """Evidence is equal, in whatever order its rows are."""
    for cut in wanted.moments:
        close = {"rel_tol": 1e-9, "abs_tol": 1e-9, "check_row_order": False}
        assert_frame_equal(found.moments[cut], wanted.moments[cut], **close)
        assert_frame_equal(found.histograms[cut], wanted.histograms[cut], check_row_order=False)
        assert_frame_equal(found.positions[cut], wanted.positions[cut], check_row_order=False)


RULES = """
# "sho" again while it is typed is no search; page 2 of what was not typed is its page.
typed 01 10:00:00 search - - sh -
typed 01 10:00:01 search - - sho -
typed 01 10:00:02 search - - sho -
typed 01 10:00:03 search - - shoes -
paged 01 10:00:00 search - - shoes -
paged 01 10:00:02 search - - shoes -
# The first that was answered speaks for a search, else the first.
again 01 10:00:00 search - - lamp error
again 01 10:00:10 search - - lamp -
never 01 10:00:00 search - - lamp timeout
never 01 10:00:10 search - - lamp error
# Blank texts are none.
blank 01 10:00:00 search - - _ -
blank 01 10:00:01 search - - _ -
blank 01 10:00:02 search - - a -
# Into the cart after 3 s: no quick back, and satisfied.
taken 01 10:00:00 search - - x -
taken 01 10:00:05 click - d1 - -
taken 01 10:00:08 cart - d1 - -
# Read for 40 s.
other 01 10:00:00 search - - x -
other 01 10:00:05 click - d1 - -
other 01 10:00:08 other - - - -
other 01 10:00:45 click - d2 - -
other 01 10:00:46 search - - zzzz -
# An answer open for 6 s, for 2 s, for 3 s, for 8 s, and nobody knows how long.
beats 01 10:00:00 search - - x -
beats 01 10:00:01 answer - - - -
beats 01 10:00:07 heartbeat - - - -
hides 01 10:00:00 search - - x -
hides 01 10:00:01 answer - - - -
hides 01 10:00:03 hide - - - -
hides 01 10:00:30 heartbeat - - - -
turns 01 10:00:00 search - - x -
turns 01 10:00:01 answer - - - -
turns 01 10:00:04 search - - zzzz -
stays 01 10:00:00 search - - x -
stays 01 10:00:01 answer - - - -
stays 01 10:00:02 other - - - -
stays 01 10:00:09 hide - - - -
fades 01 10:00:00 search - - x -
fades 01 10:00:01 answer - - - -
fades 01 10:00:02 other - - - -
# A name counts from a minute before its request to 24 h behind it, and then as no name.
early 01 09:58:59 click n d1 - -
early 01 09:59:00 click n d2 - -
early 01 10:00:00 search n - x -
later 01 10:00:00 search n - x -
later 02 10:00:00 click n d1 - -
later 02 10:00:01 click n d2 - -
stale 01 10:00:00 search n - x -
stale 02 12:00:00 search m - y -
stale 02 12:00:05 click n d1 - -
# Bought or taken before the search that they name.
sooner 01 09:50:00 cart n d1 - -
sooner 01 09:51:00 purchase n d1 - -
sooner 01 10:00:00 search n - x -
# Touched 10 h after the search, and bought 23 h and 26 h after it.
inside 01 10:00:00 search n - x -
inside 01 20:00:00 click n d1 - -
inside 02 09:00:00 purchase - d1 - -
behind 01 10:00:00 search n - x -
behind 01 20:00:00 click n d1 - -
behind 02 12:00:00 purchase - d1 - -
# So that all windows are closed.
end 05 10:00:00 search - - x -
"""
# What each search of a user comes to, in the columns named first.
RULED: dict[str, tuple[list[str], list[tuple[Any, ...]]]] = {
    "typed": (["query_key", "requests"], [("shoes", 4)]),
    "paged": (["query_key", "requests", "left_us"], [("shoes", 2, 2_000_000)]),
    "again": (["requests", "completed", "error", "left_us"], [(2, 1, 0, 0)]),
    "never": (["requests", "completed", "timeout", "error"], [(2, 0, 1, 0)]),
    "blank": (["query_key", "requests", "reformulated"], [(None, 1, 0), (None, 1, 0), ("a", 1, 0)]),
    "taken": (["quick_back", "sat_low", "carts"], [(0, 1, 1)]),
    # d2 was left after 1 s.
    "other": (["clicks", "sat_low", "quick_back"], [(2, 1, 1), (0, 0, 0)]),
    "beats": (["answered"], [(1,)]),
    "hides": (["answered"], [(0,)]),
    "turns": (["answered"], [(0,), (0,)]),
    "stays": (["answered"], [(1,)]),
    "fades": (["answered"], [(None,)]),
    "early": (["clicks", "first_click_us"], [(1, 0)]),
    "later": (["clicks"], [(1,)]),
    "stale": (["clicks"], [(0,), (1,)]),
    "sooner": (["carts", "purchases"], [(0, 0)]),
    "inside": (["clicks", "purchases"], [(1, 1)]),
    "behind": (["clicks", "purchases"], [(1, 0)]),
}


def ruled(stored: ModuleType) -> pl.DataFrame:
    """The events of RULES; ``-`` is nothing, ``_`` a blank."""
    lines = [line.split() for line in RULES.splitlines() if line and not line.startswith("#")]
    names = ["user_id", "day", "time", "kind", "query_id", "doc_id", "query_key", "status"]
    frame = pl.DataFrame(lines, schema=names, orient="row")
    frame = frame.with_columns(
        pl.col(*names[4:]).replace({"-": None, "_": " "}),
        time=pl.format("06-{} {}", "day", "time"),
        action="kind",
    )
    return frame.with_columns(time_us=stored.when()).drop("day", "time")


def test_rules_of_the_reducers(engine: Engine, stored: ModuleType, tmp_path: Path) -> None:
    searches = everything(stored.store(tmp_path, ruled(stored)), engine)["searches"]
    for user, (columns, wanted) in RULED.items():
        mine = searches.filter(user_key=stored.key_of(user)).sort("intent")
        assert (user, mine.select(columns).rows()) == (user, wanted)


Make = Callable[[ModuleType], pl.DataFrame]


def rows(*events: tuple[str, str, str], **columns: list[Any]) -> pl.DataFrame:
    """Events from user, time and kind, and further columns."""
    made = pl.DataFrame(events, schema=["user_id", "time", "kind"], orient="row")
    return made.with_columns(
        *(pl.Series(name, values) for name, values in columns.items()), action="kind"
    )


def nasty(stored: ModuleType) -> pl.DataFrame:
    """Ties, nulls, late rows, both nights at which clocks change, and a user with 5,000 events."""
    ties = (
        rows(
            # All at one time: the search is first, whatever the order of rows.
            ("tie", "06-01 10:00:00", "purchase"),
            ("tie", "06-01 10:00:00", "click"),
            ("tie", "06-01 10:00:00", "cart"),
            ("tie", "06-01 10:00:00", "search"),
            ("tie", "06-01 10:00:00", "impression"),
            # Late by hours: clocks of servers and browsers.
            ("late", "06-01 09:00:00", "click"),
            ("late", "06-01 12:00:00", "search"),
            # Europe/Berlin: 02:00 to 03:00 does not exist on 03-29, and is twice on 10-25.
            ("spring", "03-29 00:59:59", "search"),
            ("spring", "03-29 01:00:00", "search"),
            ("autumn", "10-25 00:30:00", "search"),
            ("autumn", "10-25 01:30:00", "search"),
            # Nothing but its kind is known of these.
            ("bare", "06-01 00:00:00", "search"),
            ("bare", "06-01 00:00:01", "search"),
            ("bare", "06-01 00:00:02", "click"),
            ("bare", "06-01 00:00:03", "hide"),
            query_id=["q", "q", None, "q", "q", "l", "l", *["s", "s", "t", "u"], *[None] * 4],
            doc_id=["d", "d", "d", None, "d", "e", *[None] * 9],
            query_key=[None] * 3
            + ["x", None, None, "y", "", "a", "naïve", "\u2603 naïve", *[None] * 4],
            value=[1e9, *[None] * 14],
            arm=[None] * 7 + ["", "", "b", "a", *[None] * 4],
            attribute_device=["phone"] * 5 + [None] * 6 + [""] * 4,
        )
        .with_columns(time_us=stored.when())
        .drop("time")
    )
    busy = pl.DataFrame({"n": range(5_000)}).select(
        user_id=pl.lit("busy"),
        kind=pl.when(pl.col("n") % 3 == 0).then(pl.lit("search")).otherwise(pl.lit("click")),
        time_us=1_780_000_000_000_000
        + pl.col("n") * 601_000_000,  # ten minutes and a second: longer than a day
        query_id=pl.format("q{}", pl.col("n") // 7),
        doc_id=pl.when(pl.col("n") % 3 != 0).then(pl.format("d{}", pl.col("n") % 11)),
        query_key=pl.when(pl.col("n") % 3 == 0).then(pl.format("red shoes {}", pl.col("n") // 6)),
        position=(pl.col("n") % 10 + 1).cast(pl.Int32),
        total_hits=pl.when(pl.col("n") % 3 == 0).then(pl.col("n") % 5),
        latency_us=pl.when(pl.col("n") % 3 == 0).then(pl.col("n") * 1_000_003),
        action=pl.lit("x"),
    )
    return pl.concat([ties, busy], how="diagonal_relaxed")


def empty(stored: ModuleType) -> pl.DataFrame:
    """No events."""
    return stored.golden_events().clear()


def one(stored: ModuleType) -> pl.DataFrame:
    """One user with one search."""
    return stored.golden_events().head(1)


def robots(stored: ModuleType) -> pl.DataFrame:
    """Robots only."""
    return stored.golden_events().filter(user_id="eve")


@pytest.mark.parametrize(
    ("engine", "make"),
    [
        ("duckdb", nasty),
        ("polars", empty),
        ("duckdb", empty),
        *(
            pytest.param(*each, marks=pytest.mark.deep)
            for each in itertools.product(
                ("polars", "duckdb", "spark"), (nasty, empty, one, robots)
            )
            if each not in {("duckdb", nasty), ("polars", empty), ("duckdb", empty)}
        ),
    ],
    indirect=["engine"],
)
def test_logs_at_the_edge_come_to_the_same(
    engine: Engine, stored: ModuleType, tmp_path: Path, make: Make, deep: bool
) -> None:
    events = make(stored)
    log = stored.store(tmp_path, events)
    asked, cuts = wanted_on(engine, deep=deep)
    with open_engine("polars", rows_at_once=1500) as polars:
        wanted = gather(Selection(log, engine=polars), asked, cuts)
        rows_, every = look(log, polars, "searches", {"arm": None}, only="!CTR", limit=5)
    found = gather(Selection(log, engine=engine), asked, cuts)
    assert found.counts == wanted.counts
    same(found, wanted)
    # Robots alone, of whom no search counts, are the same plan as one user's.
    if engine.name != "spark" and (deep or make is not robots):
        looked, count = look(log, engine, "searches", {"arm": None}, only="!CTR", limit=5)
        assert count == every
        assert_frame_equal(looked, rows_)


@MOSTLY_ON_POLARS  # the nasty log has them too
def test_ties_follow_the_search_whatever_the_order_of_rows(
    stored: ModuleType, tmp_path: Path, engine: Engine
) -> None:
    if engine.name == "spark":
        pytest.skip("the same plan as in the logs at the edge")
    events = nasty(stored).filter(pl.col("user_id").is_in(["tie", "bare"]))
    found = everything(stored.store(tmp_path, events, seed=3), engine)["searches"]
    tie = found.filter(user_key=stored.key_of("tie")).row(0, named=True)
    facts = ("clicks", "items", "carts", "first_click_us", "left_us")
    # By content, a cart stands before a click, and so before what it could have come from.
    assert [tie[name] for name in facts] == [1, 1, 0, 0, 0]
    # The log ends 2 s before, so what it leads to is not known.
    assert (tie["purchases"], tie["revenue"]) == (None, None)
    # Requests without a text are searches of their own, and the click belongs to the last.
    bare = found.filter(user_key=stored.key_of("bare")).sort("intent")
    assert bare["clicks"].to_list() == [0, 1]


def test_a_column_that_a_file_lacks_is_null(
    stored: ModuleType, tmp_path: Path, engine: Engine
) -> None:
    log = stored.store(tmp_path, stored.golden_events())
    first, *_ = log.files
    there = pl.read_parquet(first.path, glob=False)
    there.drop("attribute_device", "raw_hits").write_parquet(first.path)
    columns = ["user_key", "raw_hits", "attribute_device", "attribute_none", "filtered"]
    parts = [engine.collect(part) for part in engine.batches(log, columns, None, None)]
    whole = pl.concat(parts)
    assert whole.height == log.rows
    assert whole.schema == {
        "user_key": pl.Int64,
        "raw_hits": pl.Int64,
        "attribute_device": pl.String,
        "attribute_none": pl.String,
        "filtered": pl.Boolean,
    }
    mine = pl.col("user_key").is_in(there["user_key"].implode())
    assert whole.filter(mine)["attribute_device"].null_count() == there.height
    assert whole.filter(~mine)["attribute_device"].count() > 0


def test_only_the_time_asked_for_is_read(
    stored: ModuleType, tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = stored.golden_events()
    monkeypatch.chdir(tmp_path)  # Spark's Java was started elsewhere
    log, times = stored.store(Path("log"), events), events["time_us"].sort()
    since, until = int(times[5]), int(times[30])
    parts = engine.batches(log, ["time_us"], since, until)
    read = pl.concat([engine.collect(part) for part in parts])["time_us"]
    wanted = times.filter((times >= since) & (times < until))
    assert sorted(read.to_list()) == wanted.to_list()


def test_what_is_kept_and_what_is_a_table_can_be_joined(engine: Engine) -> None:
    one = engine.table(pl.DataFrame({"a": [1, 2, None], "b": ["x", None, "z"]}))
    two = engine.keep(one.with_columns(c=nw.col("a") * 2))
    joined = engine.collect(two.join(engine.table(pl.DataFrame({"a": [2], "d": [0.5]})), on="a"))
    assert joined.rows() == [(2, None, 4, 0.5)]
