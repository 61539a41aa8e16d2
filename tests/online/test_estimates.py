"""From evidence made by hand to numbers: values, intervals, bounds, and what is none or unknown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.online.estimates import NOT_SAID, censoring, estimate, needed, trust
from karat.online.evidence import Cut, Evidence
from karat.online.histograms import empty_histogram, empty_positions
from karat.online.metrics.registry import all_metrics, find, find_all
from karat.online.moments import empty
from karat.online.rules import Rules
from karat.tables.online.evaluation import OnlineResult
from karat.tables.online.events import EventLog

SECOND = 1_000_000
User = tuple[float, float]
"""Sums of a user: numerator and denominator."""


def log(kinds: str = "search click impression", known: str = "position query status") -> EventLog:
    """A log that holds such kinds of events and such columns."""
    return EventLog(
        folder=Path("events"), files=(), rows=9, bots=0,
        kinds=dict.fromkeys(kinds.split(), 3), attributes=("device",), arms=("a", "b"),
        known=frozenset(known.split()), first_us=0, last_us=1, first_day=0, last_day=0,
        timezone="UTC", simulated=False, version="1",
    )  # fmt: skip


def moments(rows: Mapping[tuple[str | None, str, str], list[User]], cut: Cut = ()) -> pl.DataFrame:
    """Moments of users' sums; keys: value of the only dimension, metric, term."""
    made = []
    for (value, metric, term), users in rows.items():
        n = len(users)
        above, below = (math.fsum(each) for each in zip(*users, strict=True))
        mean, middle = above / n, below / n
        made.append(
            {
                **dict.fromkeys(cut, value), "metric": metric, "term": term, "users": n,
                "numerator": above, "denominator": below,
                "mean_numerator": mean, "mean_denominator": middle,
                "m2_numerator": math.fsum((u[0] - mean) ** 2 for u in users),
                "m2_denominator": math.fsum((u[1] - middle) ** 2 for u in users),
                "comoment": math.fsum((u[0] - mean) * (u[1] - middle) for u in users),
            }
        )  # fmt: skip
    return pl.DataFrame(made)


def histogram(name: str, rows: list[tuple[int, int, int, int]]) -> pl.DataFrame:
    """Of user_bucket, milliseconds, censored and count; every bin is exact."""
    schema = ["user_bucket", "bin_us", "censored", "count"]
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    frame = frame.with_columns(bin_us=pl.col("bin_us") * 1000)
    return frame.select(pl.lit(name).alias("name"), *schema, sum_us=pl.col("bin_us")
                        * pl.col("count"))  # fmt: skip


def evidence(
    of: pl.DataFrame | None = None,
    times: pl.DataFrame | None = None,
    positions: pl.DataFrame | None = None,
    cut: Cut = (),
) -> Evidence:
    return Evidence(
        {cut: empty(cut) if of is None else of},
        {cut: empty_histogram(cut) if times is None else times},
        {cut: empty_positions(cut) if positions is None else positions},
        {},
    )


def one(name: str, found: Evidence, kept: EventLog | None = None) -> OnlineResult:
    """The only row of a metric, of all."""
    (row,) = estimate(found, [find(name)], (), kept or log(), Rules())
    return row


def test_a_rate_with_its_interval() -> None:
    # Three users: 1 of 2, 0 of 1, 3 of 3 searches clicked: 4/6. The reach is 4.3027·√(14/9/24), as
    # in tests/stats/test_ratio.py, and leaves the range on both sides.
    found = moments({(None, "CTR", "value"): [(1, 2), (0, 1), (3, 3)]})
    row = one("CTR", evidence(found))
    assert (row.value, row.low, row.high) == (pytest.approx(4 / 6), 0.0, 1.0)
    assert (row.n, row.users, row.total, row.method) == (6, 3, 4.0, "users")
    assert (row.state, row.reason, row.slice) == ("ok", "", {})


def test_a_mean_over_users_is_not_cut_at_one() -> None:
    # Sessions per user 1, 2, 6: mean 3, s² = 7, reach 4.3027·√(7/3) = 6.572.
    row = one("SessionsPerUser", evidence(moments({(None, "SessionsPerUser", "value"):
                                                   [(1, 1), (2, 1), (6, 1)]})))  # fmt: skip
    assert row.value == 3.0
    assert row.low == 0.0
    assert row.high == pytest.approx(3 + 4.302652729911275 * math.sqrt(7 / 3))
    assert row.n == 3


def test_money_can_be_paid_back() -> None:
    kept = log("search purchase", "value")
    users: list[User] = [(-30, 1), (10, 1), (20, 1)]
    row = one("RevenuePerSearch", evidence(moments({(None, "RevenuePerSearch", "value"): users})),
              kept)  # fmt: skip
    assert row.value == 0.0
    assert row.low is not None
    assert row.low < 0


