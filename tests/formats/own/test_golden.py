"""Golden sets in files: both shapes, read as a golden set, as qrels and as queries."""

from __future__ import annotations

import gzip
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat import formats
from karat.errors import InputError
from karat.formats.own import golden
from karat.golden.query import GoldenQuery, Judgment

PLAIN = [
    {"query": "join two lists", "relevant_docs": ["a", "b"], "category": "task", "difficulty": 1},
    {"query": "os.path", "relevant_docs": {"c": 3, "a": 0}, "category": "name"},
    {"query": "bake a cake", "no_answer": True, "relevant_docs": []},
]
GRADES = {"q1": {"a": 1.0, "b": 1.0}, "q2": {"a": 0.0, "c": 3.0}}


def array(items: list[Any]) -> str:
    return json.dumps(items, indent=1)


def lines(items: list[Any]) -> str:
    return "\n".join(json.dumps(item) for item in items) + "\n\n"


def own(items: list[Any], **head: Any) -> str:
    return json.dumps({"karat_golden_set": 1, **head, "queries": items}, indent=2)


@pytest.mark.parametrize("spelt", [array, lines, own])
@pytest.mark.parametrize("packed", [False, True])
def test_each_shape_reads_the_same_everywhere(spelt: Any, packed: bool, tmp_path: Path) -> None:
    data = spelt(PLAIN).encode()
    path = tmp_path / "anything"
    path.write_bytes(gzip.compress(data) if packed else b"\xef\xbb\xbf" + data)
    qrels, queries = formats.read_qrels(path), formats.read_queries(path)
    assert {query: dict(docs) for query, docs in qrels.to_dict().items()} == GRADES
    assert qrels.declared is None
    assert queries.frame.rows(named=True) == [
        {"query_id": f"q{i + 1}", "text": item["query"], "no_answer": item.get("no_answer", False)}
        | {name: item.get(name) for name in ("category", "difficulty")}
        for i, item in enumerate(PLAIN)
    ]
    assert queries.no_answer() == {"q3"}
    held = golden.read(path)
    assert [query.query_id for query in held.queries] == ["q1", "q2", "q3"]
    assert formats.read_qrels(path, "golden").to_dict() == qrels.to_dict()


def test_the_scale_and_the_name_are_kept(tmp_path: Path) -> None:
    (tmp_path / "g").write_text(own(PLAIN, name="docs", scale=[0, 4]))
    assert formats.read_qrels(tmp_path / "g").scale == (0.0, 4.0)
    held = golden.read(tmp_path / "g")
    assert (held.name, held.scale) == ("docs", (0.0, 4.0))


def test_ids_in_the_file_are_kept_and_numbers_become_text() -> None:
    items = [
        {"id": 7, "query": "x", "relevant_docs": [12]},
        {"query_id": "007", "query": "x", "relevant_docs": {"a": 0.5}},
    ]
    held = golden.parse(array(items).encode(), "f")
    assert [(q.query_id, q.text, q.grades) for q in held.queries] == [
        ("7", "x", {"12": 1.0}),
        ("007", "x", {"a": 0.5}),
    ]


def test_attributes_keep_one_type_or_become_text(tmp_path: Path) -> None:
    items = [
        {"query": "x", "relevant_docs": ["a"], "hard": True, "n": 1, "v": 1, "m": 1, "tags": ["t"]},
        {"query": "y", "relevant_docs": ["a"], "hard": False, "n": 2, "v": 0.5, "m": "one"},
    ]
    (tmp_path / "g").write_text(array(items))
    rows = formats.read_queries(tmp_path / "g").frame.drop("query_id", "text").rows()
    assert rows == [(True, 1, 1.0, "1", '["t"]'), (False, 2, 0.5, "one", None)]


