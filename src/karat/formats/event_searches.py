"""What a log says of searches: documents returned, hits, status, latency, arm."""

from __future__ import annotations

import json

import polars as pl

from karat.formats.event_columns import EVENT, GUESSED, LATENCIES, QUERY, YES
from karat.formats.event_flat import Flat
from karat.formats.event_times import UNITS

FACTS = ("returned", "total_hits", "raw_hits", "filtered", "page", "status", "latency_us")
_MOST_HITS = 1000
_LONGEST = 1024
_MOST = 2**53
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
    sound = element.is_not_null() & (element.str.len_bytes() <= _LONGEST)
    return joined.select(pl.col("hits").list.eval(element.filter(sound))).to_series()


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
        base: With ``hits``.

    Returns:
        The columns of ``FACTS``, ``arm`` and ``value``.
    """
    wrong = "{} that is no whole number from 0"
    counts = {
        name: flat.number(name, wrong.format(name))
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
            "filtered": _filtered(flat),
            "page": page["page"].cast(pl.Int32),
            "status": _status(flat),
            "latency_us": _latency(flat),
            "arm": flat.text("arm", 256),
            "value": _value(flat),
        }
    )


def _filtered(flat: Flat) -> pl.Series:
    said: list[pl.Expr] = [
        pl.when(each.is_not_null()).then(each.str.strip_chars().str.to_lowercase().is_in(YES))
        for each in flat.texts(flat.there("filtered"))
    ]
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
    return _first(flat, said, pl.Boolean())


def _status(flat: Flat) -> pl.Series:
    said: list[pl.Expr] = []
    for each in flat.texts(flat.there("timeout")):
        said.append(pl.when(each.str.to_lowercase().is_in(YES)).then(pl.lit("timeout")))
    for each in flat.texts(flat.there("error")):
        bare = each.str.to_lowercase()
        said.append(
            pl.when(bare.str.contains("timeout|timed out"))
            .then(pl.lit("timeout"))
            .when(~bare.is_in(_NOTHING))
            .then(pl.lit("error"))
        )
    for each in flat.texts(flat.there("status")):
        bare = each.str.strip_chars().str.to_lowercase()
        said.append(
            pl.when(bare.is_in(_TIMEOUTS))
            .then(pl.lit("timeout"))
            .when(bare.is_in(_ERRORS) | bare.str.contains(r"^[45]\d\d$"))
            .then(pl.lit("error"))
            .when(bare.is_in(_FINE) | bare.str.contains(r"^[23]\d\d$"))
            .then(pl.lit("ok"))
        )
    for column in ("timeout", "error"):
        # A log that says when it failed says by its silence that it did not.
        for each in flat.texts(flat.there(column)):
            said.append(pl.when(each.is_not_null()).then(pl.lit("ok")))
    return _first(flat, said, pl.String())


def _latency(flat: Flat) -> pl.Series:
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
        for each in flat.texts([name]):
            number = each.str.strip_chars().cast(pl.Float64, strict=False) * by
            said.append(pl.when(number.is_between(0, _MOST)).then(number.round().cast(pl.Int64)))
        if unit is None and name.rpartition(".")[2] in GUESSED:
            flat.tally.assumed["latency"] += flat.frame.height - flat.frame[name].null_count()
    return _first(flat, said, pl.Int64())


def _value(flat: Flat) -> pl.Series:
    said: list[pl.Expr] = []
    for each in flat.texts(flat.there("value")):
        number = each.str.strip_chars().cast(pl.Float64, strict=False)
        said.append(pl.when(number.is_finite()).then(number))
    return _first(flat, said, pl.Float64())


def _first(flat: Flat, said: list[pl.Expr], dtype: pl.DataType) -> pl.Series:
    if not said:
        return pl.repeat(None, flat.frame.height, dtype=dtype, eager=True)
    return flat.frame.select(pl.coalesce(said).cast(dtype).alias("said")).to_series()
