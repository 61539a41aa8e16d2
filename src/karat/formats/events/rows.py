"""Rows of a log to events; everything dropped or changed is counted."""

from __future__ import annotations

import json
from collections import Counter

import polars as pl

from karat.formats.events.fields import spread
from karat.formats.events.flatten import Flat, Reading
from karat.formats.events.json import LINE
from karat.formats.events.tally import Tally
from karat.formats.events.times import UNITS
from karat.formats.events.vocabulary import (
    BOT_FLAGS,
    EVENT,
    GUESSED,
    IGNORED,
    LATENCIES,
    QUERY,
    ROBOTS,
    kind_of,
    snake,
)
from karat.tables.online.events import ATTRIBUTE, KINDS

LONGEST_ID = 1024  # bytes; events with a longer id are dropped
_LONGEST_TEXT = 4096
_LONGEST_VALUE = 256
MOST_ATTRIBUTES = 32
_SKEW = 600_000_000  # microseconds that a clock may be ahead
_OLDEST = 946_684_800_000_000  # 2000-01-01

IDS = ("user_id", "client_id", "session_id")
"""Candidate columns for the user of an event, until it is known which of them to use."""
NO_ROW = "neither a search nor an action"
NO_TIME = "no valid time"
TOO_EARLY, TOO_LATE = "before the year 2000", "in the future"
NO_USER = "no user, client, session or query"
LONG_ID = f"an id longer than {LONGEST_ID:,} bytes"


def rows(frame: pl.DataFrame, reading: Reading, tally: Tally) -> pl.DataFrame:
    """Events of a chunk of a log.

    Returns:
        ``user_id``, ``client_id``, ``session_id`` as logged, ``time_us``, ``position`` as logged,
        ``told`` (whether a search is an event rather than a query record), ``unsaid`` (see
        ``unsaid``), the other columns of ``EVENTS`` that the log has, and attributes.
    """
    filled = [each.name for each in frame if each.null_count() < frame.height and each.name != LINE]
    tally.columns.update(dict.fromkeys(filled))
    flat = Flat(spread(frame, tally.left_out), reading, tally)
    reading.seen.update(filled, flat.frame.columns)
    moments = flat.times()
    actions = flat.text("action")
    query = flat.text("query", _LONGEST_TEXT)
    hits = documents(flat)
    kinds = _kinds(flat, actions, query, hits)
    base = pl.DataFrame(
        {
            LINE: flat.frame[LINE],
            **{name: flat.text(name) for name in (*IDS, "query_id", "doc_id")},
            "time_us": moments["time_us"],
            "naive": moments["naive"],
            "number": moments["number"],
            "clock": moments["clock"],
            "kind": kinds,
            "action": actions,
            "query": query,
            "hits": hits,
            "position": flat.number(
                "position", "position is not a whole number, or out of range", kinds != "search"
            ),
            "bot": _robots(flat),
        }
    )
    searched = search_facts(flat, base)
    searched = searched.with_columns(unsaid(flat, kinds, hits, searched))
    table = base.hstack(searched).hstack(_attributes(flat))
    table = _without(table, tally, reading)
    tally.accepted += table.height
    _count_assumptions(table, tally)
    return _final_columns(table)


def _kinds(flat: Flat, actions: pl.Series, query: pl.Series, hits: pl.Series) -> pl.Series:
    own = flat.reading.mapped.kinds
    known = {action: kind_of(action, own) for action in actions.drop_nulls().unique()}
    by_action = actions.replace_strict(known, default=None, return_dtype=pl.String)
    stated = flat.text("kind")
    stated = stated.to_frame().select(pl.when(pl.first().is_in(KINDS)).then(pl.first())).to_series()
    a_search = query.is_not_null() | hits.is_not_null()
    for name in ("query_response_id", "query_attributes"):
        if name in flat.frame.columns:
            a_search |= flat.frame[name].is_not_null()
    frame = pl.DataFrame({"said": stated, "by": by_action, "action": actions, "search": a_search})
    # The action "search" alone may be a click on the button; with a query it is a search.
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
    parsed = flat.flags("bot flag", flags)
    is_bot = pl.any_horizontal(
        pl.lit(value=False), *(each.fill_null(value=False) for each in parsed)
    )
    for agent in flat.texts(agents):
        is_bot |= agent.str.contains(ROBOTS).fill_null(value=False)
    return flat.frame.select(is_bot.alias("bot")).to_series()


