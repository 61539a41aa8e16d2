"""Worst queries: which searches failed and how, and each query's share of failed searches.

**A search fails** if it has no results; or if it has no satisfied click, cart, purchase or answer
read, and is then reformulated, or left after clicks that did not satisfy, or without a click on
results that were seen. Missing data does not count as failure: without clicks in the log, only zero
results and reformulations do.

**A query's share of failed searches** is shrunk towards that of all queries. Searches of one user
are correlated, so the evidence is counted in users: a query counts as if each of its users had
failed by that share. Shares of queries follow a beta distribution, whose variance is estimated by
moments from the queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import narwhals as nw
import numpy as np
import polars as pl

from karat.online.flags import flag
from karat.online.metrics.entry import Expression, Metric, Ratio
from karat.online.metrics.expressions import column, equals, to_count
from karat.stats.averages import Floats
from karat.stats.student import beta_below
from karat.tables.online.worst_queries import FAILURES, Failure, LostGroup, LostQuery, Order

MANY = 1e9  # a strength that no query outweighs: the queries differ only by chance
_LEAST_PRIOR = 1.0  # users; below, the share of a query of one user is not shrunk
_NEXT = 5  # next queries shown

_NAMES: dict[Failure, str] = {
    "zero results": "Failed(zero)",
    "reformulated": "Failed(reformulated)",
    "clicks without satisfaction": "Failed(clicks)",
    "nobody clicks": "Failed(no clicks)",
}
SORTED_BY: Mapping[Order, str] = {
    "lost": "lost",
    "zero": "Zero",
    "abandoned": "Abandoned",
    "reformulated": "Reformulated",
}
"""The column of ``ranked`` for each order."""
_COUNTS = ("Failed", "Zero", "Abandoned", "Terminal", "Reformulated", "Clicked", "Satisfied")


def _failed(failure: Failure, clicks: bool) -> Expression:
    """1 where a search failed in this way, and in none of the earlier ones; else 0."""

    def expression() -> nw.Expr:
        empty = flag(nw.col("zero") == 1)
        if failure == "zero results":
            return empty
        again, clicked = flag(nw.col("reformulated") == 1), flag(nw.col("clicked") == 1)
        left = flag(nw.col("abandoned") == 1)
        if not clicks:  # all searches look abandoned
            left = left * 0
        return {
            "reformulated": _unserved(empty) * again,
            "clicks without satisfaction": _unserved(empty) * (1 - again) * clicked,
            "nobody clicks": _unserved(empty) * (1 - again) * (1 - clicked) * left,
        }[failure]

    return expression


def _unserved(empty: nw.Expr) -> nw.Expr:
    """1 where there were results, and the user was not satisfied; else 0."""
    served = flag(
        (nw.col("sat") > 0)
        | (nw.col("carts") > 0)
        | (nw.coalesce(nw.col("purchases"), nw.lit(0)) > 0)
        | (nw.col("answered") > 0)
    )
    return (1 - served) * (1 - empty)


def _any_failed(clicks: bool) -> Expression:
    def expression() -> nw.Expr:
        first, *others = (_failed(failure, clicks)() for failure in FAILURES)
        return sum(others, start=first)

    return expression


def metrics(*, clicks: bool) -> list[Metric]:
    """The metrics to reduce a log to: counts over completed searches.

    Args:
        clicks: Whether the log has clicks.
    """

    def over(name: str) -> Expression:
        """Completed searches for which this is known."""
        return lambda: nw.col("completed") * flag(~nw.col(name).is_null())

    def seen() -> nw.Expr:
        return nw.col("completed") * flag(nw.col("seen") == 1) * int(clicks)

    left = nw.col("abandoned_as").is_in(["reformulated", "terminal"])
    counted: dict[str, tuple[Expression, Expression]] = {
        "Failed": (_any_failed(clicks), column("completed")),
        **{
            _NAMES[failure]: (_failed(failure, clicks), column("completed")) for failure in FAILURES
        },
        "Zero": (equals("zero", 1), over("zero")),
        "Abandoned": (lambda: flag(left), over("abandoned")),
        "Terminal": (equals("abandoned_as", "terminal"), over("abandoned")),
        "Reformulated": (equals("reformulated", 1), column("completed")),
        "Clicked": (equals("clicked", 1), seen),
        "Satisfied": (equals("sat", 1), seen),
    }
    return [
        to_count(name, Ratio("searches", numerator, denominator))
        for name, (numerator, denominator) in counted.items()
    ]


@dataclass(frozen=True, slots=True)
class Prior:
    """Distribution of shares of failed searches over queries: Beta(mean·strength, …)."""

    mean: float  # share over all searches, 0 to 1
    strength: float  # in users; `MANY` if all queries are alike


def prior_of(failed: Floats, searches: Floats, users: Floats) -> Prior:
    """The prior estimated from the queries.

    Args:
        failed: Failed searches of each query; shape (q,).
        searches: Its searches, above 0; shape (q,).
        users: Its users, above 0; shape (q,).

    Source: the moment estimator of Kleinman 1973, doi:10.1080/01621459.1973.10481332, of shares
    weighted by number of users; the mean is that over all searches.
    """
    mean = float(failed.sum() / searches.sum())
    if not 0 < mean < 1 or len(users) < 2:
        return Prior(mean, MANY)
    share, total = failed / searches, users.sum()
    centre = float((users * share).sum() / total)
    if not 0 < centre < 1:
        return Prior(mean, MANY)
    spread = float((users * (share - centre) ** 2).sum()) / (centre * (1 - centre))
    free = len(users) - 1
    room = float(total - (users**2).sum() / total) - free
    within = (spread - free) / room if room > 0 else 0.0
    if within <= 1 / MANY:
        return Prior(mean, MANY)
    return Prior(mean, max(_LEAST_PRIOR, 1 / within - 1))


def interval(
    failed: float, searches: float, users: float, prior: Prior
) -> tuple[float, float] | None:
    """The 95 % interval of a query's share of failed searches, by quantiles of a beta distribution.

    Args:
        failed: Failed searches.
        searches: Searches, above 0.
        users: Number of users.
        prior: The prior of all queries.

    Returns:
        None if the prior has no variance and so there is no distribution.
    """
    if prior.strength >= MANY or not 0 < prior.mean < 1:
        return None
    own = failed / searches
    a = users * own + prior.strength * prior.mean
    b = users * (1 - own) + prior.strength * (1 - prior.mean)
    return _beta_quantile(0.025, a, b), _beta_quantile(0.975, a, b)


def _beta_quantile(probability: float, a: float, b: float) -> float:
    """By bisection: 50 steps are the precision of a float."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        if beta_below(middle, 1 - middle, a, b) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def wide(moments: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """The counts of each query in one row, from moments of ``metrics`` cut by (…, query).

    Args:
        moments: As in ``Evidence.moments``.
        by: Columns of the cut.

    Returns:
        The columns of the cut, ``searches``, ``users`` and for each metric its numerator under its
        name and its denominator under ``of NAME``; only rows with searches, without empty queries.
    """
    columns = list(by)
    values = moments.filter(pl.col("term") == "value", pl.col("query").is_not_null())
    names = [*_COUNTS, *_NAMES.values()]
    frame = values.group_by(columns, maintain_order=True).agg(
        *(_of(name, "numerator").alias(name) for name in names),
        *(_of(name, "denominator").alias(f"of {name}") for name in names),
        users=_of("Failed", "users"),
    )
    return (
        frame.with_columns(searches=pl.col("of Failed"))
        .filter(pl.col("searches") > 0)
        .sort("searches", *columns, descending=[True, *(False for _ in columns)])
    )


def _of(name: str, column: str) -> pl.Expr:
    return pl.col(column).filter(pl.col("metric") == name).sum().cast(pl.Float64)


def ranked(frame: pl.DataFrame, prior: Prior, sort: Order) -> pl.DataFrame:
    """Rows of ``wide`` with ``share`` and ``lost``, the worst first.

    The share of failed searches is shrunk towards that of all queries, less with more users. Ties
    are ordered by searches, then by text.

    Args:
        frame: From ``wide``.
        prior: The prior of all queries.
        sort: ``lost`` searches, or the number with ``zero`` results, ``abandoned`` or
            ``reformulated``.
    """
    own = pl.col("Failed") / pl.col("searches")
    strength = prior.strength
    share = (pl.col("users") * own + strength * prior.mean) / (pl.col("users") + strength)
    frame = frame.with_columns(share=share).with_columns(lost=pl.col("searches") * pl.col("share"))
    columns = dict.fromkeys((SORTED_BY[sort], "lost", "searches"))
    keys = ["query", *(name for name in frame.columns if frame.schema[name] == pl.String)]
    order = [*(True for _ in columns), *(False for _ in keys)]
    return frame.sort(*columns, *keys, descending=order, nulls_last=True)


def lost_query(
    row: Mapping[str, object],
    prior: Prior,
    by: Sequence[str],
    text: str,
    next_queries: Sequence[tuple[str, int]],
) -> LostQuery:
    """A row of ``ranked`` as a record for reports.

    Args:
        row: The row.
        prior: The prior of all queries.
        by: Dimensions of the slice, besides the query.
        text: The most frequent spelling.
        next_queries: The next searches with their counts, the most frequent first.
    """

    def number(name: str) -> float:
        value = row[name]
        assert isinstance(value, float)
        return value

    failed, searches, users = number("Failed"), number("searches"), number("users")
    low, high = interval(failed, searches, users, prior) or (None, None)
    by_failure: dict[Failure, int] = {
        failure: round(number(_NAMES[failure])) for failure in FAILURES
    }
    chief = max(FAILURES, key=lambda failure: by_failure[failure])  # the first if tied
    reason = chief if by_failure[chief] else ""

    def known(name: str, by_name: str | None = None) -> int | None:
        return round(number(name)) if number(f"of {by_name or name}") else None

    def share_of(name: str) -> float | None:
        over = number(f"of {name}")
        return number(name) / over if over else None

    return LostQuery(
        query=str(row["query"]),
        text=text,
        slice={name: str(row[name]) for name in by if row[name] is not None},
        searches=round(searches),
        users=round(users),
        failed=round(failed),
        by_failure=by_failure,
        zero=known("Zero"),
        abandoned=known("Abandoned"),
        terminal=known("Terminal"),
        reformulated=round(number("Reformulated")),
        clicked=share_of("Clicked"),
        satisfied=share_of("Satisfied"),
        share=number("share"),
        low=low,
        high=high,
        lost=number("lost"),
        reason=reason,
        # Next queries are known for the query, and not for each slice.
        why=_why(reason, by_failure, round(searches), () if by else next_queries),
        next_queries=tuple(next_queries[:_NEXT]),
    )


def _why(
    reason: str,
    by_failure: Mapping[Failure, int],
    searches: int,
    next_queries: Sequence[tuple[str, int]],
) -> str:
    if not reason:
        return "none of its searches failed"
    pattern = {
        "zero results": "{n} of {all} had no results",
        "reformulated": "{n} of {all} {were} reformulated",
        "clicks without satisfaction": "{n} of {all} clicked and came back unsatisfied",
        "nobody clicks": "{n} of {all} saw results and clicked none",
    }[reason]
    count = next(n for failure, n in by_failure.items() if failure == reason)
    were = "was" if count == 1 else "were"
    sentence = pattern.format(n=f"{count:,}", all=f"{searches:,}", were=were)
    if next_queries and reason in ("reformulated", "zero results"):
        text, times = next_queries[0]
        sentence += f", {times:,} next as “{text}”"
    return sentence


def groups(frame: pl.DataFrame, by: str) -> list[LostGroup]:
    """Totals of each slice, the most failed searches first.

    Args:
        frame: From ``wide``.
        by: The column of slices.
    """
    totals = frame.group_by(by).agg(
        pl.len().alias("queries"), pl.col("searches").sum(), pl.col("Failed").sum()
    )
    totals = totals.sort("Failed", "searches", by, descending=[True, True, False], nulls_last=True)
    return [
        LostGroup(
            slice={} if row[by] is None else {by: row[by]},
            queries=row["queries"],
            searches=round(row["searches"]),
            failed=round(row["Failed"]),
            share=row["Failed"] / row["searches"] if row["searches"] else None,
        )
        for row in totals.iter_rows(named=True)
    ]


def prior_from(frame: pl.DataFrame) -> Prior:
    """The prior estimated from rows of ``wide``."""
    if frame.is_empty():
        return Prior(0.0, MANY)
    columns = ("Failed", "searches", "users")
    failed, searches, users = (frame[name].to_numpy().astype(np.float64) for name in columns)
    return prior_of(failed, searches, users)
