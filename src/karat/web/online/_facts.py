"""Facts for eyes: what became of them in words, who did it by a pseudonym, null for unknown."""

from __future__ import annotations

import hashlib

import polars as pl

from karat.tables.online.events import ATTRIBUTE, EventLog
from karat.workflows.online.facts import Table

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
    "clicks": (("satisfied", "satisfied"),),
    "sessions": (("success", "success"),),
}
"""Flags of each table of facts, and what is said where they are set."""
_ABANDONED = {
    "zero": "abandoned, nothing found",
    "reformulated": "abandoned, searched again",
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
"""What columns are of, as ``Metric.needs`` says it: a log without it does not know them."""
SECONDS = {"first_click_us": "first_click_s", "dwell_us": "dwell_s"}
"""Times in microseconds, and what they are called in seconds."""
_PSEUDONYM = 3  # bytes


def pseudonym(user_key: int, salt: str) -> str:
    """What pages call a user: the same everywhere in a workspace, and no way back from it."""
    found = hashlib.blake2b(str(user_key).encode(), key=salt.encode()[:64], digest_size=_PSEUDONYM)
    return f"u-{found.hexdigest()}"


def for_eyes(frame: pl.DataFrame, log: EventLog, table: Table, salt: str) -> pl.DataFrame:
    """Facts as pages and programs get them.

    Args:
        frame: Rows of the table, as ``facts.look`` returns them.
        log: Where they are from.
        table: Which facts.
        salt: Of the workspace, for pseudonyms.

    Returns:
        The rows with ``user`` (a pseudonym), ``when`` and ``session_began`` (by the clocks of the
        log), ``became`` (in words) and what is long in seconds or milliseconds; null for what the
        log does not say.
    """
    frame = _known(frame, log)
    users = frame["user_key"].unique().to_list()
    names = {key: pseudonym(key, salt) for key in users}
    told_ = frame["user_key"].replace_strict(names, default=None, return_dtype=pl.String)
    seconds = [
        (pl.col(old) / 1e6).alias(new) for old, new in SECONDS.items() if old in frame.columns
    ]
    if "latency_us" in frame.columns:
        seconds.append((pl.col("latency_us") / 1e3).round().cast(pl.Int64).alias("latency_ms"))
    frame = frame.with_columns(
        told_.alias("user"),
        _local("time_us", log).alias("when"),
        _local("session_us", log).alias("session_began"),
        _became(table).alias("became"),
        *seconds,
    )
    frame = frame.rename({name: name.removeprefix(ATTRIBUTE) for name in frame.columns
                          if name.startswith(ATTRIBUTE)
                          and name.removeprefix(ATTRIBUTE) not in frame.columns})  # fmt: skip
    return frame.drop("user_key", "user_bucket", "session", "session_us")


def _known(frame: pl.DataFrame, log: EventLog) -> pl.DataFrame:
    """Facts with null for what the log says nothing of: there they count 0, as nothing came."""
    lacking = {
        name
        for need, names in _NEEDS.items()
        if not any(log.kinds.get(one) or one in log.known for one in need.split("|"))
        for name in names
    }
    there = lacking.intersection(frame.columns)
    unknown = [pl.lit(None, frame.schema[name]).alias(name) for name in sorted(there)]
    if "dwell_us" in frame.columns:
        nothing = (pl.col("censored") == 1) & (pl.col("dwell_us") == 0)
        unknown.append(pl.when(~nothing).then(pl.col("dwell_us")).alias("dwell_us"))
    return frame.with_columns(unknown)


def _became(table: Table) -> pl.Expr:
    """What happened, in a few words; null where nothing of note did."""
    said: list[pl.Expr] = [
        pl.when(pl.col(name) == 1).then(pl.lit(words)) for name, words in _SAID[table]
    ]
    if table == "searches":
        again = pl.lit("said again: ") + pl.col("reformulation")
        words = pl.col("abandoned_as").replace_strict(_ABANDONED, default=None)
        said += [again, words]
    if table == "clicks":
        open_end = (pl.col("censored") == 1) & pl.col("dwell_us").is_not_null()
        said.append(pl.when(open_end).then(pl.lit("perhaps for longer")))
    whole = pl.concat_str(said, separator="; ", ignore_nulls=True)
    return pl.when(whole != "").then(whole)


def _local(name: str, log: EventLog) -> pl.Expr:
    """A time as the clocks of the log show it."""
    time = pl.from_epoch(name, time_unit="us").dt.replace_time_zone("UTC")
    return time.dt.convert_time_zone(log.timezone).dt.strftime("%Y-%m-%d %H:%M:%S")
