"""The log holds what was drawn: sessions, dwell, arms, changes; and it says it is simulated."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from karat.online.rules import DAY, MINUTE, SECOND
from karat.online.simulate.behaviours import BEHAVIOURS, Break, Habits, PositionBased
from karat.online.simulate.people import Simulated, simulate
from karat.online.simulate.population import populate
from karat.online.simulate.shelf import Shelf
from karat.tables.online.events import ATTRIBUTE, KINDS
from karat.tables.schema import EVENTS

FIRST_DAY = 20_752  # Monday, 2026-10-26
PEOPLE = pl.col("bot").not_()


def of(log: Simulated, kind: str) -> pl.DataFrame:
    """The events of a kind, robots' left out."""
    return log.events.filter(pl.col("kind") == kind, PEOPLE)


def requests(log: Simulated) -> pl.DataFrame:
    """The searches, keystrokes left out."""
    return of(log, "search").filter(~pl.col("query_id").str.contains(r"-q\d+-"))


def test_every_event_is_in_form_and_says_it_is_simulated(month: Simulated) -> None:
    events = month.events
    types = {column.name: column.dtype for column in EVENTS}
    for name in events.columns:
        if not name.startswith(ATTRIBUTE):
            assert events[name].dtype == types[name], name
    assert (events["attribute_simulated"] == "true").all()
    assert set(events["kind"]) == set(KINDS) - {"other"}
    assert events["time_us"].is_sorted()
    assert events["time_us"].min() >= FIRST_DAY * DAY
    assert events["time_us"].max() < (FIRST_DAY + 28) * DAY
    assert events["user_id"].null_count() == 0
    searches = events.filter(pl.col("kind") == "search")
    assert searches["query_id"].is_unique().all()
    # Each event belongs to a search of the same user, and comes behind it.
    others = events.filter(pl.col("kind") != "search")
    joined = others.join(
        searches.select("query_id", "user_id", "arm", asked="time_us"), on="query_id", how="left"
    )
    assert (joined["user_id"] == joined["user_id_right"]).all()
    assert (joined["arm"] == joined["arm_right"]).all()
    assert (joined["time_us"] >= joined["asked"]).all()


def test_the_same_seed_gives_the_same_events(shelf: Shelf) -> None:
    def log(seed: int) -> pl.DataFrame:
        rng = np.random.default_rng(seed)
        return simulate(shelf, rng, first_day=FIRST_DAY, days=3, people=50, sessions=60).events

    assert log(1).equals(log(1))
    assert not log(1).equals(log(2))


def test_the_log_and_the_truth_are_of_the_same_requests(month: Simulated) -> None:
    found, truth = requests(month), month.truth.requests
    assert found.height == truth.height
    both = found.join(truth, on=["user_id", "time_us", "arm", "page"], how="inner")
    assert both.height == truth.height
    answered = both.filter(pl.col("status") == "ok")
    assert (answered["returned"] == answered["shown"]).all()
    assert (answered["hits"].list.len() == answered["shown"]).all()
    assert of(month, "click").height == truth["clicks"].sum()
    failed = both.filter(pl.col("status") != "ok")
    assert failed["returned"].null_count() == failed.height > 0
    assert failed["clicks"].sum() == 0


def test_click_rates_over_attraction_recover_the_examination(shelf: Shelf) -> None:
    # Position-based: clicks at a place / results there = examination × mean attraction, so that
    # quotient over the attraction of what was shown there is place^-0.8.
    log = simulate(
        shelf, np.random.default_rng(23), first_day=FIRST_DAY, days=7, sessions=1_500,
        behaviour=PositionBased(decay=0.8),
    )  # fmt: skip
    at = (pl.col("position") - 1) % 10 + 1
    clicks = dict(of(log, "click").group_by(at).len().iter_rows())
    shown = dict(of(log, "impression").group_by(at).len().iter_rows())
    for place in range(1, 11):
        rate = clicks[place] / shown[place]
        attraction = log.truth.places["attraction"][place - 1]
        error = np.sqrt(rate * (1 - rate) / shown[place]) / attraction
        assert abs(rate / attraction - place**-0.8) < 4.5 * error


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_click_rates_are_those_that_the_behaviour_expects(shelf: Shelf, name: str) -> None:
    rng = np.random.default_rng(17)
    log = simulate(
        shelf,
        rng,
        first_day=FIRST_DAY,
        days=7,
        sessions=1_500,
        behaviour=BEHAVIOURS[name],
        habits=Habits(impressions="none"),
    )
    for row in log.truth.places.iter_rows(named=True):
        error = np.sqrt(row["expected"] * (1 - row["expected"]) / row["shown"])
        assert abs(row["clicked"] - row["expected"]) < 4.5 * error, row


def test_the_better_arm_satisfies_more(month: Simulated) -> None:
    own = month.truth.requests.filter(pl.col("wording") == "own", pl.col("page") == 1)
    share = dict(own.group_by("arm").agg(pl.col("satisfied").mean()).iter_rows())
    assert share["near"] > share["far"] + 0.1
    assert month.events.group_by("user_id").agg(pl.col("arm").n_unique())["arm"].max() == 1
    latency = dict(requests(month).group_by("arm").agg(pl.col("latency_us").median()).iter_rows())
    assert 45_000 < latency["near"] < 55_000  # medians of 50 and 200 ms
    assert 180_000 < latency["far"] < 220_000
    failed = requests(month).group_by("arm").agg((pl.col("status") == "error").mean())
    errors = dict(failed.iter_rows())
    assert abs(errors["near"] - 0.02) < 0.01
    assert abs(errors["far"] - 0.08) < 0.02