@pytest.mark.parametrize("huge", [math.inf, -math.inf, math.nan])
def test_what_cannot_be_added_up_is_no_number(huge: float) -> None:
    kept = log("search purchase", "value")
    frame = moments({(None, "RevenuePerSearch", "value"): [(1, 1), (2, 1), (3, 1)]})
    # As sums of 1e308 come out: some of the moments are infinite, some are no numbers.
    for name in ("numerator", "m2_numerator"):
        row = one("RevenuePerSearch", evidence(frame.with_columns(pl.lit(huge).alias(name))), kept)
        said = (row.value, row.low, row.high, row.least, row.most, row.total)
        assert all(number is None or math.isfinite(number) for number in said)
        if name == "numerator":
            assert (row.state, row.value, row.users, row.n) == ("none", None, 3, 3)
            assert "too large" in row.reason


def test_no_click_is_zero_and_no_search_is_none() -> None:
    clickless = one("CTR", evidence(moments({(None, "CTR", "value"): [(0, 2), (0, 1)]})))
    assert (clickless.value, clickless.state, clickless.low) == (0.0, "ok", None)
    assert clickless.reason == "all users are alike"
    nothing = one("CTR", evidence())
    assert (nothing.value, nothing.state, nothing.n) == (None, "none", 0)
    assert nothing.reason == "no searches with results seen"


def test_what_the_log_never_holds_is_unknown_and_not_zero() -> None:
    found = evidence(moments({(None, "CTR", "value"): [(0, 2), (0, 1)]}))
    row = one("CTR", found, log("search impression"))
    assert (row.value, row.state) == (None, "unknown")
    assert row.reason == "the log has no clicks"
    seen = one("CTR", found, log("search click"))
    assert seen.reason == (
        "the log has neither impressions, numbers of results nor lists of results"
    )
    assert one("CTR", found, log("search click", "returned")).state == "ok"
    reasons = {
        "ZeroResults(raw)": "the log has no numbers of matches before any fallback",
        "Conversion": "the log has no purchases",
        "AddToCart": "the log has no carts",
        "Latency(p95)": "the log has no latencies",
        "SuccessPerSession": "the log has neither clicks, carts, purchases nor answers",
    }
    for name, reason in reasons.items():
        row = one(name, found, log("search", ""))
        assert (row.state, row.value, row.reason) == ("unknown", None, reason)


def test_every_metric_has_a_row_without_any_evidence() -> None:
    every = all_metrics()
    for kept in (log(), log("search", ""), log("search click cart purchase answer", "value")):
        rows = estimate(evidence(), every, (), kept, Rules())
        assert [row.metric for row in rows] == [metric.name for metric in every]
        assert all(row.value is None and row.reason and row.state != "ok" for row in rows)


def test_one_user_has_a_value_and_no_interval() -> None:
    row = one("CTR", evidence(moments({(None, "CTR", "value"): [(1, 2)]})))
    assert (row.value, row.low, row.method, row.reason) == (0.5, None, None, "one user")


def test_bounds_stand_apart_from_the_interval() -> None:
    # Of six searches two are surely satisfied, four perhaps, and three by the rule.
    found = moments(
        {
            (None, "SAT", "value"): [(1, 2), (0, 1), (2, 3)],
            (None, "SAT", "least"): [(1, 2), (0, 1), (1, 3)],
            (None, "SAT", "most"): [(1, 2), (1, 1), (2, 3)],
        }
    )
    row = one("SAT", evidence(found))
    assert (row.least, row.value, row.most) == (2 / 6, 3 / 6, 4 / 6)
    assert row.low is not None
    assert row.low < 2 / 6  # what chance leaves open is another matter


def test_good_abandonment_has_bounds_and_no_value() -> None:
    def good(most: list[User]) -> OnlineResult:
        least: list[User] = [(0, 2), (1, 3)]
        rows = {(None, "GoodAbandonment", "value"): least,
                (None, "GoodAbandonment", "least"): least,
                (None, "GoodAbandonment", "most"): most}  # fmt: skip
        kept = log("search click impression answer")
        return one("GoodAbandonment", evidence(moments(rows)), kept)

    row = good([(1, 2), (2, 3)])
    assert (row.value, row.least, row.most, row.state) == (None, 0.2, 0.6, "unknown")
    assert (row.low, row.high) == (None, None)
    assert "only bounds" in row.reason
    settled = good([(0, 2), (1, 3)])  # nothing is left open
    assert (settled.value, settled.state) == (0.2, "ok")


def test_times_are_in_the_unit_of_their_metric() -> None:
    kept = log("search click impression", "latency_us")
    latency = histogram("latency", [(place, 100 + 10 * place, 0, 1) for place in range(20)])
    # Of 100, 110, … 290 ms half are at most 190 and 95 % at most 280.
    assert one("Latency(p50)", evidence(times=latency), kept).value == 190
    assert one("Latency(p95)", evidence(times=latency), kept).value == 280
    dwell = histogram("dwell", [(1, 2000, 0, 3), (2, 5000, 0, 4), (3, 9000, 1, 2)])
    row = one("Dwell", evidence(times=dwell), kept)
    assert (row.value, row.n, row.method) == (5.0, 9, "buckets")
    naive = one("Dwell(naive)", evidence(times=dwell), kept)
    assert naive.value == pytest.approx((3 * 2 + 4 * 5) / 7)
    assert naive.n == 7  # the censored ones are what it leaves out


