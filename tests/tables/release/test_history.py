"""Points: made of results and of gates."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from karat.tables.release.gate import Check, Gate, KnownFailure
from karat.tables.release.history import HASHES, Answered, Value, point_of, point_of_gate
from karat.tables.results import Result, Results

TIME = "2026-03-01T02:00:00Z"


def result(run: str, measure: str = "AP", value: float | None = 0.5, **more: str) -> Result:
    ends = (None, None, None) if value is None else (value - 0.1, value + 0.1, "t")
    return Result(
        run, measure, value, "mean", *ends, 30, 0, 0, 0, 0, 0, None, None, None, **more
    )  # fmt: skip


def test_a_point_is_of_one_run_with_its_slices() -> None:
    sliced = result("a", value=0.25, attribute="class", slice="name")
    results = Results([result("a"), result("b")], slices=[sliced])
    point = point_of(results, run="a", time=TIME, hashes={"qrels": "x"}, karat="1", commit="c")
    assert point.values == (
        Value("AP", 0.5, 0.4, 0.6, 30),
        Value("AP", 0.25, 0.15, 0.35, 30, "class", "name"),
    )
    assert point.hashes == {"queries": None, "qrels": "x", "run": None, "corpus": None}
    held = json.loads(json.dumps(point.to_dict(), allow_nan=False))
    assert (held["karat_history"], held["kind"], held["verdict"]) == (1, "evaluate", None)
    assert [row["value"] for row in held["values"]] == [0.5]
    assert [row["slice"] for row in held["slices"]] == ["name"]
    assert set(held["hashes"]) == set(HASHES)


def gate() -> Gate:
    checks = [
        Check("AP drops", "fail", "it does", "AP", None, None, 30, 0.6, 0.5, 0.1, 0.0, 0.2),
        Check("AP is at least 0.4", "pass", "it is", "AP", n=30, candidate_value=0.5),
        Check("all answer", "pass", "they do", n=30, candidate_value=30.0),
        Check("RR drops", "error", "no value", "RR"),
    ]
    return Gate("fail", "old", "new", "gate.toml", checks, hashes={"candidate": "r", "qrels": "q"})


def test_a_gate_gives_the_values_of_its_candidate() -> None:
    """The interval of a check is that of the drop, not of the value."""
    point = point_of_gate(
        replace(gate(), results=[result("new")]), time=TIME, karat="1", corpus="v2"
    )
    assert point.values == (Value("AP", 0.5, 0.4, 0.6, 30),)
    assert point.answered == Answered(30, 0, 0, 0)
    assert (point.run, point.verdict, point.kind) == ("new", "fail", "gate")
    assert point.hashes == {"queries": None, "qrels": "q", "run": "r", "corpus": "v2"}


def test_which_queries_a_gate_leaves_out_is_one_of_its_rules() -> None:
    def rules(*ids: str, given: str = "") -> str:
        known = [KnownFailure(query, "AP", None, False) for query in ids]
        held = replace(gate(), known_failures=known)
        return point_of_gate(held, time=TIME, karat="1", rules=given).rules

    assert rules() == ""
    # sha256 of "2:q12:q2", by sha256sum
    assert rules("q1", "q2") == "without=7e872c2d94576bf4"
    assert rules("q2", "q1", "q1", given="rel=2") == "rel=2 without=7e872c2d94576bf4"
    assert len({rules("q1", "q2"), rules("q1"), rules("q1", "q3"), rules("q12:q2")}) == 4


def test_what_became_of_the_queries_is_kept() -> None:
    """n leaves out what failed and what has no value; what is empty or missing is in it."""
    row = replace(result("a"), n=66, failed=12, undefined=2, missing=3, empty=1)
    thin = replace(row, measure="RR", n=60, undefined=8, missing=1, empty=0)
    sliced = replace(row, attribute="class", slice="x", failed=1)
    point = point_of(
        Results([thin, row], slices=[sliced]), run="a", time=TIME, hashes={}, karat="1"
    )  # fmt: skip
    assert point.answered == Answered(80, 12, 3, 1)
    assert point.worthless
    assert point.to_dict()["answered"] == {"queries": 80, "failed": 12, "missing": 3, "empty": 1}
    as_trec = point_of(
        Results([replace(row, failed=0, undefined=0, empty=0)]),
        run="a", time=TIME, hashes={}, karat="1", rules="compat=trec_eval-9",
    )  # fmt: skip
    assert as_trec.answered == Answered(69, 0, 3, 0), "trec_eval leaves what is missing out of n"


@pytest.mark.parametrize(
    ("counts", "worthless", "trouble"),
    [
        ((80, 0, 0, 5), False, None),
        ((80, 12, 0, 0), True, "12 of 80 queries got no answer"),
        ((80, 1, 3, 0), True, "1 of 80 queries got no answer, 3 are not in the run"),
        ((80, 0, 1, 0), False, "1 of 80 queries is not in the run"),
        ((80, 80, 0, 0), True, "80 of 80 queries got no answer"),
        ((1, 1, 0, 0), True, "1 of 1 query got no answer"),
        ((1200, 0, 200, 1000), True, "no document for any of 1,200 queries"),
        ((0, 0, 0, 0), False, None),
    ],
)
def test_what_went_wrong_is_said(
    counts: tuple[int, int, int, int], worthless: bool, trouble: str | None
) -> None:
    answered = Answered(*counts)
    assert (answered.worthless, answered.trouble) == (worthless, trouble)


@pytest.mark.parametrize(
    ("verdict", "worthless"),
    [("unhealthy", True), ("error", True), ("stale", False), ("fail", False), ("pass", False)],
)
def test_the_verdicts_after_which_a_number_says_nothing(verdict: str, worthless: bool) -> None:
    point = replace(point_of_gate(gate(), time=TIME, karat="1"), verdict=verdict)
    assert point.worthless is worthless
