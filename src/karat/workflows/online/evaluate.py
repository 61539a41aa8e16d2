"""Online metrics of a log: numbers with intervals, slice by slice, and how far to trust them."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl

from karat.engines.frames.engine import Engine
from karat.errors import InputError, UsageError
from karat.golden.traffic import folded
from karat.online import health, histograms, moments
from karat.online.estimates import censoring, estimate, needed, trust
from karat.online.evidence import Cut
from karat.online.metrics import registry
from karat.online.rules import Rules, rules_from
from karat.tables import Queries
from karat.tables.days import day_number, day_text, span_text
from karat.tables.online.evaluation import DIMENSIONS, OnlineResult, OnlineResults
from karat.tables.online.events import EventLog
from karat.workflows.offline import inputs
from karat.workflows.online.evidence import gather
from karat.workflows.online.filters import Only, only_note

_CLASS = "class"
_CLOSE = 0.6  # below, of two words that mean different things some letters happen to agree
_TAKEN = {
    *moments.empty(()).columns,
    *histograms.empty_histogram(()).columns,
    *histograms.empty_positions(()).columns,
}
"""Columns of evidence, which stand beside those of a cut."""


def evaluate(
    log: EventLog,
    engine: Engine,
    metrics: Sequence[str] | None = None,
    by: Sequence[str] = (),
    *,
    first_day: int | None = None,
    last_day: int | None = None,
    queries: Any = None,
    only: Only | None = None,
    rules: Rules | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> OnlineResults:
    """The values of online metrics over a log, and in its slices.

    Args:
        log: What an event store holds.
        engine: What computes it, open.
        metrics: Names; ``karat.online.metrics.registry.DEFAULT`` if None.
        by: What to slice by: ``day``, ``hour`` (of the day), ``arm``, ``query``, ``class``, an
            attribute of the log, or several at once as ``day,arm``.
        first_day: No earlier day, in local days since 1970-01-01; None: the first there is.
        last_day: No later day; None: the last there is.
        queries: For ``class``: queries with ``text`` and ``class``; a path, a frame, or Queries.
        only: Count only searches with these values, as ``{"arm": "b"}``; None as a value: not
            logged. Health is that of the whole log.
        rules: By which events become searches and sessions; ``Rules()`` if None.
        seed: Of the buckets drawn for intervals of quantiles and such.
        progress: Told how much is done, and of how much.

    Returns:
        The rows of all, then those of each slice, in the order of ``by``.

    Raises:
        UsageError: no metric or slice has such a name (the nearest is named), ``class`` without
            queries, or days of which the log holds no events.
        InputError: the queries have no texts.
    """
    rules = rules or Rules()
    wanted = registry.find_all(registry.DEFAULT if metrics is None else metrics)
    if not wanted:
        raise UsageError("no metric is asked for", fix="karat online metrics lists them all")
    if seed < 0:
        raise UsageError(f"the seed {seed} is below 0")
    if first_day is not None and last_day is not None and first_day > last_day:
        first, last = map(day_text, (first_day, last_day))
        raise UsageError(f"the period from {first} to {last} ends before it begins")
    cuts = [cut_of(said, log) for said in dict.fromkeys(by)]
    only = only or {}
    classes, notes = classes_of([*cuts, tuple(only)], queries)
    period = health.period(log, first_day, last_day)
    if period is None:
        _no_events(log, first_day, last_day)
    evidence = gather(
        log,
        engine,
        needed(wanted),
        [(), *cuts],
        rules=rules,
        first_day=first_day,
        last_day=last_day,
        only=only,
        classes=classes,
        progress=progress,
    )
    events = evidence.counts.get("events", 0)
    if not events:
        _no_events(log, first_day, last_day)
    rows: list[OnlineResult] = []
    for cut in ((), *cuts):
        rows += estimate(evidence, wanted, cut, log, rules, seed=seed)
    return OnlineResults(
        results=rows,
        by=tuple(dict.fromkeys(",".join(cut) for cut in cuts)),
        rules=rules.id,
        period=None if period is None else (day_text(period[0]), day_text(period[1])),
        events=events,
        health=health.health(evidence.counts, log, rules, first_day, last_day),
        notes=[*only_note(only), *trust(rows), *censoring(evidence, wanted), *notes],
        simulated=log.simulated,
        engine=engine.name,
    )


def evaluate_online(
    events: Any,
    metrics: str | Iterable[str] | None = None,
    *,
    by: str | Sequence[str] = (),
    first: str | date | None = None,
    last: str | date | None = None,
    queries: Any = None,
    rules: Iterable[str] = (),
    engine: str = "polars",
    master: str | None = None,
    seed: int = 0,
    mapping: str | Path | None = None,
    timezone: str | None = None,
) -> OnlineResults:
    """What users did: online metrics of a log of events, with intervals, and in slices.

    Args:
        events: A log: a data frame, or the path of a file (CSV, JSON Lines, Parquet), a pattern
            or a list of these; it is imported and not kept. Or the folder of an event store, which
            ``karat online import`` fills and where a large log is read only once, or its EventLog.
        metrics: Name or names, as ``CTR``, ``Latency(p95)``; a usual set if None.
        by: What to slice by: ``day``, ``hour``, ``arm``, ``query``, ``class``, an attribute, or
            several at once as ``day,arm``.
        first: No earlier day: a date, or ``2026-11-01``; None: the first there is.
        last: No later day; None: the last there is.
        queries: For ``class``: queries with ``text`` and ``class``; a path, a frame, or Queries.
        rules: Rules to change, as ``["idle=20min"]``.
        engine: ``polars`` | ``duckdb`` | ``spark``; all give the same.
        master: Of Spark, as ``local[2]``.
        seed: Of the buckets drawn for intervals of quantiles and such.
        mapping: What the columns and actions of a log mean: a TOML file, as ``karat online import
            --mapping`` takes it.
        timezone: Where a day of a log begins, as ``Europe/Berlin``; UTC if None.

    Returns:
        The results; of a log, ``notes`` begin with what its import left out and assumed.

    Raises:
        UsageError: no metric, slice, rule or engine has such a name (the nearest is named), the
            log holds no events of these days, or a mapping for events that are imported already.
        InputError: there are no events in the folder, or nothing of the log could be read.
        MissingExtra: the engine is not installed.
    """
    from karat.engines.frames.opening import open_engine
    from karat.workflows.online._logs import event_log

    names = [metrics] if isinstance(metrics, str) else metrics
    with (
        event_log(events, mapping=mapping, timezone=timezone) as (log, notes),
        open_engine(engine, master=master) as opened,
    ):
        found = evaluate(
            log,
            opened,
            None if names is None else list(names),
            [by] if isinstance(by, str) else by,
            first_day=None if first is None else day_number(first),
            last_day=None if last is None else day_number(last),
            queries=queries,
            rules=rules_from(rules),
            seed=seed,
        )
    return replace(found, notes=[*notes, *found.notes])


def _no_events(log: EventLog, first_day: int | None, last_day: int | None) -> None:
    """Tell that days were asked for of which there are no events; of an empty log nothing is."""
    if log.first_day is None or log.last_day is None or first_day is last_day is None:
        return
    if first_day is not None and last_day is not None:
        asked = f"of {span_text(first_day, last_day)}"
    elif first_day is not None:
        asked = f"from {day_text(first_day)} on"
    else:
        assert last_day is not None
        asked = f"up to {day_text(last_day)}"
    raise UsageError(
        f"the log holds no events {'of people ' if log.bots else ''}{asked}",
        fix=f"the log holds {span_text(log.first_day, log.last_day)}",
    )


def cut_of(said: str, log: EventLog) -> Cut:
    """The dimensions of a slice, each known."""
    known = {name.casefold(): name for name in (*log.attributes, *DIMENSIONS)}
    cut: list[str] = []
    for part in said.split(","):
        name = part.strip().casefold()
        if name not in known:
            attributes = ", ".join(log.attributes) or "it has none"
            close = difflib.get_close_matches(name, known, n=1, cutoff=_CLOSE)
            raise UsageError(
                f"there is nothing called {part.strip()!r} to slice by",
                nearest=[known[each] for each in close],
                fix=f"slice by {', '.join(DIMENSIONS)}, or an attribute of the log ({attributes})",
            )
        if known[name] in cut:
            raise UsageError(f"{said}: {known[name]} stands twice", fix="name it once")
        cut.append(known[name])
    taken = sorted(_TAKEN.intersection(cut))
    if taken:
        raise UsageError(
            f"the attribute {taken[0]} cannot be sliced by: evidence has a column of that name",
            fix="import it under another name (karat online import --mapping)",
        )
    if "arm" in cut and not log.arms:
        raise UsageError(
            f"{said}: the log has no arms of experiments",
            fix="say which column they are in when it is imported (karat online import --mapping)",
        )
    return tuple(cut)


def classes_of(cuts: Sequence[Cut], given_queries: Any) -> tuple[pl.DataFrame | None, list[str]]:
    """The class of each query by its folded form, and what is to be said of them."""
    if not any(_CLASS in cut for cut in cuts):
        return None, []
    queries = inputs.queries(given_queries)
    if queries is None:
        raise UsageError(
            "slices by class need to know the class of each query",
            fix="--queries FILE, with the columns text and class",
        )
    return class_table(queries)


def class_table(queries: Queries) -> tuple[pl.DataFrame, list[str]]:
    """``query_key`` and ``class`` of each query that has both, and what is to be said of them.

    Raises:
        UsageError: the queries have no attribute ``class``.
        InputError: they have no texts.
    """
    of, texts = queries.attribute(_CLASS), queries.texts()
    if not texts:
        raise InputError(
            "queries without texts cannot be found in a log",
            file=queries.source,
            fix="add the column text: what was typed",
        )
    both = [query for query in texts if query in of]
    table = pl.DataFrame(
        {
            "query_key": folded(texts[query] for query in both),
            "class": [of[query] for query in both],
        },
        schema={"query_key": pl.String, "class": pl.String},
    )
    once = table.unique("query_key", keep="first", maintain_order=True)
    several = table.unique().height - once.height
    notes = []
    if several:
        noun = "query has" if several == 1 else "queries have"
        notes.append(f"{several:,} {noun} several classes in {queries.source}: the first counts")
    return once, notes
