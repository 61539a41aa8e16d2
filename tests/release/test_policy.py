"""Policies: what is read, and what is refused with the fix."""

from __future__ import annotations

from typing import Any

import pytest

from karat.errors import InputError
from karat.measures import parse
from karat.release.policy import Drop, Health, policy_of

SMALLEST = {"rule": [{"measure": "nDCG@10", "max_drop": "5%"}]}


def test_the_smallest_policy() -> None:
    policy = policy_of(SMALLEST)
    [rule] = policy.rules
    assert rule.measure == parse("nDCG@10")
    assert rule.max_drop == Drop(0.05, relative=True)
    assert (rule.evidence, rule.least, rule.attribute, rule.value) == ("observed", None, None, None)
    assert policy.needs_baseline
    assert policy.health == Health()
    assert (rule.drop_text, rule.least_text) == ("drops by at most 5%", "")


def test_everything_a_rule_may_say() -> None:
    policy = policy_of(
        {
            "rule": [
                {"measure": "MRR", "max_drop": 0.01, "evidence": "interval", "each": "class"},
                {"measure": "P@5", "min": 0.85, "slice": "class = name"},
            ],
            "health": {"max_failed": 0.02, "min_judged": 0.9, "min_queries": 50, "p95_ms": 200},
            "known_failure": [
                {"query": "q12", "min": 0.5},
                {"query_id": 7, "measure": "P@5", "min": 1, "reason": "no synonyms"},
            ],
        },
        "gate.toml",
    )
    first, second = policy.rules
    assert first.max_drop == Drop(0.01, relative=False)
    assert (first.attribute, first.value) == ("class", None)
    assert (second.attribute, second.value, second.least) == ("class", "name", 0.85)
    assert policy.attributes == ["class"]
    assert policy.health == Health(0.02, min_judged=0.9, min_queries=50, max_p95_ms=200.0)
    assert [(k.query_id, str(k.measure), k.least) for k in policy.known_failures] == [
        ("q12", "RR", 0.5),
        ("7", "P@5", 1.0),
    ]
    assert [known.reason for known in policy.known_failures] == ["", "no synonyms"]
    assert policy.notes == ("gate.toml: the key query of [[known_failure]] is called query_id now",)
    assert list(map(str, policy.measures)) == ["RR", "P@5"]


