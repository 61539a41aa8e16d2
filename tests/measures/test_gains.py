"""DCG, nDCG and the ceiling, by hand."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from karat.measures import Evidence, parse

Value = Callable[..., float]


@pytest.mark.parametrize(
    ("measure", "grades", "missed", "value"),
    [
        # 3/1 + 2/log2(3) + 1/log2(5) = 3 + 1.2619 + .4307 = 4.6925; the ideal 3 2 1 has
        # 3 + 1.2619 + 1/2 = 4.7619.
        ("nDCG@5", (3, 2, 0, 1, 0), (), 0.9854),
        # Gains 7 0 3 1 0: 7 + 3/2 + 1/log2(5) = 8.9307; ideal 7 + 3/log2(3) + 1/2 = 9.3928.
        ("nDCG(gain=exp)@5", (3, 0, 2, 1, 0), (), 0.9508),
        # 2 + 1/2 + 2/log2(5) = 3.3614; ideal 2 2 1: 2 + 2/log2(3) + 1/2 = 3.7619.
        ("nDCG@5", (2, 0, 1, 2, 0), (), 0.8935),
        # Järvelin and Kekäläinen, base 2: nothing before rank 2 is discounted, and log2(2) = 1:
        # 2 + 1/log2(3) + 2/log2(4) = 3.6309; ideal 2 + 2/1 + 1/log2(3) = 4.6309.
        ("nDCG(discount=jk, base=2)@5", (2, 0, 1, 2, 0), (), 0.7841),
        # Judged A2 B0 C3 D1 F3, retrieved A B C D E: 2 + 3/2 + 1/log2(5) = 3.9307; ideal
        # 3 3 2 1: 3 + 3/log2(3) + 2/2 + 1/log2(5) = 6.3235.
        ("nDCG@5", (2, 0, 3, 1, None), (3,), 0.6216),
    ],
)
def test_worked_examples(
    measure: str,
    grades: tuple[float, ...],
    missed: tuple[float, ...],
    value: float,
    value_of: Value,
) -> None:
    assert round(value_of(measure, grades, missed), 4) == value


def test_the_sums_behind_the_exponential_example(value_of: Value) -> None:
    assert round(value_of("DCG(gain=exp)@5", (3, 0, 2, 1, 0)), 4) == 8.9307
    assert round(value_of("IDCG(gain=exp)@5", (3, 0, 2, 1, 0)), 4) == 9.3928


def test_the_ideal_is_from_all_judgments_and_cut_with_the_run(value_of: Value) -> None:
    # One retrieved of grade 1, one missed of 3: 1 / (3 + 1/log2(3)) and, cut at 1, 1/3.
    assert value_of("nDCG", (1,), (3,)) == pytest.approx(1 / (3 + 1 / math.log2(3)))
    assert value_of("nDCG@1", (1,), (3,)) == pytest.approx(1 / 3)


def test_discount_jk_with_base_10_leaves_the_first_ten_alone(value_of: Value) -> None:
    assert value_of("DCG(discount=jk, base=10)", (0,) * 9 + (1,)) == 1
    # log10(11) = 1.04139
    got = value_of("DCG(discount=jk, base=10)", (0,) * 10 + (1,))
    assert got == pytest.approx(1 / math.log10(11))


def test_fractions_of_grades(value_of: Value) -> None:
    # trec_eval gives 0 here: it compares gains as whole numbers (gain_init.c).
    assert value_of("nDCG", (0.75, 0.5, 0.25)) == 1
    assert value_of("DCG(gain=exp)", (0.5,)) == pytest.approx(2**0.5 - 1)
    assert value_of("nDCG(gain={1: 0.3, 2: 0.6})", (2, 1)) == 1


def test_gains_from_a_table(value_of: Value) -> None:
    # 1 is worth 3, 2 is worth 9, 3 is not listed and keeps its grade.
    gains = "(gain={1: 3, 2: 9})"
    assert value_of(f"DCG{gains}", (1, 2)) == pytest.approx(3 + 9 / math.log2(3))
    assert value_of(f"DCG{gains}", (3,)) == 3
    # The ideal goes by gain: 9 (grade 2) before 3 (grade 3) and 3 (grade 1).
    ideal = 9 + 3 / math.log2(3) + 3 / 2
    assert value_of(f"IDCG{gains}", (1, 2), (3,)) == pytest.approx(ideal)
    assert value_of(f"nDCG{gains}@1", (3, 2, 1)) == pytest.approx(3 / 9)


def test_a_negative_grade_gains_nothing(value_of: Value) -> None:
    for gain in ("linear", "exp"):
        assert value_of(f"DCG(gain={gain})", (-2, 1)) == pytest.approx(1 / math.log2(3))
        assert value_of(f"nDCG(gain={gain})", (1, -1), (-2,)) == 1


def test_nothing_to_gain_is_no_value(value_of: Value) -> None:
    for measure in ("nDCG", "nDCG@3", "DCG", "nDCG(gain={1: 0})"):
        assert np.isnan(value_of(measure, (0, None, -1)))
    assert value_of("IDCG", (0, None, -1)) == 0
    assert np.isnan(value_of("nDCG(gain={1: 0})", (1,)))
    assert value_of("nDCG", (), (1,)) == 0


def test_terms_add_up_to_the_value(by_rank: Callable[..., Evidence]) -> None:
    evidence = by_rank((3, None, 1, 0), (2,))
    measure = parse("nDCG@3")
    terms = measure.terms(evidence)
    assert terms is not None
    assert terms.gain.tolist() == [3, 1, 0]
    assert terms.discount.tolist() == [1, 0.5, 1 / math.log2(5)]
    assert terms.term.tolist() == [3, 0.5, 0]
    # Ideal 3 2 1.
    assert terms.norm.tolist() == [3 + 2 / math.log2(3) + 1 / 2]
    assert measure(evidence).tolist() == [3.5 / terms.norm[0]]
    assert parse("IPrec@0.1").terms(evidence) is None


def test_the_ceiling_of_a_reranker(value_of: Value) -> None:
    # The top two are 0 and 1; reranked 1 0 3: (1 + 3/log2(4)) / (3 + 1/log2(3)).
    assert value_of("Ceiling(nDCG, depth=2)", (0, 1, 3)) == pytest.approx(
        2.5 / (3 + 1 / math.log2(3))
    )
    # By gain and not by grade, where a table makes a lower grade worth more.
    assert value_of("Ceiling(nDCG(gain={1: 9, 2: 3}), depth=2)", (2, 1)) == 1
    assert value_of("Ceiling(nDCG, depth=3)", (0, 1, 3)) == 1
    assert value_of("Ceiling(RR, depth=2)", (0, 0, 1)) == pytest.approx(1 / 3)
    assert value_of("Ceiling(P(rel=2)@1, depth=3)", (1, 0, 2)) == 1
    # Unjudged documents go below those that gain, in the order they had.
    assert value_of("Ceiling(AP, depth=4)", (None, 1, None, 1)) == 1
    assert np.isnan(value_of("Ceiling(nDCG, depth=2)", (0,)))
