"""Per-query values against the tools whose numbers they are.

Those are pytrec_eval-terrier 0.5.11 (trec_eval 9.0.8), ir_measures 0.4.3 and pyndeval 0.0.8.

Random rankings with ties, scores that only float32 makes tie, missing queries and negative
grades. What trec_eval computes as we do is compared to the last bit.
"""

from __future__ import annotations

import math
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.choosing import FEW

from karat import formats
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
def test_trec_eval_9_to_the_last_bit(case: tuple[Grades, Scores]) -> None:
    assert_equal_to_trec_eval(*case, level=1)


@FEW
@given(qrels_and_runs(), st.sampled_from((2, 3)))
def test_at_a_higher_level_of_relevance(case: tuple[Grades, Scores], level: int) -> None:
    assert_equal_to_trec_eval(*case, level=level)


@FEW
@given(qrels_and_runs())
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
@settings(max_examples=5 if settings.default.max_examples <= 25 else 20)
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


@FEW
@given(untied_runs())
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


# --- user models, and pairs ---

RISING = {"Compat(p=0.95)": "Compat", "Compat(p=0.8)": "Compat(p=0.8)"}


@FEW
@given(untied_runs())
def test_compat_of_ir_measures(case: tuple[Grades, Scores]) -> None:
    # It takes the score of a document that was not retrieved as 0, so ours are all above that;
    # and it puts documents with equal scores by id ascending, so there are none.
    qrels, run = case
    if not run:
        return
    above = {query: {doc: s + 100 for doc, s in docs.items()} for query, docs in run.items()}
    theirs = irm(list(RISING), qrels, above)
    evidence = evidence_of(qrels, above)
    for name, spelling in RISING.items():
        for query, value in ours(parse(spelling), evidence, above).items():
            assert value == pytest.approx(theirs[query, name], abs=1e-9), (name, query)


PAIRS = ("Accuracy", "Accuracy@3", "Accuracy(rel=2)")


@FEW
@given(untied_runs())
def test_accuracy_of_ir_measures(case: tuple[Grades, Scores]) -> None:
    # Where there is no pair it has no value, or divides by 0; there a query is left out.
    qrels, run = case
    evidence = evidence_of(qrels, run)
    for name in PAIRS:
        values = parse(name)(evidence)
        defined = [q for q, v in zip(evidence.query_ids, values, strict=True) if not math.isnan(v)]
        some = {query: run[query] for query in defined}
        theirs = irm([name], qrels, some) if some else {}
        for query, value in zip(evidence.query_ids, values, strict=True):
            if query in some:
                assert value == pytest.approx(theirs[query, name], abs=1e-12), (name, query)


def test_accuracy_of_ir_measures_where_there_is_no_pair() -> None:
    qrels, run = {"1": {"a": 1, "b": 1}}, {"1": {"a": 2.0, "b": 1.0}}
    with pytest.raises(ZeroDivisionError):
        irm(["Accuracy"], qrels, run)
    assert np.isnan(parse("Accuracy")(evidence_of(qrels, run))).all()


@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval is written in Perl")
def test_err_of_gdeval() -> None:
    # Numbers for ids of topics, grades to 4; a topic without a grade above 0 is left out there.
    rng = np.random.default_rng(7)
    docs = [f"d{number}" for number in range(20)]
    qrels = {
        str(query): {doc: int(rng.integers(0, 5)) for doc in rng.choice(docs, 9, replace=False)}
        for query in range(1, 41)
    }
    run = {
        query: {doc: float(rng.integers(0, 6)) for doc in rng.choice(docs, 12, replace=False)}
        for query in qrels
    }
    theirs = irm(["ERR@3", "ERR@10", "ERR@100"], qrels, run)
    evidence = evidence_of(qrels, run)
    compared = 0
    for name in ("ERR@3", "ERR@10", "ERR@100"):
        measure = parse(name.replace("ERR", "ERR(max=4)"))
        for query, value in ours(measure, evidence, run).items():
            if (query, name) in theirs:
                assert value == pytest.approx(theirs[query, name], abs=5.1e-6), (name, query)
                compared += 1
    assert compared > 100


