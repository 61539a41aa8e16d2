"""Slices: by one attribute or several, what is lacking, and what all slices have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.choosing import FEW

from karat.diagnosis.slices import slices_of
from karat.errors import UsageError
from karat.measures import parse
from karat.measures.scores import Rules, Scores, score
from karat.tables import Documents, Qrels, Queries, Run
from karat.workflows.offline.evaluate import evaluate

QRELS = {"a": {"d": 1}, "b": {f"d{i}": 1 for i in range(3)}, "c": {f"d{i}": 1 for i in range(20)}}
RUN = {query: {"d": 1.0, "d0": 0.5} for query in QRELS}
QUERIES = Queries(
    pl.DataFrame(
        {
            "query_id": ["a", "b", "c"],
            "text": ["one", "one two three four", None],
            "kind": ["x", "", "x"],
        }
    )
)

DOCUMENTS = Documents(
    pl.DataFrame(
        {
            "doc_id": ["d1", "d2", "d3", "d4"],
            "title": ["t"] * 4,
            "lang": ["en", "de", "en", ""],
            "size": [1, 2, 3, 4],
        }
    )
)
JUDGED = {
    "a": {"d1": 1.0, "d2": 2.0},
    "b": {"d3": 1.0, "d2": 0.0, "d4": 1.0},
    "c": {"d4": 1.0},
    "d": {"elsewhere": 1.0},
}


def sliced(by: str, queries: Queries | None = QUERIES, **more: Any) -> list[tuple[str | None, int]]:
    rows = evaluate(QRELS, RUN, "RR", queries=queries, by=by, **more).slices
    return [(row.slice, row.n) for row in rows]


def scored(
    qrels: dict[str, dict[str, float]], *runs: dict[str, dict[str, float]], **rules: Any
) -> list[Scores]:
    judged = Qrels.from_dict(qrels)
    return [score(Run.from_dict(run), judged, [parse("RR")], Rules(**rules)) for run in runs]


def members(
    by: str,
    qrels: dict[str, dict[str, float]],
    *runs: dict[str, dict[str, float]],
    queries: Queries | None = None,
    documents: Documents | None = None,
    **rules: Any,
) -> dict[str, str]:
    """The queries of each slice, their ids (of one letter) put together."""
    scores = scored(qrels, *runs, **rules)
    found = slices_of(queries, by, scores, documents, Qrels.from_dict(qrels))
    assert len({name for name, _ in found}) == len(found)
    ids = np.array(scores[0].evidence.query_ids)
    return {name: "".join(ids[mask]) for name, mask in found}


# Attributes of the queries


def test_by_an_attribute() -> None:
    assert sliced("kind") == [("(none)", 1), ("x", 2)]


def test_by_how_much_there_is_to_find() -> None:
    assert sliced("relevant_documents") == [("1", 1), ("2 to 3", 1), ("11 and more", 1)]
    assert sliced("relevant_documents", None) == sliced("relevant_documents")


def test_by_the_length_of_the_query() -> None:
    assert sliced("query_length") == [("1 word", 1), ("3 to 4 words", 1)]  # c has no text


def test_an_attribute_of_ones_own_goes_first() -> None:
    own = Queries(QUERIES.frame.with_columns(query_length=pl.Series(["s", "l", "l"])))
    assert sliced("query_length", own) == [("l", 2), ("s", 1)]


def test_a_query_may_have_several_values() -> None:
    lists = {"query_id": list("abcd"), "it": [["x", "y"], ["y"], [], None]}
    queries = Queries(pl.DataFrame(lists))
    found = members("it", JUDGED, JUDGED, queries=queries)
    assert found == {"x": "a", "y": "ab", "(none)": "cd"}


def test_queries_without_a_relevant_document_have_no_first_one() -> None:
    qrels = {"a": {"r": 1.0}, "b": {"r": 0.0}}
    assert members("first_relevant", qrels, qrels) == {"1": "a"}
    assert members("first_relevant", qrels, qrels, complete=True) == {"1": "a", "none": "b"}


def test_queries_without_an_answer_are_in_no_slice() -> None:
    queries = Queries(pl.DataFrame({"query_id": ["a", "b"], "count": [1, 9], "x": ["u", "u"]}))
    qrels = {"a": {"d1": 1.0}, "b": {"d3": 2.0}}
    for by in ("x", "frequency_band", "first_relevant", "relevant.lang", "returned.lang"):
        found = members(
            by, qrels, qrels, queries=queries, documents=DOCUMENTS, no_answer=frozenset("a")
        )
        assert list(found.values()) == ["b"], by


# Several attributes


def test_combinations_that_occur() -> None:
    queries = Queries(
        pl.DataFrame({"query_id": list("abcd"), "x": ["1", "1", "2", None], "y": list("uvuv")})
    )
    assert members("x,y", JUDGED, JUDGED, queries=queries) == {
        "1, u": "a",
        "1, v": "b",
        "2, u": "c",
        "(none), v": "d",
    }
    assert members("y, relevant.lang", JUDGED, JUDGED, queries=queries, documents=DOCUMENTS) == {
        "u, de": "a",
        "u, en": "a",
        "u, (none)": "c",
        "v, en": "b",
        "v, (none)": "d",
    }


def test_a_column_with_a_comma_in_its_name_goes_first() -> None:
    queries = Queries(
        pl.DataFrame({"query_id": list("abcd"), "x,y": list("uuvv"), "x": list("1234")})
    )
    assert members("x,y", JUDGED, JUDGED, queries=queries) == {"u": "ab", "v": "cd"}


# Mistakes


@pytest.mark.parametrize(
    ("by", "documents", "said"),
    [
        ("knd", None, "queries have no attribute 'knd'; they have kind; did you mean kind"),
        ("first_relevent", None, "did you mean first_relevant"),
        ("kind,knd", None, "no attribute 'knd'.*did you mean kind"),
        ("kind,", None, "no attribute ''"),
        ("relevant.lang", None, "needs the documents(?s:.*)fix: add the documents"),
        ("lang", DOCUMENTS, "did you mean relevant.lang or returned.lang"),
        ("relevant.lnag", DOCUMENTS, "have lang, size; did you mean relevant.lang"),
        ("relevant.lnag", DOCUMENTS, "documents have no attribute 'lnag'"),
        ("returned.title", DOCUMENTS, "documents have no attribute 'title'"),
    ],
)  # fmt: skip
def test_an_attribute_there_is_not(by: str, documents: Documents | None, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        sliced(by, documents=documents)


def test_what_is_lacking_is_told() -> None:
    for by in ("kind", "query_length", "frequency_band"):
        with pytest.raises(UsageError, match=r"needs the queries and their attributes\n"):
            sliced(by, None)
    with pytest.raises(UsageError, match="add the documents"):
        sliced("returned.title")
    with pytest.raises(UsageError, match="needs the texts"):
        sliced("query_length", Queries(QUERIES.frame.drop("text")))


# Laws

columns = st.one_of(
    st.lists(st.sampled_from(["x", "y", "z", "", None]), min_size=30, max_size=30),
    st.lists(st.one_of(st.none(), st.integers(-50, 50)), min_size=30, max_size=30),
    st.lists(st.one_of(st.none(), st.floats(width=32)), min_size=30, max_size=30),
    st.lists(st.one_of(st.none(), st.dates()), min_size=30, max_size=30),
)
IDS = [f"q{i:02}" for i in range(30)]
THIRTY = scored({query: {"d": 1.0} for query in IDS}, {query: {"d": 1.0} for query in IDS})


@FEW
@given(columns, columns)
def test_slices_of_a_column_share_no_query_and_leave_none_out(one: Any, two: Any) -> None:
    queries = Queries(pl.DataFrame({"query_id": IDS, "one": one, "two": two}, strict=False))
    alone = {by: slices_of(queries, by, THIRTY) for by in ("one", "two", "one,two")}
    for found in alone.values():
        assert np.array_equal(np.sum([mask for _, mask in found], axis=0), np.ones(30))
        assert all(mask.any() for _, mask in found)
        assert len({name for name, _ in found}) == len(found)
    # Each combination lies within one slice of either.
    for _, mask in alone["one,two"]:
        for by in ("one", "two"):
            assert sum(bool((mask & whole).any()) for _, whole in alone[by]) == 1
            assert any(np.array_equal(mask & whole, mask) for _, whole in alone[by])


# Quartiles and forms


def test_quartiles_of_the_words() -> None:
    # Words 1 1 1 2 3 4 6 9: cuts at the 2nd, 4th and 6th (1, 2, 4); equal lengths stay together.
    lengths = dict(zip("abcdefgh", (1, 1, 1, 2, 3, 4, 6, 9), strict=True))
    texts = [" ".join(["w"] * n) for n in lengths.values()]
    queries = Queries(pl.DataFrame({"query_id": list(lengths), "text": texts}))
    qrels = {query: {"d": 1.0} for query in lengths}
    found = members("query_length:quartiles", qrels, qrels, queries=queries)
    expected = {"1 word": "abc", "2 words": "d", "3 to 4 words": "ef", "6 to 9 words": "gh"}
    assert found == expected
    assert list(found) == list(expected)


def test_quartiles_of_any_numbers() -> None:
    # Four values would be slices of their own.
    queries = Queries(pl.DataFrame({"query_id": list("abcd"), "price": ["5", "1", "1", None]}))
    assert members("price:quartiles", JUDGED, JUDGED, queries=queries) == {
        "1": "bc", "5": "a", "(none)": "d",
    }  # fmt: skip
    found = members("relevant.size:quartiles", JUDGED, JUDGED, documents=DOCUMENTS)
    assert found == {"1": "a", "2": "a", "3": "b", "4": "bc", "(none)": "d"}
    # Relevant documents: a 2, b 2, c 1, d 1.
    assert members("relevant_documents:quartiles", JUDGED, JUDGED) == {"1": "cd", "2": "ab"}
    for by in ("kind:quartiles", "query_form:quartiles", "first_relevant:quartiles"):
        with pytest.raises(UsageError, match="quartiles are of numbers"):
            members(by, JUDGED, JUDGED, queries=QUERIES)


def test_by_the_form_of_the_query() -> None:
    queries = Queries(
        pl.DataFrame({"query_id": list("abcd"), "text": ["how to sort", "sort list", " ", None]})
    )
    found = members("query_form", JUDGED, JUDGED, queries=queries)
    assert found == {"keyword": "b", "question": "a"}  # c and d have no text
