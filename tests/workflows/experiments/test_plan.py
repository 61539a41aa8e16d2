"""Planning: smallest effects as by hand, and metrics that fail where they should."""

from __future__ import annotations

import math

import polars as pl
import pytest
from tests.experiment_traffic import DAY, START, traffic, welch

from karat.errors import InputError, UsageError
from karat.tables.experiments.planning import Planning
from karat.workflows.experiments.plan import plan_experiment


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    return traffic(users=900, days=14, before=0, seed=3)


@pytest.fixture(scope="module")
def plan(frame: pl.DataFrame) -> Planning:
    return plan_experiment(frame, ["CTR", "MRCR", "ZeroResults"])


def test_the_smallest_effect_is_that_of_the_formula(frame: pl.DataFrame, plan: Planning) -> None:
    """(1.95996 + .84162) times the standard error of two arms of these users."""
    row = next(r for r in plan.rows if (r.metric, r.weeks, r.share) == ("CTR", 2, 0.5))
    error = welch(frame.with_columns(arm=pl.lit("a")))("error a")
    users = row.users
    assert row.smallest == pytest.approx(2.80158 * error * math.sqrt(2 * 2), rel=1e-4)
    assert users == frame["user_id"].n_unique()
    small = next(r for r in plan.rows if (r.metric, r.weeks, r.share) == ("CTR", 2, 0.05))
    assert small.smallest == pytest.approx(row.smallest * math.sqrt(10), rel=1e-9)


def test_more_weeks_find_less(plan: Planning) -> None:
    at = {(row.weeks, row.share): row.smallest for row in plan.rows if row.metric == "CTR"}
    assert at[2, 0.5] < at[1, 0.5]
    assert plan.weeks == 2
    assert plan.users_by_week[0] < plan.users_by_week[1]


def test_certificates(plan: Planning) -> None:
    by_metric = {each.metric: each for each in plan.certificates}
    for name in ("CTR", "MRCR"):
        # 1,000 splits of 5 % have a standard error of .7 %.
        assert 0.025 < by_metric[name].false_positives < 0.075
        assert by_metric[name].may_decide
        assert by_metric[name].wrong_way == 0.0
    mrcr = by_metric["MRCR"]
    assert mrcr.found is not None
    assert mrcr.found > 0.5  # clicks of the first result are at the fifth place
    assert by_metric["ZeroResults"].found == 0.0  # which a ranking does not change


def test_too_little(frame: pl.DataFrame) -> None:
    with pytest.raises(InputError, match="less than a week"):
        plan_experiment(frame.filter(pl.col("timestamp") < START + 3 * DAY))
    few = plan_experiment(frame.filter(pl.col("user_id").is_in(["u1", "u2", "u3"])), ["CTR"])
    assert few.certificates[0].reason == "too few users"
    with pytest.raises(UsageError, match="cannot be planned yet"):
        plan_experiment(frame, ["Latency:p95"])
    with pytest.raises(UsageError, match="no single value"):
        plan_experiment(frame, ["GoodAbandonment"])


def test_a_metric_by_heavy_users_may_not_decide() -> None:
    """One user makes nearly all searches: intervals over users are then too narrow or too wide."""
    rows = []
    for number in range(400):
        for at in range(2000 if number == 0 else 1):
            time = START + int(at * 14 * DAY / 2000) + number
            query = f"{number}.{at}"
            rows.append((f"u{number}", time, "search", query, None))
            if number == 0 or at % 2:
                rows.append((f"u{number}", time + 1_000_000, "click", query, 1))
    frame = pl.DataFrame(
        rows, ["user_id", "timestamp", "action_name", "query_id", "position"], orient="row"
    ).with_columns(
        user_query=pl.concat_str(pl.lit("w"), pl.col("query_id")),
        returned=pl.when(pl.col("action_name") == "search").then(10),
        object_id=pl.when(pl.col("action_name") == "click").then(pl.lit("d")),
    )
    certificate = plan_experiment(frame, ["CTR"]).certificates[0]
    assert not certificate.may_decide
    assert "equal arms differ in" in certificate.reason
