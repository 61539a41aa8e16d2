"""Facts of a log on an engine: runs the reducers in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any

import narwhals as nw
import polars as pl

from karat.engines.frames.engine import Engine
from karat.online import attribution, dwell, facts, reformulation, sessions
from karat.online.evidence import WINDOW_COLUMN
from karat.online.flags import USER, flag
from karat.online.rules import DAY, HOUR, Rules
from karat.tables.online.events import EventLog

ACTIVITY = (
    "user_bucket",
    "user_key",
    "time_us",
    "tie",
    "local_day",
    "local_hour",
    "kind",
    "query_id",
    "query_key",
    "doc_id",
    "position",
    "returned",
    "total_hits",
    "raw_hits",
    "filtered",
    "status",
    "latency_us",
    "value",
    "arm",
)
_OFF = 14 * HOUR  # maximum offset of a time zone from UTC
_NAMING = ("click", "answer", "cart", "purchase")
"""Kinds, besides impressions, whose query_id names their search."""


@dataclass
class Reformulations:
    """A cache of the classes of text pairs: many users make the same reformulations."""

    known: pl.DataFrame = field(
        default_factory=lambda: pl.DataFrame(
            schema=dict.fromkeys((*reformulation.PAIR, "reformulation"), pl.String)
        )
    )

    def of(self, pairs: pl.DataFrame) -> pl.DataFrame:
        """Those of ``pairs`` that are reformulations, with their class."""
        keys = list(reformulation.PAIR)
        new = pairs.join(self.known, on=keys, how="anti")
        if new.height:
            self.known = pl.concat([self.known, reformulation.classed(new)])
        reformulated = self.known.filter(pl.col("reformulation").is_not_null())
        if reformulated.height <= pairs.height:
            return reformulated
        return reformulated.join(pairs, on=keys, how="semi")


@dataclass(frozen=True)
class FactsOf:
    searches: nw.LazyFrame[Any]  # as `facts.searches` returns them, in the period
    clicks: nw.LazyFrame[Any]  # as `facts.clicks` does; of the searches in the period
    sessions: nw.LazyFrame[Any]  # as `facts.sessions` does; whose first search is in the period
    counts: nw.LazyFrame[Any]  # `name` and `count`, unordered; sum the rows of each name
    # With `Scope.lists`: impressions with `named` (their intent), `doc_id`, `position` and
    # attributes; None if the log has none
    shown: nw.LazyFrame[Any] | None = None


@dataclass(frozen=True)
class Scope:
    """The part of a log to compute facts of."""

    log: EventLog
    rules: Rules = Rules()  # noqa: RUF009 - of sessions and searches; frozen
    first_day: int | None = None  # first local day of searches; None for all
    last_day: int | None = None  # last local day of searches; None for all
    attributes: tuple[str, ...] = ()  # columns of attributes to read
    text: bool = False  # whether to read texts of queries, besides their folded form
    first_hour: int = 0  # first local hour of each day, 0 to 23
    end_hour: int = 24  # end of the last local hour, 1 to 24
    # First local days of several windows as long as that from `first_day` to `last_day`, read
    # together, each as if it were alone; no event is needed for two of them
    starts: tuple[int, ...] = ()
    # Whether to find out which documents were shown: facts have `tie` and `page` of the search,
    # there are impressions, and clicks without a search are counted
    lists: bool = False

    @property
    def tags(self) -> tuple[str, ...]:
        """The columns that tell the windows from each other."""
        return (WINDOW_COLUMN,) if self.starts else ()

    @property
    def carried(self) -> tuple[str, ...]:
        """The columns that every fact keeps."""
        return (*self.attributes, *self.tags, *self._lists)

    @property
    def _lists(self) -> tuple[str, ...]:
        return ("tie", "page") if self.lists else ()

    @property
    def of_impressions(self) -> tuple[str, ...]:
        """The columns of impressions that are needed."""
        more = ("position", *self.attributes) if self.lists else ()
        return (*_SHOWN, *more, *self.tags)

    @property
    def columns(self) -> list[str]:
        asked = {"query": self.text, "bot": self.log.bots, "page": self.lists}
        return [*ACTIVITY, *(name for name, needed in asked.items() if needed), *self.attributes]

    @property
    def since(self) -> int | None:
        """The time from which events are needed, in microseconds.

        Earlier events decide which session is active, and which search a purchase belongs to.
        """
        return None if self.first_day is None else self._since(min(self.starts or [self.first_day]))

    def _since(self, first_day: int) -> int:
        session, purchase = self.rules.session, self.rules.purchase
        before = max(2 * session, purchase + session) + self.rules.idle
        return first_day * DAY - _OFF - before

    @property
    def until(self) -> int | None:
        """The time until which events are needed: clicks and purchases follow their search."""
        if self.last_day is None:
            return None
        return self._until(max(self.starts) + self._length if self.starts else self.last_day)

    def _until(self, last_day: int) -> int:
        behind = max(self.rules.purchase, self.rules.session) + self.rules.idle
        return (last_day + 1) * DAY + _OFF + behind

    @property
    def _length(self) -> int:
        """Days from the first to the last of a window: 0 if it is one day."""
        return (self.last_day or 0) - (self.first_day or 0)

    def tagged(self, events: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """Events that windows need, with the window of each.

        A user is another user in each window, so that sessions and ids of queries do not reach from
        one into another.
        """
        if not self.starts:
            return events
        time = nw.col("time_us")
        last, *others = sorted(self.starts, reverse=True)
        needed = [
            (time >= self._since(start)) & (time < self._until(start + self._length))
            for start in self.starts
        ]
        window = nw.lit(last)
        for start in others:
            here = time < self._until(start + self._length)
            window = nw.when(here).then(nw.lit(start)).otherwise(window)
        user, number = nw.col(USER), nw.col(WINDOW_COLUMN) - min(self.starts)
        other = nw.when(user > 0).then(user - number).otherwise(user + number)  # never overflows
        return (
            events.filter(reduce(or_, needed))
            .with_columns(window.cast(nw.Int64).alias(WINDOW_COLUMN))
            .with_columns(other.alias(USER))
        )

    def within(self, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        if self.starts:
            since = nw.col("local_day") - nw.col(WINDOW_COLUMN)
            frame = frame.filter(since >= 0, since <= self._length)
        elif self.first_day is not None:
            frame = frame.filter(nw.col("local_day") >= self.first_day)
        if self.last_day is not None and not self.starts:
            frame = frame.filter(nw.col("local_day") <= self.last_day)
        if (self.first_hour, self.end_hour) != (0, 24):
            hours = nw.col("local_hour")
            frame = frame.filter(hours >= self.first_hour, hours < self.end_hour)
        return frame


def facts_of(
    events: nw.LazyFrame[Any], engine: Engine, scope: Scope, seen: Reformulations
) -> FactsOf:
    log, rules = scope.log, scope.rules
    kinds = {kind for kind, count in log.kinds.items() if count}
    people = sessions.of_people(scope.tagged(events), bots=bool(log.bots))
    activity = engine.keep(sessions.in_sessions(people, rules))
    if not scope.text:
        activity = activity.with_columns(query=nw.lit(None).cast(nw.String))
    requests = engine.keep(sessions.in_intents(activity, rules))
    bounds = engine.keep(sessions.bounds(activity))
    every = sessions.intents(requests, bounds, filters="filtered" in log.known)
    every = engine.keep(reformulation.candidates(every, rules))
    classes = seen.of(engine.collect(reformulation.pairs(every)))
    every = reformulation.with_classes(every, engine.table(classes) if classes.height else None)

    names = engine.keep(attribution.named(requests)) if "query_id" in log.known else None
    now = attribution.current(requests)
    done = sessions.with_next(activity)
    first = shown = clicked = None
    touches = []
    if "click" in kinds:
        clicked = dwell.clicks(done, hides="hide" in kinds)
        clicked = engine.keep(attribution.by_name_or_time(clicked, names, now, rules))
        touches.append(clicked.select(*_TOUCH))
        first = engine.keep(
            dwell.read(
                attribution.first_clicks(clicked),
                activity,
                rules,
                heartbeats="heartbeat" in kinds,
                taken=bool(kinds & {"cart", "purchase"}),
            )
        )
    answers = None
    if "answer" in kinds:
        shown_answers = dwell.answers(activity, bounds, rules)
        answers = attribution.by_name_or_time(shown_answers, names, now, rules)
    if "impression" in kinds:
        impressions = people.filter(nw.col("kind") == "impression").select(*scope.of_impressions)
        shown = attribution.by_name(impressions, names, rules)
        if scope.lists or kinds & {"cart", "purchase"}:
            shown = engine.keep(shown)
        touches.append(shown.select(*_TOUCH[:-1], intent="named"))
    carts, sold = (
        _attributed(activity, names, touches, every, engine, kind, scope) if kind in kinds else None
        for kind in ("cart", "purchase")
    )
    searches = engine.keep(
        facts.searches(
            every,
            clicks=None if first is None else facts.of_clicks(first),
            carts=None if carts is None else facts.of_carts(carts),
            purchases=None if sold is None else facts.of_purchases(sold),
            answers=None if answers is None else facts.of_answers(answers),
            impressions=None if shown is None else facts.of_impressions(shown),
            closed_us=(log.last_us or 0) - rules.purchase,
            attributes=scope.carried,
        )
    )
    inside = scope.within(searches)
    if first is None:
        nothing = dwell.clicks(done, hides=False)
        first = dwell.read(nothing, activity, rules, heartbeats=False, taken=False)
        first = first.with_columns(intent=nw.lit(None).cast(nw.Int64))
    return FactsOf(
        inside,
        facts.clicks(first, inside, attributes=scope.carried),
        scope.within(facts.sessions(searches, bounds, attributes=scope.carried)),
        _counted(activity, clicked, shown, names, carts, sold, inside, scope),
        shown if scope.lists else None,
    )


_TOUCH = (USER, "time_us", "tie", "doc_id", "intent")
_SHOWN = (USER, "time_us", "tie", "local_day", "local_hour", "query_id", "doc_id")


def _attributed(
    activity: nw.LazyFrame[Any],
    names: nw.LazyFrame[Any] | None,
    touches: Sequence[nw.LazyFrame[Any]],
    every: nw.LazyFrame[Any],
    engine: Engine,
    kind: str,
    scope: Scope,
) -> nw.LazyFrame[Any]:
    """Carts or purchases with the search they are attributed to; others are left out."""
    days = ("local_day", "local_hour", *scope.tags)
    needed = (USER, "session", "time_us", "tie", *days, "doc_id", "value", "query_id")
    events = activity.filter(nw.col("kind") == kind).select(*needed)
    events = engine.keep(attribution.by_name(events, names, scope.rules))
    columns = (*needed, "intent", "since_us")
    by_name = events.filter(~nw.col("named").is_null()).with_columns(
        intent=nw.col("named"), since_us=nw.lit(None).cast(nw.Int64)
    )
    with_search = by_name.select(*columns)
    if touches:
        by_document = events.filter(nw.col("named").is_null() & ~nw.col("doc_id").is_null())
        near = nw.concat(list(touches)) if len(touches) > 1 else touches[0]
        near = near.filter(~nw.col("intent").is_null() & ~nw.col("doc_id").is_null())
        touched = attribution.by_touch(by_document, near)
        with_search = nw.concat([with_search, touched.select(*columns)])
    cart = kind == "cart"
    within = scope.rules.cart if cart else scope.rules.purchase
    return engine.keep(attribution.bought(with_search, every, within=within, same_session=cart))


def _counted(
    activity: nw.LazyFrame[Any],
    clicked: nw.LazyFrame[Any] | None,
    shown: nw.LazyFrame[Any] | None,
    names: nw.LazyFrame[Any] | None,
    carts: nw.LazyFrame[Any] | None,
    sold: nw.LazyFrame[Any] | None,
    searches: nw.LazyFrame[Any],
    scope: Scope,
) -> nw.LazyFrame[Any]:
    """Counts of events, users and searches in the period, by window if there are several."""
    tags = scope.tags
    active = scope.within(activity)
    unsaid = flag((nw.col("completed") == 1) & nw.col("zero_filtered").is_null())
    parts = [
        count("events", active, nw.len(), tags),
        count("users", active, nw.col(USER).n_unique(), tags),
        count("searches", searches, nw.len(), tags),
        count("requests", searches, nw.col("requests").sum(), tags),
        count("derived_items", searches, nw.col("derived").sum(), tags),
        count("unknown_results", searches.with_columns(_n=unsaid), nw.col("_n").sum(), tags),
    ]
    if "arm" in scope.log.known:
        arms = searches.group_by(USER, *tags).agg(low=nw.col("arm").min(), high=nw.col("arm").max())
        several = arms.filter(nw.col("low") != nw.col("high"))
        parts.append(count("users_in_several_arms", several, nw.len(), tags))
    for kind, led in (("cart", carts), ("purchase", sold)):
        if led is not None:
            name, every = f"unattributed_{kind}s", active.filter(nw.col("kind") == kind)
            parts.append(count(name, every, nw.len(), tags))
            parts.append(count(name, scope.within(led), nw.len(), tags, sign=-1))
    if scope.lists and clicked is not None:
        lost = scope.within(clicked.filter(nw.col("intent").is_null()))
        parts.append(count("unattributed_clicks", lost, nw.len(), tags))
    if names is not None:
        own = active.filter(nw.col("kind").is_in(list(_NAMING)))
        own = own.select(USER, "time_us", "query_id", *tags)
        parts.append(_unknown(attribution.by_name(own, names, scope.rules), tags))
    if shown is not None:
        seen = scope.within(shown)
        parts.append(count("events", seen, nw.len(), tags))
        if names is not None:
            parts.append(_unknown(seen, tags))
    return nw.concat(parts)


def count(
    name: str, frame: nw.LazyFrame[Any], number: nw.Expr, tags: Sequence[str], sign: int = 1
) -> nw.LazyFrame[Any]:
    """``name`` and ``count``, of each window if frames are tagged."""
    counted = frame.group_by(*tags).agg(n=number) if tags else frame.select(n=number)
    whole = nw.col("n").cast(nw.Int64).fill_null(0)
    return counted.select(*tags, name=nw.lit(name), count=whole * sign)


def _unknown(events: nw.LazyFrame[Any], tags: Sequence[str]) -> nw.LazyFrame[Any]:
    """Number of events with a query id that is not a search of their user at that time."""
    strange = flag(~nw.col("query_id").is_null() & nw.col("named").is_null())
    return count("unknown_query_ids", events.with_columns(_n=strange), nw.col("_n").sum(), tags)
