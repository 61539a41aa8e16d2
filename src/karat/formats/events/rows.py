"""Rows of a log to events: its columns to karat's; what is left out or made right is counted."""

from __future__ import annotations

from collections import Counter

import polars as pl

from karat.formats.events import _searches as searches
from karat.formats.events.columns import BOT_FLAGS, EVENT, IGNORED, QUERY, ROBOTS
from karat.formats.events.fields import spread
from karat.formats.events.flatten import Flat, Reading
from karat.formats.events.json import LINE
from karat.formats.events.kinds import kind_of, snake
from karat.formats.events.numbers import flag
from karat.formats.events.tally import Tally
from karat.tables.online.events import ATTRIBUTE, KINDS

LONGEST_ID = 1024
"""Bytes; an event with a longer id is left out."""
_LONGEST_TEXT = 4096
_LONGEST_VALUE = 256
MOST_ATTRIBUTES = 32
_SKEW = 600_000_000  # a clock may be so far ahead
_OLDEST = 946_684_800_000_000  # 2000-01-01

IDS = ("user_id", "client_id", "session_id")
"""Who an event may be of; as many columns until it is known which of them holds users."""
NO_ROW = "neither a search nor an action"
NO_TIME = "no time that can be read"
TOO_EARLY, TOO_LATE = "before the year 2000", "in the future"
NO_USER = "no user, client, session or query"
LONG_ID = f"an id longer than {LONGEST_ID:,} bytes"


def rows(frame: pl.DataFrame, reading: Reading, tally: Tally) -> pl.DataFrame:
    """Events of a chunk of a log.

    Args:
        frame: As it was read, with ``LINE``.
        reading: The rules.
        tally: Gets what became of rows.

    Returns:
        ``user_id``, ``client_id``, ``session_id`` as logged, ``time_us``, ``position`` as logged,
        ``told`` (whether an event, and no record of a query, says that it is a search), ``unsaid``
        (as ``event_searches.unsaid`` has it), and the other columns of ``EVENTS`` that a log has;
        attributes behind them.
    """
    held = [each.name for each in frame if each.null_count() < frame.height and each.name != LINE]
    tally.columns.update(dict.fromkeys(held))
    flat = Flat(spread(frame, tally.left_out), reading, tally)
    reading.seen.update(held, flat.frame.columns)
    when = flat.times()
    actions = flat.text("action")
    query = flat.text("query", _LONGEST_TEXT)
    hits = searches.documents(flat)
    kinds = _kinds(flat, actions, query, hits)
    base = pl.DataFrame(
        {
            LINE: flat.frame[LINE],
            **{name: flat.text(name) for name in (*IDS, "query_id", "doc_id")},
            "time_us": when["time_us"],
            "naive": when["naive"],
            "number": when["number"],
            "clock": when["clock"],
            "kind": kinds,
            "action": actions,
            "query": query,
            "hits": hits,
            "position": flat.number(
                "position", "position that is no whole number, or out of range", kinds != "search"
            ),
            "bot": _robots(flat),
        }
    )
    more = searches.facts(flat, base)
    more = more.with_columns(searches.unsaid(flat, kinds, hits, more))
    table = base.hstack(more).hstack(_attributes(flat))
    table = _without(table, tally, reading)
    tally.accepted += table.height
    _say(table, tally)
    return _settled(table)


def _kinds(flat: Flat, actions: pl.Series, query: pl.Series, hits: pl.Series) -> pl.Series:
    own = flat.reading.mapped.kinds
    table = {action: kind_of(action, own) for action in actions.drop_nulls().unique()}
    by_action = actions.replace_strict(table, default=None, return_dtype=pl.String)
    said = flat.text("kind")
    said = said.to_frame().select(pl.when(pl.first().is_in(KINDS)).then(pl.first())).to_series()
    a_search = query.is_not_null() | hits.is_not_null()
    for name in ("query_response_id", "query_attributes"):
        if name in flat.frame.columns:
            a_search |= flat.frame[name].is_not_null()
    frame = pl.DataFrame({"said": said, "by": by_action, "action": actions, "search": a_search})
    # The word search alone may be the button; with what was typed it is a search.
    return frame.select(
        pl.when(pl.col("said").is_not_null())
        .then("said")
        .when(pl.col("action").is_null())
        .then(pl.when("search").then(pl.lit("search")))
        .when((pl.col("by") == "search") & ~pl.col("search"))
        .then(pl.lit("other"))
        .otherwise(pl.col("by").fill_null("other"))
        .alias("kind")
    ).to_series()


def _robots(flat: Flat) -> pl.Series:
    mapped = flat.reading.mapped.columns
    flags = [*flat.there("flag"), *(flat.there("bot") if "bot" in mapped else ())]
    agents = [*flat.there("agent"), *(flat.there("user_agent") if "user_agent" in mapped else ())]
    if not flags and not agents:
        return pl.repeat(value=False, n=flat.frame.height, eager=True)
    flat.tally.assumed["robots told"] += flat.frame.height
    said = [flag(each, flat.reading.mapped.written) for each in flat.texts(flags)]
    told = flat.first(said, pl.Boolean())
    flat.unread("robot that is neither yes nor no", flags, told)
    robot = pl.any_horizontal(pl.lit(value=False), *(each.fill_null(value=False) for each in said))
    for agent in flat.texts(agents):
        robot |= agent.str.contains(ROBOTS).fill_null(value=False)
    return flat.frame.select(robot.alias("bot")).to_series()


