"""Outcomes: a column of the user's own beside each measure, and how the two go together."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from karat.errors import UsageError
from karat.reports.offline.evaluation import to_csv
from karat.reports.writers.plain import to_json
from karat.tables import Results
from karat.workflows.offline.evaluate import evaluate

QUERIES = [f"q{n}" for n in range(6)]
QRELS = {query: {"good": 1} for query in QUERIES}
# The relevant document stands at rank n + 1: RR falls from 1 to 1/6.
RUN = {
    query: {"good": -float(n)} | {f"x{place}": -place - 0.5 for place in range(n)}
    for n, query in enumerate(QUERIES)
}
FELL = {query: 6.0 - n for n, query in enumerate(QUERIES)}


def evaluated(**more: Any) -> Results:
    return evaluate(QRELS, RUN, "RR", **more)


def test_an_outcome_that_falls_with_the_measure_goes_with_it() -> None:
    [row] = evaluated(outcomes={"stars": FELL}).outcomes
    assert (row.measure, row.outcome, row.n) == ("RR", "stars", 6)
    assert row.spearman == row.kendall == 1.0
    assert row.ci_low is None  # all pairs agree: no interval, and a note says why
    assert row.auc is None  # it is not yes and no


def test_yes_and_no_have_an_auc() -> None:
    # Yes for ranks 1, 2, 4: of 9 pairs of yes and no, yes has the higher RR in 8 (not 4 over 3).
    yes = {"q0", "q1", "q3"}
    answered = {query: "yes" if query in yes else "no" for query in QUERIES}
    frame = pl.DataFrame({"query_id": QUERIES, "answered": list(answered.values())})
    [row] = evaluated(queries=frame, outcomes="answered").outcomes
    assert row.auc == pytest.approx(8 / 9)
    [same] = evaluated(outcomes={"answered": {q: q in yes for q in QUERIES}}).outcomes
    assert same.auc == row.auc


def test_queries_without_an_outcome_are_left_out() -> None:
    some = {query: FELL[query] for query in QUERIES[:4]} | {"q4": None}
    assert evaluated(outcomes={"stars": some}).outcomes[0].n == 4


def test_outcomes_stand_beside_each_query() -> None:
    results = evaluated(outcomes={"stars": {"q0": 5.0}}, per_query=True)
    first, second = json.loads(to_json(results))["per_query"][:2]
    assert (first["outcomes"], second["outcomes"]) == ({"stars": 5.0}, {})
    assert "outcomes" not in json.loads(to_json(evaluated(per_query=True)))["per_query"][0]
    assert to_csv(results).splitlines()[:3] == [
        "run,measure,query_id,value,state,outcome_stars",
        "run,RR,q0,1.0,ok,5.0",
        "run,RR,q1,0.5,ok,",
    ]
    assert results.per_query_frame()["outcome_stars"].to_list() == [5.0] + [None] * 5


def test_what_is_lacking_has_a_reason() -> None:
    results = evaluated(outcomes={"stars": dict.fromkeys(QUERIES, 3)})
    assert results.outcomes[0].spearman is None
    assert "RR with stars: all outcomes are equal" in results.notes


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("stars", "the outcome 'stars' is a column of the queries, and no queries were given"),
        ({"stars": {"q0": "maybe"}}, "of query q0 is 'maybe': neither a number nor yes or no"),
        ({"stars": {"q0": float("inf")}}, "neither a number nor yes or no"),
        ({"stars": {"Q0": 1}}, "'stars' has no value for any judged query"),
    ],
)
def test_mistakes_are_told(asked: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        evaluated(outcomes=asked)
