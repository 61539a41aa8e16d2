"""The snippets that people meet search evaluation by, as they write them; karat's numbers equal.

Each snippet is code of a reader's own, in the shapes that tutorials use: lists of ids, sets of
relevant ids, dictionaries, data frames. karat takes these shapes as they are.
"""

from __future__ import annotations

import math
import runpy
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import karat
from karat.measures import (
    average_precision,
    dcg_at_k,
    ndcg_at_k,
    precision_at_k,
    recall_at_k,
    reciprocal_rank,
)

RETRIEVED = {
    "q1": ["d3", "d1", "d7", "d2"],
    "q2": ["d5", "d9", "d4", "d8"],
    "q3": ["d6", "d2", "d1"],
    "q4": [],
}
RELEVANT = {"q1": {"d1", "d2", "d5"}, "q2": {"d5"}, "q3": {"d9"}, "q4": {"d4"}}
GRADES = {
    "q1": {"d1": 3, "d2": 1, "d5": 2, "d3": 0},
    "q2": {"d5": 1, "d4": 2},
    "q3": {"d9": 1, "d6": 0},
    "q4": {"d4": 1},
}
SCORES = {
    query: {doc: 10.0 - place for place, doc in enumerate(docs)}
    for query, docs in RETRIEVED.items()
}


# (a) two functions in a notebook: recall@k and MRR over retrieved lists and relevant sets


def test_hand_written_recall_and_mrr() -> None:
    def my_recall(retrieved: list[str], relevant: set[str], k: int) -> float:
        return len(set(retrieved[:k]) & relevant) / len(relevant)

    def my_mrr(all_retrieved: list[list[str]], all_relevant: list[set[str]]) -> float:
        total = 0.0
        for retrieved, relevant in zip(all_retrieved, all_relevant, strict=True):
            for i, doc in enumerate(retrieved):
                if doc in relevant:
                    total += 1 / (i + 1)
                    break
        return total / len(all_retrieved)

    recalls = [my_recall(RETRIEVED[q], RELEVANT[q], 3) for q in RETRIEVED]
    mrr = my_mrr(list(RETRIEVED.values()), list(RELEVANT.values()))
    assert recalls == [1 / 3, 1.0, 0.0, 0.0]
    assert mrr == (1 / 2 + 1 + 0 + 0) / 4

    results = karat.evaluate(RELEVANT, RETRIEVED, ["recall@3", "MRR"])
    assert results.value("recall@3") == pytest.approx(sum(recalls) / 4, abs=1e-12)
    assert results.value("MRR") == pytest.approx(mrr, abs=1e-12)
    assert [recall_at_k(RETRIEVED[q], RELEVANT[q], 3) for q in RETRIEVED] == recalls
    assert sum(reciprocal_rank(RETRIEVED[q], RELEVANT[q]) for q in RETRIEVED) / 4 == mrr

    # 0 is for what was not found; a query with nothing to find has no recall
    relevant: dict[str, set[str]] = RELEVANT | {"q4": set()}
    with pytest.raises(ZeroDivisionError):
        my_recall(RETRIEVED["q4"], relevant["q4"], 3)
    assert recall_at_k(RETRIEVED["q4"], relevant["q4"], 3) is None
    results = karat.evaluate(relevant, RETRIEVED, ["recall@3"])
    assert (results.value("recall@3"), results.results[0].undefined) == (4 / 9, 1)  # of three


def test_hand_written_precision_and_map() -> None:
    def my_precision(retrieved: list[str], relevant: set[str], k: int) -> float:
        return sum(doc in relevant for doc in retrieved[:k]) / k

    def my_ap(retrieved: list[str], relevant: set[str]) -> float:
        hits, total = 0, 0.0
        for i, doc in enumerate(retrieved, start=1):
            if doc in relevant:
                hits += 1
                total += hits / i
        return total / len(relevant)

    precision = [my_precision(RETRIEVED[q], RELEVANT[q], 5) for q in RETRIEVED]
    ap = [my_ap(RETRIEVED[q], RELEVANT[q]) for q in RETRIEVED]
    assert ap == [(1 / 2 + 2 / 4) / 3, 1.0, 0.0, 0.0]
    results = karat.evaluate(RELEVANT, RETRIEVED, ["Precision@5", "map"])
    assert results.value("Precision@5") == pytest.approx(sum(precision) / 4, abs=1e-12)
    assert results.value("map") == pytest.approx(sum(ap) / 4, abs=1e-12)
    assert [precision_at_k(RETRIEVED[q], RELEVANT[q], 5) for q in RETRIEVED] == precision
    assert [average_precision(RETRIEVED[q], RELEVANT[q]) for q in RETRIEVED] == ap


# (b) a benchmark class that asks a search function every query of a golden list

