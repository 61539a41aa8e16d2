"""Rows: the searches, clicks and sessions behind a figure; who did it goes by a short pseudonym."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, get_args
from urllib.parse import urlencode

import polars as pl
from fastapi import APIRouter, Query, Request, Response

from karat.engines.frames.opening import open_engine
from karat.errors import UsageError, nearest
from karat.online.metrics import registry
from karat.online.metrics.entry import Metric
from karat.online.metrics.lacking import why_unknown
from karat.online.rules import Rules
from karat.online.simulate.records import SIMULATED
from karat.tables.online.events import EventLog
from karat.tables.schema import TABLES as TABLES_OF
from karat.web.framework.auth import AReader
from karat.web.framework.lists import Ask, Column, Kind, Listed, listed
from karat.web.framework.pages import show
from karat.web.framework.state import AppState, TheState
from karat.web.online._facts import SECONDS, for_eyes
from karat.web.online.dashboard import LogPage, tabs, told
from karat.web.online.figures import NOT_SAID
from karat.web.online.log import ANY_DAYS, Days, Lacking, Lenient, Question, TheDays, log_of, looked
from karat.web.online.slices import LONGEST, STEPS, Part, lacked, parts, queries_of, where
from karat.workflows.online.evaluate import class_table, evaluate
from karat.workflows.online.facts import Table, look

ROUTER = APIRouter()
MOST_ROWS = 2_000
"""Rows of a page's list, the newest; the API goes on from there."""
Counts = Literal["", "yes", "no"]
TABLES: tuple[Table, ...] = get_args(Table)
_SHOWN: dict[Table, tuple[tuple[str, str, Kind], ...]] = {
    "searches": (
        ("query", "query", "text"),
        ("when", "when", "text"),
        ("user", "user", "text"),
        ("arm", "arm", "text"),
        ("became", "what became of it", "text"),
        ("items", "results", "count"),
        ("clicks", "clicks", "count"),
        ("first_rank", "position", "count"),
        ("first_click_s", "first click, s", "number"),
        ("revenue", "paid", "number"),
        ("latency_ms", "answer, ms", "count"),
        ("since", "session since", "text"),
    ),
    "clicks": (
        ("query_key", "query", "text"),
        ("when", "when", "text"),
        ("user", "user", "text"),
        ("arm", "arm", "text"),
        ("doc_id", "document", "text"),
        ("position", "position", "count"),
        ("dwell_s", "s read", "number"),
        ("became", "what became of it", "text"),
        ("since", "session since", "text"),
    ),
    "sessions": (
        ("query_key", "first query", "text"),
        ("when", "when", "text"),
        ("user", "user", "text"),
        ("arm", "arm", "text"),
        ("searches", "searches", "count"),
        ("tasks", "tasks", "count"),
        ("became", "what became of it", "text"),
    ),
}
"""Columns of each table of facts: name, head, kind."""
_HEADS = {
    "reformulation": "said again",
    "abandoned_as": "abandoned",
    "session_began": "session began",
}
_FILTERS = frozenset({"arm", "reformulation", "abandoned_as"})
_EACH = "SearchesPerUser"  # a metric that every search counts in
_MOST_VALUES = 10_000
_DAY = len("2026-11-01")  # what a time begins with


@dataclass(frozen=True, kw_only=True)
class RowsPage(LogPage):
    """The rows behind a figure.

    Attributes:
        metric: Whose rows they are; empty for all of a table.
        counts: ``yes`` those that its numerator counts · ``no`` those that it could, and does not
            · empty: all of the table.
        table: ``searches``, ``clicks`` or ``sessions``.
        slices: What they are of: dimension, value, and the address without it.
        total: How many there are.
        rows: The newest of them.
        says: What the metric counts, and over what.
        ways: What can be counted: name, address, whether it is this.
        metrics: Metrics to choose from, and whether it is this one.
        carried: What the form must keep.
    """

    template: ClassVar[str] = "online_rows.html.j2"
    metric: str = ""
    counts: str = ""
    table: str = ""
    slices: Sequence[tuple[str, str, str]] = ()
    total: int | None = None
    rows: Listed | None = None
    says: str = ""
    ways: Sequence[tuple[str, str, bool]] = field(default=(), repr=False)
    metrics: Sequence[tuple[str, bool]] = field(default=(), repr=False)
    carried: Sequence[tuple[str, str]] = field(default=(), repr=False)


