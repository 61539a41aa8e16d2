"""A policy held against numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from karat.measures import parse
from karat.release.gate import (
    Doubt,
    Numbers,
    blind,
    drop_check,
    floor_check,
    overall,
    queries_to_decide,
    unless_worse,
)
from karat.release.policy import Drop, Rule, policy_of
from karat.stats.intervals import LEAST
from karat.tables.release.gate import EXIT_CODES, WORST_FIRST, Check

FINE = Numbers(
    n=50,
    candidate_value=0.78,
    baseline_value=0.80,
    drop=0.02,
    ci_low=-0.01,
    ci_high=0.05,
    smallest_detected=0.04,
)
STALE = Doubt("stale", "the judgments changed")


def rule_checks(held: Rule, numbers: Numbers, doubt: Doubt | None = None) -> Iterator[Check]:
    """Both demands of a rule, the floor with the candidate's value of the numbers."""
    if held.max_drop is not None:
        yield drop_check(held, held.max_drop, numbers, doubt)
    if held.least is not None:
        yield floor_check(held, held.least, Numbers(numbers.n, numbers.candidate_value))


def rule(**written: Any) -> Rule:
    return policy_of({"rule": [{"measure": "nDCG@10"} | written]}).rules[0]


def verdict(numbers: Numbers, **written: Any) -> str:
    [check] = rule_checks(rule(**written), numbers)
    return check.verdict


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"max_drop": "5%"}, "pass"),  # 5 % of .8 is .04
        ({"max_drop": "2%"}, "fail"),  # .016
        ({"max_drop": 0.02}, "pass"),  # exactly so much is allowed
        ({"max_drop": 0.019}, "fail"),
        ({"max_drop": 0.06, "evidence": "interval"}, "pass"),
        ({"max_drop": 0.04, "evidence": "interval"}, "cannot_tell"),
        ({"min": 0.78}, "pass"),
        ({"min": 0.781}, "fail"),
    ],
)
def test_a_drop_and_a_floor(written: dict[str, Any], expected: str) -> None:
    assert verdict(FINE, **written) == expected


def test_rounding_fails_no_drop_of_just_the_limit() -> None:
    assert 0.80 - 0.78 > 0.02  # in floating point
    assert verdict(replace(FINE, drop=0.80 - 0.78), max_drop=0.02) == "pass"


def test_an_interval_beyond_the_limit_fails() -> None:
    lost = replace(FINE, drop=0.1, ci_low=0.06, ci_high=0.14)
    assert verdict(lost, max_drop=0.05, evidence="interval") == "fail"
    assert verdict(lost, max_drop=0.07, evidence="interval") == "cannot_tell"


def test_a_share_of_nothing_is_an_error_of_the_policy() -> None:
    zero = replace(FINE, baseline_value=0.0, drop=-0.78)
    [check] = rule_checks(rule(max_drop="5%"), zero)
    assert check.verdict == "error"
    assert "write 0.01" in check.reason
    assert verdict(zero, max_drop=0.01) == "pass"


def test_no_numbers_never_pass() -> None:
    nothing = Numbers(0, None)
    for written in ({"max_drop": "5%"}, {"max_drop": 0.99}, {"min": 0.1}):
        assert verdict(nothing, **written) == "cannot_tell"
    one = replace(FINE, n=1, ci_low=None, ci_high=None)
    assert verdict(one, max_drop=0.5, evidence="interval") == "cannot_tell"
    # Many queries that all dropped as much have no spread, and need none.
    even = replace(FINE, ci_low=None, ci_high=None, even=True)
    assert verdict(even, max_drop=0.02, evidence="interval") == "pass"
    assert verdict(even, max_drop=0.01, evidence="interval") == "fail"


def test_both_demands_of_a_rule_are_checked() -> None:
    found = list(rule_checks(rule(max_drop="1%", min=0.5), FINE))
    assert [check.verdict for check in found] == ["fail", "pass"]


def test_a_stale_baseline_counts_for_drops_only() -> None:
    found = list(rule_checks(rule(max_drop="50%", min=0.5), FINE, STALE))
    assert [(check.verdict, check.reason) for check in found] == [
        ("stale", "the judgments changed"),
        ("pass", "it is 0.7800"),
    ]


