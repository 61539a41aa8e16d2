"""Per-query values against pytrec_eval-terrier 0.5.11 (trec_eval 9.0.8) and ir_measures 0.4.3.

Random rankings with ties, scores that only float32 makes tie, missing queries and negative
grades. What trec_eval computes as we do is compared to the last bit.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.measures import Evidence, Measure, entries, parse, reduce
from karat.measures.names import trec_name
from karat.tables import Qrels, Run

Scores = dict[str, dict[str, float]]
Grades = dict[str, dict[str, int]]

QUERIES = ("1", "10", "2", "é")
DOCS = tuple(f"{letter}{number}" for letter in "aBé" for number in range(8))
# The last three are 1 in float32, and 1e-60 is 0: ties for trec_eval 9 alone.
TIED = st.sampled_from((3.0, 2.0, 1.0, 0.0, -1.0, 1.000000001, 1.000000002, 0.99999999, 1e-60))
FREE = st.floats(-100, 100, allow_nan=False)
# -2 is spam in TREC Web, -1 pooled and not judged. A topic with nothing but those crashes or hangs
# pytrec_eval (its counts by grade get no room or less), so each topic has a grade of 0 or more.
GRADE = st.sampled_from((-2, -1, 0, 0, 0, 1, 1, 2, 3))


def judged(draw: st.DrawFn) -> dict[str, int]:
    grades = draw(st.dictionaries(st.sampled_from(DOCS), GRADE, min_size=1))
    if max(grades.values()) < 0:
        grades[min(grades)] = draw(st.sampled_from((0, 1)))
    return grades


@st.composite
def qrels_and_runs(draw: st.DrawFn) -> tuple[Grades, Scores]:
    qrels = {query: judged(draw) for query in QUERIES if draw(st.booleans())}
    qrels = qrels or {"1": judged(draw)}
    run: Scores = {}
    for query in (*QUERIES, "stranger"):
        kind = draw(st.sampled_from(("missing", "tied", "free")))
        if kind != "missing":
            score = TIED if kind == "tied" else FREE
            run[query] = draw(st.dictionaries(st.sampled_from(DOCS), score, min_size=1))
    return qrels, run


def evidence_of(qrels: Grades, run: Scores) -> Evidence:
    """As trec_eval 9 sees it: scores in single precision."""
    return reduce(Run.from_dict(run).in_single_precision(), Qrels.from_dict(qrels))


def ours(measure: Measure, evidence: Evidence, run: Scores) -> dict[str, float]:
    """Values of the queries both hold, 0 where ours is undefined: trec_eval knows no such state."""
    values = np.nan_to_num(measure(evidence), nan=0.0).tolist()
    pairs = zip(evidence.query_ids, values, strict=True)
    return {query: value for query, value in pairs if query in run}


# --- pytrec_eval ---


def in_both() -> list[str]:
    """Every entry with a name of trec_eval's that its version 9 has, at several cutoffs."""
    names = []
    only_10 = {"DCG", "IDCG"}
    about_all = {"NumQ"}  # a number of queries, not of each
    for entry in entries():
        if entry.symbol in only_10 | about_all:
            continue
        rounding = any(parameter.name == "rounding" for parameter in entry.parameters)
        inside = "(rounding=trec9)" if rounding else ""
        if entry.trec:
            names.append(f"{entry.symbol}{inside}")
        if entry.trec_at:
            ranks = entry.cutoff in {"optional", "required"}
            cutoffs = (1, 3, 5, 10, 20, 1000) if ranks else entry.trec_cutoffs
            names += [f"{entry.symbol}{inside}@{cutoff}" for cutoff in cutoffs]
    return names


def per_query(name: str, value: float) -> float:
    """gm_map and gm_bpref are logarithms in pytrec_eval's per-query values."""
    return math.log(max(value, 0.00001)) if name.startswith("gm_") else value


def assert_equal_to_trec_eval(qrels: Grades, run: Scores, level: int) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="needs pytrec_eval-terrier")
    measures = [parse(name, rel=level) for name in in_both()]
    # nDCG knows no level, in trec_eval as with us.
    named = {trec_name(measure): measure for measure in measures}
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, set(named), relevance_level=level)
    theirs = evaluator.evaluate(run)
    evidence = evidence_of(qrels, run)
    for name, measure in named.items():
        got = ours(measure, evidence, run)
        assert set(got) == set(theirs), name
        for query, value in got.items():
            expected = theirs[query][name]
            assert per_query(name, value) == expected, (name, query, value, expected)


@given(qrels_and_runs())
@settings(max_examples=80)
def test_trec_eval_9_to_the_last_bit(case: tuple[Grades, Scores]) -> None:
    assert_equal_to_trec_eval(*case, level=1)


@given(qrels_and_runs(), st.sampled_from((2, 3)))
@settings(max_examples=40)
def test_at_a_higher_level_of_relevance(case: tuple[Grades, Scores], level: int) -> None:
    assert_equal_to_trec_eval(*case, level=level)


