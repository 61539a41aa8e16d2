"""Leaderboard: order, tie groups, and whether measures agree."""

from __future__ import annotations

import numpy as np
import pytest

from karat.measures import parse
from karat.measures.scores import Rules, Scores, score
from karat.stats.leaderboard import all_pairs, orders, standings
from karat.stats.weighing import Weighing
from karat.tables import Qrels, Run

QUERIES = [f"q{n:02}" for n in range(30)]
QRELS = Qrels.from_dict({query: {"good": 1} for query in QUERIES})
MEASURES = [parse("RR"), parse("P@1")]
RNG = np.random.default_rng(11)
PLACES = RNG.integers(0, 4, len(QUERIES))


def scored(name: str, places: np.ndarray) -> Scores:
    ranked = {
        query: {"good": -float(place)} | {f"x{i}": -i - 0.5 for i in range(int(place))}
        for query, place in zip(QUERIES, places, strict=True)
    }
    run = Run.from_dict(ranked).named(name)
    return score(run, QRELS, MEASURES, Rules())


def alike() -> Weighing:
    return Weighing(None, None, len(QUERIES))


def test_best_first_and_those_that_do_not_differ_share_a_letter() -> None:
    runs = [
        scored("far", PLACES + 9),
        scored("old", PLACES),
        scored("twin", np.roll(PLACES, 1)),  # the same values on other queries
    ]
    tested = all_pairs(runs, alike(), resamples=2000, seed=1)
    rows = [row for row in standings(runs, alike(), tested) if row.measure == "RR"]
    assert [row.run for row in rows] == ["old", "twin", "far"]
    assert [row.groups for row in rows] == ["a", "a", "b"]
    assert rows[0].value == pytest.approx((1 / (PLACES + 1)).mean())
    assert {row.groups for row in standings(runs, alike())} == {None}
    assert {row.n for row in rows} == {30}


def test_a_query_that_failed_anywhere_counts_nowhere() -> None:
    whole = scored("old", PLACES)
    part = scored("new", PLACES)
    for values in part.values.values():
        values[0] = np.nan
    tested = all_pairs([whole, part], alike(), resamples=200, seed=1)
    rows = standings([whole, part], alike(), tested)
    assert {row.n for row in rows} == {29}
    # Without the failed query both have the same values, so nothing tells them apart.
    assert rows[0].value == rows[1].value == pytest.approx((1 / (PLACES[1:] + 1)).mean())
    assert {row.groups for row in rows} == {"a"}


def test_orders_need_three_runs() -> None:
    runs = [scored(name, PLACES + more) for name, more in (("a", 0), ("b", 1), ("c", 3))]
    assert orders(standings(runs[:2], alike()), MEASURES) == []
    [row] = orders(standings(runs, alike()), MEASURES)
    # RR orders a, b, c; P@1 ties b and c at 0: one pair tied of three, tau-b = 2 / sqrt(3 * 2).
    assert (row.left, row.right, row.runs) == ("RR", "P@1", 3)
    assert row.kendall == pytest.approx(2 / 6**0.5)