def test_the_worst_decides_and_nothing_is_an_error() -> None:
    checks = [Check("r", verdict, "") for verdict in reversed(WORST_FIRST)]
    for place in range(1, len(checks) + 1):
        assert overall(checks[:place]) == checks[place - 1].verdict
    assert overall([]) == "error"
    assert EXIT_CODES == {
        "pass": 0, "fail": 1, "cannot_tell": 3, "unhealthy": 3, "stale": 3, "error": 4,
    }  # fmt: skip


def reason(numbers: Numbers, **written: Any) -> str:
    [check] = rule_checks(rule(**written), numbers)
    return check.reason


def test_a_drop_is_told_in_both_units_and_rounding_is_none() -> None:
    # .02 of .8 is 2.5 %; 5 % of .8 is .04.
    assert reason(FINE, max_drop="5%") == "dropped by 0.0200 (2.5 %), allowed 5 % = 0.0400"
    assert reason(FINE, max_drop=0.05) == "dropped by 0.0200 (2.5 %), allowed 0.05"
    assert reason(replace(FINE, drop=-0.02), max_drop=0.05) == "rose by 0.0200 (2.5 %)"
    assert reason(replace(FINE, drop=-1e-16), max_drop=0.05) == "unchanged"
    tiny = reason(replace(FINE, drop=1e-6), max_drop=0.05)
    assert tiny == "dropped by less than 0.0001 (under 0.1 %), allowed 0.05"
    told = reason(FINE, max_drop=0.01, evidence="interval")
    assert told == "the drop is +0.0200 (95 %: −0.0100 to +0.0500), allowed 0.01"


def test_where_less_is_better_more_is_worse() -> None:
    measure = parse("nDCG@10")
    measure = replace(measure, entry=replace(measure.entry, direction="lower"))
    lower = Rule(measure, Drop(0.5, relative=False), 9.0)
    assert (lower.drop_text, lower.least_text) == ("worsens by at most 0.5", "is at most 9")
    worse = replace(FINE, baseline_value=4.0, candidate_value=5.0, drop=1.0)
    found = list(rule_checks(lower, worse))
    assert [(check.verdict, check.reason) for check in found] == [
        ("fail", "got worse by 1.0000 (25.0 %), allowed 0.5"),
        ("pass", "it is 5.0000"),
    ]


@pytest.mark.parametrize("n", [1, 2, 4])
def test_no_interval_of_so_few_queries_proves_anything(n: int) -> None:
    few = replace(FINE, n=n, ci_low=0.019, ci_high=0.021)
    assert verdict(few, max_drop=0.5, evidence="interval") == "cannot_tell"
    assert verdict(replace(few, n=5), max_drop=0.5, evidence="interval") == "pass"
    even = replace(few, drop=0.0, ci_low=None, ci_high=None, even=True)
    assert verdict(even, max_drop=0.5, evidence="interval") == "cannot_tell"


def test_few_queries_that_all_dropped_as_much_prove_nothing() -> None:
    even = replace(FINE, ci_low=None, ci_high=None, even=True)
    for n, expected in ((5, "cannot_tell"), (24, "cannot_tell"), (25, "pass")):
        assert verdict(replace(even, n=n), max_drop=0.05, evidence="interval") == expected
    # A run that is what it was has nothing to prove.
    assert verdict(replace(even, n=5, drop=0.0), max_drop=0.05, evidence="interval") == "pass"
    assert verdict(replace(even, n=5), max_drop=0.01, evidence="interval") == "fail"


def test_an_interval_that_nobody_knows_is_no_proof() -> None:
    # Queries that differ, and no interval: a stratum of a single query, say.
    unknown = replace(FINE, ci_low=None, ci_high=None, even=False)
    assert verdict(unknown, max_drop=0.5, evidence="interval") == "cannot_tell"


def test_weights_that_leave_a_few_queries_prove_nothing() -> None:
    narrow = replace(FINE, ci_low=0.019, ci_high=0.021, alike=1.2)
    assert verdict(narrow, max_drop=0.5, evidence="interval") == "cannot_tell"
    assert "with such unequal weights" in reason(narrow, max_drop=0.5, evidence="interval")


def test_a_value_just_below_the_floor_does_not_print_as_the_floor() -> None:
    assert reason(replace(FINE, candidate_value=0.79996), min=0.8) == "it is 0.79996"
    assert reason(replace(FINE, candidate_value=0.8), min=0.8) == "it is 0.8000"


