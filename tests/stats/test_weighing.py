"""What each query counts for, and what a weight of 0 means."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from karat.errors import InputError, UsageError
from karat.stats.intervals import resample
from karat.stats.weighing import Weighing
from karat.tables import Queries

IDS = ["a", "b", "c", "d"]


def weighing(**columns: list[Any]) -> Weighing:
    return Weighing.of(Queries(pl.DataFrame({"query_id": IDS, **columns})), IDS)


def test_without_weights_all_are_alike() -> None:
    plain = weighing()
    used = np.array([True, False, True, False])
    assert plain.at(used) == (None, None)
    assert plain.over(used) is None
    assert Weighing.of(None, IDS) == Weighing(None, None, 4)


def test_queries_of_weight_0_weigh_the_same_among_themselves() -> None:
    mixed = weighing(weight=[0.0, 2.0, 0.0, 3.0], stratum=["x", "y", "x", "z"])
    weights, strata = mixed.at(np.array([False, True, False, True]))
    assert weights is not None
    assert strata is not None
    assert (weights.tolist(), strata.tolist()) == ([2.0, 3.0], [1, 2])
    hard = np.array([True, False, True, False])
    weights, strata = mixed.at(hard)
    assert weights is None
    assert strata is not None
    assert strata.tolist() == [0, 0]
    assert mixed.over(hard) is None
    nothing = np.zeros(4, np.bool_)
    assert mixed.over(nothing) is not None, "nobody's weights are not weights of 0"


def test_a_query_without_a_weight_is_refused() -> None:
    some = Queries(pl.DataFrame({"query_id": ["a"], "weight": [0.0]}), source="q.csv")
    with pytest.raises(UsageError, match=r"q\.csv has weights, but none for query b"):
        Weighing.of(some, IDS)


def test_weights_of_0_alone_are_refused() -> None:
    with pytest.raises(InputError, match="every judged query has weight 0") as caught:
        weighing(weight=[0.0] * 4)
    assert caught.value.fix == "give some of them a weight above 0, or drop the column"
    # A query without a right answer is in no mean, whatever it weighs.
    with pytest.raises(InputError, match="every judged query has weight 0"):
        weighing(weight=[1.0, 0.0, 0.0, 0.0], no_answer=[True, False, False, False])
    assert weighing(weight=[0.0, 1.0, 0.0, 0.0]).n == 4
    assert Weighing.of(Queries(pl.DataFrame({"query_id": ["a"], "weight": [0.0]})), []).n == 0


@pytest.mark.parametrize("strata", [None, ["x", "y", "x", "y"]])
def test_queries_of_weight_0_leave_the_others_as_they_are_drawn(strata: list[str] | None) -> None:
    columns: dict[str, list[Any]] = {} if strata is None else {"stratum": strata}
    alike = weighing(**columns)
    assert (alike.drawn(50, 3) == resample(4, 50, np.random.default_rng(3), alike.strata)).all()
    ids = ["p", "a", "q", "b", "c", "r", "d"]  # p, q and r weigh nothing
    own = np.array([query in IDS for query in ids])
    about = {"query_id": ids, "weight": own.astype(float)}
    if strata is not None:
        of = dict(zip(IDS, strata, strict=True))
        about["stratum"] = [of.get(query, "") for query in ids]
    drawn = Weighing.of(Queries(pl.DataFrame(about)), ids).drawn(50, 3)
    assert (drawn[:, own] == alike.drawn(50, 3)).all()
    assert (drawn[:, own].sum(axis=1) == 4).all()
    assert (drawn[:, ~own].sum(axis=1) == 3).all()
