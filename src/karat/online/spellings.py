"""Spellings: how queries were typed, and what people searched for instead of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import polars as pl

from karat.online.flags import behind


def spellings(
    searches: nw.LazyFrame[Any], keys: nw.LazyFrame[Any], part: Sequence[nw.Expr] = ()
) -> nw.LazyFrame[Any]:
    """How some queries were typed, and what people searched for instead.

    Args:
        searches: SEARCHES, with what was typed.
        keys: ``query_key``, each once: the queries that are wanted.
        part: What holds of the searches that are wanted; what follows may be any.

    Returns:
        ``query_key``, ``query``, ``next_query`` (as typed; null where it neither was said again in
        other words nor found nothing) and ``count``, each combination once.
    """
    said = searches.with_columns(
        _session=behind("session", order=("intent",)), _next=behind("query", order=("intent",))
    )
    # Whoever finds nothing may say it in quite other words: cms, content management.
    lost = (nw.col("reformulated") == 1) | (nw.col("zero") == 1)
    again = (nw.col("_session") == nw.col("session")) & lost
    wanted = said.join(keys, on="query_key", how="inner")
    for test in part:
        wanted = wanted.filter(test)
    return (
        wanted.with_columns(next_query=nw.when(again).then(nw.col("_next")))
        .group_by("query_key", "query", "next_query")
        .agg(count=nw.len().cast(nw.Int64))
    )


def most_frequent(pairs: pl.DataFrame) -> dict[str, list[tuple[str, int]]]:
    """What goes with each query, the most frequent first; of equals by its text.

    Args:
        pairs: ``query_key``, ``key`` (under which spellings are one), ``text`` and ``count``.

    Returns:
        For each query the texts, each spelt as it was most often, with their counts.
    """
    spelt = (
        pairs.group_by("query_key", "key", "text")
        .agg(pl.col("count").sum())
        .sort("count", "text", descending=[True, False])
    )
    totals = spelt.group_by("query_key", "key", maintain_order=True).agg(
        pl.col("text").first(), pl.col("count").sum()
    )
    found: dict[str, list[tuple[str, int]]] = {}
    for query, _, text, count in totals.sort(
        "query_key", "count", "key", descending=[False, True, False]
    ).iter_rows():
        found.setdefault(query, []).append((text, count))
    return found
