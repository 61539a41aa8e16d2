"""What evaluate says a number could be: over orders of tied documents, over unjudged grades."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from karat.errors import InputError, UsageError
from karat.reports.writers.plain import to_json
from karat.tables import Qrels, Queries, Results
from karat.workflows.offline.evaluate import evaluate

# Query 1: a relevant and an irrelevant document tied; 2: nothing tied; 3 lacks in the run.
QRELS = {"1": {"a": 1, "b": 0}, "2": {"c": 1}, "3": {"d": 1}}
RUN = {"1": {"a": 5.0, "b": 5.0}, "2": {"x": 2.0, "c": 1.0}}


def said(results: Results, what: str) -> str:
    found = [note for note in results.notes if what in note]
    assert len(found) == 1, results.notes
    return found[0]


def test_bands_are_means_over_the_same_queries() -> None:
    # RR of query 1: b stands first by the rule (1/2); 1 or 1/2, 3/4 on average. 2: 1/2. 3: 0.
    [row] = evaluate(QRELS, RUN, "RR").results
    assert row.n == 3
    assert row.value == pytest.approx((1 / 2 + 1 / 2 + 0) / 3)
    assert row.tie_low == pytest.approx((1 / 2 + 1 / 2) / 3)
    assert row.tie_expected == pytest.approx((3 / 4 + 1 / 2) / 3)
    assert row.tie_high == pytest.approx((1 + 1 / 2) / 3)


def test_a_warning_where_a_printed_digit_could_change() -> None:
    note = said(evaluate(QRELS, RUN, "RR"), "order of tied documents could change")
    assert "RR 0.3333 could be 0.3333 to 0.5000" in note
    steady = evaluate(QRELS, RUN, "P@2")
    assert "no other order changes a printed digit" in said(steady, "tied in score")


def test_bounds_are_over_what_the_run_returned() -> None:
    # Query 2: x unjudged at rank 1, so RR is 1/2 or 1. Query 3 returned nothing: 0.
    [row] = evaluate(QRELS, RUN, "RR@10").results
    assert row.unjudged_low == pytest.approx((1 / 2 + 1 / 2) / 3)
    assert row.unjudged_high == pytest.approx((1 / 2 + 1) / 3)


def test_deep_measures_are_bounded_when_asked() -> None:
    assert evaluate(QRELS, RUN, "RR").results[0].unjudged_high is None
    assert evaluate(QRELS, RUN, "RR", bounds=True).results[0].unjudged_high is not None
    assert evaluate(QRELS, RUN, "RR@10", bounds=False).results[0].unjudged_high is None


def test_the_scale_decides_how_far() -> None:
    # DCG@10 of query 2: x at rank 1 gains at most the top of the scale; c gains 1/log2(3).
    known = 1 / 2 * 0.0 + 0.6309297535714575
    for scale, top in ((None, 1), ("0-3", 3), ((0, 5), 5)):
        [row] = evaluate({"2": {"c": 1}}, RUN | {"1": {}}, "DCG@10", scale=scale).results
        assert row.unjudged_high == pytest.approx(known + top)
    note = said(evaluate(QRELS, RUN, "RR@10", scale="0-3"), "unjudged documents could")
    assert "from 0 to 3 (declared)" in note
    assert "(the largest grade" in said(evaluate(QRELS, RUN, "RR@10"), "unjudged documents")


@pytest.mark.parametrize("scale", ["3", "a-b", "3-0", "1-1", (0,), (0, "x"), (0, float("inf"))])
def test_a_scale_that_is_none(scale: Any) -> None:
    with pytest.raises(UsageError, match="scale"):
        evaluate(QRELS, RUN, "RR", scale=scale)


def test_a_grade_off_the_scale_is_named() -> None:
    with pytest.raises(InputError, match="grade 1 of document a is not on the scale 2 to 3"):
        evaluate(QRELS, RUN, "RR", scale=(2, 3))


def test_bands_and_bounds_of_slices() -> None:
    queries = Queries(pl.DataFrame({"query_id": ["1", "2", "3"], "kind": ["x", "y", "y"]}))
    rows = evaluate(QRELS, RUN, "RR@10", queries=queries, by="kind").slices
    assert [(row.slice, row.tie_high, row.unjudged_high) for row in rows] == [
        ("x", 1.0, 0.5),
        ("y", 0.25, 0.5),
    ]


def test_trec_eval_has_neither() -> None:
    [row] = evaluate(QRELS, RUN, "map", compat="trec_eval-9").results
    assert row.tie_high is row.tie_expected is row.unjudged_high is None


def test_what_has_no_band_says_so() -> None:
    both = evaluate(QRELS, RUN, ["infAP", "Compat"], bounds=True)
    assert said(both, "no tie band for") == (
        "no tie band for infAP: its best and worst order are not known"
    )
    assert "no mean over tied orders for Compat" in said(both, "no mean over")
    assert "no other order" not in said(both, "tied in score")
    cut = evaluate(QRELS, RUN, "RR", depth=1)
    assert "RR: --depth may cut through a tie" in said(cut, "no mean over tied orders")
    bounds = said(both, "no unjudged bounds for")
    assert "infAP, Compat" in bounds
    dropped = evaluate(QRELS, RUN, "RR@10", judged_only=True)
    assert "unjudged documents are dropped" in said(dropped, "no unjudged bounds")


MARKED = Queries(
    pl.DataFrame({"query_id": ["1", "2", "3", "4"], "no_answer": [False, False, True, True]})
)
ANSWERABLE = {"1": {"a": 1, "b": 0}, "2": {"c": 1}}


def test_queries_without_an_answer_have_a_row_of_their_own() -> None:
    run = RUN | {"3": {"z": 0.5}}
    results = evaluate(ANSWERABLE, run, "RR", queries=MARKED)
    [row] = results.no_answer
    # 3 was answered, 4 is not in the run: silence.
    assert (row.n, row.silent, row.share, row.missing) == (2, 1, 0.5, 1)
    assert (results.results[0].n, results.results[0].unjudged) == (2, 0)
    assert json.loads(to_json(results))["no_answer"][0]["share"] == 0.5


def test_a_threshold_makes_silence_of_low_scores() -> None:
    run = RUN | {"3": {"z": 0.5}}
    [row] = evaluate(ANSWERABLE, run, "RR", queries=MARKED, threshold=1.0).no_answer
    assert (row.silent, row.share, row.threshold) == (2, 1.0, 1.0)
    # Best scores 5, 2 and .5: up to .5 nothing is withheld (but 4 is silent anyhow), above it 3.
    assert [(p.threshold, p.silent_no_answer, p.silent_answerable) for p in row.curve[:2]] == [
        (0.5, 0.5, 0.0),
        (2.0, 1.0, 0.0),
    ]
    with pytest.raises(UsageError, match="and there are none"):
        evaluate(ANSWERABLE, run, "RR", threshold=1.0)


def test_a_marked_query_may_have_related_documents_but_no_answer() -> None:
    graded = ANSWERABLE | {"2": {"c": 3}, "3": {"near": 1}}
    results = evaluate(graded, RUN, "RR", queries=MARKED)
    assert (results.results[0].n, results.results[0].undefined) == (2, 0)
    with pytest.raises(InputError, match="marked no_answer, but document right has grade 3"):
        evaluate(graded | {"3": {"right": 3}}, RUN, "RR", queries=MARKED)


def test_marked_queries_are_in_no_slice() -> None:
    frame = MARKED.frame.with_columns(kind=pl.Series(["x", "x", "none", "none"]))
    rows = evaluate(ANSWERABLE, RUN, "RR", queries=Queries(frame), by="kind", complete=True).slices
    assert [row.slice for row in rows] == ["x"]


@pytest.mark.deep  # a run of 100,000 lines; small ones: above
def test_the_run_with_nearly_everything_tied_has_a_wide_band(field_data: Path) -> None:
    """rutcor03100 of TREC 2003: trec_eval on document ids turned round gives MAP .0582 and .0737,
    P@10 .122 and .158, RR .280 and .338: all within the band.
    """
    robust = field_data / "robust03"
    results = evaluate(
        robust / "qrels.robust03.gz", robust / "input.rutcor03100.gz", ["AP", "P@10", "RR"]
    )
    inside = {"AP": (0.0582, 0.0737), "P@10": (0.122, 0.158), "RR": (0.280, 0.338)}
    for row in results.results:
        assert row.tied is not None
        assert row.tied > 0.999
        assert row.tie_low is not None
        assert row.tie_high is not None
        assert row.tie_low < inside[row.measure][0] < inside[row.measure][1] < row.tie_high
        assert row.tie_high > 2 * row.tie_low
    assert "99.97 %" in said(results, "tied in score")
    assert "could change printed digits" in said(results, "order of tied documents")


def test_a_declared_scale_goes_with_the_judgments() -> None:
    qrels = Qrels.from_dict(QRELS).on_scale((0, 4))
    assert evaluate(qrels, RUN, "ERR").results[0].value == pytest.approx(
        # R = 1/16: query 1 at rank 2, query 2 at rank 2, query 3 nothing.
        (1 / 32 + 1 / 32 + 0) / 3
    )


def test_a_scale_that_starts_above_nothing_leaves_the_value_outside() -> None:
    # Grades 1 to 3: whatever x is, it is relevant, and RR of query 2 is 1. The value takes it as 0.
    [row] = evaluate({"2": {"c": 1}}, RUN | {"1": {}}, "RR@10", scale=(1, 3)).results
    assert (row.value, row.unjudged_low, row.unjudged_high) == (0.5, 1.0, 1.0)


def test_a_cut_through_a_tie_moves_even_a_set() -> None:
    # a and b tied, cut after one: precision of the set is 0 (as ordered) or 1.
    [row] = evaluate({"1": {"a": 1}}, {"1": {"a": 5.0, "b": 5.0}}, "SetP", depth=1).results
    assert (row.value, row.tie_low, row.tie_expected, row.tie_high) == (0.0, 0.0, None, 1.0)


def test_err_says_what_it_takes_as_the_highest_grade() -> None:
    found = evaluate(QRELS, RUN, ["ERR@10", "ERR(max=4)"])
    assert said(found, "highest grade").startswith("ERR@10: 1 is taken as the highest grade (the")
    assert "4 is taken" not in str(found.notes)


def test_documents_under_several_subtopics_are_told() -> None:
    frame = pl.DataFrame(
        {
            "query_id": ["1", "1", "2"],
            "subtopic": ["x", "y", "x"],
            "doc_id": ["a", "a", "c"],
            "grade": [0.0, 1.0, 1.0],
        }
    )
    assert "use the best grade" in said(evaluate(Qrels(frame), RUN, "RR"), "another subtopic")
    with pytest.raises(InputError, match="does not support subtopics"):
        evaluate(Qrels(frame), RUN, "map", compat="trec_eval-9")
