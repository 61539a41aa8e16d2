"""What a log says of searches: documents returned, hits, status, latency, arm."""

from __future__ import annotations

import json

import polars as pl

from karat.formats.events.columns import EVENT, GUESSED, LATENCIES, QUERY
from karat.formats.events.flatten import Flat
from karat.formats.events.kinds import snake
from karat.formats.events.numbers import flag
from karat.formats.events.times import UNITS

FACTS = ("returned", "total_hits", "raw_hits", "filtered", "page", "status", "latency_us")
_MOST_HITS = 1000
_LONGEST = 1024
_MOST = 2**53
_MOST_MONEY = 1e12  # sums and squares of it stay numbers
_NOTHING = ("", "[]", "{}", "null", "none", "false", "0", "no")
_TIMEOUTS = ("timeout", "timed_out", "timedout", "408", "504")
_ERRORS = ("error", "failed", "failure", "fail", "exception")
_FINE = ("ok", "success", "succeeded", "completed", "complete", "true")


def documents(flat: Flat) -> pl.Series:
    """The documents that searches returned, best first: lists of texts, at most 1,000 each."""
    separator = flat.reading.mapped.separator
    columns = [flat.frame[name] for name in flat.there("hits")]
    found: list[pl.Series] = []
    for column in columns:
        dtype = column.dtype
        if isinstance(dtype, pl.List) and not dtype.inner.is_nested():
            found.append(column.cast(pl.List(pl.String)))
        elif dtype == pl.String:
            found.append(_listed(column, separator))
    if not found:
        return pl.repeat(None, flat.frame.height, dtype=pl.List(pl.String), eager=True)
    frame = pl.DataFrame([each.alias(str(at)) for at, each in enumerate(found)])
    joined = frame.select(pl.coalesce(frame.columns).list.head(_MOST_HITS).alias("hits"))
    element = pl.element()
    sound = element.str.contains(r"\S") & (element.str.len_bytes() <= _LONGEST)
    return joined.select(pl.col("hits").list.eval(element.filter(sound))).to_series()


def unsaid(flat: Flat, kinds: pl.Series, hits: pl.Series, found: pl.DataFrame) -> pl.Series:
    """Searches that were answered, and of which the log says neither what they found nor how much.

    What is there and is no list of ids is counted: that is not empty.

    Args:
        flat: The chunk.
        kinds: Of its rows.
        hits: What ``documents`` returns.
        found: What ``facts`` returns.
    """
    search = kinds == "search"
    names = flat.there("hits")
    blank = [
        ~pl.col(name).str.contains(r"\S") if flat.frame.schema[name] == pl.String
        else pl.col(name).is_null()
        for name in names
    ]  # fmt: skip
    empty = pl.all_horizontal(pl.lit(value=True), *(each.fill_null(value=True) for each in blank))
    none = flat.frame.select(empty.alias("none"))["none"]
    lost = search.fill_null(value=False) & ~none & hits.is_null()
    if lost.any():
        flat.change("hits that are no list of ids, left out", lost)
    named = {snake(name): name for name in flat.tally.columns}
    for name in (*names, *flat.there("returned"), *flat.there("total_hits")):
        flat.tally.counted_by[named.get(name, name)] = None
    failed = found["status"].is_in(["error", "timeout"]).fill_null(value=False)
    says = hits.is_not_null() | found["returned"].is_not_null() | found["total_hits"].is_not_null()
    return (search.fill_null(value=False) & none & ~says & ~failed).alias("unsaid")


def _listed(column: pl.Series, separator: str | None) -> pl.Series:
    frame = pl.DataFrame({"said": column}).with_columns(said=pl.col("said").str.strip_chars())
    said = pl.col("said")
    array = said.str.starts_with("[")
    # Ids in an array of JSON: quoted, or bare numbers.
    inner = said.str.strip_chars("[] ")
    plain = ~said.str.contains("\\", literal=True) & ~said.str.contains("{", literal=True)
    quick = (
        pl.when(inner == "")
        .then(pl.lit([], dtype=pl.List(pl.String)))
        .otherwise(
            inner.str.extract_all(r'"[^"]*"|[^",\s\[\]]+').list.eval(
                pl.element().str.strip_chars('"')
            )
        )
    )
    split = _split(said, separator)
    lists = frame.select(
        pl.when(array & plain)
        .then(quick)
        .when(~array & ~said.str.starts_with("{") & (said != ""))
        .then(split)
        .alias("hits"),
        slow=(array & ~plain).fill_null(value=False),
    )
    if lists["slow"].any():
        slow = _slowly(column.filter(lists["slow"]))
        at = lists["slow"].arg_true()
        found = lists["hits"].to_list()
        for place, ids in zip(at, slow, strict=True):
            found[place] = ids
        return pl.Series(found, dtype=pl.List(pl.String))
    return lists["hits"]


def _split(said: pl.Expr, separator: str | None) -> pl.Expr:
    if separator is not None:
        parts = said.str.split(separator)
    else:
        parts = said.str.replace_all(r"\s*[|;,\s]\s*", "\x1f").str.split("\x1f")
    cleaned = pl.element().str.strip_chars()
    return parts.list.eval(cleaned.filter(cleaned != ""))


