"""Whatever a search function returns is a ranking, or says why it is none."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.tables.returned import Unusable, common_reason, ranked, shown


@pytest.mark.parametrize(
    ("value", "doc_ids", "scores"),
    [
        ([], [], []),
        (["b", "a"], ["b", "a"], [-1.0, -2.0]),
        (("b", "a"), ["b", "a"], [-1.0, -2.0]),
        ([7, 12], ["7", "12"], [-1.0, -2.0]),
        ([("b", 0.5), ("a", 0.25)], ["b", "a"], [0.5, 0.25]),
        ([["b", 2], (7, math.inf)], ["b", "7"], [2.0, math.inf]),
        ([{"id": "b"}, {"id": 7}], ["b", "7"], [-1.0, -2.0]),
        ([{"doc_id": "b", "score": 2}, {"_id": "a", "_score": 1.5}], ["b", "a"], [2.0, 1.5]),
        ([{"id": None, "_id": "b", "score": None}], ["b"], [-1.0]),
        (np.array(["b", "a"]), ["b", "a"], [-1.0, -2.0]),
        (np.array([3, 1]), ["3", "1"], [-1.0, -2.0]),
        ([("b", np.float32(0.5))], ["b"], [0.5]),
        ([("b", Decimal("0.5"))], ["b"], [0.5]),
        (pl.Series(["b", "a"]), ["b", "a"], [-1.0, -2.0]),
        ({"b": 1, "a": 2}.keys(), ["b", "a"], [-1.0, -2.0]),
    ],
)
def test_shapes_that_are_rankings(value: Any, doc_ids: list[str], scores: list[float]) -> None:
    found = ranked(value)
    assert (found.doc_ids, found.scores, found.repeated) == (doc_ids, scores, 0)


def test_the_first_of_a_repeated_document_counts() -> None:
    found = ranked([("a", 1.0), ("b", 3.0), ("a", 9.0), (7, 0.0), ("7", 0.0)])
    assert (found.doc_ids, found.scores, found.repeated) == (["a", "b", "7"], [1.0, 3.0, 0.0], 2)


@given(ids=st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1)))
def test_without_scores_the_order_is_kept_exactly(ids: list[str]) -> None:
    found = ranked(ids)
    assert found.doc_ids == list(dict.fromkeys(ids))
    assert found.scores == sorted(set(found.scores), reverse=True)
    assert found.repeated == len(ids) - len(set(ids))


@pytest.mark.parametrize(
    ("value", "says", "kind"),
    [
        (None, "it returned None", "None"),
        ("abc", "it returned a str", "str"),
        (7, "it returned an int", "int"),
        ({"hits": []}, "it returned a dict", "dict"),
        ({"a"}, "a set, which has no order", "set"),
        (pl.DataFrame({"id": ["a"]}), "it returned a DataFrame", "DataFrame"),
        ([None], "result 1 is None", "a NoneType for an id"),
        (["a", 1.5], "result 2 is a float; ids are text", "a float for an id"),
        ([True], "result 1 is a bool", "a bool for an id"),
        ([object()], "result 1 is an object", "a object for an id"),
        ([UUID(int=7)], r"a UUID; ids are text \(give str\(id\)\)", "a UUID for an id"),
        ([("a", 1, 2)], "result 1 has 3 parts", "not a pair"),
        ([("a",)], "result 1 has 1 part, not id and score", "not a pair"),
        ([{}], "result 1 has no 'id'$", "a dict without id"),
        ([("a", "b")], r"a score is a str \(document a\)", "a str for a score"),
        ([("a", True)], r"a score is a bool \(document a\)", "a bool for a score"),
        ([{"title": "x"}], "result 1 has no 'id', only 'title'", "a dict without id"),
        ([{"id": "a", "score": 1}, "b"], "some documents have a score", "scores for some only"),
        ([("a", math.nan)], r"a score is NaN \(document a\)", None),
        ([("a", Decimal("sNaN"))], r"a score is NaN \(document a\)", None),
        ([("a", 10**400)], r"a score is too large \(document a\)", None),
        ([""], r"an id is empty \(result 1\)", None),
        (["\ud800"], "half a surrogate pair", None),
    ],
)
def test_shapes_that_are_none(value: Any, says: str, kind: str | None) -> None:
    with pytest.raises(Unusable, match=says) as caught:
        ranked(value)
    assert caught.value.kind == kind
    assert caught.value.came == shown(value)


def test_what_came_back_is_shown_whatever_it_is() -> None:
    class Mute:
        def __repr__(self) -> str:
            raise RuntimeError

    assert shown(Mute()) == "a Mute"
    assert len(shown("x" * 999)) == 121

    class Loud:
        def __repr__(self) -> str:
            return "two\n  lines \x1b[31m"

    assert shown(Loud()) == "two lines ?[31m"


def test_it_says_whether_there_were_scores() -> None:
    assert ranked([("a", 1.0)]).scored
    assert not ranked(["a"]).scored
    assert not ranked([]).scored


def test_failures_of_one_kind_are_counted_together() -> None:
    for value in ([("d896", math.nan)], [("a (b)", math.nan)], [("x" * 500, math.nan)]):
        with pytest.raises(Unusable) as caught:
            ranked(value)
        assert common_reason(str(caught.value)) == "a score is NaN"
        assert common_reason(str(caught.value)[:120]) == "a score is NaN"  # long ones are cut
    assert common_reason("refused (document 7)") == "refused (document 7)"
