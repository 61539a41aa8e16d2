"""What a trend says in a word or two agrees with what it says in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from karat.reports.phrases.trend import sentence, verdict_of
from karat.tables.release.history import Point, Value
from karat.tables.release.trend import Series
from karat.workflows.release.trend import trend


def series(values: Sequence[float | None], reach: float = 0.1) -> Series:
    points = [
        Point(
            f"2026-03-{day:02}T02:00:00Z", "evaluate", "bm25", None, None, "", "1",
            (
                Value("AP", value)
                if value is None
                else Value("AP", value, value - reach, value + reach, 30),
            ),
            {"queries": "q", "qrels": "j", "run": f"r{day}", "corpus": "c"},
        )
        for day, value in enumerate(values, 1)
    ]  # fmt: skip
    return trend(points).series[0]


@pytest.mark.parametrize(
    ("values", "reach", "said"),
    [
        ([0.5], 0.1, "nothing to compare"),
        ([0.5, 0.51, 0.5], 0.1, "no drift found"),
        ([0.8, 0.8, 0.3], 0.05, "WORSE"),
        ([0.8 - 0.004 * day for day in range(14)], 0.1, "DRIFT"),
        ([0.8 - 0.02 * day for day in range(14)], 0.05, "DRIFT"),  # its sentence says no more
        ([0.5 + 0.004 * day for day in range(14)], 0.1, "getting better"),
        ([0.5, 0.51, None], 0.1, "cannot tell"),
        ([None], 0.1, "cannot tell"),
        ([0.8, 0.8, 0.3, None], 0.05, "cannot tell, WORSE"),
    ],
)
def test_a_word_for_each_sentence(values: Sequence[float | None], reach: float, said: str) -> None:
    found = series(values, reach)
    assert verdict_of(found) == said
    words = sentence(found)
    for word in ("WORSE", "DRIFT", "cannot tell", "getting better"):
        assert (word in words) == (word in said), words


def test_what_did_not_change_is_said_plainly() -> None:
    assert sentence(series([0.5, 0.5, 0.5])) == "no drift found: no change since 2026-03-01"