def _attributes(flat: Flat) -> pl.DataFrame:
    """The remaining columns, as text; at most ``MOST_ATTRIBUTES``."""
    mapped = flat.reading.mapped.attributes
    groups: dict[str, list[str]] = {}
    if mapped is not None:
        for name, column in mapped.items():
            present = [
                name_in_log
                for name_in_log in (column, snake(column))
                if name_in_log in flat.frame.columns
            ][:1]
            if present:
                groups[_named(name, flat.tally)] = present
    else:
        schema = flat.frame.schema  # computed anew on each access
        for column, dtype in schema.items():
            name = column.removeprefix(QUERY).removeprefix(EVENT)
            if column in flat.used or name in IGNORED or name in BOT_FLAGS:
                continue
            if flat.frame[column].null_count() == flat.frame.height:
                continue
            if "." in name or dtype.is_nested():
                _leave_out(name, flat.tally)
            else:
                groups.setdefault(_named(name, flat.tally), []).append(column)
    values = {}
    stored = flat.reading.attributes
    for name, columns in groups.items():
        if name not in stored and len(stored) >= MOST_ATTRIBUTES:
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
        stored[name] = None
        over = (value.str.len_chars() > _LONGEST_VALUE).fill_null(value=False)
        if over.any():
            flat.change(f"attribute longer than {_LONGEST_VALUE} characters, left out", over)
            value = value.set(over, None)
        values[f"{ATTRIBUTE}{name}"] = value
    return pl.DataFrame(values)


def _leave_out(name: str, tally: Tally) -> None:
    top = name.split(".", 1)[0]
    if top not in ("position", "object", "_source", "query_attributes", "event_attributes"):
        tally.left_out.add(f"{top} (not one value)")


def _named(name: str, tally: Tally) -> str:
    """The stored name of an attribute; noted if it is not just the name in snake case."""
    stored = _safe(name)
    if not stored:
        tally.left_out.add(f"{name} (name without ASCII letters or digits)")
    elif stored != snake(name.removeprefix(ATTRIBUTE)):
        tally.renamed[name] = stored
    return stored


def _safe(name: str) -> str:
    cleaned = snake(name.removeprefix(ATTRIBUTE))
    cleaned = "".join(
        letter if letter.isascii() and letter.isalnum() else "_" for letter in cleaned
    )
    return cleaned.strip("_")[:64]


def _without(table: pl.DataFrame, tally: Tally, reading: Reading) -> pl.DataFrame:
    """The rows that are valid events; the others are counted."""
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
    for name in why.drop_nulls().unique().sort():
        tally.drop(name, table[LINE].filter((why == name).fill_null(value=False)))
    return table.filter(why.is_null())


def _count_assumptions(table: pl.DataFrame, tally: Tally) -> None:
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


def _final_columns(table: pl.DataFrame) -> pl.DataFrame:
    """Search columns only on searches, and without the columns that are no longer needed."""
    search = pl.col("kind") == "search"
    told = search & pl.col("action").is_not_null()
    only = ("query", "hits", *FACTS)
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


FACTS = ("returned", "total_hits", "raw_hits", "filtered", "page", "status", "latency_us")
_MOST_HITS = 1000
_LONGEST = 1024
_MOST = 2**53
_MOST_MONEY = 1e12  # sums and squares of it stay finite
_NOTHING = ("", "[]", "{}", "null", "none", "false", "0", "no")
_TIMEOUTS = ("timeout", "timed_out", "timedout", "408", "504")
_ERRORS = ("error", "failed", "failure", "fail", "exception")
_FINE = ("ok", "success", "succeeded", "completed", "complete", "true")


def documents(flat: Flat) -> pl.Series:
    """The documents that searches returned, best first: lists of ids, at most 1,000 each."""
    separator = flat.reading.mapped.separator
    columns = [flat.frame[name] for name in flat.there("hits")]
    lists: list[pl.Series] = []
    for column in columns:
        dtype = column.dtype
        if isinstance(dtype, pl.List) and not dtype.inner.is_nested():
            lists.append(column.cast(pl.List(pl.String)))
        elif dtype == pl.String:
            lists.append(_listed(column, separator))
    if not lists:
        return pl.repeat(None, flat.frame.height, dtype=pl.List(pl.String), eager=True)
    frame = pl.DataFrame([series.alias(str(at)) for at, series in enumerate(lists)])
    joined = frame.select(pl.coalesce(frame.columns).list.head(_MOST_HITS).alias("hits"))
    element = pl.element()
    sound = element.str.contains(r"\S") & (element.str.len_bytes() <= _LONGEST)
    return joined.select(pl.col("hits").list.eval(element.filter(sound))).to_series()


