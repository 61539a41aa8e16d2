"""fuse and fuse_tuned: what they take, and that they do what the fusions do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from karat.errors import UsageError
from karat.formats import write_run
from karat.fusion import reciprocal_rank, weighted_sum
from karat.tables import Run
from karat.workflows.offline.evaluate import evaluate
from karat.workflows.offline.fuse import fuse, fuse_tuned

BM25 = {"q": {"a": 10.0, "b": 7.0, "c": 4.0}}
DENSE = {"q": {"b": 0.9, "a": 0.2}}


def test_the_two_methods() -> None:
    runs = [Run.from_dict(BM25), Run.from_dict(DENSE)]
    assert fuse([BM25, DENSE]).to_dict() == reciprocal_rank(runs).to_dict()
    assert fuse([BM25, DENSE], k=1, weights=[2, 1], depth=1).to_dict() == (
        reciprocal_rank(runs, k=1, weights=[2, 1], depth=1).to_dict()
    )
    assert fuse([BM25, DENSE], "sum").to_dict() == weighted_sum(runs).to_dict()
    assert fuse([BM25, DENSE], "sum", normalise="z-score", weights=[2, 1]).to_dict() == (
        weighted_sum(runs, [2, 1], normalise="z-score").to_dict()
    )


def test_names() -> None:
    assert fuse([BM25, DENSE]).name == "rrf"
    assert fuse([BM25, DENSE], "sum").name == "sum"
    found = fuse({"bm25": BM25, "dense": DENSE}, name="hybrid")
    assert (found.name, found.about["fused"]) == ("hybrid", "bm25, dense")


def test_files(tmp_path: Path) -> None:
    write_run(Run.from_dict(BM25), tmp_path / "bm25.run")
    found = fuse([tmp_path / "bm25.run", DENSE])
    assert found.to_dict() == fuse([BM25, DENSE]).to_dict()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": "rff"}, "unknown fusion method 'rff'; did you mean rrf"),
        ({"normalise": "min-max"}, "no scores to normalise"),
        ({"method": "sum", "k": 60}, "k is a parameter of reciprocal rank fusion"),
        ({"method": "sum", "normalise": "zscore"}, "did you mean z-score"),
        ({"weights": [1, 2, 3]}, "there are 3 weights for 2 runs"),
    ],
)
def test_what_does_not_go_together_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        fuse([BM25, DENSE], **options)


def test_the_tuned_value_is_what_evaluate_says_of_the_run() -> None:
    # The first is right for the even queries, the second for most others, a third has no judgment.
    even = {f"q{q}": {"a": 3.0 - q % 2, "x": 2.0, "y": 0.0} for q in range(11)}
    third = {f"q{q}": {"a": 3.0 - (q % 3 == 1), "x": 2.5, "z": 1.0} for q in range(11)}
    qrels = {f"q{q}": {"a": 2, "y": 1} for q in range(10)}
    found = fuse_tuned([even, third], qrels, "nDCG@10", folds=5, seed=2)
    row = evaluate(qrels, found.run, "nDCG@10").results[0]
    assert (row.value, row.n) == (found.value, found.n) == (found.value, 10)
    assert found.run.name == "tuned"
    assert "q10" in found.run.to_dict()


def test_tuning_refuses_a_seed_below_0() -> None:
    with pytest.raises(UsageError, match="seed must be 0 or more, got -1"):
        fuse_tuned([BM25, DENSE], {"q": {"a": 1}}, seed=-1)
