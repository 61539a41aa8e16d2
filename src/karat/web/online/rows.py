"""Rows: the searches, clicks and sessions behind a number, with users as pseudonyms."""

from __future__ import annotations

import hashlib
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
from karat.tables.online.events import ATTRIBUTE, EventLog
from karat.tables.schema import TABLES as TABLES_OF
from karat.web.framework.auth import AReader
from karat.web.framework.lists import Ask, Column, Kind, Listed, listed
from karat.web.framework.pages import show
from karat.web.framework.state import AppState, TheState
from karat.web.online.dashboard import LogPage, log_summary
from karat.web.online.figures import NOT_SAID
from karat.web.online.log import (
    ANY_DAYS,
    Days,
    Lenient,
    NoLog,
    Question,
    TheDays,
    find_or_compute,
    log_of,
)
from karat.web.online.slices import (
    LONGEST,
    STEPS,
    Part,
    filters_of,
    missing_value_text,
    parts,
    queries_of,
)
from karat.workflows.online.evaluate import class_table, evaluate
from karat.workflows.online.facts import Table, look

ROUTER = APIRouter()
MOST_ROWS = 2_000
"""Most rows on a page, the newest; the API has all."""
Counts = Literal["", "yes", "no"]
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
_HEADS = {
    "abandoned_as": "abandoned",
    "session_began": "session began",
}
_FILTERS = frozenset({"arm", "reformulation", "abandoned_as"})
_EACH = "SearchesPerUser"  # a metric that counts every search
_MOST_VALUES = 10_000
_DAY = len("2026-11-01")
_FLAGS: dict[str, tuple[tuple[str, str], ...]] = {
    "searches": (
        ("error", "error"),
        ("timeout", "timed out"),
        ("zero", "no results"),
        ("zero_filtered", "no results after filters"),
        ("sat", "satisfied"),
        ("quick_back", "quick back"),
        ("carts", "added to cart"),
        ("purchases", "purchased"),
        ("answered", "answer read"),
    ),
    "clicks": (("satisfied", "satisfied"),),
    "sessions": (("success", "success"),),
}
"""Flags of each table of facts, and their words."""
_ABANDONED = {
    "zero": "abandoned, no results",
    "reformulated": "abandoned, reformulated",
    "terminal": "abandoned",
}
_NEEDS = {
    "click": (
        "clicks", "clicked", "paul_5", "paul_9", "sat", "sat_low", "sat_high", "quick_back",
        "abandoned", "abandoned_as", "good_low", "good_high",
    ),
    "cart": ("carts",),
    "purchase": ("purchases", "revenue"),
    "value": ("revenue",),
    "answer": ("answered",),
    "query": ("reformulated", "tasks"),
    "status": ("error", "timeout"),
    "click|cart|purchase|answer": ("success", "success_low", "success_high"),
}  # fmt: skip
"""Columns by the events they need (as ``Metric.needs``): unknown in a log without them."""
SECONDS = {"first_click_us": "first_click_s", "dwell_us": "dwell_s"}
"""Columns in microseconds, and their names in seconds."""
_PSEUDONYM = 3  # bytes