def unsaid(flat: Flat, kinds: pl.Series, hits: pl.Series, found: pl.DataFrame) -> pl.Series:
    """Searches without an error of which the log states neither the results nor their number.

    Hits that are not a list of ids are counted as a change, not as empty.
    """
    search = kinds == "search"
    names = flat.there("hits")
    blank = [
        ~pl.col(name).str.contains(r"\S") if flat.frame.schema[name] == pl.String
        else pl.col(name).is_null()
        for name in names
    ]  # fmt: skip
    is_empty = pl.all_horizontal(
        pl.lit(value=True), *(is_blank.fill_null(value=True) for is_blank in blank)
    )
    empty_hits = flat.frame.select(is_empty.alias("none"))["none"]
    lost = search.fill_null(value=False) & ~empty_hits & hits.is_null()
    if lost.any():
        flat.change("hits are not a list of ids, left out", lost)
    names_in_log = {snake(name): name for name in flat.tally.columns}
    for name in (*names, *flat.there("returned"), *flat.there("total_hits")):
        flat.tally.counted_by[names_in_log.get(name, name)] = None
    failed = found["status"].is_in(["error", "timeout"]).fill_null(value=False)
    known = hits.is_not_null() | found["returned"].is_not_null() | found["total_hits"].is_not_null()
    return (search.fill_null(value=False) & empty_hits & ~known & ~failed).alias("unsaid")


def _listed(column: pl.Series, separator: str | None) -> pl.Series:
    frame = pl.DataFrame({"said": column}).with_columns(said=pl.col("said").str.strip_chars())
    text = pl.col("said")
    array = text.str.starts_with("[")
    # Ids in a JSON array: quoted, or bare numbers.
    inner = text.str.strip_chars("[] ")
    plain = ~text.str.contains("\\", literal=True) & ~text.str.contains("{", literal=True)
    quick = (
        pl.when(inner == "")
        .then(pl.lit([], dtype=pl.List(pl.String)))
        .otherwise(
            inner.str.extract_all(r'"[^"]*"|[^",\s\[\]]+').list.eval(
                pl.element().str.strip_chars('"')
            )
        )
    )
    split = _split(text, separator)
    lists = frame.select(
        pl.when(array & plain)
        .then(quick)
        .when(~array & ~text.str.starts_with("{") & (text != ""))
        .then(split)
        .alias("hits"),
        slow=(array & ~plain).fill_null(value=False),
    )
    if lists["slow"].any():
        slow = _slowly(column.filter(lists["slow"]))
        at = lists["slow"].arg_true()
        all_ids = lists["hits"].to_list()
        for place, ids in zip(at, slow, strict=True):
            all_ids[place] = ids
        return pl.Series(all_ids, dtype=pl.List(pl.String))
    return lists["hits"]


def _split(text: pl.Expr, separator: str | None) -> pl.Expr:
    if separator is not None:
        parts = text.str.split(separator)
    else:
        parts = text.str.replace_all(r"\s*[|;,\s]\s*", "\x1f").str.split("\x1f")
    cleaned = pl.element().str.strip_chars()
    return parts.list.eval(cleaned.filter(cleaned != ""))


def _slowly(column: pl.Series) -> list[list[str] | None]:
    lists: list[list[str] | None] = []
    for text in column:
        try:
            value = json.loads(text)
            json.dumps(value, ensure_ascii=False).encode()  # fails on half of a surrogate pair
        except (ValueError, RecursionError):
            value = None
        flat = isinstance(value, list) and not any(
            isinstance(element, dict | list) for element in value
        )
        lists.append([str(element) for element in value if element is not None] if flat else None)
    return lists


def search_facts(flat: Flat, base: pl.DataFrame) -> pl.DataFrame:
    """The columns of ``FACTS``, ``arm`` and ``value``; ``base`` has ``hits`` and ``kind``."""
    search = base["kind"] == "search"
    counts = {
        name: flat.number(name, f"{name} is not a whole number ≥ 0", search)
        for name in ("returned", "total_hits", "raw_hits", "page")
    }
    facts = pl.DataFrame(
        {
            **counts,
            "filtered": _filtered(flat, search),
            "status": _status(flat, search),
            "latency_us": _latency(flat, search),
            "arm": flat.text("arm", 256),
            "value": _value(flat, base["kind"] == "purchase"),
        }
    )
    listed = base["hits"].list.len().cast(pl.Int64)
    return facts.with_columns(
        returned=pl.coalesce(listed, "returned").cast(pl.Int32, strict=False),
        page=pl.when(pl.col("page").is_between(1, 2**31 - 1)).then("page").cast(pl.Int32),
    )


