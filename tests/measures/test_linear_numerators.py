"""Differences as weighted sums of what documents gain, and what they are divided by."""

from __future__ import annotations

import numpy as np
import pytest

from karat.measures import parse
from karat.measures.linear_numerators import LINEAR, RECALLS, Linear, denominator
from karat.measures.run_pair import Pair
from karat.tables import Qrels, Run


@pytest.fixture
def pair() -> Pair:
    """Baseline a x, candidate x b; a has grade 2, b none, x 1, and a 3 is missed."""
    baseline = Run.from_dict({"q": {"a": 2.0, "x": 1.0}})
    candidate = Run.from_dict({"q": {"x": 2.0, "b": 1.0}})
    qrels = Qrels.from_dict({"q": {"a": 2.0, "x": 1.0, "missed": 3.0}})
    return Pair.of(baseline, candidate, qrels)


def test_base_and_weights(pair: Pair) -> None:
    # a leaves rank 1: -2. x goes from rank 2 to 1: 1 - 1/log2(3). b comes in second.
    second = 1 / np.log2(3)
    measure = parse("DCG@2")
    linear = Linear.of(measure, pair, pair.pool(measure))
    assert linear.base.tolist() == [pytest.approx(-2 + 1 - second)]
    assert linear.weight.tolist() == [pytest.approx(second)]
    assert linear.ends == (0.0, 3.0)


def test_numerator_over_denominator_is_the_difference(pair: Pair) -> None:
    names = ("P@2", "SetP", "RBP(p=0.8)", "RBP(p=0.8, max=3)", "DCG(gain=exp)", "R@1", "SetR")
    for name in (*names, "Rcap@1", "nDCG", "nDCG(gain=exp)@1", "nDCG(discount=jk, base=2)@2"):
        measure = parse(name)
        assert measure.entry.symbol in LINEAR | RECALLS | {"nDCG"}
        linear = Linear.of(measure, pair, pair.pool(measure))
        found = linear.base / denominator(measure, pair.of_baseline)
        value = measure(pair.of_candidate) - measure(pair.of_baseline)
        assert found.tolist() == [pytest.approx(float(value[0]), abs=1e-14)], name
