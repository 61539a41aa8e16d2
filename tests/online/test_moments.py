"""Moments: what numpy says of the same users, batches put together, and values without digits."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from tests.choosing import FEW

from karat.online.metrics.entry import Metric, Ratio
from karat.online.moments import long, moments, rows, together


def ratio(**bounds: Any) -> Metric:
    """The mean of x over rows whose w is above 0."""
    how = Ratio("searches", lambda: nw.col("x"), lambda: nw.col("w"), **bounds)
    said = dict.fromkeys(("title", "definition", "says", "source", "family"), "")
    return Metric(
        name="X",
        version=1,
        traps=(),
        direction="higher",
        unit="count",
        compute=how,
        needs=(),
        **said,
    )


def found(frame: pl.DataFrame, metric: Metric, cut: list[str]) -> pl.DataFrame:
    """The moments of a frame."""
    added = rows(nw.from_native(frame.lazy()), [metric], cut)
    wide = nw.to_native(moments(added, [metric], cut)).collect()
    return together([long(wide, [metric], cut)], cut)


def frame_of(users: list[int], x: list[float], w: list[float]) -> pl.DataFrame:
    """Facts."""
    return pl.DataFrame(
        {"user_key": users, "x": x, "w": w, "arm": ["a" if user % 2 else "b" for user in users]}
    )


def test_moments_around_a_billion_keep_their_digits() -> None:
    rng = np.random.default_rng(7)
    above, below = 1e9 + rng.normal(size=5_000), 3e8 + rng.normal(size=5_000)
    got = found(frame_of(list(range(5_000)), above.tolist(), below.tolist()), ratio(), [])
    row = got.row(0, named=True)
    # Numpy on the same numbers, moved to 0 first; 1e9 leaves seven digits behind the point.
    one, two = above - 1e9, below - 3e8
    one, two = one - one.mean(), two - two.mean()
    assert row["m2_numerator"] == pytest.approx((one * one).sum(), rel=1e-6)
    assert row["m2_denominator"] == pytest.approx((two * two).sum(), rel=1e-6)
    assert row["comoment"] == pytest.approx((one * two).sum(), rel=1e-4)
    # And in ten batches, of which each has another mean.
    parts = []
    order = np.argsort(above)
    for piece in np.array_split(order, 10):
        part = frame_of(piece.tolist(), above[piece].tolist(), below[piece].tolist())
        parts.append(found(part, ratio(), []))
    whole = together(parts, []).row(0, named=True)
    assert whole["users"] == 5_000
    for name in ("m2_numerator", "m2_denominator", "numerator"):
        assert whole[name] == pytest.approx(row[name], rel=1e-6)


def test_rows_that_do_not_count_add_nothing_and_users_without_others_are_none() -> None:
    frame = pl.DataFrame(
        {
            "user_key": [1, 1, 1, 2, 3],
            "x": [5.0, None, 7.0, 9.0, 4.0],
            "w": [1.0, 1.0, None, 0.0, 2.0],
        }
    )
    got = found(frame, ratio(most=lambda: nw.lit(1)), []).sort("term")
    # User 1: 5 + nothing over 2; the 7 and the 9 do not count; user 3: 4 over 2. Means 4.5 and 2:
    # m2 of the numerator .25 + .25, of the denominator 0. Most: 2 and 1, mean 1.5.
    value = got.filter(term="value").row(0, named=True)
    facts = ("users", "numerator", "denominator", "mean_numerator", "m2_numerator", "comoment")
    assert [value[name] for name in facts] == [2, 9.0, 4.0, 4.5, 0.5, 0.0]
    most = got.filter(term="most").row(0, named=True)
    assert [most[name] for name in facts] == [2, 3.0, 4.0, 1.5, 0.5, 0.0]


def test_one_user_has_no_spread_and_no_row_is_no_user() -> None:
    one = found(frame_of([1, 1], [2.0, 3.0], [1.0, 1.0]), ratio(), [])
    assert one.select("users", "numerator", "m2_numerator").rows() == [(1, 5.0, 0.0)]
    assert found(frame_of([1], [2.0], [0.0]), ratio(), []).height == 0
    assert together([], ["arm"]).height == 0


FACT = st.tuples(st.integers(0, 9), st.integers(-50, 50), st.integers(0, 2))


@FEW
@given(st.lists(FACT, min_size=1, max_size=40), st.integers(1, 9))
def test_batches_of_whole_users_in_any_order_come_to_the_same(
    facts: list[tuple[int, int, int]], border: int
) -> None:
    users, x, w = (list(each) for each in zip(*facts, strict=True))
    frame = frame_of(users, [float(v) for v in x], [float(v) for v in w])
    whole = found(frame, ratio(), ["arm"])
    parts = [frame.filter(pl.col("user_key") < border), frame.filter(pl.col("user_key") >= border)]
    split = together([found(part, ratio(), ["arm"]) for part in parts[::-1]], ["arm"])
    assert_frame_equal(split, whole, abs_tol=1e-9)
    by_user = (
        frame.filter(pl.col("w") > 0)
        .group_by("arm", "user_key")
        .agg(pl.col("x").sum(), pl.col("w").sum())
    )
    for row in whole.iter_rows(named=True):
        mine = by_user.filter(arm=row["arm"])
        assert row["users"] == mine.height
        above = mine["x"].to_numpy()
        assert row["m2_numerator"] == pytest.approx(((above - above.mean()) ** 2).sum(), abs=1e-9)
