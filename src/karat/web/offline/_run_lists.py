"""Lists of runs, their values of now or older beside them, and of the queries of one."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, get_args
from urllib.parse import quote, urlencode

import polars as pl

from karat.errors import KaratError
from karat.measures import DEFAULTS
from karat.store.sql.runs import RunRow, by_name, others
from karat.tables.results import State
from karat.web.framework.jobs import COMPUTING, Busy
from karat.web.framework.lists import Ask, Column, Listed, listed
from karat.web.offline.stored_comparisons import WAIT_S
from karat.workflows.golden.editions import NOW
from karat.workflows.workspace import stored_evaluations
from karat.workflows.workspace.stored_evaluations import KeptEvaluation, Rules
from karat.workflows.workspace.workspace import Workspace

_MEASURES = 3  # beside each run
_AT_ONCE = 8  # runs that one look at the list has computed, besides those that cannot be
OF_NOW = "of now"
WAITING = ("older: being computed again", "being computed")
"""What the list says of values that are not of now, and will be: of old ones, and of none."""
_FAILED = ("older: not computed again", "not computed: see why")


def list_of_runs(
    opened: Workspace, rows: Sequence[RunRow], who: Mapping[str, str], ask: Ask
) -> Listed:
    """A row for each run; what the page that is asked for lacks is computed beside.

    Args:
        opened: The workspace.
        rows: The runs, the newest first.
        who: Who kept each, by its SHA-256.
        ask: What is asked of the list.
    """
    now = stored_evaluations.clock(opened, Rules())
    found = _listed(opened, rows, who, ask, now, ())
    by_id = {row.id: row for row in rows}
    lacking = [by_id[row["id"]] for row in found.rows if row["numbers"] != OF_NOW]
    if not lacking:
        return found
    failed, asked_for, until = set(), 0, time.monotonic() + WAIT_S
    with suppress(Busy):  # then the next look goes on
        for row in lacking:
            if asked_for == _AT_ONCE:
                break
            try:
                compute_run(opened, row, Rules(), now, max(0.0, until - time.monotonic()))
                asked_for += 1
            except KaratError:  # its own page says why
                failed.add(row.id)
    return _listed(opened, rows, who, ask, now, failed)


def list_of_queries(
    row: RunRow,
    found: KeptEvaluation,
    own: pl.DataFrame,
    measure: str,
    measures: Sequence[str],
    ask: Ask,
) -> Listed:
    """A row for each query of a run: its value under one measure, and under the others beside.

    Args:
        row: The run.
        found: Its numbers.
        own: Of ``found.frame`` the rows of the measure, and perhaps of a slice.
        measure: The measure of the list.
        measures: All measures, the first first.
        ask: What is asked of the list.
    """
    frame = own.select("query_id", "text", "value", "state", "counts")
    frame = frame.with_columns(query=pl.coalesce("text", "query_id"))
    others = [name for name in measures if name != measure]
    for name in others:
        beside = found.frame.filter(measure=name).select("query_id", pl.col("value").alias(name))
        frame = frame.join(beside, on="query_id", how="left", maintain_order="left")
    said = {"measure": measure} if measure != measures[0] else {}
    said |= {"edition": found.rules.edition} if found.rules.edition != NOW else {}

    def link(each: Mapping[str, Any]) -> str:
        pairs = [*said.items(), *(("by", name) for name in found.rules.by)]
        tail = f"?{urlencode(pairs)}" if pairs else ""
        return f"/runs/{row.id}/queries/{quote(each['query_id'], safe='')}{tail}"

    columns = [
        Column("query", "query", link=link),
        Column("query_id", "id"),
        Column("value", measure, "number"),
        Column("state", "answer", choices=True, vocabulary=get_args(State)),
        Column("counts", "counts", "flag", choices=True, shown=not own["counts"].all()),
        *(Column(name, name, "number") for name in others),
        Column("text", "text", shown=False),
    ]
    return listed(frame, columns, ask, search=["query_id", "text"])


def compute_run(opened: Workspace, row: RunRow, rules: Rules, clock: str, wait_s: float) -> bool:
    """Have the numbers of a run computed; whether that ended while we waited.

    Args:
        opened: The workspace.
        row: The run.
        rules: How it is measured.
        clock: What it is computed from (``kept_evaluations.clock``): what failed is tried again
            once that changes.
        wait_s: Seconds to wait at most.

    Raises:
        KaratError: it failed, now or a little before.
        Busy: too much waits to be computed.
    """
    key = str(stored_evaluations.folder_of(opened, row, rules)), clock
    return COMPUTING.run(key, lambda: stored_evaluations.compute(opened, row, rules), wait_s)


def _listed(
    opened: Workspace,
    rows: Sequence[RunRow],
    who: Mapping[str, str],
    ask: Ask,
    now: str,
    failed: Collection[int],
) -> Listed:
    names, meant = list(DEFAULTS)[:_MEASURES], by_name(rows)
    held = []
    for row in rows:
        known = stored_evaluations.in_short(opened, row, Rules())
        values = {} if known is None else known.values
        numbers = (_FAILED if row.id in failed else WAITING)[known is None]
        if known is not None and known.clock == now:
            numbers = OF_NOW
        said = {
            "id": row.id,
            "name": row.name,
            "also": ", ".join(others(row, meant)) or None,
            "numbers": numbers,
            "queries": row.queries,
            "results": row.rows,
            "kept": row.added_us,
            "by": who.get(row.sha256),
        }
        held.append(said | {name: values.get(name) for name in names})
    text = dict.fromkeys(("name", "also", "numbers", "by"), pl.String)
    count = dict.fromkeys(("id", "queries", "results", "kept"), pl.Int64)
    schema: dict[str, Any] = {**text, **count, **dict.fromkeys(names, pl.Float64)}
    frame = pl.DataFrame(held, schema=schema)

    def page(row: Mapping[str, Any]) -> str:
        return f"/runs/{row['id']}"

    def why(row: Mapping[str, Any]) -> str | None:
        return page(row) if row["numbers"] in _FAILED else None

    columns = [
        Column("name", "run", link=page),
        Column("also", "also called", shown=frame["also"].drop_nulls().len() > 0),
        *(Column(name, name, "number") for name in names),
        Column("numbers", "values", link=why),
        Column("queries", "queries", "count"),
        Column("results", "results", "count"),
        Column("kept", "kept", "time"),
        Column("by", "by"),
        Column("id", "number", "count", shown=False),
    ]
    return listed(frame, columns, ask, search=["name", "also"])
