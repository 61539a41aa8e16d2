"""Offline measures compared with online metrics, joined by the text of queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import polars as pl

from karat.engines.frames.engine import Engine
from karat.errors import InputError, UsageError
from karat.golden.traffic import folded
from karat.measures import lower_is_better, parse
from karat.online import health
from karat.online import offline_correlation as pure
from karat.online.evidence import Cut
from karat.online.metrics import registry
from karat.online.metrics.entry import Metric, Ratio
from karat.online.metrics.expressions import EVERY_SEARCH, why_unknown
from karat.online.offline_correlation import CLASS, QUERY, Worlds
from karat.online.rules import Rules
from karat.reports.phrases.online import quoted, value
from karat.tables import Queries
from karat.tables.notes import Concern, Note
from karat.tables.online.events import EventLog
from karat.tables.online.offline_correlation import (
    Discord,
    JudgedAndSearched,
    OfflineCorrelation,
    WorldSlice,
)
from karat.workflows.offline import inputs
from karat.workflows.offline.evaluate import evaluate as evaluated
from karat.workflows.online.evidence import Selection, gather
from karat.workflows.online.filters import Only, only_note

MEASURES = ("nDCG@10",)
METRICS = ("SAT", "CTR", "ZeroResults")
_BESIDE = ("Reformulation", "ZeroResults")  # needed for the reasons
_LATENCY = "Latency(p95)"
_JUDGED = "Judged@10"
_JUDGED_NAME = str(parse(_JUDGED))
_DISCORD = 10


def against(
    log: EventLog,
    engine: Engine,
    qrels: Any,
    run: Any,
    *,
    measures: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
    queries: Any = None,
    by: str | None = None,
    min_searches: int = 10,
    first_day: int | None = None,
    last_day: int | None = None,
    only: Only | None = None,
    seed: int = 0,
    rules: Rules | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> OfflineCorrelation:
    """Offline and online values of each judged query that was searched for.

    See ``karat.online.offline_correlation``.
    """
    rules = rules or Rules()
    if min_searches < 1:
        raise UsageError(f"min_searches must be ≥ 1, got {min_searches}", fix="--min-searches 10")
    about = _with_texts(inputs.about(queries, qrels))
    only = only or {}
    if "class" in only:
        raise UsageError(
            "--only class: judged queries have classes of their own", fix="--by class shows all"
        )
    selected, notes = _metrics(metrics, log)
    notes += [*only_note(only), *_arms(only, log)]
    typed = list(dict.fromkeys(measures or MEASURES))
    results = evaluated(
        qrels, run, [*typed, _JUDGED], queries=about, per_query=True, interval="none", bounds=False
    )
    if len(results.runs) != 1:
        raise UsageError(f"expected one run, got {len(results.runs)}")
    names = list(dict.fromkeys(str(parse(name)) for name in typed))
    offline: dict[str, dict[str, float | None]] = {}
    for row in results.per_query:
        offline.setdefault(row.query_id, {})[row.measure] = row.value
    judged = {query for query, of in offline.items() if any(of[name] is not None for name in names)}
    of_key, repeated = _once(about, judged)
    if repeated:
        notes.append(f"{repeated:,} queries have the text of another: the first counts")
    by = _attribute(by, about)
    parts = {} if by is None else about.attribute(by)
    classes = None if by is None else pl.DataFrame(
        {"query_key": list(of_key), "class": [parts.get(query) for query in of_key.values()]},
        {"query_key": pl.String, "class": pl.String},
    ).drop_nulls("class")  # fmt: skip
    ratios = [*selected, *(each for each in _beside(log) if each not in selected)]
    cuts: list[Cut] = [QUERY, CLASS] if by is not None else [QUERY]
    latency = [] if why_unknown(registry.find(_LATENCY), log) else [registry.find(_LATENCY)]
    part = Selection(log, rules, first_day, last_day, engine=engine, only=only, classes=classes)
    evidence = gather(part, [*ratios, *latency, EVERY_SEARCH], cuts, progress)
    online = Worlds(evidence, log, rules, ratios, of_key)
    rows = online.rows(offline, names, about, parts)
    if not rows:
        raise InputError(
            "none of the judged queries was searched for",
            file=str(log.folder),
            fix="check that queries, log and days belong together",
        )
    slices = online.slices(rows, names, by)
    frequent = [row for row in rows if row.searches >= min_searches]
    first = selected[0]
    discord = _discord(frequent, slices[0], names[0], first, offline)
    unjudged = online.others()
    return OfflineCorrelation(
        run=next(iter(results.runs)),
        measures=tuple(names),
        metrics=tuple(metric.name for metric in selected),
        by=by,
        queries=rows,
        slices=slices,
        concord=pure.concords(
            frequent, names, [(metric.name, metric.direction) for metric in selected], seed=seed
        ),
        discord=list(islice(discord, _DISCORD)),
        discord_slices=list(_discord(slices[1:], slices[0], names[0], first)),
        judged_only=len(of_key) - len(rows),
        searched_only=unjudged[0],
        searched_only_searches=unjudged[1],
        min_searches=min_searches,
        enough=len(frequent),
        rules=rules.id,
        period=health.period_text(log, first_day, last_day),
        notes=[*notes, *([Note(health.NO_REAL_PEOPLE, Concern.INPUT)] if log.simulated else [])],
        simulated=log.simulated,
    )


def _arms(only: Only, log: EventLog) -> list[str]:
    """A note if several arms are counted together, of which the run can be one only."""
    if "arm" in only or len(log.arms) < 2:
        return []
    *most, last = log.arms
    arms = f"arms {', '.join(most)} and {last}"
    every = "both" if len(most) == 1 else "all"
    note = f"{arms} are counted together, so the run is compared with {every}"
    return [f"{note}; --only arm={last} compares it with that one"]


def _with_texts(about: Queries | None) -> Queries:
    if about is None or not about.texts():
        raise InputError(
            "queries without texts cannot be found in a log",
            file=None if about is None else about.source,
            fix="--queries FILE with query_id and text, or judgments in a BEIR folder",
        )
    return about


def _once(about: Queries, judged: set[str]) -> tuple[dict[str, str], int]:
    """The judged query of each folded form, and the number of others with the same."""
    texts = about.texts()
    by_key: dict[str, str] = {}
    repeated = 0
    for query, key in zip(texts, folded(texts.values()), strict=True):
        if query in judged:
            repeated += key in by_key
            by_key.setdefault(key, query)
    return by_key, repeated


def _metrics(names: Sequence[str] | None, log: EventLog) -> tuple[list[Metric], list[str]]:
    selected = registry.find_all(METRICS if names is None else list(names))
    for metric in selected:
        if not isinstance(metric.compute, Ratio) or not metric.point:
            raise UsageError(
                f"{metric.name} is not a ratio per query",
                fix="CTR, SAT, ZeroResults, Abandonment, … (latency is shown anyway)",
            )
        if metric.direction == "none":
            raise UsageError(f"{metric.name} has no direction, so it cannot agree")
    reasons = {metric.name: why_unknown(metric, log) for metric in selected}
    notes = [f"without {name}: {reason}" for name, reason in reasons.items() if reason]
    available = [metric for metric in selected if not reasons[metric.name]]
    if not available:
        raise InputError("; ".join(notes), file=str(log.folder))
    return available, notes


def _beside(log: EventLog) -> list[Metric]:
    return [metric for name in _BESIDE if not why_unknown(metric := registry.find(name), log)]


def _attribute(by: str | None, about: Queries) -> str | None:
    if by is None:
        return "class" if "class" in about.attributes else None
    about.attribute(by)  # raises an error if unknown
    return by


def _discord(
    given: Sequence[JudgedAndSearched] | Sequence[WorldSlice],
    everything: WorldSlice,
    measure: str,
    metric: Metric,
    offline: Mapping[str, Mapping[str, float | None]] = MappingProxyType({}),
) -> Iterator[Discord]:
    """Queries or slices high on one side and surely low on the other, the furthest apart first."""
    rows = [
        row
        for row in given
        if row.offline[measure] is not None and row.online[metric.name].value is not None
    ]
    overall, middle = everything.online[metric.name].value, everything.offline[measure]
    judges = np.array([row.offline[measure] for row in rows], np.float64)
    users = np.array([row.online[metric.name].value for row in rows], np.float64)
    higher = (not lower_is_better(measure), metric.direction == "higher")
    gaps = pure.apart(judges, users, higher=higher)
    ranks = [
        pure.best_first(values, higher=up)
        for values, up in zip((judges, users), higher, strict=True)
    ]
    for at in np.argsort(-np.abs(gaps), kind="stable").tolist():
        gap, row = float(gaps[at]), rows[at]
        if abs(gap) < pure.LEAST_DISCORD or overall is None or middle is None:
            break
        query_id = row.query_id if isinstance(row, JudgedAndSearched) else None
        if query_id is None:
            # Of two slices one always ranks higher: each must also differ from all, on both sides.
            above = (judges[at] > middle) == higher[0] and judges[at] != middle
            if above != (gap > 0) or judges[at] == middle:
                continue
        if not pure.surely_off(row, metric.name, overall, gap, higher=higher[1]):
            continue
        kind: Literal["judges", "users"] = "judges" if gap > 0 else "users"
        others = "users" if kind == "judges" else "judges"
        name = row.text if isinstance(row, JudgedAndSearched) else str(row.slice)
        judged, used, first, second = (float(part[at]) for part in (judges, users, *ranks))
        sentence = (
            f"{kind} like it and {others} do not: {name if query_id is None else quoted(name)} has "
            f"{measure} {judged:.3f} (rank {first:g} of {len(rows):,}) and {metric.name} "
            f"{value(metric.name, used)} (rank {second:g}), in {row.searches:,} searches"
        )
        of = len(rows), row.searches
        reasons = (
            ()
            if isinstance(row, WorldSlice)
            else tuple(pure.reasons(row, everything, kind, offline[row.query_id].get(_JUDGED_NAME)))
        )
        yield Discord(kind, query_id, name, judged, first, used, second, *of, sentence, reasons)
