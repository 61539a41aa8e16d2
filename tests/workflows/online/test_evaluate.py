"""A log with its numbers, slice by slice; the parts add up to the whole."""

from __future__ import annotations

import random
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.choosing import deep_but
from tests.event_stores import keep_events

import karat
from karat.errors import InputError, UsageError
from karat.online.metrics import registry
from karat.online.metrics.entry import Distribution
from karat.store.events.log import read_event_log
from karat.tables.online.evaluation import OnlineResults
from karat.tables.online.events import EventLog
from karat.workflows.online.import_events import import_events

SECOND = 1_000_000
DAY = 86_400 * SECOND
FIRST = 20_758  # 2026-11-01, in days since 1970-01-01
DAYS = 9


def shop(seed: int = 3, users: int = 80) -> pl.DataFrame:
    """Events of people who search, click, read, buy, or do not; any of it by chance."""
    rng = random.Random(seed)
    rows: list[dict[str, Any]] = []
    for number in range(users):
        user = {"user_id": f"u{number}", "arm": "ab"[number % 2]}
        device = rng.choice(["phone", "desktop", None])
        for visit in range(rng.choice([1, 1, 2, 9])):
            at = (FIRST + rng.randrange(DAYS)) * DAY + rng.randrange(86_000) * SECOND
            for turn in range(rng.choice([1, 1, 2, 4])):
                query = f"q{number}-{visit}-{turn}"
                found = rng.choice([0, 3, 10, 10])
                status = rng.choice(["ok"] * 12 + ["error", "timeout"])
                rows.append(
                    {
                        **user, "time_us": at, "kind": "search", "query_id": query,
                        "query": rng.choice(["apple", "apple pie", "bread", "rye bread"]),
                        "returned": found, "total_hits": found, "raw_hits": found, "status": status,
                        "filtered": rng.random() < 0.2, "page": 1, "attribute_device": device,
                        "latency_us": round(rng.lognormvariate(12, 0.7)),
                    }
                )  # fmt: skip
                if found and rng.random() < 0.2:  # some read it, some are gone at once
                    answer = {"kind": "answer", "query_id": query, "time_us": at + SECOND}
                    rows.append(user | answer)
                    if rng.random() < 0.5:
                        at += 4 * SECOND
                        continue
                for place in range(found if rng.random() < 0.6 else 0):
                    if rng.random() < 0.2:
                        at += rng.randrange(1, 90) * SECOND
                        document = {**user, "query_id": query, "doc_id": f"d{place}"}
                        rows.append(
                            document | {"time_us": at, "kind": "click", "position": place + 1}
                        )
                        if rng.random() < 0.3:
                            at += SECOND
                            kind = rng.choice(["cart", "purchase"])
                            rows.append(document | {"time_us": at, "kind": kind, "value": 9.5})
                at += rng.randrange(2, 500) * SECOND
    return pl.DataFrame(rows, schema_overrides={"position": pl.Int32, "page": pl.Int32})


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> EventLog:
    return keep_events(tmp_path_factory.mktemp("events"), shop())


EVERY = [metric.name for metric in registry.all_metrics()]
CUTS = ["day", "query", "device", "day,arm"]


@pytest.fixture(scope="module")
def results(log: EventLog) -> OnlineResults:
    return karat.evaluate_online(log, EVERY, by=CUTS)


def test_there_is_a_row_for_each_metric_and_slice(results: OnlineResults) -> None:
    assert results.by == tuple(CUTS)
    every = [row for row in results.results if "position" not in row.slice]
    seen = Counter((row.metric, tuple(row.slice.items())) for row in every)
    assert set(seen.values()) == {1}
    of_all = [row.metric for row in every if not row.slice]
    assert of_all == [name for name in EVERY if name != "ClickPosition"]
    days = [row.slice["day"] for row in every if list(row.slice) == ["day"] and row.metric == "CTR"]
    assert days == [f"2026-11-0{day}" for day in range(1, 10)]
    assert {r.slice["device"] for r in every if list(r.slice) == ["device"]} == {
        "desktop", "phone", ""
    }  # fmt: skip


