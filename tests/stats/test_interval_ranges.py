"""Intervals as they are shown: within the range of the measure, and none of a few queries."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat import compare, evaluate
from karat.errors import InputError
from karat.measures import entries, parse
from karat.stats.intervals import Interval, difference_range, shown, t_interval, value_range
from karat.workflows.release.gate import gate

UNIT = st.sampled_from([0.0, 0.0, 0.25, 0.5, 1.0, 1.0])


def ranked(places: list[int]) -> dict[str, dict[str, float]]:
    """A run with the good document of each query at these ranks, from 0."""
    return {
        f"q{n:02}": {"good": -float(place)} | {f"x{i}": -i - 0.5 for i in range(place)}
        for n, place in enumerate(places)
    }


def judged(n: int) -> dict[str, dict[str, int]]:
    return {f"q{i:02}": {"good": 1} for i in range(n)}


@given(st.lists(UNIT, min_size=2, max_size=30))
def test_an_interval_is_within_the_range_and_holds_the_mean(values: list[float]) -> None:
    column = np.array(values)
    whole = t_interval(column)
    got = shown(whole, column, 0, 1)
    if whole.low is None or whole.high is None:
        assert got == whole
    elif len(values) < 5:
        assert got == Interval(None, None, "fewer than 5 queries")
    else:
        assert got.low is not None
        assert got.high is not None
        assert 0 <= got.low <= column.mean() <= got.high <= 1
        # What is not cut is as it was, and what is cut is said to be.
        assert (got.low, got.high) == (max(whole.low, 0), min(whole.high, 1))
        assert bool(got.cut) == ((whole.low, whole.high) != (got.low, got.high))


def test_where_it_is_cut() -> None:
    values = np.array([0.0, 0.0, 0.0, 1.0, 1.0])  # .4 ± 2.776 * .5477 / sqrt(5) = .4 ± .68
    whole = t_interval(values)
    assert (whole.low, whole.high) == (
        pytest.approx(-0.28, abs=1e-3),
        pytest.approx(1.08, abs=1e-3),
    )
    assert shown(whole, values, 0, 1) == Interval(0.0, 1.0, cut="cut at 0 and 1")
    assert shown(whole, values, 0, None).cut == "cut at 0"
    assert shown(whole, values, None, None) == whole
    # Values beyond the range that a measure states widen it: an interval holds its mean.
    assert shown(whole, values - 2, 0, 1).high == pytest.approx(1)


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.symbol)
def test_the_range_of_a_difference(entry) -> None:
    measure = dataclasses.replace(parse("AP"), entry=entry)
    low, high = difference_range(measure)
    least, most = value_range(measure)
    if most is None:
        assert (low, high) == (None, None)
    else:
        assert (low, high) == (least - most, most - least)


def test_evaluate_cuts_and_says_so() -> None:
    # RR of six queries: 1 five times, and .25: mean .875, and .875 + 2.57 * .125 > 1.
    found = evaluate(judged(6), ranked([0, 0, 0, 0, 0, 3]), ["RR", "nDCG@10"])
    for row in found.results:
        assert row.ci_low is not None
        assert row.ci_high == 1.0
        assert row.ci_low < row.value
        assert row.ci_reason == "cut at 1"
    assert any("RR, nDCG@10 are clipped" in note for note in found.notes)


def test_two_queries_have_no_interval() -> None:
    # The formula's is -4.1 to 5.4 for RR.
    for interval in ("t", "bca"):
        found = evaluate(judged(2), ranked([0, 3]), ["RR"], interval=interval)
        [row] = found.results
        assert (row.ci_low, row.ci_high, row.ci_method) == (None, None, None)
        assert row.ci_reason == "fewer than 5 queries"
        assert "no interval for RR: fewer than 5 queries" in found.notes
        [difference] = compare(
            judged(2), ranked([2, 3]), ranked([0, 3]), ["RR"], interval=interval
        ).differences
        assert (difference.ci_low, difference.ci_method) == (None, None)
        assert difference.ci_reason == "fewer than 5 queries"
    assert evaluate(judged(2), ranked([0, 3]), ["RR"], interval="none").results[0].ci_reason == ""


def test_the_difference_of_two_runs_is_cut_at_its_own_range() -> None:
    # P@1 differs by 1, 1, 1, 0, -1: .4 ± 2.776 * .894 / sqrt(5) = .4 ± 1.11.
    before, after = [1, 1, 1, 0, 0], [0, 0, 0, 0, 1]
    found = compare(judged(5), ranked(before), ranked(after), ["P@1"])
    [row] = found.differences
    assert row.ci_low == pytest.approx(0.4 - 1.11, abs=2e-3)
    assert row.ci_high == 1.0
    assert row.ci_reason == "cut at 1"
    assert any("P@1 are clipped" in note for note in found.notes)


@given(st.lists(UNIT, min_size=5, max_size=30), st.floats(0.001, 0.999))
def test_cutting_changes_no_verdict_of_a_gate(values: list[float], limit: float) -> None:
    # A policy refuses limits at the ends of the range or beyond; within, a cut end lies on the
    # same side of them as the whole one.
    column = np.array(values)
    whole = t_interval(column)
    got = shown(whole, column, 0, 1)
    if whole.low is not None and whole.high is not None:
        assert got.low is not None
        assert got.high is not None
        assert (got.low <= limit, got.high <= limit) == (whole.low <= limit, whole.high <= limit)


@pytest.mark.parametrize(
    "rule", [{"max_drop": 1.0}, {"max_drop": "100%"}, {"min": 0.0}, {"min": -0.1}]
)
def test_a_policy_refuses_limits_at_the_ends_of_the_range(rule: dict[str, object]) -> None:
    held = {"rule": [{"measure": "P@1", "evidence": "interval"} | rule]}
    with pytest.raises(InputError):
        gate(held, judged(5), ranked([0] * 5), ranked([1] * 5))


def test_four_queries_pass_no_gate_and_show_no_interval() -> None:
    policy = {"rule": [{"measure": "RR", "max_drop": 0.9, "evidence": "interval"}]}
    held = gate(policy, judged(4), ranked([0, 1, 0, 1]), ranked([0, 0, 0, 1]))
    [check] = [check for check in held.checks if check.measure]
    assert (check.verdict, check.ci_low, check.ci_high) == ("cannot_tell", None, None)
    assert "4 queries prove nothing" in check.reason
    assert "95 %" not in check.reason


def test_no_interval_is_infinite_or_missing_its_other_end() -> None:
    found = evaluate(judged(7), ranked([0, 0, 1, 1, 2, 3, 9]), ["RR", "DCG@5", "GMAP", "AP"])
    for row in found.results:
        assert (row.ci_low is None) == (row.ci_high is None)
        assert row.ci_low is None or math.isfinite(row.ci_high or 0)
