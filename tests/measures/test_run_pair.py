"""The documents that either of two runs shows."""

from __future__ import annotations

import numpy as np
import pytest

from karat.measures import parse, run_pair
from karat.measures.run_pair import Pair
from karat.tables import Qrels, Run


def test_the_pool_of_a_pair() -> None:
    baseline = Run.from_dict({"p": {"x": 3.0, "a": 2.0, "b": 1.0}, "other": {"a": 1.0}})
    # Tied: b before a, as documents go by id descending.
    candidate = Run.from_dict({"q": {"a": 1.0}, "p": {"c": 5.0, "a": 2.0, "b": 2.0}})
    qrels = Qrels.from_dict({"p": {"a": 1.0, "x": -1.0, "far": 2.0}, "q": {"b": 0.0}})
    pair = Pair.of(baseline, candidate, qrels)
    pool = pair.pool(parse("P@2"))
    rows = zip(
        pool.query.tolist(),
        pool.doc_id(np.arange(5)).to_list(),
        pool.baseline.tolist(),
        pool.candidate.tolist(),
        strict=True,
    )
    # By query, then by the better of both ranks, then by id.
    assert list(rows) == [(0, "c", 0, 1), (0, "x", 1, 0), (0, "a", 2, 0), (0, "b", 0, 2),
                          (1, "a", 0, 1)]  # fmt: skip
    np.testing.assert_equal(pool.grade, [np.nan, np.nan, 1.0, np.nan, np.nan])
    assert pool.n == 2
    assert len(pair.pool(parse("AP")).query) == 5  # whole lists: a and b are third there
    assert len(Pair.of(baseline, candidate, qrels, depth=1).pool(parse("AP")).query) == 3


def test_documents_that_only_the_other_run_shows() -> None:
    # p: the baseline lacks c and d; x is judged, z pooled without a grade, both lack "far".
    baseline = Run.from_dict({"p": {"x": 4.0, "a": 3.0, "b": 2.0, "z": 1.0}, "other": {"a": 1.0}})
    candidate = Run.from_dict({"p": {"c": 5.0, "a": 4.0, "d": 3.0}, "q": {"a": 2.0, "b": 1.0}})
    qrels = Qrels.from_dict({"p": {"x": 1.0, "z": -1.0, "far": 2.0}, "q": {"b": 0.0}})
    pair = Pair.of(baseline, candidate, qrels)
    by_candidate, by_baseline = pair.missed(parse("AP"))
    assert by_candidate.tolist() == [2, 0]  # b and z
    assert by_baseline.tolist() == [2, 1]  # c and d; a of q
    # Of the first two, p: x, a and c, a.
    assert [each.tolist() for each in pair.missed(parse("AP@2"))] == [[0, 0], [1, 1]]


def test_as_many_are_missed_as_the_pool_has_on_one_side_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(3)
    lists = [
        {
            f"q{q}": {f"d{d}": float(rng.integers(4)) for d in rng.permutation(9)[: q % 8]}
            for q in range(40)
        }
        for _ in range(2)
    ]
    judged = {f"q{q}": {f"d{d}": float(d % 3 - 1) for d in range(q % 5 + 1)} for q in range(40)}
    baseline, candidate = map(Run.from_dict, lists)
    whole = Pair.of(baseline, candidate, Qrels.from_dict(judged))
    monkeypatch.setattr(run_pair, "_BLOCK", 16)  # several blocks of queries
    pair = Pair.of(baseline, candidate, Qrels.from_dict(judged))
    for name in ("AP", "AP@3"):
        pool = whole.pool(parse(name))
        for ranks, missed in zip(
            (pool.candidate, pool.baseline), pair.missed(parse(name)), strict=True
        ):
            expected = np.bincount(pool.query[pool.unjudged & (ranks == 0)], minlength=pool.n)
            np.testing.assert_equal(missed, expected)
