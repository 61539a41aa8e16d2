"""Worst queries: how searches fail, and what is known of a query's share of them."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.choosing import FEW

from karat.online import worst
from karat.online.metrics.entry import Ratio
from karat.online.worst import MANY, Prior
from karat.tables.online.worst_queries import FAILURES

SERVED: dict[str, Any] = {
    "completed": 1, "zero": 0, "seen": 1, "clicked": 1, "sat": 1, "carts": 0, "purchases": 0,
    "answered": 0, "reformulated": 0, "abandoned": 0, "abandoned_as": None,
}  # fmt: skip
LEFT = SERVED | {"clicked": 0, "sat": 0, "abandoned": 1, "abandoned_as": "terminal"}
TYPES = dict.fromkeys(SERVED, pl.Int64()) | {"abandoned_as": pl.String()}


def counts(*rows: dict[str, Any], clicks: bool = True) -> dict[str, tuple[int, int]]:
    """Numerator and denominator of each metric over facts of searches."""
    facts = nw.from_native(pl.DataFrame(rows, TYPES).lazy())
    found = {}
    for metric in worst.metrics(clicks=clicks):
        ratio = metric.compute
        assert isinstance(ratio, Ratio)
        assert ratio.denominator is not None
        over = ratio.denominator()
        both = facts.select(n=ratio.numerator(), d=over).collect().to_native()
        both = both.filter(pl.col("d") > 0)
        found[metric.name] = (int(both["n"].fill_null(0).sum()), int(both["d"].sum()))
    return found


@pytest.mark.parametrize(
    ("facts", "failure"),
    [
        (SERVED, None),
        (SERVED | {"sat": 0}, "Failed(clicks)"),
        (SERVED | {"sat": 0, "carts": 1}, None),
        (SERVED | {"sat": 0, "purchases": 1}, None),
        # A purchase may still come: the window is not closed, and nobody waits for it.
        (SERVED | {"sat": 0, "purchases": None}, "Failed(clicks)"),
        (SERVED | {"sat": 0, "reformulated": 1}, "Failed(reformulated)"),
        (LEFT, "Failed(no clicks)"),
        (LEFT | {"answered": 1, "abandoned": 0, "abandoned_as": None}, None),
        (
            LEFT | {"reformulated": 1, "abandoned_as": "reformulated"},
            "Failed(reformulated)",
        ),
        # Nothing seen and nothing known of it: nobody can say that it failed.
        (LEFT | {"seen": None, "abandoned": None, "abandoned_as": None}, None),
        (LEFT | {"zero": None, "seen": None, "abandoned": None, "abandoned_as": None}, None),
        (
            LEFT | {"zero": 1, "seen": 0, "abandoned_as": "zero", "reformulated": 1},
            "Failed(zero)",
        ),
    ],
)
def test_a_search_fails_in_one_way_at_most(facts: dict[str, Any], failure: str | None) -> None:
    found = counts(facts)
    ways = {name for name, (n, _) in found.items() if name.startswith("Failed(") and n}
    assert ways == ({failure} if failure else set())
    assert found["Failed"] == (len(ways), 1)


def test_errors_are_no_failed_searches() -> None:
    # Neither answered nor empty: ErrorRate has them, and no query's share does.
    error = LEFT | {"completed": 0, "zero": None, "seen": None, "abandoned": None}
    assert counts(error | {"abandoned_as": None, "reformulated": 1})["Failed"] == (0, 0)


def test_without_clicks_only_zero_results_and_reformulations_tell() -> None:
    rows = (LEFT, LEFT | {"zero": 1, "seen": 0}, LEFT | {"reformulated": 1})
    found = counts(*rows, clicks=False)
    assert found["Failed"] == (2, 3)
    assert found["Clicked"] == found["Satisfied"] == (0, 0)


@FEW
@given(
    st.lists(
        st.fixed_dictionaries({
            "completed": st.sampled_from([0, 1]), "zero": st.sampled_from([0, 1, None]),
            "seen": st.sampled_from([0, 1, None]), "clicked": st.sampled_from([0, 1]),
            "sat": st.sampled_from([0, 1]), "carts": st.sampled_from([0, 1]),
            "purchases": st.sampled_from([0, 1, None]), "answered": st.sampled_from([0, 1]),
            "reformulated": st.sampled_from([0, 1]), "abandoned": st.sampled_from([0, 1, None]),
            "abandoned_as": st.sampled_from(["zero", "reformulated", "terminal", None]),
        }),
        min_size=1, max_size=8,
    )
)  # fmt: skip
def test_the_ways_to_fail_add_up(rows: list[dict[str, Any]]) -> None:
    found = counts(*rows)
    assert (
        sum(n for name, (n, _) in found.items() if name.startswith("Failed("))
        == (found["Failed"][0])
    )
    assert all(0 <= n <= d <= len(rows) for n, d in found.values())


def moments(*rows: tuple[str, int, int, int], failure: str = "Failed(zero)") -> pl.DataFrame:
    """Moments of queries: key, failed, searches, users; all failed in one way."""
    made = []
    for key, failed, searches, users in rows:
        for metric in worst.metrics(clicks=True):
            n = failed if metric.name in ("Failed", failure) else 0
            made.append({
                "query": key, "metric": metric.name, "term": "value", "users": users,
                "numerator": float(n), "denominator": float(searches),
            })  # fmt: skip
    return pl.DataFrame(made)


def shares(prior: Prior, *rows: tuple[str, int, int, int]) -> list[float]:
    """The share of failed searches of queries, as ``moments`` takes them."""
    frame = worst.wide(moments(*rows), ["query"])
    return worst.ranked(frame, prior, "lost")["share"].to_list()


def test_the_prior_by_hand() -> None:
    # Two queries of 10 people each, one search each: shares .2 and .6. Mean 8/20 = .4.
    # Σ n (p - .4)² = 10·.04 + 10·.04 = .8; / (.4·.6) = 10/3. Less q - 1 = 1: 7/3.
    # Room: 20 - 200/20 - 1 = 9. Within: 7/27; strength = 27/7 - 1 = 20/7.
    found = worst.prior_of(np.array([2.0, 6]), np.array([10.0, 10]), np.array([10.0, 10]))
    assert found.mean == pytest.approx(0.4)
    assert found.strength == pytest.approx(20 / 7)
    # Drawn: (10·.6 + 20/7·.4) / (10 + 20/7) = (42 + 8) / 90.
    assert shares(found, ("a", 6, 10, 10)) == pytest.approx([50 / 90])


def test_queries_that_are_alike_are_drawn_whole() -> None:
    alike = worst.prior_of(np.array([2.0, 2, 2]), np.full(3, 10.0), np.full(3, 10.0))
    assert alike.strength >= MANY
    assert shares(alike, ("a", 10, 10, 10)) == pytest.approx([0.2], abs=1e-6)
    assert worst.interval(10, 10, 10, alike) is None
    none = worst.prior_of(np.zeros(3), np.full(3, 10.0), np.full(3, 10.0))
    assert none == Prior(0.0, MANY)


def test_the_prior_is_found_again() -> None:
    # 4,000 queries of 20 people, their shares from Beta(2, 6): mean .25, strength 8. The moment
    # estimate of 1 / 9 has a relative error of about √(2 / 4000) ≈ 2 % of (1 + …); 10 % is far.
    rng = np.random.default_rng(5)
    failed = rng.binomial(20, rng.beta(2, 6, 4000)).astype(float)
    found = worst.prior_of(failed, np.full(4000, 20.0), np.full(4000, 20.0))
    assert found.mean == pytest.approx(0.25, abs=0.01)
    assert found.strength == pytest.approx(8, rel=0.1)


def test_the_interval_is_of_a_beta_distribution() -> None:
    ends = worst.interval(6, 10, 10, Prior(0.4, 5))
    expected = stats.beta(6 + 2, 4 + 3)  # 10 people at .6, and 5 at .4
    assert ends == pytest.approx(expected.ppf([0.025, 0.975]).tolist(), abs=1e-9)


@pytest.mark.deep  # coverage
def test_intervals_hold_what_they_say() -> None:
    # Shares from the prior itself: of 2,000 intervals of 95 %, 1,900 ± 2.6·√(2000·.05·.95) ≈ 25.
    rng, prior = np.random.default_rng(6), Prior(0.25, 8)
    share = rng.beta(2, 6, 2000)
    failed = rng.binomial(30, share)
    held = 0
    for true, count in zip(share, failed, strict=True):
        low, high = worst.interval(float(count), 30, 30, prior) or (0.0, 0.0)
        held += low <= true <= high
    assert 1875 <= held <= 1925


def test_one_search_does_not_top_the_list() -> None:
    # All of one person's single search failed; "pump" fails at .5 of 400 by 300 people.
    frame = worst.wide(
        moments(("typo", 1, 1, 1), ("pump", 200, 400, 300), ("pipe", 20, 400, 300)), ["query"]
    )
    prior = worst.prior_from(frame)
    found = worst.ranked(frame, prior, "lost")
    assert found["query"].to_list() == ["pump", "pipe", "typo"]
    share = dict(zip(found["query"], found["share"], strict=True))
    assert share["typo"] < 1
    assert share["pump"] == pytest.approx(0.5, abs=0.01)


def test_one_person_who_asks_often_is_one_person() -> None:
    # 300 searches of one person say as much of the share as one search.
    both = shares(Prior(0.2, 4), ("often", 300, 300, 1), ("once", 1, 1, 1))
    assert both == pytest.approx([(1 + 0.8) / 5] * 2)


@FEW
@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(1, 30), st.integers(1, 30)),
        min_size=1, max_size=12,
    )
)  # fmt: skip
def test_shares_stay_between_their_own_and_all(rows: list[tuple[int, int, int]]) -> None:
    made = [
        (f"q{i}", min(failed, searches), searches, min(users, searches))
        for i, (failed, searches, users) in enumerate(rows)
    ]
    frame = worst.wide(moments(*made), ["query"])
    prior = worst.prior_from(frame)
    found = worst.ranked(frame, prior, "lost")
    for row in found.iter_rows(named=True):
        own = row["Failed"] / row["searches"]
        low, high = sorted((own, prior.mean))
        assert low - 1e-9 <= row["share"] <= high + 1e-9
        assert row["lost"] == pytest.approx(row["share"] * row["searches"])
    assert found["lost"].to_list() == sorted(found["lost"], reverse=True)


def test_a_row_says_what_chiefly_failed() -> None:
    frame = worst.wide(moments(("cms", 7, 10, 9), ("pump", 0, 10, 9)), ["query"])
    prior = Prior(0.35, 4)
    rows = worst.ranked(frame, prior, "lost").to_dicts()
    following = [("Pump", 5), ("CMS 2", 3)]
    found = worst.lost_query(rows[0], prior, [], "CMS", following)
    assert (found.reason, found.failed, found.searches, found.users) == ("zero results", 7, 10, 9)
    assert found.why == "7 of 10 had no results, 5 next as “Pump”"
    assert sum(found.by_failure.values()) == found.failed
    assert tuple(found.by_failure) == FAILURES
    assert found.low < found.share < found.high
    fine = worst.lost_query(rows[1], prior, [], "pump", [])
    assert (fine.reason, fine.failed, fine.why) == ("", 0, "none of its searches failed")


def test_groups_add_up() -> None:
    arms = {"a": "x", "b": "x", "c": None}
    frame = moments(("a", 3, 10, 5), ("b", 1, 10, 5), ("c", 2, 4, 2)).with_columns(
        arm=pl.col("query").replace_strict(arms, return_dtype=pl.String)
    )
    found = worst.groups(worst.wide(frame, ["arm", "query"]), "arm")
    assert [(g.slice, g.queries, g.searches, g.failed) for g in found] == [
        ({"arm": "x"}, 2, 20, 4),
        ({}, 1, 4, 2),
    ]
    assert found[1].share == 0.5
