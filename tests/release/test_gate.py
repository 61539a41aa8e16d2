"""A policy held against numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from karat.release.gate import Answers, Numbers, health_checks, overall, rule_checks
from karat.release.policy import Health, Rule, policy_of
from karat.tables.gate import EXIT_CODES, WORST_FIRST, Check

FINE = Numbers(
    n=50,
    candidate_value=0.78,
    baseline_value=0.80,
    drop=0.02,
    ci_low=-0.01,
    ci_high=0.05,
    smallest_detected=0.04,
)
ANSWERS = Answers("new", queries=50, failed=0, missing=0, documents=500, judged={10: 0.9})


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
    for written in ({"max_drop": "5%"}, {"max_drop": 0.99}, {"min": 0.0}):
        assert verdict(nothing, **written) == "cannot_tell"
    one = replace(FINE, n=1, ci_low=None, ci_high=None)
    assert verdict(one, max_drop=0.5, evidence="interval") == "cannot_tell"
    # Many queries that all dropped as much have no spread, and need none.
    even = replace(FINE, ci_low=None, ci_high=None)
    assert verdict(even, max_drop=0.02, evidence="interval") == "pass"
    assert verdict(even, max_drop=0.01, evidence="interval") == "fail"


def test_both_demands_of_a_rule_are_checked() -> None:
    found = list(rule_checks(rule(max_drop="1%", min=0.5), FINE))
    assert [check.verdict for check in found] == ["fail", "pass"]


def test_a_stale_baseline_counts_for_drops_only() -> None:
    found = list(rule_checks(rule(max_drop="50%", min=0.5), FINE, "the judgments changed"))
    assert [(check.verdict, check.reason) for check in found] == [
        ("stale", "the judgments changed"),
        ("pass", "it is 0.7800"),
    ]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, {"pass"}),
        ({"failed": 1}, {"pass", "unhealthy"}),
        ({"failed": 50, "documents": 0}, {"pass", "unhealthy"}),
        ({"missing": 2}, {"pass"}),  # 5 % of 50 are 2
        ({"missing": 3}, {"pass", "unhealthy"}),
        ({"documents": 0}, {"pass", "unhealthy"}),
        ({"queries": 0, "documents": 0}, {"pass", "unhealthy"}),
    ],
)
def test_a_search_that_does_not_answer_is_unhealthy(
    changed: dict[str, Any], expected: set[str]
) -> None:
    found = health_checks(Health(), replace(ANSWERS, **changed), None)
    assert {check.verdict for check in found} == expected


def test_a_baseline_that_did_not_answer_makes_nothing_sure() -> None:
    found = list(health_checks(Health(), ANSWERS, replace(ANSWERS, run="old", failed=3)))
    [against] = [check for check in found if check.verdict != "pass"]
    assert against.verdict == "cannot_tell"
    assert against.rule.startswith("old: at most 0 of 50")


def test_budgets_are_shares_below_1_and_counts_from_1() -> None:
    share = health_checks(Health(max_failed=0.1), replace(ANSWERS, failed=5), None)
    assert overall(list(share)) == "pass"
    count = health_checks(Health(max_failed=4), replace(ANSWERS, failed=5), None)
    assert overall(list(count)) == "unhealthy"


def test_coverage_queries_and_time() -> None:
    def found(health: Health, **changed: Any) -> str:
        return overall(list(health_checks(health, replace(ANSWERS, **changed), None)))

    assert found(Health(min_judged=0.9)) == "pass"
    assert found(Health(min_judged=0.91)) == "cannot_tell"
    assert found(Health(min_judged=0.1), judged={10: None}) == "cannot_tell"
    assert found(Health(min_queries=51)) == "cannot_tell"
    assert found(Health(p95_ms=100.0)) == "cannot_tell"  # no times
    assert found(Health(p95_ms=100.0), p95_us=100_000.0) == "pass"
    assert found(Health(p95_ms=100.0), p95_us=100_001.0) == "fail"


def test_the_worst_decides_and_nothing_is_an_error() -> None:
    checks = [Check("r", verdict, "") for verdict in reversed(WORST_FIRST)]
    for place in range(1, len(checks) + 1):
        assert overall(checks[:place]) == checks[place - 1].verdict
    assert overall([]) == "error"
    assert EXIT_CODES == {
        "pass": 0, "fail": 1, "cannot_tell": 3, "unhealthy": 3, "stale": 3, "error": 4,
    }  # fmt: skip
