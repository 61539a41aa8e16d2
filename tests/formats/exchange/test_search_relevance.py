"""OpenSearch's judgment lists and query sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from karat.errors import InputError
from karat.formats.exchange.catalogue import read_exchange, write_exchange
from karat.tables.golden.golden_sets import Exchange


def put(folder: Path, value: Any, name: str = "list.json") -> Path:
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


LIST = {
    "name": "n",
    "type": "IMPORT_JUDGMENT",
    "judgmentRatings": [
        {
            "query": "laptop",
            "ratings": [{"docId": "a", "rating": "3.000"}, {"docId": "b", "rating": "0"}],
            "failures": [{"docId": "c"}],
        }
    ],
}


@pytest.mark.parametrize(
    "value",
    [LIST, {"_source": LIST}, {"hits": {"total": {"value": 1}, "hits": [{"_source": LIST}]}}],
    ids=["sent", "got", "searched"],
)
def test_a_judgment_list_however_it_is_wrapped(value: Any, tmp_path: Path) -> None:
    found = read_exchange(put(tmp_path, value))
    assert found.format == "opensearch-judgments"
    assert found.judgments is not None
    assert found.judgments.rows() == [
        ("q1", "a", 3.0, None, None),
        ("q1", "b", 0.0, None, None),
    ]
    assert found.lost == ["'name' of the list", "documents that could not be judged"]


def test_several_lists_are_refused(tmp_path: Path) -> None:
    hits = [{"_source": LIST}, {"_source": LIST}]
    with pytest.raises(InputError, match="expected one judgment list, got 2 hits"):
        read_exchange(put(tmp_path, {"hits": {"hits": hits}}))


@pytest.mark.parametrize(
    ("told", "rater"),
    [
        ({"type": "LLM_JUDGMENT", "modelId": "m1"}, "llm m1"),
        ({"type": "LLM_JUDGMENT", "metadata": {"modelId": "m2"}}, "llm m2"),
        ({"type": "UBI_JUDGMENT", "metadata": {"clickModel": "coec"}}, "clicks coec"),
        ({"type": "UBI_JUDGMENT"}, "clicks"),
    ],
)
def test_what_no_person_judged_says_so(told: dict[str, Any], rater: str, tmp_path: Path) -> None:
    found = read_exchange(put(tmp_path, {**LIST, **told}))
    assert found.judgments is not None
    assert set(found.judgments["rater"]) == {rater}
    assert any("the judgments are not by a person" in said for said in found.assumed)


def test_ratings_are_written_as_text(tmp_path: Path) -> None:
    judged = pl.DataFrame({"query_id": ["1"], "doc_id": ["a"], "grade": [0.5]})
    path = tmp_path / "out.json"
    write_exchange(Exchange("made", judgments=judged), path, "opensearch-judgments")
    # ImportJudgmentsProcessor.java casts docId and rating to String.
    (query,) = json.loads(path.read_text())["judgmentRatings"]
    assert query["ratings"] == [{"docId": "a", "rating": "0.5"}]


SET = [{"queryText": "tv", "referenceAnswer": "a tv", "locale": "de"}, {"queryText": "phone"}]


@pytest.mark.parametrize(
    "value",
    [
        {"name": "n", "sampling": "manual", "querySetQueries": SET},
        SET,
        "\n".join(json.dumps(each) for each in SET) + "\n",
    ],
    ids=["sent", "array", "ndjson"],
)
def test_a_query_set_in_every_shape(value: Any, tmp_path: Path) -> None:
    found = read_exchange(put(tmp_path, value))
    assert found.format == "opensearch-queries"
    assert found.queries is not None
    assert found.queries.rows() == [("q1", "tv", "a tv", "de"), ("q2", "phone", None, None)]


def test_lines_with_answers_and_plain_lines(tmp_path: Path) -> None:
    path = put(tmp_path, 'query: "a \\"b\\"", answer: "c"\nquery: "d"\n')
    found = read_exchange(path)
    assert found.queries is not None
    assert found.queries.select("text", "reference_answer").rows() == [('a "b"', "c"), ("d", None)]
    plain = put(tmp_path, "star wars\n\nstar wars\ndune", "plain.txt")
    found = read_exchange(plain, "opensearch-queries")
    assert found.queries is not None
    assert found.queries["text"].to_list() == ["star wars", "dune"]
    assert any("the entries of 1 text were merged" in said for said in found.assumed)
    with pytest.raises(InputError, match="unknown format"):
        read_exchange(plain)  # any text is a list of queries, so it has to be asked for


@pytest.mark.parametrize("name", ["set.json", "set.ndjson", "set.txt"])
def test_queries_go_out_as_the_file_is_called(name: str, tmp_path: Path) -> None:
    queries = pl.DataFrame(
        {"query_id": ["1", "2"], "text": ["a", 'query: "b"'], "reference_answer": ["x", None]}
    )
    path = tmp_path / name
    write_exchange(Exchange("made", queries=queries), path, "opensearch-queries")
    back = read_exchange(path).queries
    assert back is not None
    assert back.drop("query_id").equals(queries.drop("query_id"))


def test_fields_called_as_karats_columns_keep_out_of_their_way(tmp_path: Path) -> None:
    entry = {"queryText": "a", "text": "b", "query_id": "c", "weight": "heavy"}
    found = read_exchange(put(tmp_path, [entry]))
    assert found.queries is not None
    assert found.queries.row(0, named=True) == {
        "query_id": "q1",
        "text": "a",
        "field.text": "b",
        "field.query_id": "c",
        "field.weight": "heavy",
    }


@pytest.mark.parametrize(
    ("value", "match"),
    [
        ({**LIST, "type": "OTHER"}, 'type is "OTHER", not one of IMPORT_JUDGMENT'),
        ({**LIST, "judgmentRatings": {}}, "judgmentRatings is {}, not an array"),
        (
            {"judgmentRatings": [{"query": "a", "ratings": [{"docId": "x", "rating": "good"}]}]},
            r"\.judgmentRatings\[0\]\.ratings\[0\]\.rating is \"good\", not a finite number",
        ),
        ({"judgmentRatings": [{"query": "a", "ratings": [{"rating": "1"}]}]}, "has no key 'docId'"),
        ('{"queryText": "a"}\n{"queryText": 3}\n', "line 2: the object.queryText is 3, not text"),
        ('{"queryText": "a"}\n{"queryText": \n', "line 2: not JSON"),
    ],
)
def test_damage_is_named_by_its_place(value: Any, match: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=match):
        read_exchange(put(tmp_path, value))
