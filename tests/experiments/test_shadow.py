"""Shadow traffic: numbers by hand, noise that is no difference, verdicts that fail closed."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from tests.shadow_traffic import Answer, noisy, observed

from karat.experiments.shadow import analyze, limits_text, side_digest
from karat.tables.experiments.shadow import (
    Increase,
    ShadowCheck,
    ShadowDifference,
    ShadowLimits,
    ShadowResult,
    Side,
)

LIMITS = ShadowLimits()
A, B = ["a", "b", "c"], ["b", "a", "d"]


def row(result: ShadowResult, what: str) -> ShadowDifference:
    return next(each for each in result.differences if each.what == what)


def check(result: ShadowResult, rule: str) -> ShadowCheck:
    return next(each for each in result.checks if each.rule == rule)


def of(**sides: list[Answer]) -> ShadowResult:
    return analyze(observed(sides), LIMITS, k=3)  # type: ignore[arg-type]


def test_distances_by_hand() -> None:
    found = of(baseline=[A, A, A], candidate=[A, B, ["c", "b", "a"]])
    # a b c against b a d: 2 of 3 in common; a and b move by 1, c and d are at 4 in the other:
    # (1 + 1 + 1 + 1) / 4. Against c b a: all in common; (2 + 0 + 2) / 3.
    assert row(found, "overlap@3").value == pytest.approx((1 + 2 / 3 + 1) / 3)
    assert row(found, "displacement@3").value == pytest.approx((0 + 1 + 4 / 3) / 3)
    assert {kind: n for kind, n in found.groups[0].kinds.items() if n} == {
        "other_documents": 1, "reordered": 1, "same": 1,
    }  # fmt: skip
    bars = {bar.low: bar.queries for bar in found.histogram if bar.queries}
    assert bars == {0.6: 1, 1.0: 2}  # 2/3 is from .6 to .7


def test_failures_by_hand() -> None:
    sides: dict[Side, list[Answer]] = {
        "baseline": [A] * 8 + ["timeout after 1 s", A],
        "candidate": ["refused"] * 5 + ["timeout after 1 s", [], A, A, A],
    }
    found = analyze(observed(sides), LIMITS)
    errors, timeouts = row(found, "errors"), row(found, "timeouts")
    assert errors.value == pytest.approx((6 - 1) / 10)
    # McNemar's exact test of 6 against 1: 2 (C(7,0) + C(7,1)) / 2^7 = 16/128.
    assert errors.p == pytest.approx(0.125)
    assert (timeouts.value, timeouts.p) == (0.0, 1.0)
    # Both answered requests 7, 8 and 10: one of three loses its results.
    assert row(found, "zero_results_gained").value == pytest.approx(1 / 3)
    assert row(found, "zero_results_lost").value == 0
    failed = {side.side: (side.failed, side.timeouts, side.empty) for side in found.sides}
    assert failed == {"baseline": (1, 1, 0), "candidate": (6, 1, 1)}


def test_requests_of_one_query_are_averaged() -> None:
    sides: dict[Side, list[Answer]] = {
        "baseline": [A] * 5, "candidate": ["x", A, A, A, "x"]
    }  # fmt: skip
    found = analyze(observed(sides, queries=["q", "q", "q", "q", "r"]), LIMITS)
    assert row(found, "errors").value == pytest.approx((1 / 4 + 1) / 2)
    assert (found.requests, found.queries, row(found, "errors").n) == (5, 2, 2)


def test_one_query_asked_a_thousand_times_is_one() -> None:
    sides: dict[Side, list[Answer]] = {"baseline": [A] * 1000, "candidate": [A] * 1000}
    found = analyze(observed(sides, queries=["q"] * 1000), LIMITS)
    assert (found.verdict, found.exit_code) == ("cannot_tell", 3)
    errors = check(found, "max_errors")
    # Clopper and Pearson, 0 of 1: 1 - 0.025.
    assert (errors.value, errors.ci_low, errors.ci_high) == (0, 0, pytest.approx(0.975))
    assert check(found, "max_p95_increase").verdict == "cannot_tell"


def test_the_head_counts_by_its_traffic() -> None:
    """A query that is half of the traffic and always fails is not one query of a thousand."""
    sides: dict[Side, list[Answer]] = {"baseline": [A] * 1000, "candidate": ["x"] * 500 + [A] * 500}
    queries = ["head"] * 500 + [f"q{at}" for at in range(500)]
    errors = check(analyze(observed(sides, queries=queries), LIMITS), "max_errors")
    assert (errors.value, errors.verdict) == (0.5, "fail")


def test_an_engine_is_not_different_from_itself() -> None:
    assert false_alarms(20) <= 4


@pytest.mark.deep
def test_an_engine_is_not_different_from_itself_in_a_hundred_replays() -> None:
    assert false_alarms(100) <= 10


def false_alarms(replays: int) -> int:
    """In how many replays a noisy engine, as baseline, candidate and again, differs at all."""
    found = 0
    for replay in range(replays):
        draws = Random(replay)
        sides: dict[Side, list[Answer]] = {
            side: [
                "down" if draws.random() < 0.02 else [] if draws.random() < 0.03 else noisy(draws)
                for _ in range(240)
            ]
            for side in ("baseline", "candidate", "again")
        }
        times: Any = {
            side: [round(1000 * draws.lognormvariate(1, 0.5)) for _ in range(240)] for side in sides
        }
        queries = [f"q{at % 120}" for at in range(240)]
        result = analyze(observed(sides, queries=queries, times_us=times), LIMITS)
        assert len([each for each in result.differences if each.p is not None]) == 10
        found += any(each.different for each in result.differences)
    return found


def test_a_change_beyond_the_noise_is_different() -> None:
    draws = Random(1)
    sides: dict[Side, list[Answer]] = {
        "baseline": [noisy(draws) for _ in range(60)],
        "candidate": [noisy(draws, tied=6) for _ in range(60)],
        "again": [noisy(draws) for _ in range(60)],
    }
    overlap = row(analyze(observed(sides), LIMITS), "overlap@10")
    assert overlap.different
    assert overlap.value is not None
    assert overlap.noise is not None
    assert overlap.beyond_noise == pytest.approx(overlap.value - overlap.noise)
    once = analyze(observed({side: sides[side] for side in ("baseline", "candidate")}), LIMITS)  # type: ignore[index]
    assert row(once, "overlap@10").different is None
    assert "asked once" in once.notes[0]


def good(n: int = 400) -> dict[Side, list[Answer]]:
    return {"baseline": [A] * n, "candidate": [A] * n}


def test_an_equal_candidate_passes() -> None:
    found = analyze(observed(good()), LIMITS)
    assert (found.verdict, found.exit_code, found.reason) == ("pass", 0, "within all 7 limits")
    assert not found.most_changed


def test_a_dead_candidate_fails() -> None:
    found = analyze(observed(good() | {"candidate": ["refused"] * 400}), LIMITS)
    assert (found.verdict, found.exit_code) == ("fail", 1)
    assert found.reason.startswith("100 % of the candidate's requests failed; the limit is 1 %")
    assert check(found, "max_p95_increase").verdict == "cannot_tell"
    assert found.differences[0].what == "errors"


def test_a_slow_candidate_fails() -> None:
    times: Any = {"candidate": [2000 + at % 1000 for at in range(400)]}
    found = analyze(observed(good(), times_us=times), LIMITS)
    assert (found.verdict, check(found, "max_p95_increase").verdict) == ("fail", "fail")
    assert row(found, "p95").different
    in_ms = replace(LIMITS, max_p95_increase=Increase(0.5, relative=False), max_p95_ms=10.0)
    again = analyze(observed(good(), times_us=times), in_ms)
    assert check(again, "max_p95_increase").verdict == "fail"
    assert check(again, "max_p95_ms").verdict == "pass"


def test_lost_results_fail() -> None:
    found = analyze(observed(good() | {"candidate": [[]] * 40 + [A] * 360}), LIMITS)
    assert found.reason.startswith("10 % of the requests lose all their results")
    assert found.groups[0].kinds["lost_results"] == 40


def test_few_requests_cannot_tell() -> None:
    found = analyze(observed(good(100)), LIMITS)
    assert found.verdict == "cannot_tell"
    assert "at least 200 are needed" in check(found, "min_requests").reason
    # ln(.025) / ln(1 - .01) = 367.04
    assert check(found, "max_errors").reason.endswith("ask about 368 different queries")


def test_missing_evidence_never_passes() -> None:
    nothing = analyze(observed({"baseline": [], "candidate": []}), LIMITS)
    assert {each.verdict for each in nothing.checks} >= {"cannot_tell"}
    assert nothing.verdict == "cannot_tell"
    dropped = analyze(observed(good(), dropped=100), LIMITS)
    assert check(dropped, "max_dropped").verdict == "cannot_tell"
    untimed: Any = {"candidate": [None] * 400}
    assert analyze(observed(good(), times_us=untimed), LIMITS).verdict == "cannot_tell"
    half = analyze(observed(good() | {"candidate": [None] * 200 + [A] * 200}), LIMITS)
    assert check(half, "min_answered").verdict == "cannot_tell"
    assert check(half, "min_answered").value == 0.5
    none = ShadowLimits(None, None, None, None, None, None, None, None)
    assert analyze(observed(good()), none).reason == "no limit is set"


def test_late_requests_do_not_pass() -> None:
    late = [60_000] * 40 + [0] * 360
    found = analyze(observed(good(), late_us=late), LIMITS)
    assert (found.verdict, found.late) == ("cannot_tell", 40)
    assert "sent late" in check(found, "max_p95_increase").reason


def test_other_answers_have_to_be_explained() -> None:
    sides = good() | {"candidate": [["x", "y", "z"]] * 400}
    found = analyze(observed(sides), LIMITS)
    assert (found.verdict, check(found, "min_overlap").verdict) == ("cannot_tell", "cannot_tell")
    explained = analyze(observed(sides), LIMITS, explained="a new index")
    assert explained.verdict == "pass"
    assert "which is explained: a new index" in check(explained, "min_overlap").reason


def test_cold_requests_count_by_themselves() -> None:
    sides = good() | {"candidate": ["x"] * 10 + [A] * 390}
    found = analyze(observed(sides, phase=lambda at: "cold" if at <= 10 else "warm"), LIMITS)
    assert (found.requests, check(found, "max_errors").value) == (390, 0)
    cold = [each for each in found.by_phase if each.phase == "cold"]
    assert [(each.side, each.failed) for each in cold] == [("baseline", 0), ("candidate", 10)]


def test_changed_queries_and_what_to_judge() -> None:
    sides: dict[Side, list[Answer]] = {
        "baseline": [A, A, A, A], "candidate": [B, B, ["x", "b", "c"], A],
    }  # fmt: skip
    found = analyze(
        observed(sides, queries=["often", "often", "once", "same"], query_ids=list("1123")),
        LIMITS, k=3, judged={("1", "d"), ("2", "a")}, judge_next=9,
    )  # fmt: skip
    assert [(q.query, q.requests, q.kind) for q in found.most_changed] == [
        ("often", 2, "other_documents"), ("once", 1, "other_documents"),
    ]  # fmt: skip
    pairs = [(p.query, p.doc_id, p.baseline_rank, p.candidate_rank) for p in found.judge_next]
    assert pairs == [
        ("often", "b", 2, 1), ("often", "a", 1, 2), ("often", "c", 3, None), ("once", "x", None, 1),
    ]  # fmt: skip


def test_hashes() -> None:
    about: Any = {"baseline": {"engine": "a", "asked_at": "now"}, "candidate": {"asked_at": "now"}}
    found = analyze(observed(good(5), about=about), LIMITS)
    assert found.hashes["candidate"] is None
    assert found.hashes["baseline"] == side_digest({"engine": "a", "asked_at": "later"})
    assert side_digest({"engine": "a", "parameters.k": "1"}) != found.hashes["baseline"]
    assert (
        found.hashes["policy"]
        != analyze(observed(good(5)), replace(LIMITS, min_requests=1)).hashes["policy"]
    )
    other = analyze(observed(good(5), queries=list("edcba")), LIMITS).hashes["queries"]
    assert other == analyze(observed(good(5), queries=list("abcde")), LIMITS).hashes["queries"]
    assert other != found.hashes["queries"]


def test_limits_in_a_line() -> None:
    assert limits_text(ShadowLimits(max_p95_increase=Increase(5, relative=False))) == (
        "min_requests 200, min_answered 95 %, max_dropped 5 %, max_errors 1 %, "
        "max_p95_increase 5 ms, max_zero_gained 1 %, min_overlap 0.5"
    )
