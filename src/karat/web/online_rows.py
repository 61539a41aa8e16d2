"""Rows: the searches, clicks and sessions behind a figure; who did it goes by a short pseudonym."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlencode

import polars as pl
from fastapi import APIRouter, Query, Request, Response

from karat.formats.engines.opening import open_engine
from karat.online.metrics import registry
from karat.online.metrics.entry import Metric
from karat.online.rules import Rules
from karat.online.simulate.records import SIMULATED
from karat.tables.events import ATTRIBUTE, EventLog
from karat.tables.schema import TABLES as TABLES_OF
from karat.web.access import AReader
from karat.web.listing import Ask, Column, Kind, Listed, listed
from karat.web.online import LogPage, tabs, told
from karat.web.online_figures import NOT_SAID
from karat.web.online_log import Days, Lacking, Question, TheDays, log_of, looked
from karat.web.online_slices import Part, parts, where
from karat.web.page import show
from karat.web.site import Site, TheSite
from karat.workflows.online.evaluating import class_table
from karat.workflows.online.facts import look

ROUTER = APIRouter()
MOST_ROWS = 2_000
"""Rows of a page's list, the newest; the API goes on from there."""
Table = Literal["searches", "clicks", "sessions"]
Counts = Literal["", "yes", "no"]
TABLES: tuple[Table, ...] = ("searches", "clicks", "sessions")
_SHOWN: dict[Table, tuple[tuple[str, str, Kind], ...]] = {
    "searches": (
        ("query", "query", "text"),
        ("when", "when", "text"),
        ("user", "user", "text"),
        ("session", "session", "count"),
        ("arm", "arm", "text"),
        ("became", "what became of it", "text"),
        ("items", "results", "count"),
        ("clicks", "clicks", "count"),
        ("first_rank", "position", "count"),
        ("first_click_s", "first click, s", "number"),
        ("revenue", "paid", "number"),
        ("latency_ms", "answer, ms", "count"),
    ),
    "clicks": (
        ("query_key", "query", "text"),
        ("when", "when", "text"),
        ("user", "user", "text"),
        ("session", "session", "count"),
        ("arm", "arm", "text"),
        ("doc_id", "document", "text"),
        ("position", "position", "count"),
        ("dwell_s", "s read", "number"),
        ("became", "what became of it", "text"),
    ),
    "sessions": (
        ("query_key", "first query", "text"),
        ("when", "when", "text"),
        ("user", "user", "text"),
        ("session", "session", "count"),
        ("arm", "arm", "text"),
        ("searches", "searches", "count"),
        ("tasks", "tasks", "count"),
        ("became", "what became of it", "text"),
    ),
}
"""Columns of each table of facts: name, head, kind."""
_SAID: dict[str, tuple[tuple[str, str], ...]] = {
    "searches": (
        ("error", "error"),
        ("timeout", "timed out"),
        ("zero", "no results"),
        ("zero_filtered", "none by its filter"),
        ("sat", "satisfied"),
        ("quick_back", "back at once"),
        ("carts", "into the cart"),
        ("purchases", "bought"),
        ("answered", "answer read"),
    ),
    "clicks": (
        ("satisfied", "satisfied"),
        ("censored", "perhaps for longer"),
    ),
    "sessions": (("success", "success"),),
}
"""Flags of each table of facts, and what is said where they are set."""
_ABANDONED = {
    "zero": "abandoned, nothing found",
    "reformulated": "abandoned, searched again",
    "terminal": "abandoned",
}
_HEADS = {"reformulation": "said again", "abandoned_as": "abandoned"}
_FILTERS = frozenset({"arm", "reformulation", "abandoned_as"})
_SECONDS = {"first_click_us": "first_click_s", "dwell_us": "dwell_s"}
_PSEUDONYM = 3  # bytes


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

    def address(self, **changed: Any) -> str:
        """The page with some of it changed; ``None`` takes it out."""
        held: dict[str, Any] = {"metric": "" if self.metric is None else self.metric.name}
        held |= {"table": "" if self.metric else self.table, "counts": self.counts}
        held |= self.days.said | {"slice": [part.said for part in self.slices]} | changed
        return f"/online/rows?{urlencode({k: v for k, v in held.items() if v}, doseq=True)}"


