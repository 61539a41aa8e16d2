"""Facts of an event log for pages and programs: pseudonyms, local times, outcomes in words."""

from __future__ import annotations

import hashlib

import polars as pl

from karat.tables.online.events import ATTRIBUTE, EventLog
from karat.workflows.online.facts import Table

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
