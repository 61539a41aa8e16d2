"""Online metrics of a log, with intervals, by slice."""

from __future__ import annotations

import difflib
import glob
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl

from karat.engines.frames.engine import Engine
from karat.engines.frames.opening import open_engine
from karat.errors import InputError, UsageError, but
from karat.formats.tables.source import shown
from karat.golden.traffic import folded
from karat.online import health, histograms, moments
from karat.online.estimates import censoring, estimate, needed, trust
from karat.online.evidence import Cut
from karat.online.metrics import registry
from karat.online.rules import Rules, rules_from
from karat.reports.online.import_ import imported_notes
from karat.tables import Queries
from karat.tables.days import day_number, day_text, span_text
from karat.tables.incoming import to_polars
from karat.tables.online.evaluation import DIMENSIONS, OnlineResult, OnlineResults
from karat.tables.online.events import EventLog, place
from karat.workflows.offline import inputs
from karat.workflows.online.evidence import Selection, gather
from karat.workflows.online.filters import Only, only_note

_FRAME = "the data frame"


@contextmanager
def event_log(
    events: Any, *, mapping: str | Path | None = None, timezone: str | None = None
) -> Iterator[tuple[EventLog, list[str]]]:
    """The events of anything that ``evaluate_online`` takes, until the block ends."""
    from karat.store.events.log import read_event_log  # which a review of files does without
    from karat.workflows.online.import_events import import_events

    if isinstance(events, list) and events and all(isinstance(row, dict) for row in events):
        events = pl.DataFrame(events, infer_schema_length=None)
    files = _files(events)
    if files is None and (isinstance(events, EventLog | str | Path)):
        if mapping is not None or timezone is not None:
            name = "a mapping" if mapping is not None else "a time zone"
            raise UsageError(
                f"{name} applies to the import of a log, and these events are imported already",
                fix="leave it out, or give the log itself",
            )
        yield events if isinstance(events, EventLog) else read_event_log(events), []
        return
    with tempfile.TemporaryDirectory(prefix="karat-") as folder:
        path = Path(folder) / "log.parquet"
        if files is None:
            _write(to_polars(events, "events"), path)
        store = Path(folder) / "events"
        try:
            imported = import_events(
                store,
                [path] if files is None else files,
                now=time.time_ns() // 1000,
                mapping=None if mapping is None else Path(mapping),
                timezone=timezone,
            )
        except InputError as error:
            file = _FRAME if error.file == shown(str(path)) else error.file
            python = "mapping=FILE" if files is None else "--mapping FILE, in Python mapping=FILE"
            fix = error.fix and error.fix.replace("--mapping FILE", python)
            raise but(error, file=file, fix=fix) from None
        if not imported.kept:
            raise InputError(
                "there are no events in the log",
                file=_FRAME if files is None else ", ".join(shown(str(each)) for each in files[:3]),
                fix="it has no rows: give the whole log",
            )
        notes = [note.replace(shown(str(path)), _FRAME) for note in imported_notes(imported)]
        yield read_event_log(store), notes


def _files(events: Any) -> list[str | Path] | None:
    """The files of a log; None for anything else, such as the folder of an event store."""
    if isinstance(events, list | tuple):
        if events and all(isinstance(each, str | Path) for each in events):
            return list(events)
        raise InputError(
            f"a {type(events).__name__} that does not hold paths is not a log of events",
            fix="give a data frame, or paths of log files",
        )
    if not isinstance(events, str | Path):
        return None
    path = place(events)
    if isinstance(path, str):
        return [path] if glob.has_magic(path) or PurePosixPath(path).suffix else None
    log = path.is_file() or glob.has_magic(str(events)) or (bool(path.suffix) and not path.exists())
    return [events] if log else None


def _write(frame: pl.DataFrame, path: Path) -> None:
    try:
        frame.write_parquet(path)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise InputError(
            f"the data frame cannot be written as Parquet: {error}",
            fix="use columns of numbers, text, times, or lists of these",
        ) from None


_CLASS = "class"
_CLOSE = 0.6  # below this similarity, different words share letters by chance
_TAKEN = {
    *moments.empty(()).columns,
    *histograms.empty_histogram(()).columns,
    *histograms.empty_positions(()).columns,
}
"""Columns of evidence, which a cut must not use."""