def _attributes(flat: Flat) -> pl.DataFrame:
    """What remains, as texts: a bounded number of names."""
    mapped = flat.reading.mapped.attributes
    groups: dict[str, list[str]] = {}
    if mapped is not None:
        for name, column in mapped.items():
            there = [each for each in (column, snake(column)) if each in flat.frame.columns][:1]
            if there:
                groups[_named(name, flat.tally)] = there
    else:
        schema = flat.frame.schema  # asking for it takes time that grows with the columns
        for column, dtype in schema.items():
            name = column.removeprefix(QUERY).removeprefix(EVENT)
            if column in flat.used or name in IGNORED or name in BOT_FLAGS:
                continue
            if "." in name or dtype.is_nested():
                if flat.frame[column].null_count() < flat.frame.height:
                    _leave_out(name, flat.tally)
                continue
            if flat.frame[column].null_count() < flat.frame.height:
                groups.setdefault(_named(name, flat.tally), []).append(column)
    found = {}
    kept = flat.reading.attributes
    for name, columns in groups.items():
        if name not in kept and len(kept) >= MOST_ATTRIBUTES:
            if name:
                flat.tally.left_out.add(f"{name} (more than {MOST_ATTRIBUTES} attributes)")
            continue
        said = flat.texts(columns)
        if not name or not said:
            continue
        value = flat.frame.select(pl.coalesce(said)).to_series()
        nested = value.str.contains(r"^\s*[\[{]").fill_null(value=False)
        if nested.any():
            _leave_out(name, flat.tally)
            value = value.set(nested, None)
        if value.null_count() == len(value):
            continue
        kept[name] = None
        over = (value.str.len_chars() > _LONGEST_VALUE).fill_null(value=False)
        if over.any():
            flat.change(f"a value longer than {_LONGEST_VALUE} letters", over)
            value = value.set(over, None)
        found[f"{ATTRIBUTE}{name}"] = value
    return pl.DataFrame(found)


def _leave_out(name: str, tally: Tally) -> None:
    top = name.split(".", 1)[0]
    if top not in ("position", "object", "_source", "query_attributes", "event_attributes"):
        tally.left_out.add(f"{top} (not one value)")


def _named(name: str, tally: Tally) -> str:
    """What an attribute is kept under; said where that is not its name in small letters."""
    kept = _safe(name)
    if not kept:
        tally.left_out.add(f"{name} (no letter from a to z in its name)")
    elif kept != snake(name.removeprefix(ATTRIBUTE)):
        tally.renamed[name] = kept
    return kept


def _safe(name: str) -> str:
    cleaned = snake(name.removeprefix(ATTRIBUTE))
    cleaned = "".join(
        letter if letter.isascii() and letter.isalnum() else "_" for letter in cleaned
    )
    return cleaned.strip("_")[:64]


def _without(table: pl.DataFrame, tally: Tally, reading: Reading) -> pl.DataFrame:
    """The rows that can be events; the others are counted."""
    time = pl.col("time_us")
    someone = pl.any_horizontal(pl.col(name).is_not_null() for name in (*IDS, "query_id"))
    long = pl.any_horizontal(
        (pl.col(name).str.len_bytes() > LONGEST_ID).fill_null(value=False)
        for name in (*IDS, "query_id", "doc_id")
    )
    reason = (
        pl.when(pl.col("kind").is_null())
        .then(pl.lit(NO_ROW))
        .when(time.is_null())
        .then(pl.lit(NO_TIME))
        .when(time < _OLDEST)
        .then(pl.lit(TOO_EARLY))
        .when(time > reading.now + _SKEW)
        .then(pl.lit(TOO_LATE))
        .when(long)
        .then(pl.lit(LONG_ID))
        .when(~someone)
        .then(pl.lit(NO_USER))
    )
    why = table.select(reason.alias("why"))["why"]
    if why.null_count() == table.height:
        return table
    for said, count in why.drop_nulls().value_counts().sort("why").iter_rows():
        tally.drop(said, table[LINE].filter((why == said).fill_null(value=False)).head(3), count)
    return table.filter(why.is_null())


def _say(table: pl.DataFrame, tally: Tally) -> None:
    naive = int(table["naive"].sum())
    if naive:
        tally.assumed["naive"] += naive
    for unit, count in table["number"].drop_nulls().value_counts().iter_rows():
        tally.assumed[f"number {unit}"] += count
    for clock, count in table["clock"].drop_nulls().value_counts().iter_rows():
        tally.assumed[f"clock {clock}"] += count
    strange = table.filter((pl.col("kind") == "other") & pl.col("action").is_not_null())["action"]
    if len(strange):
        tally.name(Counter(dict(strange.value_counts(sort=True).iter_rows())).items())


def _settled(table: pl.DataFrame) -> pl.DataFrame:
    """What only a search has, on searches only; and the columns that nobody needs any more."""
    search = pl.col("kind") == "search"
    told = search & pl.col("action").is_not_null()
    only = ("query", "hits", *searches.FACTS)
    return table.with_columns(
        told=told,
        action=pl.when(search & pl.col("action").is_null())
        .then(pl.lit("search"))
        .otherwise("action"),
        **{name: pl.when(search).then(name) for name in only},
        value=pl.when(pl.col("kind") == "purchase").then("value"),
        doc_id=pl.when(~search).then("doc_id"),
        position=pl.when(~search).then("position"),
    ).drop("naive", "number", "clock")
