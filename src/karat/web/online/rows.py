"""Rows: the searches, clicks and sessions behind a number, with users as pseudonyms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, ClassVar, get_args
from urllib.parse import urlencode

import polars as pl
from fastapi import APIRouter, Query, Response

from karat.errors import UsageError, nearest
from karat.online.metrics import registry
from karat.online.metrics.entry import Metric
from karat.online.metrics.expressions import why_unknown
from karat.online.simulate.records import SIMULATED
from karat.reports.table import Column, Kind
from karat.tables.online.events import EventLog
from karat.tables.schema import TABLES as TABLES_OF
from karat.web.framework.auth import AReader
from karat.web.framework.call import Call
from karat.web.framework.lists import Listed, listed
from karat.web.framework.pages import show
from karat.web.framework.state import AppState
from karat.web.online.figures import NOT_SAID
from karat.web.online.log import Lenient, LogPage, TheDays, find_or_compute, log_page
from karat.workflows.online.event_rows import SECONDS
from karat.workflows.online.facts import Table
from karat.workflows.online.log_requests import Counts, Rows, SliceValues
from karat.workflows.online.slices import LONGEST, STEPS, Part, missing_value_text, parts

ROUTER = APIRouter()
MOST_ROWS = 2_000
"""Most rows on a page, the newest; the API has all."""
TABLES: tuple[Table, ...] = get_args(Table)
_SHOWN: dict[Table, tuple[tuple[str, str, Kind], ...]] = {
    "searches": (
        ("query", "Query", "text"),
        ("when", "When", "text"),
        ("user", "User", "text"),
        ("arm", "Arm", "text"),
        ("became", "Outcome", "text"),
        ("items", "Results", "count"),
        ("clicks", "Clicks", "count"),
        ("first_rank", "Position", "count"),
        ("first_click_s", "First click, s", "number"),
        ("revenue", "Revenue", "number"),
        ("latency_ms", "Latency, ms", "count"),
        ("since", "Session start", "text"),
    ),
    "clicks": (
        ("query_key", "Query", "text"),
        ("when", "When", "text"),
        ("user", "User", "text"),
        ("arm", "Arm", "text"),
        ("doc_id", "Document", "text"),
        ("position", "Position", "count"),
        ("dwell_s", "Dwell, s", "number"),
        ("became", "Outcome", "text"),
        ("since", "Session start", "text"),
    ),
    "sessions": (
        ("query_key", "First query", "text"),
        ("when", "When", "text"),
        ("user", "User", "text"),
        ("arm", "Arm", "text"),
        ("searches", "Searches", "count"),
        ("tasks", "Tasks", "count"),
        ("became", "Outcome", "text"),
    ),
}
"""Columns of each table of facts: name, heading, kind."""
_HEADS = {"abandoned_as": "Abandoned", "session_began": "Session began"}
_FILTERS = frozenset({"arm", "reformulation", "abandoned_as"})
_DAY = len("2026-11-01")


@dataclass(frozen=True, kw_only=True)
class RowsPage(LogPage):
    template: ClassVar[str] = "online_rows.html.j2"
    metric: str = ""
    # ``yes`` rows in the numerator · ``no`` rows only in the denominator · empty: all rows of the
    # table
    counts: str = ""
    table: str = ""
    slices: Sequence[tuple[str, str, str]] = ()
    total: int | None = None
    rows: Listed | None = None
    says: str = ""
    ways: Sequence[tuple[str, str, bool]] = field(default=(), repr=False)
    metrics: Sequence[tuple[str, bool]] = field(default=(), repr=False)
    carried: Sequence[tuple[str, str]] = field(default=(), repr=False)


def _address(asked: Rows, **changed: Any) -> str:
    """The page with changed parameters; ``None`` removes one."""
    params: dict[str, Any] = {"metric": "" if asked.metric is None else asked.metric.name}
    params |= {"table": "" if asked.metric else asked.table, "counts": asked.counts}
    params |= asked.days.said | {"slice": [part.said for part in asked.slices]} | changed
    return f"/online/rows?{urlencode({k: v for k, v in params.items() if v}, doseq=True)}"


@ROUTER.get("/online/rows")
def rows(
    call: AReader,
    days: TheDays,
    metric: Annotated[str, Query(max_length=100)] = "",
    table: Annotated[str, Query(max_length=100)] = "",
    counts: Counts = "",
    slices: Annotated[list[str] | None, Query(alias="slice", max_length=20)] = None,
) -> Response:

    def prepare(log: EventLog, lenient: Lenient) -> Any:
        period = lenient.period(days, log)
        metric_name = lenient.take(lambda: registry.find(metric).name if metric.strip() else "", "")
        facts = lenient.take(lambda: _table(table), None)
        valid_slices = [
            part.said for each in slices or [] for part in _part(lenient, call.site, log, each)
        ]
        rows_of = partial(
            Rows.of, call.site.workspace, log, period, metric_name, facts, counts, limit=MOST_ROWS
        )
        asked = lenient.take(lambda: rows_of(valid_slices), rows_of([]))
        fields = {**_common(asked), "period": lenient.typed(days, period)}
        reason = why_unknown(asked.metric, log) if asked.metric and asked.counts else ""
        if asked.metric and reason and not lenient.errors:
            fields["wrong"] = f"{asked.metric.name} is not available: {reason}."
            return fields, None, dict
        return fields, asked, lambda answer: _shown(call, log, asked, answer)

    return show(call, *log_page(call, RowsPage, "Searches", prepare))


def _shown(call: Call, log: EventLog, asked: Rows, answer: Any) -> dict[str, Any] | None:
    missing = "" if answer["total"] else _missing_value(call, log, asked)
    if missing is None:
        return None
    frame = pl.DataFrame(answer["rows"], schema=_schema(answer["schema"]))
    listed_rows = _listed(call, asked, frame).cut_from("newest", answer["total"])
    return {"total": answer["total"], "rows": listed_rows, "wrong": missing or None}


def _part(lenient: Lenient, site: AppState, log: EventLog, text: str) -> list[Part]:
    return lenient.take(lambda: parts(site.workspace, log, [text]), [])


def _common(asked: Rows) -> dict[str, Any]:
    """The page's fields that do not depend on the rows."""
    return {
        "metric": "" if asked.metric is None else asked.metric.name,
        "counts": asked.counts,
        "table": asked.table,
        "slices": [_slice(asked, part) for part in asked.slices],
        "says": "" if asked.metric is None else asked.metric.definition,
        "ways": _ways(asked),
        "metrics": [(each.name, each == asked.metric) for each in _offered(asked)],
        "carried": [("slice", part.said) for part in asked.slices],
    }


