"""Scores: topic sets and states of one run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from karat.errors import InputError
from karat.measures import Measure, parse
from karat.measures.scores import Rules, Scores, score
from karat.measures.trec import COMPAT
from karat.tables import Qrels, Run

RR = parse("RR")
QRELS = Qrels.from_dict(
    {"bare": {"a": 0}, "failed": {"a": 1}, "found": {"a": 1}, "missing": {"a": 2}}
)
RUN = Run.from_dict(
    {"found": {"b": 2.0, "a": 1.0}, "failed": None, "bare": {"a": 1.0}, "y": {}, "x": {"a": 1.0}}
)


def scored(measure: Measure = RR, **rules: Any) -> Scores:
    return score(RUN, QRELS, [measure], Rules(**rules))


def test_the_default_topic_set_is_what_has_something_to_find() -> None:
    scores = scored()
    assert scores.evidence.query_ids == ["bare", "failed", "found", "missing"]
    assert scores.topics.tolist() == [False, True, True, True]
    assert scores.answered.tolist() == ["ok", "failed", "ok", "missing"]
    np.testing.assert_array_equal(scores.values[RR], [np.nan, np.nan, 0.5, 0.0])
    states = [scores.state(RR, index) for index in range(4)]
    assert states == ["undefined", "failed", "ok", "missing"]
    assert scores.unjudged == ["x", "y"]


def test_complete_takes_all() -> None:
    np.testing.assert_array_equal(scored(complete=True).values[RR], [0.0, np.nan, 0.5, 0.0])


def test_rel_decides_the_topic_set() -> None:
    relevant_from_2 = parse("RR", rel=2.0)
    assert scored(relevant_from_2, rel=2.0).topics.tolist() == [False, False, False, True]
    # A measure with a lower level of its own may find something where others do not.
    halves = Qrels.from_dict({"found": {"a": 0.5}, "missing": {"a": 1}})
    half = parse("R(rel=0.5)@5")
    assert score(RUN, halves, [RR, half], Rules()).topics.tolist() == [True, True]
    assert score(RUN, halves, [RR], Rules()).topics.tolist() == [False, True]


def test_trec_eval_9_takes_what_was_retrieved_and_knows_no_failure() -> None:
    scores = scored(compat=COMPAT["trec_eval-9"])
    assert scores.answered.tolist() == ["ok", "missing", "ok", "missing"]
    np.testing.assert_array_equal(scores.values[RR], [0.0, np.nan, 0.5, np.nan])
    complete = scored(compat=COMPAT["trec_eval-9"], complete=True)
    np.testing.assert_array_equal(complete.values[RR], [0.0, 0.0, 0.5, 0.0])


def test_trec_eval_10_refuses_a_run_that_lacks_topics() -> None:
    with pytest.raises(InputError, match="and failed, missing are missing") as caught:
        scored(compat=COMPAT["trec_eval-10"])
    assert "count every judged query, or leave them out as trec_eval-9 does" in str(caught.value)
    complete = scored(compat=COMPAT["trec_eval-10"], complete=True)
    np.testing.assert_array_equal(complete.values[RR], [0.0, 0.0, 0.5, 0.0])


def test_trec_eval_9_sees_float32() -> None:
    qrels = Qrels.from_dict({"q": {"a": 1}})
    run = Run.from_dict({"q": {"a": 1.000000002, "b": 1.000000001}})
    assert score(run, qrels, [RR], Rules()).values[RR].tolist() == [1.0]
    compat = COMPAT["trec_eval-9"]
    assert score(run, qrels, [RR], Rules(compat=compat)).values[RR].tolist() == [0.5]
    compat = COMPAT["trec_eval-10"]
    assert score(run, qrels, [RR], Rules(compat=compat)).values[RR].tolist() == [1.0]


def test_a_level_above_all_grades_is_an_error_but_not_for_trec_eval() -> None:
    with pytest.raises(InputError, match="no grade reaches 3, so nothing is relevant") as caught:
        scored(measure=parse("RR", rel=3.0), rel=3.0)
    # The lowest of the grades that are above 0: 1, 1, 2.
    assert "lower rel to 1, the lowest grade" in str(caught.value)
    assert scored(rel=3.0, compat=COMPAT["trec_eval-9"]).topics.tolist() == (
        [True, False, True, False]
    )
    nothing = Qrels.from_dict({"found": {"a": 0}})
    assert not score(RUN, nothing, [RR], Rules()).topics.any(), "all graded 0 is no such mistake"


def test_ids_are_named_where_nothing_is_shared() -> None:
    qrels = Qrels.from_dict({f"q{i}": {"a": 1} for i in range(9)}, source="judged.trec")
    run = Run.from_dict({"Q1": {"a": 1.0}}, source="bm25.trec")
    with pytest.raises(InputError) as caught:
        score(run, qrels, [RR], Rules())
    text = str(caught.value)
    assert text.startswith("bm25.trec: no query of the run is in the qrels: the run has Q1, the ")
    assert "q0, q1, q2 … (9 in total)" in text
    assert "in total); ids differ by upper and lower case" in text
    assert "use the same ids: 'Q1' is 'q1' in judged.trec" in text
    other = Run.from_dict({"topic": {"a": 1.0}}, source="bm25.trec")
    with pytest.raises(InputError, match=r"check that judged.trec has the judgments of this run"):
        score(other, qrels, [RR], Rules())


def test_the_cut_comes_before_unjudged_documents_are_dropped() -> None:
    qrels = Qrels.from_dict({"q": {"a": 1, "b": 0}})
    run = Run.from_dict({"q": {"x": 3.0, "b": 2.0, "a": 1.0}})

    def returned(**rules: Any) -> int:
        return int(score(run, qrels, [RR], Rules(**rules)).evidence.returned[0])

    assert returned() == 3
    assert returned(depth=2) == 2
    assert returned(judged_only=True) == 2
    assert returned(depth=2, judged_only=True) == 1


def test_tied_documents_are_counted_after_the_cut() -> None:
    qrels = Qrels.from_dict({"p": {"a": 1}, "q": {"a": 1}, "r": {"a": 1}})
    run = Run.from_dict(
        {
            "q": {"a": 9.0, "b": 5.0, "c": 5.0, "d": 5.0, "e": 1.0, "f": 1.0},
            "p": {"a": 2.0, "b": 2.0},
        }
    )

    def tied(**rules: Any) -> list[int]:
        return score(run, qrels, [RR], Rules(**rules)).evidence.tied.tolist()

    assert tied() == [2, 5, 0]
    assert tied(depth=5) == [2, 4, 0]
    assert tied(depth=3) == [2, 2, 0]
    assert tied(depth=1) == [1, 0, 0]
    assert tied(judged_only=True) == [0, 0, 0]
