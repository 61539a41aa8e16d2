"""Run: one settled order whatever the rows came in, ties, ranks, answers, chunks."""

from __future__ import annotations

import math
import random

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.errors import InputError
from karat.tables import Documents, Run

SCHEMA = {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}
Rows = list[tuple[str, str, float]]


def batch(rows: Rows) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def ranked(rows: list[tuple[str, str, float, int | None]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA | {"rank": pl.Int64}, orient="row")


def order_of(run: Run, query_id: str) -> list[str]:
    return run.of(query_id)["doc_id"].to_list()


# --- the order ---


def test_score_descending_then_id_descending_by_bytes() -> None:
    # trec_eval's comp_sim_docno. "é" is two bytes from 0xC3 up, above every ASCII letter; U+E000
    # (EE 80 80) stands below "𝄞" (F0 9D 84 9E), which UTF-16 would turn round.
    ids = ["B", "a", "é", "10", "9", "\ue000", "𝄞"]
    run = Run.from_dict({"q": dict.fromkeys(ids, 1.0) | {"first": 2.0, "last": 0.5}})
    assert order_of(run, "q") == ["first", "𝄞", "\ue000", "é", "a", "B", "9", "10", "last"]


def test_the_frame_has_ranks_from_1_in_each_query() -> None:
    run = Run.from_dict({"q2": {"a": 1.0, "b": 2.0}, "q1": {"c": 1.0}})
    frame = run.frame()
    assert frame.schema == {**SCHEMA, "rank": pl.UInt32}
    assert frame.rows() == [("q2", "b", 2.0, 1), ("q2", "a", 1.0, 2), ("q1", "c", 1.0, 1)]
    assert run.query_ids == ["q2", "q1"]
    assert run.starts.tolist() == [0, 2, 3]
    assert len(run) == 3


def test_both_zeros_and_infinities_are_scores() -> None:
    scores = {"a": -0.0, "b": 0.0, "c": -0.0, "top": math.inf, "end": -math.inf}
    run = Run.from_dict({"q": scores})
    assert order_of(run, "q") == ["top", "c", "b", "a", "end"]
    assert (run.tie_start.tolist(), run.tie_size.tolist()) == ([1], [3])


def test_a_query_the_run_lacks_has_no_rows() -> None:
    assert Run.from_dict({"q": {"a": 1.0}}).of("other").height == 0


@given(st.data())
def test_cut_shuffled_or_whole_gives_one_run(data: st.DataObject) -> None:
    docs = st.dictionaries(
        st.sampled_from("abcdefgé"), st.sampled_from((0.0, 1.0, 2.5)), min_size=1
    )
    scores = data.draw(st.dictionaries(st.sampled_from(("1", "10", "2")), docs, min_size=1))
    rows = [(query, doc, score) for query, held in scores.items() for doc, score in held.items()]
    rows = data.draw(st.permutations(rows))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=5)))
    parts = [batch(rows[a:b]) for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    run = Run.from_batches("run", parts)
    expected = {
        query: dict(sorted(held.items(), key=lambda p: (p[1], p[0].encode()), reverse=True))
        for query, held in scores.items()
    }
    got = run.to_dict()
    assert got == expected
    assert [list(got[query]) for query in got] == [list(expected[query]) for query in got]
    assert run.query_ids == list(dict.fromkeys(query for query, _, _ in rows))
    # Tied groups, by counting.
    groups = []
    for index, query in enumerate(run.query_ids):
        values = list(got[query].values())
        for value in dict.fromkeys(values):
            if values.count(value) > 1:
                start = int(run.starts[index]) + values.index(value)
                groups.append((start, values.count(value)))
    assert list(zip(run.tie_start.tolist(), run.tie_size.tolist(), strict=True)) == groups


def test_a_query_cut_over_many_batches_is_one_query() -> None:
    parts = [batch([("q", f"d{number}", float(number))]) for number in range(5)]
    run = Run.from_batches("run", [batch([]), *parts, batch([("r", "x", 1.0)]), batch([])])
    assert run.query_ids == ["q", "r"]
    assert order_of(run, "q") == ["d4", "d3", "d2", "d1", "d0"]


def test_a_tie_across_a_cut_is_one_group() -> None:
    rows = [("q", doc, 1.0) for doc in "dcba"]
    run = Run.from_batches("run", [batch(rows[:2]), batch(rows[2:])])
    assert (run.tie_start.tolist(), run.tie_size.tolist()) == ([0], [4])


def test_equal_scores_of_two_queries_are_no_tie() -> None:
    run = Run.from_dict({"q1": {"a": 1.0}, "q2": {"b": 1.0}})
    assert run.tie_start.tolist() == []


def test_no_batches_are_a_run_of_nothing() -> None:
    run = Run.from_batches("run", [])
    assert len(run) == 0
    assert run.frame().height == 0
    assert run.answers.height == 0
    assert run.to_dict() == {}
    assert len(run.in_single_precision()) == 0


# --- what is refused ---


@pytest.mark.parametrize("score", [math.nan, None])
def test_a_score_that_is_no_number_is_refused(score: float | None) -> None:
    rows = batch([("q1", "a", 1.0)])
    bad = pl.DataFrame({"query_id": ["q2"], "doc_id": ["b"], "score": [score]}, schema=SCHEMA)
    with pytest.raises(InputError, match="the score of document b is not a number") as caught:
        Run.from_batches("run", [rows, bad], source="runs/bm25.trec")
    assert caught.value.query == "q2"
    assert caught.value.doc_id == "b"
    assert str(caught.value).startswith("runs/bm25.trec: ")


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_document_twice_in_one_ranking_is_refused(cut: int) -> None:
    rows = [("q", "a", 3.0), ("q", "b", 2.0), ("r", "a", 1.0), ("q", "a", 1.0)]
    with pytest.raises(InputError, match="duplicate document a in one ranking") as caught:
        Run.from_batches("run", [batch(rows[:cut]), batch(rows[cut:])])
    assert caught.value.query == "q"


def test_one_document_in_two_rankings_is_fine() -> None:
    # Thousands of pairs, so that a careless mix of query and document hashes would collide.
    run = Run.from_dict({f"q{q}": {f"d{d}": float(d) for d in range(50)} for q in range(100)})
    assert len(run) == 5000


@pytest.mark.parametrize("scores", [{7: {"a": 1.0}}, {"q": {7: 1.0}}])
def test_ids_that_are_no_strings_are_refused(scores: dict[str, dict[str, float]]) -> None:
    with pytest.raises(InputError, match="id 7 is an int; ids are strings"):
        Run.from_dict(scores)


@pytest.mark.parametrize("scores", [{"": {"a": 1.0}}, {"q": {"": 1.0}}])
def test_empty_ids_are_refused(scores: dict[str, dict[str, float]]) -> None:
    with pytest.raises(InputError, match="_id is empty"):
        Run.from_dict(scores)


# --- ranks are checked, not trusted ---


@pytest.mark.parametrize(
    ("rows", "contradicted"),
    [
        ([("q", "a", 2.0, 1), ("q", "b", 1.0, 2)], 0),
        ([("q", "a", 2.0, 2), ("q", "b", 1.0, 1)], 1),
        ([("q", "a", 2.0, 1), ("q", "b", 1.0, 1)], 1),
        # Ranks from 0 are ranks.
        ([("q", "a", 2.0, 0), ("q", "b", 1.0, 1)], 0),
        ([("q", "a", 2.0, 1), ("q", "b", 1.0, 0)], 1),
        # Any order within a tie agrees with the scores, our own being the other way round.
        ([("q", "a", 1.0, 1), ("q", "b", 1.0, 2)], 0),
        # ... but not a tied document above a better score.
        ([("q", "a", 2.0, 2), ("q", "b", 1.0, 1), ("q", "c", 1.0, 3)], 1),
        ([("q", "a", 2.0, 2), ("q", "b", 1.0, 3), ("q", "c", 1.0, 1)], 1),
        # No rank, nothing to contradict.
        ([("q", "a", 2.0, None), ("q", "b", 1.0, 1)], 0),
        # Each query counts once.
        (
            [
                ("q", "a", 3.0, 3),
                ("q", "b", 2.0, 2),
                ("q", "c", 1.0, 1),
                ("r", "a", 2.0, 1),
                ("r", "b", 1.0, 2),
            ],
            1,
        ),
    ],
)
def test_ranks_that_contradict_the_scores_are_counted(
    rows: list[tuple[str, str, float, int | None]], contradicted: int
) -> None:
    run = Run.from_batches("run", [ranked(rows)])
    assert run.contradicted == contradicted
    assert order_of(run, "q")[0] in {"a", "b"}
    random.Random(1).shuffle(rows)
    again = Run.from_frame(ranked(rows), name="run")
    assert again.contradicted == contradicted
    assert again.to_dict() == run.to_dict()
    assert run.in_single_precision().contradicted == contradicted


def test_they_are_counted_when_a_query_comes_back_too() -> None:
    first = ranked([("q", "a", 2.0, 2), ("q", "b", 1.0, 1), ("r", "a", 2.0, 1)])
    second = ranked([("q", "c", 0.5, 3), ("r", "b", 1.0, 2)])
    assert Run.from_batches("run", [first, second]).contradicted == 1


# --- float32 ---


def test_in_single_precision_more_scores_tie() -> None:
    # float32 has 24 bits: 1.000000001 and 1.000000002 are both 1 (trec_eval 9 and pytrec_eval).
    run = Run.from_dict({"q": {"a": 1.000000002, "b": 1.000000001, "c": 2.0}})
    assert order_of(run, "q") == ["c", "a", "b"]
    assert run.tie_size.tolist() == []
    single = run.in_single_precision()
    assert order_of(single, "q") == ["c", "b", "a"]
    assert single.tie_size.tolist() == [2]
    assert single.to_dict()["q"] == {"c": 2.0, "b": 1.0, "a": 1.0}
    assert single.name == run.name
    # Beyond float32 is infinity, and so a tie.
    far = Run.from_dict({"q": {"a": 1e300, "b": 1e200}}).in_single_precision()
    assert far.tie_size.tolist() == [2]


# --- answers ---


def test_a_dict_says_what_was_answered() -> None:
    run = Run.from_dict({"q1": {"a": 1.0, "b": 0.5}, "q2": {}, "q3": None})
    answers = {row["query_id"]: row for row in run.answers.iter_rows(named=True)}
    assert {query: row["state"] for query, row in answers.items()} == {
        "q1": "ok",
        "q2": "empty",
        "q3": "failed",
    }
    assert {query: row["returned"] for query, row in answers.items()} == {"q1": 2, "q2": 0, "q3": 0}
    assert run.to_dict() == {"q1": {"a": 1.0, "b": 0.5}, "q2": {}}


ANSWERS = pl.DataFrame(
    {
        "query_id": ["q1", "q2", "q3"],
        "state": ["ok", "failed", "empty"],
        "latency_us": [1500, 30_000_000, 900],
        "error": [None, "timeout", None],
    }
)


def test_answers_keep_latency_and_error() -> None:
    rows = batch([("q1", "a", 1.0)])
    run = Run.from_batches("run", [rows], answers=ANSWERS)
    assert run.answers.rows() == [
        ("q1", "ok", 1, 1500, None),
        ("q2", "failed", 0, 30_000_000, "timeout"),
        ("q3", "empty", 0, 900, None),
    ]
    for again in (
        run.in_single_precision(),
        run.collapse(pl.DataFrame({"doc_id": ["a"], "parent": ["p"]})),
    ):
        assert again.answers.rows() == run.answers.rows()


def test_an_answer_marked_ok_without_documents_is_empty() -> None:
    answers = pl.DataFrame({"query_id": ["q"], "state": ["ok"]})
    assert Run.from_batches("run", [], answers=answers).answers["state"].to_list() == ["empty"]


@pytest.mark.parametrize(
    ("query_id", "state", "says"),
    [
        (["q1"], ["failed"], "the query is marked failed but has documents"),
        (["q1"], ["empty"], "the query is marked empty but has documents"),
        (["q9"], ["lost"], "state 'lost' is not ok, empty or failed"),
        (["q9", "q9"], ["failed", "empty"], "the query has two answers"),
    ],
)
def test_answers_that_cannot_be_are_refused(
    query_id: list[str], state: list[str], says: str
) -> None:
    answers = pl.DataFrame({"query_id": query_id, "state": state})
    with pytest.raises(InputError, match=says) as caught:
        Run.from_batches("run", [batch([("q1", "a", 1.0)])], answers=answers)
    assert caught.value.query == query_id[0]


# --- chunks ---


def test_collapse_keeps_each_document_at_its_best_chunk() -> None:
    chunks = Documents(
        pl.DataFrame(
            {"doc_id": ["a1", "a2", "b1", "c"], "parent_id": ["a", "a", "b", None]},
            schema={"doc_id": pl.String, "parent_id": pl.String},
        )
    )
    run = Run.from_dict(
        {"q": {"b1": 1.0, "a2": 5.0, "a1": 9.0, "c": 4.0, "unlisted": 3.0, "b": 2.0}, "r": None},
        name="mine",
    )
    folded = run.collapse(chunks.parents())
    # a at a1; c and the unlisted stay themselves; b stands itself above its chunk b1.
    assert folded.to_dict() == {"q": {"a": 9.0, "c": 4.0, "unlisted": 3.0, "b": 2.0}}
    assert list(folded.to_dict()["q"]) == ["a", "c", "unlisted", "b"]
    assert folded.name == "mine"
    assert folded.answers.rows() == [("q", "ok", 4), ("r", "failed", 0)]


def test_documents_that_tie_after_collapse_go_by_their_own_id() -> None:
    parents = pl.DataFrame({"doc_id": ["z", "y"], "parent": ["a", "b"]})
    folded = Run.from_dict({"q": {"z": 1.0, "y": 1.0}}).collapse(parents)
    assert order_of(folded, "q") == ["b", "a"]


def test_about_is_kept() -> None:
    run = Run.from_batches("bm25", [], about={"commit": "abc"}, source="bm25.trec")
    assert run.about == {"commit": "abc"}
    assert run.in_single_precision().about == {"commit": "abc"}
    assert repr(run) == "<Run bm25: 0 documents for 0 queries>"
    assert run.source == "bm25.trec"
    assert run.starts.dtype == np.int64


def test_the_first_documents_of_some_queries() -> None:
    # Tied: b before a, as documents go by id descending.
    run = Run.from_dict({"q": {"b": 1.0, "a": 1.0}, "p": {"x": 3.0, "u": 2.0, "a": 1.0}})
    found = run.top(["p", "none", "q"], 2)
    assert found.rows() == [(0, "x", 1), (0, "u", 2), (2, "b", 1), (2, "a", 2)]
    assert run.top(["p"]).height == 3
    assert run.top([]).rows() == []
    assert Run.from_dict({"q": {}}).top(["q"]).rows() == []


def test_some_queries_and_some_documents_are_the_same_run() -> None:
    # Ranks are listed best first: they contradict the scores of q1 and q2.
    scored = {"q1": [("a", 1.0), ("b", 2.0)], "q2": [("a", 1.0), ("b", 2.0)], "q3": [("a", 1.0)]}
    run = Run.from_dict({**scored, "q4": [], "q5": None}, "mine")
    run.about["commit"] = "1a2b"
    assert run.contradicted == 2
    part = run.only(["q1", "q3", "q5", "x"])
    assert part.to_dict() == {"q1": {"b": 2.0, "a": 1.0}, "q3": {"a": 1.0}}
    assert dict(part.answers.select("query_id", "state").iter_rows())["q5"] == "failed"
    assert (part.contradicted, part.name, part.about) == (1, "mine", {"commit": "1a2b"})
    first = run.to_depth(1)
    assert first.to_dict() == {"q1": {"b": 2.0}, "q2": {"b": 2.0}, "q3": {"a": 1.0}, "q4": {}}
    assert (first.contradicted, first.answers["returned"].to_list()[:2]) == (2, [1, 1])
