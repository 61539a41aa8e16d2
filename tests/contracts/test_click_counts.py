"""Every engine counts the same clicks: integers exactly, sums of floats to 1e-9."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from tests.click_traffic import traffic
from tests.event_stores import keep_events

from karat.engines.frames.engine import Engine
from karat.online.clicks.counts import Cells
from karat.workflows.online import _click_tables, reducers
from karat.workflows.online.click_counts import Counted, Counting, count_strata
from karat.workflows.online.reducers import FactsOf

pytestmark = pytest.mark.filterwarnings(
    "ignore:PySpark does not yet fully support pandas:FutureWarning"
)
COUNTING = Counting(
    depth=4, by="device", presentation="way", half_life_us=3 * 86_400_000_000, only={"tier": "x"}
)


def events() -> pl.DataFrame:
    """Lists of results and impressions, documents twice on a page, and odd texts and ids."""
    frame = traffic(120, queries=3, random=0.5)
    spread = (pl.col("user_id").str.slice(1).cast(pl.Int64) * 7_000_000_000) + pl.col("time_us")
    searches = frame["kind"] == "search"
    number = pl.int_range(pl.len())
    twice = pl.when(number % 11 == 0).then(
        pl.concat_list(pl.col("hits"), pl.col("hits").list.first())
    )
    frame = frame.with_columns(
        time_us=spread,
        hits=pl.when(searches).then(twice.otherwise(pl.col("hits"))),
        query=pl.when(pl.col("query").str.ends_with("2")).then(pl.lit("")).otherwise("query"),
        attribute_tier=pl.when(number % 5 > 0).then(pl.lit("x")),
        attribute_way=pl.when(searches & (number % 2 == 0)).then(pl.lit("a")),
        doc_id=pl.when(number % 13 > 0).then("doc_id"),
    )
    seen = frame.filter(searches).filter(pl.int_range(pl.len()) % 3 == 0).explode("hits")
    impressions = seen.select(
        "user_id",
        "query_id",
        pl.col("time_us") + 1_000_000,
        kind=pl.lit("impression"),
        doc_id="hits",
        position=pl.int_range(1, pl.len() + 1).over("user_id"),
        attribute_way=pl.when(pl.int_range(pl.len()) % 4 == 0).then(pl.lit("image ☕")),
    )
    return pl.concat([frame, impressions], how="diagonal_relaxed")


def same(found: Counted, wanted: Counted) -> None:
    for name in ("pages", "impressions", "clicks", "first_us", "last_us", "notes", "simulated"):
        assert getattr(found, name) == getattr(wanted, name)
    assert_frame_equal(found.queries, wanted.queries)
    assert_frame_equal(found.counts.pairs, wanted.counts.pairs)
    if isinstance(wanted.counts, Cells):
        assert isinstance(found.counts, Cells)
        assert_frame_equal(found.counts.places, wanted.counts.places)
        names = ("pair", "place", "shown", "clicked", "satisfied_low", "satisfied_high", "share")
    else:
        names = ("docs", "clicked", "count")
    for name in (*names, *(["share_clicked", "pages"] if isinstance(wanted.counts, Cells) else [])):
        one, other = getattr(found.counts, name), getattr(wanted.counts, name)
        np.testing.assert_allclose(one, other, rtol=1e-9, err_msg=name)


def test_the_same_counts_as_polars(
    engine: Engine, tmp_path: Path, deep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = keep_events(tmp_path / "log", events())
    by_page = replace(COUNTING, presentation=None, by=None)
    wanted, wanted_parts = count_strata(log, "cells", COUNTING)
    wanted_pages, _ = count_strata(log, "pages", by_page)
    assert wanted.clicks > 20
    assert wanted.counts.places["presentation"].n_unique() == 3
    if engine.name == "spark":  # its facts take a minute: those of the one batch are kept
        kept: list[FactsOf] = []

        def facts_of(*of: Any) -> FactsOf:
            if not kept:
                kept.append(reducers.facts_of(*of))
            return kept[0]

        monkeypatch.setattr(_click_tables, "facts_of", facts_of)
    whole, parts = count_strata(log, "cells", replace(COUNTING, engine=engine.name))
    same(whole, wanted)
    assert list(parts) == list(wanted_parts) == ["desk", "phone"]
    for value, part in parts.items():
        same(part, wanted_parts[value])
    if engine.name == "spark" or deep:  # DuckDB's plans take seconds
        whole, _ = count_strata(log, "pages", replace(by_page, engine=engine.name))
        same(whole, wanted_pages)
