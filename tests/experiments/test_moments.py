"""Moments of batches of users add up to those of all."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from karat.experiments.moments import empty, moments_of, together


def table(values: np.ndarray) -> pl.DataFrame:
    """The moments of users, one row of four variables for each."""
    far = values - values.mean(axis=0)
    squares = far.T @ far
    columns = empty(()).columns
    sums = dict(
        zip([name for name in columns if name.startswith("sum_")], values.sum(axis=0), strict=True)
    )
    centred = {f"m2_{j}{k}": squares[j, k] for j in range(4) for k in range(j, 4)}
    row = {"arm": "a", "metric": "CTR", "users": len(values), **sums, **centred}
    return pl.DataFrame([row]).select(columns)


def test_batches_add_up() -> None:
    """Two batches with means far apart: the squares between them count too."""
    rng = np.random.default_rng(2)
    first, second = rng.normal(5, 1, (40, 4)), rng.normal(9, 2, (25, 4))
    whole = moments_of(table(np.concatenate([first, second])).row(0, named=True))
    added = moments_of(together([table(first), table(second)], ()).row(0, named=True))
    assert added.users == whole.users == 65
    assert added.means == pytest.approx(whole.means, rel=1e-12)
    assert added.centred.ravel() == pytest.approx(whole.centred.ravel(), rel=1e-12)


def test_no_batches() -> None:
    assert together([], ()).is_empty()
