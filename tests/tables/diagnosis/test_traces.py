"""Traces: the order of stages, the candidates of each, and what is refused."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from karat.errors import InputError, UsageError
from karat.tables import Run
from karat.tables.diagnosis.results import arrows
from karat.tables.diagnosis.traces import COLUMNS, Stage, Trace, from_runs

BM25 = Run.from_dict({"q1": {"a": 3, "b": 2}, "q2": {"c": 1}}, "bm25")
DENSE = Run.from_dict({"q1": {"b": 0.9, "z": 0.8}, "q2": {}}, "dense")
FUSED = Run.from_dict({"q1": {"b": 3, "a": 2, "z": 1}, "q2": {"c": 1}}, "fused")
RERANKED = Run.from_dict({"q1": {"a": 9, "b": 8}, "q2": {"c": 1}}, "reranked")


def row(stage: str = "bm25", kind: str = "retrieve", **more: Any) -> dict[str, Any]:
    """A stage of query q1."""
    return (
        dict.fromkeys(COLUMNS)
        | {
            "query_id": "q1",
            "stage": stage,
            "kind": kind,
            "parents": [],
            "doc_ids": ["a"],
            "ranks": [1],
        }
        | more
    )


def trace(*rows: dict[str, Any]) -> Trace:
    return Trace(pl.DataFrame(list(rows), schema=COLUMNS), "trace.jsonl")


def test_the_kinds_of_runs_follow_from_their_documents() -> None:
    found = from_runs({"bm25": BM25, "dense": DENSE, "fused": FUSED, "reranked": RERANKED}, {})
    assert found.stages == [
        Stage("bm25", "retrieve", (), 2),
        Stage("dense", "retrieve", (), 2),
        Stage("fused", "fuse", ("bm25", "dense"), 3),
        Stage("reranked", "rerank", ("fused",), 2),
    ]
    assert arrows([(s.name, s.parents) for s in found.stages]) == "bm25, dense → fused → reranked"


def test_a_given_kind_goes_first() -> None:
    found = from_runs({"bm25": BM25, "cut": RERANKED}, {"cut": "filter"})
    assert found.stage("cut") == Stage("cut", "filter", ("bm25",), 2)
    alone = from_runs({"bm25": BM25, "second": RERANKED}, {"second": "retrieve"})
    assert alone.stage("second").parents == ()


def test_a_stage_gives_back_its_run() -> None:
    found = from_runs({"bm25": BM25, "dense": DENSE}, {})
    assert found.run("bm25").to_dict() == BM25.to_dict()
    assert dict(found.run("dense").answers.select("query_id", "state").iter_rows())["q2"] == "empty"
    assert found.candidates("dense", ["q1"]).rows() == [("q1", "b", 1, 0.9), ("q1", "z", 2, 0.8)]


def test_stages_go_after_their_parents_in_any_order_of_rows() -> None:
    found = trace(row("top", "rerank", parents=["low"]), row("low"))
    assert [stage.name for stage in found.stages] == ["low", "top"]


def test_an_error_makes_a_stage_fail_and_no_document_makes_it_empty() -> None:
    found = trace(row("a", error="timeout", doc_ids=[], ranks=[]), row("b", doc_ids=[], ranks=[]))
    assert found.frame["state"].to_list() == ["failed", "empty"]


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ([row(kind="retriever")], "unknown kind 'retriever'"),
        ([row(), row()], "the stage bm25 appears twice"),
        ([row(), row(kind="fuse", query_id="q2")], "stage bm25 has several kinds"),
        ([row(state="late")], "state 'late'"),
        ([row(doc_ids=["a", "a"], ranks=[1, 2])], "stage bm25 returns a document twice"),
        ([row(doc_ids=["a", "b"], ranks=[2, 1])], "ranks of stage bm25 do not ascend"),
        ([row(ranks=[0])], "ranks of stage bm25 do not ascend from 1"),
        ([row(stage="")], "a stage without stage"),
    ],
)
def test_what_is_no_trace_is_refused(rows: list[dict[str, Any]], error: str) -> None:
    with pytest.raises(InputError) as caught:
        trace(*rows)
    assert error in str(caught.value)
    assert "trace.jsonl" in str(caught.value)


def test_parents_that_are_no_stages_and_circles_are_refused() -> None:
    with pytest.raises(InputError, match="the parent 'dense', which is not a stage"):
        _ = trace(row("fused", "fuse", parents=["dense"])).stages
    circle = trace(row("a", "rerank", parents=["b"]), row("b", "rerank", parents=["a"]))
    with pytest.raises(InputError, match="are in a circle"):
        _ = circle.stages
    with pytest.raises(UsageError, match="did you mean bm25"):
        trace(row()).stage("bm52")
