"""Reformulations: whether the next search rephrases the previous one, and how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cpdist

from karat.online.flags import behind, flag
from karat.online.rules import Rules

KINDS = ("add", "drop", "substitute", "respell", "reorder")
_JACCARD = 0.5
_ALIKE = 0.6
_AT_ONCE = 100_000  # pairs whose tokens are in memory
PAIR = ("query_key", "next_key")


def candidates(intents: nw.LazyFrame[Any], rules: Rules) -> nw.LazyFrame[Any]:
    """Search intents with the next one, if it comes soon enough to be a reformulation.

    Args:
        intents: From ``intents.intents``.
        rules: The longest gap, ``rules.reformulation``.

    Returns:
        The intents; ``next_key`` is null if the next comes later, or in another session.
    """
    soon = nw.col("next_us") - nw.col("ended_us") <= rules.reformulation
    other = nw.col("next_key") != nw.col("query_key")
    return intents.with_columns(next_key=nw.when(soon & other).then(nw.col("next_key")))


def pairs(intents: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """The distinct pairs of texts to classify: ``query_key`` and ``next_key``."""
    return intents.filter(~nw.col("next_key").is_null()).select(*PAIR).unique()


def classed(texts: pl.DataFrame) -> pl.DataFrame:
    """The kind of reformulation of each pair.

    A pair is a reformulation if the Jaccard index of its tokens is at least .5, its normalised
    Levenshtein similarity is at least .6, or the tokens of one are a subset of the other's. It is
    ``reorder`` (the same tokens), ``add`` or ``drop`` (a subset), ``respell`` (the tokens not
    shared have a similarity of at least .6), or ``substitute``.

    Args:
        texts: ``query_key`` and ``next_key``, distinct pairs, no nulls.

    Returns:
        The same rows in order with ``reformulation``, null if it is not a reformulation.

    Source: after Huang and Efthimiadis, CIKM 2009; surface similarity has many false positives
    (Hassan, EMNLP 2013).
    """
    parts = [_classed(each) for each in texts.iter_slices(_AT_ONCE)]
    return (
        pl.concat(parts) if parts else texts.with_columns(reformulation=pl.lit(None, pl.String()))
    )


def _classed(texts: pl.DataFrame) -> pl.DataFrame:
    split = texts.select(
        *PAIR,
        _one=pl.col("query_key").str.split(" ").list.unique(maintain_order=True),
        _two=pl.col("next_key").str.split(" ").list.unique(maintain_order=True),
    ).with_columns(
        pl.col("_one").list.set_difference(pl.lit([""])),
        pl.col("_two").list.set_difference(pl.lit([""])),
    )
    shared = pl.col("_one").list.set_intersection("_two").list.len()
    every = pl.col("_one").list.set_union("_two").list.len()
    sized = split.with_columns(
        _shared=shared,
        _every=every,
        _ones=pl.col("_one").list.len(),
        _twos=pl.col("_two").list.len(),
    ).with_columns(_rest=_apart("query_key", "_two"), _next_rest=_apart("next_key", "_one"))
    alike = _likeness(sized, *PAIR) >= _ALIKE
    respelt = _likeness(sized, "_rest", "_next_rest") >= _ALIKE
    subset = (pl.col("_shared") == pl.col("_ones")) | (pl.col("_shared") == pl.col("_twos"))
    both = (pl.col("_ones") > 0) & (pl.col("_twos") > 0)
    near = both & (pl.lit(alike) | subset | (pl.col("_shared") >= pl.col("_every") * _JACCARD))
    kind = (
        pl.when(~near)
        .then(None)
        .when((pl.col("_ones") == pl.col("_shared")) & (pl.col("_twos") == pl.col("_shared")))
        .then(pl.lit("reorder"))
        .when(pl.col("_ones") == pl.col("_shared"))
        .then(pl.lit("add"))
        .when(pl.col("_twos") == pl.col("_shared"))
        .then(pl.lit("drop"))
        .when(pl.lit(respelt))
        .then(pl.lit("respell"))
        .otherwise(pl.lit("substitute"))
    )
    return sized.select(*PAIR, reformulation=kind.cast(pl.String()))


def _apart(text: str, other: str) -> pl.Expr:
    """The words of a text that are not in the other, in order."""
    words = pl.col(text).str.split(" ").list.set_difference(other)
    return words.list.join(" ")


def _likeness(frame: pl.DataFrame, one: str, two: str) -> pl.Series:
    """Normalised Levenshtein similarity of two columns, row by row; 0 to 1."""
    values = cpdist(
        frame[one].to_list(),
        frame[two].to_list(),
        scorer=Levenshtein.normalized_similarity,
        dtype=np.float64,
    )
    return pl.Series(values)


def with_classes(
    intents: nw.LazyFrame[Any], classes: nw.LazyFrame[Any] | None
) -> nw.LazyFrame[Any]:
    """Search intents with ``reformulation`` by the next text; null without one.

    Args:
        intents: From ``candidates``.
        classes: From ``classed``; None if there are no pairs.
    """
    if classes is None:
        return intents.with_columns(reformulation=nw.lit(None).cast(nw.String))
    return intents.join(classes, on=list(PAIR), how="left")


def reformulated() -> nw.Expr:
    """1 where a search is reformulated: the next is similar, and no click was satisfied."""
    return flag(~nw.col("reformulation").is_null() & (nw.col("sat_low") == 0))


def spellings(
    searches: nw.LazyFrame[Any], keys: nw.LazyFrame[Any], part: Sequence[nw.Expr] = ()
) -> nw.LazyFrame[Any]:
    """How some queries were typed, and what users searched for next.

    Args:
        searches: SEARCHES, with the text as typed.
        keys: ``query_key``, distinct: the queries to report.
        part: Conditions on their searches; the next search may be any.

    Returns:
        ``query_key``, ``query``, ``next_query`` (as typed; null unless the search was reformulated
        or had no results) and ``count``, each combination once.
    """
    followed = searches.with_columns(
        _session=behind("session", order=("intent",)), _next=behind("query", order=("intent",))
    )
    # After zero results, users may choose quite different words: cms, content management.
    lost = (nw.col("reformulated") == 1) | (nw.col("zero") == 1)
    again = (nw.col("_session") == nw.col("session")) & lost
    selected = followed.join(keys, on="query_key", how="inner")
    for test in part:
        selected = selected.filter(test)
    return (
        selected.with_columns(next_query=nw.when(again).then(nw.col("_next")))
        .group_by("query_key", "query", "next_query")
        .agg(count=nw.len().cast(nw.Int64))
    )


def most_frequent(pairs: pl.DataFrame) -> dict[str, list[tuple[str, int]]]:
    """The texts of each query, the most frequent first; ties by text.

    Args:
        pairs: ``query_key``, ``key`` (equal for all spellings), ``text`` and ``count``.

    Returns:
        For each query the texts, each in its most frequent spelling, with their counts.
    """
    spelt = (
        pairs.group_by("query_key", "key", "text")
        .agg(pl.col("count").sum())
        .sort("count", "text", descending=[True, False])
    )
    totals = spelt.group_by("query_key", "key", maintain_order=True).agg(
        pl.col("text").first(), pl.col("count").sum()
    )
    texts: dict[str, list[tuple[str, int]]] = {}
    for query, _, text, count in totals.sort(
        "query_key", "count", "key", descending=[False, True, False]
    ).iter_rows():
        texts.setdefault(query, []).append((text, count))
    return texts