def test_each_value_keeps_the_laws(results: OnlineResults) -> None:
    for row in results.results:
        metric = registry.find(row.metric)
        assert (row.value is None) == (row.state != "ok"), row
        assert bool(row.reason) == (row.value is None or row.low is None or row.high is None), row
        for end in (row.value, row.low, row.high, row.least, row.most):
            if end is not None and metric.unit == "share":
                assert 0 <= end <= 1, row
        if row.least is not None and row.most is not None:
            assert row.least <= row.most, row
            if row.value is not None:
                assert row.least <= row.value <= row.most, row
        if row.low is not None and row.value is not None:
            assert row.low <= row.value, row
            assert row.high is None or row.value <= row.high, row
        assert (row.method is None) == (row.low is None)
        assert 0 <= row.users <= max(row.n, 0), row


def test_the_slices_add_up_to_the_whole(results: OnlineResults) -> None:
    """What is counted and what it is counted over; users may stand in several slices."""
    of = {row.metric: row for row in results.results if not row.slice}
    for by in CUTS:
        names = by.split(",")
        rows = [row for row in results.results if list(row.slice) == names]
        for name, whole in of.items():
            parts = [row for row in rows if row.metric == name]
            metric = registry.find(name)
            if metric.unit != "count" or "PerSession" in name:  # those by user count users
                assert sum(row.n for row in parts) == whole.n, (name, by)
            if whole.total is not None:
                assert sum(row.total or 0 for row in parts) == pytest.approx(whole.total), (
                    name,
                    by,
                )
            assert max(row.users for row in parts) <= whole.users <= sum(row.users for row in parts)


def test_the_parts_of_a_metric_add_up_to_it(results: OnlineResults) -> None:
    of = {row.metric: row for row in results.results if not row.slice}

    def total(name: str) -> float:
        value = of[name].value
        assert value is not None
        return value

    parts = ("zero", "reformulated", "terminal")
    assert sum(total(f"Abandonment({part})") for part in parts) == pytest.approx(
        total("Abandonment")
    )
    kinds = ("add", "drop", "substitute", "respell", "reorder")
    assert sum(total(f"Reformulation({kind})") for kind in kinds) == pytest.approx(
        total("Reformulation")
    )
    assert total("MRCR") == pytest.approx(total("MRCR(clicked)") * total("CTR"))
    assert total("CTR@5") <= total("CTR")
    assert total("Latency(p50)") <= total("Latency(p95)") <= total("Latency(p99)")
    good = of["GoodAbandonment"]
    assert good.least is not None
    assert good.most is not None
    assert 0 < good.least < good.most < total("Abandonment(terminal)")
    assert (good.value, good.state) == (None, "unknown")
    shares = [r.value or 0 for r in results.results if list(r.slice) == ["position"]]
    assert sum(shares) == pytest.approx(1)


def test_what_is_counted_by_hand(results: OnlineResults) -> None:
    # A user's requests with other texts are searches of their own; the same text twice in a row in
    # one session is one. So searches are at most the requests, and users those who have one.
    frame = shop()
    of = {row.metric: row for row in results.results if not row.slice}
    requests = frame.filter(pl.col("kind") == "search")
    assert of["SearchesPerUser"].users == requests["user_id"].n_unique() == 80
    assert of["ErrorRate"].n <= requests.height
    assert of["ErrorRate"].n == of["SearchesPerSession"].total == of["SearchesPerUser"].total
    assert results.events == frame.height


def test_a_distribution_knows_its_users(results: OnlineResults) -> None:
    of = {row.metric: row for row in results.results if not row.slice}
    for metric in registry.all_metrics():
        if isinstance(metric.compute, Distribution):
            assert 25 < of[metric.name].users <= 80
    assert of["Latency(p50)"].users == 80


def test_without_metrics_the_usual_ones_are_computed(log: EventLog) -> None:
    found = karat.evaluate_online(log.folder)
    assert tuple(row.metric for row in found.results) == registry.DEFAULT
    assert found.by == ()
    assert found.engine == "polars"
    assert found.rules == "rules@1"