def _slowly(column: pl.Series) -> list[list[str] | None]:
    lists: list[list[str] | None] = []
    for text in column:
        try:
            held = json.loads(text)
            json.dumps(held, ensure_ascii=False).encode()  # half of a surrogate pair cannot be
        except (ValueError, RecursionError):
            held = None
        bare = isinstance(held, list) and not any(isinstance(each, dict | list) for each in held)
        lists.append([str(each) for each in held if each is not None] if bare else None)
    return lists


def facts(flat: Flat, base: pl.DataFrame) -> pl.DataFrame:
    """What the log says of each search, and the arm and the money of each row.

    Args:
        flat: The chunk.
        base: With ``hits`` and ``kind``.

    Returns:
        The columns of ``FACTS``, ``arm`` and ``value``.
    """
    search = base["kind"] == "search"
    counts = {
        name: flat.number(name, f"{name} that is no whole number from 0", search)
        for name in ("returned", "total_hits", "raw_hits", "page")
    }
    returned = pl.DataFrame({"said": counts["returned"], "hits": base["hits"]}).select(
        pl.coalesce(pl.col("hits").list.len().cast(pl.Int64), "said").alias("returned")
    )
    page = pl.DataFrame({"page": counts["page"]}).select(
        pl.when(pl.col("page").is_between(1, 2**31 - 1)).then("page")
    )
    return pl.DataFrame(
        {
            "returned": returned["returned"].cast(pl.Int32, strict=False),
            "total_hits": counts["total_hits"],
            "raw_hits": counts["raw_hits"],
            "filtered": _filtered(flat, search),
            "page": page["page"].cast(pl.Int32),
            "status": _status(flat, search),
            "latency_us": _latency(flat, search),
            "arm": flat.text("arm", 256),
            "value": _value(flat, base["kind"] == "purchase"),
        }
    )


def _filtered(flat: Flat, search: pl.Series) -> pl.Series:
    written, names = flat.reading.mapped.written, flat.there("filtered")
    said = [flag(each, written) for each in flat.texts(names)]
    flat.unread(
        "filtered that is neither yes nor no", names, flat.first(said, pl.Boolean()), search
    )
    for name in flat.there("filters"):
        dtype = flat.frame.schema[name]
        if isinstance(dtype, pl.List):
            said.append(pl.col(name).list.len() > 0)
        elif isinstance(dtype, pl.Struct):
            fields = [pl.col(name).struct[each.name].is_not_null() for each in dtype.fields]
            if fields:
                said.append(pl.when(pl.col(name).is_not_null()).then(pl.any_horizontal(fields)))
        else:
            for each in flat.texts([name]):
                bare = each.str.replace_all(r"\s", "").str.to_lowercase()
                said.append(~bare.is_in(_NOTHING))
    return flat.first(said, pl.Boolean())


def _status(flat: Flat, search: pl.Series) -> pl.Series:
    written, own = flat.reading.mapped.written, flat.reading.mapped.statuses
    timeouts, errors, names = flat.there("timeout"), flat.there("error"), flat.there("status")
    ended = [flag(each, written) for each in flat.texts(timeouts)]
    flat.unread(
        "timeout that is neither yes nor no", timeouts, flat.first(ended, pl.Boolean()), search
    )
    said: list[pl.Expr] = [pl.when(each).then(pl.lit("timeout")) for each in ended]
    for each in flat.texts(errors):
        bare = each.str.strip_chars().str.to_lowercase()
        said.append(
            pl.when(bare.str.contains("timeout|timed out"))
            .then(pl.lit("timeout"))
            .when(~bare.is_in([*_NOTHING, *written.no]))
            .then(pl.lit("error"))
        )
    stated: list[pl.Expr] = []
    for each in flat.texts(names):
        bare = each.str.strip_chars().str.to_lowercase()
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
    flat.unread("status that is none of karat's", names, flat.first(stated, pl.String()), search)
    said += stated
    # A log that says when it failed says by its silence that it did not.
    said += [
        pl.when(each.is_not_null()).then(pl.lit("ok")) for each in flat.texts([*timeouts, *errors])
    ]
    return flat.first(said, pl.String())


def _latency(flat: Flat, search: pl.Series) -> pl.Series:
    mapping = flat.there("latency")
    units = {name: LATENCIES.get(name, 1e3) for name in mapping}
    unit = flat.reading.mapped.latency
    for lead in ("", QUERY, EVENT):
        for name, factor in LATENCIES.items():
            if f"{lead}{name}" in flat.frame.columns and f"{lead}{name}" not in units:
                units[f"{lead}{name}"] = factor
    flat.used.update(units)
    said: list[pl.Expr] = []
    for name, factor in units.items():
        by = UNITS[unit] if unit is not None else factor
        for each in flat.numbers([name]):
            number = each * by
            said.append(pl.when(number.is_between(0, _MOST)).then(number.round().cast(pl.Int64)))
        if unit is None and name.rpartition(".")[2] in GUESSED:
            flat.tally.assumed["latency"] += flat.frame.height - flat.frame[name].null_count()
    found = flat.first(said, pl.Int64())
    flat.unread("latency that is no number from 0", list(units), found, search)
    return found


def _value(flat: Flat, purchase: pl.Series) -> pl.Series:
    names = flat.there("value")
    said = [
        pl.when(each.is_between(-_MOST_MONEY, _MOST_MONEY)).then(each)
        for each in flat.numbers(names)
    ]
    found = flat.first(said, pl.Float64())
    flat.unread(f"revenue that is no number, or beyond {_MOST_MONEY:,.0f}", names, found, purchase)
    return found
