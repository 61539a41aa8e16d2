"""Which of two interleaved rankings users prefer.

Source: Chapelle, Joachims, Radlinski & Yue 2012, TOIS 30(1): the share of searches that a ranking
wins, with half of the ties. Users are the clusters: their searches are not independent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from karat.experiments.interleaving import A
from karat.stats import sequences
from karat.stats.arms import above
from karat.stats.intervals import UserMoments, ratio_interval, ratio_variance
from karat.tables.experiments.experiment import HealthCheck, Verdict
from karat.tables.experiments.interleaving import Credit, InterleavingResult, QueryPreference

_LEVEL = 0.001  # of the check of the draft
_MOST = 20  # queries listed
CANNOT = (
    "it does not see latency, searches without results, layout, nor whether users come back: an "
    "A/B test does"
)

_ALPHA = 0.05  # level of intervals and tests


def preference(
    searches: pl.DataFrame,
    credit_: Credit,
    *,
    notes: Sequence[str] = (),
    simulated: bool = False,
) -> InterleavingResult:
    """Which ranking users prefer, with users as clusters.

    Args:
        searches: A row for each interleaved search: ``user_key``, ``query_key``, ``teams`` (a
            mark), ``a`` and ``b`` (points).
        credit_: What the points are.
        notes: Sentences on the log.
        simulated: Whether its users are simulated.
    """
    won = searches.with_columns(
        for_a=(pl.col("a") > pl.col("b")).cast(pl.Float64),
        for_b=(pl.col("b") > pl.col("a")).cast(pl.Float64),
    )
    wins_a, wins_b = (int(won[name].sum()) for name in ("for_a", "for_b"))
    users = won.group_by("user_key").agg(
        searches=pl.len().cast(pl.Float64), a=pl.col("for_a").sum(), b=pl.col("for_b").sum()
    )
    share = _of_users(users["b"] + (users["searches"] - users["a"] - users["b"]) / 2,
                      users["searches"])  # fmt: skip
    decided = _of_users(users["b"], users["a"] + users["b"])
    health = [_draft(won)]
    span: tuple[float | None, float | None] = (None, None)
    p = reach = None
    if share is not None and share.users > 1:
        interval, error = ratio_interval(share, 0.0, 1.0), math.sqrt(ratio_variance(share))
        span = interval.low, interval.high
        if error:
            p = min(1.0, 2 * above(abs(share.ratio - 0.5) / error, share.users - 1))
            if share.users >= sequences.LEAST:
                reach = sequences.reach(error, share.users, share.users, _ALPHA)
    users_b, ends = _users_for_b(users)
    of_decided = None if decided is None else ratio_interval(decided, 0.0, 1.0)
    # If all users are alike, such as all for B, the exact sequence of users decides.
    verdict, reason = _verdict(health, ends if span[0] is None else span, wins_a + wins_b)
    return InterleavingResult(
        verdict=verdict,
        reason=reason,
        health=health,
        credit=credit_,
        searches=searches.height,
        users=users.height,
        wins_a=wins_a,
        wins_b=wins_b,
        ties=searches.height - wins_a - wins_b,
        share_b=None if share is None else share.ratio,
        ci_low=span[0],
        ci_high=span[1],
        cs_low=None if share is None or reach is None else max(0.0, share.ratio - reach),
        cs_high=None if share is None or reach is None else min(1.0, share.ratio + reach),
        decided_b=None if decided is None else decided.ratio,
        decided_low=None if of_decided is None else of_decided.low,
        decided_high=None if of_decided is None else of_decided.high,
        users_b=users_b,
        users_low=ends[0],
        users_high=ends[1],
        p=p,
        queries=_queries(won),
        notes=[*notes, CANNOT],
        simulated=simulated,
    )


def _users_for_b(users: pl.DataFrame) -> tuple[float | None, tuple[float | None, float | None]]:
    """Share of the users who prefer B among those who prefer one, with an exact sequence."""
    for_b, either = (
        int(chosen.sum()) for chosen in (users["b"] > users["a"], users["b"] != users["a"])
    )
    if not either:
        return None, (None, None)
    return for_b / either, sequences.share(for_b, either, either, _ALPHA)


def _of_users(above: pl.Series, below: pl.Series) -> UserMoments | None:
    """Moments of the users with a denominator."""
    pairs = np.array([above.to_numpy(), below.to_numpy()], np.float64)
    pairs = pairs[:, pairs[1] > 0]
    if not pairs.shape[1]:
        return None
    means = pairs.mean(axis=1)
    far = pairs - means[:, None]
    squares = far @ far.T
    return UserMoments(
        users=pairs.shape[1],
        mean_numerator=float(means[0]),
        mean_denominator=float(means[1]),
        m2_numerator=float(squares[0, 0]),
        m2_denominator=float(squares[1, 1]),
        comoment=float(squares[0, 1]),
    )


def _draft(searches: pl.DataFrame) -> HealthCheck:
    """Whether each ranking picked first in half of the searches, by a test over searches."""
    first = searches["teams"].str.extract("([AB])")
    a, both = int((first == A).sum()), int(first.is_not_null().sum())
    if not both:
        return HealthCheck("draft", "fail", "no search has documents of both rankings")
    p = math.erfc(abs(2 * a - both) / math.sqrt(both) / math.sqrt(2))
    text = f"A picked first in {a:,} of {both:,} searches ({100 * a / both:.1f} %), p {p:.2g}"
    return HealthCheck("draft", "fail" if p < _LEVEL else "pass", text, p)


def _verdict(
    health: Sequence[HealthCheck], span: tuple[float | None, float | None], decided: int
) -> tuple[Verdict, str]:
    failed = [check for check in health if check.state == "fail"]
    if failed:
        return "unhealthy", failed[0].detail
    low, high = span
    if low is None or high is None:
        return "cannot_tell", f"{decided:,} searches are decided"
    if low > 0.5:
        return "pass", "users prefer B"
    if high < 0.5:
        return "fail", "users prefer A"
    return "cannot_tell", "neither ranking is preferred"


def _queries(searches: pl.DataFrame) -> list[QueryPreference]:
    rows = (
        searches.filter(pl.col("query_key").is_not_null())
        .group_by("query_key")
        .agg(a=pl.col("for_a").sum(), b=pl.col("for_b").sum())
        .with_columns(size=(pl.col("b") - pl.col("a")).abs())
        .filter(pl.col("size") > 0)
        .sort("size", "query_key", descending=[True, False])
        .head(_MOST)
    )
    return [
        QueryPreference(query, int(a), int(b))
        for query, a, b in rows.select("query_key", "a", "b").iter_rows()
    ]
