"""Reciprocal rank fusion: the formula, its laws, and what becomes of queries without documents."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.choosing import FEW

from karat.errors import UsageError
from karat.fusion import reciprocal_rank
from karat.tables import Run

Ranking = list[str]

rankings = st.lists(st.sampled_from("abcdefgh"), unique=True).map(list)
systems = st.lists(rankings, min_size=1, max_size=5)
weighted = st.lists(st.tuples(rankings, st.floats(0.1, 10)), min_size=1, max_size=5)


def as_run(ranking: Ranking, query_id: str = "q") -> Run:
    """A run of one query, from its documents best first."""
    return Run.from_dict({query_id: {doc: -float(at) for at, doc in enumerate(ranking)}})


def fused(*ranked: Ranking, **options: Any) -> dict[str, float]:
    """The fusion of rankings of one query: document → score, best first."""
    return reciprocal_rank([as_run(each) for each in ranked], **options).to_dict()["q"]


def test_the_sum_of_reciprocal_ranks() -> None:
    # a: 1/61 + 1/62 = 0.0163934 + 0.0161290; b: 1/62 + 1/61, the same; c: 1/63 = 0.0158730.
    # Ties go by document id, descending. For these runs ranx's rrf adds the same numbers: there
    # too rank i (from 0) gives 1 / (k + i + 1), k is 60, and the runs are added (CombSUM).
    found = fused(["a", "b"], ["b", "a", "c"])
    assert list(found) == ["b", "a", "c"]
    assert found == {"b": 1 / 61 + 1 / 62, "a": 1 / 61 + 1 / 62, "c": 1 / 63}
    assert found["a"] == pytest.approx(0.0325224749)


def test_other_k() -> None:
    # 1/1 + 1/3 = 1.333… and 1/2 + 1/1 = 1.5
    assert fused(["a", "b"], ["b", "c", "a"], k=0) == {"b": 1.5, "a": 1 + 1 / 3, "c": 0.5}


def test_scores_do_not_count_and_ties_have_different_ranks() -> None:
    # b before a: equal scores go by document id, descending. So b gets 1/61 and a 1/62.
    run = Run.from_dict({"q": {"a": 1e300, "b": 1e300, "c": -math.inf}})
    assert reciprocal_rank([run]).to_dict() == {"q": {"b": 1 / 61, "a": 1 / 62, "c": 1 / 63}}


def test_weights_multiply() -> None:
    # a: 3/61, b: 1/61. Without weights they tie, and b comes first.
    assert fused(["a"], ["b"], weights=[3, 1]) == {"a": 3 / 61, "b": 1 / 61}
    assert list(fused(["a"], ["b"])) == ["b", "a"]


def test_depth_cuts_what_is_read_and_what_is_kept() -> None:
    # Read to 2, c is lacking in both; a has 1/61 + 1/62, b 1/62 and d 1/61. The best 2 are kept.
    assert list(fused(["a", "b", "c"], ["d", "a", "c"], depth=2)) == ["a", "d"]
    # Read whole, c has 2/63 = 0.0317 and comes before d with 0.0164.
    assert list(fused(["a", "b", "c"], ["d", "a", "c"])) == ["a", "c", "d", "b"]


def test_each_query_is_fused_by_itself() -> None:
    one = Run.from_dict({"q1": {"a": 2, "b": 1}, "q2": {"a": 1}}, "one")
    two = Run.from_dict({"q3": {"c": 1}, "q1": {"b": 9}}, "two")
    found = reciprocal_rank([one, two], name="both")
    assert found.to_dict() == {
        "q1": {"b": 1 / 61 + 1 / 62, "a": 1 / 61},
        "q2": {"a": 1 / 61},
        "q3": {"c": 1 / 61},
    }
    assert found.name == "both"
    assert found.about == {"fusion": "reciprocal rank, k=60", "fused": "one, two"}


STATES: list[tuple[Any, Any, str]] = [
    ({"a": 1}, {}, "ok"),
    ({"a": 1}, None, "ok"),
    ({}, {}, "empty"),
    ({}, None, "empty"),  # somebody answered, with nothing
    (None, None, "failed"),
]


@pytest.mark.parametrize(("one", "two", "state"), STATES)
def test_the_state_of_a_query(one: Any, two: Any, state: str) -> None:
    runs = [Run.from_dict({"q": one}), Run.from_dict({"q": two})]
    for pair in (runs, runs[::-1]):
        found = reciprocal_rank(pair).answers
        assert found.select("query_id", "state").rows() == [("q", state)]
        assert found["returned"].to_list() == [int(state == "ok")]


@pytest.mark.parametrize(("given", "state"), [({}, "empty"), (None, "failed")])
def test_a_run_that_lacks_the_query_says_nothing_of_it(given: Any, state: str) -> None:
    runs = [Run.from_dict({"q": given}), Run.from_dict({"other": {"a": 1}})]
    found = dict(reciprocal_rank(runs).answers.select("query_id", "state").iter_rows())
    assert found == {"q": state, "other": "ok"}


def test_a_failed_query_keeps_its_error() -> None:
    answers = pl.DataFrame({"query_id": ["q"], "state": ["failed"], "error": ["timed out"]})
    failed = Run.from_batches("run", [], answers=answers)
    assert reciprocal_rank([failed, failed]).answers["error"].to_list() == ["timed out"]
    empty = Run.from_dict({"q": {}})
    assert reciprocal_rank([failed, empty]).answers["error"].to_list() == [None]


def test_runs_without_anything() -> None:
    found = reciprocal_rank([Run.from_dict({}), Run.from_dict({})])
    assert len(found) == found.answers.height == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"k": -1}, "k=-1 is not a number of 0 or more"),
        ({"k": math.nan}, "k=nan"),
        ({"k": "60"}, "k='60'"),
        ({"k": True}, "k=True"),
        ({"depth": 0}, "a depth of 0 is not a whole number from 1"),
        ({"depth": 1.5}, "a depth of 1.5 is not a whole number from 1"),
        ({"weights": [1]}, "there is 1 weight for 2 runs"),
        ({"weights": "ab"}, "weights is 'ab', not a list of numbers"),
        ({"weights": ["a", "b"]}, "the weight 'a' is not a number above 0"),
        ({"weights": [1, 0]}, "the weight 0 is not a number above 0"),
        ({"weights": [math.inf, 1]}, "the weight inf"),
    ],
)
def test_what_is_out_of_range_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        fused(["a"], ["b"], **options)


def test_no_runs_are_refused() -> None:
    with pytest.raises(UsageError, match="no runs to fuse"):
        reciprocal_rank([])


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        (as_run(["a"]), "what to fuse is one run"),
        ({"bm25": as_run(["a"])}, "what to fuse is of type dict"),
        (None, "what to fuse is of type NoneType"),
        ([as_run(["a"]), {"q": {"a": 1}}], "one of the runs is of type dict"),
        ([None], "one of the runs is of type NoneType"),
    ],
)
def test_what_is_no_list_of_runs_is_refused(runs: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        reciprocal_rank(runs)


def test_runs_and_numbers_of_any_kind_will_do() -> None:
    wanted = fused(["a", "b"], ["b"], k=60, depth=2, weights=[2, 1])
    runs = (as_run(each) for each in (["a", "b"], ["b"]))
    found = reciprocal_rank(
        runs,
        k=np.float32(60),  # type: ignore[arg-type]
        depth=np.int64(2),  # type: ignore[arg-type]
        weights=np.array([2, 1]),
    )
    assert found.to_dict()["q"] == wanted


@FEW
@given(weighted, st.sampled_from([0, 1, 60, 1000.5]))
def test_law_it_is_the_sum(given: list[tuple[Ranking, float]], k: float) -> None:
    shares: dict[str, list[float]] = {}
    for ranking, weight in given:
        for rank, doc in enumerate(ranking, start=1):
            shares.setdefault(doc, []).append(weight / (k + rank))
    weights = [weight for _, weight in given]
    found = fused(*(ranking for ranking, _ in given), k=k, weights=weights)
    # Within a bit or two of the exactly rounded sum: the numbers are added one by one.
    assert found == pytest.approx({doc: math.fsum(each) for doc, each in shares.items()}, rel=1e-15)
    order = sorted(found, key=lambda doc: (found[doc], doc.encode()), reverse=True)
    assert list(found) == order


@FEW
@given(weighted, st.randoms(use_true_random=False))
def test_law_the_order_of_the_runs_changes_no_bit(
    given: list[tuple[Ranking, float]], random: Any
) -> None:
    shuffled = random.sample(given, len(given))
    one, other = (
        fused(*(ranking for ranking, _ in each), weights=[weight for _, weight in each])
        for each in (given, shuffled)
    )
    assert list(one.items()) == list(other.items())


@FEW
@given(rankings, st.integers(1, 5))
def test_law_a_run_fused_with_itself_keeps_its_order(ranking: Ranking, times: int) -> None:
    assert list(fused(*[ranking] * times)) == ranking


@FEW
@given(systems, st.data())
def test_law_a_better_rank_never_lowers_a_score(
    systems: list[Ranking], data: st.DataObject
) -> None:
    which = data.draw(st.integers(0, len(systems) - 1))
    doc = data.draw(st.sampled_from("abcdefgh"))
    before = fused(*systems).get(doc, 0.0)
    ranking = systems[which]
    at = ranking.index(doc) if doc in ranking else len(ranking)
    others = [each for each in ranking if each != doc]
    to = data.draw(st.integers(0, at))
    raised = [*others[:to], doc, *others[to:]]
    after = fused(*systems[:which], raised, *systems[which + 1 :])[doc]
    assert after > before if raised != ranking else after == before


@FEW
@given(systems, st.integers(1, 9))
def test_law_depth_is_the_fusion_of_the_heads(systems: list[Ranking], depth: int) -> None:
    heads = fused(*(ranking[:depth] for ranking in systems))
    assert list(fused(*systems, depth=depth).items()) == list(heads.items())[:depth]
