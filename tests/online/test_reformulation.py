"""Reformulations: which pairs are one, and of which kind."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.online.reformulation import KINDS, classed


def kind(one: str, two: str) -> str | None:
    """The class of a pair."""
    found = classed(pl.DataFrame({"query_key": [one], "next_key": [two]}))
    value: str | None = found["reformulation"].item()
    return value


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        ("shoes", "red shoes", "add"),
        ("red shoes for men", "shoes", "drop"),  # Jaccard 1/4, but a subset
        ("red shoes", "shoes red", "reorder"),
        ("red red shoes", "red shoes", "reorder"),  # the same words
        ("red shoes", "blue shoes", "substitute"),  # similarity 1 - 4/10 = .6
        ("running shoos", "running shoes", "respell"),  # "shoos", "shoes": 1 - 1/5 = .8
        ("note book", "notebook", "respell"),  # no word shared; 1 - 1/9
        ("cheap red shoes", "cheap blue shoes", "substitute"),  # Jaccard 2/4
        ("tent", "boat", None),  # 1 - 3/4
        ("red shoes", "winter coat", None),
        ("abcde", "abcxy", "respell"),  # 1 - 2/5 = .6, which is enough
        ("abcd", "abxy", None),  # 1 - 2/4
        ("", "shoes", None),
        ("shoes", "", None),
        ("naïve  bayes", "bayes naïve", "reorder"),  # two spaces are one
        ("Ⅷ \u0130", "Ⅷ", "drop"),
    ],
)
def test_pairs(one: str, two: str, expected: str | None) -> None:
    assert kind(one, two) == expected


WORD = st.text(alphabet="abcé", min_size=1, max_size=4)
QUERY = st.lists(WORD, min_size=1, max_size=4).map(" ".join)


@given(QUERY, QUERY)
def test_backwards_it_is_the_opposite(one: str, two: str) -> None:
    opposite = {"add": "drop", "drop": "add"}
    there, back = kind(one, two), kind(two, one)
    assert there is None or there in KINDS
    # Of words that are not shared the order is kept, so their likeness is the same both ways.
    assert back == (opposite.get(there, there) if there else None)


def test_pairs_are_classed_alone_however_many_there_are() -> None:
    texts = pl.DataFrame({"query_key": ["a b", "a", "c"], "next_key": ["b a", "a b", "d"]})
    whole = classed(texts)
    assert whole["reformulation"].to_list() == ["reorder", "add", None]
    assert whole.select("query_key", "next_key").equals(texts)
    assert classed(texts.clear()).schema == whole.schema