@given(qrels_and_runs())
@settings(max_examples=40)
def test_only_judged_documents(case: tuple[Grades, Scores]) -> None:
    # trec_eval -J. Where nothing judged was returned its IPrec is 0/0, so that is left out.
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="needs pytrec_eval-terrier")
    qrels, run = case
    names = ["AP", "nDCG", "nDCG@5", "P@5", "R@5", "RR", "Bpref", "Rprec", "NumRet", "Success@5"]
    named = {trec_name(parse(name)): parse(name) for name in names}
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, set(named), judged_docs_only_flag=True)
    theirs = evaluator.evaluate(run)
    condensed = evidence_of(qrels, run).only_judged()
    for name, measure in named.items():
        for query, value in ours(measure, condensed, run).items():
            assert value == theirs[query][name], (name, query)


def test_a_query_the_run_lacks_scores_0_with_us_and_is_left_out_there() -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="needs pytrec_eval-terrier")
    qrels, run = {"1": {"a": 1}, "2": {"a": 1}}, {"1": {"a": 1.0}}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"map"}).evaluate(run)
    assert list(theirs) == ["1"]
    evidence = reduce(Run.from_dict(run), Qrels.from_dict(qrels))
    assert parse("AP")(evidence).tolist() == [1.0, 0.0]


# --- ir_measures ---


def _ir_measures() -> Any:
    if sys.version_info >= (3, 14):
        pytest.skip("ir_measures 0.4.3 does not run on Python 3.14 (ast.Num is gone)")
    return pytest.importorskip("ir_measures", reason="needs ir_measures")


def irm(names: list[str], qrels: Grades, run: Scores) -> dict[tuple[str, str], float]:
    """ir_measures' value of each (query, measure)."""
    ir_measures = _ir_measures()
    # Its NumRelRet prints as NumRet(rel=1), so results are matched by measure and not by name.
    asked = {ir_measures.parse_measure(name): name for name in names}
    found = ir_measures.iter_calc(list(asked), qrels, run)
    return {(metric.query_id, asked[metric.measure]): metric.value for metric in found}


def untied(draw: st.DrawFn, query: str) -> dict[str, float]:
    docs = draw(st.lists(st.sampled_from(DOCS), min_size=1, unique=True))
    return {doc: float(-rank) for rank, doc in enumerate(docs)}


@st.composite
def untied_runs(draw: st.DrawFn) -> tuple[Grades, Scores]:
    """No ties: ir_measures breaks them one way for RR@k and Judged@k, another for the rest."""
    qrels = {query: judged(draw) for query in QUERIES}
    return qrels, {query: untied(draw, query) for query in QUERIES if draw(st.booleans())}


# Spelt as ir_measures prints them, and as karat does where that differs.
PROVIDED = {
    "AP": "AP",
    "AP(rel=2)": "AP(rel=2)",
    "AP@3": "AP@3",
    "nDCG": "nDCG",
    "nDCG@3": "nDCG@3",
    "P@3": "P@3",
    "P(rel=2)@3": "P(rel=2)@3",
    "R@3": "R@3",
    "RR": "RR",
    "RR@3": "RR@3",
    "RR@10": "RR@10",
    "Rprec": "Rprec",
    "Bpref": "Bpref",
    "infAP": "infAP",
    "IPrec@0.1": "IPrec(rounding=trec9)@0.1",
    "Success@3": "Success@3",
    "SetP": "SetP",
    "SetR": "SetR",
    "SetF": "SetF",
    "NumRet": "NumRet",
    "NumRel": "NumRel",
    "NumRelRet": "NumRelRet",
}


@given(untied_runs())
@settings(max_examples=20)
def test_ir_measures(case: tuple[Grades, Scores]) -> None:
    qrels, run = case
    if not run:
        return  # ir_measures' providers do not take an empty run
    theirs = irm(list(PROVIDED), qrels, run)
    evidence = evidence_of(qrels, run)
    for name, spelling in PROVIDED.items():
        for query, value in ours(parse(spelling), evidence, run).items():
            expected = theirs[query, name]
            assert value == pytest.approx(expected, abs=1e-12), (name, query)


@given(untied_runs())
@settings(max_examples=30)
def test_judged_share_of_ir_measures(case: tuple[Grades, Scores]) -> None:
    # ir_measures counts any line of the qrels as judged; with us a grade below 0 is not.
    qrels = {
        query: {doc: abs(grade) for doc, grade in held.items()} for query, held in case[0].items()
    }
    run = case[1]
    if not run:
        return
    names = ["Judged@1", "Judged@5", "Judged@10"]
    theirs = irm(names, qrels, run)
    evidence = evidence_of(qrels, run)
    for name in names:
        for query, value in ours(parse(name), evidence, run).items():
            assert value == pytest.approx(theirs[query, name], abs=1e-12), (name, query)


@pytest.mark.parametrize(
    "spelling",
    ["nDCG(dcg='exp-log2')@10", "nDCG(dcg='log2')@5", "P(rel=2)@5", "RR(rel=2)", "IPrec@0.1"],
)
def test_ir_measures_prints_what_we_read(spelling: str) -> None:
    ir_measures = _ir_measures()
    printed: Any = str(ir_measures.parse_measure(spelling))
    assert parse(printed) == parse(spelling)
