"""``_rank_eval``: what is asked, and what comes back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from karat.errors import InputError
from karat.formats.exchange.catalogue import read_exchange, write_exchange
from karat.tables.golden.golden_sets import Exchange


def put(folder: Path, value: Any, name: str = "eval.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(value))
    return path


# The example of Elasticsearch's reference, "Ranking evaluation", with a template beside it.
REQUEST = {
    "requests": [
        {
            "id": "amsterdam_query",
            "request": {"query": {"match": {"text": "amsterdam"}}},
            "ratings": [
                {"_index": "my-index", "_id": "doc1", "rating": 0},
                {"_index": "my-index", "_id": "doc2", "rating": 3},
            ],
        },
        {
            "id": "berlin_query",
            "template_id": "t",
            "params": {"query_string": "berlin"},
            "ratings": [],
        },
    ],
    "metric": {"precision": {"k": 20}},
}


def test_a_request_is_judgments_and_comes_back(tmp_path: Path) -> None:
    found = read_exchange(put(tmp_path, REQUEST))
    assert found.format == "rank-eval"
    assert found.judgments is not None
    assert found.judgments.select("query_id", "doc_id", "grade").rows() == [
        ("amsterdam_query", "doc1", 0.0),
        ("amsterdam_query", "doc2", 3.0),
    ]
    assert found.queries is not None
    assert found.queries["text"].to_list() == [None, "berlin"]
    assert "'metric' of the file" in found.lost
    out = tmp_path / "out.json"
    write_exchange(found, out, "rank-eval")
    assert json.loads(out.read_text())["requests"] == REQUEST["requests"]


def test_queries_of_no_request_are_asked_by_a_template(tmp_path: Path) -> None:
    queries = pl.DataFrame({"query_id": ["1"], "text": ["star wars"]})
    judged = pl.DataFrame({"query_id": ["1"], "doc_id": ["a"], "grade": [2.0]})
    out = tmp_path / "out.json"
    told = write_exchange(Exchange("made", queries=queries, judgments=judged), out, "rank-eval")
    written = json.loads(out.read_text())
    (request,) = written["requests"]
    assert request["params"] == {"query_string": "star wars"}
    assert request["template_id"] == written["templates"][0]["id"]
    assert request["ratings"] == [{"_index": "index", "_id": "a", "rating": 2}]
    assert any("replace it by yours" in said for said in told.assumed)
    again = tmp_path / "again.json"
    write_exchange(read_exchange(out), again, "rank-eval")
    assert json.loads(again.read_text()) == written


def test_one_id_in_two_indices_is_refused(tmp_path: Path) -> None:
    ratings = [{"_index": index, "_id": "a", "rating": 1} for index in ("i", "j")]
    value = {"requests": [{"id": "1", "request": {}, "ratings": ratings}]}
    with pytest.raises(InputError, match="document a is in the indices i and j"):
        read_exchange(put(tmp_path, value))


def hit(doc: str, score: Any, rating: Any = None) -> dict[str, Any]:
    return {"hit": {"_index": "i", "_id": doc, "_score": score}, "rating": rating}


@pytest.mark.parametrize("wrapped", [True, False])
def test_an_answer_is_a_run_with_its_judgments(wrapped: bool, tmp_path: Path) -> None:
    value: dict[str, Any] = {
        "metric_score": "NaN",
        "details": {"q": {"metric_score": 0.5, "hits": [hit("b", 2.5, 3), hit("a", 1.5)]}},
        "failures": {"broken": {"error": "x"}},
    }
    found = read_exchange(put(tmp_path, {"rank_eval": value} if wrapped else value))
    assert found.format == "rank-eval-response"
    assert found.runs["eval"].rows() == [("q", "b", 2.5), ("q", "a", 1.5)]
    assert found.judgments is not None
    assert found.judgments.select("doc_id", "grade").rows() == [("b", 3.0)]
    assert "that the query broken failed" in found.lost


@pytest.mark.parametrize("scores", [(1.0, 1.0), (1.0, 2.0), (None, None), ("NaN", "NaN")])
def test_scores_that_do_not_give_the_order_are_ranks(scores: Any, tmp_path: Path) -> None:
    value = {"details": {"q": {"hits": [hit("a", scores[0]), hit("b", scores[1])]}}}
    found = read_exchange(put(tmp_path, value))
    assert found.runs["eval"].rows() == [("q", "a", -1.0), ("q", "b", -2.0)]
    assert any("minus the rank" in said for said in found.assumed)


@pytest.mark.parametrize(
    ("value", "match"),
    [
        ({"requests": {"id": 1}}, r"\.requests is .* not an array"),
        ({"requests": [{"ratings": []}]}, r"\.requests\[0\] has no key 'id'"),
        (
            {"requests": [{"id": 1, "ratings": [{"_id": "a"}]}]},
            r"\.requests\[0\]\.ratings\[0\] has no key 'rating'",
        ),
        ({"details": {"q": {"hits": [{"rating": 1}]}}}, r"\.hits\[0\] has no key 'hit'"),
    ],
)
def test_damage_is_named_by_its_place(value: Any, match: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=match):
        read_exchange(put(tmp_path, value))
