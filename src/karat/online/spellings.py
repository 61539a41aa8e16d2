"""Spellings: how queries were typed, and what users searched for next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import polars as pl

from karat.online.flags import behind


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