@dataclass(frozen=True)
class Behind:
    """Which rows are asked for.

    Attributes:
        table: Which facts.
        metric: Whose; None for all of the table.
        counts: As of ``RowsPage``.
        days: The days.
        slices: The slices they are in.
    """

    table: Table
    metric: Metric | None
    counts: Counts
    days: Days
    slices: Sequence[Part]

    @property
    def only(self) -> str | None:
        """As ``look`` wants it."""
        if self.metric is None or not self.counts:
            return None
        return self.metric.name if self.counts == "yes" else f"!{self.metric.name}"

    def question(self, limit: int, offset: int) -> Question:
        """All that the rows depend on besides the log."""
        return {
            "what": "rows",
            "table": self.table,
            "only": self.only,
            "metric": None if self.metric is None else self.metric.version,
            "where": [
                [part.dimension.key, part.value, part.dimension.digest] for part in self.slices
            ],
            "days": [self.days.first, self.days.last],
            "rules": Rules().id,
            "limit": [limit, offset],
        }

    def question_of_values(self, of: Sequence[Part]) -> Question:
        """All that the values of what they are slices of depend on besides the log."""
        return {
            "what": "values",
            "of": [[part.dimension.key, part.dimension.digest] for part in of],
            "days": [self.days.first, self.days.last],
            "rules": Rules().id,
        }

    def address(self, **changed: Any) -> str:
        """The page with some of it changed; ``None`` takes it out."""
        held: dict[str, Any] = {"metric": "" if self.metric is None else self.metric.name}
        held |= {"table": "" if self.metric else self.table, "counts": self.counts}
        held |= self.days.said | {"slice": [part.said for part in self.slices]} | changed
        return f"/online/rows?{urlencode({k: v for k, v in held.items() if v}, doseq=True)}"


def behind(
    site: AppState,
    log: EventLog,
    days: Days,
    metric: str,
    table: Table | None,
    counts: Counts,
    slices: Sequence[str],
) -> Behind:
    """What an address asks for.

    Raises:
        UsageError: no metric or slice is called so.
    """
    found = registry.find(metric) if metric.strip() else None
    over = table or "searches" if found is None else found.compute.facts
    return Behind(over, found, counts if found else "", days, parts(site, log, slices))


@ROUTER.get("/online/rows")
def rows(
    request: Request,
    site: TheState,
    _asking: AReader,
    days: TheDays,
    metric: Annotated[str, Query(max_length=100)] = "",
    table: Annotated[str, Query(max_length=100)] = "",
    counts: Counts = "",
    slices: Annotated[list[str] | None, Query(alias="slice", max_length=20)] = None,
) -> Response:
    """The rows behind a figure, the newest first."""
    log = log_of(site)
    common: dict[str, Any] = {"title": "Rows", "crumbs": [("Online", "/online")]}
    common |= {"tabs": tabs("rows")}
    if isinstance(log, Lacking):
        return show(request, RowsPage(**common, lacking=log))
    lenient = Lenient(request)
    over = lenient.take(lambda: days.within(log), ANY_DAYS.within(log))
    of = lenient.take(lambda: registry.find(metric).name if metric.strip() else "", "")
    which = lenient.take(lambda: _table(table), None)
    known = [part.said for each in slices or [] for part in _part(lenient, site, log, each)]
    asked = lenient.take(
        lambda: behind(site, log, over, of, which, counts, known),
        behind(site, log, over, of, which, counts, []),
    )
    page = common | _told(log, asked)
    if lenient.errors:
        page["period"] = days.typed if any(days.typed) else over.period
        return show(request, RowsPage(**page, wrong=lenient.wrong), 400)
    unknown = why_unknown(asked.metric, log) if asked.metric and asked.counts else ""
    if asked.metric and unknown:
        said = f"{asked.metric.name} is unknown, and nothing is counted: {unknown}."
        return show(request, RowsPage(**page, wrong=said))
    found = lenient.take(
        lambda: looked(
            request,
            log,
            asked.question(MOST_ROWS, 0),
            lambda: made(site, log, asked, MOST_ROWS, 0),
        ),
        None,
    )
    if lenient.errors:
        return show(request, RowsPage(**page, wrong=lenient.wrong), 400)
    if found is None:
        return show(request, RowsPage(**page))
    wrong = "" if found["total"] else _lacked(request, log, asked)
    if wrong is None:
        return show(request, RowsPage(**page))
    page["wrong"] = wrong or None
    frame = pl.DataFrame(found["rows"], schema=_schema(found["schema"]))
    return show(
        request,
        RowsPage(
            **page,
            computed=True,
            total=found["total"],
            rows=_listed(request, asked, frame).cut_from("newest", found["total"]),
        ),
    )


def _part(lenient: Lenient, site: AppState, log: EventLog, said: str) -> list[Part]:
    return lenient.take(lambda: parts(site, log, [said]), [])


def _told(log: EventLog, asked: Behind) -> dict[str, Any]:
    """What a page says of what was asked, whether there are rows or not."""
    return {
        "log": told(log),
        "period": asked.days.period,
        "metric": "" if asked.metric is None else asked.metric.name,
        "counts": asked.counts,
        "table": asked.table,
        "slices": [_slice(asked, part) for part in asked.slices],
        "says": "" if asked.metric is None else asked.metric.definition,
        "ways": _ways(asked),
        "metrics": [(each.name, each == asked.metric) for each in _offered(asked)],
        "carried": [("slice", part.said) for part in asked.slices],
    }


def _table(said: str) -> Table | None:
    if said and said not in TABLES:
        raise UsageError(
            f"there are no rows called {said!r}",
            nearest=nearest(said, TABLES),
            fix=f"one of: {', '.join(TABLES)}",
        )
    return said or None


