"""Health of an experiment: what must hold before an effect is read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import polars as pl

from karat.experiments.evidence import Evidence
from karat.experiments.moments import moments_of
from karat.stats.arms import ArmMoments, arm, contrast
from karat.stats.sample_ratio import mismatch, sequential_mismatch
from karat.tables.days import day_text
from karat.tables.experiments.experiment import DayEffect, ExperimentPlan, HealthCheck, HealthState

LEVEL = 0.001  # of the tests: health is looked at every day, and by many experiments
SEVERAL = 0.01  # share of users in both arms from which the rest is a biased choice of users
LEAST = 8  # users per arm
WEEK = 7


def health(
    evidence: Evidence,
    plan: ExperimentPlan,
    metrics: Sequence[str],
    ages: Sequence[DayEffect] = (),
) -> list[HealthCheck]:
    """Every check, in the order in which they are to be read.

    Args:
        evidence: Of the experiment.
        plan: Its plan.
        metrics: Decision metrics, whose balance before the experiment is tested.
        ages: Their effects by days since first exposure.
    """
    users = evidence.counts["users"]
    checks = [_users(users), _sample_ratio(users, plan), _both(evidence)]
    checks += _shares(evidence)
    checks += _balance(evidence, plan, metrics)
    checks.append(_weeks(evidence))
    novelty = (_novelty([row for row in ages if row.metric == metric]) for metric in metrics)
    return [*checks, *filter(None, novelty)]


def _users(users: tuple[int, int]) -> HealthCheck:
    state: HealthState = "pass" if min(users) >= LEAST else "cannot_tell"
    return HealthCheck("users", state, f"{users[0]:,} users in control, {users[1]:,} in treatment")


def _sample_ratio(users: tuple[int, int], plan: ExperimentPlan) -> HealthCheck:
    p = mismatch(users, plan.shares)
    planned = plan.users or sum(users)
    any_time = sequential_mismatch(users, plan.shares, float(max(planned, 1)))
    total, weights = sum(users), sum(plan.shares)
    expected = [total * share / weights for share in plan.shares]
    text = (
        f"{users[0]:,} and {users[1]:,} users, planned {expected[0]:,.0f} and {expected[1]:,.0f}: "
        f"p {p:.2g} today, {any_time:.2g} for a look every day"
    )
    early = plan.users is not None and total < plan.users
    bad = any_time < LEVEL if early else min(p, any_time) < LEVEL
    return HealthCheck("sample_ratio", "fail" if bad else "pass", text, p)


def _both(evidence: Evidence) -> HealthCheck:
    single = sum(evidence.counts["users"])
    share = evidence.both / (single + evidence.both) if evidence.both else 0.0
    text = f"{evidence.both:,} users were in both arms ({_percent(share)}); they are left out"
    return HealthCheck("both_arms", "fail" if share > SEVERAL else "pass", text)


def _shares(evidence: Evidence) -> Iterator[HealthCheck]:
    """Shares that must be alike in both arms."""
    counts = evidence.counts
    for name, part, of, what in (
        ("results_logged", "unknown_results", "searches", "searches without logged results"),
        ("bots", "bots", "everyone", "bots among users"),
        ("exposed_without_searches", "absent", "users", "exposed users without a search after it"),
        ("trigger_balance", "users", "exposed", "triggered among exposed users"),
    ):
        lost, every = counts[part], counts[of]
        if not sum(lost) or not sum(every):
            continue
        p = _equal_shares(lost, every)
        shares = [x / n if n else 0.0 for x, n in zip(lost, every, strict=True)]
        control, treatment = map(_percent, shares)
        text = f"{what}: {control} in control, {treatment} in treatment (p {p:.2g})"
        # Searches of one user are alike, so that a small difference may be chance.
        apart = abs(shares[0] - shares[1]) > 0.005
        yield HealthCheck(name, "fail" if p < LEVEL and apart else "pass", text, p)


def _percent(share: float) -> str:
    """Two digits, and never in powers of ten."""
    return f"{float(f'{100 * share:.2g}'):g} %"


def _equal_shares(lost: tuple[int, int], every: tuple[int, int]) -> float:
    """P-value of equal shares; Pearson's chi-squared with one degree of freedom."""
    total = sum(every)
    share = sum(lost) / total if total else 0.0
    if not 0 < share < 1 or not min(every):
        return 1.0
    spread = share * (1 - share) * (1 / every[0] + 1 / every[1])
    z = abs(lost[0] / every[0] - lost[1] / every[1]) / math.sqrt(spread)
    return math.erfc(z / math.sqrt(2))


