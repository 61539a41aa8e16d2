"""Which ranking users prefer, from a log of interleaved searches."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import polars as pl

from karat.engines.frames.engine import Engine
from karat.engines.frames.opening import open_engine
from karat.errors import UsageError
from karat.experiments.preference import preference
from karat.online.flags import USER
from karat.online.health import NO_REAL_PEOPLE
from karat.online.rules import Rules
from karat.tables.experiments.interleaving import TEAMS, Credit, InterleavingResult
from karat.tables.online.events import ATTRIBUTE, EventLog
from karat.workflows.online.evaluate import event_log
from karat.workflows.online.reducers import FactsOf, Reformulations, Scope, facts_of

_COLUMN = ATTRIBUTE + TEAMS


def analyze_interleaving(
    events: Any,
    *,
    credit: Credit = "click",
    mapping: Any = None,
    timezone: str | None = None,
    engine: str = "polars",
    master: str | None = None,
    rules: Rules | None = None,
) -> InterleavingResult:
    """Which of two interleaved rankings users prefer.

    Args:
        events: A log, as ``karat.evaluate_online`` takes it, whose interleaved searches have the
            attribute ``teams`` (``Interleaved.mark``), and whose clicks have positions.
        credit: What is a point for a ranking: a ``click`` on a document it picked, a
            ``satisfied`` click, or a click that a ``purchase`` of the document followed.
        mapping: The meaning of columns and actions, as for ``karat online import``.
        timezone: Time zone in which days begin; UTC if None.
        engine: ``polars`` | ``duckdb`` | ``spark``.
        master: Spark master.
        rules: Of sessions and searches.

    Raises:
        UsageError: the log has no interleaved searches.
        InputError: the log cannot be read.
    """
    with (
        event_log(events, mapping=mapping, timezone=timezone) as (log, notes),
        open_engine(engine, master=master) as opened,
    ):
        if TEAMS not in log.attributes:
            raise UsageError(
                "the log has no interleaved searches",
                fix=f"log Interleaved.mark with each search, as the attribute {TEAMS}",
            )
        rows = _searches(log, opened, credit, rules or Rules())
        said = [*([NO_REAL_PEOPLE] if log.simulated else []), *notes]
        return preference(rows, credit, notes=said, simulated=log.simulated)


def _searches(log: EventLog, engine: Engine, credit: Credit, rules: Rules) -> pl.DataFrame:
    """One row for each interleaved search: user, query, teams, points of A and B."""
    scope = Scope(log, rules, attributes=(_COLUMN,))
    seen, parts = Reformulations(), []
    for events in engine.batches(log, scope.columns, scope.since, scope.until):
        batch = facts_of(events, engine, scope, seen)
        parts.append(_points(events, batch, engine, credit, rules))
        del batch
    return pl.concat(parts)


def _points(
    events: nw.LazyFrame[Any], batch: FactsOf, engine: Engine, credit: Credit, rules: Rules
) -> pl.DataFrame:
    teams = nw.col(_COLUMN)
    shown = batch.searches.filter(~teams.is_null() & (teams != ""))
    searches = engine.collect(shown.select(USER, "intent", "query_key", teams=teams))
    clicks = batch.clicks.filter(~nw.col("position").is_null())
    if credit == "satisfied":
        clicks = clicks.filter(nw.col("satisfied") == 1)
    kept = engine.collect(clicks.select(USER, "intent", "doc_id", "position", "time_us"))
    if credit == "purchase":
        kept = _bought(kept, events, engine, rules)
    at = pl.col("position") - 1
    of_click = kept.join(searches, on=[USER, "intent"]).with_columns(
        team=pl.col("teams").str.slice(at.cast(pl.Int64), 1)
    )
    points = of_click.group_by(USER, "intent").agg(
        a=(pl.col("team") == "A").sum(), b=(pl.col("team") == "B").sum()
    )
    joined = searches.join(points, on=[USER, "intent"], how="left")
    return joined.with_columns(pl.col("a", "b").fill_null(0).cast(pl.Int64))


def _bought(
    clicks: pl.DataFrame, events: nw.LazyFrame[Any], engine: Engine, rules: Rules
) -> pl.DataFrame:
    """The clicks on documents that were bought afterwards."""
    sold = events.filter(nw.col("kind") == "purchase", ~nw.col("doc_id").is_null())
    bought = engine.collect(sold.select(USER, "doc_id", bought_us=nw.col("time_us")))
    after = pl.col("bought_us") - pl.col("time_us")
    joined = clicks.join(bought, on=[USER, "doc_id"])
    return joined.filter(after >= 0, after <= rules.purchase).unique([USER, "intent", "doc_id"])
