from __future__ import annotations

import pytest

from karat.errors import UsageError
from karat.golden.planning import plan
from karat.stats.power import queries_needed


def test_a_plan() -> None:
    done = plan(0.05, sd=0.2, depth=10, raters=2, seconds=30, repeats=0, per_hour=24)
    # Nagata: ((1.96 + .8416) / .25)^2 + 1.96^2 / 2 = 125.58 + 1.92, so 128 queries.
    assert done.needed is not None
    assert done.needed.queries == 128
    # 128 x 10 x 2 judgments, at 30 s each 21.33 hours, at 24 an hour 512.
    assert done.needed.judgments == 2560
    assert done.needed.hours == pytest.approx(21.0 + 1 / 3)
    assert done.needed.money == pytest.approx(512)
    assert [each.queries for each in done.sizes] == [50, 100, 200]
    # 50 queries see .081 and 100 see .057 (Sakai's tables, to three digits).
    assert [round(each.sees, 3) for each in done.sizes[:2]] == [0.081, 0.057]


def test_repeats_are_judgments_too() -> None:
    # 50 x 15 x 2 x 1.05 = 1575
    assert plan(0.1, sizes=[50]).sizes[0].judgments == 1575
    assert plan(0.1).sizes[0].money is None


def test_unequal_weights_take_more_queries() -> None:
    # Variances are as many times larger, so the spread is by the root: .2 x root 2.
    done = plan(0.05, sd=0.2, unequal=2.0)
    assert done.needed is not None
    assert done.needed.queries == queries_needed(0.2 * 2**0.5, 0.05)


def test_nothing_that_vanishes_beside_the_spread_is_shown() -> None:
    assert plan(1e-12).needed is None
    with pytest.raises(UsageError, match="a difference of 0"):
        plan(0.0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"sd": 0.0},
        {"depth": 0},
        {"raters": 0},
        {"seconds": -1.0},
        {"repeats": 2.0},
        {"unequal": 0.5},
        {"per_hour": -1.0},
        {"power": 0.01},
        {"sizes": [1]},
        {"difference": float("nan")},
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        plan(**{"difference": 0.05, **wrong})  # type: ignore[arg-type]