def _lacked(request: Request, log: EventLog, asked: Behind) -> str | None:
    """Why there are no rows, if no search has a value that is asked for; empty if each has some.

    Returns:
        None while it is being computed.
    """
    within = [part for part in asked.slices if part.dimension.key not in {*STEPS, "query"}]
    if not within:
        return ""
    found = looked(
        request, log, asked.question_of_values(within), lambda: values(log, asked.days, within)
    )
    if found is None:
        return None
    return next(
        (
            lacked(part.dimension.label, part.value, there)
            for part in within
            if (there := found.get(part.dimension.key)) and part.value not in there
        ),
        "",
    )


def values(log: EventLog, days: Days, of: Sequence[Part]) -> dict[str, list[str]]:
    """What searches have as values of some dimensions, the most frequent first."""
    keys = [part.dimension.key for part in of]
    queries = queries_of(part.dimension for part in of)
    first, last = days.first, days.last
    try:
        with open_engine() as engine:
            found = evaluate(
                log, engine, [_EACH], keys, first_day=first, last_day=last, queries=queries
            )
    except UsageError:  # none of these days has a search, or nothing can be counted by one of them
        return {}
    rows = sorted(found.results, key=lambda row: -(row.total or 0))
    return {
        key: [row.slice[key] for row in rows if key in row.slice][:_MOST_VALUES] for key in keys
    }


def made(site: AppState, log: EventLog, asked: Behind, limit: int, offset: int) -> dict[str, Any]:
    """The rows, as JSON can hold them: users by their pseudonyms, times for eyes in seconds."""
    queries = queries_of(part.dimension for part in asked.slices)
    with open_engine() as engine:
        frame, total = look(
            log,
            engine,
            asked.table,
            where(asked.slices),
            first_day=asked.days.first,
            last_day=asked.days.last,
            only=asked.only,
            limit=limit,
            offset=offset,
            classes=None if queries is None else class_table(queries)[0],
        )
    frame = for_eyes(frame, log, asked.table, site.workspace.golden.salt)
    kinds = {
        name: "text" if kind == pl.String else "float" if kind.is_float() else "whole"
        for name, kind in frame.schema.items()
    }
    return {"total": total, "rows": frame.to_dict(as_series=False), "schema": kinds}


def _schema(kinds: Mapping[str, str]) -> dict[str, Any]:
    types = {"text": pl.String, "float": pl.Float64, "whole": pl.Int64}
    return {name: types[kind] for name, kind in kinds.items()}


def _listed(request: Request, asked: Behind, frame: pl.DataFrame) -> Listed:
    """The rows as a list; what none of them has is left out of the table."""
    if asked.table != "sessions":
        frame = frame.with_columns(_since())
    shown = [each for each in _SHOWN[asked.table] if each[0] in frame.columns]
    named = {name for name, _, _ in shown}
    hidden = {*SECONDS, "latency_us", "local_day", "local_hour", SIMULATED}
    key = shown[0][0]

    def link(row: Mapping[str, Any]) -> str | None:
        query = row["query_key"]
        slices = [part.said for part in asked.slices if part.dimension.key != "query"]
        return None if query is None else asked.address(slice=[*slices, f"query={query}"])

    def any_of(name: str) -> bool:
        return frame[name].drop_nulls().len() > 0

    columns = [
        Column(
            name,
            head,
            kind,
            link=link if name == key else None,
            shown=any_of(name),
            choices=name in _FILTERS,
            longest=LONGEST,
        )
        for name, head, kind in shown
    ]
    rest = [name for name in frame.columns if name not in named | hidden]
    facts = {column.name for column in TABLES_OF[asked.table]} | {
        "time_us",
        "class",
        "session_began",
    }
    columns += [
        Column(
            name,
            _HEADS.get(name, name),
            "time" if name == "time_us" else "text" if text else "number",
            shown=text and name not in facts and any_of(name),
            choices=name in _FILTERS or (text and name not in facts),
            longest=LONGEST,
        )
        for name in rest
        for text in [frame.schema[name] == pl.String]
    ]
    return listed(frame, columns, Ask.of(request), search=[key, "user"], per_page=25)


def _since() -> pl.Expr:
    """When the session began, short: the time where that is the day of the row, else the day."""
    began, when = pl.col("session_began").str, pl.col("when").str
    same = began.head(_DAY) == when.head(_DAY)
    return pl.when(same).then(began.slice(_DAY + 1)).otherwise(began.head(_DAY)).alias("since")


def _slice(asked: Behind, part: Part) -> tuple[str, str, str]:
    rest = [each.said for each in asked.slices if each != part]
    return part.dimension.label, part.value or NOT_SAID, asked.address(slice=rest)


def _ways(asked: Behind) -> list[tuple[str, str, bool]]:
    if asked.metric is None:
        return [(each, asked.address(table=each), each == asked.table) for each in TABLES]
    names: dict[Counts, str] = {
        "yes": "counted", "no": "not counted", "": f"all {asked.table}"
    }  # fmt: skip
    return [(name, asked.address(counts=way), way == asked.counts) for way, name in names.items()]


def _offered(asked: Behind) -> list[Metric]:
    every = registry.all_metrics()
    if asked.metric is not None and asked.metric not in every:
        every.append(asked.metric)
    return every
