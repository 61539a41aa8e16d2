"""Whether a search answered as it must."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from karat.release.gate import overall
from karat.release.health import Answers, health_checks, unheld
from karat.release.policy import Drop, Health
from karat.tables.release.gate import Check

ANSWERS = Answers("new", queries=50, failed=0, missing=0, documents=500, judged={10: 0.9})


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
    assert against.rule == "baseline old: queries without an answer: none allowed"
    assert against.reason == "3 of 50 got no answer"


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
    assert found(Health(max_p95_ms=100.0)) == "cannot_tell"  # no times
    assert (
        found(
            Health(max_p95_ms=100.0),
            p95_us=100_000.0,
            times_us=dict.fromkeys(map(str, range(50)), 1e5),
        )
        == "pass"
    )
    assert (
        found(
            Health(max_p95_ms=100.0),
            p95_us=100_001.0,
            times_us=dict.fromkeys(map(str, range(50)), 100_001.0),
        )
        == "fail"
    )


def test_a_run_without_any_query_says_so_and_nothing_else() -> None:
    empty = replace(ANSWERS, missing=50, documents=0, nothing="the run file is empty")
    [check] = health_checks(Health(), empty, None)
    assert (check.verdict, check.reason) == ("unhealthy", "the run file is empty")
    found = list(health_checks(Health(), ANSWERS, replace(empty, run="old")))
    assert [(c.rule, c.verdict) for c in found if c.verdict != "pass"] == [
        ("baseline old: some document is returned", "cannot_tell")
    ]


def test_the_most_frequent_errors_are_named() -> None:
    errors = {"refused": 9, "time  out\nafter 3 s": 30, "a": 3, "b": 2, "c": 1}
    check = next(health_checks(Health(), replace(ANSWERS, failed=45, errors=errors), None))
    assert check.rule == "queries without an answer: none allowed"
    assert check.reason == (
        "45 of 50 got no answer (30 × time out after 3 s, 9 × refused, 3 × a, 3 × other)"
    )
    budget = next(health_checks(Health(max_failed=0.04), ANSWERS, None))
    assert budget.rule == "at most 2 of 50 queries without an answer"
    assert budget.reason == "all were answered"


def in_time(quick: int, slow: int = 0, **changed: Any) -> tuple[str, str, int | None]:
    """A budget of 100 ms, and times of 1 ms and 1 s; p95 is the 95th of 100, 48th of 50, ...."""
    times = [1e3] * quick + [1e6] * slow
    p95 = times[math.ceil(0.95 * len(times)) - 1]
    by_query = {str(n): time for n, time in enumerate(times)}
    answers = replace(ANSWERS, times_us=by_query, p95_us=p95, asked=50, **changed)
    *_, check = health_checks(Health(max_p95_ms=100.0), answers, None)
    return check.verdict, check.reason, check.n


def test_answers_without_a_time_may_have_taken_too_long() -> None:
    # 95 % of 50 are 47.5: 48 quick ones suffice, whatever the other two took.
    assert in_time(48) == ("pass", "p95 is 1 ms over 48 timed answers of 50", 48)
    said = "p95 is 1 ms over 47 timed answers of 50; the others may have taken longer"
    assert in_time(47) == ("cannot_tell", said, 47)
    said = "p95 is 1 ms over 1 timed answer of 50; the others may have taken longer"
    assert in_time(1) == ("cannot_tell", said, 1)
    assert in_time(50) == ("pass", "p95 is 1 ms", 50)
    assert in_time(47, 3) == ("fail", "p95 is 1000 ms", 50)
    # A search that returns nothing does so quickly.
    assert in_time(50, documents=0)[0] == "cannot_tell"


def timed(before: list[float], after: list[float], limit: Drop, **changed: Any) -> Check:
    """The check of an increase between two runs timed on the same queries, in milliseconds."""
    old, new = (
        replace(ANSWERS, run=run, times_us={str(n): 1000 * ms for n, ms in enumerate(times)})
        for run, times in (("old", before), ("new", after))
    )
    asked = Health(max_p95_increase=limit)
    *_, check = health_checks(asked, replace(new, **changed), old)
    return check


def spread(slowest: float, n: int = 100) -> list[float]:
    """Times from 1/n of the slowest up to it, so that the 95th percentile is .95 of it."""
    return [slowest * (place + 1) / n for place in range(n)]


HALF = Drop(0.5, relative=True)


def test_a_search_that_is_surely_slower_fails() -> None:
    check = timed(spread(40), spread(160), HALF)
    assert check.rule == "p95 rises by at most 50%"
    # 95 of 100 are at most 38 ms before and 152 ms after: every draw gives the factor 4.
    said = "p95 went from 38 ms to 152 ms: +300 % (95 %: +300 % to +300 %), allowed 50 %"
    assert (check.verdict, check.reason) == ("fail", said)
    assert (check.baseline_value, check.candidate_value, check.limit) == (38.0, 152.0, 0.5)
    assert (check.drop, check.n) == (pytest.approx(3.0), 100)
    assert timed(spread(40), spread(59), HALF).verdict == "pass"
    assert timed(spread(40), spread(40), Drop(0.0, relative=True)).verdict == "pass"
    assert timed(spread(40), spread(20), HALF).reason.startswith("p95 went from 38 ms to 19 ms: −")


def test_an_increase_may_be_in_milliseconds() -> None:
    check = timed(spread(40), spread(160), Drop(50.0, relative=False))
    assert (check.verdict, check.rule) == ("fail", "p95 rises by at most 50 ms")
    assert check.reason.startswith("p95 went from 38 ms to 152 ms: +114 ms (95 %: +")
    assert timed(spread(40), spread(160), Drop(200.0, relative=False)).verdict == "pass"


def test_an_increase_that_may_be_chance_cannot_tell() -> None:
    # Five slow answers of 100 are beyond the 95th percentile, a sixth reaches it: half of the
    # draws have six or more.
    quick, slow = [10.0] * 94, [100.0] * 6
    check = timed([10.0] * 100, quick + slow, HALF)
    assert check.verdict == "cannot_tell"
    assert "+900 % (95 %: +0 % to +900 %)" in check.reason


def test_an_increase_needs_100_queries_timed_in_both() -> None:
    check = timed(spread(40, 99), spread(160, 99), HALF)
    assert check.verdict == "cannot_tell"
    assert check.reason == ("99 queries are timed in both runs; a 95th percentile needs 100")
    assert timed([], spread(40), HALF).reason == "old has no times"
    assert timed([], [], HALF).reason == "old and new have no times"
    assert timed([0.0] * 100, spread(40), HALF).verdict == "cannot_tell"


def test_queries_without_a_time_may_have_taken_longer() -> None:
    # Of 120 timed before, 20 are not now: were they slow, p95 would be theirs.
    check = timed(spread(40, 120), [40.0] * 100, HALF)
    assert check.verdict == "cannot_tell"
    assert check.reason.endswith("20 queries without a time may have taken longer")
    assert timed(spread(40, 120), spread(40, 120)[:118], HALF).verdict == "pass"


@pytest.mark.parametrize(
    ("rule", "changed", "verdict", "reason"),
    [
        ({"max_empty": 0.1}, {"empty": 5}, "pass", "5 of 50 have no results"),
        ({"max_empty": 0.1}, {"empty": 6}, "fail", "6 of 50 have no results"),
        ({"max_empty": 0}, {}, "pass", "all have results"),
        (
            {"max_empty": 1},
            {"empty": 1, "missing": 1},
            "cannot_tell",
            "1 of 50 have no results, and 1 is not in the run, which may mean the same",
        ),
        ({"max_duplicates": 0}, {}, "pass", "none has a duplicate document"),
        ({"max_duplicates": 0}, {"repeated": 50}, "fail", "50 of 50 have a duplicate document"),
        ({"max_duplicates": 2}, {"repeated": 2}, "pass", "2 of 50 have a duplicate document"),
    ],
)
def test_empty_and_doubled_answers_have_budgets(
    rule: dict[str, float], changed: dict[str, int], verdict: str, reason: str
) -> None:
    *_, check = health_checks(Health(**rule), replace(ANSWERS, **changed), None)  # type: ignore[arg-type]
    assert (check.verdict, check.reason) == (verdict, reason)


def test_empty_and_doubled_answers_without_a_budget_are_said() -> None:
    new = replace(ANSWERS, empty=12, repeated=3)
    assert list(unheld(Health(), new, ANSWERS)) == [
        "3 queries returned a document more than once; no rule checks it (max_duplicates)",
        "12 queries have no results (baseline: 0); no rule checks it (max_empty)",
    ]
    assert list(unheld(Health(max_empty=0.5, max_duplicates=0.5), new, ANSWERS)) == []


def marked(**counts: int) -> dict[str, str]:
    return {f"{state}{n}": state for state, count in counts.items() for n in range(count)}


@pytest.mark.parametrize(
    ("states", "verdict", "reason"),
    [
        ({"empty": 8, "missing": 1, "ok": 1}, "pass", "9 of 10 did"),
        ({"empty": 8, "ok": 2}, "fail", "8 of 10 did"),
        # Nine of nine, or of ten: the one without an answer decides nothing.
        ({"empty": 9, "failed": 1}, "pass", "9 of 9 did"),
        ({"empty": 8, "failed": 2}, "cannot_tell", "8 of 8 did, and 2 got no answer"),
        ({"failed": 2}, "cannot_tell", "none of them was answered"),
        ({}, "cannot_tell", "no query is marked no_answer"),
    ],
)
def test_silence_where_there_is_no_right_answer(
    states: dict[str, int], verdict: str, reason: str
) -> None:
    answers = replace(ANSWERS, marked=marked(**states))
    *_, check = health_checks(Health(min_silent=0.9), answers, None)
    assert (check.verdict, check.reason) == (verdict, reason)
    assert check.rule == "at least 90 % of the queries without a right answer get nothing"
    *_, dead = health_checks(Health(min_silent=0.9), replace(answers, documents=0), None)
    assert dead.verdict == "cannot_tell"


def test_what_got_worse_unseen_is_said() -> None:
    old = replace(ANSWERS, p95_us=60.0, marked={"a": "empty", "b": "ok", "c": "empty"})
    new = replace(ANSWERS, p95_us=51_000.0, marked={"a": "ok", "b": "ok", "c": "failed"})
    answered = "2 of 2 queries without a right answer are answered now (baseline: 1)"
    assert list(unheld(Health(), new, old)) == [
        "p95 went from 0.06 ms to 51 ms; no rule checks it (max_p95_ms, max_p95_increase)",
        f"{answered}; no rule checks it (min_silent)",
    ]
    assert list(unheld(Health(max_p95_ms=60.0, min_silent=0.0), new, old)) == [answered]
    assert list(unheld(Health(), new, replace(old, p95_us=25_500.0, marked={}))) == []
    assert list(unheld(Health(), new, None)) == []
    assert list(unheld(Health(), replace(old, p95_us=999.0), old)) == []  # under a millisecond


def test_what_is_said_of_all_queries_is_said_once() -> None:
    def broken(**changed: Any) -> list[str]:
        found = health_checks(Health(), replace(ANSWERS, documents=0, **changed), None)
        return [f"{check.rule}: {check.reason}" for check in found if check.verdict != "pass"]

    assert broken(failed=50) == ["queries without an answer: none allowed: 50 of 50 got no answer"]
    assert broken() == ["some document is returned: it returned no document for any query"]
    assert len(broken(failed=49)) == 2
    one = health_checks(Health(max_missing=0), replace(ANSWERS, missing=1), None)
    said = [(check.rule, check.reason) for check in one if check.verdict != "pass"]
    assert said == [("queries not in the run: none allowed", "1 of 50 is not in the run")]