SURELY = rule(min=0.6, evidence="interval")
OWN = Numbers(50, 0.70, ci_low=0.62, ci_high=0.78)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, "pass"),
        ({"ci_low": 0.6}, "pass"),
        ({"ci_low": 0.59}, "cannot_tell"),
        ({"candidate_value": 0.55, "ci_low": 0.5, "ci_high": 0.61}, "cannot_tell"),
        ({"candidate_value": 0.55, "ci_low": 0.5, "ci_high": 0.59}, "fail"),
        ({"n": 4}, "cannot_tell"),
        ({"alike": 1.5}, "cannot_tell"),
        ({"n": 0, "candidate_value": None}, "cannot_tell"),
        # Without spread: enough queries, or all below, or nobody knows why there is none.
        ({"ci_low": None, "ci_high": None, "even": True}, "pass"),
        ({"ci_low": None, "ci_high": None, "even": True, "n": 24}, "cannot_tell"),
        ({"ci_low": None, "ci_high": None, "even": True, "n": 24, "candidate_value": 0.5}, "fail"),
        ({"ci_low": None, "ci_high": None}, "cannot_tell"),
    ],
)
def test_a_floor_by_interval_holds_its_lower_end(changed: dict[str, Any], expected: str) -> None:
    check = floor_check(SURELY, 0.6, replace(OWN, **changed))
    assert check.verdict == expected
    assert check.rule == "nDCG@10 is at least 0.6, surely"


def test_a_ceiling_by_interval_holds_its_upper_end() -> None:
    measure = replace(SURELY.measure, entry=replace(SURELY.measure.entry, direction="lower"))
    most = Rule(measure, None, 0.8, "interval")
    told = [floor_check(most, 0.8, replace(OWN, ci_high=high)) for high in (0.78, 0.81)]
    assert [check.verdict for check in told] == ["pass", "cannot_tell"]
    assert told[0].reason == "it is 0.7000 (95 %: 0.6200 to 0.7800)"
    above = replace(OWN, candidate_value=0.9, ci_low=0.81, ci_high=0.99)
    assert floor_check(most, 0.8, above).verdict == "fail"


def test_one_and_several_unanswered() -> None:
    held = Check("r", "pass", "it is 0.7000")
    told = [unless_worse(held, replace(held, verdict="fail"), count).reason for count in (1, 2)]
    assert told == [
        "it is 0.7000; with the one unanswered at its worst it would fail",
        "it is 0.7000; with the 2 unanswered at their worst it would fail",
    ]


def test_a_limit_has_the_same_digits_everywhere() -> None:
    seen = replace(FINE, baseline_value=0.99, smallest_detected=0.06, ci_high=0.08)
    found = list(rule_checks(rule(max_drop="5%"), seen))
    assert "= 0.0495" in found[0].reason
    assert "and 0.0495 is allowed" in next(blind(found))


OPEN = Check(
    "nDCG@10 drops by at most 0.05, surely",
    "cannot_tell",
    "",
    "nDCG@10",
    n=80,
    drop=0.01,
    ci_low=-0.07,
    ci_high=0.09,
    limit=0.05,
)


def test_queries_that_would_decide_an_interval() -> None:
    # Half the interval is .08, and .04 lie between the drop and the limit: twice as narrow takes
    # four times the queries.
    assert queries_to_decide(OPEN) == 320
    # Beyond the limit the lower half counts: .09 - .05 = .04, of .09 - .01 = .08.
    assert queries_to_decide(replace(OPEN, drop=0.09, ci_low=0.01, ci_high=0.17)) == 320
    assert queries_to_decide(replace(OPEN, drop=0.0499999, ci_high=0.05)) is None
    assert queries_to_decide(replace(OPEN, drop=0.05)) is None, "no number of queries would"
    assert queries_to_decide(replace(OPEN, n=2, ci_high=0.051)) == LEAST
    for other in (
        replace(OPEN, verdict="fail"),
        replace(OPEN, rule="nDCG@10 drops by at most 0.05"),
        replace(OPEN, ci_low=None, ci_high=None),
        replace(OPEN, limit=None),
    ):
        assert queries_to_decide(other) is None