def evaluate_log(
    log: EventLog, metrics: Sequence[str], by: Sequence[str], **scope: Any
) -> OnlineResults:
    """As ``evaluate``, with an engine of its own."""
    with open_engine() as engine:
        return evaluate(log, engine, metrics, by, **scope)


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
    """The values of online metrics over a log, and in its slices."""
    rules = rules or Rules()
    selected = registry.find_all(registry.DEFAULT if metrics is None else metrics)
    if not selected:
        raise UsageError("no metrics given", fix="karat online metrics lists them")
    if seed < 0:
        raise UsageError(f"the seed must be ≥ 0, got {seed}")
    if first_day is not None and last_day is not None and first_day > last_day:
        first, last = map(day_text, (first_day, last_day))
        raise UsageError(f"the period from {first} to {last} ends before it begins")
    cuts = [cut_of(dimensions, log) for dimensions in dict.fromkeys(by)]
    only = only or {}
    classes, notes = classes_of([*cuts, tuple(only)], queries)
    if health.period(log, first_day, last_day) is None:
        no_events(log, first_day, last_day)
    part = Selection(log, rules, first_day, last_day, engine=engine, only=only, classes=classes)
    evidence = gather(part, needed(selected), [(), *cuts], progress)
    events = evidence.counts.get("events", 0)
    if not events:
        no_events(log, first_day, last_day)
    rows: list[OnlineResult] = []
    for cut in ((), *cuts):
        rows += estimate(evidence, selected, cut, log, rules, seed=seed)
    return OnlineResults(
        results=rows,
        by=tuple(dict.fromkeys(",".join(cut) for cut in cuts)),
        rules=rules.id,
        period=health.period_text(log, first_day, last_day),
        events=events,
        health=health.health(evidence.counts, log, rules, first_day, last_day),
        notes=[*only_note(only), *trust(rows), *censoring(evidence, selected), *notes],
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
    """Online metrics of an event log, with intervals, overall and by slice.

    Args:
        events: A log: a data frame, or the path of a file (CSV, JSON Lines, Parquet), a pattern
            or a list of these; it is imported temporarily. Or the folder of an event store, made
            by ``karat online import``, so a large log is read only once, or its EventLog.
        metrics: Name or names, such as ``CTR`` or ``Latency(p95)``; the default set if None.
        by: Dimensions to slice by: ``day``, ``hour``, ``arm``, ``query``, ``class``, an attribute,
            or combinations such as ``day,arm``.
        first: First day: a date, or ``2026-11-01``; None: the first of the log.
        last: Last day; None: the last of the log.
        queries: For ``class``: queries with ``text`` and ``class``; a path, a frame, or Queries.
        rules: Rules to change, such as ``["idle=20min"]``.
        engine: ``polars`` | ``duckdb`` | ``spark``; all give the same results.
        master: Spark master, such as ``local[2]``.
        seed: Random seed of intervals of quantiles.
        mapping: A TOML file with the meaning of columns and actions, as for ``karat online import
            --mapping``.
        timezone: Time zone in which days begin, such as ``Europe/Berlin``; UTC if None.

    Returns:
        The results; for a log, ``notes`` begin with what its import left out and assumed.

    Raises:
        UsageError: unknown metric, slice, rule or engine (with the nearest name), days without
            events, or a mapping for events that are imported already.
        InputError: the folder has no events, or nothing of the log could be read.
        MissingExtra: the engine is not installed.
    """
    names = [metrics] if isinstance(metrics, str) else metrics
    with (
        event_log(events, mapping=mapping, timezone=timezone) as (log, notes),
        open_engine(engine, master=master) as opened,
    ):
        results = evaluate(
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
    return replace(results, notes=[*notes, *results.notes])


def no_events(log: EventLog, first_day: int | None, last_day: int | None) -> None:
    """Refuse days without events; an empty log is not an error."""
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


def cut_of(dimensions: str, log: EventLog) -> Cut:
    known = {name.casefold(): name for name in (*log.attributes, *DIMENSIONS)}
    cut: list[str] = []
    for part in dimensions.split(","):
        name = part.strip().casefold()
        if name not in known:
            attributes = ", ".join(log.attributes) or "it has none"
            close = difflib.get_close_matches(name, known, n=1, cutoff=_CLOSE)
            raise UsageError(
                f"unknown dimension {part.strip()!r} to slice by",
                nearest=[known[each] for each in close],
                fix=f"slice by {', '.join(DIMENSIONS)}, or an attribute of the log ({attributes})",
            )
        if known[name] in cut:
            raise UsageError(f"{dimensions}: duplicate dimension {known[name]}", fix="name it once")
        cut.append(known[name])
    taken = sorted(_TAKEN.intersection(cut))
    if taken:
        raise UsageError(
            f"cannot slice by the attribute {taken[0]}: the name is reserved",
            fix="import it under another name (karat online import --mapping)",
        )
    if "arm" in cut and not log.arms:
        raise UsageError(
            f"{dimensions}: the log has no arms of experiments",
            fix="name their column when importing (karat online import --mapping)",
        )
    return tuple(cut)


def classes_of(cuts: Sequence[Cut], given_queries: Any) -> tuple[pl.DataFrame | None, list[str]]:
    """The class of each query by its folded form, and notes."""
    if not any(_CLASS in cut for cut in cuts):
        return None, []
    queries = inputs.queries(given_queries)
    if queries is None:
        raise UsageError(
            "slicing by class needs the class of each query",
            fix="--queries FILE, with the columns text and class",
        )
    return class_table(queries)


def class_table(queries: Queries) -> tuple[pl.DataFrame, list[str]]:
    """``query_key`` and ``class`` of each query that has both, and notes."""
    by_query, texts = queries.attribute(_CLASS), queries.texts()
    if not texts:
        raise InputError(
            "queries without texts cannot be found in a log",
            file=queries.source,
            fix="add the column text, with the typed queries",
        )
    classed = [query for query in texts if query in by_query]
    table = pl.DataFrame(
        {
            "query_key": folded(texts[query] for query in classed),
            "class": [by_query[query] for query in classed],
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