def _filtered(flat: Flat, search: pl.Series) -> pl.Series:
    candidates = flat.flags("filtered", flat.there("filtered"), search)
    for name in flat.there("filters"):
        dtype = flat.frame.schema[name]
        if isinstance(dtype, pl.List):
            candidates.append(pl.col(name).list.len() > 0)
        elif isinstance(dtype, pl.Struct):
            fields = [pl.col(name).struct[text.name].is_not_null() for text in dtype.fields]
            if fields:
                candidates.append(
                    pl.when(pl.col(name).is_not_null()).then(pl.any_horizontal(fields))
                )
        else:
            for text in flat.texts([name]):
                bare = text.str.replace_all(r"\s", "").str.to_lowercase()
                candidates.append(~bare.is_in(_NOTHING))
    return flat.first(candidates, pl.Boolean())


def _status(flat: Flat, search: pl.Series) -> pl.Series:
    written, own = flat.reading.mapped.written, flat.reading.mapped.statuses
    timeouts, errors, names = flat.there("timeout"), flat.there("error"), flat.there("status")
    candidates: list[pl.Expr] = [
        pl.when(timed_out).then(pl.lit("timeout"))
        for timed_out in flat.flags("timeout", timeouts, search)
    ]
    for text in flat.texts(errors):
        bare = text.str.strip_chars().str.to_lowercase()
        candidates.append(
            pl.when(bare.str.contains("timeout|timed out"))
            .then(pl.lit("timeout"))
            .when(~bare.is_in([*_NOTHING, *written.no]))
            .then(pl.lit("error"))
        )
    stated: list[pl.Expr] = []
    for text in flat.texts(names):
        bare = text.str.strip_chars().str.to_lowercase()
        stated.append(
            pl.when(bare.is_in(list(own)))
            .then(bare.replace_strict(own, default=None, return_dtype=pl.String))
            .when(bare.is_in(_TIMEOUTS))
            .then(pl.lit("timeout"))
            .when(bare.is_in(_ERRORS) | bare.str.contains(r"^[45]\d\d$"))
            .then(pl.lit("error"))
            .when(bare.is_in(_FINE) | bare.str.contains(r"^[23]\d\d$"))
            .then(pl.lit("ok"))
        )
    flat.unread("unknown status", names, flat.first(stated, pl.String()), search)
    candidates += stated
    # In a log with error or timeout columns, an entry without an error is ok.
    candidates += [
        pl.when(text.is_not_null()).then(pl.lit("ok")) for text in flat.texts([*timeouts, *errors])
    ]
    return flat.first(candidates, pl.String())


def _latency(flat: Flat, search: pl.Series) -> pl.Series:
    mapping = flat.there("latency")
    units = {name: LATENCIES.get(name, 1e3) for name in mapping}
    unit = flat.reading.mapped.latency
    for lead in ("", QUERY, EVENT):
        for name, factor in LATENCIES.items():
            if f"{lead}{name}" in flat.frame.columns and f"{lead}{name}" not in units:
                units[f"{lead}{name}"] = factor
    flat.used.update(units)
    candidates: list[pl.Expr] = []
    for name, factor in units.items():
        by = UNITS[unit] if unit is not None else factor
        for text in flat.numbers([name]):
            number = text * by
            candidates.append(
                pl.when(number.is_between(0, _MOST)).then(number.round().cast(pl.Int64))
            )
        if unit is None and name.rpartition(".")[2] in GUESSED:
            flat.tally.assumed["latency"] += flat.frame.height - flat.frame[name].null_count()
    found = flat.first(candidates, pl.Int64())
    flat.unread("latency is not a number ≥ 0", list(units), found, search)
    return found


def _value(flat: Flat, purchase: pl.Series) -> pl.Series:
    names = flat.there("value")
    candidates = [
        pl.when(number.is_between(-_MOST_MONEY, _MOST_MONEY)).then(number)
        for number in flat.numbers(names)
    ]
    value = flat.first(candidates, pl.Float64())
    flat.unread(f"revenue is not a number, or beyond {_MOST_MONEY:,.0f}", names, value, purchase)
    return value
