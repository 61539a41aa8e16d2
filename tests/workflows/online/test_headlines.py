"""The numbers of the home page."""

from __future__ import annotations

import pytest

from karat.tables.days import day_number
from karat.tables.online.evaluation import OnlineResult, OnlineResults
from karat.workflows.online.headlines import headlines

LAST = day_number("2026-11-14")


def day(metric: str, at: int, value: float | None, n: int) -> OnlineResult:
    return OnlineResult(
        metric=metric,
        version=1,
        slice={"day": f"2026-11-{at:02d}"},
        value=value,
        low=None,
        high=None,
        method=None,
        least=None,
        most=None,
        n=n,
        users=n,
        total=None,
        state="ok",
    )


def results(*rows: OnlineResult) -> OnlineResults:
    return OnlineResults(
        list(rows), by=("day",), rules="rules@1", period=None, events=1, health=(), notes=(),
        simulated=False,
    )  # fmt: skip


def test_a_week_is_its_searches_over_its_searches() -> None:
    rows = [day("ZeroResults", 7, 0.5, 10), day("ZeroResults", 8, 0.1, 30)]
    [zero] = headlines(results(*rows, day("ZeroResults", 14, 0.2, 10)), LAST)
    # Last week: (.1 x 30 + .2 x 10) / 40 = .125; before: .5. Fewer is better.
    assert zero.value == pytest.approx(0.125)
    assert zero.change == pytest.approx(-0.375)
    assert zero.better
    assert zero.points == [0.5, 0.1, 0.2]
    assert zero.since == "week to 2026-11-14"


def test_without_an_earlier_week_there_is_no_change() -> None:
    [sat] = headlines(results(day("SAT", 10, 0.4, 5), day("SAT", 15, 0.9, 5)), LAST)
    assert (sat.value, sat.change, sat.better) == (0.4, None, None)


def test_a_week_without_searches_has_no_number() -> None:
    assert headlines(results(day("SAT", 2, 0.4, 5)), LAST) == []
