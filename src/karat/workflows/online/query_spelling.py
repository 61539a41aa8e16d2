"""How queries were typed, and what users searched for next instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl

from karat.golden.traffic import folded
from karat.online.evidence import shown
from karat.online.flags import USER
from karat.online.reformulation import most_frequent, spellings
from karat.workflows.online.evidence import Selection
from karat.workflows.online.reducers import Reformulations, facts_of


@dataclass(frozen=True, slots=True)
class QuerySpellings:
    texts: Mapping[str, str]  # the most frequent spelling of each query, by its folded form
    # Reformulations with their counts, most frequent first, by folded form
    following: Mapping[str, list[tuple[str, int]]]

    def text(self, key: str) -> str:
        """The most frequent spelling of a query; its folded form if unknown."""
        return self.texts.get(key, key)

    def next_queries(self, key: str) -> list[tuple[str, int]]:
        """The reformulations of a query, with counts."""
        return self.following.get(key, [])


def query_spellings(selection: Selection, keys: Iterable[str]) -> QuerySpellings:
    """Spellings and reformulations of queries, by folded forms; reads the log once more."""
    key_frame = pl.DataFrame({"query_key": sorted(set(keys))}, {"query_key": pl.String})
    if key_frame.is_empty():
        return QuerySpellings({}, {})
    tests, engine, classes = selection.tests, selection.engine, selection.classes
    scope = selection.scope(text=True)
    grouped = engine.table(classes) if "class" in tests and classes is not None else None
    part = [shown(column, value) for column, value in tests.values()]
    seen, parts = Reformulations(), []
    for events in engine.batches(selection.log, scope.columns, scope.since, scope.until):
        keys_here = engine.table(key_frame)
        asking = scope.within(events).join(keys_here, on="query_key", how="semi")
        relevant = events.join(asking.select(USER).unique(), on=USER, how="semi")
        batch = facts_of(relevant, engine, scope, seen)
        searches = batch.searches
        if grouped is not None:
            searches = searches.join(grouped, on="query_key", how="left")
        parts.append(engine.collect(spellings(searches, keys_here, part)))
    columns = ["query_key", "query", "next_query", "count"]
    rows = pl.concat([part.select(columns) for part in parts])
    as_text = rows.drop_nulls("query").select(
        "query_key", key="query_key", text="query", count="count"
    )
    reformulated = rows.drop_nulls("next_query").select(
        "query_key", text="next_query", count="count"
    )
    reformulated = reformulated.with_columns(
        key=pl.Series(folded(reformulated["text"]), dtype=pl.String)
    )
    texts = {key: first[0][0] for key, first in most_frequent(as_text).items()}
    return QuerySpellings(texts, most_frequent(reformulated))
