"""Explain: what each document adds, to the last bit."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.choosing import FEW

from karat.errors import InputError, UsageError
from karat.measures import Measure, entries, parse, reduce
from karat.measures.entry import REQUIRED, Entry
from karat.tables import Qrels, Queries, Run
from karat.tables.results import Explanation
from karat.workflows.offline.evaluate import evaluate
from karat.workflows.offline.explain import _adding_up, explain

QRELS = {"q": {"a": 2, "b": 0, "c": 1, "lost": 1, "best": 3}, "other": {"a": 1}}
RUN = {"q": {"a": 4.0, "x": 3.0, "b": 2.0, "c": 2.0, "y": 1.0}, "other": {"a": 1.0}}


def ways(entry: Entry) -> list[str]:
    """How to ask for a measure, with a cutoff and without."""
    if any(parameter.default is REQUIRED for parameter in entry.parameters):
        return [entry.example.measure] if entry.example else []
    return [
        entry.symbol + at
        for at in {
            "none": [""],
            "optional": ["", "@3"],
            "required": ["@3"],
            "recall": ["@0.5"],
            "multiple": ["@1"],
        }[entry.cutoff]
    ]


def additive(measure: Measure) -> bool:
    evidence = reduce(Run.from_dict(RUN), Qrels.from_dict(QRELS))
    return measure.terms(evidence) is not None


# Measures of diversity need judgments by subtopic; they have a test of their own.
PLAIN = [entry for entry in entries() if not entry.function.__module__.endswith(".diversity")]
ALL = [parse(name) for entry in PLAIN for name in ways(entry)]
ADDITIVE = [str(measure) for measure in ALL if additive(measure)]
OTHERS = [str(measure) for measure in ALL if not additive(measure)]


def test_there_are_measures_of_both_kinds() -> None:
    assert {"nDCG", "nDCG@3", "AP", "RR", "P@3", "Bpref", "infAP"} <= set(ADDITIVE)
    assert "SetF" in OTHERS


def test_ranks_grades_gains_and_shares() -> None:
    found = explain(QRELS, RUN, "q", "DCG@5")
    lines = [(line.rank, line.doc_id, line.grade, line.gain) for line in found.lines]
    # b and c tie, and go by document id, descending.
    assert lines == [
        (1, "a", 2, 2),
        (2, "x", None, 0),
        (3, "c", 1, 1),
        (4, "b", 0, 0),
        (5, "y", None, 0),
    ]
    # DCG = 2 / log2(2) + 1 / log2(4) = 2.5.
    assert [line.contribution for line in found.lines] == [2.0, 0.0, 0.5, 0.0, 0.0]
    assert [line.discount for line in found.lines][:3] == [1.0, None, 0.5]
    assert found.value == 2.5
    assert [line.tied for line in found.lines] == [False, False, True, True, False]
    assert [(line.doc_id, line.grade) for line in found.missed] == [("best", 3), ("lost", 1)]
    assert all(line.rank is line.score is line.contribution is None for line in found.missed)
    assert (found.state, found.run, found.measure, found.hidden) == ("ok", "run", "DCG@5", 0)


GRADES = st.dictionaries(st.integers(0, 30), st.sampled_from((-1, 0, 1, 2, 3)), min_size=1)
SCORES = st.dictionaries(
    st.integers(0, 40), st.floats(0, 4) | st.sampled_from((1.0, 2.0)), min_size=1
)


def check_sum(found: Explanation) -> None:
    shares = [line.contribution for line in found.lines if line.contribution is not None]
    if found.value is None:
        assert not shares
    else:
        assert math.fsum(shares) == found.value


@FEW
@given(grades=GRADES, scores=SCORES)
def test_shares_add_up_exactly_for_every_additive_measure(
    grades: dict[int, int], scores: dict[int, float]
) -> None:
    qrels = Qrels.from_dict({"q": {f"d{doc}": float(grade) for doc, grade in grades.items()}})
    run = Run.from_dict({"q": {f"d{doc}": score for doc, score in scores.items()}})
    results = evaluate(qrels, run, ADDITIVE, interval="none", per_query=True)
    values = {row.measure: row.value for row in results.per_query}
    for name in ADDITIVE:
        found = explain(qrels, run, "q", name, top=1)
        assert found.value == values[name], "explain and evaluate agree"
        check_sum(found)


def test_measures_of_diversity() -> None:
    # a covers 1; b 1 again and 2: gains 1 and .5 + 1; nothing new in c.
    columns = ["query_id", "subtopic", "doc_id", "grade"]
    judged = [("1", "a", 1), ("1", "b", 1), ("2", "b", 1), ("3", "c", 0), ("3", "lost", 1)]
    frame = pl.DataFrame([("q", *row) for row in judged], schema=columns, orient="row")
    run = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}
    for name in ("alphanDCG@3", "ERRIA@3", "StRecall"):
        found = explain(Qrels(frame), run, "q", name)
        gains = [1, 1, 0] if name == "StRecall" else [1, 1.5, 0]
        assert [line.gain for line in found.lines] == gains
        assert [line.doc_id for line in found.missed] == ["lost"]
        check_sum(found)


# Halfway between 1 and the next number: 1 + 2^-53 rounds to 1, and 1 + 3 x 2^-53 to 1 + 2^-51.
@example(shares=[1.0, 2.0**-53], ulps=1)
@FEW
@given(shares=st.lists(st.floats(1e-6, 1), min_size=1, max_size=50), ulps=st.integers(-3, 3))
def test_the_last_bits_go_to_some_share(shares: list[float], ulps: int) -> None:
    value = math.fsum(shares)
    value += ulps * math.ulp(value)
    adjusted = _adding_up(np.array(shares), value)
    assert math.fsum(adjusted) == value
    assert adjusted == pytest.approx(shares, rel=1e-9)


@pytest.mark.parametrize("name", OTHERS)
def test_a_measure_that_is_no_sum_says_so(name: str) -> None:
    found = explain(QRELS, RUN, "q", name)
    assert all(line.contribution is None for line in found.lines)
    assert any("is not a sum over documents" in note for note in found.notes)
    assert found.value is not None


def test_what_the_cutoff_leaves_out_is_hidden() -> None:
    run = {"q": {f"d{i:03}": -float(i) for i in range(200)}}
    qrels = {"q": {"d000": 1, "d150": 1}}
    found = explain(qrels, run, "q", "nDCG@10")
    assert ([line.rank for line in found.lines], found.hidden) == (list(range(1, 11)), 190)
    # What contributes is shown however deep it stands.
    found = explain(qrels, run, "q", "AP", top=2)
    assert ([line.rank for line in found.lines], found.hidden) == ([1, 2, 151], 197)
    assert found.missed == []


def test_a_query_the_run_lacks_scores_0() -> None:
    found = explain(QRELS, {"other": {"a": 1.0}}, "q")
    assert (found.value, found.state, found.lines) == (0.0, "missing", [])
    assert [line.doc_id for line in found.missed] == ["best", "a", "c", "lost"]


def test_a_query_that_was_not_answered() -> None:
    run = Run.from_dict({"other": {"a": 1.0}, "q": None})
    assert (explain(QRELS, run, "q").value, explain(QRELS, run, "q").state) == (None, "failed")
    run = Run.from_dict({"other": {"a": 1.0}, "q": {}})
    assert (explain(QRELS, run, "q").value, explain(QRELS, run, "q").state) == (0.0, "empty")


def test_a_query_with_nothing_to_find() -> None:
    found = explain({"q": {"a": 0}, "other": {"a": 1}}, RUN, "q")
    assert (found.value, found.state) == (None, "undefined")
    assert all(line.contribution is None for line in found.lines)


def test_rel_is_judged_by_all_queries_and_not_by_the_one() -> None:
    # Some grade reaches 1, so q's 0.5 is simply not relevant, as evaluate has it.
    qrels = {"q": {"a": 0.5}, "other": {"a": 1}}
    assert explain(qrels, RUN, "q", "RR").state == "undefined"
    assert explain(qrels, RUN, "q", "RR", rel=0.5).value == 1.0
    with pytest.raises(InputError, match="no grade reaches 1"):
        explain({"q": {"a": 0.5}}, RUN, "q", "RR")


def test_the_text_of_the_query_is_shown_where_it_is_known() -> None:
    queries = Queries(pl.DataFrame({"query_id": ["q"], "text": ["how to sort"]}))
    assert explain(QRELS, RUN, "q", queries=queries).text == "how to sort"
    assert explain(QRELS, RUN, "other", queries=queries).text is None
    assert explain(QRELS, RUN, "q").text is None


def test_an_unknown_query_names_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"'othr' is in neither qrels nor run.*did you mean other"):
        explain(QRELS, RUN, "othr")
    with pytest.raises(UsageError, match="query 'new' has no judgments"):
        explain(QRELS, RUN | {"new": {"a": 1.0}}, "new")


def test_json_has_no_infinity() -> None:
    run: dict[str, Any] = {"q": {"a": math.inf, "b": 1.0, "c": -math.inf}}
    found = explain(QRELS, run, "q").to_dict()
    json.dumps(found, allow_nan=False)
    assert [line["score"] for line in found["lines"]] == [None, 1.0, None]
    assert set(found["lines"][0]) == {
        "rank", "doc_id", "score", "grade", "gain", "discount", "contribution", "tied",
    }  # fmt: skip