def test_the_restricted_mean_goes_by_the_rules() -> None:
    # 2 s ×3, 5 s ×4, and 2 seen for 9 s: (3·2 + 4·5 + 2·8)/9 up to 8 s.
    dwell = histogram("dwell", [(1, 2000, 0, 3), (2, 5000, 0, 4), (3, 9000, 1, 2)])
    rules = Rules(dwell_mean=8 * SECOND)
    (row,) = estimate(evidence(times=dwell), [find("Dwell(mean)")], (), log(), rules)
    assert row.value == pytest.approx(42 / 9)
    usual = one("Dwell(mean)", evidence(times=dwell))  # up to 10 minutes nobody was followed
    assert (usual.value, usual.state) == (None, "unknown")
    assert usual.least == pytest.approx((6 + 20 + 18) / 9)
    assert usual.most == pytest.approx((6 + 20 + 1200) / 9)


def test_users_of_a_distribution_are_counted_beside_it() -> None:
    dwell = histogram("dwell", [(1, 2000, 0, 3), (2, 5000, 0, 4)])
    alone = one("Dwell", evidence(times=dwell))
    assert alone.users == 2  # buckets: at least so many
    users: list[User] = [(1, 1)] * 7
    beside = one("Dwell", evidence(moments({(None, "n(dwell)", "value"): users}), dwell))
    assert beside.users == 7
    asked = needed(find_all(["Dwell", "Dwell(mean)", "CTR", "Latency:p95"]))
    assert [metric.name for metric in asked][4:] == ["n(dwell)", "n(latency)"]
    naive = needed([find("Dwell(naive)")])  # over those that ended
    assert [metric.name for metric in naive] == ["Dwell(naive)", "n(dwell, ended)"]


def test_clicks_by_position() -> None:
    frame = pl.DataFrame({"position": [2, 1, 11], "clicks": [3, 6, 1]})
    rows = estimate(evidence(positions=frame), [find("ClickPosition")], (), log(), Rules())
    assert [(row.slice["position"], row.value, row.total, row.n) for row in rows] == [
        ("1", 0.6, 6.0, 10),
        ("2", 0.3, 3.0, 10),
        ("11", 0.1, 1.0, 10),
    ]


def test_slices_stand_in_order_and_what_is_not_said_last() -> None:
    users: list[User] = [(1, 2), (0, 1)]
    rows = {(hour, "CTR", "value"): users for hour in ("10", None, "09", "2")}
    found = estimate(evidence(moments(rows, ("hour",)), cut=("hour",)), find_all(["CTR", "SAT"]),
                     ("hour",), log(), Rules())  # fmt: skip
    assert [row.slice["hour"] for row in found if row.metric == "CTR"] == [
        "2", "09", "10", NOT_SAID
    ]  # fmt: skip
    # SAT has no moments in any of them: a row each all the same, and not 0.
    assert [row.state for row in found if row.metric == "SAT"] == ["none"] * 4


def test_few_users_are_not_to_be_trusted() -> None:
    few = one("CTR", evidence(moments({(None, "CTR", "value"): [(1, 2), (0, 1)] * 12})))
    many = one("CTR", evidence(moments({(None, "CTR", "value"): [(1, 2), (0, 1)] * 13})))
    assert (few.users, many.users) == (24, 26)
    assert trust([few]) == ["intervals over fewer than 25 users are not reliable (CTR)"]
    assert trust([many]) == []


def test_censoring_is_said() -> None:
    dwell = histogram("dwell", [(1, 2000, 0, 3), (3, 9000, 1, 1)])
    assert censoring(evidence(times=dwell), find_all(["Dwell", "Dwell(mean)"])) == [
        "1 of 4 clicks (25 %) have no known end: they count as censored, not as 0"
    ]
    assert censoring(evidence(times=dwell), find_all(["CTR"])) == []


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(1, 9)),
        min_size=1,
        max_size=20,
    )
)
def test_laws_of_bounds_and_ranges(users: list[tuple[int, int, int, int]]) -> None:
    """Least, value and most of SAT in order, within 0 and 1, and inside their interval."""
    sums = {"least": [], "value": [], "most": []}  # type: dict[str, list[User]]
    for low, more, most, rest in users:
        below = low + more + most + rest
        sums["least"].append((low, below))
        sums["value"].append((low + more, below))
        sums["most"].append((low + more + most, below))
    row = one("SAT", evidence(moments({(None, "SAT", term): s for term, s in sums.items()})))
    assert row.least is not None
    assert row.value is not None
    assert row.most is not None
    assert 0 <= row.least <= row.value <= row.most <= 1
    if row.low is not None:
        assert row.high is not None
        assert 0 <= row.low <= row.value <= row.high <= 1
