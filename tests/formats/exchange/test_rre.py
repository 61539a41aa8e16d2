"""RRE's ratings, in every shape that it or Quepid reads or writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from karat.errors import InputError
from karat.formats.exchange.catalogue import read_exchange, write_exchange
from karat.tables.golden.golden_sets import Exchange


def asked(text: str, documents: Any = None, **others: Any) -> dict[str, Any]:
    out: dict[str, Any] = {"placeholders": {"$query": text, **others}}
    return out if documents is None else {**out, "relevant_documents": documents}


def put(folder: Path, value: Any) -> Path:
    path = folder / "ratings.json"
    path.write_text(json.dumps(value))
    return path


@pytest.mark.parametrize(
    "documents",
    [
        {"x": {"gain": 3}, "y": {"gain": 0}},  # RRE's own, and what Quepid writes
        {"x": {"rating": 3}, "y": {"rating": "0"}},
        {"3": ["x"], "0": ["y"]},  # what Quepid reads
        [{"x": {"gain": 3}}, {"y": {"gain": 0}}],
        {"x": 3, "y": 0},
    ],
)
@pytest.mark.parametrize("level", ["query", "group", "topic", "top"])
def test_every_shape_at_every_level(documents: Any, level: str, tmp_path: Path) -> None:
    query = asked("fender", documents)
    value: dict[str, Any] = {"index": "basses", "id_field": "id"}
    group = {"name": "g", "description": "d", "queries": [asked("fender")]}
    if level == "top":
        value |= {"queries": [query]}
    elif level == "topic":
        value |= {"topics": [{"description": "t", "queries": [query]}]}
    elif level == "group":
        value |= {"query_groups": [{**group, "relevant_documents": documents}]}
    else:
        value |= {"topics": [{"description": "t", "query_groups": [{**group, "queries": [query]}]}]}
    found = read_exchange(put(tmp_path, value))
    assert found.format == "rre"
    assert found.judgments is not None
    assert found.judgments.select("query_id", "doc_id", "grade").rows() == [
        ("q1", "x", 3.0),
        ("q1", "y", 0.0),
    ]
    assert "'index' of the file" in found.lost
    assert found.queries is not None
    row = found.queries.row(0, named=True)
    assert row.get("topic") == ("t" if level in ("query", "topic") else None)
    assert row.get("group") == ("g" if level in ("query", "group") else None)


def test_topics_groups_and_placeholders_come_back(tmp_path: Path) -> None:
    queries = pl.DataFrame(
        {
            "query_id": ["q1", "q2", "q3", "q4"],
            "text": ["a", "b", "c", "d"],
            "topic": ["t", "t", "u", None],
            "group": ["g", None, None, None],
            "placeholders": ['{"$lang": "de"}', None, None, None],
        }
    )
    judged = pl.DataFrame({"query_id": ["q1", "q2"], "doc_id": ["x", "y"], "grade": [3.0, -1.0]})
    path = tmp_path / "out.json"
    told = write_exchange(Exchange("made", queries=queries, judgments=judged), path, "rre")
    back = read_exchange(path)
    assert back.queries is not None
    assert back.judgments is not None
    assert back.queries.select(queries.columns).equals(queries)
    assert back.judgments.select(judged.columns).equals(judged)
    assert told.lost == ["the ids of queries: the format identifies them by their text"]
    # RRE reads no queries beside groups (Engine.java: "all" members, or the node itself).
    topics = json.loads(path.read_text())["topics"]
    assert all(not ({"queries", "query_groups"} <= topic.keys()) for topic in topics)


def test_without_topics_quepid_can_read_what_is_written(tmp_path: Path) -> None:
    judged = pl.DataFrame({"query_id": ["a"], "doc_id": ["x"], "grade": [3.0]})
    path = tmp_path / "out.json"
    write_exchange(Exchange("made", judgments=judged), path, "rre")
    # ratings_controller.rb: rre_json['queries'], ['placeholders']['$query'], {rating => [docs]}
    query = json.loads(path.read_text())["queries"][0]
    assert query["placeholders"]["$query"] == "a"
    assert query["relevant_documents"] == {"3": ["x"]}


def test_a_document_without_a_gain_has_the_grade_rre_gives_it(tmp_path: Path) -> None:
    found = read_exchange(put(tmp_path, {"queries": [asked("a", {"x": {}, "y": {"gain": 1}})]}))
    assert found.judgments is not None
    assert found.judgments["grade"].to_list() == [2.0, 1.0]
    assert any("without a gain have grade 2" in said for said in found.assumed)


def test_fractions_are_refused(tmp_path: Path) -> None:
    judged = pl.DataFrame({"query_id": ["a"], "doc_id": ["x"], "grade": [0.5]})
    with pytest.raises(InputError, match=r"grade 0\.5 of document x is not a whole number"):
        write_exchange(Exchange("made", judgments=judged), tmp_path / "x", "rre")


@pytest.mark.parametrize(
    ("value", "match"),
    [
        (asked("a", {"high": ["x"]}), "'high' is not a number"),
        (asked("a", {"x": {"gain": None, "rating": []}}), "rating is \\[\\], not a finite number"),
        (asked("a", "x"), 'relevant_documents is "x", not an object'),
        ({"placeholders": {"$a": "x", "$b": "y"}}, r'not an object with "\$query"'),
        ({"template": "t"}, "has no key 'placeholders'"),
    ],
)
def test_damage_is_named_by_its_place(value: Any, match: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=match):
        read_exchange(put(tmp_path, {"queries": [value]}), "rre")