@dataclass(frozen=True, kw_only=True)
class RowsPage(LogPage):
    """The rows behind a number.

    Attributes:
        counts: ``yes`` rows in the numerator · ``no`` rows only in the denominator · empty: all
            rows of the table.
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
    """Which rows are requested.

    Attributes:
        counts: As in ``RowsPage``.
    """

    table: Table
    metric: Metric | None
    counts: Counts
    days: Days
    slices: Sequence[Part]

    @property
    def only(self) -> str | None:
        """The parameter ``only`` of ``look``."""
        if self.metric is None or not self.counts:
            return None
        return self.metric.name if self.counts == "yes" else f"!{self.metric.name}"

    def question(self, limit: int, offset: int) -> Question:
        """Everything besides the log that the rows depend on."""
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
        """Everything besides the log that the values of some dimensions depend on."""
        return {
            "what": "values",
            "of": [[part.dimension.key, part.dimension.digest] for part in of],
            "days": [self.days.first, self.days.last],
            "rules": Rules().id,
        }

    def address(self, **changed: Any) -> str:
        """The page with changed parameters; ``None`` removes one."""
        params: dict[str, Any] = {"metric": "" if self.metric is None else self.metric.name}
        params |= {"table": "" if self.metric else self.table, "counts": self.counts}
        params |= self.days.said | {"slice": [part.said for part in self.slices]} | changed
        return f"/online/rows?{urlencode({k: v for k, v in params.items() if v}, doseq=True)}"


def behind(
    site: AppState,
    log: EventLog,
    days: Days,
    metric: str,
    table: Table | None,
    counts: Counts,
    slices: Sequence[str],
) -> Behind:
    """The rows that an address names."""
    entry = registry.find(metric) if metric.strip() else None
    facts = table or "searches" if entry is None else entry.compute.facts
    return Behind(facts, entry, counts if entry else "", days, parts(site, log, slices))


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
    """Show the rows behind a number, newest first."""
    log = log_of(site)
    common: dict[str, Any] = {"title": "Searches"}
    if isinstance(log, NoLog):
        return show(request, RowsPage(**common, lacking=log))
    lenient = Lenient(request)
    period = lenient.take(lambda: days.within(log), ANY_DAYS.within(log))
    metric_name = lenient.take(lambda: registry.find(metric).name if metric.strip() else "", "")
    facts = lenient.take(lambda: _table(table), None)
    valid_slices = [part.said for each in slices or [] for part in _part(lenient, site, log, each)]
    asked = lenient.take(
        lambda: behind(site, log, period, metric_name, facts, counts, valid_slices),
        behind(site, log, period, metric_name, facts, counts, []),
    )
    page = common | _common(log, asked)
    if lenient.errors:
        page["period"] = days.typed if any(days.typed) else period.period
        return show(request, RowsPage(**page, wrong=lenient.wrong), 400)
    unavailable = why_unknown(asked.metric, log) if asked.metric and asked.counts else ""
    if asked.metric and unavailable:
        reason = f"{asked.metric.name} is not available: {unavailable}."
        return show(request, RowsPage(**page, wrong=reason))
    answer = lenient.take(
        lambda: find_or_compute(
            request,
            log,
            asked.question(MOST_ROWS, 0),
            lambda: made(site, log, asked, MOST_ROWS, 0),
        ),
        None,
    )
    if lenient.errors:
        return show(request, RowsPage(**page, wrong=lenient.wrong), 400)
    if answer is None:
        return show(request, RowsPage(**page))
    missing = "" if answer["total"] else _missing_value(request, log, asked)
    if missing is None:
        return show(request, RowsPage(**page))
    page["wrong"] = missing or None
    frame = pl.DataFrame(answer["rows"], schema=_schema(answer["schema"]))
    return show(
        request,
        RowsPage(
            **page,
            computed=True,
            total=answer["total"],
            rows=_listed(request, asked, frame).cut_from("newest", answer["total"]),
        ),
    )


def _part(lenient: Lenient, site: AppState, log: EventLog, text: str) -> list[Part]:
    return lenient.take(lambda: parts(site, log, [text]), [])


def _common(log: EventLog, asked: Behind) -> dict[str, Any]:
    """The page's fields that do not depend on the rows."""
    return {
        "log": log_summary(log),
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


def _table(name: str) -> Table | None:
    if name and name not in TABLES:
        raise UsageError(
            f"unknown table {name!r}",
            nearest=nearest(name, TABLES),
            fix=f"one of: {', '.join(TABLES)}",
        )
    return name or None


def _missing_value(request: Request, log: EventLog, asked: Behind) -> str | None:
    """Why there are no rows: a requested value that no search has; empty if there is none such.

    Returns:
        None while it is being computed.
    """
    sliced = [part for part in asked.slices if part.dimension.key not in {*STEPS, "query"}]
    if not sliced:
        return ""
    values_by_key = find_or_compute(
        request, log, asked.question_of_values(sliced), lambda: values(log, asked.days, sliced)
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


def values(log: EventLog, days: Days, of: Sequence[Part]) -> dict[str, list[str]]:
    """Values of some dimensions among the searches, most frequent first."""
    keys = [part.dimension.key for part in of]
    queries = queries_of(part.dimension for part in of)
    first, last = days.first, days.last
    try:
        with open_engine() as engine:
            results = evaluate(
                log, engine, [_EACH], keys, first_day=first, last_day=last, queries=queries
            )
    except UsageError:  # no searches in these days, or an unusable dimension
        return {}
    rows = sorted(results.results, key=lambda row: -(row.total or 0))
    return {
        key: [row.slice[key] for row in rows if key in row.slice][:_MOST_VALUES] for key in keys
    }


def made(site: AppState, log: EventLog, asked: Behind, limit: int, offset: int) -> dict[str, Any]:
    """Compute the rows, as JSON: with pseudonyms, and times in seconds."""
    queries = queries_of(part.dimension for part in asked.slices)
    with open_engine() as engine:
        frame, total = look(
            log,
            engine,
            asked.table,
            filters_of(asked.slices),
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
    """Start of the session: the time if on the day of the row, else the day."""
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


def pseudonym(user_key: int, salt: str) -> str:
    """A user's short name, the same everywhere in a workspace and not reversible."""
    digest = hashlib.blake2b(str(user_key).encode(), key=salt.encode()[:64], digest_size=_PSEUDONYM)
    return f"u-{digest.hexdigest()}"


def for_eyes(frame: pl.DataFrame, log: EventLog, table: Table, salt: str) -> pl.DataFrame:
    """Facts for pages and programs.

    Returns:
        The rows with ``user`` (a pseudonym), ``when`` and ``session_began`` (in the log's time
        zone), ``became`` (the outcome in words), and times in seconds or milliseconds; null for
        what the log lacks.
    """
    frame = _nulls_for_unknown(frame, log)
    users = frame["user_key"].unique().to_list()
    names = {key: pseudonym(key, salt) for key in users}
    pseudonyms = frame["user_key"].replace_strict(names, default=None, return_dtype=pl.String)
    seconds = [
        (pl.col(old) / 1e6).alias(new) for old, new in SECONDS.items() if old in frame.columns
    ]
    if "latency_us" in frame.columns:
        seconds.append((pl.col("latency_us") / 1e3).round().cast(pl.Int64).alias("latency_ms"))
    frame = frame.with_columns(
        pseudonyms.alias("user"),
        _local("time_us", log).alias("when"),
        _local("session_us", log).alias("session_began"),
        _outcome(table).alias("became"),
        *seconds,
    )
    frame = frame.rename({name: name.removeprefix(ATTRIBUTE) for name in frame.columns
                          if name.startswith(ATTRIBUTE)
                          and name.removeprefix(ATTRIBUTE) not in frame.columns})  # fmt: skip
    return frame.drop("user_key", "user_bucket", "session", "session_us")


def _nulls_for_unknown(frame: pl.DataFrame, log: EventLog) -> pl.DataFrame:
    """Facts with null instead of 0 for what the log lacks."""
    missing = {
        name
        for need, names in _NEEDS.items()
        if not any(log.kinds.get(one) or one in log.known for one in need.split("|"))
        for name in names
    }
    present = missing.intersection(frame.columns)
    unknown = [pl.lit(None, frame.schema[name]).alias(name) for name in sorted(present)]
    if "dwell_us" in frame.columns:
        no_dwell = (pl.col("censored") == 1) & (pl.col("dwell_us") == 0)
        unknown.append(pl.when(~no_dwell).then(pl.col("dwell_us")).alias("dwell_us"))
    return frame.with_columns(unknown)


def _outcome(table: Table) -> pl.Expr:
    """The outcome in a few words; null without any."""
    phrases: list[pl.Expr] = [
        pl.when(pl.col(name) == 1).then(pl.lit(words)) for name, words in _FLAGS[table]
    ]
    if table == "searches":
        again = pl.lit("reformulated: ") + pl.col("reformulation")
        words = pl.col("abandoned_as").replace_strict(_ABANDONED, default=None)
        phrases += [again, words]
    if table == "clicks":
        open_end = (pl.col("censored") == 1) & pl.col("dwell_us").is_not_null()
        phrases.append(pl.when(open_end).then(pl.lit("dwell cut off")))
    joined = pl.concat_str(phrases, separator="; ", ignore_nulls=True)
    return pl.when(joined != "").then(joined)


def _local(name: str, log: EventLog) -> pl.Expr:
    """A time in the log's time zone."""
    time = pl.from_epoch(name, time_unit="us").dt.replace_time_zone("UTC")
    return time.dt.convert_time_zone(log.timezone).dt.strftime("%Y-%m-%d %H:%M:%S")
