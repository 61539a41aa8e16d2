"""RR, AP, R-precision and precision at recall, by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from karat.measures import parse, reduce
from karat.stats import geometric_mean, mean
from karat.tables import Qrels, Run

Value = Callable[..., float]


def test_mean_reciprocal_rank_of_three_queries() -> None:
    # The first relevant document stands at ranks 1, 3 and 5: (1 + 1/3 + 1/5) / 3 = .5111.
    ranking = {f"d{rank}": -float(rank) for rank in range(1, 6)}
    run = Run.from_dict({"q1": ranking, "q2": ranking, "q3": ranking})
    qrels = Qrels.from_dict({"q1": {"d1": 1}, "q2": {"d3": 1, "d4": 1}, "q3": {"d5": 1}})
    values = parse("MRR")(reduce(run, qrels))
    assert values.tolist() == [1.0, 1 / 3, 1 / 5]
    assert round(mean(values), 4) == 0.5111


def test_average_precision(value_of: Value) -> None:
    # Relevant A B C, retrieved A X B Y C: (1/1 + 2/3 + 3/5) / 3 = .7556.
    assert round(value_of("AP", (1, 0, 1, 0, 1)), 4) == 0.7556
    # D was never found: the same sum over four.
    assert value_of("AP", (1, 0, 1, 0, 1), (1,)) == pytest.approx((1 + 2 / 3 + 3 / 5) / 4)
    # Cut at 3, still divided by all three relevant ones, as trec_eval's map_cut.
    assert value_of("AP@3", (1, 0, 1, 0, 1)) == pytest.approx((1 + 2 / 3) / 3)


def test_reciprocal_rank_stops_at_k(value_of: Value) -> None:
    assert value_of("RR@2", (0, 0, 1)) == 0
    assert value_of("RR@3", (0, 0, 1)) == pytest.approx(1 / 3)
    assert value_of("RR(rel=2)", (1, 0, 2)) == pytest.approx(1 / 3)


def test_geometric_mean_of_average_precision() -> None:
    # trec_eval's gm_map: exp of the mean of ln max(AP, .00001). AP is 1 and 0, so
    # exp((0 + ln .00001) / 2) = sqrt(.00001) = .0031623.
    run = Run.from_dict({"q1": {"a": 1.0}, "q2": {"b": 1.0}})
    qrels = Qrels.from_dict({"q1": {"a": 1}, "q2": {"a": 1}})
    measure = parse("GMAP")
    assert measure.entry.aggregate == "geometric"
    values = measure(reduce(run, qrels))
    assert values.tolist() == [1, 0]
    assert geometric_mean(values) == pytest.approx(0.00001**0.5, rel=1e-14)


def test_r_precision(value_of: Value) -> None:
    # R = 3, and two of the first three are relevant.
    assert value_of("Rprec", (1, 0, 1, 0, 1)) == pytest.approx(2 / 3)
    # R = 4 with one missed: two of the first four.
    assert value_of("Rprec", (1, 0, 1, 0, 1), (1,)) == 0.5


def test_precision_at_multiples_of_r(value_of: Value) -> None:
    # R = 3. 0.5 R = 1.5, floor(1.5 + .9) = 2 places, one relevant: 1/2.
    assert value_of("RprecMult@0.5", (1, 0, 1, 0, 1)) == 0.5
    # 2 R = 6 places though five were returned: 3/6.
    assert value_of("RprecMult@2", (1, 0, 1, 0, 1)) == 0.5
    # R = 1: floor(.05 + .9) = 0 places have no precision.
    assert np.isnan(value_of("RprecMult@0.05", (1, 0)))


@pytest.mark.parametrize(
    ("rounding", "value"),
    [
        # R = 3 at recall .7: 2.1 documents are needed, so 3: the precision of rank 5 is 3/5.
        ("up", 3 / 5),
        # 2.1 is nearest 2, which stops short of the level: 2/3 at rank 3.
        ("nearest", 2 / 3),
        # In binary .7 x 3 + .9 = 2.9999999999999996, and trec_eval 9 cuts it to 2.
        ("trec9", 2 / 3),
    ],
)
def test_roundings_of_a_recall_level(rounding: str, value: float, value_of: Value) -> None:
    got = value_of(f"IPrec(rounding={rounding})@0.7", (1, 0, 1, 0, 1))
    assert got == pytest.approx(value)


def test_interpolated_precision_looks_ahead(value_of: Value) -> None:
    # Relevant at ranks 2, 3, 4: precision 1/2, 2/3, 3/4; the best from anywhere on is 3/4.
    assert value_of("IPrec@0", (0, 1, 1, 1)) == 0.75
    assert value_of("IPrec@0.1", (0, 1, 1, 1)) == 0.75
    assert value_of("IPrec@1", (0, 1, 1, 1)) == 0.75
    # One of four was missed: recall 1 is never reached.
    assert value_of("IPrec@1", (0, 1, 1, 1), (1,)) == 0
    # With up, recall .3 of R = 10 needs exactly 3, though .3 x 10 is not 3 plus nothing.
    assert value_of("IPrec@0.3", (1, 1, 0, 1), (1,) * 7) == 0.75


def test_eleven_points_are_the_mean_of_eleven(value_of: Value) -> None:
    grades, missed = (0, 1, 0, 1, 1, 0, 1), (1,)
    points = [value_of(f"IPrec@{level / 10}", grades, missed) for level in range(11)]
    assert value_of("IPrec11", grades, missed) == pytest.approx(sum(points) / 11, rel=1e-14)


@pytest.mark.parametrize(
    "measure", ["AP", "AP@3", "GMAP", "Rprec", "RprecMult@1", "IPrec@0.5", "IPrec11"]
)
def test_no_relevant_document_is_no_value(measure: str, value_of: Value) -> None:
    assert np.isnan(value_of(measure, (0, None)))
    assert value_of(measure, (), (1,)) == 0
    assert value_of("RR", (0, None)) == 0