ONE = {"query": "x", "relevant_docs": ["a"]}
HEAD = '{"karat_golden_set": 1, "queries": '
# What the file holds, the line, what the error says.
DAMAGED: list[tuple[str, int | None, str]] = [
    ("query;docs\n", 1, "not a golden set"),
    ("[", 1, "not JSON"),
    ('[\n{"query": "x",\n "relevant_docs": ["a"', 3, "not JSON"),
    ('[{"query": "x"}, 3]', None, "item 2: expected a query, got 3"),
    (array([{"query": "x", "relevance": {"a": 1}}]), None, "rename 'relevance' to"),
    (array([ONE, 3]), None, "item 2: expected a query, got 3"),
    (array([{**ONE, "query": ""}]), None, "item 1: the query is empty.*q1"),
    (array([{**ONE, "query": ["x"]}]), None, "not text"),
    (
        array([{"question": "x", "relevant_docs": ["a"]}]),
        None,
        "no key 'query'; the keys are 'question'",
    ),
    (array([{**ONE, "text": "y"}]), None, "both 'query' and 'text' are set"),
    (array([{"query": "x", "relevant_doc": ["a"]}]), None, "rename 'relevant_doc' to"),
    (array([{"query": "x", "relevant_docs": "a"}]), None, "the judged documents are 'a', not ids"),
    (array([{"query": "x", "relevant_docs": [["a"]]}]), None, "doc_id is .'a'., not text"),
    (array([{"query": "x", "relevant_docs": [""]}]), None, "doc_id is empty"),
    (array([{"query": "x", "relevant_docs": [1.5]}]), None, "doc_id is 1.5, not text"),
    (array([{"query": "x", "relevant_docs": ["a", "a"]}]), None, "duplicate document a"),
    ('[{"query": "x", "relevant_docs": {"a": 1, "a": 2}}]', None, "item 1: duplicate key 'a'"),
    ('[{"query": "x", "query": "y", "relevant_docs": ["a"]}]', None, "duplicate key 'query'"),
    ('[{"query": "x", "relevant_docs": {"a": NaN}}]', None, "grade of document a is nan, not a"),
    ('[{"query": "x", "relevant_docs": {"a": 1e999}}]', None, "is inf, not a finite number"),
    (array([{"query": "x", "relevant_docs": {"a": "2"}}]), None, "is '2', not a finite number"),
    (array([{"query": "x", "relevant_docs": {"a": True}}]), None, "is True, not a finite number"),
    (array([{**ONE, "no_answer": "yes"}]), None, "no_answer is 'yes', not true or false"),
    (array([{**ONE, "no_answer": True}]), None, "marked no_answer, and document a has grade 1"),
    ('[{"query": "x", "relevant_docs": ["a"], "weight": -1}]', None, "weight is -1, neither"),
    ('[{"query": "x", "relevant_docs": ["a"], "cost": NaN}]', None, "cost is nan; attributes are"),
    (array([ONE, ONE]), None, "item 2: the query 'x' already exists, as q1"),
    (
        array([{**ONE, "id": "q2"}, {**ONE, "query": "y", "id": "q2"}]),
        None,
        "is already used by 'x'",
    ),
    (array([{**ONE, "id": "1"}, {**ONE, "id": 1}]), None, "'1' is already used by 'x'"),
    (array([{**ONE, "sources": {"b": "clicks"}}]), None, "document b has a source and no grade"),
    (array([{**ONE, "sources": ["a"]}]), None, "sources is not an object"),
    (lines([ONE]) + "{", 3, "not JSON"),
    (lines([ONE]) + '{"query": "y", "relevant_docs": {"a": null}}', 3, "is None, not a finite.*q2"),
    (lines([ONE]) + "[]", 3, r"expected a query, got \[\]"),
    (lines([ONE, ONE]), 2, "already exists, as q1"),
    (HEAD + "{}}", None, "no list of queries"),
    (HEAD + "[7]}", None, "item 1: expected a query, got 7"),
    ('{"karat_golden_set": 2, "queries": []}', None, "version 2; this karat reads version 1"),
    ('{"karat_golden_set": "1", "queries": []}', None, 'version "1"'),
    ('{"karat_golden_set": 1, "scale": [3, 0], "queries": []}', None, "invalid scale"),
    ('{"karat_golden_set": 1, "scale": [0], "queries": []}', None, "invalid scale"),
    ('{"karat_golden_set": 1, "name": 7, "queries": []}', None, "the name is 7, not text"),
    ('{"karat_golden_set": 1, "queries": [], "queries": []}', None, "duplicate key 'queries'"),
    (own([{"query": "x", "relevant_docs": {"a": 9}}], scale=[0, 3]), None, "not on the scale 0 to"),
    ('[{"query": "\\ud800", "relevant_docs": ["a"]}]', 1, "surrogate"),
    ("[" * 100_000, 1, "nested too deeply|not JSON"),
]


@pytest.mark.parametrize(("text", "line", "says"), DAMAGED)
def test_damage_is_named_with_its_place_and_nothing_is_half_read(
    text: str, line: int | None, says: str, tmp_path: Path
) -> None:
    path = tmp_path / "golden.json"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        golden.read(path)
    error = caught.value
    assert re.search(says, str(error), re.DOTALL), error
    assert (error.file, error.line) == (str(path), line)
    assert error.__cause__ is None
    if text[:1] in "[{" and len(text) < 1000 and "relevant_docs" in text:
        for read in (formats.read_qrels, formats.read_queries):
            with pytest.raises(InputError, match=r"golden\.json"):
                read(path)