def test_shares_of_health_may_be_percentages() -> None:
    health = {"max_failed": "1%", "max_missing": 2, "max_empty": "2.5 %", "max_duplicates": 0}
    health |= {"min_judged": "80%", "max_p95_ms": 200, "max_p95_increase": "150%"}
    policy = policy_of(SMALLEST | {"health": health})
    assert policy.health == Health(
        max_failed=0.01,
        max_missing=2.0,
        max_empty=0.025,
        max_duplicates=0.0,
        min_judged=0.8,
        max_p95_ms=200.0,
        max_p95_increase=Drop(1.5, relative=True),
    )
    absolute = policy_of(
        {"rule": [{"measure": "AP", "min": 0.1}], "health": {"max_p95_increase": 5}}
    )
    assert absolute.health.max_p95_increase == Drop(5.0, relative=False)
    assert absolute.needs_baseline


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ({}, "has no rule, so it would pass anything"),
        ({"rules": []}, "did you mean rule"),
        ({"rule": {"measure": "AP", "min": 1}}, r"\[\[rule\]\]"),
        ({"rule": ["AP"]}, "not a table"),
        ({"rule": [{"max_drop": "5%"}]}, "has no measure"),
        ({"rule": [{"measure": "nDGC@10", "min": 1}]}, "nDCG"),
        ({"rule": [{"measure": "GMAP", "min": 1}]}, "not a mean"),
        ({"rule": [{"measure": "Judged@3", "min": 1}]}, "with a direction"),
        ({"rule": [{"measure": "AP"}]}, "has no condition"),
        ({"rule": [{"measure": "AP", "max_dorp": 1}]}, "did you mean max_drop"),
        ({"rule": [{"measure": "AP", "max_drop": "5"}]}, '"5%" of the baseline'),
        ({"rule": [{"measure": "AP", "max_drop": "500%"}]}, '"5%" of the baseline'),
        ({"rule": [{"measure": "AP", "max_drop": -0.1}]}, "below 0"),
        ({"rule": [{"measure": "AP", "max_drop": float("nan")}]}, "not a number"),
        ({"rule": [{"measure": "AP", "max_drop": True}]}, "not a number"),
        ({"rule": [{"measure": "AP", "max_drop": 5}]}, 'max_drop = "5%"'),
        ({"rule": [{"measure": "AP", "min": 85}]}, "is 1 at most"),
        ({"rule": [{"measure": "AP", "min": "high"}]}, "not a number"),
        # What can never fail is no demand.
        ({"rule": [{"measure": "AP", "max_drop": "100%"}]}, "always holds"),
        ({"rule": [{"measure": "DCG", "max_drop": "100%"}]}, "always holds"),
        ({"rule": [{"measure": "AP", "max_drop": 1}]}, "no drop goes beyond 1"),
        ({"rule": [{"measure": "AP", "min": 0}]}, "AP is 0 at least, so 0 always holds"),
        ({"rule": [{"measure": "DCG@10", "min": -5}]}, "so -5 always holds"),
        (SMALLEST | {"health": {"min_silent": 1.5}}, "out of its range"),
        ({"rule": [{"measure": "AP", "max": 0.5}]}, "more of AP is better"),
        ({"rule": [{"measure": "NumNonrelRet", "min": 3}]}, "not a mean"),
        ({"rule": [{"measure": "AP", "min": 0.1, "evidence": "feeling"}]}, "observed, interval"),
        ({"rule": [{"measure": "AP", "min": 0.1, "slice": "class"}]}, '"class=name"'),
        ({"rule": [{"measure": "AP", "min": 0.1, "slice": "a=b", "each": "a"}]}, "both"),
        (SMALLEST | {"health": {"max_fail": 0}}, "did you mean max_failed"),
        (SMALLEST | {"health": {"min_judged": 2}}, "out of its range"),
        (SMALLEST | {"health": {"p95_ms": -1}}, "max_p95_ms is -1, out of its range"),
        (SMALLEST | {"health": {"p95_ms": 1, "max_p95_ms": 1}}, "leave out p95_ms"),
        (SMALLEST | {"health": {"max_empty": -1}}, "out of its range"),
        (SMALLEST | {"health": {"max_empty": "100%"}}, "always holds"),
        (SMALLEST | {"health": {"max_duplicates": "some"}}, "not a number"),
        (SMALLEST | {"health": {"min_queries": "5%"}}, "not a number"),
        (SMALLEST | {"health": {"max_p95_increase": "twice"}}, "in milliseconds"),
        (SMALLEST | {"health": {"max_p95_increase": -3}}, "out of its range"),
        (SMALLEST | {"health": {"max_p95_increase": True}}, "not a number"),
        (SMALLEST | {"known_failure": [{"query": "q1"}]}, "the value at which it passes"),
        (SMALLEST | {"known_failure": [{"min": 1}]}, "has no query_id"),
        (SMALLEST | {"known_failure": [{"query": "a", "query_id": "a", "min": 1}]}, "has both"),
        (SMALLEST | {"known_failure": [{"query_id": "a", "min": 1, "reason": 1}]}, "not text"),
    ],
)
def test_what_is_no_policy_is_told(written: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says) as error:
        policy_of(written, "gate.toml")
    assert "gate.toml" in str(error.value)


def test_policies_that_differ_in_any_digit_differ() -> None:
    def content(**written: Any) -> object:
        return policy_of({"rule": [{"measure": "AP"} | written]}).content

    assert content(min=0.85) == content(min=0.85)
    others = [
        content(min=0.85),
        content(min=0.8500001),
        content(min=0.8500004),
        content(max_drop="5%"),
        content(max_drop=0.05),
        content(max_drop=0.050000001),
        content(max_drop=0.05, evidence="interval"),
        content(max_drop=0.05, each="a"),
        content(max_drop=0.05, slice="a=b"),
    ]
    assert len(set(map(repr, others))) == len(others)


def test_judgments_in_the_place_of_a_policy_are_recognised() -> None:
    with pytest.raises(InputError, match=r"not a policy: its keys are 'q1'.*\n.*comes first"):
        policy_of({"q1": {"a": 1}})