def _table(name: str) -> Table | None:
    if name and name not in TABLES:
        raise UsageError(
            f"unknown table {name!r}",
            nearest=nearest(name, TABLES),
            fix=f"one of: {', '.join(TABLES)}",
        )
    return name or None


def _missing_value(call: Call, log: EventLog, asked: Rows) -> str | None:
    """Why there are no rows: a value that no search has, or empty; None while it is computed."""
    sliced = [part for part in asked.slices if part.dimension.key not in {*STEPS, "query"}]
    if not sliced:
        return ""
    values_by_key = find_or_compute(
        call, log, SliceValues(asked.days, [each.dimension for each in sliced])
    )
    if values_by_key is None:
        return None
    return next(
        (
            missing_value_text(part.dimension.label, part.value, present)
            for part in sliced
            if (present := values_by_key.get(part.dimension.key)) and part.value not in present
        ),
        "",
    )


def _schema(kinds: Mapping[str, str]) -> dict[str, Any]:
    types = {"text": pl.String, "float": pl.Float64, "whole": pl.Int64}
    return {name: types[kind] for name, kind in kinds.items()}


def _listed(call: Call, asked: Rows, frame: pl.DataFrame) -> Listed:
    """The rows as a list; empty columns are not shown."""
    if asked.table != "sessions":
        frame = frame.with_columns(_since())
    shown = [each for each in _SHOWN[asked.table] if each[0] in frame.columns]
    named = {name for name, _, _ in shown}
    hidden = {*SECONDS, "latency_us", "local_day", "local_hour", SIMULATED}
    key = shown[0][0]

    def link(row: Mapping[str, Any]) -> str | None:
        query = row["query_key"]
        slices = [part.said for part in asked.slices if part.dimension.key != "query"]
        return None if query is None else _address(asked, slice=[*slices, f"query={query}"])

    columns = [
        Column(
            name,
            head,
            kind,
            link=link if name == key else None,
            optional=True,
            choices=name in _FILTERS,
            longest=LONGEST,
        )
        for name, head, kind in shown
    ]
    rest = [name for name in frame.columns if name not in named | hidden]
    facts = {column.name for column in TABLES_OF[asked.table]}
    facts |= {"time_us", "class", "session_began"}
    columns += [
        Column(
            name,
            _HEADS.get(name, name),
            "time" if name == "time_us" else "text" if text else "number",
            shown=text and name not in facts,
            optional=True,
            choices=name in _FILTERS or (text and name not in facts),
            longest=LONGEST,
        )
        for name in rest
        for text in [frame.schema[name] == pl.String]
    ]
    return listed(frame, columns, call.ask, search=[key, "user"], per_page=25)


def _since() -> pl.Expr:
    """Start of the session: the time if on the day of the row, else the day."""
    began, when = pl.col("session_began").str, pl.col("when").str
    same = began.head(_DAY) == when.head(_DAY)
    return pl.when(same).then(began.slice(_DAY + 1)).otherwise(began.head(_DAY)).alias("since")


def _slice(asked: Rows, part: Part) -> tuple[str, str, str]:
    rest = [each.said for each in asked.slices if each != part]
    return part.dimension.label, part.value or NOT_SAID, _address(asked, slice=rest)


def _ways(asked: Rows) -> list[tuple[str, str, bool]]:
    if asked.metric is None:
        return [(each, _address(asked, table=each), each == asked.table) for each in TABLES]
    names: dict[Counts, str] = {
        "yes": "counted", "no": "not counted", "": f"all {asked.table}"
    }  # fmt: skip
    return [(name, _address(asked, counts=way), way == asked.counts) for way, name in names.items()]


def _offered(asked: Rows) -> list[Metric]:
    every = registry.all_metrics()
    if asked.metric is not None and asked.metric not in every:
        every.append(asked.metric)
    return every
