"""Worst queries of a log: those that lose most searches; written to a log or a golden set."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from karat.engines.frames.engine import Engine
from karat.errors import InputError, UsageError, nearest
from karat.formats.tables.writing import beside
from karat.golden.sampling import query_id
from karat.golden.traffic import folded
from karat.online import health
from karat.online import worst as pure
from karat.online.evidence import Cut, shown
from karat.online.flags import USER
from karat.online.metrics.expressions import why_unknown
from karat.online.metrics.registry import find
from karat.online.reformulation import most_frequent, spellings
from karat.online.rules import Rules
from karat.online.worst import MANY
from karat.tables.golden.golden_sets import Exchange
from karat.tables.notes import Concern, Note
from karat.tables.online.events import EventLog
from karat.tables.online.worst_queries import FAILURES, ORDERS, LostQuery, Order, WorstQueries
from karat.workflows.online.evaluate import classes_of, cut_of
from karat.workflows.online.evidence import Selection, gather
from karat.workflows.online.filters import Only, only_note
from karat.workflows.online.reducers import Reformulations, facts_of

if TYPE_CHECKING:
    from karat.workflows.golden.import_ import ImportResult
    from karat.workflows.workspace.workspace import Workspace


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


_ENDINGS = (".csv", ".tsv", ".jsonl")
_ORIGIN = "clicks"  # not "log": the next sample of a log would drop these queries


def worst_queries(
    log: EventLog,
    engine: Engine,
    *,
    by: str | None = None,
    sort: str = "lost",
    min_searches: int = 1,
    limit: int | None = 20,
    first_day: int | None = None,
    last_day: int | None = None,
    queries: Any = None,
    only: Only | None = None,
    rules: Rules | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> WorstQueries:
    """The queries that lose most searches, the worst first; see ``karat.online.worst``."""
    rules = rules or Rules()
    order = _order(sort)
    if min_searches < 1 or (limit is not None and limit < 1):
        raise UsageError("min_searches and limit must be ≥ 1", fix="--min-searches 1 --limit 20")
    if "query_key" not in log.known:
        raise InputError("the log holds no texts of queries", file=str(log.folder))
    cut: Cut = ()
    if by is not None:
        cut = cut_of(by, log)
        if len(cut) > 1 or "query" in cut:
            raise UsageError(f"--by {by}: give one dimension, not query", fix="--by class")
    only = only or {}
    classes, notes = classes_of([cut, tuple(only)], queries)
    within: Cut = (*cut, "query")
    part = Selection(log, rules, first_day, last_day, engine=engine, only=only, classes=classes)
    counted = pure.metrics(clicks=log.kinds.get("click", 0) > 0)
    evidence = gather(part, counted, [within], progress)
    frame = pure.wide(evidence.moments[within], within)
    prior = pure.prior_from(frame)
    ranked = pure.ranked(frame, prior, order)
    column = pure.SORTED_BY[order]
    shown = ranked.filter(pl.col("searches") >= min_searches, pl.col(column) > 0)
    shown = shown if limit is None else shown.head(limit)
    typed = query_spellings(part, shown["query"])
    rows = [
        pure.lost_query(row, prior, cut, typed.text(row["query"]), typed.next_queries(row["query"]))
        for row in shown.iter_rows(named=True)
    ]
    searches, failed = float(frame["searches"].sum()), float(frame["Failed"].sum())
    return WorstQueries(
        queries=rows,
        groups=pure.groups(frame, cut[0]) if cut else [],
        by=cut[0] if cut else None,
        sort=order,
        searches=round(searches),
        failed=round(failed),
        share=failed / searches if searches else None,
        prior=prior.strength if prior.strength < MANY else None,
        all_queries=frame.height,
        hidden=frame.height - len(rows),
        rules=rules.id,
        period=health.period_text(log, first_day, last_day),
        notes=[*_notes(log), *only_note(only), *notes],
        simulated=log.simulated,
    )


def _order(sort: str) -> Order:
    for order in ORDERS:
        if order == sort:
            return order
    raise UsageError(f"unknown order {sort!r}", nearest=nearest(sort, ORDERS) or ORDERS)


def _notes(log: EventLog) -> list[str]:
    notes: list[str] = []
    if log.simulated:
        notes.append(Note(health.NO_REAL_PEOPLE, Concern.INPUT))
    unknown = why_unknown(find("ZeroResults"), log)
    if unknown:
        note = f"{unknown}: zero-result searches are unknown"
        notes.append(Note(note, Concern.QUERIES))
    if not log.kinds.get("click", 0):
        note = "the log holds no clicks: only zero results and reformulations count as failures"
        notes.append(Note(note, Concern.QUERIES))
    else:
        notes.append("a last click without a known end counts as satisfied")
    return notes


def write_log(worst: WorstQueries, path: str | Path) -> None:
    """Write the queries as a log that ``karat golden choose`` reads as it is."""
    where = Path(path)
    endings = [each for each in where.suffixes if each.lower() in _ENDINGS]
    if not endings:
        raise UsageError(
            f"cannot tell the format from the name {where.name}",
            fix=f"use one of {', '.join(_ENDINGS)}",
        )
    rows = _once(worst)
    if not rows:
        raise InputError("no query lost a search: there is nothing to write", file=str(path))
    with beside(where) as stream:
        stream.write(_text(rows, endings[-1].lower()).encode())


def _once(worst: WorstQueries) -> list[dict[str, Any]]:
    """Each query once, over its slices."""
    rows: dict[str, list[LostQuery]] = {}
    for each in worst.queries:
        rows.setdefault(each.query, []).append(each)
    return [
        {
            "text": several[0].text,
            "count": sum(each.searches for each in several),
            "why": _chiefly(several),
        }
        for several in rows.values()
    ]


def _chiefly(several: Sequence[LostQuery]) -> str:
    """The main kind of failure of a query, over its slices; empty if none failed."""
    failed = {way: sum(each.by_failure[way] for each in several) for way in FAILURES}
    chief = max(FAILURES, key=lambda way: failed[way])  # the first of equal ones
    return chief if failed[chief] else ""


def _text(rows: Sequence[dict[str, Any]], ending: str) -> str:
    if ending == ".jsonl":
        return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    out = io.StringIO()
    tab = ending == ".tsv"
    writer = csv.DictWriter(out, rows[0], delimiter="\t" if tab else ",", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def to_golden(opened: Workspace, worst: WorstQueries, *, now: int) -> ImportResult:
    """Add the queries to the golden set of a workspace, with how often each was searched for.

    A query that differs from an existing one only in case or white space is left unchanged. New
    ones have no weight, so they do not count in means if others have one; the next sample of a log
    keeps them.
    """
    from karat.store.sql import queries as stored_queries  # which reading a log does without
    from karat.workflows.golden.import_ import ImportResult, import_exchange

    rows = _once(worst)
    if not rows:
        raise InputError("no query lost a search: there is nothing to add")
    frame = pl.DataFrame(
        {
            "query_id": [query_id(key) for key in dict.fromkeys(q.query for q in worst.queries)],
            "text": [row["text"] for row in rows],
            "count": [row["count"] for row in rows],
            "origin": [_ORIGIN] * len(rows),
            "why": [row["why"] or None for row in rows],
        },
        schema_overrides={"why": pl.String},
    )
    with opened.store.read() as connection:
        known = stored_queries.frame(connection, opened.golden.id)
    keys = pl.Series(folded(frame["text"]), dtype=pl.String)
    exists = keys.is_in(folded(known["text"].drop_nulls()))
    frame = frame.filter(~exists)
    notes = []
    if exists.any():
        have = "1 query exists" if exists.sum() == 1 else f"{exists.sum():,} queries exist"
        notes.append(f"{have} already, left unchanged")
    exchange = Exchange(
        "worst queries", queries=frame, kept=[f"{frame.height:,} queries"], assumed=notes
    )
    if frame.is_empty():
        return ImportResult(exchange, 0, 0, 0, 0, 0, [])
    text = _text(rows, ".jsonl")
    return import_exchange(
        opened,
        exchange,
        file="karat online queries",
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        now=now,
    )