def behind(
    site: Site,
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
    site: TheSite,
    _asking: AReader,
    days: TheDays,
    metric: Annotated[str, Query(max_length=100)] = "",
    table: Table | Literal[""] = "",
    counts: Counts = "",
    slices: Annotated[list[str] | None, Query(alias="slice", max_length=20)] = None,
) -> Response:
    """The rows behind a figure, the newest first."""
    log = log_of(site)
    common: dict[str, Any] = {"title": "Rows", "crumbs": [("Online", "/online")]}
    common |= {"tabs": tabs("rows")}
    if isinstance(log, Lacking):
        return show(request, RowsPage(**common, lacking=log))
    asked = behind(site, log, days.within(log), metric, table or None, counts, slices or [])
    found = looked(
        request,
        log,
        asked.question(MOST_ROWS, 0),
        lambda: made(site, log, asked, MOST_ROWS, 0),
    )
    page = common | {
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
    if found is None:
        return show(request, RowsPage(**page))
    frame = pl.DataFrame(found["rows"], schema=_schema(found["schema"]))
    return show(
        request,
        RowsPage(**page, computed=True, total=found["total"], rows=_listed(request, asked, frame)),
    )


def made(site: Site, log: EventLog, asked: Behind, limit: int, offset: int) -> dict[str, Any]:
    """The rows, as JSON can hold them: users by their pseudonyms, times for eyes in seconds."""
    queries = next((p.dimension.queries for p in asked.slices if p.dimension.queries), None)
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
    frame = _for_eyes(frame, log, asked.table, site.workspace.golden.salt)
    kinds = {
        name: "text" if kind == pl.String else "float" if kind.is_float() else "whole"
        for name, kind in frame.schema.items()
    }
    return {"total": total, "rows": frame.to_dict(as_series=False), "schema": kinds}


def pseudonym(user_key: int, salt: str) -> str:
    """What pages call a user: the same everywhere in a workspace, and no way back from it."""
    found = hashlib.blake2b(str(user_key).encode(), key=salt.encode()[:64], digest_size=_PSEUDONYM)
    return f"u-{found.hexdigest()}"


def _became(table: Table) -> pl.Expr:
    """What happened, in a few words; null where nothing of note did."""
    said: list[pl.Expr] = [
        pl.when(pl.col(name) == 1).then(pl.lit(words)) for name, words in _SAID[table]
    ]
    if table == "searches":
        again = pl.lit("said again: ") + pl.col("reformulation")
        words = pl.col("abandoned_as").replace_strict(_ABANDONED, default=None)
        said += [again, words]
    whole = pl.concat_str(said, separator="; ", ignore_nulls=True)
    return pl.when(whole != "").then(whole)


def _for_eyes(frame: pl.DataFrame, log: EventLog, table: Table, salt: str) -> pl.DataFrame:
    users = frame["user_key"].unique().to_list()
    names = {key: pseudonym(key, salt) for key in users}
    told_ = frame["user_key"].replace_strict(names, default=None, return_dtype=pl.String)
    seconds = [
        (pl.col(old) / 1e6).alias(new) for old, new in _SECONDS.items() if old in frame.columns
    ]
    if "latency_us" in frame.columns:
        seconds.append((pl.col("latency_us") / 1e3).round().cast(pl.Int64).alias("latency_ms"))
    frame = frame.with_columns(
        told_.alias("user"),
        pl.from_epoch("time_us", time_unit="us")
        .dt.replace_time_zone("UTC")
        .dt.convert_time_zone(log.timezone)
        .dt.strftime("%Y-%m-%d %H:%M:%S")
        .alias("when"),
        _became(table).alias("became"),
        *seconds,
    )
    frame = frame.rename({name: name.removeprefix(ATTRIBUTE) for name in frame.columns
                          if name.startswith(ATTRIBUTE)
                          and name.removeprefix(ATTRIBUTE) not in frame.columns})  # fmt: skip
    return frame.drop("user_key", "user_bucket")


def _schema(kinds: Mapping[str, str]) -> dict[str, Any]:
    types = {"text": pl.String, "float": pl.Float64, "whole": pl.Int64}
    return {name: types[kind] for name, kind in kinds.items()}


def _listed(request: Request, asked: Behind, frame: pl.DataFrame) -> Listed:
    """The rows as a list; what none of them has is left out of the table."""
    shown = [each for each in _SHOWN[asked.table] if each[0] in frame.columns]
    named = {name for name, _, _ in shown}
    hidden = {*_SECONDS, "latency_us", "local_day", "local_hour", SIMULATED}
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
        )
        for name, head, kind in shown
    ]
    rest = [name for name in frame.columns if name not in named | hidden]
    facts = {column.name for column in TABLES_OF[asked.table]} | {"time_us", "class"}
    columns += [
        Column(
            name,
            _HEADS.get(name, name),
            "time" if name == "time_us" else "text" if text else "number",
            shown=text and name not in facts and any_of(name),
            choices=name in _FILTERS or (text and name not in facts),
        )
        for name in rest
        for text in [frame.schema[name] == pl.String]
    ]
    return listed(frame, columns, Ask.of(request), search=[key, "user"], per_page=25)


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
