"""The waterfall: counts by hand, and the laws that every pipeline obeys."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.choosing import FEW

from karat.diagnosis.fixes import best_merge, fixes
from karat.diagnosis.modes import Evidence, name_modes
from karat.diagnosis.waterfall import Roads, roads, values_of, waterfalls
from karat.formats.own.traces import line_of, read_trace
from karat.fusion import reciprocal_rank
from karat.measures import parse
from karat.tables import Qrels, Run
from karat.tables.diagnosis.traces import Trace, from_runs

NDCG = parse("nDCG@2")
QRELS = Qrels.from_dict({"q1": {"a": 3, "b": 2, "c": 1, "x": 0}, "q2": {"d": 1}})
BM25 = Run.from_dict({"q1": {"x": 9, "a": 8, "c": 7}, "q2": {"e": 1}}, "bm25")
DENSE = Run.from_dict({"q1": {"c": 9, "x": 8}, "q2": {"e": 1}}, "dense")
FUSED = Run.from_dict({"q1": {"x": 9, "c": 8, "a": 7}, "q2": {"e": 1}}, "fused")


def found(trace: Trace, run: Run, qrels: Qrels = QRELS, k: int = 2) -> Roads:
    return roads(trace, run, qrels, qrels.query_ids, k, 1.0)


def test_counts_by_hand() -> None:
    trace = from_runs({"bm25": BM25, "dense": DENSE, "fused": FUSED}, {"dense": "retrieve"})
    rows = waterfalls(found(trace, FUSED), QRELS, [NDCG], {})[0]
    # Relevant: a, b, c of q1 and d of q2. b and d are in no list; a is served at rank 3 of 2.
    assert [(r.stage, r.relevant_in, r.relevant_out, r.lost) for r in rows] == [
        ("bm25", 4, 2, 2),
        ("dense", 4, 1, 3),
        ("fused", 2, 2, 0),
        ("served", 2, 1, 1),
    ]
    # Of bm25 in the best order: (3 + 1/log2(3)) / (3 + 2/log2(3)) = .8519 for q1, 0 for q2.
    assert rows[0].ceiling == {"nDCG@2": pytest.approx(0.8519 / 2, abs=1e-4)}
    assert rows[3].ceiling == {"nDCG@2": pytest.approx(1 / (3 + 2 / np.log2(3)) / 2)}


def test_parts_by_grade_add_up_and_slices_have_ceilings_of_their_own() -> None:
    trace = from_runs({"bm25": BM25, "dense": DENSE, "fused": FUSED}, {"dense": "retrieve"})
    way = found(trace, FUSED)
    whole, parts = waterfalls(way, QRELS, [NDCG], {"first": {"q1"}, "second": {"q2"}})
    assert list(parts) == ["grade 3", "grade 2", "grade 1", "first", "second"]
    for chosen in (list(parts)[:3], list(parts)[3:]):
        lost = np.sum([[row.lost for row in parts[name]] for name in chosen], axis=0)
        assert lost.tolist() == [row.lost for row in whole]
    assert [row.lost_share for row in parts["grade 3"]] == [0, 1, 0, 1]  # served at rank 3 of 2
    assert parts["grade 3"][0].ceiling == {}
    # Of q1 alone, .8519 as above; of q2, nothing.
    assert parts["first"][0].ceiling == {"nDCG@2": pytest.approx(0.8519, abs=1e-4)}
    assert parts["second"][0].ceiling == {"nDCG@2": 0}
    assert parts["second"][3].lost_share is None  # nothing was given to it


def test_where_each_document_was_lost() -> None:
    trace = from_runs({"bm25": BM25, "dense": DENSE, "fused": FUSED}, {"dense": "retrieve"})
    made = found(trace, FUSED)
    where = {-2: "retrieval", -1: "served"} | dict(enumerate(s.name for s in made.stages))
    lost = dict(zip(made.doc_id, (where[at] for at in made.lost_at.tolist()), strict=True))
    # A document that is served has not been lost; one beyond k was lost by the serving.
    assert lost == {"a": "served", "b": "retrieval", "c": "served", "d": "retrieval"}
    assert made.lost_at.tolist() == [3, -2, -1, -2]


def test_a_filter_loses_what_it_leaves_out() -> None:
    kept = Run.from_dict({"q1": {"x": 9, "c": 8}, "q2": {"e": 1}}, "kept")
    trace = from_runs({"bm25": BM25, "kept": kept}, {"kept": "filter"})
    made = found(trace, kept)
    assert made.stages[int(made.lost_at[0])].name == "kept"
    assert [row.lost for row in waterfalls(made, QRELS, [NDCG], {})[0]] == [2, 1, 0]


def test_losses_add_up_to_what_dcg_lacks() -> None:
    made = found(from_runs({"bm25": BM25}, {}), BM25)
    # q1: IDCG@2 = 3 + 2/log2(3); x, a gives 3/log2(3).
    assert made.loss[made.query == 0].sum() == pytest.approx(3 + 2 / np.log2(3) - 3 / np.log2(3))


def test_a_change_that_is_made_gives_what_the_counterfactual_says() -> None:
    """A fusion of twice as many documents, and one of all: made, not guessed."""
    rng = np.random.default_rng(1)
    docs = [f"d{n}" for n in range(12)]
    queries = [f"q{n}" for n in range(8)]
    qrels = Qrels.from_dict(
        {q: {d: int(rng.integers(0, 3)) for d in docs} | {"d0": 1} for q in queries}
    )
    lists = [
        Run.from_dict(
            {q: dict(zip(docs, rng.permutation(12).tolist(), strict=True)) for q in queries}, n
        )
        for n in ("left", "right")
    ]
    served = reciprocal_rank(lists, depth=3, name="fused")
    stages = {"left": lists[0], "right": lists[1], "fused": served}
    trace = from_runs(stages, {"right": "retrieve", "fused": "fuse"})
    measure = parse("nDCG@5")
    made = roads(trace, served, qrels, qrels.query_ids, 5, 1.0)
    present = values_of(served, qrels, measure, qrels.query_ids)
    by_change = {
        fix.change: fix for fix in fixes(made, qrels, measure, present, qrels.query_ids)[0]
    }
    for change, run in {
        "depth 3 → 6": reciprocal_rank(lists, depth=6),
        "by rank (reciprocal rank fusion, k=60)": reciprocal_rank(lists),
    }.items():
        really = values_of(run, qrels, measure, qrels.query_ids) - present
        assert by_change[change].gain == pytest.approx(really.mean(), abs=1e-12), change
        assert not by_change[change].bound
    assert by_change["perfect fusion"].bound


# --- laws ---

GRADES = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 3), min_size=1)
LISTS = st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1)


@st.composite
def pipelines(draw: Any) -> tuple[Qrels, Trace, Run]:
    """Two retrievers, a fusion that may drop documents, and a reranker of its top."""
    grades, ranked = {}, [{}, {}, {}, {}]
    for query in ("q1", "q2", "q3"):
        grades[query] = draw(GRADES) | {"z": 1}
        left, right = draw(LISTS), draw(LISTS)
        union = list(dict.fromkeys([*left, *right]))
        fused = draw(st.permutations(union))[: draw(st.integers(1, len(union)))]
        top = draw(st.permutations(fused))[: draw(st.integers(1, len(fused)))]
        for at, docs in enumerate((left, right, fused, top)):
            ranked[at][query] = {doc: -float(rank) for rank, doc in enumerate(docs)}
    names = ("left", "right", "fused", "top")
    runs = {name: Run.from_dict(rows, name) for name, rows in zip(names, ranked, strict=True)}
    kinds: Any = {"left": "retrieve", "right": "retrieve", "fused": "fuse", "top": "rerank"}
    return Qrels.from_dict(grades), from_runs(runs, kinds), runs["top"]


@FEW
@given(pipelines())
def test_counts_add_up_and_ceilings_bound(made: tuple[Qrels, Trace, Run]) -> None:
    qrels, trace, run = made
    way = found(trace, run, qrels, 3)
    measure = parse("nDCG@3")
    rows = waterfalls(way, qrels, [measure], {})[0]
    assert all(row.relevant_in == row.relevant_out + row.lost for row in rows)
    fused, top, served = rows[2:]
    assert top.relevant_in == fused.relevant_out
    assert served.relevant_in == top.relevant_out
    assert fused.relevant_in <= rows[0].relevant_out + rows[1].relevant_out
    value = values_of(run, qrels, measure, qrels.query_ids).mean()
    ceilings = [row.ceiling["nDCG@3"] for row in (fused, top, served)]
    assert ceilings[0] >= ceilings[1] - 1e-12 >= ceilings[2] - 2e-12 >= value - 3e-12


@FEW
@given(pipelines())
def test_a_perfect_stage_is_never_worse_than_the_present_one(
    made: tuple[Qrels, Trace, Run],
) -> None:
    qrels, trace, run = made
    measure = parse("nDCG@3")
    present = values_of(run, qrels, measure, qrels.query_ids)
    gains = fixes(found(trace, run, qrels, 3), qrels, measure, present, qrels.query_ids)[0]
    assert {fix.change for fix in gains} >= {
        "perfect retrieval",
        "perfect fusion",
        "perfect reranker",
    }
    assert all(fix.gain >= -1e-12 for fix in gains if fix.bound)


@pytest.mark.deep
@FEW
@given(pipelines(), st.randoms(use_true_random=False))
def test_the_order_of_rows_and_of_the_lists_of_a_file_does_not_matter(
    tmp_path_factory: pytest.TempPathFactory, made: tuple[Qrels, Trace, Run], random: Any
) -> None:
    qrels, trace, run = made
    lines = [json.loads(line_of(row)) for row in trace.frame.iter_rows(named=True)]
    for line in lines:
        random.shuffle(line["candidates"])
    queries = sorted({line["query_id"] for line in lines})
    random.shuffle(queries)  # the stages of each keep their order, which is that of the pipeline
    lines.sort(key=lambda line: queries.index(line["query_id"]))
    path = tmp_path_factory.mktemp("trace") / "trace.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    measure = parse("nDCG@3")
    present = values_of(run, qrels, measure, qrels.query_ids)

    def numbers(trace: Trace) -> list[Any]:
        way = found(trace, run, qrels, 3)
        named = name_modes(way, Evidence(qrels=qrels))
        gains = fixes(way, qrels, measure, present, qrels.query_ids)
        rows = waterfalls(way, qrels, [measure], {})[0]
        return [rows, gains, named.mode.tolist(), named.evidence, named.stage]

    assert numbers(read_trace(path)) == numbers(trace)


@FEW
@given(
    st.lists(st.integers(0, 3), max_size=4),
    st.lists(st.integers(0, 3), max_size=3),
    st.integers(1, 5),
)
def test_the_best_merge_is_the_best_of_all(old: list[int], new: list[int], k: int) -> None:
    from itertools import combinations

    new = sorted(new, reverse=True)
    made = best_merge(
        [(float(g), f"o{i}") for i, g in enumerate(old)],
        [(float(g), f"n{i}") for i, g in enumerate(new)],
        k,
    )

    def dcg(gains: list[int]) -> float:
        return sum(g / np.log2(rank + 1) for rank, g in enumerate(gains[:k], 1))

    size = len(old) + len(new)
    every = []
    for places in combinations(range(size), len(new)):
        left, right = iter(old), iter(new)
        every.append(dcg([next(right) if at in places else next(left) for at in range(size)]))
    got = dcg([(old if name[0] == "o" else new)[int(name[1:])] for name in made])
    assert got == pytest.approx(max(every, default=0.0))


def test_queries_without_a_trace_are_left_out() -> None:
    trace = from_runs({"bm25": BM25.only(["q1"])}, {})
    way = found(trace, BM25)
    assert way.traced.tolist() == [True, True, True, False]
    assert waterfalls(way, QRELS, [NDCG], {})[0][0].relevant_in == 3
    empty = Trace(trace.frame.filter(pl.lit(False)))
    assert [stage.name for stage in found(empty, BM25).stages] == ["served"]
