"""The content of an edition, its hash, and the difference of two."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.errors import InputError, UsageError
from karat.golden.editions import Content, difference, edition, frames

QUERIES = pl.DataFrame(
    {
        "query_id": ["q2", "q1"],
        "text": ["größe", "shoes"],
        "weight": [2.0, 0.5],
        "no_answer": [False, None],
        "class": ["torso", "head"],
        "added_us": [1, 2],
    }
)
GRADES = pl.DataFrame(
    {
        "query_id": ["q2", "q1", "q1"],
        "doc_id": ["x", "b", "a"],
        "grade": [3.0, 0.0, 1.5],
        "votes": [2, 2, 1],
        "rule": ["majority", "adjudicated", "median"],
        "raters": [["ann", "bob"], ["eve"], ["ann"]],
        "spread": [0.0, 3.0, 0.0],
    }
)
ABOUT = {"scale": (0.0, 3.0), "rule": "adjudicated, majority, median", "kappa": 0.74, "old": None}


def test_the_canonical_form() -> None:
    content, sha256 = edition(QUERIES, GRADES, ABOUT)
    assert content == {
        "edition": 1,
        "about": {"scale": [0, 3], "rule": "adjudicated, majority, median", "kappa": 0.74},
        "queries": [
            {"query_id": "q1", "text": "shoes", "weight": 0.5, "class": "head"},
            {
                "query_id": "q2",
                "text": "größe",
                "weight": 2,
                "no_answer": False,
                "class": "torso",
            },
        ],
        "grades": [
            {
                "query_id": "q1",
                "doc_id": "a",
                "grade": 1.5,
                "votes": 1,
                "rule": "median",
                "raters": ["ann"],
            },
            {
                "query_id": "q1",
                "doc_id": "b",
                "grade": 0,
                "votes": 2,
                "rule": "adjudicated",
                "raters": ["eve"],
            },
            {
                "query_id": "q2",
                "doc_id": "x",
                "grade": 3,
                "votes": 2,
                "rule": "majority",
                "raters": ["ann", "bob"],
            },
        ],
    }
    # By hand: keys sorted, no spaces, UTF-8.
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    assert sha256 == hashlib.sha256(text.encode()).hexdigest()


@given(st.permutations(range(3)), st.permutations(range(2)), st.permutations(QUERIES.columns))
def test_the_hash_knows_no_order_and_no_number_type(
    grades: list[int], queries: list[int], columns: list[str]
) -> None:
    _, expected = edition(QUERIES, GRADES, ABOUT)
    others = QUERIES[queries].select(columns).with_columns(pl.lit(None).alias("need"))
    typed = GRADES[grades].with_columns(pl.col("votes").cast(pl.Float64))
    _, found = edition(others, typed, dict(reversed(ABOUT.items())))
    assert found == expected


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("queries", "text", "boots"),
        ("queries", "weight", 0.25),
        ("queries", "no_answer", True),
        ("grades", "grade", 2.0),
        ("grades", "rule", "majority"),
    ],
)
def test_the_hash_knows_every_value(table: str, column: str, value: Any) -> None:
    _, expected = edition(QUERIES, GRADES, ABOUT)
    changed = pl.when(pl.col("query_id") == "q2").then(pl.lit(value)).otherwise(pl.lit(None))
    new = {
        "queries": QUERIES,
        "grades": GRADES,
    }
    new[table] = new[table].with_columns(pl.coalesce(changed, column).alias(column))
    if table == "grades" and column == "rule":
        new[table] = new[table].with_columns(rule=pl.lit(value))
    assert edition(new["queries"], new["grades"], ABOUT)[1] != expected
    assert edition(QUERIES, GRADES, {**ABOUT, "kappa": 0.75})[1] != expected


def test_an_edition_comes_back_from_json() -> None:
    content, sha256 = edition(QUERIES, GRADES, ABOUT)
    queries, grades = frames(json.loads(json.dumps(content)), sha256)
    assert queries.sort("query_id").to_dicts() == (
        QUERIES.drop("added_us").sort("query_id").to_dicts()
    )
    assert grades.schema["grade"] == pl.Float64
    expected = GRADES.drop("spread").sort("query_id", "doc_id")
    assert grades.equals(expected)
    # A second time round, it is the same edition.
    assert edition(queries, grades, content["about"]) == (content, sha256)


def test_an_edition_without_grades_and_numbers_of_two_kinds() -> None:
    queries = pl.DataFrame({"query_id": ["a", "b"], "size": [1.0, 0.5], "flag": [True, None]})
    content, sha256 = edition(queries, GRADES.clear(), {})
    again, grades = frames(content, sha256)
    assert again.equals(queries.select("query_id", "flag", "size"))  # attributes by name
    assert grades.columns == ["query_id", "doc_id", "grade"]
    assert not grades.height


def test_what_was_changed_is_told() -> None:
    content, sha256 = edition(QUERIES, GRADES, ABOUT)
    content["grades"][0]["grade"] = 2
    with pytest.raises(InputError, match="the edition was changed"):
        frames(content, sha256)
    with pytest.raises(InputError, match="form 2; this karat reads form 1"):
        frames({**content, "edition": 2})
    with pytest.raises(InputError, match="form None"):
        frames({})


@pytest.mark.parametrize(
    ("queries", "grades", "about", "message"),
    [
        (QUERIES.clear(), GRADES, {}, "no queries to freeze"),
        (pl.concat([QUERIES, QUERIES]), GRADES, {}, "duplicate query id .query q2"),
        (QUERIES, pl.concat([GRADES, GRADES]), {}, "duplicate pair"),
        (QUERIES[:1], GRADES, {}, "unknown query .query q1"),
        (QUERIES, GRADES.with_columns(grade=pl.lit(math.nan)), {}, "not a finite number"),
        (QUERIES, GRADES.with_columns(grade=pl.lit(None, pl.Float64)), {}, "not a finite number"),
        (QUERIES.with_columns(weight=pl.lit(math.inf)), GRADES, {}, "cannot store inf"),
        (QUERIES, GRADES, {"by": object}, "an edition cannot store"),
    ],
)
def test_what_is_refused(
    queries: pl.DataFrame, grades: pl.DataFrame, about: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        edition(queries, grades, about)


def made(queries: dict[str, dict[str, Any]], grades: dict[str, dict[str, float]]) -> Content:
    rows = [(query, doc, grade) for query, docs in grades.items() for doc, grade in docs.items()]
    schema = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Float64}
    return edition(
        pl.DataFrame([{"query_id": query, **row} for query, row in queries.items()]),
        pl.DataFrame(rows, schema, orient="row"),
        {"guideline": str(len(rows))},
    )[0]


def test_a_difference_by_hand() -> None:
    old = made(
        {
            "q1": {"text": "shoes", "weight": 1.0, "class": "head"},
            "q2": {"text": "hats", "weight": 1.0, "class": "tail"},
        },
        {"q1": {"a": 1, "b": 0, "c": 2, "same": 3}, "q2": {"x": 1}},
    )
    new = made(
        {
            "q1": {"text": "Shoes", "weight": 0.5, "class": "head"},
            "q3": {"text": "coats", "weight": 1.0, "class": "torso"},
        },
        {"q1": {"a": 3, "c": 1, "same": 3, "d": 0}, "q3": {"y": 2}},
    )
    found = difference(old, new, by="class")
    assert not found.same
    assert found.queries.rows() == [
        ("q1", "changed", "text", "shoes", "Shoes"),
        ("q1", "changed", "weight", "1", "0.5"),
        ("q2", "removed", None, None, None),
        ("q3", "added", None, None, None),
    ]
    assert found.grades.rows() == [
        ("q1", "a", "changed", 1.0, 3.0, "head"),
        ("q1", "b", "removed", 0.0, None, "head"),
        ("q1", "c", "changed", 2.0, 1.0, "head"),
        ("q1", "d", "added", None, 0.0, "head"),
        ("q2", "x", "removed", 1.0, None, "tail"),
        ("q3", "y", "added", None, 2.0, "torso"),
    ]
    assert found.moves.rows() == [(1.0, 3.0, 1), (2.0, 1.0, 1)]
    assert found.classes.columns == ["class", "added", "removed", "changed", "same"]
    assert found.classes.rows() == [
        ("head", 1, 1, 2, 1),
        ("tail", 0, 1, 0, 0),
        ("torso", 1, 0, 0, 0),
    ]
    assert found.about == {}  # both say 5
    assert difference(old, new).classes.rows() == [(None, 2, 2, 2, 1)]
    with pytest.raises(UsageError, match="did you mean class"):
        difference(old, new, by="clas")


grades = st.dictionaries(
    st.sampled_from(["q1", "q2"]),
    st.dictionaries(st.sampled_from("abc"), st.sampled_from([0.0, 1.0, 2.0])),
)
BOTH = {"q1": {"text": "one"}, "q2": {"text": "two"}}


@given(grades, grades)
def test_a_difference_leads_from_the_old_to_the_new(
    old: dict[str, dict[str, float]], new: dict[str, dict[str, float]]
) -> None:
    found = difference(made(BOTH, old), made(BOTH, new))
    led = {(query, doc): grade for query, docs in old.items() for doc, grade in docs.items()}
    for query, doc, change, _, grade, _ in found.grades.iter_rows():
        if change == "removed":
            del led[query, doc]
        else:
            led[query, doc] = grade
    assert led == {
        (query, doc): grade for query, docs in new.items() for doc, grade in docs.items()
    }
    back = difference(made(BOTH, new), made(BOTH, old)).grades
    assert back.height == found.grades.height
    assert found.same == (found.grades.height == 0)


def test_the_same_edition_differs_in_nothing() -> None:
    one, _ = edition(QUERIES, GRADES, ABOUT)
    found = difference(one, one)
    assert found.same
    assert not found.about
    assert found.classes.rows() == [(None, 0, 0, 0, 3)]
