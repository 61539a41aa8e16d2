"""Clicks of a log as counts, for click models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from datetime import date
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from karat.engines.frames.engine import Engine
from karat.engines.frames.opening import open_engine
from karat.errors import InputError, UsageError, nearest
from karat.formats.events.click_pages import ReadPages, looks_like_pages, read_pages
from karat.online import health
from karat.online.clicks.counts import Cells, Pages
from karat.online.clicks.reduction import MOST, Reduction
from karat.online.evidence import column_of
from karat.online.health import NO_REAL_PEOPLE
from karat.online.rules import DAY, Rules
from karat.reports.phrases.numbers import counted
from karat.tables.days import day_number
from karat.tables.notes import Concern, Note
from karat.tables.online.events import EventLog
from karat.workflows.online._click_tables import ClickTables, read_tables
from karat.workflows.online.evaluate import event_log, no_events
from karat.workflows.online.evidence import Selection
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


@dataclass(frozen=True, kw_only=True)
class Counting:
    """What to count of a log."""

    depth: int = 10  # ranks below it are left out
    by: str | None = None  # an attribute of searches, or `arm`
    presentation: str | None = None  # an attribute of impressions or searches: how they were shown
    # Age at which a page counts half, in whole days before the last of the log; None: all alike
    half_life_us: int | None = None
    only: Mapping[str, str] | None = None  # attributes and values of the searches to count
    present: str | None = None  # an attribute that they have
    engine: str = "polars"  # `polars` | `duckdb` | `spark`
    master: str | None = None  # Spark master
    rules: Rules | None = None  # of sessions and searches
    first: str | date | None = None  # first day; None: the first of the log
    last: str | date | None = None
    mapping: str | Path | None = None  # of the columns and actions of a log that is not imported
    timezone: str | None = None  # in which its days begin
    progress: Callable[[int, int], None] | None = None  # gets the part done and the whole


def count_clicks(log: Any, *, needs: Needs, **options: Any) -> dict[str | None, Counted]:
    """Counts of a log by value of the attribute ``by``, None last; ``{None: …}`` without it.

    Args:
        log: An event log, as ``evaluate_online`` takes it, or a file in the research form.
        needs: What the click model is fitted to: ``registry.find(model).needs``.
        options: As in ``Counting``.

    Raises:
        UsageError: an option that the form of the log does not support, or no such searches.
        InputError: the log cannot be read, or does not say which documents were shown.
    """
    counting = Counting(**options)
    with open_log(log, counting) as (opened, notes):
        whole, strata = count_strata(opened, needs, counting)
    whole = replace(whole, notes=[*notes, *whole.notes])
    return {None: whole} if counting.by is None else strata


@contextmanager
def open_log(log: Any, counting: Counting) -> Iterator[tuple[EventLog | str | Path, list[str]]]:
    """A log, imported once, and notes on its import, until the block ends.

    A file in the research form is the log itself.
    """
    if isinstance(log, str | Path) and looks_like_pages(log):
        yield log, []
        return
    with event_log(log, mapping=counting.mapping, timezone=counting.timezone) as opened:
        yield opened


def count_strata(
    log: EventLog | str | Path, needs: Needs, counting: Counting
) -> tuple[Counted, dict[str | None, Counted]]:
    """Counts of an open log, and of its searches with each value of ``counting.by``."""
    if not 1 <= counting.depth <= MOST:
        raise UsageError(f"the depth must be from 1 to {MOST}, got {counting.depth}")
    if not isinstance(log, EventLog):
        _refuse_options(log, counting)
        return _of_pages(log, needs, counting), {}
    if counting.presentation is not None and needs == "pages":
        raise UsageError(
            "models that read a page from the top do not support presentation",
            fix="use a model of cells, such as PBM, or leave it out",
        )
    with open_engine(counting.engine, master=counting.master) as engine:
        tables = _tables(log, engine, needs, counting)
    notes = [
        *([NO_REAL_PEOPLE] if log.simulated else []),
        *only_note(counting.only or {}),
        *_click_notes(tables),
    ]
    whole = _counted(tables, needs, notes, log.simulated, counting.engine)
    strata = {
        value: _counted(part, needs, [], log.simulated, counting.engine)
        for value, part in (tables.by_value() if counting.by is not None else {}).items()
    }
    return whole, strata


def _tables(log: EventLog, engine: Engine, needs: Needs, counting: Counting) -> ClickTables:
    first, last = (
        None if day is None else day_number(day) for day in (counting.first, counting.last)
    )
    if health.period(log, first, last) is None:
        no_events(log, first, last)
    by, presentation, half_life = counting.by, counting.presentation, counting.half_life_us
    reduction = Reduction(
        counting.depth,
        None if by is None else _attribute(by, log, "by", ("arm",)),
        None if presentation is None else _attribute(presentation, log, "presentation"),
        None if half_life is None else half_life / DAY,
        log.last_day or 0,
    )
    present = None if counting.present is None else _attribute(counting.present, log, "present")
    only = counting.only or {}
    for name in only:
        _attribute(name, log, "only", ("arm", "day", "hour", "query"))
    selection = Selection(log, counting.rules or Rules(), first, last, engine=engine, only=only)
    tables = read_tables(
        selection, reduction, form=needs, present=present, progress=counting.progress
    )
    if not tables.rows.height:
        _refuse_empty(tables, log, only)
    return tables


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
            f"{empty:,} of {counted(totals['searches'], 'search')} showed no documents, or the log "
            "does not say which"
        )
    if off:
        notes.append(
            f"{off:,} of {counted(totals['clicks'], 'click')} are on documents that their search "
            f"did not show in its first {tables.reduction.depth}"
        )
    if lost:
        notes.append(f"{counted(lost, 'click')} without a search in the same session")
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


_SUPPORTED = {"depth", "engine", "rules", "master", "progress"}
"""Options of a log in the research form; rules do nothing there."""
_DAYS = {"first": "a first day", "last": "a last day"}


def _refuse_options(path: str | Path, counting: Counting) -> None:
    given = [
        each.name.removesuffix("_us")
        for each in fields(counting)
        if each.name not in _SUPPORTED and getattr(counting, each.name) is not None
    ]
    given += ["engine"] if counting.engine != "polars" else []
    if given:
        raise needs_events(_DAYS.get(given[0], given[0]), path)


def needs_events(option: str, path: str | Path) -> UsageError:
    """An option that a log in the research form does not support."""
    return UsageError(
        f"{option} needs an event log, and {path} is in the research form: pages of results and "
        "clicks, without times or attributes",
        fix=f"leave out {option}, or give events",
    )


def _of_pages(path: str | Path, needs: Needs, counting: Counting) -> Counted:
    size, done = Path(path).stat().st_size, 0

    def watch(read: int) -> None:
        nonlocal done
        done = min(done + read, size)  # a compressed file is larger than on disk
        if counting.progress is not None:
            counting.progress(done, size)

    read = read_pages(path, depth=counting.depth, distinct=needs == "pages", watch=watch)
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
        notes=_read_notes(read, counting.depth),
        simulated=False,
        engine="polars",
    )


def _read_notes(read: ReadPages, depth: int) -> list[str]:
    notes = []
    if read.off_page:
        off = counted(read.off_page, "click")
        notes.append(f"{off} on documents that their page does not show: not counted")
    if read.below:
        notes.append(
            f"{counted(read.below, 'document')} below rank {depth}, with "
            f"{counted(read.clicks_below, 'click')}: not counted"
        )
    if read.uncut:
        notes.append(f"{counted(read.uncut, 'page')} without ':': taken as a page without clicks")
    return [Note(note, Concern.INPUT) for note in notes]
