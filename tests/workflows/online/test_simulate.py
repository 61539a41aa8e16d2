"""Simulated logs as files: the same bytes again, read as what they are, and changes as asked."""

from __future__ import annotations

import json
from datetime import date
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.choosing import deep_but
from tests.event_stores import keep_events

from karat.engines.frames.opening import open_engine
from karat.errors import UsageError
from karat.online.simulate.behaviours import Habits
from karat.online.simulate.people import simulate
from karat.online.simulate.population import populate
from karat.online.simulate.shelf import stock
from karat.online.simulate.wording import WORDINGS
from karat.store.events.log import read_event_log
from karat.tables import Qrels, Queries, Run
from karat.workflows.online.evaluate import evaluate
from karat.workflows.online.import_events import import_events
from karat.workflows.online.simulate import Planted, read_planted, simulate_log, write_truth

LAST = date(2026, 11, 22)  # a Sunday
NOW = 1_795_996_800_000_000  # 2026-11-30; what lies behind it is no event, but a wrong clock
QUERIES = pl.DataFrame(
    {
        "query_id": ["q1", "q2", "q3", "q4"],
        "text": ["copy a file", "read lines of text", "sort list by key", "timeout"],
        "kind": ["task", "task", "task", "word"],
    }
)
QRELS = {f"q{n}": {f"d{n}-0": 3, f"d{n}-3": 2, f"d{n}-7": 1} for n in range(1, 5)}
NEAR = {f"q{n}": {f"d{n}-{i}": 100.0 - i for i in range(20)} for n in range(1, 5)}
FAR = {f"q{n}": {f"d{n}-{i}": 100.0 - (9 - i) for i in range(10)} for n in range(1, 5)}
RUNS = {"near": NEAR, "far": FAR}
SMALL = {"last_day": LAST, "queries": QUERIES, "days": 7, "users": 60, "sessions": 40}


@pytest.mark.parametrize(
    "name", deep_but(["log.ndjson.gz"], ["log.ndjson", "log.ndjson.gz", "log.parquet"])
)
def test_the_same_seed_gives_the_same_bytes(tmp_path: Path, name: str) -> None:
    def log(folder: str, seed: int) -> bytes:
        (tmp_path / folder).mkdir()
        target = tmp_path / folder / name
        _, told = simulate_log(QRELS, RUNS, target, seed=seed, **SMALL)
        assert told.file == str(target)
        return target.read_bytes()

    first = log("a", 1)
    assert first == log("b", 1)
    assert first != log("c", 2)


@pytest.mark.parametrize("name", deep_but(["log.parquet"], ["log.ndjson.gz", "log.parquet"]))
def test_an_import_finds_each_event_and_that_it_is_simulated(tmp_path: Path, name: str) -> None:
    made, told = simulate_log(
        QRELS,
        RUNS,
        tmp_path / name,
        attributes=["kind"],
        habits=Habits(carts=0.3, answers=0.4, heartbeats=True),
        **SMALL,
    )
    done = import_events(tmp_path / "events", [tmp_path / name], now=NOW)
    assert done.kept == told.events == made.events.height
    assert not done.dropped
    assert not done.unknown
    log = read_event_log(tmp_path / "events")
    assert log.simulated
    assert log.arms == ("far", "near")
    assert {"kind", "device", "simulated"} <= set(log.attributes)
    people = made.events.filter(~pl.col("bot"))
    assert dict(log.kinds) == dict(people["kind"].value_counts().iter_rows())
    assert log.bots == told.robots > 0
    assert (log.first_us, log.last_us) == (
        made.events["time_us"].min(),
        made.events["time_us"].max(),
    )


def test_metrics_find_the_truth_again(tmp_path: Path) -> None:
    made, told = simulate_log(
        QRELS,
        RUNS,
        tmp_path / "log.parquet",
        last_day=LAST,
        queries=QUERIES,
        days=14,
        users=400,
        sessions=150,
        instant=0.3,
        habits=Habits(impressions="none", errors=(0.02,)),
    )
    import_events(tmp_path / "events", [tmp_path / "log.parquet"], now=NOW)
    with open_engine() as engine:
        log = read_event_log(tmp_path / "events")
        results = evaluate(log, engine, ["SearchesPerSession", "CTR", "ZeroResults", "SAT"])
    found = {row.metric: row for row in results.results}
    truth = made.truth.requests
    # Sessions are 45 minutes apart at least, and within them nobody idles for 30.
    assert found["SearchesPerSession"].n == told.sessions == made.truth.sessions
    # An intent is a run of requests with the same words in a session, keystrokes left out.
    sorted_ = truth.sort("session", "time_us").with_columns(
        new=(pl.struct("session", "query", "wording").rle_id())
    )
    # The first request that was answered speaks for it, and where none was, the first.
    answered = pl.col("shown").filter(pl.col("status") == "ok").first()
    intents = sorted_.group_by("new", maintain_order=True).agg(
        clicks=pl.col("clicks").sum(),
        satisfied=pl.col("satisfied").any(),
        shown=pl.coalesce(answered, pl.col("shown").first()),
    )
    seen = intents.filter(pl.col("shown") > 0)
    assert found["SearchesPerSession"].total == intents.height
    assert told.searches == intents.height
    assert found["CTR"].n == seen.height
    assert found["CTR"].value == pytest.approx((seen["clicks"] > 0).mean(), abs=0.002)
    # What a last click was worth nobody logged: the truth lies between the bounds.
    low, high = found["SAT"].least, found["SAT"].most
    share = seen["satisfied"].mean()
    assert low is not None
    assert high is not None
    assert low <= share <= high
    assert told.satisfied == pytest.approx(share)
    assert told.zero == pytest.approx(found["ZeroResults"].value, abs=0.002)