@given(untied_runs())
@settings(max_examples=5 if settings.default.max_examples <= 25 else 20)
def test_condensed_lists_of_ir_measures(case: tuple[Grades, Scores]) -> None:
    qrels, run = case
    if not run:
        return
    names = ["nDCG(judged_only=True)@3", "AP(judged_only=True)", "P(judged_only=True)@3"]
    theirs = irm(names, qrels, run)
    evidence = evidence_of(qrels, run)
    for name in names:
        for query, value in ours(parse(name), evidence, run).items():
            assert value == pytest.approx(theirs[query, name], abs=1e-12), (name, query)


# --- pyndeval ---

Judged = dict[tuple[str, str], int]
BY_SUBTOPIC = st.dictionaries(
    st.tuples(st.sampled_from("123456"), st.sampled_from(DOCS[::3])),
    st.sampled_from((-2, 0, 0, 1, 1, 2)),
    min_size=1,
)
# ERR-IA@1 is not normalised there.
DIVERSE = {
    **{f"alpha-nDCG@{k}": f"alphanDCG@{k}" for k in (1, 2, 5, 10, 20)},
    **{f"ERR-IA@{k}": f"ERRIA@{k}" for k in (2, 5, 10, 20)},
    **{f"strec@{k}": f"StRecall@{k}" for k in (1, 2, 5, 10, 20)},
}


@FEW
@given(
    st.dictionaries(st.sampled_from(QUERIES), BY_SUBTOPIC, min_size=1),
    untied_runs(),
    st.sampled_from((0.5, 0.3, 1.0)),
    st.sampled_from((1, 2)),
)
def test_pyndeval(
    judged: dict[str, Judged], case: tuple[Grades, Scores], alpha: float, rel: int
) -> None:
    # pyndeval 0.0.8 puts documents with equal scores by id ascending, so there are none.
    pyndeval = pytest.importorskip("pyndeval", reason="needs pyndeval")
    rows = [(q, s, doc, g) for q, of in judged.items() for (s, doc), g in of.items()]
    rows.append(("0", "7", "x", 1))  # so that there are two subtopics at least
    run = {q: docs for q, docs in case[1].items() if q in judged}
    if not run or len({subtopic for _, subtopic, _, _ in rows}) < 2:
        return
    evaluator = pyndeval.RelevanceEvaluator(rows, list(DIVERSE), relevance_level=rel, alpha=alpha)
    theirs = evaluator.evaluate([(q, doc, s) for q, docs in run.items() for doc, s in docs.items()])
    columns = ["query_id", "subtopic", "doc_id", "grade"]
    qrels = Qrels(pl.DataFrame(rows, schema=columns, orient="row"))
    evidence = reduce(Run.from_dict(run), qrels)
    for name, spelling in DIVERSE.items():
        symbol, _, k = spelling.partition("@")
        with_alpha = f"alpha={alpha}, " if symbol != "StRecall" else ""
        measure = parse(f"{symbol}({with_alpha}rel={rel})@{k}")
        for query, value in ours(measure, evidence, run).items():
            assert value == pytest.approx(theirs[query][name], abs=1e-12), (name, query)


# --- trec_eval 10 ---


def test_rbp_on_the_test_of_trec_eval(field_data: Path) -> None:
    # Queries 301 and 302 in test/out.test.aq of trec_eval 10.0, whose RBP reads memory it never
    # set: the numbers of its own test are right, and others need not be.
    run = formats.read_run(field_data / "trec_eval/results.test")
    evidence = reduce(run, formats.read_qrels(field_data / "trec_eval/qrels.test"))
    for name, expected in {
        "RBP(p=0.9)": [0.1861, 0.7628],
        "RBPresid(p=0.9)": [0.0610, 0.0001],
        "Bpref": [0.1230, 0.4712],
        "infAP": [0.0324, 0.4175],
    }.items():
        assert evidence.query_ids[:2] == ["301", "302"]
        assert parse(name)(evidence)[:2].round(4).tolist() == expected, name
