"""Evidence: laws that hold for every log, on made-up ones."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from karat.engines.frames.opening import open_engine
from karat.errors import UsageError
from karat.online.evidence import Cut, Evidence
from karat.online.metrics.registry import find
from karat.online.rules import DAY, MINUTE, Rules
from karat.tables.online.events import EventLog
from karat.workflows.online.evidence import Selection, gather

METRICS = [
    find(name) for name in ("CTR", "SAT", "Abandonment", "Conversion", "Dwell", "SessionsPerUser")
]
CUTS: list[Cut] = [(), ("day", "arm"), ("query",)]
LAWS = settings.default.max_examples  # each is a log of its own here, or several
TEXTS = ("sho", "shoes", "red shoes", "shoes red", "lamp", "")
KINDS = ("search", "search", "impression", "click", "click", "hide", "heartbeat", "cart")

EVENT = st.fixed_dictionaries(
    {
        "user_id": st.sampled_from(["ann", "ben", "cat", "dot"]),
        "time_us": st.one_of(
            st.integers(0, 20).map(lambda second: second * 1_000_000),
            st.integers(0, 200).map(lambda minute: minute * 60_000_000),
        ).map(lambda at: 1_790_000_000_000_000 + at),
        "kind": st.sampled_from([*KINDS, "purchase", "answer", "other"]),
        "query_id": st.sampled_from([None, "q1", "q2", "q3"]),
        "doc_id": st.sampled_from([None, "d1", "d2"]),
        "query_key": st.sampled_from([None, *TEXTS]),
        "position": st.sampled_from([None, 1, 2, 10]),
        "total_hits": st.sampled_from([None, 0, 3]),
        "raw_hits": st.sampled_from([None, 0, 3]),
        "returned": st.sampled_from([None, 0, 3]),
        "filtered": st.sampled_from([None, True, False]),
        "status": st.sampled_from([None, "ok", "error", "timeout"]),
        "value": st.sampled_from([None, 0.1, 1e9]),
        "latency_us": st.sampled_from([None, 0, 1_234_567, 99_999_999]),
        "arm": st.sampled_from([None, "a", "b"]),
        "bot": st.sampled_from([None, False, False, True]),
    }
)
LOG = st.lists(EVENT, min_size=1, max_size=40)
SCHEMA = {
    **dict.fromkeys(("user_id", "kind", "query_id", "doc_id", "query_key"), pl.String),
    **dict.fromkeys(("status", "arm"), pl.String),
    **dict.fromkeys(("time_us", "position", "total_hits", "raw_hits", "returned"), pl.Int64),
    **dict.fromkeys(("filtered", "bot"), pl.Boolean),
    "value": pl.Float64,
    "latency_us": pl.Int64,
}


def frame_of(events: list[dict[str, object]]) -> pl.DataFrame:
    """Events, none twice, with the columns of searches at searches only."""
    of_searches = ("query_key", "total_hits", "raw_hits", "returned", "filtered", "status")
    frame = pl.DataFrame(events, schema=SCHEMA).unique(maintain_order=True)
    search = pl.col("kind") == "search"
    return frame.with_columns(
        pl.when(search).then(pl.col(name)).alias(name) for name in (*of_searches, "latency_us")
    ).unique(["user_id", "time_us", "kind", "query_id", "doc_id"], maintain_order=True)


def evidence(log: EventLog, engine: str = "polars", at_once: int = 1_000_000) -> Evidence:
    """What a log reduces to."""
    with open_engine(engine, rows_at_once=at_once) as opened:
        return gather(Selection(log, engine=opened), METRICS, CUTS)


def assert_same(one: Evidence, two: Evidence) -> None:
    """Integers equal, floats to 1e-9."""
    assert one.counts == two.counts
    for cut in CUTS:
        close = {"rel_tol": 1e-9, "abs_tol": 1e-9, "check_row_order": False}
        assert_frame_equal(one.moments[cut], two.moments[cut], **close)
        assert_frame_equal(one.histograms[cut], two.histograms[cut], check_row_order=False)
        assert_frame_equal(one.positions[cut], two.positions[cut], check_row_order=False)


def test_laws_of_evidence_hold_of_the_golden_log(stored: ModuleType) -> None:
    keep_laws(stored, stored.golden_events())


@pytest.mark.deep  # of logs that nobody thought of
@settings(max_examples=LAWS // 5)
@given(events=LOG)
def test_laws_of_evidence(stored: ModuleType, events: list[dict[str, object]]) -> None:
    keep_laws(stored, frame_of(events))


def keep_laws(stored: ModuleType, frame: pl.DataFrame) -> None:
    with TemporaryDirectory() as made:
        log = stored.store(Path(made, "whole"), frame)
        whole = evidence(log)
        # Batches of whole users, files in another number, and rows in another order: all the same.
        shuffled = stored.store(Path(made, "shuffled"), frame, ranges=8, seed=5)
        assert_same(evidence(shuffled, at_once=10), whole)
        # Robots add nothing.
        robot = frame.with_columns(user_id=pl.lit("robot"), bot=pl.lit(value=True))
        if log.kinds:
            more = stored.store(Path(made, "robots"), pl.concat([frame, robot]))
            assert_same(evidence(more), whole)
        # Users are exchangeable: other names, the same sums. (Their bucket is another.)
        others = frame.with_columns(user_id=pl.col("user_id").str.reverse() + "!")
        named = evidence(stored.store(Path(made, "named"), others))
        assert named.counts == whole.counts
        close = {"rel_tol": 1e-9, "abs_tol": 1e-9}
        assert_frame_equal(named.moments[()], whole.moments[()], **close)
    counts = whole.counts
    people = frame.filter(~pl.col("bot").fill_null(value=False))
    assert counts["events"] == people.height
    assert counts["requests"] == people.filter(kind="search").height
    assert counts["sessions"] <= counts["searches"] <= counts["requests"]
    sums = {(row["metric"], row["term"]): row for row in whole.moments[()].iter_rows(named=True)}
    for row in sums.values():
        assert row["users"] <= counts["users"]
        if row["metric"] != "SessionsPerUser":
            assert 0 <= row["numerator"] <= row["denominator"]
    if ("SAT", "least") in sums:
        three = [sums["SAT", term]["numerator"] for term in ("least", "value", "most")]
        assert three == sorted(three)
    # Every slice is a part of the whole.
    for cut in (("day", "arm"), ("query",)):
        parts = whole.moments[cut].group_by("metric", "term").agg(pl.col("numerator").sum())
        for metric, term, total in parts.iter_rows():
            if metric != "SessionsPerUser":
                assert total == pytest.approx(sums[metric, term]["numerator"])


@pytest.mark.deep  # metric by metric in tests/contracts
@settings(max_examples=LAWS // 8)
@given(events=LOG)
def test_duckdb_says_what_polars_says(stored: ModuleType, events: list[dict[str, object]]) -> None:
    pytest.importorskip("duckdb", reason="needs the package duckdb")
    with TemporaryDirectory() as made:
        log = stored.store(Path(made), frame_of(events))
        assert_same(evidence(log, "duckdb"), evidence(log))


# Half hours and seconds of five days. A search has its own id, the rest that of one of them.
LONG = st.lists(
    st.tuples(
        st.sampled_from(["ann", "ben"]),
        st.sampled_from([*KINDS, "purchase", "answer", "other"]),
        st.integers(0, 240),
        st.integers(0, 40),
        st.integers(0, 12),
        st.sampled_from(["d1", "d2"]),
        st.sampled_from(["shoes", "red shoes", "lamp"]),
    ),
    min_size=5,
    max_size=60,
)


@pytest.mark.deep  # of one log: the next test
@settings(max_examples=LAWS // 8)
@given(rows=LONG)
def test_a_day_is_the_same_in_a_long_period_and_alone(
    stored: ModuleType, rows: list[tuple[str, str, int, int, int, str, str]]
) -> None:
    events: list[dict[str, object]] = []
    for number, (user, kind, half_hour, second, other, doc, text) in enumerate(rows):
        search = kind == "search"
        at = 1_790_000_000_000_000 + (half_hour * 1800 + second) * 1_000_000
        mine = {"query_key": text, "returned": 3} if search else {"doc_id": doc, "position": 1}
        name = f"q{number}" if search else f"q{other}"
        events.append({"user_id": user, "time_us": at, "kind": kind, "query_id": name, **mine})
    frame = pl.DataFrame(events, schema=SCHEMA).unique(["user_id", "time_us", "kind", "query_id"])
    day: Cut = ("day",)
    with TemporaryDirectory() as made, open_engine() as engine:
        log = stored.store(Path(made), frame)
        whole = gather(Selection(log, engine=engine), METRICS, [day])
        alone = [
            gather(Selection(log, engine=engine, first_day=each, last_day=each), METRICS, [day])
            for each in range(log.first_day, log.last_day + 1)
        ]
    for table in ("moments", "histograms"):
        parts = pl.concat([getattr(each, table)[day] for each in alone])
        close = {"rel_tol": 1e-9, "abs_tol": 1e-9, "check_row_order": False}
        assert_frame_equal(parts, getattr(whole, table)[day], **close)


def test_days_are_those_of_the_search_and_parts_of_the_whole(
    stored: ModuleType, tmp_path: Path
) -> None:
    log = stored.store(tmp_path, stored.golden_events())
    metrics = [find("CTR"), find("SessionsPerUser")]
    done: list[tuple[int, int]] = []
    with open_engine() as engine:
        whole = gather(
            Selection(log, engine=engine), metrics, [("day",)], lambda *each: done.append(each)
        )
        first = log.first_day
        one = gather(
            Selection(log, engine=engine, first_day=first, last_day=first), metrics, [("day",)]
        )
    said = whole.moments["day",].filter(metric="CTR", term="value").sort("day")
    # 11-20: ada's three searches (one of them saw nothing), bob's, cyn 1 and 4, dan's first; ada,
    # bob and dan clicked. fay's is over nothing known. 11-21: bob 2 and dan's second, no click.
    assert said.select("day", "numerator", "denominator").rows() == [
        ("2026-11-20", 3.0, 6.0),
        ("2026-11-21", 0.0, 2.0),
    ]
    alone = one.moments["day",].filter(metric="CTR", term="value")
    assert_frame_equal(alone, said.head(1))
    assert one.counts["searches"] == 10
    assert done[-1] == (log.rows, log.rows)
    assert done == sorted(done)


def test_classes_and_attributes_cut_where_they_are_known(
    stored: ModuleType, tmp_path: Path
) -> None:
    log = stored.store(tmp_path, stored.golden_events())
    classes = pl.DataFrame({"query_key": ["shoes", "lamp"], "class": ["feet", "light"]})
    cuts: list[Cut] = [("class",), ("device", "hour")]
    with open_engine() as engine:
        found = gather(Selection(log, engine=engine, classes=classes), [find("CTR")], cuts)
    by_class = found.moments["class",].filter(term="value").sort("class", nulls_last=True)
    # shoes: ada 1, clicked. lamp: bob's two, one clicked. The rest that saw something: ada 3,
    # cyn 1 and 4, dan's two, of which dan's first clicked.
    assert by_class.select("class", "numerator", "denominator").rows() == [
        ("feet", 1.0, 1.0),
        ("light", 1.0, 2.0),
        (None, 1.0, 5.0),
    ]
    hours = found.moments["device", "hour"].filter(term="value")
    # Hours of Berlin: dan at 23 and 00, on a phone.
    dan = hours.filter(pl.col("hour").is_in(["23", "00"])).sort("hour")
    assert dan.select("device", "hour", "numerator").rows() == [
        ("phone", "00", 0),
        ("phone", "23", 1),
    ]


@pytest.mark.deep
def test_only_a_part(stored: ModuleType, tmp_path: Path) -> None:
    log = stored.store(tmp_path, stored.golden_events())
    metrics = [find("CTR")]
    cuts: list[Cut] = [(), ("arm", "device"), ("class",)]
    classes = pl.DataFrame({"query_key": ["shoes", "lamp"], "class": ["feet", "light"]})
    with open_engine() as opened:

        def asked(**how: Any) -> Evidence:
            return gather(Selection(log, engine=opened, classes=classes, **how), metrics, cuts)

        whole = asked()
        # What is left is what stands in the slices of all.
        for part in ({"arm": "a"}, {"arm": None}, {"arm": "a", "device": "phone"}):
            slices = whole.moments["arm", "device"].filter(
                *(pl.col(name).eq_missing(pl.lit(value, pl.String)) for name, value in part.items())
            )
            assert slices.height
            found = asked(only=part)
            for name in ("numerator", "denominator"):
                assert found.moments[()][name].sum() == slices[name].sum()
        feet = asked(only={"class": "feet"}).moments[()]
        assert (feet["numerator"].item(), feet["denominator"].item()) == (1, 1)
        day = asked(only={"day": "2026-11-21"}).moments[()]
        assert (day["numerator"].item(), day["denominator"].item()) == (0, 2)
        # dan's at 23:00 and 00:00 of Berlin, of which the first clicked.
        night = asked(first_hour=23, end_hour=24).moments[()]
        assert (night["numerator"].item(), night["denominator"].item()) == (1, 1)
        assert asked(only={"hour": "23"}).moments[()].equals(night)
        with pytest.raises(UsageError, match="did you mean device"):
            asked(only={"devise": "x"})


@pytest.mark.deep  # narrowed by Polars: the test before; by DuckDB: tests/contracts
def test_duckdb_narrows_as_polars_does(stored: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="needs the package duckdb")
    log = stored.store(tmp_path, stored.golden_events())
    made = []
    for name in ("polars", "duckdb"):
        with open_engine(name) as engine:
            only = {"arm": "a", "device": "phone"}
            found = gather(
                Selection(log, engine=engine, only=only, first_hour=23, end_hour=24),
                [find("CTR")],
                [()],
            )
            made.append((found.moments[()].rows(), found.counts))
    assert made[0] == made[1]
    assert made[0][0][0]  # a row: dan's search at 23:00


def test_a_purchase_belongs_to_a_search_days_before_the_period(
    stored: ModuleType, tmp_path: Path
) -> None:
    """Searched for and clicked on Monday, bought on Friday: it is led to by Monday's search."""
    monday = 20_773 * DAY + 12 * 60 * MINUTE
    who = {"user_id": "ann", "doc_id": None, "query_id": None, "query_key": None}
    frame = pl.DataFrame(
        [
            who | {"time_us": monday, "kind": "search", "query_id": "q", "query_key": "pump"},
            who | {"time_us": monday + MINUTE, "kind": "click", "query_id": "q", "doc_id": "d"},
            who | {"time_us": monday + 4 * DAY, "kind": "purchase", "doc_id": "d"},
            who | {"time_us": monday + 4 * DAY + 1, "kind": "purchase", "doc_id": "e"},
        ],
        SCHEMA | {"time_us": pl.Int64},
    )
    log = stored.store(tmp_path, frame)
    with open_engine() as engine:
        for within, lost in ((7 * DAY, 1), (DAY, 2)):
            part = Selection(log, Rules(purchase=within), 20_777, 20_777, engine=engine)
            found = gather(part, METRICS, [()])
            assert found.counts["unattributed_purchases"] == lost
