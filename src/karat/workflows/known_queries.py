"""Queries that a golden set has already, told by what was typed, and what is known of them."""

from __future__ import annotations

import polars as pl

from karat.golden.traffic import folded


def same_queries(there: pl.DataFrame, asked: pl.DataFrame) -> dict[str, str]:
    """The id in the golden set of each query of a file or a log.

    A query whose text the golden set has, whatever its case and white space, is that query; one
    whose id is another query's there gets a new id.

    Args:
        there: ``query_id`` and ``text`` of the golden set.
        asked: ``query_id`` and perhaps ``text``.
    """
    keys = dict(zip(there["query_id"], folded(there["text"].fill_null("")), strict=True))
    by_key = {key: query for query, key in reversed(keys.items()) if key}
    texts = asked["text"].fill_null("") if "text" in asked.columns else [""] * asked.height
    taken, ids = {*keys, *asked["query_id"]}, {}
    for query, key in zip(asked["query_id"], folded(texts), strict=True):
        new = query
        if key and key in by_key and keys.get(query) != key:
            new = by_key[key]
        elif key and keys.get(query) not in {None, "", key}:
            # The id is another query's here.
            number = 2
            while f"{query}-{number}" in taken:
                number += 1
            new = f"{query}-{number}"
        taken.add(new)
        ids[query] = new
    return ids


def over(there: pl.DataFrame, given: pl.DataFrame, key: str) -> pl.DataFrame:
    """What is said now of each row given, over what was known of it.

    Args:
        there: What was known; rows that are not given are left out.
        given: What is said; null where nothing is.
        key: The column both share.
    """
    given = given.unique(key, keep="first", maintain_order=True)
    both = given.join(there, on=key, how="left", suffix="_there", maintain_order="left")
    shared = [name for name in given.columns if name != key and name in there.columns]
    told = [pl.coalesce(name, f"{name}_there").alias(name) for name in shared]
    return both.with_columns(told).drop(f"{name}_there" for name in shared)
