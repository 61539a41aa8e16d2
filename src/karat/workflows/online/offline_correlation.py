"""Offline beside online: a run's measures and its users' behaviour, joined by what was typed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from karat.engines.frames.engine import Engine
from karat.errors import InputError, UsageError
from karat.golden.traffic import folded
from karat.measures import lower_is_better, parse
from karat.online import health
from karat.online import offline_correlation as pure
from karat.online.both_worlds import CLASS, QUERY, Worlds
from karat.online.evidence import Cut
from karat.online.metrics import registry
from karat.online.metrics.counts import EVERY_SEARCH
from karat.online.metrics.entry import Metric, Ratio
from karat.online.metrics.lacking import why_unknown
from karat.online.rules import Rules
from karat.reports.phrases.online import quoted, value
from karat.tables import Queries
from karat.tables.days import day_text
from karat.tables.notes import Concern, Note
from karat.tables.online.events import EventLog
from karat.tables.online.offline_correlation import Against, BothWorlds, Discord, WorldSlice
from karat.workflows.offline import inputs
from karat.workflows.offline.evaluate import evaluate as evaluated
from karat.workflows.online.evidence import gather
from karat.workflows.online.filters import Only, only_note

MEASURES = ("nDCG@10",)
METRICS = ("SAT", "CTR", "ZeroResults")
_BESIDE = ("Reformulation", "ZeroResults")  # for the reasons
_LATENCY = "Latency(p95)"
_JUDGED = "Judged@10"
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
) -> Against:
    """Offline and online numbers of each judged query that was searched for.

    See ``karat.online.offline_correlation``.

    Args:
        log: What an event store holds.
        engine: What computes it, open.
        qrels: The judgments, as ``karat.evaluate`` takes them.
        run: One run.
        measures: Offline; ``MEASURES`` if None.
        metrics: Online ratios; ``METRICS`` if None.
        queries: Texts (and attributes) of the queries; if None, those that come with ``qrels``.
        by: Attribute of the queries to slice by; if None, ``class`` where they have it.
        min_searches: Searches that a query needs for correlations and disagreements.
        first_day: No earlier day, in local days since 1970-01-01; None: the first there is.
        last_day: No later day; None: the last there is.
        only: Count only searches with these values, as ``{"arm": "b"}``: the arm that was this run.
        seed: Of the queries resampled.
        rules: By which events become searches and sessions; ``Rules()`` if None.
        progress: Told how much is done, and of how much.

    Raises:
        UsageError: no such measure, metric or attribute; a metric that is no ratio; several runs.
        InputError: the queries have no texts, or nothing of them was searched for.
    """
    rules = rules or Rules()
    if min_searches < 1:
        raise UsageError("searches are counted from 1", fix="--min-searches 10")
    about = inputs.about(queries, qrels)
    keys = _keys(about)
    only = only or {}
    if "class" in only:
        raise UsageError(
            "--only class: judged queries have classes of their own", fix="--by class has them all"
        )
    wanted, notes = _metrics(metrics, log)
    notes += [*only_note(only), *_arms(only, log)]
    asked = list(dict.fromkeys(measures or MEASURES))
    results = evaluated(
        qrels, run, [*asked, _JUDGED], queries=about, per_query=True, interval="none", bounds=False
    )
    if len(results.runs) != 1:
        raise UsageError(f"{len(results.runs)} runs, and one is compared with a log")
    judged_at = str(parse(_JUDGED))
    names = list(dict.fromkeys(str(parse(name)) for name in asked))
    offline: dict[str, dict[str, float | None]] = {}
    for row in results.per_query:
        offline.setdefault(row.query_id, {})[row.measure] = row.value
    judged = {query for query, of in offline.items() if any(of[name] is not None for name in names)}
    of_key, twice = _once(keys, judged)
    if twice:
        notes.append(f"{twice:,} queries have the text of another: the first counts")
    by = _attribute(by, about)
    parts = about.attribute(by) if by is not None and about is not None else {}
    classes = pl.DataFrame(
        {
            "query_key": list(of_key),
            "class": [parts.get(query) for query in of_key.values()],
        },
        {"query_key": pl.String, "class": pl.String},
    ).drop_nulls("class")
    ratios = [*wanted, *(each for each in _beside(log) if each not in wanted)]
    cuts: list[Cut] = [QUERY, CLASS] if by is not None else [QUERY]
    latency = [] if why_unknown(registry.find(_LATENCY), log) else [registry.find(_LATENCY)]
    evidence = gather(
        log,
        engine,
        [*ratios, *latency, EVERY_SEARCH],
        cuts,
        rules=rules,
        first_day=first_day,
        last_day=last_day,
        only=only,
        classes=classes if by is not None else None,
        progress=progress,
    )
    online = Worlds(evidence, log, rules, ratios, of_key)
    rows = online.rows(offline, names, about, parts if by is not None else None)
    if not rows:
        raise InputError(
            "nobody searched for any of the judged queries",
            file=str(log.folder),
            fix="are the queries those of this search, and the days those meant?",
        )
    slices = online.slices(rows, names, by)
    enough = [row for row in rows if row.searches >= min_searches]
    first = wanted[0]
    off = _discord(enough, slices, names[0], first, offline, judged_at)
    period = health.period(log, first_day, last_day)
    lost = online.others()
    return Against(
        run=next(iter(results.runs)),
        measures=tuple(names),
        metrics=tuple(metric.name for metric in wanted),
        by=by,
        queries=rows,
        slices=slices,
        concord=pure.concords(
            enough, names, [(metric.name, metric.direction) for metric in wanted], seed=seed
        ),
        discord=off,
        discord_slices=_discord_slices(slices, names[0], first),
        judged_only=len(of_key) - len(rows),
        searched_only=lost[0],
        searched_only_searches=lost[1],
        min_searches=min_searches,
        enough=len(enough),
        rules=rules.id,
        period=None if period is None else (day_text(period[0]), day_text(period[1])),
        notes=[*notes, *([Note(health.NO_REAL_PEOPLE, Concern.INPUT)] if log.simulated else [])],
        simulated=log.simulated,
    )


def _arms(only: Only, log: EventLog) -> list[str]:
    """That several arms are counted together, though the run is one of them at most."""
    if "arm" in only or len(log.arms) < 2:
        return []
    *most, last = log.arms
    said = f"arms {', '.join(most)} and {last} are counted together; a run that is one of them is "
    every = "both" if len(most) == 1 else "all"
    return [f"{said}laid beside {every} (--only arm={last} is beside that one)"]


def _keys(about: Queries | None) -> dict[str, str]:
    """The folded form of each query."""
    texts = {} if about is None else about.texts()
    if not texts:
        raise InputError(
            "queries without texts cannot be found in a log",
            file=None if about is None else about.source,
            fix="--queries FILE with query_id and text, or judgments in a BEIR folder",
        )
    return dict(zip(texts, folded(texts.values()), strict=True))


def _once(keys: Mapping[str, str], judged: set[str]) -> tuple[dict[str, str], int]:
    """The judged query of each folded form, and how many others have it too."""
    found: dict[str, str] = {}
    twice = 0
    for query, key in keys.items():
        if query in judged:
            twice += key in found
            found.setdefault(key, query)
    return found, twice


def _metrics(names: Sequence[str] | None, log: EventLog) -> tuple[list[Metric], list[str]]:
    found = registry.find_all(METRICS if names is None else list(names))
    for metric in found:
        if not isinstance(metric.compute, Ratio) or not metric.point:
            raise UsageError(
                f"{metric.name} is no ratio of each query",
                fix="CTR, SAT, ZeroResults, Abandonment, … (latency is shown anyway)",
            )
        if metric.direction == "none":
            raise UsageError(f"{metric.name} has no direction: it agrees with nothing")
    reasons = {metric.name: why_unknown(metric, log) for metric in found}
    notes = [f"without {name}: {reason}" for name, reason in reasons.items() if reason]
    there = [metric for metric in found if not reasons[metric.name]]
    if not there:
        raise InputError("; ".join(notes), file=str(log.folder))
    return there, notes


def _beside(log: EventLog) -> list[Metric]:
    return [metric for name in _BESIDE if not why_unknown(metric := registry.find(name), log)]


def _attribute(by: str | None, about: Queries | None) -> str | None:
    if by is None:
        return "class" if about is not None and "class" in about.attributes else None
    if about is not None:
        about.attribute(by)  # says so if there is none
    return by


def _discord(
    rows: Sequence[BothWorlds],
    slices: Sequence[WorldSlice],
    measure: str,
    metric: Metric,
    offline: Mapping[str, Mapping[str, float | None]],
    judged_at: str,
) -> list[Discord]:
    """Queries that one world ranks high and the other low, the furthest apart first."""
    both = [row for row in rows if _has(row, measure, metric.name)]
    judges = np.array([row.offline[measure] for row in both], np.float64)
    users = np.array([row.online[metric.name].value for row in both], np.float64)
    higher = (not lower_is_better(measure), metric.direction == "higher")
    gaps = pure.apart(judges, users, higher=higher)
    ranks = [
        pure.best_first(values, higher=up)
        for values, up in zip((judges, users), higher, strict=True)
    ]
    whole = slices[0].online[metric.name].value
    found = []
    for at in np.argsort(-np.abs(gaps), kind="stable").tolist():
        gap, row = float(gaps[at]), both[at]
        if abs(gap) < pure.LEAST_DISCORD or whole is None:
            break
        if not pure.surely_off(row, metric.name, whole, gap, higher=higher[1]):
            continue
        kind = "judges" if gap > 0 else "users"
        why = pure.reasons(row, slices[0], kind, offline[row.query_id].get(judged_at))
        ends = (float(judges[at]), float(users[at]), float(ranks[0][at]), float(ranks[1][at]))
        found.append(
            _said(kind, row.query_id, row.text, ends, len(both), row.searches, measure, metric, why)
        )
        if len(found) == _DISCORD:
            break
    return found


def _discord_slices(slices: Sequence[WorldSlice], measure: str, metric: Metric) -> list[Discord]:
    """Slices that one world ranks above another and the other surely below it."""
    parts = [
        part
        for part in slices[1:]
        if part.offline[measure] is not None and part.online[metric.name].value is not None
    ]
    whole, middle = slices[0].online[metric.name].value, slices[0].offline[measure]
    judges = np.array([part.offline[measure] for part in parts], np.float64)
    users = np.array([part.online[metric.name].value for part in parts], np.float64)
    higher = (not lower_is_better(measure), metric.direction == "higher")
    gaps = pure.apart(judges, users, higher=higher)
    ranks = [
        pure.best_first(values, higher=up)
        for values, up in zip((judges, users), higher, strict=True)
    ]
    found = []
    for at in np.argsort(-np.abs(gaps), kind="stable").tolist():
        gap, part = float(gaps[at]), parts[at]
        if abs(gap) < pure.LEAST_DISCORD or whole is None or middle is None:
            break
        # Of two slices one is above the other anyhow: each must differ from all, in both worlds.
        above = (judges[at] > middle) == higher[0] and judges[at] != middle
        if above != (gap > 0) or judges[at] == middle:
            continue
        if not pure.surely_off(part, metric.name, whole, gap, higher=higher[1]):
            continue
        kind = "judges" if gap > 0 else "users"
        ends = (float(judges[at]), float(users[at]), float(ranks[0][at]), float(ranks[1][at]))
        name = str(part.slice)
        found.append(_said(kind, None, name, ends, len(parts), part.searches, measure, metric, ()))
    return found


def _has(row: BothWorlds, measure: str, metric: str) -> bool:
    return row.offline[measure] is not None and row.online[metric].value is not None


def _said(
    kind: Any,
    query_id: str | None,
    name: str,
    ends: tuple[float, float, float, float],
    of: int,
    searches: int,
    measure: str,
    metric: Metric,
    why: Sequence[str],
) -> Discord:
    judges, users, first, second = ends
    like = "judges like it and users do not" if kind == "judges" else (
        "users like it and judges do not"
    )  # fmt: skip
    called = quoted(name) if query_id is not None else name
    sentence = (
        f"{like}: {called} has {measure} {judges:.3f} (rank {first:g} of {of:,}) and {metric.name} "
        f"{value(metric.name, users)} (rank {second:g}), in {searches:,} searches"
    )
    return Discord(
        kind, query_id, name, judges, first, users, second, of, searches, sentence, tuple(why)
    )
