"""Points: how their queries were answered, and whether they are worth anything."""

from __future__ import annotations

from dataclasses import replace

import pytest

from karat.tables.release.history import Answered, Point, answered_by
from karat.tables.results import Result


def result(run: str, measure: str = "AP", value: float | None = 0.5, **more: str) -> Result:
    ends = (None, None, None) if value is None else (value - 0.1, value + 0.1, "t")
    return Result(
        run, measure, value, "mean", *ends, 30, 0, 0, 0, 0, 0, None, None, None, **more
    )  # fmt: skip


def test_what_became_of_the_queries_is_kept() -> None:
    """n leaves out what failed and what has no value; what is empty or missing is in it."""
    row = replace(result("a"), n=66, failed=12, undefined=2, missing=3, empty=1)
    thin = replace(row, measure="RR", n=60, undefined=8, missing=1, empty=0)
    sliced = replace(row, attribute="class", slice="x", failed=1)
    answered = answered_by([thin, row, sliced])
    assert answered == Answered(80, 12, 3, 1)
    assert answered.worthless
    as_trec = [replace(row, failed=0, undefined=0, empty=0)]
    assert answered_by(as_trec, missing_not_in_n=True) == Answered(69, 0, 3, 0)


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
    point = Point("2026-03-01T02:00:00Z", "gate", "a", None, verdict, "", "1", (), {})
    assert point.worthless is worthless
