"""Expressions of entries, over the columns of the facts.

They use only what Polars, DuckDB and Spark compute alike: whole numbers, comparisons, ``when``.
Nulls count as 0 in ``moments.rows``, both as a numerator and as a denominator.
"""

from __future__ import annotations

import narwhals as nw

from karat.online.metrics.entry import Expression, Metric, Ratio
from karat.tables.online.events import KINDS, EventLog


def to_count(name: str, ratio: Ratio) -> Metric:
    """An internal metric that is read by its sums; it cannot be requested and is not printed.

    Args:
        name: Name of its rows in the evidence, distinct from metrics.
        ratio: Numerator and denominator.
    """
    return Metric(
        name=name,
        version=1,
        title=name,
        definition=name,
        says="",
        source="",
        traps=(),
        direction="none",
        unit="count",
        compute=ratio,
        needs=(),
        family="",
    )


_WORDS = {
    "search": "searches",
    "impression": "impressions",
    "click": "clicks",
    "hide": "page hides",
    "heartbeat": "heartbeats",
    "cart": "carts",
    "purchase": "purchases",
    "answer": "answers",
    "other": "other events",
    "query": "texts of queries",
    "position": "positions",
    "hits": "lists of results",
    "returned": "numbers of results",
    "total_hits": "numbers of matches",
    "raw_hits": "numbers of matches before any fallback",
    "filtered": "filters",
    "status": "errors and timeouts (status)",
    "latency_us": "latencies",
    "value": "amounts paid",
}


def why_unknown(metric: Metric, log: EventLog) -> str:
    """The reason why a metric is unknown for a log; empty if it is known."""
    for need in metric.needs:
        either = need.split("|")
        if not any(_has(log, name) for name in either):
            words = [_WORDS.get(name, name) for name in either]
            if len(words) == 1:
                return f"the log has no {words[0]}"
            return f"the log has neither {', '.join(words[:-1])} nor {words[-1]}"
    return ""


def counted_over(metric: Metric) -> str:
    """The denominator of a ratio in words, from its definition."""
    return metric.definition.rpartition(" / ")[2].partition(";")[0]


def _has(log: EventLog, name: str) -> bool:
    return log.kinds.get(name, 0) > 0 if name in KINDS else name in log.known


def column(name: str) -> Expression:
    """A column, with its nulls."""
    return lambda: nw.col(name)


def one() -> nw.Expr:
    """1 for every row."""
    return nw.lit(1)


EVERY_SEARCH = to_count("n(searches)", Ratio("searches", one, one))
"""Searches of any outcome: the denominator of each slice."""


def known(name: str) -> Expression:
    """1 where a column is not null; else 0."""
    return lambda: nw.when(~nw.col(name).is_null()).then(1).otherwise(0)


def equals(name: str, value: str | int) -> Expression:
    """1 where a column has this value; else 0, for null too."""
    return lambda: nw.when(nw.col(name) == value).then(1).otherwise(0)


def at_most(name: str, value: int) -> Expression:
    """1 where a column is this or less; else 0, for null too."""
    return lambda: nw.when(nw.col(name) <= value).then(1).otherwise(0)


def ranked(over: str = "seen") -> Expression:
    """1 where ``over`` is 1 and the position of the click, if any, is known; else 0."""
    unknown = (nw.col("clicked") == 1) & nw.col("first_rank").is_null()
    return lambda: nw.when((nw.col(over) == 1) & ~unknown).then(1).otherwise(0)


def reciprocal() -> nw.Expr:
    """One divided by the best position clicked; null without one."""
    return 1.0 / nw.col("first_rank")


def clicked_and_ranked() -> nw.Expr:
    """1 where results were seen and a position clicked is known; else 0."""
    counts = (nw.col("seen") == 1) & ~nw.col("first_rank").is_null()
    return nw.when(counts).then(1).otherwise(0)


def to_first_click() -> nw.Expr:
    """Time to the first click, else until the search was left; null where no results were seen."""
    until = nw.when(nw.col("clicked") == 1).then(nw.col("first_click_us")).otherwise(
        nw.col("left_us")
    )  # fmt: skip
    return nw.when(nw.col("seen") == 1).then(until)


def not_clicked() -> nw.Expr:
    """1 where nothing was clicked; else 0."""
    return nw.when(nw.col("clicked") == 1).then(0).otherwise(1)
