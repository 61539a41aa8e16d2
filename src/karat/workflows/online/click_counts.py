"""Clicks of a log as counts, for click models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from karat.errors import UsageError
from karat.formats.events.click_pages import ReadPages, looks_like_pages, read_pages
from karat.online.clicks.counts import Cells, Pages
from karat.online.rules import Rules
from karat.tables.notes import Concern, Note

Needs = Literal["cells", "pages"]


@dataclass(frozen=True)
class Counted:
    """Clicks of a log, or of its searches with one value of an attribute."""

    counts: Cells | Pages
    pages: int  # whole numbers, never weighted: pages of results
    impressions: int  # documents shown
    clicks: int  # documents clicked, each once a page
    queries: pl.DataFrame  # `query`, `text` (its most frequent spelling) and `searches`, by query
    first_us: int | None  # time of the first search in microseconds; None without times
    last_us: int | None  # of the last
    notes: list[str]
    simulated: bool
    engine: str


def count_clicks(
    log: Any,
    *,
    needs: Needs,
    depth: int = 10,
    by: str | None = None,
    presentation: str | None = None,
    half_life_us: int | None = None,
    only: Mapping[str, str] | None = None,
    engine: str = "polars",
    master: str | None = None,
    rules: Rules | None = None,
    first: str | date | None = None,
    last: str | date | None = None,
    mapping: str | Path | None = None,
    timezone: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str | None, Counted]:
    """Counts of a log by value of the attribute ``by``; ``{None: …}`` without it.

    Args:
        log: An event log, as ``evaluate_online`` takes it, or a file in the research form.
        needs: What the click model is fitted on; ``models`` says it for each.
        depth: Ranks below it are left out.
        by: An attribute of searches; None is also the key of searches without it.
        presentation: An attribute of impressions or searches: how documents were shown.
        half_life_us: Age at which a page counts half, by whole days before the last; None for all
            pages alike.
        only: Attribute and value of the searches to count.

    Raises:
        UsageError: an option that the form of the log does not support, or nothing to count.
        InputError: the log cannot be read.
    """
    if depth < 1:
        raise UsageError(f"the depth must be ≥ 1, got {depth}")
    if not isinstance(log, str | Path) or not looks_like_pages(log):
        raise NotImplementedError
    options = {
        "by": by,
        "presentation": presentation,
        "half_life": half_life_us,
        "only": only,
        "first": first,
        "last": last,
        "mapping": mapping,
        "timezone": timezone,
    }
    return {None: _of_pages(log, needs, depth, options, engine)}


def _of_pages(
    path: str | Path, needs: Needs, depth: int, options: Mapping[str, Any], engine: str
) -> Counted:
    for name, value in options.items():
        if value is not None:
            raise UsageError(
                f"{name} needs an event log, and {path} is in the research form: pages of results "
                "and clicks, without times or attributes",
                fix=f"leave out {name}, or give events",
            )
    if engine != "polars":
        raise UsageError(
            f"a log in the research form is not read with the engine {engine}",
            fix="leave out the engine, or give events",
        )
    read = read_pages(path, depth=depth)
    pages = read.pages
    shown = pages.docs >= 0
    query = pages.pairs["query"].rle_id().to_numpy()  # pairs are sorted by query
    searches = np.bincount(query[pages.docs[:, 0]], pages.count, int(query[-1]) + 1)
    texts = pages.pairs["query"].unique(maintain_order=True)
    return Counted(
        counts=pages if needs == "pages" else pages.cells(),
        pages=int(pages.count.sum()),
        impressions=int(shown.sum(axis=1) @ pages.count),
        clicks=int(pages.clicked.sum(axis=1) @ pages.count),
        queries=pl.DataFrame(
            {"query": texts, "text": texts, "searches": searches.astype(np.int64)}
        ),
        first_us=None,
        last_us=None,
        notes=_read_notes(read, depth),
        simulated=False,
        engine="polars",
    )


def _read_notes(read: ReadPages, depth: int) -> list[str]:
    notes = []
    if read.off_page:
        notes.append(f"{read.off_page:,} clicks on documents that their page does not show")
    if read.below:
        notes.append(
            f"{read.below:,} documents below rank {depth}, with {read.clicks_below:,} clicks, are "
            "left out (depth)"
        )
    if read.repeated:
        notes.append(
            f"{read.repeated:,} pages show a document at several ranks: a click counts at each"
        )
    if read.uncut:
        notes.append(f"{read.uncut:,} pages have no ':' and count as pages without clicks")
    return [Note(note, Concern.INPUT) for note in notes]
