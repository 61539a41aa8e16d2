"""Clicks of a log as counts, for click models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from karat.engines.frames.opening import open_engine
from karat.errors import InputError, UsageError, nearest
from karat.formats.events.click_pages import ReadPages, looks_like_pages, read_pages
from karat.online import health
from karat.online.clicks.counts import Cells, Pages
from karat.online.clicks.reduction import MOST, Reduction
from karat.online.evidence import column_of
from karat.online.health import NO_REAL_PEOPLE
from karat.online.rules import DAY, Rules
from karat.tables.days import day_number
from karat.tables.notes import Concern, Note
from karat.tables.online.events import EventLog
from karat.workflows.online._click_tables import Asked, ClickTables, read_tables
from karat.workflows.online.evaluate import event_log, no_events
from karat.workflows.online.filters import only_note

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


def count_clicks(log: Any, *, needs: Needs, **options: Any) -> dict[str | None, Counted]:
    """Counts of a log by value of an attribute, None last; ``{None: …}`` without ``by``.

    Args:
        log: An event log, as ``evaluate_online`` takes it, or a file in the research form.
        needs: What the click model is fitted on: ``registry.find(model).needs``.
        options: As of ``count_strata``.
    """
    whole, strata = count_strata(log, needs=needs, **options)
    return {None: whole} if options.get("by") is None else strata


def count_strata(
    log: Any,
    *,
    needs: Needs,
    depth: int = 10,
    by: str | None = None,
    presentation: str | None = None,
    half_life_us: int | None = None,
    only: Mapping[str, str] | None = None,
    present: str | None = None,
    engine: str = "polars",
    master: str | None = None,
    rules: Rules | None = None,
    first: str | date | None = None,
    last: str | date | None = None,
    mapping: str | Path | None = None,
    timezone: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Counted, dict[str | None, Counted]]:
    """Counts of a log, and of its searches with each value of the attribute ``by``.

    Args:
        log: As in ``count_clicks``.
        needs: As in ``count_clicks``.
        depth: Ranks below it are left out.
        by: An attribute of searches, or ``arm``.
        presentation: An attribute of impressions or searches: how documents were shown.
        half_life_us: Age at which a page counts half, in whole days before the last of the log;
            None: all alike.
        only: Attributes and values of the searches to count.
        present: An attribute that the searches to count have.
        engine: ``polars`` | ``duckdb`` | ``spark``.
        master: Spark master.
        rules: Of sessions and searches.
        first: First day; None: the first of the log.
        last: Last day; None: the last of the log.
        mapping: The meaning of columns and actions of a log that is not imported yet.
        timezone: Time zone in which its days begin.
        progress: Called with the part done and the whole.

    Raises:
        UsageError: an option that the form of the log does not support, or no such searches.
        InputError: the log cannot be read, or does not say which documents were shown.
    """
    if not 1 <= depth <= MOST:
        raise UsageError(f"the depth must be from 1 to {MOST}, got {depth}")
    if isinstance(log, str | Path) and looks_like_pages(log):
        _refuse_options(
            log,
            by=by,
            presentation=presentation,
            half_life=half_life_us,
            only=only,
            present=present,
            first=first,
            last=last,
            mapping=mapping,
            timezone=timezone,
            engine=None if engine == "polars" else engine,
        )
        return _of_pages(log, needs, depth, progress), {}
    if presentation is not None and needs == "pages":
        raise UsageError(
            "models that read a page from the top do not support presentation",
            fix="use a model of cells, such as PBM, or leave it out",
        )
    with (
        event_log(log, mapping=mapping, timezone=timezone) as (events, imported),
        open_engine(engine, master=master) as opened,
    ):
        from_day, to_day = (None if day is None else day_number(day) for day in (first, last))
        if health.period(events, from_day, to_day) is None:
            no_events(events, from_day, to_day)
        reduction = Reduction(
            depth,
            None if by is None else _attribute(by, events, "by", ("arm",)),
            None if presentation is None else _attribute(presentation, events, "presentation"),
            None if half_life_us is None else half_life_us / DAY,
            events.last_day or 0,
        )
        if present is not None:
            _attribute(present, events, "present")
        asked = Asked(rules or Rules(), from_day, to_day, only or {}, present)
        tables = read_tables(events, opened, reduction, asked, form=needs, progress=progress)
        if not tables.rows.height:
            _refuse_empty(tables, events, only or {})
        notes = [
            *([NO_REAL_PEOPLE] if events.simulated else []),
            *imported,
            *only_note(only or {}),
            *_click_notes(tables),
        ]
        simulated = events.simulated
    whole = _counted(tables, needs, notes, simulated, opened.name)
    strata = {
        value: _counted(part, needs, [], simulated, opened.name)
        for value, part in (tables.by_value() if by is not None else {}).items()
    }
    return whole, strata


def _attribute(name: str, log: EventLog, option: str, more: Sequence[str] = ()) -> str:
    """The column of an attribute."""
    known = [*log.attributes, *more]
    spelt = {each.casefold(): each for each in known}.get(name.strip().casefold())
    if spelt is None:
        raise UsageError(
            f"{option}: the log has no attribute {name}",
            nearest=nearest(name, known, 1),
            fix=f"it has {', '.join(known) or 'none'}",
        )
    return column_of(spelt)


def _refuse_empty(tables: ClickTables, log: EventLog, only: Mapping[str, str]) -> None:
    if not tables.totals.get("searches"):
        which = " and ".join(f"{name}={value}" for name, value in only.items())
        raise UsageError(f"the log has no searches for a text{which and f' with {which}'}")
    raise InputError(
        "the log does not say which documents its searches showed",
        file=str(log.folder),
        fix="log the list of results of each search (hits), or impressions with positions and the "
        "query_id of their search, and import it again",
    )


def _click_notes(tables: ClickTables) -> list[str]:
    totals = tables.totals
    pages = int(tables.spellings["searches"].sum())
    empty, lost = totals["searches"] - pages, totals.get("unattributed_clicks", 0)
    off = totals["clicks"] - totals["matched"]
    notes = []
    if empty:
        notes.append(
            f"{empty:,} of {totals['searches']:,} searches showed no documents, or the log does "
            "not say which"
        )
    if off:
        notes.append(
            f"{off:,} of {totals['clicks']:,} clicks are on documents that their search did not "
            f"show in its first {tables.reduction.depth}"
        )
    if lost:
        notes.append(f"{lost:,} clicks follow no search of their session")
    return [Note(note, Concern.INPUT) for note in notes]


def _counted(
    tables: ClickTables, needs: Needs, notes: list[str], simulated: bool, engine: str
) -> Counted:
    rows = tables.rows
    times = tables.spellings.select(pl.sum("searches"), pl.min("first_us"), pl.max("last_us"))
    pages, first_us, last_us = times.row(0)
    if needs == "cells":
        impressions, clicks = int(rows["impressions"].sum()), int(rows["clicks"].sum())
    else:
        shown = pl.sum_horizontal(pl.col(tables.reduction.docs).is_not_null())
        impressions = int(rows.select((shown * pl.col("pages")).sum()).item())
        clicks = int(
            rows.select((pl.col("bits").bitwise_count_ones() * pl.col("pages")).sum()).item()
        )
    return Counted(
        counts=tables.cells() if needs == "cells" else tables.pages(),
        pages=pages,
        impressions=impressions,
        clicks=clicks,
        queries=tables.queries(),
        first_us=first_us,
        last_us=last_us,
        notes=notes,
        simulated=simulated,
        engine=engine,
    )


def _refuse_options(path: str | Path, **options: Any) -> None:
    for name, value in options.items():
        if value is not None:
            raise UsageError(
                f"{name} needs an event log, and {path} is in the research form: pages of results "
                "and clicks, without times or attributes",
                fix=f"leave out {name}, or give events",
            )


def _of_pages(
    path: str | Path, needs: Needs, depth: int, progress: Callable[[int, int], None] | None
) -> Counted:
    size, done = Path(path).stat().st_size, 0

    def watch(read: int) -> None:
        nonlocal done
        done = min(done + read, size)  # a compressed file is larger than on disk
        if progress is not None:
            progress(done, size)

    read = read_pages(path, depth=depth, watch=watch)
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
