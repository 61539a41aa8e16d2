"""What a histogram of times says, with its interval, and where it says nothing."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from karat.online.distributions import Statistic, Times, kaplan_meier, survival_quantile
from karat.stats.bucket_resampling import Draws

SECOND = 1_000_000
MEDIAN, NAIVE = Statistic("median"), Statistic("mean")
Row = tuple[int, float, int]


def times(rows: list[Row]) -> Times:
    """From rows of user_bucket, seconds and censored, binned as the reducers bin."""
    frame = pl.DataFrame(
        [(bucket, round(seconds * SECOND), censored) for bucket, seconds, censored in rows],
        schema=["user_bucket", "us", "censored"],
        orient="row",
    )
    digits = (pl.col("us").cast(pl.String).str.len_chars().cast(pl.Int64) - 3).clip(0)
    width = pl.lit(10, pl.Int64).pow(digits)
    return Times(
        frame.with_columns(bin_us=pl.col("us") // width * width)
        .group_by("user_bucket", "bin_us", "censored")
        .agg(count=pl.len(), sum_us=pl.col("us").sum())
    )


def test_the_median_of_6_mercaptopurine_is_23() -> None:
    # Weeks as seconds; Freireich et al. 1963, as in tests/stats/test_survival.py.
    seen = [
        6,
        6,
        6,
        -6,
        7,
        -9,
        10,
        -10,
        -11,
        13,
        16,
        -17,
        -19,
        -20,
        22,
        23,
        -25,
        -32,
        -32,
        -34,
        -35,
    ]
    found = times([(place, abs(each), int(each < 0)) for place, each in enumerate(seen)])
    assert found.n == 21
    assert found.without_end == 9
    said = found.read(MEDIAN, Draws(0))
    assert said.value == 23 * SECOND
    assert said.low is not None
    assert said.low <= 23 * SECOND
    # The mean of those that ended is 12.1 (6+6+6+7+10+13+16+22+23 = 109, over 9): half as long.
    assert found.read(NAIVE, Draws(0)).value == pytest.approx(109 / 9 * SECOND)


def test_without_a_median_there_is_none_and_not_zero() -> None:
    said = times([(1, 5, 0), (2, 6, 0), (3, 9, 1), (4, 9, 1), (5, 9, 1)]).read(MEDIAN, Draws(0))
    assert said.value is None
    assert said.state == "unknown"
    assert said.reason == "more than half are censored (60 % of 5): it is not reached"


def test_where_all_are_censored_there_is_no_naive_mean() -> None:
    said = times([(1, 5, 1), (2, 6, 1)]).read(NAIVE, Draws(0))
    assert (said.value, said.state) == (None, "none")


def test_the_restricted_mean_is_exact_though_bins_are_not() -> None:
    # 12.345 s and 12.387 s share the bin of 12.3; 700 s counts for 600. (12.345+12.387+600)/3.
    found = times([(1, 12.345, 0), (2, 12.387, 0), (3, 700, 0)])
    said = found.read(Statistic("restricted_mean", up_to=600 * SECOND), Draws(0))
    assert said.value == pytest.approx(208.244 * SECOND, rel=1e-12)
    assert said.state == "ok"


def test_a_restricted_mean_nobody_was_followed_for_has_bounds() -> None:
    # 2 s ends, 4 s is censored: 2·1 + 2·½ = 3 s at least; at most half stay to 10 s: 2 + 8·½ = 6.
    said = times([(1, 2, 0), (2, 4, 1)]).read(
        Statistic("restricted_mean", up_to=10 * SECOND), Draws(0)
    )
    assert (said.value, said.state) == (None, "unknown")
    assert (said.least, said.most) == (3 * SECOND, 6 * SECOND)
    assert "none was followed for 10 s" in said.reason


def test_one_user_or_one_time_has_no_interval() -> None:
    one = times([(1, 2, 0), (1, 3, 0)]).read(MEDIAN, Draws(0))
    assert (one.value, one.low) == (2 * SECOND, None)
    assert "one user" in one.reason
    same = times([(1, 2, 0), (2, 2, 0)]).read(Statistic("quantile", level=0.95), Draws(0))
    assert (same.value, same.low, same.reason) == (2 * SECOND, None, "all times are equal")


def test_the_same_seed_gives_the_same_interval() -> None:
    rows: list[Row] = [(place, 1 + place % 17, place % 5 == 0) for place in range(60)]
    first, again, other = (times(rows).read(MEDIAN, Draws(seed)) for seed in (1, 1, 2))
    assert first == again
    assert first.value == other.value


def test_a_quantile_alone_is_that_of_its_interval_or_infinite() -> None:
    found = times([(1, 1, 0), (2, 2, 0), (3, 4, 0), (4, 8, 1)])
    assert found.quantile(0.5) == found.read(MEDIAN, Draws(0)).value == 2 * SECOND
    # One of four is censored at 8 s: nobody knows when the last quarter ends.
    assert found.quantile(0.9) == float("inf")


def test_quantiles_are_right_within_a_bin() -> None:
    rng = np.random.default_rng(11)
    seconds = rng.lognormal(1, 1.2, 5000)
    found = times([(place % 256, value, 0) for place, value in enumerate(seconds)])
    for level in (0.5, 0.95, 0.99):
        exact = float(np.quantile(seconds, level, method="inverted_cdf"))
        said = found.read(Statistic("quantile", level=level), Draws(0))
        assert said.value == pytest.approx(exact * SECOND, rel=0.01)
        assert said.low is not None
        assert said.high is not None
        assert said.value is not None
        assert said.low <= said.value <= said.high


@pytest.mark.deep  # a simulation
def test_buckets_cover_a_median_of_users_who_hang_together() -> None:
    """100 logs of 100 users, some with sixty times, who differ in pace by a factor exp(N(0, 0.8²)).

    Times are 10 s · pace · exp(N(0, 1)), independent of how many a user has: their median is 10 s.
    Some are censored, by an exponential law of mean 60 s. Of the intervals 95 % should hold it; by
    chance alone, 100 logs at 95 % give 87 % to 99 % but for less than one in a hundred (the
    binomial law: 0.05 % are below, 0.6 % above).
    """
    rng = np.random.default_rng(5)
    logs, users, held = 100, 100, 0
    for _ in range(logs):
        sizes = np.minimum(1 + np.floor(rng.pareto(1.5, users) * 2), 60).astype(int)
        owner = np.repeat(np.arange(users), sizes)
        pace = np.exp(rng.normal(0, 0.8, users))[owner]
        true = 10 * pace * np.exp(rng.normal(0, 1, len(owner)))
        last = rng.exponential(60, len(owner))
        seen, cut = np.minimum(true, last), (last < true).astype(int)
        bucket = rng.integers(0, 256, users)[owner]
        said = times(list(zip(bucket.tolist(), seen.tolist(), cut.tolist(), strict=True))).read(
            MEDIAN, Draws(0)
        )
        assert said.low is not None
        assert said.high is not None
        held += said.low <= 10 * SECOND <= said.high
    assert 0.87 <= held / logs <= 0.99


@pytest.mark.parametrize("censored", [0.0, 0.3])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_each_draw_has_the_quantile_of_its_own_curve(level: float, censored: float) -> None:
    # Few buckets of very different users: some draws need bins far beyond those of most.
    random = np.random.default_rng(5)
    bucket = random.integers(0, 12, 400)
    seconds = np.round(np.exp(random.normal(bucket / 2, 0.5)), 3)
    ends = random.random(400) >= censored
    rows = zip(bucket.tolist(), seconds.tolist(), (1 - ends).tolist(), strict=True)
    _, drawn = times(list(rows)).drawn(Statistic("quantile", level), Draws(0))
    digits = np.char.str_len((seconds * SECOND).round().astype(int).astype(str)) - 3
    bins, at = np.unique((seconds * SECOND).round() // 10**digits * 10**digits, return_inverse=True)
    means = [(seconds[(at == n) & ends] if (ends & (at == n)).any() else seconds[at == n]).mean()
             for n in range(len(bins))]  # fmt: skip
    weights = Draws(0).of(12)[:, bucket]
    events, others = (
        np.stack([np.bincount(at, each * kind, len(bins)) for each in weights])
        for kind in (ends, ~ends)
    )
    expected = survival_quantile(np.array(means), kaplan_meier(events, others), level)
    assert np.allclose(drawn, expected * SECOND, rtol=1e-9)
    assert len(np.unique(drawn)) > 10