GOLDEN: list[dict[str, Any]] = [
    {"query": "reset password", "relevant_docs": ["d1", "d2"], "category": "account",
     "difficulty": "easy"},
    {"query": "delete account", "relevant_docs": ["d2", "d3"], "category": "account",
     "difficulty": "hard"},
    {"query": "refund", "relevant_docs": ["d4"], "category": "billing", "difficulty": "easy"},
]  # fmt: skip
INDEX = {
    "reset password": ["d1", "d9", "d2", "d8"],
    "delete account": ["d9", "d8", "d3", "d1"],
    "refund": ["d7", "d4"],
}


class SearchBenchmark:
    """What a tutorial calls its benchmark."""

    def __init__(self, golden: list[dict[str, Any]], k_values: list[int]) -> None:
        self.golden, self.k_values = golden, k_values

    def run(self, search: Callable[[str], list[str]]) -> list[dict[str, Any]]:
        rows = []
        for item in self.golden:
            found, wanted = search(item["query"]), set(item["relevant_docs"])
            row = {"category": item["category"], "difficulty": item["difficulty"]}
            for k in self.k_values:
                hits = len(wanted.intersection(found[:k]))
                row |= {f"recall@{k}": hits / len(wanted), f"precision@{k}": hits / k}
            ranks = [i for i, doc in enumerate(found, 1) if doc in wanted]
            row["MRR@3"] = 1 / ranks[0] if ranks and ranks[0] <= 3 else 0.0
            rows.append(row)
        return rows


def test_a_benchmark_class_over_a_golden_list() -> None:
    rows = SearchBenchmark(GOLDEN, k_values=[1, 3]).run(INDEX.__getitem__)
    results = karat.benchmark(
        GOLDEN, INDEX.__getitem__, k_values=[1, 3], by=["category", "difficulty"]
    )
    for name in ("recall@1", "recall@3", "precision@1", "precision@3", "MRR@3"):
        mean = sum(row[name] for row in rows) / len(rows)
        assert results.value(name) == pytest.approx(mean, abs=1e-12), name
        for attribute in ("category", "difficulty"):
            parts = defaultdict(list)
            for row in rows:
                parts[row[attribute]].append(row[name])
            for part, values in parts.items():
                found = results.value(name, slice=f"{attribute}={part}")
                assert found == pytest.approx(sum(values) / len(values), abs=1e-12), (name, part)
    assert results.value("recall@3", slice="category=account") == (1 + 1 / 2) / 2


# (d) a check in continuous integration: recall@10 must reach a threshold

SCRIPT = """\
import sys

import karat

relevant = {"q1": {"d1", "d2"}, "q2": {"d5"}}
retrieved = {"q1": ["d3", "d1"], "q2": ["d5"]}

recall = karat.evaluate(relevant, retrieved, ["recall@10"]).value("recall@10")
print(f"recall@10 {recall:.3f}")
if recall < float(sys.argv[1]):
    sys.exit(1)
"""


def test_a_check_of_recall_as_a_test() -> None:
    recall = karat.evaluate(RELEVANT, RETRIEVED, ["recall@10"]).value("recall@10")
    assert recall is not None
    assert recall >= 0.4  # (2/3 + 1 + 0 + 0) / 4 = 0.4167
    gate = karat.gate({"rule": [{"measure": "recall@10", "min": 0.9}]}, RELEVANT, None, RETRIEVED)
    assert (gate.exit_code, gate.value("recall@10")) == (1, recall)


@pytest.mark.parametrize(("least", "code"), [("0.8", 1), ("0.7", None)])
def test_a_check_of_recall_as_a_script(
    least: str,
    code: int | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "check.py").write_text(SCRIPT)
    monkeypatch.setattr(sys, "argv", ["check.py", least])
    ended: int | str | None = None
    try:
        runpy.run_path(str(tmp_path / "check.py"), run_name="__main__")
    except SystemExit as error:
        ended = error.code
    assert ended == code
    assert capsys.readouterr().out == "recall@10 0.750\n"  # (1/2 + 1) / 2


# (e) pytrec_eval


def test_dictionaries_of_pytrec_eval() -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    names = {"map", "ndcg_cut_10", "recip_rank", "P_5", "recall_5"}
    per_query = pytrec_eval.RelevanceEvaluator(GRADES, names).evaluate(SCORES)
    results = karat.evaluate(GRADES, SCORES, sorted(names), per_query=True)
    ours = {name: {} for name in names}  # type: dict[str, dict[str, float | None]]
    spelt = {"AP": "map", "nDCG@10": "ndcg_cut_10", "RR": "recip_rank", "P@5": "P_5"}
    for row in results.per_query:
        ours[spelt.get(row.measure, "recall_5")][row.query_id] = row.value
    for name in names:
        for query, values in per_query.items():
            assert ours[name][query] == pytest.approx(values[name], abs=1e-9), (query, name)
        mean = sum(values[name] for values in per_query.values()) / 4
        assert results.value(name) == pytest.approx(mean, abs=1e-9), name


# (f) data frames of PyTerrier, and rows of ir_measures


