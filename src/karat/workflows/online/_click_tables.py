"""An event log reduced to the tables that counts of clicks are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw
import numpy as np
import polars as pl

from karat.engines.frames.engine import Engine
from karat.online.clicks.counts import Cells, Pages
from karat.online.clicks.reduction import PAGE, Reduction
from karat.online.evidence import shown as has_value
from karat.workflows.online.evidence import Selection
from karat.workflows.online.filters import narrowed
from karat.workflows.online.reducers import FactsOf, Reformulations, facts_of

Form = Literal["cells", "pages"]
_AT_ONCE = 2_000_000  # rows that are merged
_CELLS = ("shown", "clicked", "satisfied_low", "satisfied_high", "share", "share_clicked")
_SUMS_OF: Mapping[Form, Mapping[str, pl.Expr]] = {
    "cells": {name: pl.sum(name) for name in ("impressions", "clicks", *_CELLS)},
    "pages": {name: pl.sum(name) for name in ("pages", "weight")},
}
_TEXT = {
    "searches": pl.sum("searches"),
    "weight": pl.sum("weight"),
    "first_us": pl.min("first_us"),
    "last_us": pl.max("last_us"),
}


@dataclass(frozen=True)
class ClickTables:
    """Counts of a log."""

    reduction: Reduction
    # Sums by cell, or `pages` and `weight` by page; each row once
    rows: pl.DataFrame
    spellings: pl.DataFrame  # pages by query and spelling
    # `searches` for a text, `clicks` on their pages, those of them `matched` to a document shown,
    # `unattributed_clicks` without a search, and other counts of the log
    totals: dict[str, int]

    def by_value(self) -> dict[str | None, ClickTables]:
        """The part of each value of the attribute to count by, in order, None last."""
        values = self.spellings["value"].unique().sort(nulls_last=True).to_list()
        parts = {}
        for value in values:
            own = pl.col("value").eq_missing(pl.lit(value, pl.String))
            rows, spellings = (frame.filter(own) for frame in (self.rows, self.spellings))
            parts[value] = ClickTables(self.reduction, rows, spellings, self.totals)
        return parts

    def _whole(self, form: Form) -> pl.DataFrame:
        """Rows of all values, each once."""
        if self.reduction.value is None:
            return self.rows
        sums = _SUMS_OF[form]
        keys = [name for name in self.rows.columns if name != "value" and name not in sums]
        return self.rows.group_by(keys).agg(**sums).sort(keys)

    def queries(self) -> pl.DataFrame:
        """`query`, `text` (its most frequent spelling) and `searches`, by query."""
        spellings = self.spellings.group_by("query", "text").agg(pl.sum("searches"))
        ordered = spellings.sort("query", "searches", "text", descending=[False, True, False])
        by_query = ordered.group_by("query", maintain_order=True)
        return by_query.agg(pl.first("text"), pl.sum("searches"))

    def cells(self) -> Cells:
        """Rows by cell as counts."""
        rows = self._whole("cells")
        if "presentation" not in rows.columns:
            rows = rows.with_columns(presentation=pl.lit(None, pl.String))
        pairs = rows.select("query", "doc_id").unique().sort("query", "doc_id")
        places = rows.select("rank", "presentation").unique().sort("rank", "presentation")
        numbers = [
            rows.join(
                keys.with_row_index("row"),
                on=keys.columns,
                how="left",
                nulls_equal=True,
                maintain_order="left",
            )["row"].to_numpy()
            for keys in (pairs, places)
        ]
        pair, place = (each.astype(np.int64) for each in numbers)
        sums = {name: rows[name].fill_null(0).to_numpy().astype(np.float64) for name in _CELLS}
        return Cells(
            pairs=pairs,
            places=places,
            pair=pair,
            place=place,
            pages=float(self.spellings["weight"].sum()),
            **sums,
        )

    def pages(self) -> Pages:
        """Rows by page as counts."""
        rows, docs = self._whole("pages"), self.reduction.docs
        long = pl.concat([rows.select("query", doc_id=name) for name in docs]).drop_nulls("doc_id")
        pairs = long.unique().sort("query", "doc_id")
        numbered = pairs.with_row_index("row").with_columns(pl.col("row").cast(pl.Int32))
        columns = [
            rows.select("query", doc_id=name)
            .join(numbered, on=["query", "doc_id"], how="left", maintain_order="left")["row"]
            .fill_null(-1)
            .to_numpy()
            for name in docs
        ]
        matrix = np.column_stack(columns)
        deepest = int(np.flatnonzero((matrix >= 0).any(axis=0)).max(initial=-1)) + 1
        bits = rows["bits"].to_numpy()[:, None] >> np.arange(deepest)
        count = rows["weight"].to_numpy().astype(np.float64)
        return Pages(pairs, matrix[:, :deepest], (bits & 1).astype(np.bool_), count)


def read_tables(
    selection: Selection,
    reduction: Reduction,
    *,
    form: Form,
    present: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ClickTables:
    """The tables of a log, read in batches; by page, or by cell.

    ``present`` is a column that searches must have a value of.
    """
    log, engine = selection.log, selection.engine
    needed = (present, reduction.value, reduction.presentation)
    scope = selection.scope([each for each in needed if each], text=True, lists=True)
    seen = Reformulations()
    page = [*reduction.groups, *reduction.docs, "bits"]
    rows = _Sums(page if form == "pages" else reduction.cell, _SUMS_OF[form])
    spellings = _Sums([*reduction.groups, "text"], _TEXT)
    totals: dict[str, int] = {}
    done = 0
    columns = [*scope.columns, "hits"]
    for events in engine.batches(log, columns, scope.since, scope.until):
        batch = facts_of(events.drop("hits"), engine, scope, seen)
        searches = narrowed(batch.searches, selection.tests)
        if present is not None:
            searches = searches.filter(~has_value(present, None))
        counts = _added(batch, searches, events, engine, reduction, rows, spellings, form=form)
        del batch  # free the batch before the next is read
        for name, number in counts.items():
            totals[name] = totals.get(name, 0) + number
        done = min(done + counts.get("events", 0), log.rows)
        if progress is not None:
            progress(done, log.rows)
    if progress is not None:
        progress(log.rows, log.rows)
    return ClickTables(reduction, rows.whole(), spellings.whole(), totals)


def _added(
    batch: FactsOf,
    searches: nw.LazyFrame[Any],
    events: nw.LazyFrame[Any],
    engine: Engine,
    reduction: Reduction,
    rows: _Sums,
    spellings: _Sums,
    *,
    form: Form,
) -> dict[str, int]:
    """Add a batch to rows and spellings; its totals."""
    asked = engine.keep(reduction.asked(searches))
    shown = reduction.from_lists(asked, events)
    if batch.shown is not None:
        seen = engine.keep(reduction.from_impressions(batch.shown, asked))
        without = asked.join(seen.select(*PAGE), on=list(PAGE), how="anti")
        shown = nw.concat([seen, reduction.from_lists(without, events)])
    shown = engine.keep(shown)
    clicked = engine.keep(reduction.clicked(batch.clicks, shown))
    if form == "pages":
        rows.add(engine.collect(reduction.distinct_pages(shown, clicked)))
    else:
        rows.add(engine.collect(reduction.shown_cells(shown)))
        rows.add(engine.collect(reduction.clicked_cells(clicked)))
    spellings.add(engine.collect(reduction.spellings(shown)))
    counts = dict(engine.collect(batch.counts).group_by("name").agg(pl.sum("count")).iter_rows())
    counts["searches"] = int(engine.collect(asked.select(n=nw.len())).item())
    matches = engine.collect(reduction.matches(clicked)).row(0, named=True)
    return {**counts, **{name: int(number or 0) for name, number in matches.items()}}


class _Sums:
    """Rows of several batches, added up by key whenever they are many."""

    def __init__(self, keys: Sequence[str], how: Mapping[str, pl.Expr]) -> None:
        self._keys, self._how = list(keys), dict(how)
        self._parts: list[pl.DataFrame] = []
        self._merged = 0

    def add(self, rows: pl.DataFrame) -> None:
        self._parts.append(rows)
        if sum(part.height for part in self._parts) > 2 * self._merged + _AT_ONCE:
            self._parts = [self.whole()]
            self._merged = self._parts[0].height

    def whole(self) -> pl.DataFrame:
        """Each key once, sorted by all keys."""
        rows = pl.concat(self._parts, how="diagonal").group_by(self._keys).agg(**self._how)
        return rows.sort(self._keys)
