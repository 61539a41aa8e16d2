"""The documents that either of two runs shows."""

from __future__ import annotations

import numpy as np

from karat.measures import parse
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