def test_frames_of_pyterrier() -> None:
    pd = pytest.importorskip("pandas")
    rows = [(q, doc, grade) for q, docs in GRADES.items() for doc, grade in docs.items()]
    qrels = pd.DataFrame(rows, columns=["qid", "docno", "label"])
    found = [
        (q, 100 + place, doc, place, 10.0 - place)
        for q, docs in RETRIEVED.items()
        for place, doc in enumerate(docs)  # PyTerrier's first rank is 0
    ]
    run = pd.DataFrame(found, columns=["qid", "docid", "docno", "rank", "score"])
    topics = pd.DataFrame({"qid": list(GRADES), "query": ["reset", "delete", "refund", "sort"]})
    expected = karat.evaluate(GRADES, RETRIEVED, ["map", "nDCG@3"])
    results = karat.evaluate(qrels, run, ["map", "nDCG@3"], queries=topics)
    for name in ("map", "ndcg@3"):
        assert results.value(name) == expected.value(name)
    assert not any("contradict" in note for note in results.notes)


def test_rows_of_ir_measures() -> None:
    ir_measures = pytest.importorskip("ir_measures")
    qrels = [
        ir_measures.Qrel(q, doc, grade) for q, docs in GRADES.items() for doc, grade in docs.items()
    ]
    run = [
        ir_measures.ScoredDoc(q, doc, score)
        for q, docs in SCORES.items()
        for doc, score in docs.items()
    ]
    measures = [ir_measures.nDCG @ 10, ir_measures.AP, ir_measures.P @ 5]
    theirs = ir_measures.calc_aggregate(measures, qrels, run)
    results = karat.evaluate(qrels, run, [str(measure) for measure in measures])
    for measure in measures:
        assert results.value(str(measure)) == pytest.approx(theirs[measure], abs=1e-9)


# (g) nDCG as with scikit-learn, and by NumPy


def test_ndcg_as_scikit_learn_computes_it() -> None:
    def my_ndcg_score(y_true: np.ndarray, y_score: np.ndarray, k: int) -> float:
        discount = 1 / np.log2(np.arange(len(y_true)) + 2)
        discount[k:] = 0
        gain = y_true[np.argsort(y_score)[::-1]] @ discount
        best = np.sort(y_true)[::-1] @ discount
        return float(gain / best)

    true_relevance = np.array([3, 2, 0, 1, 0])  # every judged document, in any order
    scores = np.array([0.9, 0.2, 0.8, 0.7, 0.1])
    mine = my_ndcg_score(true_relevance, scores, k=3)
    # (3/log2(2) + 0 + 1/log2(4)) / (3/log2(2) + 2/log2(3) + 1/log2(4)) = 3.5 / 4.7619
    theirs = 0.7350069851388744  # sklearn.metrics.ndcg_score of these, k=3; scikit-learn 1.9.1
    assert mine == pytest.approx(theirs, abs=1e-12)
    grades = true_relevance[np.argsort(-scores)]  # 3 0 1 2 0
    assert ndcg_at_k(grades, true_relevance, k=3) == pytest.approx(theirs, abs=1e-12)
    assert dcg_at_k(grades, k=3) == 3.5
    judged = {"q": {f"d{n}": float(grade) for n, grade in enumerate(true_relevance)}}
    ranked = {"q": [(f"d{n}", float(score)) for n, score in enumerate(scores)]}
    found = karat.evaluate(judged, ranked, "ndcg@3").value("ndcg@3")
    assert found == pytest.approx(theirs, abs=1e-12)


def test_ndcg_with_exponential_gain_by_numpy() -> None:
    def my_ndcg(relevances: list[int], all_relevances: list[int], k: int) -> float:
        def dcg(values: list[int]) -> float:
            gains = 2.0 ** np.array(values[:k], dtype=float) - 1
            return float((gains / np.log2(np.arange(2, gains.size + 2))).sum())

        return dcg(relevances) / dcg(sorted(all_relevances, reverse=True))

    ranked = {q: [GRADES[q].get(doc, 0) for doc in RETRIEVED[q]] for q in ("q1", "q2")}
    mine = [my_ndcg(ranked[q], list(GRADES[q].values()), 3) for q in ranked]
    # q1 retrieves 0 3 0: 7/log2(3), of 7 + 3/log2(3) + 1/2
    assert mine[0] == pytest.approx((7 / math.log2(3)) / (7.5 + 3 / math.log2(3)))
    for query, value in zip(ranked, mine, strict=True):
        found = ndcg_at_k(ranked[query], GRADES[query].values(), 3, gain="exp")
        assert found == pytest.approx(value, abs=1e-12)
    two = [{q: table[q] for q in ranked} for table in (GRADES, RETRIEVED)]
    results = karat.evaluate(*two, ["nDCG(gain=exp)@3"])
    assert results.value("nDCG(gain=exp)@3") == pytest.approx(sum(mine) / 2, abs=1e-12)
