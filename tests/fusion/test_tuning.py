"""Tuned weights: a case by hand, that no query is fused with weights it chose, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.choosing import deep_but

from karat.errors import UsageError
from karat.fusion import Tuned, tuned, weighted_sum
from karat.fusion._tuning import grid
from karat.measures import parse
from karat.measures.scores import Rules, score
from karat.tables import Qrels, Run

RR = parse("RR")


def systems(count: int, seed: int = 7, queries: int = 20) -> tuple[list[Run], Qrels]:
    """Runs of random scores over six documents, a little better than chance, and judgments."""
    random = np.random.default_rng(seed)
    relevant = {f"q{q}": f"d{random.integers(6)}" for q in range(queries)}
    runs = [
        Run.from_dict(
            {
                query: {
                    f"d{d}": float(random.normal() + (f"d{d}" == good) * (1 + n)) for d in range(6)
                }
                for query, good in relevant.items()
            },
            f"run{n}",
        )
        for n in range(count)
    ]
    return runs, Qrels.from_dict({query: {good: 1} for query, good in relevant.items()})


def mean_of(run: Run, qrels: Qrels) -> float:
    """The mean of RR over the queries of the qrels."""
    values = score(run, qrels, [RR], Rules()).values[RR]
    return float(np.nanmean(values))


@pytest.mark.parametrize(("count", "points"), [(2, 11), (3, 21), (4, 35), (5, 35), (8, 120)])
def test_the_grid(count: int, points: int) -> None:
    # Whole numbers from 0 that add up to s, in n places: (s + n - 1 over n - 1) ways;
    # s = 10: 11, s = 5: 7 over 2 = 21, s = 4: 7 over 3 = 35, s = 3: 7 over 4, and 10 over 7 = 120.
    found = grid(count)
    assert found.shape == (points, count)
    assert np.allclose(found.sum(axis=1), 1)
    assert len(np.unique(found, axis=0)) == points


def test_a_run_that_is_right_gets_the_weight() -> None:
    # `good` puts the relevant a first, by as much as `bad` puts x first: a: w, x: 1 - w. At .5
    # they tie, and x comes first. So RR is 1 from w = .6 on, and .6 is the nearest to equal.
    ids = [f"q{q}" for q in range(6)]
    good = Run.from_dict({q: {"a": 1, "x": 0} for q in ids}, "good")
    bad = Run.from_dict({q: {"x": 1, "a": 0} for q in ids}, "bad")
    found = tuned([good, bad], Qrels.from_dict({q: {"a": 1} for q in ids}), RR, folds=3)
    assert (found.value, found.n, found.measure) == (1.0, 6, "RR")
    assert found.weights == (0.6, 0.4)
    assert [fold.weights for fold in found.folds] == [(0.6, 0.4)] * 3
    assert sorted(query for fold in found.folds for query in fold.query_ids) == ids


def test_no_query_chooses_its_own_weights() -> None:
    # `one` is right for q1 only, `two` for q2 only. Held out, each query gets the weights that are
    # best for the other, and is wrong. Chosen on both, one of them would be right.
    one = Run.from_dict({"q1": {"a": 1, "x": 0}, "q2": {"x": 1, "a": 0}}, "one")
    two = Run.from_dict({"q1": {"x": 1, "a": 0}, "q2": {"a": 1, "x": 0}}, "two")
    qrels = Qrels.from_dict({"q1": {"a": 1}, "q2": {"a": 1}})
    found = tuned([one, two], qrels, RR, folds=2)
    assert {fold.query_ids: fold.weights for fold in found.folds} == {
        ("q1",): (0.4, 0.6),
        ("q2",): (0.6, 0.4),
    }
    assert found.value == 0.5
    assert mean_of(weighted_sum([one, two], found.weights), qrels) == 0.75


@pytest.mark.parametrize("count", deep_but([2], [2, 3]))
def test_the_value_is_that_of_the_run_and_the_folds_are_right(count: int) -> None:
    runs, qrels = systems(count)
    found = tuned(runs, qrels, RR, folds=4, seed=3)
    assert found.value == pytest.approx(mean_of(found.run, qrels), rel=1e-15)
    assert [len(fold.query_ids) for fold in found.folds] == [5, 5, 5, 5]
    whole = found.run.to_dict()
    assert list(whole) == [f"q{q}" for q in range(20)]
    everything = dict(qrels.frame.select("query_id", "doc_id").iter_rows())
    for fold in found.folds:
        used = [(run, w) for run, w in zip(runs, fold.weights, strict=True) if w]
        again = weighted_sum([run for run, _ in used], [w for _, w in used])
        parts = again.to_dict()
        assert all(whole[query] == parts[query] for query in fold.query_ids)
        # No weights of the grid do better on the queries outside of the fold.
        outside = Qrels.from_dict(
            {q: {doc: 1} for q, doc in everything.items() if q not in fold.query_ids}
        )
        best = max(
            mean_of(weighted_sum([r for r, w in pairs if w], [w for _, w in pairs if w]), outside)
            for pairs in (list(zip(runs, weights, strict=True)) for weights in grid(count))
        )
        assert mean_of(again, outside) == pytest.approx(best, rel=1e-12)


def test_the_seed_deals_and_the_order_of_files_does_not() -> None:
    runs, qrels = systems(2)
    found = tuned(runs, qrels, RR)
    turned = [Run.from_dict(dict(reversed(run.to_dict().items())), run.name) for run in runs]
    backwards = Qrels.from_frame(qrels.frame.reverse())
    again = tuned(turned, backwards, RR)
    assert (again.folds, again.value, again.weights) == (found.folds, found.value, found.weights)
    assert again.run.to_dict() == found.run.to_dict()
    assert tuned(runs, qrels, RR, seed=1).folds != found.folds


def test_queries_without_a_value_are_fused_with_the_weights_of_all() -> None:
    runs, qrels = systems(2)
    unjudged = {"extra": {"a": 1.0, "b": 0.0}, "lost": {}}
    more = [Run.from_dict({**run.to_dict(), **unjudged}, run.name) for run in runs]
    found = tuned(more, qrels, RR)
    assert found.value == tuned(runs, qrels, RR).value
    assert all("extra" not in fold.query_ids for fold in found.folds)
    assert found.run.to_dict()["extra"] == pytest.approx({"a": 1, "b": 0})
    states = dict(found.run.answers.select("query_id", "state").iter_rows())
    assert states["lost"] == "empty"


def test_what_failed_under_some_weights_counts_0_for_them() -> None:
    # `flaky` is right where it answers; alone it fails for half of the queries. The means of RR:
    # flaky alone 4/8 · 1; both: 1 for the 4 it answers, and 1/2 for the rest, = .75; other: .5.
    answered = {f"a{q}": {"a": 2.0, "x": 0.0} for q in range(4)}
    failing = {f"b{q}": None for q in range(4)}
    flaky = Run.from_dict({**answered, **failing}, "flaky")
    other = Run.from_dict({q: {"x": 1.0, "a": 0.5} for q in [*answered, *failing]}, "other")
    qrels = Qrels.from_dict({q: {"a": 1} for q in [*answered, *failing]})
    found: Tuned = tuned([flaky, other], qrels, RR, folds=4)
    assert 0 < found.weights[0] < 1
    assert (found.value, found.n) == (0.75, 8)


def refused(said: str, count: int = 2, measure: str = "RR", **options: Any) -> None:
    """Tuning raises a UsageError that says so."""
    runs, qrels = systems(count, queries=3)
    with pytest.raises(UsageError, match=said):
        tuned(runs, qrels, parse(measure), **options)


def test_refusals() -> None:
    refused("expected 2 to 8 runs to tune weights for, got 1", count=1)
    refused("expected 2 to 8 runs to tune weights for, got 9", count=9)
    refused("5 folds need at least 5 queries with a value, got 3")
    refused("folds=1 is not a whole number from 2", folds=1)
    refused("folds=2.5 is not a whole number", folds=2.5)
    refused("weights cannot be tuned for NumRelRet", measure="NumRelRet")
    refused("unknown normalisation 'max'", folds=2, normalise="max")
