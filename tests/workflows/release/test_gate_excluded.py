"""Slices that no rule says anything about."""

from __future__ import annotations

import polars as pl

from karat.measures.scores import Rules, score
from karat.tables import Qrels, Queries, Run
from karat.workflows.release.gate import ExcludedQueries

QUERIES = Queries.from_frame(
    pl.DataFrame(
        {
            "query_id": ["a", "b", "c", "d", "e"],
            "class": ["x", "x", "y", None, "y"],
            "lang": ["de", "en", "de", "de", "en"],
            "tags": [["one", "two"], ["one"], [], None, ["two"]],
            "no_answer": [False, True, False, False, False],
        }
    )
)
QRELS = Qrels.from_dict({"a": {"1": 1}, "b": {"2": 0}, "c": {"3": 0}, "d": {"4": 1}})
SCORES = score(
    Run.from_dict({"a": {"1": 1.0}}), QRELS, [], Rules(rel=1.0, no_answer=frozenset({"b"}))
)
EXCLUDED = ExcludedQueries(QUERIES, SCORES, frozenset({"d"}))


def test_each_reason_is_counted() -> None:
    assert EXCLUDED.why(["b", "c", "d", "e"]) == (
        "1 marked no_answer, 1 without a relevant document, 1 known to fail, 1 without judgments"
    )


def test_slices_have_all_their_queries_judged_or_not() -> None:
    assert EXCLUDED.by_slice("class", ["x"]) == {"x": ["a", "b"], "y": ["c", "e"], "(none)": ["d"]}
    assert EXCLUDED.by_slice("tags", []) == {
        "one": ["a", "b"],
        "two": ["a", "e"],
        "(none)": ["c", "d"],
    }
    assert EXCLUDED.by_slice("class, lang", [])["x, de"] == ["a"]


def test_where_slices_are_others_nothing_is_said() -> None:
    assert EXCLUDED.by_slice("first_relevant", ["1"]) == {}
    assert EXCLUDED.by_slice("class", ["1 to 4"]) == {}
    assert ExcludedQueries(None, SCORES, frozenset()).by_slice("class", []) == {}
