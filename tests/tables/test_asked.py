"""A value is found by whatever name its measure was asked for or is printed by."""

from __future__ import annotations

import pickle
from typing import Any

import polars as pl
import pytest

import karat
from karat.errors import UsageError

QRELS = {"q1": {"a": 2, "c": 1}, "q2": {"b": 1}}
OLD = {"q1": ["a", "b"], "q2": ["x", "b"]}  # RR 1 and 1/2
NEW = {"q1": ["b", "a"], "q2": ["b"]}  # RR 1/2 and 1
QUERIES = pl.DataFrame({"query_id": ["q1", "q2"], "kind": ["x", "y"]})


@pytest.fixture(scope="module")
def results() -> karat.Results:
    asked = ["MRR", "recall@3", "ndcg@3", "map", "Precision@5"]
    return karat.evaluate(QRELS, OLD, asked, queries=QUERIES, by="kind")


@pytest.mark.parametrize(
    ("names", "value"),
    [
        (("MRR", "mrr", "RR", "recip_rank"), 0.75),  # (1 + 1/2) / 2
        (("recall@3", "R@3", "Recall@3", "recall_3"), 0.75),  # (1/2 + 1) / 2
        (("map", "MAP", "AP"), 0.5),  # (1/2 + 1/2) / 2
        (("Precision@5", "P@5", "P_5", "precision@5"), 0.2),
    ],
)
def test_any_spelling_of_a_measure_will_do(
    results: karat.Results, names: tuple[str, ...], value: float
) -> None:
    assert [results.value(name) for name in names] == [value] * len(names)


def test_results_of_old_keep_their_spellings(results: karat.Results) -> None:
    again = pickle.loads(pickle.dumps(results))
    assert again.value("ndcg@3") == results.value("nDCG(gain=linear)@3")
    assert "meant" not in results.to_dict()


def test_a_value_in_a_slice(results: karat.Results) -> None:
    assert results.value("MRR", slice="kind=y") == 0.5
    with pytest.raises(
        UsageError, match=r"unknown slice 'kind=z'; available: kind=x, kind=y; did you mean"
    ):
        results.value("MRR", slice="kind=z")
    with pytest.raises(UsageError, match='available: none\n  fix: by="category"'):
        karat.evaluate(QRELS, OLD, "RR").value("RR", slice="kind=x")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("ndcg@5", "'ndcg@5' was not computed; available: RR, R@3, nDCG@3, AP, P@5; did you mean "),
        ("nDGC@3", "did you mean nDCG@3"),
        ("mrr@10", r"did you mean RR\?"),
        ("foo", "'foo' was not computed; available: RR"),
        (3, "expected the name of a measure, got 3"),
        (None, "expected the name of a measure, got None"),
    ],
)
def test_a_measure_that_was_not_computed_is_refused(
    results: karat.Results, name: Any, says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        results.value(name)


def test_one_name_of_several_measures_is_refused() -> None:
    results = karat.evaluate(QRELS, OLD, ["P@5", "P@10", "P(rel=2)@5"])
    with pytest.raises(UsageError, match=r"'P.5,10' matches 2 measures; did you mean P@5 or"):
        results.value("P.5,10")
    assert results.value("precision@5") == 0.2
    assert results.value("precision(rel=2)@5") == 0.1  # (1/5 + 0/5) / 2


def test_the_grade_asked_for_is_part_of_the_name() -> None:
    results = karat.evaluate(QRELS, OLD, "P@5", rel=2)
    assert [row.measure for row in results.results] == ["P(rel=2)@5"]
    assert results.value("P@5") == results.value("precision@5") == 0.2


def test_names_as_trec_eval_has_them() -> None:
    results = karat.evaluate(QRELS, OLD, ["map", "ndcg_cut.3"], compat="trec_eval-9")
    assert results.value("map") == results.value("MAP") == 0.5
    assert results.value("ndcg_cut_3") == results.value("nDCG@3")


def test_several_runs_are_named() -> None:
    both = karat.evaluate(QRELS, {"old": OLD, "new": NEW}, ["MRR"])
    assert (both.value("mrr", "old"), both.value("MRR", run="new")) == (0.75, 0.75)
    with pytest.raises(UsageError, match=r"2 runs have a value of mrr\n  fix: .value"):
        both.value("mrr")
    with pytest.raises(UsageError, match="unknown run 'nwe'; did you mean new"):
        both.value("mrr", "nwe")


def test_the_difference_of_a_comparison() -> None:
    found = karat.compare(QRELS, OLD, NEW, ["recall@1"], queries=QUERIES, by="kind")
    # R@1: of q1 1/2 before and 0 now, of q2 0 before and 1 now
    assert found.value("R@1") == found.value("recall@1") == 0.25
    assert found.value("recall@1", "candidate", slice="kind=x") == -0.5
    assert found.frame().select("slice", "difference").rows() == [
        (None, 0.25),
        ("x", -0.5),
        ("y", 1.0),
    ]
    assert "meant" not in found.to_dict()
    with pytest.raises(UsageError, match="'map' was not computed; available: R@1"):
        found.value("map")
    with pytest.raises(UsageError, match="unknown candidate 'old'; did you mean candidate"):
        found.value("recall@1", "old")
    two = karat.compare(QRELS, OLD, {"new": NEW, "same": OLD}, "recall@1")
    assert (two.value("recall@1", "new"), two.value("recall@1", candidate="same")) == (0.25, 0.0)
    with pytest.raises(UsageError, match=r"2 candidates have a difference in recall@1\n  fix: "):
        two.value("recall@1")


def test_the_value_of_a_gate() -> None:
    rules = {"rule": [{"measure": "mrr", "max_drop": 0.1, "slice": "kind=y"}]}
    gate = karat.gate(rules, QRELS, OLD, NEW, queries=QUERIES)
    assert gate.value("MRR") == gate.value("RR") == 0.75
    assert gate.value("MRR", slice="kind=y") == 1.0
    rows = gate.frame().filter(measure="RR").select("verdict", "slice", "drop").rows()
    assert rows == [(gate.checks[-1].verdict, "y", -0.5)]
    assert "meant" not in gate.to_dict()
    with pytest.raises(UsageError, match="'ndcg@3' was not computed; available: RR"):
        gate.value("ndcg@3")
    with pytest.raises(UsageError, match="unknown slice 'kind=x'; available: kind=y"):
        gate.value("MRR", slice="kind=x")


def test_a_name_without_a_cutoff_stands_for_the_only_one() -> None:
    run, qrels = {"q1": ["x", "a"]}, {"q1": {"a"}}
    assert karat.evaluate(qrels, run, ["RR@10", "R@2"]).value("MRR") == 1 / 2
    with pytest.raises(UsageError, match="did you mean RR@5 or RR@10"):
        karat.evaluate(qrels, run, ["RR@5", "RR@10"]).value("MRR")


@pytest.mark.parametrize("spelling", ["ndcg_cut_10", "ndcg_at_10", "nDCG@10"])
def test_a_cutoff_in_any_spelling_is_not_another_cutoff(spelling: str) -> None:
    results = karat.evaluate({"q1": {"a"}}, {"q1": ["x", "a"]}, ["nDCG@1"])
    with pytest.raises(
        UsageError, match=r"was not computed; available: nDCG@1; did you mean nDCG@1"
    ):
        results.value(spelling)
