"""Given: whatever a caller may hand over becomes a table, or an error that says what may."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest

from karat.errors import InputError, UsageError
from karat.tables import Documents, Qrels, Queries, Run
from karat.workflows.offline import inputs
from karat.workflows.offline.evaluate import evaluate
from karat.workflows.offline.explain import explain
from karat.workflows.workspace.fingerprints import fingerprint

FRAME = pl.DataFrame({"query_id": ["q"], "doc_id": ["a"], "grade": [1], "score": [1.0]})


def test_tables_stay_what_they_are() -> None:
    qrels, run = Qrels.from_frame(FRAME), Run.from_frame(FRAME)
    queries = Queries(pl.DataFrame({"query_id": ["q"]}))
    documents = Documents(pl.DataFrame({"doc_id": ["a"]}))
    assert inputs.qrels(qrels) is qrels
    assert inputs.runs(run) == [run]
    assert inputs.runs((run, run)) == [run, run]
    assert inputs.queries(queries) is queries
    assert inputs.documents(documents) is documents


def test_nothing_stays_nothing() -> None:
    assert inputs.queries(None) is None
    assert inputs.documents(None) is None


@pytest.mark.parametrize("kind", [str, Path])
def test_paths_are_read(kind: type, tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl").write_text(json.dumps({"query_id": "q", "kind": "x"}) + "\n")
    (tmp_path / "documents.jsonl").write_text(json.dumps({"doc_id": "a", "title": "A"}) + "\n")
    (tmp_path / "bm25.trec").write_text("q Q0 a 1 1.5 tag\n")
    (tmp_path / "qrels.trec").write_text("q 0 a 2\n")
    queries = inputs.queries(kind(tmp_path / "queries.jsonl"))
    assert queries is not None
    assert queries.attribute("kind") == {"q": "x"}
    documents = inputs.documents(kind(tmp_path / "documents.jsonl"))
    assert documents is not None
    assert len(documents) == 1
    assert inputs.qrels(kind(tmp_path / "qrels.trec")).to_dict() == {"q": {"a": 2.0}}
    [run] = inputs.runs([kind(tmp_path / "bm25.trec")])
    assert (run.name, run.to_dict()) == ("bm25", {"q": {"a": 1.5}})


def test_dicts_and_frames_are_read() -> None:
    assert inputs.qrels({"q": {"a": 1}}).to_dict() == {"q": {"a": 1.0}}
    assert inputs.qrels(FRAME).to_dict() == {"q": {"a": 1.0}}
    assert [run.to_dict() for run in inputs.runs([{"q": {"a": 1.0}}, FRAME])] == (
        [{"q": {"a": 1.0}}] * 2
    )
    queries = inputs.queries(pl.DataFrame({"query_id": ["q"]}))
    assert queries is not None
    assert len(queries) == 1
    documents = inputs.documents(pl.DataFrame({"doc_id": ["a"]}))
    assert documents is not None
    assert len(documents) == 1


def test_anything_else_is_refused() -> None:
    with pytest.raises(InputError, match="a int is not a data frame"):
        inputs.qrels(7)
    with pytest.raises(InputError, match="pass a path, a dict, or a frame"):
        inputs.runs(7)


@pytest.mark.parametrize(
    ("qrels", "says"),
    [
        ({"a", "c"}, r"a set does not say which query.*\n  fix: {\"q1\": {\"a\", \"c\"}}"),
        (["a", "c"], "a list does not say which query"),
        ({"q1": "a"}, r"expected the ids .*, got the text 'a' \(query q1\)\n  fix: {\"q1\": {"),
        ({"q1": 3}, "expected the ids of relevant documents, got an int"),
        ({"q1": {7}}, "id 7 is an int; ids are strings\n  fix: use str"),
        ({7: {"a"}}, "id 7 is an int; ids are strings"),
        ({"q1": [("a", 2)]}, "are pairs; expected ids, or {document: grade}"),
        ({"q1": {"a": "good"}}, "the grade 'good' of document a is not a number"),
    ],
)
def test_what_is_not_judgments_is_refused(qrels: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        inputs.qrels(qrels)


@pytest.mark.parametrize(
    ("run", "says"),
    [
        ({"q1": {"a", "b"}}, r"a set has no order.*\(query q1\)\n  fix: pass a list, best first"),
        ({"bm25": {"q1": {"a", "b"}}}, "a set has no order"),
        ({"q1": ["a"], "q2": "b"}, r"expected a ranking, got the text 'b' \(query q2\)"),
        ({"q1": "b"}, r"b: there is no such file\n  fix: .*; a ranked list .* {\"q1\": \[\"b\"\]}"),
        ({"q1": [7]}, "id 7 is an int; ids are strings\n  fix: use str"),
        ({"q1": [(7, 1.5)]}, "id 7 is an int; ids are strings"),
        ({7: ["a"]}, "id 7 is an int; ids are strings"),
        ({"q1": [1.5]}, "result 1 is a float; ids are text"),
        ({"q1": ["a", ("b", 1.0)]}, "some documents have a score and others have none"),
        ({"q1": [("a", float("nan"))]}, "a score is NaN"),
        ({"q1": [("a", 1, 2)]}, "result 1 has 3 parts, not id and score"),
        ([["a", "b"]], r"a list does not say .* returned for\n  fix: {\"q1\": \[\"a\", \"b\"\]}"),
        ({"a", "b"}, "a set does not say which query"),
    ],
)
def test_what_is_not_a_run_is_refused(run: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        inputs.runs(run)


@pytest.mark.parametrize("kind", [set, list, tuple, frozenset, dict.fromkeys])
def test_relevant_ids_have_grade_1(kind: Any) -> None:
    ids = kind(["a", "c"])
    if isinstance(ids, dict):
        ids = ids.keys()
    assert inputs.qrels({"q1": ids}).to_dict() == {"q1": {"a": 1.0, "c": 1.0}}


def test_a_query_without_relevant_documents_is_known() -> None:
    qrels = inputs.qrels({"q2": {"a"}, "q1": set(), "q3": {}})  # {} where sets are: an empty set
    assert (qrels.without, qrels.query_ids) == ({"q1", "q3"}, ["q1", "q2", "q3"])
    assert inputs.qrels({"q1": {}, "q2": {"a": 1}}).query_ids == ["q2"]  # q1 is not judged
    assert qrels.on_scale((0, 2)).without == {"q1", "q3"}


def test_ranked_lists_keep_their_order() -> None:
    many = [f"d{n:03}" for n in range(300)]
    [run] = inputs.runs({"q1": many, "q2": [], "q3": None, "q4": np.array(["b", "a"])})
    assert list(run.to_dict()["q1"]) == many
    assert list(run.to_dict()["q4"]) == ["b", "a"]
    assert not len(run.tie_size)  # no two of a list are tied
    states = dict(run.answers.select("query_id", "state").iter_rows())
    assert states == {"q1": "ok", "q2": "empty", "q3": "failed", "q4": "ok"}


def test_pairs_and_dicts_keep_their_scores() -> None:
    [run] = inputs.runs({"q1": [("a", 1.5), ("b", 0.5)], "q2": [{"id": "c", "score": 2}]})
    assert run.to_dict() == {"q1": {"a": 1.5, "b": 0.5}, "q2": {"c": 2.0}}
    assert run.contradicted == 0
    [run] = inputs.runs({"q1": [("a", 0.5), ("b", 1.5)], "q2": {"c": 1.0, "d": 2.0}})
    assert list(run.to_dict()["q1"]) == ["b", "a"]
    assert run.contradicted == 1  # q1: a dict has no order to contradict


def test_the_first_place_of_a_document_counts() -> None:
    [run] = inputs.runs({"q1": ["a", "b", "a", "b", "c"], "q2": ["a"]})
    assert list(run.to_dict()["q1"]) == ["a", "b", "c"]
    assert run.answers.select("query_id", "repeated").rows() == [("q1", 2), ("q2", None)]
    found = evaluate({"q1": {"c"}, "q2": {"a"}}, run, "RR")
    assert found.value("RR") == (1 / 3 + 1) / 2
    assert any(
        note.startswith("duplicate documents in 1 query: the best rank counts, 2 duplicates")
        for note in found.notes
    )


class ScoredDoc(NamedTuple):
    """A row of a run, as ir_measures has it."""

    query_id: str
    doc_id: str
    score: float


class Qrel(NamedTuple):
    """A judgment, as ir_measures has it."""

    query_id: str
    doc_id: str
    relevance: int
    iteration: str = "0"


def test_lists_of_namedtuples_are_tables() -> None:
    rows = [ScoredDoc("q1", "a", 0.5), ScoredDoc("q1", "b", 1.5)]
    expected = {"q1": {"b": 1.5, "a": 0.5}}
    assert [run.to_dict() for run in inputs.runs(rows)] == [expected]
    assert [run.to_dict() for run in inputs.runs(iter(rows))] == [expected]
    assert [run.name for run in inputs.named_runs(iter(rows), rows)] == ["baseline", "candidate"]
    assert [run.name for run in inputs.runs({"bm25": rows})] == ["bm25"]
    judged = iter([Qrel("q1", "a", 2), Qrel("q1", "b", 0)])
    assert inputs.qrels(judged).to_dict() == {"q1": {"a": 2.0, "b": 0.0}}
    with pytest.raises(InputError, match="id 7 is an int; ids are strings"):
        inputs.runs([ScoredDoc("q1", 7, 0.5)])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="rows of different types"):
        inputs.qrels([Qrel("q1", "a", 2), ScoredDoc("q1", "b", 0)])


def test_tables_of_ranx_give_their_dicts() -> None:
    class Table:  # as ranx 0.3 has its Qrels and Run
        name = "bm25"

        def to_dict(self) -> dict[str, dict[str, int]]:
            return {"q1": {"a": 2}}

    assert inputs.qrels(Table()).to_dict() == {"q1": {"a": 2.0}}
    assert [run.to_dict() for run in inputs.runs([Table()])] == [{"q1": {"a": 2.0}}]


def test_runs_may_come_with_names() -> None:
    run = {"q1": {"a": 2.0, "b": 1.0}}
    named = inputs.runs({"bm25": run, "dense": Run.from_dict(run)})
    assert [one.name for one in named] == ["bm25", "dense"]
    assert [one.name for one in inputs.runs(run)] == ["run"]
    assert [one.name for one in inputs.runs({"q1": {}, "q2": None})] == ["run"]


@pytest.mark.parametrize(
    "run",
    [
        {"q1": ["a", "b"]},
        {"q1": [("a", 1.5), ("b", 0.5)]},
        {"q1": {"a": 1.5, "b": 0.5}},
        {"q2": None, "q1": ["a", "b"]},
        {"q2": {}, "q1": {"a": 1.5, "b": 0.5}},
    ],
)
def test_runs_of_every_shape_may_come_with_names(run: Any) -> None:
    for runs in ({"bm25": run}, {"bm25": run, "dense": FRAME}):
        found = inputs.runs(runs)
        assert [one.name for one in found] == list(runs)
        assert list(found[0].to_dict()["q1"]) == ["a", "b"]
    [alone] = inputs.runs(run)
    assert (alone.name, list(alone.to_dict()["q1"])) == ("run", ["a", "b"])


def test_a_query_without_relevant_documents_has_no_value() -> None:
    qrels: dict[str, set[str]] = {"q1": {"a"}, "q2": set()}
    run = {"q1": ["a"], "q2": ["b"]}
    found = evaluate(qrels, run, ["RR", "R@1"], per_query=True)
    assert [(row.value, row.n, row.undefined) for row in found.results] == [(1.0, 1, 1)] * 2
    states = {(row.query_id, row.value, row.state) for row in found.per_query}
    assert states == {("q1", 1.0, "ok"), ("q2", None, "undefined")}
    assert evaluate(qrels, run, "RR", complete=True).value("RR") == 0.5
    # A file of trec_eval's cannot say so: pytrec_eval, too, leaves such a query out.
    assert evaluate(qrels, run, "RR", compat="trec_eval-9").results[0].n == 1
    assert fingerprint(inputs.qrels(qrels)) != fingerprint(inputs.qrels({"q1": {"a"}}))
    with pytest.raises(UsageError, match="query 'q2' has no relevant document"):
        explain(qrels, run, "q2", "RR")
