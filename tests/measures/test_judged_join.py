"""reduce, and every view of evidence, against loops over dictionaries."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from tests.choosing import FEW

from karat.measures import reduce
from karat.measures.ties import perfectly_reranked
from karat.tables import Qrels, Run

# By bytes: "" < "10" < "2" < "9" < "B" < "a" < "é" < "日本" < U+E000 < "𝄞". UTF-16 units would
# put "𝄞" before U+E000, and a locale would put "B" after "a".
IDS = ("10", "2", "9", "B", "a", "é", "日本", "\ue000", "𝄞")
# Few values, so that many tie; both zeros are one score.
SCORES = st.sampled_from((2.0, 1.0, 0.0, -0.0, -3.5, 1e-300, float("inf")))
GRADES = st.sampled_from((-2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0))
RUNS = st.dictionaries(
    st.sampled_from(IDS[:6]), st.dictionaries(st.sampled_from(IDS), SCORES), max_size=5
)
QRELS = st.dictionaries(
    st.sampled_from(IDS[:6]),
    st.dictionaries(st.sampled_from(IDS), GRADES, min_size=1),
    min_size=1,
    max_size=5,
)


@st.composite
def batches(draw: st.DrawFn, scores: dict[str, dict[str, float]]) -> list[pl.DataFrame]:
    """The rows of a run in any order, cut anywhere: a query may come in several batches."""
    rows = [(query, doc, score) for query, docs in scores.items() for doc, score in docs.items()]
    if draw(st.booleans()):
        rows = draw(st.permutations(rows))
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    schema = {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}
    return [
        pl.DataFrame(rows[start:stop], schema=schema, orient="row")
        for start, stop in zip([0, *cuts], [*cuts, len(rows)], strict=True)
    ]


@FEW
@given(scores=RUNS, grades=QRELS, data=st.data())
def test_reduce_finds_what_loops_find(
    plain: Any, scores: dict[str, dict[str, float]], grades: dict[str, Any], data: st.DataObject
) -> None:
    run = Run.from_batches("run", data.draw(batches(scores)))
    plain.of(scores, grades).check(reduce(run, Qrels.from_dict(grades)), tied=True)


@FEW
@given(scores=RUNS, grades=QRELS, depth=st.integers(1, 10))
def test_to_depth_cuts_the_ranking(
    plain: Any, scores: dict[str, dict[str, float]], grades: dict[str, Any], depth: int
) -> None:
    evidence = reduce(Run.from_dict(scores), Qrels.from_dict(grades))
    cut = plain.of(scores, grades).map(lambda _, ranking: ranking[:depth])
    cut.check(evidence.to_depth(depth))


@FEW
@given(scores=RUNS, grades=QRELS)
def test_only_judged_drops_the_others(
    plain: Any, scores: dict[str, dict[str, float]], grades: dict[str, Any]
) -> None:
    evidence = reduce(Run.from_dict(scores), Qrels.from_dict(grades))
    condensed = plain.of(scores, grades).map(
        lambda query, ranking: [pair for pair in ranking if grades[query].get(pair[0], -1) >= 0]
    )
    condensed.check(evidence.only_judged())


@FEW
@given(scores=RUNS, grades=QRELS, depth=st.integers(1, 10))
def test_perfectly_reranked_puts_the_best_first_and_leaves_the_rest(
    plain: Any, scores: dict[str, dict[str, float]], grades: dict[str, Any], depth: int
) -> None:
    def reranked(query: str, ranking: list[tuple[str, float]]) -> list[tuple[str, float]]:
        candidates = [doc for doc, _ in ranking[:depth]]
        # sorted is stable: documents of one grade, and all without gain, keep their order.
        best = sorted(candidates, key=lambda doc: -max(grades[query].get(doc, 0.0), 0.0))
        best += [doc for doc, _ in ranking[depth:]]  # what the reranker did not see stays
        return [(doc, -float(rank)) for rank, doc in enumerate(best)]

    evidence = reduce(Run.from_dict(scores), Qrels.from_dict(grades))
    plain.of(scores, grades).map(reranked).check(
        perfectly_reranked(evidence, evidence.grade, depth)
    )


@FEW
@given(scores=RUNS, grades=QRELS, data=st.data())
def test_at_keeps_some_queries(
    plain: Any, scores: dict[str, dict[str, float]], grades: dict[str, Any], data: st.DataObject
) -> None:
    evidence = reduce(Run.from_dict(scores), Qrels.from_dict(grades))
    chosen = sorted(data.draw(st.sets(st.integers(0, evidence.n - 1))))
    kept = {evidence.query_ids[index]: grades[evidence.query_ids[index]] for index in chosen}
    plain.of(scores, kept).check(evidence.at(np.array(chosen, np.int64)), tied=True)


@FEW
@given(scores=RUNS, grades=QRELS)
def test_counts_along_the_ranking(
    plain: Any, scores: dict[str, dict[str, float]], grades: dict[str, Any]
) -> None:
    evidence = reduce(Run.from_dict(scores), Qrels.from_dict(grades))
    hits = plain.of(scores, grades).hits()
    relevant = evidence.relevant(1.0)
    so_far = [
        sum(other[0] == hit[0] and other[2] <= hit[2] and other[1] >= 1 for other in hits)
        for hit in hits
    ]
    assert evidence.so_far(relevant).tolist() == so_far
    assert evidence.num_rel(1.0).tolist() == [
        sum(grade >= 1 for grade in grades[query].values()) for query in evidence.query_ids
    ]
    judged = [len(grades[query]) for query in evidence.query_ids]
    in_order = [place for count in judged for place in range(1, count + 1)]
    assert evidence.ideal_rank.tolist() == in_order


def test_no_judgments_give_evidence_of_no_query() -> None:
    evidence = reduce(Run.from_dict({"q": {"d": 1.0}}), Qrels.from_dict({}))
    assert evidence.n == 0
    assert evidence.query_ids == []
    assert evidence.returned.tolist() == []


def test_a_run_of_nothing_has_no_hits() -> None:
    evidence = reduce(Run.from_dict({}), Qrels.from_dict({"q": {"d": 1.0}}))
    assert evidence.returned.tolist() == [0]
    assert evidence.query.tolist() == []
    assert evidence.only_judged().returned.tolist() == [0]
    assert perfectly_reranked(evidence, evidence.grade, 3).rank.tolist() == []
    assert evidence.to_depth(3).returned.tolist() == [0]


def test_a_document_judged_for_another_query_is_no_hit() -> None:
    run = Run.from_dict({"q1": {"d": 1.0}, "q2": {"d": 1.0}})
    evidence = reduce(run, Qrels.from_dict({"q1": {"d": 1.0}, "q2": {"e": 1.0}}))
    assert evidence.query.tolist() == [0]