def test_a_period_holds_the_days_asked_for(log: EventLog) -> None:
    found = karat.evaluate_online(log, "CTR", by="day", first="2026-11-03", last=date(2026, 11, 4))
    assert [row.slice.get("day") for row in found.results] == [None, "2026-11-03", "2026-11-04"]
    assert found.period == ("2026-11-03", "2026-11-04")
    assert "2 days are less than a week: weekdays and weekends differ" in found.health


def test_classes_come_from_queries(log: EventLog, tmp_path: Path) -> None:
    file = tmp_path / "queries.csv"
    file.write_text(
        "query_id,text,class\n1,Apple,fruit\n2,apple  PIE,cake\n3,apple pie,pie\n4,bread,\n",
        encoding="utf-8",
    )
    found = karat.evaluate_online(log, "ErrorRate", by="class", queries=file)
    counts = {row.slice["class"]: row.n for row in found.results if row.slice}
    assert set(counts) == {"fruit", "cake", ""}  # bread has no class
    by_query = karat.evaluate_online(log, "ErrorRate", by="query")
    of = {row.slice["query"]: row.n for row in by_query.results if row.slice}
    assert counts == {
        "fruit": of["apple"], "cake": of["apple pie"], "": of["bread"] + of["rye bread"]
    }  # fmt: skip
    assert any("1 query has several classes" in note for note in found.notes)


