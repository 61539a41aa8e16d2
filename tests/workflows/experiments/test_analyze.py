"""Whether an experiment's truth is found, and nothing else."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest
from tests.experiment_traffic import DAY, START, traffic, welch

import karat
from karat.errors import UsageError
from karat.tables.experiments.experiment import (
    Effect,
    ExperimentPlan,
    ExperimentResult,
    Guard,
)
from karat.workflows.experiments.analyze import (
    analyze_events,
    experiment,
    plan_of,
    read_guard,
    read_shares,
)


@pytest.fixture(scope="module")
def better() -> pl.DataFrame:
    """Users of b click more: .1 more often."""
    return traffic(lift=0.1, seed=4)


def analysed(frame: pl.DataFrame, **how: Any) -> ExperimentResult:
    asked = {"decide": ["CTR"], "guard": {"Latency:p95": 30}, **how}
    return experiment(frame, "a", "b", **asked)


def effect(result: ExperimentResult, metric: str) -> Effect:
    return next(row for row in result.effects if row.metric == metric)


def state(result: ExperimentResult, check: str) -> str:
    return next(row.state for row in result.health if row.check == check)


def test_equals_welch_on_raw_events(better: pl.DataFrame) -> None:
    """Without a period before, the estimates are those of a Welch test over users."""
    alone = better.filter(pl.col("arm").is_not_null())
    row = effect(analysed(alone), "CTR")
    expected = welch(alone)
    assert row.control == pytest.approx(expected("a"), abs=1e-12)
    assert row.treatment == pytest.approx(expected("b"), abs=1e-12)
    assert (row.n_control, row.n_treatment) == (expected("users a"), expected("users b"))
    error = math.hypot(expected("error a"), expected("error b"))
    assert row.ci_low is not None
    assert row.difference is not None
    # Student's t of 580 degrees of freedom: 1.9641.
    assert row.difference - row.ci_low == pytest.approx(1.9641 * error, rel=1e-3)


def test_a_real_improvement_ships(better: pl.DataFrame) -> None:
    result = analysed(better)
    row = effect(result, "CTR")
    assert result.verdict == "pass", result.reason
    assert result.exit_code == 0
    assert row.held == "better"
    assert row.ci_low is not None
    assert row.ci_high is not None
    assert row.ci_low < 0.1 < row.ci_high
    assert row.cs_low is not None
    assert row.cs_low < row.ci_low  # a sequence is wider
    assert row.theta > 0
    assert row.variance_kept is not None
    assert row.variance_kept < 0.9  # users differ, and did so before
    assert effect(result, "Latency(p95)").held == "passed"
    assert len(result.ages) == 14
    last = result.over_time[-1]
    assert (last.difference, last.low, last.cs_low) == pytest.approx(
        (row.difference, row.ci_low, row.cs_low), abs=1e-12
    )
    assert last.users == row.n_control + row.n_treatment
    assert [day.users for day in result.over_time] == sorted(day.users for day in result.over_time)


def test_no_difference_cannot_tell() -> None:
    result = analysed(traffic(seed=9))
    assert (result.verdict, result.exit_code) == ("cannot_tell", 3)
    assert "no decision metric is better" in result.reason


def test_a_slower_arm_is_held() -> None:
    result = analysed(traffic(lift=0.1, slower=60, seed=4))
    assert (result.verdict, result.exit_code) == ("fail", 1)
    assert result.reason == "the guardrail Latency(p95) is breached"
    assert effect(result, "CTR").held == "better"


def test_worse_fails() -> None:
    result = analysed(traffic(lift=-0.12, seed=5))
    assert (result.verdict, result.reason) == ("fail", "CTR is worse")


def test_a_broken_assignment_has_no_effects() -> None:
    frame = traffic(lift=0.1, lost=0.4, seed=6)
    result = analysed(frame)
    assert (result.verdict, result.exit_code) == ("unhealthy", 3)
    assert state(result, "sample_ratio") == "fail"
    assert result.effects == result.slices == result.over_time == []
    despite = analysed(frame, despite="the 40 % were on holiday")
    assert despite.verdict == "pass"
    assert despite.despite == "the 40 % were on holiday"
    assert despite.effects


def test_planned_shares(better: pl.DataFrame) -> None:
    assert state(analysed(better, shares=(9.0, 1.0)), "sample_ratio") == "fail"
    lost = traffic(lost=0.5, seed=7)
    assert state(analysed(lost, shares=(2.0, 1.0)), "sample_ratio") == "pass"


def test_users_in_both_arms() -> None:
    result = analysed(traffic(several=0.1, seed=8))
    assert (result.verdict, state(result, "both_arms")) == ("unhealthy", "fail")


def test_less_than_a_week(better: pl.DataFrame) -> None:
    short = better.filter(pl.col("timestamp") < better["timestamp"].min() + 12 * DAY)  # type: ignore[operator]
    result = analysed(short)
    assert (result.verdict, state(result, "weeks")) == ("cannot_tell", "cannot_tell")
    assert result.effects


def test_until_the_end_the_sequence_decides(better: pl.DataFrame) -> None:
    early = analysed(better, users=5000)
    row = effect(early, "CTR")
    assert not early.ended
    assert row.cs_low is not None
    assert row.ci_low is not None
    assert (row.held == "better") == (row.cs_low > 0)
    little = analysed(traffic(lift=0.04, users=900, seed=12), users=50_000)
    row = effect(little, "CTR")
    assert row.ci_low is not None
    assert row.cs_low is not None
    assert row.ci_low > 0 > row.cs_low  # significant today, and not for a look every day
    assert (little.verdict, row.held) == ("cannot_tell", "cannot_tell")


def test_windows_are_the_same_for_every_user(better: pl.DataFrame) -> None:
    result = analysed(better, window_us=7 * DAY)
    row = effect(result, "CTR")
    whole = effect(analysed(better), "CTR")
    assert row.n_control < whole.n_control  # users who came in the second week are left out
    assert max(int(age.day) for age in result.ages) == 6
    assert any("window is open" in note for note in result.notes)


def test_slices(better: pl.DataFrame) -> None:
    result = analysed(better, by=["query"])
    rows = [row for row in result.slices if row.metric == "CTR"]
    assert [row.slice["query"] for row in rows] == sorted(traffic_texts())
    whole = effect(result, "CTR").difference
    assert whole is not None
    for row in rows:
        assert row.shrunk is not None
        assert row.difference is not None
        assert min(whole, row.difference) - 1e-9 <= row.shrunk <= max(whole, row.difference) + 1e-9
        assert row.p is not None
        assert row.p_corrected is not None
        assert row.p_corrected >= row.p


def traffic_texts() -> list[str]:
    return ["blue hat", "lamp", "red shoes", "sofa"]


def test_exposures_of_another_system(better: pl.DataFrame, tmp_path: Any) -> None:
    first = (
        better.filter(pl.col("arm").is_not_null())
        .group_by("user_id")
        .agg(pl.col("timestamp").min(), pl.col("arm").first())
        .sort("user_id")
    )
    table = first.rename({"arm": "variation_id"}).with_columns(experiment_id=pl.lit("ranker"))
    # Three exposed users never search: they are in the arms all the same.
    more = pl.DataFrame(
        {"user_id": ["x1", "x2", "x3"], "timestamp": [table["timestamp"][0]] * 3,
         "variation_id": ["a", "b", "b"], "experiment_id": ["ranker"] * 3}
    )  # fmt: skip
    path = tmp_path / "exposures.csv"
    pl.concat([table, more]).write_csv(path)
    by_table = _with_exposures(better.drop("arm"), path)
    by_log = analysed(better)
    assert by_table.users == by_log.users + 3
    one, two = effect(by_table, "CTR"), effect(by_log, "CTR")
    assert (one.control, one.treatment, one.p) == pytest.approx((two.control, two.treatment, two.p))


def _with_exposures(frame: pl.DataFrame, path: Any) -> ExperimentResult:
    plan = ExperimentPlan("a", "b", decide=("CTR",), guards=(read_guard("Latency:p95:30"),))
    return analyze_events(frame, plan, exposures=(path, None))


@pytest.mark.parametrize("engine", ["duckdb", pytest.param("spark", marks=pytest.mark.deep)])
def test_engines_agree(better: pl.DataFrame, engine: str) -> None:
    pytest.importorskip("duckdb" if engine == "duckdb" else "pyspark")
    frame = better.filter(pl.col("user_id").str.ends_with("1"))
    asked: dict[str, Any] = {"by": ["query"], "window_us": 7 * DAY}
    one, two = analysed(frame, **asked), analysed(frame, engine=engine, **asked)
    for mine, other in zip((*one.effects, *one.slices), (*two.effects, *two.slices), strict=True):
        for name in ("control", "treatment", "ci_low", "ci_high", "theta", "p"):
            expected, found = getattr(mine, name), getattr(other, name)
            assert (found is None) == (expected is None)
            assert (found or 0.0) == pytest.approx(expected or 0.0, rel=1e-9, abs=1e-12)
        assert (mine.n_control, mine.n_treatment) == (other.n_control, other.n_treatment)
    assert [check.state for check in one.health] == [check.state for check in two.health]


def test_queries_that_carry_it(better: pl.DataFrame) -> None:
    """Only "sofa" is better: it adds most; all queries together are the difference."""
    sofa = better.filter(
        (pl.col("user_query") == "sofa")
        | (pl.col("arm") != "b")
        | pl.col("arm").is_null()
        | (pl.col("action_name") == "search")
        | (pl.col("query_id").hash(1) % 4 > 0)  # b loses a quarter of its other clicks
    )
    alone = sofa.filter(pl.col("arm").is_not_null())
    result = analysed(alone)
    row = effect(result, "CTR")
    assert row.difference is not None
    assert sum(each.adds for each in result.queries) == pytest.approx(row.difference, abs=1e-12)
    assert result.queries[0].query == "sofa"


def test_steps_of_a_ramp() -> None:
    """The share of b grows while users click less from day to day: no effect within a step."""
    frame = traffic(users=1500, days=14, before=0, seed=21)
    late = START + 7 * DAY
    second = pl.col("user_id").hash(11) % 2 == 0  # users who come in the second week only
    frame = frame.filter(~second | (pl.col("timestamp") >= late))
    first = frame.group_by("user_id").agg(came=pl.col("timestamp").min())
    drawn = pl.col("user_id").hash(3) % 10
    share = pl.when(pl.col("came") < late).then(1).otherwise(9)
    frame = (
        frame.drop("arm")
        .join(first, on="user_id")
        .with_columns(arm=pl.when(drawn < share).then(pl.lit("b")).otherwise(pl.lit("a")))
    )
    # Users who come in the second week click half as often.
    lost = (pl.col("action_name") == "click") & (pl.col("came") >= late)
    frame = frame.filter(~lost | (pl.col("query_id").hash(5) % 2 == 0))
    naive = effect(analysed(frame, despite="a ramp"), "CTR")
    within = effect(analysed(frame, despite="a ramp", steps=(late // DAY,)), "CTR")
    assert naive.ci_high is not None
    assert naive.ci_high < 0  # Simpson's paradox
    assert within.ci_low is not None
    assert within.ci_high is not None
    assert within.ci_low < 0 < within.ci_high


def test_a_trigger() -> None:
    """Users count from their first search for "sofa" on; the others dilute the difference."""
    frame = traffic(users=900, seed=13).with_columns(
        differs=pl.when(pl.col("user_query") == "sofa").then(pl.lit("1")).otherwise(pl.lit("0"))
    )
    searches = frame.filter(pl.col("action_name") == "search")
    row = effect(analysed(frame, trigger="differs"), "CTR")
    whole = effect(analysed(frame), "CTR")
    assert row.n_control < whole.n_control
    assert row.diluted is not None
    assert row.difference is not None
    share = row.diluted / row.difference
    # Searches of triggered users after the first trigger, over all searches with an arm.
    arms = searches.filter(pl.col("arm") == "a").sort("timestamp")
    first = arms.filter(pl.col("differs") == "1").group_by("user_id").agg(pl.col("timestamp").min())
    after = arms.join(first, on="user_id", suffix="_first").filter(
        pl.col("timestamp") >= pl.col("timestamp_first")
    )
    assert share == pytest.approx(after.height / arms.height, rel=1e-9)
    assert whole.diluted is None


def test_runs_that_differ_are_a_trigger() -> None:
    """The runs differ for "sofa" only: as if each search said so."""
    frame = traffic(users=500, seed=13)
    ids = {"red shoes": "1", "blue hat": "2", "sofa": "3", "lamp": "4"}
    queries = pl.DataFrame({"query_id": list(ids.values()), "text": ["Red  Shoes", *list(ids)[1:]]})
    one = {query: {"d1": 2.0, "d2": 1.0} for query in ids.values()}
    two = {**one, "3": {"d1": 1.0, "d2": 2.0}}
    plan = plan_of(ExperimentPlan("a", "b"), {"decide": ("CTR",)})
    found = analyze_events(frame, plan, queries=queries, differs=[one, two])
    said = frame.with_columns(
        differs=pl.when(pl.col("user_query") == "sofa").then(pl.lit("1")).otherwise(pl.lit("0"))
    )
    same = analyze_events(said, plan_of(plan, {"trigger": "differs"}))
    mine, other = effect(found, "CTR"), effect(same, "CTR")
    for name in ("control", "difference", "ci_low", "diluted", "n_control"):
        assert getattr(mine, name) == pytest.approx(getattr(other, name), rel=1e-12)
    with pytest.raises(UsageError, match="need the texts"):
        analyze_events(frame, plan, differs=[one, two])


def test_a_trigger_that_one_arm_logs_less() -> None:
    frame = traffic(users=900, seed=13).with_columns(
        differs=pl.when((pl.col("arm") == "a") & (pl.col("user_query") != "sofa"))
        .then(pl.lit("0"))
        .otherwise(pl.lit("1"))
    )
    result = analysed(frame, trigger="differs")
    assert state(result, "trigger_balance") == "fail"
    assert result.verdict == "unhealthy"
    with pytest.raises(UsageError, match="no attribute 'differ'"):
        analysed(frame, trigger="differ")


def test_caps(better: pl.DataFrame) -> None:
    """A cap of 0 on the clicks of a user leaves nothing."""
    assert effect(analysed(better, caps={"CTR": 0.0}), "CTR").control == pytest.approx(0, abs=1e-3)


def test_unknown_arms_and_metrics(better: pl.DataFrame) -> None:
    with pytest.raises(UsageError, match="has no arm 'c'"):
        experiment(better, "a", "c")
    with pytest.raises(UsageError, match="no arms of experiments"):
        experiment(better.drop("arm"), "a", "b")
    with pytest.raises(UsageError, match="cannot decide and guard"):
        experiment(better, "a", "b", decide=["CTR"], guard={"CTR": 0.1})
    with pytest.raises(UsageError, match="no single value"):
        experiment(better, "a", "b", decide=["GoodAbandonment"])
    with pytest.raises(UsageError, match="RevenuePerSearch cannot decide"):
        experiment(better, "a", "b", decide=["RevenuePerSearch"])
    with pytest.raises(UsageError, match="two margins"):
        experiment(better, "a", "b", guard={"CTR": 0.1, "ctr": "5%"})


def test_guards_of_users_who_are_alike(better: pl.DataFrame) -> None:
    """The rule of three: a share of 0.2 % is refuted by 1,500 users without it, not by 600."""
    guards = {"ZeroResults": 0.002, "CTR": "5%"}
    few = experiment(better, "a", "b", decide=["SAT"], guard=guards)
    assert effect(few, "ZeroResults").held == "cannot_tell"
    assert "it takes 1,498 in each arm" in effect(few, "ZeroResults").reason
    wide = experiment(better, "a", "b", decide=["SAT"], guard={"ZeroResults": 0.05})
    assert effect(wide, "ZeroResults").held == "passed"
    ten = better.filter(pl.col("user_id").str.len_chars() == 2)
    none = experiment(ten, "a", "b", decide=["SAT"], guard={"ZeroResults": 0.9})
    assert effect(none, "ZeroResults").held == "cannot_tell"


def test_names_of_a_plan(better: pl.DataFrame) -> None:
    """Metrics in any case, or as a shell writes them."""
    plan = ExperimentPlan(
        "a", "b", decide=["sat"], guards=[Guard("latency:p95", 20.0)], caps={"sat": 0.0}
    )
    result = experiment(better, "a", "b", plan=plan)
    assert effect(result, "Latency(p95)").held == "passed"
    assert effect(result, "SAT").control == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CTR:2%", Guard("CTR", 0.02, relative=True)),
        ("ErrorRate:0.002", Guard("ErrorRate", 0.002)),
        ("latency:p95:20", Guard("Latency(p95)", 20.0)),
    ],
)
def test_guards(text: str, expected: Guard) -> None:
    assert read_guard(text) == expected


@pytest.mark.parametrize("text", ["CTR", "CTR:", "CTR:x", "CTR:-1"])
def test_no_guard(text: str) -> None:
    with pytest.raises(UsageError, match="no margin"):
        read_guard(text)


def test_shares() -> None:
    assert read_shares("90:10") == (90.0, 10.0)
    for text in ("90", "90:0", "a:b", "1:2:3"):
        with pytest.raises(UsageError, match="not two shares"):
            read_shares(text)


def test_python_names() -> None:
    assert karat.experiment is experiment
