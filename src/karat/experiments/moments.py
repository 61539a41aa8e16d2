"""Facts of the users of two arms, reduced to moments by arm, metric and slice.

A user is exposed at the first search of an arm, and counts from then on, for a fixed window if one
is planned. What the user did in the period before it is the covariate of the variance reduction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from karat.online import moments
from karat.online.flags import USER, flag
from karat.online.metrics.entry import Metric, Ratio
from karat.online.rules import DAY
from karat.stats.arms import ArmMoments

ARM = "experiment_arm"
AGE = "experiment_age"  # whole days since the first exposure
FIRST = "experiment_first"  # local day of the first exposure
_YES = ("1", "true", "True", "yes")  # values of a trigger
_POST = "experiment_post"
_VARIABLES = ("above", "below", "above_before", "below_before")
_PAIRS = tuple(combinations_with_replacement(range(len(_VARIABLES)), 2))
_SUMS = tuple(f"sum_{name}" for name in _VARIABLES)
_CENTRED = tuple(f"m2_{j}{k}" for j, k in _PAIRS)


def triggered(searches: nw.LazyFrame[Any], attribute: str) -> nw.LazyFrame[Any]:
    """The searches whose answers differ between the arms, as an attribute says."""
    return searches.filter(nw.col(attribute).is_in(list(_YES)))


def exposures(
    searches: nw.LazyFrame[Any], control: str, treatment: str, first_day: int | None
) -> nw.LazyFrame[Any]:
    """One row for each user with a search of an arm.

    Returns:
        ``user_key``, ``first_us``, ``first_session``, ``experiment_first`` (local day),
        ``experiment_arm`` (null for users in both).
    """
    of_arms = searches.filter(nw.col("arm").is_in([control, treatment]))
    if first_day is not None:
        of_arms = of_arms.filter(nw.col("local_day") >= first_day)
    users = (
        of_arms.with_columns(_treated=flag(nw.col("arm") == treatment))
        .group_by(USER)
        .agg(
            first_us=nw.col("time_us").min(),
            first_session=nw.col("session").min(),
            **{FIRST: nw.col("local_day").min()},
            _least=nw.col("_treated").min(),
            _most=nw.col("_treated").max(),
        )
    )
    of_control = nw.when(nw.col("_most") == 0).then(nw.lit(control))
    arm = nw.when(nw.col("_least") == 1).then(nw.lit(treatment)).otherwise(of_control)
    return users.with_columns(arm.alias(ARM)).select(USER, "first_us", "first_session", FIRST, ARM)


def exposures_of(table: nw.LazyFrame[Any], control: str, treatment: str) -> nw.LazyFrame[Any]:
    """The same, from a table of ``user_key``, ``time_us`` and ``arm`` that somebody else logged."""
    searches = table.with_columns(
        session=nw.lit(None).cast(nw.Int64), local_day=nw.col("time_us") // DAY
    )
    return exposures(searches, control, treatment, None)


def of_users(
    facts: nw.LazyFrame[Any],
    exposed: nw.LazyFrame[Any],
    *,
    sessions: bool,
    window_us: int | None,
    before_us: int,
    last_us: int,
) -> nw.LazyFrame[Any]:
    """The facts of users of one arm, in their window and in the period before it.

    Args:
        facts: SEARCHES, CLICKS or SESSIONS.
        exposed: From ``exposures``.
        sessions: Whether they are sessions: one that was going on at the exposure is after it.
        window_us: Length of the window; None: to the end of the log. Users whose window is still
            open are left out.
        before_us: Length of the period before.
        last_us: End of the log.
    """
    users = exposed.filter(~nw.col(ARM).is_null())
    if window_us is not None:
        users = users.filter(nw.col("first_us") + window_us <= last_us)
    joined = facts.join(users, on=USER, how="inner")
    since = nw.col("time_us") - nw.col("first_us")
    if sessions:
        now = nw.col("session") == nw.col("first_session")
        since = nw.when(now).then(nw.lit(0).cast(nw.Int64)).otherwise(since)
    joined = joined.with_columns(_since=since).filter(nw.col("_since") >= -before_us)
    if window_us is not None:
        joined = joined.filter(nw.col("_since") < window_us)
    return joined.with_columns(
        flag(nw.col("_since") >= 0).alias(_POST), (nw.col("_since") // DAY).alias(AGE)
    )


def everyone(facts: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """The facts as if all users were exposed from the beginning, in one arm."""
    return facts.with_columns(nw.lit("all").alias(ARM), nw.lit(1).cast(nw.Int64).alias(_POST))


def after(facts: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """The facts from the exposure on."""
    return facts.filter(nw.col(_POST) == 1)


def reduced(
    facts: nw.LazyFrame[Any],
    metrics: Sequence[Metric],
    columns: Sequence[str],
    caps: Mapping[str, float],
    *,
    before: bool,
) -> nw.LazyFrame[Any]:
    """Moments by arm in the slices of some columns: one row for each, wide.

    Args:
        facts: From ``of_users``.
        metrics: Ratios over these facts.
        columns: To slice by; without nulls.
        caps: Largest sum of a user's numerator, by metric.
        before: Whether to compute the covariate; else it is 0.
    """
    kept = facts if before else after(facts)
    rows = moments.rows(kept, metrics, [*columns, ARM, _POST])
    now = nw.col(_POST) == 1
    periods = {"": now, "_before": ~now} if before else {"": now}
    by_user: dict[str, nw.Expr] = {}
    for number, metric in enumerate(metrics):
        ratio = metric.compute
        assert isinstance(ratio, Ratio)
        for name, source in (("above", f"value{number}"), ("below", f"d{number}")):
            whole = name == "below" and ratio.denominator is None
            for suffix, of in periods.items():
                values = nw.when(of).then(nw.col(source)).otherwise(nw.lit(0.0))
                by_user[f"{name}{suffix}{number}"] = values.max() if whole else values.sum()
    users = rows.group_by(USER, ARM, *columns).agg(**by_user)
    capped = {
        f"above{number}": nw.when(nw.col(f"above{number}") > caps[metric.name])
        .then(nw.lit(float(caps[metric.name])))
        .otherwise(nw.col(f"above{number}"))
        for number, metric in enumerate(metrics)
        if metric.name in caps
    }
    if capped:
        users = users.with_columns(**capped)
    names = _VARIABLES if before else _VARIABLES[:2]
    users = users.with_columns(
        **{
            f"{name}{number}": nw.when(nw.col(f"below{number}") > 0).then(nw.col(f"{name}{number}"))
            for number in range(len(metrics))
            for name in names
        }
    )
    sums: dict[str, nw.Expr] = {}
    for number in range(len(metrics)):
        size = nw.col(f"below{number}").count().cast(nw.Float64)
        sums[f"users{number}"] = nw.col(f"below{number}").count().cast(nw.Int64)
        for name in names:
            sums[f"sum_{name}{number}"] = nw.col(f"{name}{number}").sum()
        for j, k in _PAIRS:
            if k >= len(names):
                continue
            one, two = nw.col(f"{_VARIABLES[j]}{number}"), nw.col(f"{_VARIABLES[k]}{number}")
            spread = one.var(ddof=0) if j == k else nw.cov(one, two, ddof=0)
            sums[f"m2_{j}{k}{number}"] = spread * size
    by_arm: nw.LazyFrame[Any] = users.group_by(ARM, *columns).agg(**sums)
    return by_arm


def long(wide: pl.DataFrame, metrics: Sequence[Metric], keys: Sequence[str]) -> pl.DataFrame:
    """One row for each slice, arm and metric; what was not computed is 0."""
    parts = [empty(keys)]
    for number, metric in enumerate(metrics):
        values = {
            name: pl.col(f"{name}{number}") if f"{name}{number}" in wide.columns else pl.lit(0.0)
            for name in (*_SUMS, *_CENTRED)
        }
        parts.append(
            wide.filter(pl.col(f"users{number}") > 0).select(
                *keys,
                arm=pl.col(ARM),
                metric=pl.lit(metric.name),
                users=pl.col(f"users{number}"),
                **{name: value.cast(pl.Float64).fill_null(0.0) for name, value in values.items()},
            )
        )
    return pl.concat(parts)


def empty(keys: Sequence[str]) -> pl.DataFrame:
    """An empty table of moments."""
    labels = {"arm": pl.String, "metric": pl.String, "users": pl.Int64}
    numbers = dict.fromkeys((*_SUMS, *_CENTRED), pl.Float64)
    return pl.DataFrame(schema={**dict.fromkeys(keys, pl.String), **labels, **numbers})


def together(parts: Sequence[pl.DataFrame], keys: Sequence[str]) -> pl.DataFrame:
    """The moments of disjoint batches of users, combined.

    Source: Chan, Golub & LeVeque 1983, The American Statistician 37(3).
    """
    by = [*keys, "arm", "metric"]
    every = pl.concat([empty(keys), *parts])
    added = [pl.col("users").sum(), *(pl.col(name).sum() for name in _SUMS)]
    whole = every.group_by(by).agg(added)
    means = {f"_{name}": pl.col(name) / pl.col("users") for name in _SUMS}
    joined = every.join(whole.select(*by, **means), on=by, nulls_equal=True)
    far = [pl.col(name) / pl.col("users") - pl.col(f"_{name}") for name in _SUMS]
    centred = {
        f"m2_{j}{k}": (pl.col(f"m2_{j}{k}") + pl.col("users") * far[j] * far[k]).sum()
        for j, k in _PAIRS
    }
    merged = joined.group_by(by).agg(*added, **centred)
    return merged.select(every.columns).sort(by, nulls_last=True)


def by_query(facts: nw.LazyFrame[Any], metrics: Sequence[Metric]) -> nw.LazyFrame[Any]:
    """Sums of numerator and denominator by arm and query, from the exposure on."""
    rows = moments.rows(after(facts), metrics, ["query_key", ARM])
    sums = {
        f"{name}{number}": nw.col(f"{name}{number}").sum()
        for number in range(len(metrics))
        for name in ("value", "d")
    }
    summed: nw.LazyFrame[Any] = rows.group_by("query_key", ARM).agg(**sums)
    return summed


def long_queries(wide: pl.DataFrame, metrics: Sequence[Metric]) -> pl.DataFrame:
    """One row for each query, arm and metric, of those with a denominator."""
    parts = [
        wide.filter(pl.col(f"d{number}") > 0).select(
            query=pl.col("query_key").fill_null(""),
            arm=pl.col(ARM),
            metric=pl.lit(metric.name),
            above=pl.col(f"value{number}").cast(pl.Float64),
            below=pl.col(f"d{number}").cast(pl.Float64),
        )
        for number, metric in enumerate(metrics)
    ]
    return pl.concat([empty_queries(), *parts])


def empty_queries() -> pl.DataFrame:
    """An empty table of sums by query."""
    texts = dict.fromkeys(("query", "arm", "metric"), pl.String)
    return pl.DataFrame(schema={**texts, "above": pl.Float64, "below": pl.Float64})


def moments_of(row: Mapping[str, Any]) -> ArmMoments:
    """The moments of a row."""
    users = int(row["users"])
    centred = np.zeros((4, 4))
    for (j, k), name in zip(_PAIRS, _CENTRED, strict=True):
        centred[j, k] = centred[k, j] = row[name]
    return ArmMoments(users, np.array([row[name] for name in _SUMS]) / users, centred)