def test_judged_without_a_relevant_document_and_not_judged_are_different(tmp_path: Path) -> None:
    items = [
        {"query": "not judged", "category": "task"},
        {"query": "judged", "relevant_docs": ["a"]},
        {"query": "nothing is relevant", "relevant_docs": {}},
        {"query": "nor here", "relevant_docs": []},
        {"query": "null is not judged", "relevant_docs": None},
    ]
    for spelt in (array, lines, own):
        (tmp_path / "g").write_text(spelt(items))
        held = golden.read(tmp_path / "g").queries
        assert [q.judged for q in held] == [False, True, True, True, False]
        qrels = formats.read_qrels(tmp_path / "g")
        assert qrels.without == {"q3", "q4"}
        assert qrels.query_ids == ["q2", "q3", "q4"]
        assert len(formats.read_queries(tmp_path / "g")) == 5
        again = golden.parse(golden.to_bytes(golden.GoldenFile(held)), "again").queries
        assert again == held


def test_lines_of_beirs_queries_are_queries_to_judge() -> None:
    line = b'{"_id": "7", "text": "x", "metadata": {"lang": "en"}}\n'
    (query,) = golden.parse(line, "f").queries
    assert (query.query_id, query.text, query.attributes) == ("7", "x", {"lang": "en"})
    assert not query.judged


def test_latin_1_is_refused(tmp_path: Path) -> None:
    (tmp_path / "g").write_bytes('[{"query": "café", "relevant_docs": ["a"]}]'.encode("latin-1"))
    with pytest.raises(InputError, match="not UTF-8"):
        golden.read(tmp_path / "g")


def test_a_run_and_documents_are_no_golden_set(tmp_path: Path) -> None:
    (tmp_path / "g").write_text(array(PLAIN))
    for read in (formats.read_run, formats.read_documents):
        with pytest.raises(InputError, match="got a golden set"):
            read(tmp_path / "g")


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
GRADE = st.one_of(st.integers(0, 3).map(float), st.floats(0, 1e6))
NAME = TEXT.filter(
    lambda n: (
        n not in {"query_id", "qid", "id", "_id", "query", "text", "weight"}
        and n not in {"relevant_docs", "sources", "no_answer"}
    )
)
QUERY = st.builds(
    GoldenQuery,
    query_id=TEXT,
    text=TEXT,
    judgments=st.dictionaries(TEXT, st.builds(Judgment, GRADE, TEXT), min_size=1, max_size=4),
    attributes=st.dictionaries(
        NAME,
        st.one_of(
            TEXT, st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False)
        ),
        max_size=3,
    ),
)


@given(queries=st.lists(QUERY, max_size=4, unique_by=lambda query: query.query_id), name=TEXT)
def test_what_is_written_reads_back_the_same(queries: list[GoldenQuery], name: str) -> None:
    held = golden.GoldenFile(queries, name, (0.0, 1e6))
    data = golden.to_bytes(held)
    assert golden.parse(data, "f") == held
    assert golden.to_bytes(golden.parse(data, "f")) == data
    assert data.count(b"\n") == len(queries) + 2 + (not queries)


def test_the_keys_of_the_own_shape_may_stand_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    for indent in (None, 1):
        whole = {"name": "docs", "queries": PLAIN, "karat_golden_set": 1, "scale": [0, 3]}
        path.write_text(json.dumps(whole, indent=indent))
        held = golden.read(path)
        assert (held.name, held.scale, len(held.queries)) == ("docs", (0.0, 3.0), 3)


@pytest.mark.parametrize("version", [0, -5, 2, "1", True, None, 1.5])
def test_other_versions_are_refused(version: Any) -> None:
    data = json.dumps({"karat_golden_set": version, "queries": PLAIN}).encode()
    with pytest.raises(InputError, match="this karat reads version 1") as caught:
        golden.parse(data, "g.json")
    assert ("upgrade" in str(caught.value.fix)) == (version == 2)


def test_a_key_that_stands_twice_late_in_a_large_object_is_found_at_once() -> None:
    docs = ", ".join(f'"d{i}": 1' for i in range(60_000))
    began = time.process_time()
    with pytest.raises(InputError, match="duplicate key 'd59999'"):
        golden.parse(f'[{{"query": "x", "relevant_docs": {{{docs}, "d59999": 1}}}}]'.encode(), "g")
    assert time.process_time() - began < 5  # by comparing each with all before it: a minute
