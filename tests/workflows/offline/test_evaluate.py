"""Evaluate: topic sets, states, counts, weights, slices, intervals."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.choosing import FEW

import karat
from karat.errors import InputError, UsageError
from karat.measures import Entry, entries
from karat.measures.entry import NEVER
from karat.reports.writers.plain import to_json
from karat.tables import Documents, Qrels, Queries, Result, Results, Run
from karat.workflows.offline.evaluate import evaluate

# One query for each state. In "found" the relevant document stands at rank 2.
QRELS = {
    "found": {"a": 1, "b": 0},
    "zero": {"a": 1},
    "empty": {"a": 1},
    "missing": {"a": 1},
    "failed": {"a": 1},
    "bare": {"a": 0},
}
RUN = {
    "found": {"b": 2.0, "a": 1.0},
    "zero": {"x": 1.0},
    "empty": {},
    "failed": None,
    "bare": {"a": 1.0},
    "stranger": {"a": 1.0},
}


def only(results: Results) -> Result:
    assert len(results.results) == 1
    return results.results[0]


def states(results: Results) -> dict[str, tuple[float | None, str]]:
    return {row.query_id: (row.value, row.state) for row in results.per_query}


def test_the_states_of_queries_and_their_counts() -> None:
    results = evaluate(QRELS, Run.from_dict(RUN), ["RR"], per_query=True)
    assert states(results) == {
        "found": (0.5, "ok"),
        "zero": (0.0, "ok"),
        "empty": (0.0, "empty"),
        "missing": (0.0, "missing"),
        "failed": (None, "failed"),
        "bare": (None, "undefined"),
        "stranger": (None, "unjudged"),
    }
    row = only(results)
    assert row.value == 0.125  # (1/2 + 0 + 0 + 0) / 4
    assert (row.n, row.empty, row.missing, row.failed, row.undefined, row.unjudged) == (
        4, 1, 1, 1, 1, 1,
    )  # fmt: skip


def test_each_state_is_said_with_its_queries() -> None:
    said = evaluate(QRELS, Run.from_dict(RUN), ["RR"]).notes
    for name in ("failed", "missing", "empty", "stranger", "bare"):
        assert any("1 query" in note and name in note for note in said), name


def test_complete_takes_every_judged_query() -> None:
    results = evaluate(QRELS, Run.from_dict(RUN), ["RR"], complete=True, per_query=True)
    assert states(results)["bare"] == (0.0, "ok")
    assert states(results)["failed"] == (None, "failed")
    row = only(results)
    assert (row.value, row.n, row.undefined) == (0.1, 5, 0)  # 0.5 / 5
    assert "trec_eval differs" not in " ".join(results.notes)


def test_without_complete_the_difference_to_trec_eval_is_said() -> None:
    assert "trec_eval differs here" in " ".join(evaluate(QRELS, Run.from_dict(RUN), ["RR"]).notes)
    same = evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, ["RR"])
    assert "trec_eval" not in " ".join(same.notes)


def test_a_measure_may_be_undefined_for_a_query_of_the_topic_set() -> None:
    # Nothing was returned, so no share of it is judged.
    results = evaluate({"q": {"a": 1}, "p": {"a": 1}}, {"q": {"a": 1.0}}, ["Judged@5"])
    row = only(results)
    assert (row.value, row.n, row.missing, row.undefined) == (1.0, 1, 0, 1)


def test_no_query_has_a_value() -> None:
    results = evaluate({"q": {"a": 0}}, {"q": {"a": 1.0}}, ["RR"])
    row = only(results)
    assert (row.value, row.n, row.undefined, row.judged) == (None, 0, 1, None)
    assert "no interval for RR: no query has a value" in results.notes
    assert json.loads(to_json(results))["results"][0]["value"] is None


def test_a_run_that_shares_no_query_is_an_error() -> None:
    with pytest.raises(InputError, match="no query of the run is in the qrels") as caught:
        evaluate({"q1": {"a": 1}}, {"Q1": {"a": 1.0}})
    assert "the run has Q1, the qrels have q1" in str(caught.value)


def test_a_run_that_answered_nothing_is_none() -> None:
    row = only(evaluate({"q": {"a": 1}}, Run.from_dict({"q": {}}), ["RR"]))
    assert (row.value, row.empty, row.tied) == (0.0, 1, None)


# The third document is relevant, the first is not judged.
DEEP = {"q": {"x": 3.0, "b": 2.0, "a": 1.0}}


def test_depth_cuts_rankings() -> None:
    qrels = {"q": {"a": 1, "b": 0}}
    assert only(evaluate(qrels, DEEP, ["RR"], depth=3)).value == 1 / 3
    assert only(evaluate(qrels, DEEP, ["RR"], depth=2)).value == 0.0
    assert only(evaluate(qrels, DEEP, ["NumRet"], depth=2)).value == 2
    with pytest.raises(UsageError, match="depth must be 1 or more, got 0"):
        evaluate(qrels, DEEP, depth=0)


def test_judged_only_drops_unjudged_documents() -> None:
    qrels = {"q": {"a": 1, "b": 0}}
    assert only(evaluate(qrels, DEEP, ["RR"], judged_only=True)).value == 0.5
    # The cut comes first: of x, b only b is left.
    assert only(evaluate(qrels, DEEP, ["NumRet"], judged_only=True, depth=2)).value == 1


def test_ties_are_those_of_the_ranking_that_is_left() -> None:
    qrels = {"q": {"a": 1, "b": 0}}
    run = {"q": {"a": 3.0, "b": 2.0, "x": 2.0, "y": 2.0, "z": 1.0}}

    def tied(**rules: Any) -> float | None:
        return only(evaluate(qrels, run, ["RR"], **rules)).tied

    assert tied() == 3 / 5
    assert tied(depth=4) == 3 / 4
    # Of the first two, one is tied, with documents below the cut: another order would show them.
    assert tied(depth=2) == 1 / 2
    assert tied(depth=1) == 0.0
    # a and b are left, which do not tie.
    assert tied(judged_only=True) == 0.0
    # Nothing is left at all.
    nothing = {"q": {"x": 1.0, "y": 1.0}}
    assert only(evaluate(qrels, nothing, ["RR"], judged_only=True)).tied is None
    # Judged documents that tie do so still.
    assert only(evaluate(qrels, {"q": {"a": 1.0, "b": 1.0}}, ["RR"], judged_only=True)).tied == 1.0


def test_grades_below_1_need_rel() -> None:
    qrels = {"q": {"a": 0.9, "b": 0.4}}
    with pytest.raises(InputError, match="no grade reaches 1") as caught:
        evaluate(qrels, DEEP)
    assert "the highest is 0.9" in str(caught.value)
    assert "lower rel to 0.4" in str(caught.value)
    assert only(evaluate(qrels, DEEP, ["RR"], rel=0.5)).value == 1 / 3
    assert only(evaluate(qrels, DEEP, ["RR"], rel=0.4)).value == 0.5
    # Where a grade reaches 1, a fraction below it is a grade like any other.
    assert only(evaluate({"q": {"a": 1, "b": 0.4}}, DEEP, ["RR"])).value == 1 / 3
    with pytest.raises(UsageError, match="rel=0 is not a number above 0"):
        evaluate(qrels, DEEP, rel=0)


WEIGHED = Qrels.from_dict({f"q{i}": {"a": 1} for i in range(1, 5)})
# RR 1, 1/2, 0, 0.
RANKED = {"q1": {"a": 1.0}, "q2": {"b": 2.0, "a": 1.0}, "q3": {"b": 1.0}, "q4": {"b": 1.0}}


def queries(**columns: list[Any]) -> Queries:
    return Queries(pl.DataFrame({"query_id": ["q1", "q2", "q3", "q4"], **columns}))


def test_weights_weigh_the_mean_and_the_judged_share() -> None:
    about = queries(weight=[1.0, 2.0, 1.0, 4.0])
    row = only(evaluate(WEIGHED, RANKED, ["RR@1"], queries=about))
    assert row.value == 0.125  # 1 x 1 / (1 + 2 + 1 + 4)
    assert row.judged == 0.125  # only q1's first document is judged
    row = only(evaluate(WEIGHED, RANKED, ["RR"], queries=about))
    assert row.value == 0.25  # (1 x 1 + 2 x 1/2) / 8
    # trec_eval knows no weights.
    assert only(evaluate(WEIGHED, RANKED, ["RR"], queries=about, compat="trec_eval-9")).value == (
        0.375  # (1 + 1/2) / 4
    )


def test_every_judged_query_needs_a_weight() -> None:
    about = Queries(pl.DataFrame({"query_id": ["q1"], "weight": [1.0]}), source="queries.csv")
    with pytest.raises(UsageError, match=r"queries\.csv has weights, but none for query q2"):
        evaluate(WEIGHED, RANKED, queries=about)


def test_strata_narrow_the_interval() -> None:
    # Most of the spread lies between the strata: (1, 1/2, 1, 1/2) and (0, 0).
    ids = ["q1", "q2", "q5", "q6", "q3", "q4"]
    judged = Qrels.from_dict({query: {"a": 1} for query in ids})
    ranked = RANKED | {"q5": RANKED["q1"], "q6": RANKED["q2"]}
    plain = only(evaluate(judged, ranked, ["RR"]))
    about = Queries(pl.DataFrame({"query_id": ids, "stratum": ["head"] * 4 + ["tail"] * 2}))
    stratified = only(evaluate(judged, ranked, ["RR"], queries=about))
    assert stratified.value == plain.value == 0.5
    assert plain.ci_low is not None
    assert stratified.ci_low is not None
    # Within head the deviations from its mean 3/4 are ±1/4, divided by the sum of weights 6:
    # variance 4 x (1/24)² x 4/(4-1) = 1/108; t of 4 degrees of freedom is 2.776445 (any table).
    assert stratified.value - stratified.ci_low == pytest.approx(2.776445 / 108**0.5, abs=1e-6)
    assert stratified.ci_low > plain.ci_low


def test_slices_hold_every_query_once() -> None:
    about = Queries(pl.DataFrame({"query_id": ["q1", "q2", "q3"], "kind": ["x", "y", "x"]}))
    results = evaluate(WEIGHED, RANKED, ["RR"], queries=about, by=["kind"])
    found = {row.slice: (row.value, row.n) for row in results.slices}
    # q4 has no kind. x: (1 + 0) / 2.
    assert found == {"(none)": (0.0, 1), "x": (0.5, 2), "y": (0.5, 1)}
    assert {row.attribute for row in results.slices} == {"kind"}
    assert only(results).attribute is None
    assert results.slices == evaluate(WEIGHED, RANKED, "RR", queries=about, by="kind").slices
    assert any("RR where kind is y: one query has no spread" in note for note in results.notes)


def test_slicing_needs_queries_with_that_attribute() -> None:
    with pytest.raises(UsageError, match="fix: add the queries"):
        evaluate(WEIGHED, RANKED, by=["kind"])
    with pytest.raises(UsageError, match="did you mean kind"):
        evaluate(WEIGHED, RANKED, queries=queries(kind=["x"] * 4), by=["kinds"])


def test_runs_of_one_name_are_told_apart() -> None:
    runs = [Run.from_dict(RANKED, name=name) for name in ("a", "a-2", "a", "b")]
    names = [row.run for row in evaluate(WEIGHED, runs, ["RR"]).results]
    assert names == ["a", "a-2", "a-3", "b"]
    assert [run.name for run in runs] == ["a", "a-2", "a", "b"], "the caller's runs keep theirs"
    twice = evaluate(WEIGHED, [runs[0], runs[0]], ["RR"])
    assert [row.run for row in twice.results] == ["a", "a-2"]
    with pytest.raises(UsageError, match="no run to evaluate"):
        evaluate(WEIGHED, [])


MANY = Qrels.from_dict({f"{i}": {"a": 1} for i in range(40)})
# RR of query i is 1 / (i mod 4 + 1).
SPREAD = {
    f"{i}": {"a": 0.0} | {f"x{j}": 1.0 + j for j in range(i % 4)} for i in range(40)
}  # fmt: skip


def test_bca_is_repeatable_and_its_seed_matters() -> None:
    def ends(seed: int) -> tuple[float | None, float | None]:
        row = only(evaluate(MANY, SPREAD, ["RR"], interval="bca", seed=seed))
        assert row.ci_method == "bca"
        return row.ci_low, row.ci_high

    assert ends(1) == ends(1)
    assert ends(1) != ends(2)
    low, high = ends(0)
    student = only(evaluate(MANY, SPREAD, ["RR"]))
    assert (low, high) == pytest.approx((student.ci_low, student.ci_high), abs=0.02)
    assert any("seed 7" in n for n in evaluate(MANY, SPREAD, interval="bca", seed=7).notes)
    with pytest.raises(UsageError, match="seed must be 0 or more, got -1"):
        evaluate(MANY, SPREAD, interval="bca", seed=-1)


def test_all_values_equal_give_no_interval_and_a_reason() -> None:
    results = evaluate(MANY, {f"{i}": {"a": 1.0} for i in range(40)}, ["RR", "NumRet"])
    for row in results.results:
        assert (row.ci_low, row.ci_high, row.ci_method) == (None, None, None)
    assert "no interval for RR: all values are equal" in results.notes
    assert "no interval for NumRet: it is a sum" in results.notes


def test_no_interval_where_none_is_asked_for() -> None:
    results = evaluate(MANY, SPREAD, ["RR", "NumRet"], interval="none")
    assert all(row.ci_low is None for row in results.results)
    assert "interval" not in " ".join(results.notes)
    with pytest.raises(UsageError, match="unknown interval 'z'"):
        evaluate(MANY, SPREAD, interval="z")


def test_the_mean_lies_in_its_interval() -> None:
    row = only(evaluate(MANY, SPREAD, ["RR"]))
    # (1 + 1/2 + 1/3 + 1/4) / 4 = 25/48, ten times over. Squared deviations from it sum to
    # 10 x (205/144 - 4 x (25/48)²) = 3.3854; s = sqrt(3.3854 / 39), t(39) = 2.022691 (any table).
    assert row.value == pytest.approx(25 / 48, abs=1e-15)
    spread = math.sqrt(10 * (205 / 144 - 4 * (25 / 48) ** 2) / 39)
    reach = 2.022691 * spread / math.sqrt(40)
    assert row.ci_low == pytest.approx(25 / 48 - reach, abs=1e-6)
    assert row.ci_high == pytest.approx(25 / 48 + reach, abs=1e-6)


def test_the_interval_of_a_geometric_mean_is_on_its_own_scale() -> None:
    row = only(evaluate(MANY, SPREAD, ["GMAP"]))
    # Of 1, 1/2, 1/3, 1/4 it is (1/24)^(1/4).
    assert row.value == pytest.approx((1 / 24) ** 0.25, abs=1e-12)
    assert row.ci_low is not None
    assert row.ci_high is not None
    assert 0 < row.ci_low < row.value < row.ci_high < 1


def test_collapse_folds_chunks_into_documents() -> None:
    documents = Documents(
        pl.DataFrame({"doc_id": ["a#1", "a#2", "b#1"], "parent_id": ["a", "a", "b"]})
    )
    run = {"q": {"b#1": 3.0, "a#2": 2.0, "a#1": 1.0, "c": 0.5}}
    results = evaluate({"q": {"a": 1}}, run, ["RR", "NumRet"], documents=documents,
                       collapse="parent_id")  # fmt: skip
    assert [row.value for row in results.results] == [0.5, 3]
    with pytest.raises(UsageError, match="--documents FILE"):
        evaluate({"q": {"a": 1}}, run, collapse="parent_id")
    with pytest.raises(InputError, match="no column 'parent'"):
        evaluate({"q": {"a": 1}}, run, documents=documents, collapse="parent")


def test_the_order_of_measures_is_kept_and_each_comes_once() -> None:
    results = evaluate(WEIGHED, RANKED, ["P@5", "MRR", "AP", "recip_rank"])
    assert [row.measure for row in results.results] == ["P@5", "RR", "AP"]
    defaults = [row.measure for row in evaluate(WEIGHED, RANKED).results]
    assert defaults == ["nDCG@10", "RR@10", "P@10", "R@100", "AP"]


def test_an_unknown_version_of_trec_eval_names_those_there_are() -> None:
    with pytest.raises(UsageError, match="trec_eval-9 or trec_eval-10"):
        evaluate(WEIGHED, RANKED, compat="trec_eval")


def test_paths_dicts_and_frames_are_the_same(tmp_path: Path) -> None:
    qrels = [("q1", "a", 1), ("q2", "a", 0), ("q2", "b", 2)]
    run = [("q1", "b", 2.0), ("q1", "a", 1.0), ("q2", "b", 1.0)]
    (tmp_path / "qrels.trec").write_text("".join(f"{q} 0 {d} {g}\n" for q, d, g in qrels))
    (tmp_path / "run.trec").write_text("".join(f"{q} Q0 {d} 0 {s} t\n" for q, d, s in run))
    judged, ranked = ["query_id", "doc_id", "grade"], ["query_id", "doc_id", "score"]
    given = {
        "paths": (tmp_path / "qrels.trec", str(tmp_path / "run.trec")),
        "dicts": (
            {"q1": {"a": 1}, "q2": {"a": 0, "b": 2}},
            {"q1": {"b": 2.0, "a": 1.0}, "q2": {"b": 1.0}},
        ),
        "polars": (
            pl.DataFrame(qrels, schema=judged, orient="row"),
            pl.DataFrame(run, schema=ranked, orient="row"),
        ),
        "pandas": (pd.DataFrame(qrels, columns=judged), pd.DataFrame(run, columns=ranked)),
        "tables": (
            Qrels.from_dict({"q1": {"a": 1}, "q2": {"a": 0, "b": 2}}),
            Run.from_dict({"q1": {"b": 2.0, "a": 1.0}, "q2": {"b": 1.0}}),
        ),
    }
    for kind, (judgments, ranking) in given.items():
        results = karat.evaluate(judgments, ranking, ["RR", "NumRet"])
        assert [row.value for row in results.results] == [0.75, 3], kind
        assert results.results[0].run == "run", kind


RESULT_KEYS = {
    "run", "measure", "value", "aggregate", "ci_low", "ci_high", "ci_method", "n", "empty",
    "missing", "failed", "undefined", "unjudged", "judged", "tied",
    "tie_low", "tie_expected", "tie_high", "unjudged_low", "unjudged_high", "ci_reason",
}  # fmt: skip


def test_the_json_contract() -> None:
    about = queries(kind=["x", "x", "y", "y"])
    found = json.loads(
        to_json(evaluate(WEIGHED, RANKED, queries=about, by=["kind"], per_query=True))
    )
    assert set(found) == {"results", "slices", "per_query", "notes"}
    assert all(set(row) == RESULT_KEYS for row in found["results"])
    assert all(set(row) == RESULT_KEYS | {"attribute", "slice"} for row in found["slices"])
    keys = {"run", "measure", "query_id", "value", "state"}
    assert all(set(row) == keys for row in found["per_query"])
    assert set(json.loads(to_json(evaluate(WEIGHED, RANKED)))) == {"results", "notes"}


DOCS = st.sampled_from("abcde")
GRADES = st.dictionaries(DOCS, st.sampled_from((-1, 0, 1, 2)), min_size=1)
SCORES = st.dictionaries(DOCS, st.sampled_from((0.0, 1.0, 2.0, math.inf)), max_size=5)
NAMES = ["nDCG@3", "RR", "AP", "Judged@2", "Bpref", "GMAP", "NumRet", "SetF", "IPrec@0.5"]


@FEW
@given(
    qrels=st.dictionaries(st.sampled_from("1234"), GRADES, min_size=1),
    run=st.dictionaries(st.sampled_from("12345"), st.none() | SCORES),
    complete=st.booleans(),
    judged_only=st.booleans(),
    depth=st.none() | st.integers(1, 4),
    interval=st.sampled_from(("t", "none")),
)
def test_values_are_null_only_with_a_reason(
    qrels: dict[str, dict[str, float]], run: dict[str, dict[str, float] | None], **rules: Any
) -> None:
    ranked = [query for query, docs in run.items() if docs]
    if ranked and not set(run) & set(qrels):
        return  # an error of its own
    results = evaluate(qrels, Run.from_dict(run), NAMES, per_query=True, **rules)
    found = json.loads(to_json(results))  # which refuses NaN and infinity
    for row in found["per_query"]:
        assert (row["value"] is None) == (row["state"] in {"failed", "undefined", "unjudged"}), row
    for row in found["results"]:
        listed = [r for r in found["per_query"] if r["measure"] == row["measure"]]
        count = {state: sum(r["state"] == state for r in listed) for state in
                 ("ok", "empty", "missing", "failed", "undefined", "unjudged")}  # fmt: skip
        assert row["n"] == count["ok"] + count["empty"] + count["missing"]
        for state in ("empty", "missing", "failed", "undefined", "unjudged"):
            assert row[state] == count[state], state
        assert (row["value"] is None) == (row["n"] == 0)
        assert (row["ci_low"] is None) == (row["ci_method"] is None) == (row["ci_high"] is None)
        assert row["tied"] is None or 0 <= row["tied"] <= 1
        if row["aggregate"] == "mean" and row["n"]:
            values = [r["value"] for r in listed if r["value"] is not None]
            assert row["value"] == math.fsum(values) / len(values)


@pytest.mark.parametrize(
    "entry",
    [
        each
        for each in entries()
        if NEVER in each.undefined and each.direction != "none" and each.cutoff != "recall"
    ],
    ids=lambda entry: entry.symbol,
)
def test_a_query_without_a_relevant_document_has_no_value_under_any_measure(entry: Entry) -> None:
    typed = {"P": "P@2", "Success": "Success@2", "RBP": "RBP(p=0.8)"}.get(
        entry.symbol, entry.symbol
    )
    grades = {"q1": {"a": 1, "b": 0}, "q2": {"a": 0}}
    run = {query: {"a": 2.0, "b": 1.0} for query in grades}
    [row] = evaluate(grades, run, [typed]).results
    assert (row.n, row.undefined) == (1, 1)
    [row] = evaluate(grades, run, [typed], complete=True).results
    assert (row.n, row.undefined) == (2, 0)