def test_thirty_idle_minutes_tell_the_sessions_apart(month: Simulated) -> None:
    events = month.events.filter(PEOPLE, pl.col("kind") != "impression")
    gaps = events.sort("user_id", "time_us").with_columns(
        gap=pl.col("time_us").diff().over("user_id")
    )
    new = gaps["gap"].is_null() | (gaps["gap"] > 30 * MINUTE)
    assert new.sum() == month.truth.sessions == events["session_id"].n_unique()


def test_what_satisfied_was_read_for_thirty_seconds_and_nothing_else(month: Simulated) -> None:
    # Every page says when it was left: its dwell is the time from click to hide.
    clicks = of(month, "click").select("query_id", "doc_id", "position", clicked="time_us")
    hides = of(month, "hide").select("query_id", "doc_id", "position", left="time_us")
    both = clicks.join(hides, on=["query_id", "doc_id", "position"])
    assert both.height == clicks.height
    long = both.filter(pl.col("left") - pl.col("clicked") >= 30 * SECOND)
    assert long["query_id"].n_unique() == month.truth.requests["satisfied"].sum()
    carts = of(month, "cart").join(both, on=["query_id", "doc_id", "position"])
    assert carts.height == of(month, "cart").height > 100
    assert (carts["time_us"] > carts["left"]).all()
    assert of(month, "purchase")["value"].min() > 0


def test_keystrokes_lead_to_the_query(month: Simulated) -> None:
    searches = of(month, "search").with_columns(
        whole=pl.col("query_id").str.replace(r"-\d+$", "", literal=False)
    )
    keys = searches.filter(pl.col("query_id").str.contains(r"-q\d+-\d+$"))
    full = searches.filter(~pl.col("query_id").str.contains(r"-q\d+-\d+$"))
    both = keys.join(
        full.select(whole="query_id", typed="query", at="time_us"), on="whole", how="left"
    )
    assert keys.height > 500
    begins = [typed.startswith(part) for part, typed in both.select("query", "typed").iter_rows()]
    assert all(begins)
    assert (both["at"] > both["time_us"]).all()
    assert (both["at"] - both["time_us"]).max() < 3 * SECOND


def test_robots_search_and_do_nothing_else(month: Simulated) -> None:
    bots = month.events.filter(pl.col("bot"))
    assert set(bots["kind"]) == {"search"}
    share = bots.height / (bots.height + month.truth.requests.height)
    assert abs(share - 0.02) < 0.005
    assert not set(bots["user_id"]) & set(month.truth.requests["user_id"])


def test_a_planted_change_begins_on_its_day(shelf: Shelf) -> None:
    task = np.array([True, True, False, False, False])
    broken = Break(task, day=10, last=11)
    rng = np.random.default_rng(5)
    log = simulate(
        shelf, rng, first_day=FIRST_DAY, days=14, sessions=300, breaks=[broken],
        habits=Habits(errors=(0.0,), timeouts=(0.0,)),
    )  # fmt: skip
    truth = log.truth.requests.filter(pl.col("wording") == "own", ~pl.col("filtered"))
    truth = truth.with_columns(day=pl.col("time_us") // DAY - FIRST_DAY)
    hit = truth.filter(pl.col("query") < 2)
    assert (hit.filter(pl.col("day").is_in([10, 11]))["shown"] == 0).mean() > 0.98
    # A session planned for the last good day may begin late; else nothing is broken before.
    assert (hit.filter(pl.col("day") < 10)["shown"] == 0).sum() == 0
    assert (hit.filter(pl.col("day") > 12)["shown"] == 0).sum() == 0
    assert (truth.filter(pl.col("query") == 2)["shown"] > 0).all()


def test_worse_pages_satisfy_less(shelf: Shelf) -> None:
    rng = np.random.default_rng(6)
    worse = Break(np.ones(5, bool), day=7, effect="worse")
    people = populate(400, 2, rng)
    people.arm[:] = 0
    log = simulate(
        shelf, rng, first_day=FIRST_DAY, days=14, people=people, sessions=300, breaks=[worse]
    )
    own = log.truth.requests.filter(pl.col("wording") == "own", pl.col("page") == 1)
    late = own["time_us"] // DAY - FIRST_DAY >= 7
    before, after = own.filter(~late)["satisfied"].mean(), own.filter(late)["satisfied"].mean()
    assert before > after + 0.1


def test_impressions_are_as_many_as_asked_for(shelf: Shelf) -> None:
    counts = {}
    for wanted in ("page", "seen", "none"):
        rng = np.random.default_rng(3)
        log = simulate(
            shelf, rng, first_day=FIRST_DAY, days=2, sessions=100,
            habits=Habits(impressions=wanted),
        )  # fmt: skip
        counts[wanted] = of(log, "impression").height
        if wanted == "page":
            assert counts[wanted] == log.truth.requests["shown"].sum()
    assert counts["none"] == 0 < counts["seen"] < counts["page"]