@pytest.mark.deep  # thousands of searches; by hand: tests/online
def test_what_is_typed_instead_is_classed_as_what_it_is(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    shelf = stock(
        Qrels.from_dict(QRELS),
        [Run.from_dict(NEAR, name="near")],
        rng,
        queries=Queries(QUERIES.filter(pl.col("kind") == "task")),
        weight={"q1": 1.0, "q2": 1.0, "q3": 1.0},
    )
    # Every page says when it is left, so that nothing but time and words decides.
    people = populate(500, 1, rng, hides=1.0, instant=0.0)
    made = simulate(
        shelf,
        rng,
        first_day=20_752,
        days=14,
        people=people,
        sessions=150,
        habits=Habits(tasks=1.0, impressions="none", robots=0.0),
    )
    log = keep_events(tmp_path / "events", made.events, simulated=True)
    with open_engine() as engine:
        found = evaluate(
            log,
            engine,
            [f"Reformulation({kind})" for kind in ("add", "drop", "respell", "reorder")],
        )
    totals = {row.metric: row.total for row in found.results}
    # What each step is, by the words alone: each request has other words than the one before, or
    # the same. Slips of the finger are told by the wording, as the simulator makes them.
    wanted = dict.fromkeys(totals, 0)
    steps = made.truth.requests.sort("session", "time_us").group_by("session", maintain_order=True)
    for _, rows in steps:
        typed = list(rows.select("query", "wording").iter_rows())
        for (query, before), (_, after) in pairwise(typed):
            one, two = (
                set(shelf.texts[query * len(WORDINGS) + WORDINGS.index(each)].split())
                for each in (before, after)
            )
            if {before, after} == {"own", "respell"}:
                # Two letters change places, two edits: alike by 1 - 2/n, so .6 from 5 letters on.
                wanted["Reformulation(respell)"] += len(max(one - two, key=len)) >= 5
            elif before != after and one == two:
                wanted["Reformulation(reorder)"] += 1
            elif one < two:
                wanted["Reformulation(add)"] += 1
            elif one > two:
                wanted["Reformulation(drop)"] += 1
    assert min(wanted.values()) > 30
    assert totals == wanted


def test_a_change_hits_what_it_names_from_its_day_on(tmp_path: Path) -> None:
    planted = [read_planted("kind=word@2026-11-21")]
    made, _ = simulate_log(QRELS, RUNS, None, planted=planted, **SMALL)
    own = made.truth.requests.filter(pl.col("wording") == "own", ~pl.col("filtered"))
    own = own.filter(pl.col("status") == "ok").with_columns(
        day=pl.from_epoch("time_us", "us").dt.date()
    )
    hit = (pl.col("query") == 3) & (pl.col("day") >= date(2026, 11, 21))
    assert (own.filter(hit)["shown"] == 0).all()
    assert own.filter(hit).height > 3
    assert (own.filter(~hit)["shown"] > 0).all()
    assert read_planted("kind=word@2026-11-21", "worse") == Planted(
        "kind", "word", date(2026, 11, 21), "worse"
    )


def test_the_truth_is_written_and_says_what_it_is(tmp_path: Path) -> None:
    _, told = simulate_log(QRELS, RUNS, None, behaviour="cascade", **SMALL)
    write_truth(told, tmp_path / "truth.json")
    held = json.loads((tmp_path / "truth.json").read_text(encoding="utf-8"))
    assert held["simulated"] is True
    assert (held["first"], held["last"]) == ("2026-11-16", "2026-11-22")
    assert held["behaviour"] == "cascade"
    assert len(held["places"]) == 10
    assert 0 < held["satisfied"] < 1


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"days": 0}, "--days must be ≥ 1, got 0"),
        ({"users": 0}, "--users must be ≥ 1, got 0"),
        ({"sessions": float("nan")}, "--sessions must be ≥ 0, got nan"),
        ({"seed": -1}, "--seed must be ≥ 0, got -1"),
        ({"sessions": 1e8}, "would not fit into memory"),
        ({"behaviour": "cascde"}, "cascade"),
        ({"habits": Habits(errors=(0.1, 0.2, 0.3))}, "--errors has 3 values for 2"),
        ({"habits": Habits(latency_ms=(0.0,))}, "--latency must be above 0"),
        ({"habits": Habits(carts=1.5)}, "--carts must be a share"),
        ({"instant": -0.1}, "--instant must be a share"),
        ({"attributes": ["kin"]}, "no attribute 'kin'"),
        ({"planted": [Planted("kind", "tsk", LAST)]}, "no query has kind 'tsk'"),
        ({"planted": [Planted("kind", "task", date(2026, 11, 1))]}, "is not in the log"),
    ],
)
def test_what_cannot_be_simulated_is_said(settings: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        simulate_log(QRELS, RUNS, None, **{**SMALL, **settings})


@pytest.mark.parametrize("said", ["kind", "kind=task", "kind=task@soon", "=task@2026-11-21", ""])
def test_a_change_that_is_typed_otherwise_is_refused(said: str) -> None:
    with pytest.raises(UsageError, match="expected ATTRIBUTE=VALUE@DAY"):
        read_planted(said)


def test_arms_have_names_of_their_own() -> None:
    twice = [Run.from_dict(NEAR, name="one"), Run.from_dict(FAR, name="one")]
    with pytest.raises(UsageError, match="arms need different names"):
        simulate_log(QRELS, twice, None, **SMALL)


@pytest.mark.parametrize("name", ["x.csv", "X.TSV", "x.csv.gz", "x.parquet.gz", "x.xlsx"])
def test_a_log_is_not_called_a_table(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"-o x\.ndjson"):
        simulate_log({}, [], tmp_path / name, last_day=date(2026, 11, 20))
    assert not list(tmp_path.iterdir())