def _balance(
    evidence: Evidence, plan: ExperimentPlan, metrics: Sequence[str]
) -> Iterator[HealthCheck]:
    """Whether the arms were alike before: the covariates of decision metrics."""
    frame = evidence.moments[()].filter(pl.col("metric").is_in(list(metrics)))
    by_metric: dict[str, dict[str, ArmMoments]] = {}
    for row in frame.iter_rows(named=True):
        by_metric.setdefault(row["metric"], {})[row["arm"]] = moments_of(row)
    for metric, arms in by_metric.items():
        sides = [arms.get(plan.control), arms.get(plan.treatment)]
        if any(side is None or side.means[3] <= 0 or side.users < LEAST for side in sides):
            continue
        control, treatment = (arm(_past(side)) for side in sides if side is not None)
        both = contrast(control, treatment)
        if both.p is not None:
            state: HealthState = "fail" if both.p < LEVEL else "pass"
            text = f"{metric} before: {control.value:.4g} and {treatment.value:.4g}, p {both.p:.2g}"
            yield HealthCheck("balance_before", state, text, both.p)


def _past(moments: ArmMoments) -> ArmMoments:
    """The moments with the covariate in the place of the metric."""
    order = [2, 3, 0, 1]
    return ArmMoments(moments.users, moments.means[order], moments.centred[order][:, order])


def _weeks(evidence: Evidence) -> HealthCheck:
    if evidence.first_day is None or evidence.last_day is None:
        return HealthCheck("weeks", "cannot_tell", "no user has a search from the exposure on")
    days = evidence.days
    many = f"{days} day{'' if days == 1 else 's'}"
    span = f"{day_text(evidence.first_day)} to {day_text(evidence.last_day)}: {many}"
    if days < WEEK:
        return HealthCheck("weeks", "cannot_tell", f"{span}, less than a week")
    if days < 2 * WEEK:
        return HealthCheck("weeks", "pass", f"{span}, less than two weeks")
    rest = days % WEEK
    part = f", {rest} more than whole weeks" if rest else ""
    return HealthCheck("weeks", "pass", f"{span}{part}")


def _novelty(ages: Sequence[DayEffect]) -> HealthCheck | None:
    """Whether a difference fades: the first days since exposure against the later ones."""
    known = [
        (row.difference, ((row.high - row.low) / 3.92) ** 2)
        for row in ages
        if row.low is not None and row.high is not None and row.high > row.low
    ]
    half = len(known) // 2
    if half < 2:
        return None
    early, late = (_pooled(part) for part in (known[:half], known[half:]))
    z = abs(early[0] - late[0]) / math.sqrt(early[1] + late[1])
    p = math.erfc(z / math.sqrt(2))
    text = (
        f"{ages[0].metric}: {early[0]:+.4g} in the first {half} days of a user, {late[0]:+.4g} "
        f"after them (p {p:.2g})"
    )
    if p < LEVEL:
        text += ": the effect of the first days is not that of later ones"
    return HealthCheck("novelty", "pass", text, p)


def _pooled(parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    weight = sum(1 / variance for _, variance in parts)
    return sum(value / variance for value, variance in parts) / weight, 1 / weight