def test_rules_change_what_a_session_is(log: EventLog) -> None:
    def sessions(*rules: str) -> tuple[int, OnlineResults]:
        found = karat.evaluate_online(log, "SearchesPerSession", rules=rules)
        return found.results[0].n, found

    usual, _ = sessions()
    short, said = sessions("idle=1min")
    assert short > usual
    assert said.rules == "rules@1 idle=1min"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"metrics": "CTRR"}, "did you mean CTR"),
        ({"by": "dya"}, "did you mean day"),
        ({"by": "devise"}, "did you mean device"),
        ({"by": "country"}, "to slice by\n  fix: slice by day, hour, arm, query, class"),  # no hour
        ({"by": "day,day"}, "duplicate dimension day"),
        ({"by": "class"}, "--queries FILE"),
        ({"rules": ["idel=1min"]}, "did you mean idle"),
        ({"engine": "polar"}, "did you mean polars"),
        ({"first": "2026-13-01"}, "is not a date"),
        ({"first": "2026-11-05", "last": "2026-11-03"}, "ends before it begins"),
        ({"first": "2026-12-01"}, "the log holds no events from 2026-12-01 on"),
        ({"last": "2026-10-01"}, "fix: the log holds 2026-11-01 to 2026-11-09"),
        ({"metrics": []}, "no metrics given"),
        ({"seed": -1}, "must be ≥ 0"),
    ],
)
def test_a_mistake_is_told(log: EventLog, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        karat.evaluate_online(log, **settings)
    assert said in str(caught.value)


def test_queries_without_texts_or_classes_are_told(log: EventLog, tmp_path: Path) -> None:
    file = tmp_path / "queries.csv"
    file.write_text("query_id,class\n1,fruit\n", encoding="utf-8")
    with pytest.raises(InputError, match="without texts"):
        karat.evaluate_online(log, by="class", queries=file)
    file.write_text("query_id,text,clas\n1,apple,fruit\n", encoding="utf-8")
    with pytest.raises(UsageError, match="did you mean clas"):
        karat.evaluate_online(log, by="class", queries=file)


def test_no_events_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no events"):
        karat.evaluate_online(tmp_path)


def test_a_log_without_arms_has_none_to_slice_by(tmp_path: Path) -> None:
    log = keep_events(tmp_path / "events", shop().drop("arm"))
    with pytest.raises(UsageError, match="no arms"):
        karat.evaluate_online(log, by="arm")


def test_an_attribute_named_as_a_column_of_evidence_is_told(tmp_path: Path) -> None:
    named = shop(users=5).rename({"attribute_device": "attribute_position"})
    log = keep_events(tmp_path / "events", named)
    with pytest.raises(UsageError, match="cannot slice by the attribute position"):
        karat.evaluate_online(log, by="position")


def test_simulated_users_are_said(tmp_path: Path) -> None:
    log = keep_events(tmp_path / "events", shop(users=5), simulated=True)
    found = karat.evaluate_online(log, "CTR")
    assert found.simulated
    assert found.health[0].startswith("users were simulated")


@pytest.mark.deep  # what it reads is in tests/contracts, and two ways of it here
def test_duckdb_says_the_same(log: EventLog) -> None:
    results = karat.evaluate_online(log, EVERY, by=["day,device"])
    other = karat.evaluate_online(log, EVERY, by=["day,device"], engine="duckdb")
    assert other.engine == "duckdb"
    assert other.health == results.health
    assert other.notes == results.notes
    for mine, theirs in zip(results.results, other.results, strict=True):
        assert (mine.metric, mine.slice, mine.n, mine.users, mine.state, mine.reason) == (
            theirs.metric, theirs.slice, theirs.n, theirs.users, theirs.state, theirs.reason
        )  # fmt: skip
        for end in ("value", "low", "high", "least", "most", "total"):
            here, there = getattr(mine, end), getattr(theirs, end)
            assert (here is None) == (there is None), mine
            assert here is None or there == pytest.approx(here, rel=1e-9, abs=1e-12), mine


@pytest.mark.parametrize("engine", deep_but(["polars"], ["polars", "duckdb"]))
def test_empty_and_missing_values_are_one_slice(tmp_path: Path, engine: str) -> None:
    devices = ["", "", None, "phone"]  # of four users
    rows = [
        {"user_id": f"u{number}", "time_us": FIRST * DAY + number, "kind": "search",
         "query_id": f"q{number}", "query": "pie", "status": "ok", "attribute_device": device}
        for number, device in enumerate(devices)
    ]  # fmt: skip
    log = keep_events(tmp_path / "events", pl.DataFrame(rows))
    found = karat.evaluate_online(log, "ErrorRate", by="device", engine=engine)
    assert {row.slice.get("device"): row.n for row in found.results} == {
        None: 4, "phone": 1, "": 3
    }  # fmt: skip


def test_a_day_within_the_log_without_events_is_told(tmp_path: Path) -> None:
    rows = [
        {"user_id": "u", "time_us": (FIRST + day) * DAY, "kind": "search", "query_id": f"q{day}",
         "query": "pie"}
        for day in (0, 2)
    ]  # fmt: skip
    log = keep_events(tmp_path / "events", pl.DataFrame(rows))
    with pytest.raises(UsageError, match=r"no events of 2026-11-02\n  fix: .*-01 to .*-03$"):
        karat.evaluate_online(log, "CTR", first="2026-11-02", last="2026-11-02")


PLACED = """
{"user_id":"u1","time":"2026-11-02T10:00:00Z","kind":"search","query_id":"s1","query":"pie","returned":20}
{"user_id":"u1","time":"2026-11-02T10:00:05Z","kind":"click","query_id":"s1","doc_id":"d","position":12}
{"user_id":"u1","time":"2026-11-02T10:01:00Z","kind":"search","query_id":"s2","query":"pie","returned":20}
{"user_id":"u1","time":"2026-11-02T10:01:05Z","kind":"click","query_id":"s2","doc_id":"d","position":3}
"""
MIXED = """
{"user_id":"u1","time":"2026-11-02T10:00:00Z","kind":"search","query_id":"s1","query":"pie","returned":20}
{"user_id":"u1","time":"2026-11-02T10:00:05Z","kind":"click","query_id":"s1","doc_id":"d"}
{"user_id":"u1","time":"2026-11-02T10:00:50Z","kind":"click","query_id":"s1","doc_id":"d","position":2}
"""
NOWHERE = """
{"user_id":"u1","time":"2026-11-02T10:00:00Z","kind":"search","query_id":"s1","query":"pie","returned":20}
{"user_id":"u1","time":"2026-11-02T10:00:05Z","kind":"click","query_id":"s1","doc_id":"d"}
{"user_id":"u2","time":"2026-11-02T10:00:05Z","kind":"click","query_id":"s9","doc_id":"d","position":1}
"""
POSITIONED = ["CTR", "CTR@5", "MRCR", "MRCR(clicked)", "PaulScore(F=0.5)"]


@pytest.mark.parametrize("engine", deep_but(["polars"], ["polars", "duckdb"]))
@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        # One search for "pie", whose d was clicked at 12 and then at 3: 1/3, and 0.5^2.
        (PLACED, [1.0, 1.0, 1 / 3, 1 / 3, 0.25]),
        # At no known place, and then at 2.
        (MIXED, [1.0, 1.0, 0.5, 0.5, 0.5]),
    ],
)
def test_a_document_clicked_again_counts_at_its_best_place(
    tmp_path: Path, engine: str, lines: str, wanted: list[float]
) -> None:
    found = karat.evaluate_online(stored_lines(tmp_path, lines), POSITIONED, engine=engine)
    assert [row.value for row in found.results] == pytest.approx(wanted)


