"""Queries that a golden set has already, told by what was typed, and what is known of them."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from karat.golden.traffic import folded

_SHOWN = 3  # texts that several queries have


def same_queries(there: pl.DataFrame, asked: pl.DataFrame) -> dict[str, str]:
    """The id in the golden set of each query of a file or a log; no two have one.

    A query whose text the golden set has, whatever its case and white space, is that query; one
    whose id is another query's there gets a new id. Of several queries with one text each is one
    of those that the golden set has with it: the one of its id, or the next that is free; what is
    left stays a query of its own.

    Args:
        there: ``query_id`` and ``text`` of the golden set.
        asked: ``query_id`` and perhaps ``text``.
    """
    keys = dict(zip(there["query_id"], _folded(there), strict=True))
    wanted = dict(zip(asked["query_id"], _folded(asked), strict=True))
    free: dict[str, list[str]] = {}
    for query, key in keys.items():
        if key and wanted.get(query) not in ("", key):  # what has its own id there is that
            free.setdefault(key, []).append(query)
    taken, ids = {*keys, *wanted}, {}
    for query, key in wanted.items():
        new = query
        if keys.get(query) != key and free.get(key):
            new = free[key].pop(0)
        elif key and keys.get(query) not in {None, "", key}:
            # The id is another query's here.
            number = 2
            while f"{query}-{number}" in taken:
                number += 1
            new = f"{query}-{number}"
        taken.add(new)
        ids[query] = new
    return ids


def shared_texts(asked: pl.DataFrame, ids: Mapping[str, str]) -> list[str]:
    """What is to be said of queries of a file that have one text, in sentences.

    Args:
        asked: ``query_id`` and perhaps ``text``.
        ids: The id of each in the golden set, of ``same_queries``.
    """
    sharing: dict[str, list[str]] = {}
    for query, key in zip(asked["query_id"], _folded(asked), strict=True):
        if key:
            sharing.setdefault(key, []).append(query)
    several = [group for group in sharing.values() if len(group) > 1]
    told = [
        f"queries {' and '.join(map(repr, group))} have one text, but for case and white space: "
        f"they stay apart, as {' and '.join(repr(ids[query]) for query in group)}; give them one "
        "id if they are one"
        for group in several[:_SHOWN]
    ]
    if len(several) > _SHOWN:
        told.append(f"and {len(several) - _SHOWN:,} more texts that several queries have")
    return told


def _folded(frame: pl.DataFrame) -> list[str]:
    """The form of each query's text under which spellings are equal; empty without a text."""
    return folded(frame["text"].fill_null("") if "text" in frame.columns else [""] * frame.height)


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
