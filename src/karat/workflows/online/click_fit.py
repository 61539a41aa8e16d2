"""Fitting click models to logs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, Literal

import polars as pl

from karat.errors import InputError, UsageError
from karat.online.clicks.entry import ClickModel
from karat.online.clicks.fitting import Evaluated, Fitted, evaluated, fit, propensities_of
from karat.online.clicks.registry import MODELS, find
from karat.online.rules import Rules
from karat.tables.experiments.interleaving import TEAMS
from karat.tables.notes import prefixed
from karat.tables.online.clicks import (
    ClickFit,
    Examination,
    Propensities,
    PropensitySource,
    Stratum,
)
from karat.tables.online.events import EventLog
from karat.tables.records import shared
from karat.workflows.online.click_counts import (
    Counted,
    Counting,
    count_strata,
    needs_events,
    open_log,
)

INTERLEAVED = 300  # interleaved searches from which they have propensities
_STRATA = 20  # values of an attribute that are fitted
_WORST = 10  # queries that are reported
_PAGES = 10  # of a query, below which its perplexity is chance


def models(name: str | None = None) -> list[ClickModel]:
    """The click models, baselines first, or the one with a name."""
    return list(MODELS) if name is None else [find(name)]


def fit_clicks(
    log: Any,
    model: str = "PBM",
    *,
    held_out: Any = None,
    by: str | None = None,
    presentation: str | None = None,
    randomised: str | None = None,
    depth: int = 10,
    only: Mapping[str, str] | None = None,
    compat: Literal["pyclick"] | None = None,
    first: str | date | None = None,
    last: str | date | None = None,
    rules: Rules | None = None,
    engine: str = "polars",
    master: str | None = None,
    mapping: str | Path | None = None,
    timezone: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ClickFit:
    """Fit a click model to a log: how likely each rank is looked at, and how well it predicts.

    Args:
        log: An event log, as ``karat.evaluate_online`` takes it, or a file in the research form.
        model: ``GCTR`` | ``RCTR`` | ``DCTR`` | ``COEC`` | ``PBM`` | ``Cascade`` | ``SDBN`` |
            ``DBN``.
        held_out: Another log, on which likelihood and perplexity are computed.
        by: An attribute of searches, or ``arm``: examination is also estimated for each value.
        presentation: An attribute of impressions or searches that says how documents are shown,
            such as with an image; each rank has an examination for each value.
        randomised: ``NAME=VALUE``, an attribute of searches whose results were in random order:
            their examination needs no model.
        depth: Ranks below it are left out.
        only: Attributes and values of the searches to count.
        compat: ``pyclick``: estimate as PyClick 98e7e46 does.
        first: First day; None: the first of the log.
        last: Last day; None: the last of the log.
        rules: Of sessions and searches.
        engine: ``polars`` | ``duckdb`` | ``spark``; all count the same.
        master: Spark master.
        mapping: The meaning of columns and actions of a log that is not imported yet.
        timezone: Time zone in which its days begin.
        progress: Called with the part read and the whole.

    Raises:
        UsageError: unknown model, attribute or engine, or an option that the log does not support.
        InputError: the log cannot be read, or does not say which documents were shown.
    """
    entry = find(model)
    shuffled = named_value(randomised)
    counting = Counting(
        depth=depth,
        presentation=presentation,
        only=only,
        engine=engine,
        master=master,
        rules=rules,
        first=first,
        last=last,
        mapping=mapping,
        timezone=timezone,
        progress=progress,
    )
    with open_log(log, counting) as (opened, imported):
        whole, strata = count_strata(opened, entry.needs, replace(counting, by=by))
        random, random_notes = propensities(opened, counting, shuffled)
        notes = [*imported, *whole.notes, *random_notes]
    started = time.perf_counter()
    fitted = fit(entry.name, whole.counts, compat=compat == "pyclick")
    seconds = time.perf_counter() - started
    test = whole
    if held_out is not None:
        test = _held_out(held_out, entry, counting)
        notes += [prefixed("held-out log: ", note) for note in test.notes]
    started = time.perf_counter()
    scores = evaluated(fitted, test.counts)
    seconds += time.perf_counter() - started
    if len(strata) > _STRATA:
        notes.append(f"{len(strata) - _STRATA:,} more values of {by} have fewer pages")
    return replace(
        _result(fitted, scores, whole, test, seconds),
        by=by,
        strata=_strata(entry, strata),
        propensities=compared(random, fitted),
        notes=notes,
    )


def propensities(
    log: EventLog | str | Path, counting: Counting, randomised: tuple[str, str] | None
) -> tuple[Propensities | None, list[str]]:
    """Examination from traffic in random order, else from interleaved traffic; and notes.

    Args:
        log: The log, open.
        counting: What to count of it.
        randomised: Attribute and value of searches in random order.
    """
    source: PropensitySource = "interleaved" if randomised is None else "randomised"
    if randomised is not None:
        if not isinstance(log, EventLog):
            raise needs_events("randomised", log)
        counting = replace(counting, only={**(counting.only or {}), randomised[0]: randomised[1]})
    elif isinstance(log, EventLog) and TEAMS in log.attributes:
        counting = replace(counting, present=TEAMS)
    else:
        return None, []
    try:
        counted, _ = count_strata(log, "cells", counting)
        if randomised is None and counted.pages < INTERLEAVED:
            return None, [f"{counted.pages:,} interleaved searches are too few for propensities"]
        found = propensities_of(counted.counts, source)  # type: ignore[arg-type]
    except (InputError, UsageError) as error:
        if randomised is not None:
            raise
        return None, [f"interleaved searches have no propensities: {error.what}"]
    return Propensities(source, counted.pages, found, None), []


def named_value(randomised: str | None) -> tuple[str, str] | None:
    """Attribute and value of ``NAME=VALUE``; None for None."""
    if randomised is None:
        return None
    name, equals, value = randomised.partition("=")
    if not equals or not name.strip() or not value:
        raise UsageError(
            f"{randomised!r} does not name an attribute and its value",
            fix="NAME=VALUE, such as order=random",
        )
    return name.strip(), value


def _held_out(log: Any, entry: ClickModel, counting: Counting) -> Counted:
    """The counts of another log; days are those of the first log alone."""
    counting = replace(counting, first=None, last=None)
    if isinstance(log, EventLog) or (isinstance(log, str | Path) and Path(log).is_dir()):
        counting = replace(counting, mapping=None, timezone=None)  # it is imported already
    with open_log(log, counting) as (opened, _):
        return count_strata(opened, entry.needs, counting)[0]


def _result(
    fitted: Fitted, scores: Evaluated, whole: Counted, test: Counted, seconds: float
) -> ClickFit:
    parts = shared(whole, ClickFit) | shared(fitted, ClickFit) | shared(scores, ClickFit)
    held_out = test is not whole
    parts |= {"pairs": fitted.pairs.height, "seconds": seconds, "held_out": held_out}
    unseen = scores.unseen if held_out else None
    return ClickFit(**parts | {"unseen": unseen, "worst_queries": _worst(scores, test)})


def _worst(scores: Evaluated, counted: Counted) -> list[dict[str, Any]]:
    """The queries with the highest perplexity, as they are mostly spelt."""
    frequent = counted.queries.filter(pl.col("searches") >= _PAGES)
    worst = scores.by_query.join(frequent, on="query").sort(
        "perplexity", "query", descending=[True, False]
    )
    columns = {"query": "text", "pages": "searches", "perplexity": "perplexity"}
    return worst.head(_WORST).select(**columns).to_dicts()


def _strata(entry: ClickModel, strata: Mapping[str | None, Counted]) -> list[Stratum]:
    """Those with most pages, fitted."""
    found = []
    for value, counted in sorted(strata.items(), key=lambda each: -each[1].pages)[:_STRATA]:
        fitted = fit(entry.name, counted.counts)
        found.append(Stratum(value, counted.pages, fitted.examination, fitted.identified))
    return found


def compared(random: Propensities | None, fitted: Fitted) -> Propensities | None:
    """Propensities with the rank at which the model differs most."""
    if random is None or fitted.examination is None:
        return random
    own = {(each.rank, each.presentation): each for each in fitted.examination}
    apart = {}
    for each in random.examination:
        other = own.get((each.rank, each.presentation))
        if other is not None and _disjoint(each, other):
            apart[each.rank] = abs(each.value - other.value)
    return replace(random, differs_at=max(apart, key=apart.__getitem__, default=None))


def _disjoint(one: Examination, other: Examination) -> bool:
    ends = (one.ci_low, one.ci_high, other.ci_low, other.ci_high)
    if None in ends:
        return False
    low, high, other_low, other_high = ends
    return low > other_high or other_low > high  # type: ignore[operator]