def test_clicks_at_unknown_places_are_no_lack_of_results(tmp_path: Path) -> None:
    found = karat.evaluate_online(stored_lines(tmp_path, NOWHERE), POSITIONED)
    rows = {row.metric: row for row in found.results}
    assert rows["CTR"].value == 1.0
    for name in ("CTR@5", "MRCR", "PaulScore(F=0.5)"):
        said = "no searches with results seen whose clicks, if any, have a known position"
        assert (rows[name].state, rows[name].reason) == ("none", said)


def stored_lines(folder: Path, lines: str) -> EventLog:
    """Lines of JSON, imported."""
    file = folder / "log.jsonl"
    file.write_text(lines.lstrip())
    import_events(folder / "events", [file], now=2_000_000_000_000_000, position_base=1)
    return read_event_log(folder / "events")


@pytest.mark.parametrize("engine", deep_but(["polars"], ["polars", "duckdb"]))
@pytest.mark.parametrize(
    ("latencies", "median"),
    [
        # Microseconds: the sixth of eleven. Three digits are exact, however short.
        ([1_000] * 6 + [1_900] * 5, 1.0),
        *(
            pytest.param(*each, marks=pytest.mark.deep)
            for each in (([54_100, 54_800, 54_900], 54.8), ([7, 7, 9], 0.007))
        ),
        # 1,234 and 1,236 ms are one bin, of 1,230: their mean.
        ([1_234_000, 1_236_000, 9_000_000], 1_235.0),
    ],
)
def test_a_quantile_is_right_within_one_percent(
    latencies: list[int], median: float, engine: str, tmp_path: Path
) -> None:
    rows = [
        {"user_id": f"u{at}", "time_us": FIRST * DAY + at, "kind": "search", "query": "pie",
         "latency_us": latency}
        for at, latency in enumerate(latencies)
    ]  # fmt: skip
    log = keep_events(tmp_path / "events", pl.DataFrame(rows))
    [row] = karat.evaluate_online(log, "Latency(p50)", engine=engine).results
    assert row.value == pytest.approx(median, rel=1e-12)


CLICKED = """
{"user_id":"u1","time":"2026-11-02T10:00:00Z","kind":"search","query_id":"s1","query":"pie","returned":3}
{"user_id":"u1","time":"2026-11-02T10:00:05Z","kind":"click","query_id":"s1","doc_id":"a","position":1}
{"user_id":"u2","time":"2026-11-02T10:00:00Z","kind":"click","query_id":"gone","doc_id":"d","position":4}
{"user_id":"u2","time":"2026-11-02T10:00:00Z","kind":"search","query_id":"s2","query":"tart","returned":0}
{"user_id":"u2","time":"2026-11-02T10:00:01Z","kind":"click","query_id":"s2","doc_id":"e","position":5}
"""


def test_who_clicks_has_seen_results(tmp_path: Path) -> None:
    # u2's first click names no search, and is at the time of s2, though before it in the file:
    # s2 has two clicks, so two items, though nothing was returned.
    log = stored_lines(tmp_path, CLICKED)
    found = karat.evaluate_online(log, ["CTR", "ItemCTR", "ZeroResults"])
    rows = {row.metric: (row.value, row.n) for row in found.results}
    assert rows == {
        "CTR": (1.0, 2),
        "ItemCTR": (pytest.approx(3 / 5), 5),
        "ZeroResults": (0.5, 2),
    }
    assert any("1 of 5 events (20 %) name a search" in said for said in found.health)
