"""Values by query in a line: what goes in comes back, rounded; damage and bombs are named."""

from __future__ import annotations

import base64
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.errors import InputError
from karat.formats.own.query_values import packed, unpacked
from karat.tables.results import QueryScores

_VALUES = st.one_of(st.just(float("nan")), st.floats(-1000, 1000))


@given(st.lists(_VALUES, min_size=1, max_size=50))
def test_what_goes_in_comes_back_to_four_digits(values: list[float]) -> None:
    ids = [f"q{i:02}" for i in range(len(values))]
    kept = packed(QueryScores(ids, {"AP": np.array(values)}))
    assert kept is not None
    assert np.allclose(unpacked(kept.values["AP"], kept.n), values, atol=5.1e-5, equal_nan=True)


def test_the_order_of_queries_is_that_of_their_ids() -> None:
    one = packed(QueryScores(["b", "a"], {"AP": np.array([0.2, 0.1])}, np.array([2.0, 1.0])))
    other = packed(QueryScores(["a", "b"], {"AP": np.array([0.1, 0.2])}, np.array([5.0, 10.0])))
    assert one == other
    assert one is not None
    assert unpacked(one.values["AP"], 2).tolist() == [0.1, 0.2]
    fewer = packed(QueryScores(["a", "c"], {"AP": np.array([0.1, 0.2])}))
    assert fewer is not None
    assert fewer.queries != one.queries


def test_what_cannot_be_kept_is_left_out() -> None:
    scores = {"Huge": np.array([1e7]), "AP": np.array([0.5])}
    kept = packed(QueryScores(["a"], scores))
    assert kept is not None
    assert list(kept.values) == ["AP"]
    assert packed(QueryScores(["a"], {"Huge": np.array([1e7])})) is None
    assert packed(QueryScores([], {"AP": np.array([])})) is None


@pytest.mark.parametrize(
    "text",
    [
        "not Base64!",
        base64.b64encode(b"not zlib").decode(),
        base64.b64encode(zlib.compress(bytes(7))).decode(),
        base64.b64encode(zlib.compress(bytes(100_000_000))).decode(),
        base64.b64encode(zlib.compress(bytes(8))[:-1]).decode(),
    ],
)
def test_damage_is_named(text: str) -> None:
    with pytest.raises(InputError, match="values by query are"):
        unpacked(text, 2)


def test_a_line_stays_small() -> None:
    """10,000 queries: as many values of a shape like nDCG's take less than 3 bytes each."""
    rng = np.random.default_rng(1)
    values = np.where(rng.random(10_000) < 0.4, 0, rng.beta(1, 2, 10_000))
    kept = packed(QueryScores([str(i) for i in range(10_000)], {"nDCG@10": values}))
    assert kept is not None
    assert len(kept.values["nDCG@10"]) < 30_000
