"""Which documents to judge next."""

from __future__ import annotations

import numpy as np
import pytest

from karat.errors import UsageError
from karat.measures import parse
from karat.measures.difference import difference_bounds, next_judgments
from karat.measures.run_pair import Pair
from karat.tables import Qrels, Run


def ranking(docs: str) -> dict[str, float]:
    return {doc: -float(place) for place, doc in enumerate(docs.split())}


def pair_of(
    baseline: dict[str, str], candidate: dict[str, str], judged: dict[str, dict[str, float]],
    scale: tuple[float, float] = (0, 1),
) -> Pair:  # fmt: skip
    first, second = (
        Run.from_dict({query: ranking(docs) for query, docs in run.items()})
        for run in (baseline, candidate)
    )
    return Pair.of(first, second, Qrels(Qrels.from_dict(judged).frame, scale=scale))


def test_v25_of_rank_biased_precision() -> None:
    # Weights as worked out in test_difference.py: d6 -.128, d5 .08192 and d7 -.08192, d3 -.072,
    # d2 .0576. The interval shrinks by .128 first.
    pair = pair_of({"q": "d3 d1 d6 d2 d7"}, {"q": "d1 d2 d3 d4 d5"}, {"q": {"d1": 1.0, "d4": 0.0}})
    found = next_judgments(parse("RBP(p=0.8)"), pair)
    assert found["doc_id"].to_list() == ["d6", "d5", "d7", "d3", "d2"]
    assert found["effect"].to_list() == pytest.approx([-0.128, 0.08192, -0.08192, -0.072, 0.0576])
    assert found["baseline_rank"].to_list() == [3, None, 5, 1, 4]
    assert found["candidate_rank"].to_list() == [None, 5, None, 3, 2]
    assert next_judgments(parse("RBP(p=0.8)"), pair, 1)["doc_id"].to_list() == ["d6"]


def test_each_judgment_shrinks_the_interval_by_its_effect() -> None:
    judged = {"p": {"a": 1.0}, "q": {"c": 0.0}}
    runs = {"p": "a b c", "q": "a b c"}, {"p": "x b a", "q": "c a y"}
    pair = pair_of(*runs, judged, (0, 3))
    for name in ("DCG@3", "P@2", "RBP(p=0.5, max=3)@3"):
        mean = difference_bounds(parse(name), pair).mean()
        assert mean is not None
        row = next_judgments(parse(name), pair).row(0, named=True)
        for grade in (0.0, 3.0):
            more = {q: d | ({row["doc_id"]: grade} if q == row["query_id"] else {})
                    for q, d in judged.items()}  # fmt: skip
            after = difference_bounds(parse(name), pair_of(*runs, more, (0, 3))).mean()
            assert after is not None
            shrunk = (mean[1] - mean[0]) - (after[1] - after[0])
            assert shrunk == pytest.approx(abs(row["effect"]))


def test_ndcg_goes_by_the_ideal_as_judged() -> None:
    # One place, grades up to 2. Query p has an ideal of 2, q of 1: what x is worth is 2/2 and 2/1,
    # halved in the mean of two queries; r has no ideal and does not count.
    runs = {"p": "a", "q": "a", "r": "a"}, {"p": "x", "q": "x", "r": "x"}
    pair = pair_of(*runs, {"p": {"a": 2.0}, "q": {"a": 1.0}, "r": {"a": 0.0}}, (0, 2))
    used = np.array([True, True, False])
    found = next_judgments(parse("nDCG@1"), pair, used=used)
    assert found.select("query_id", "effect").rows() == [("q", 1.0), ("p", 0.5)]
    heavy = next_judgments(parse("nDCG@1"), pair, used=used, weights=np.array([3.0, 1.0, 9.0]))
    assert heavy.select("query_id", "effect").rows() == [("p", 0.75), ("q", 0.5)]


def test_reciprocal_rank_asks_for_what_one_document_changes() -> None:
    # Known: baseline 1/2 (a), candidate 1/3 (a). x first in the candidate: 1 - 1/3 = 2/3 more; y
    # second there: 1/2 - 1/3 = 1/6; z below a changes nothing; w first in the baseline: -1/2.
    pair = pair_of({"q": "w a z"}, {"q": "x y a z"}, {"q": {"a": 1.0}})
    found = next_judgments(parse("RR"), pair)
    assert found["doc_id"].to_list() == ["x", "w", "y"]
    assert found["effect"].to_list() == pytest.approx([2 / 3, -1 / 2, 1 / 6])


def test_nothing_to_judge() -> None:
    same = pair_of({"q": "x a"}, {"q": "x a"}, {"q": {"a": 1.0}})
    assert next_judgments(parse("nDCG@2"), same).height == 0
    assert next_judgments(parse("RR(rel=2)"), same).height == 0


def test_a_measure_without_weights_says_so() -> None:
    pair = pair_of({"q": "x"}, {"q": "a"}, {"q": {"a": 1.0}})
    with pytest.raises(UsageError, match="AP"):
        next_judgments(parse("AP"), pair)
