"""Measures of the condensed list."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.choosing import FEW

from karat.errors import UsageError
from karat.measures import Evidence, parse

RANKED = st.lists(st.sampled_from((None, -1, 0, 1, 2, 3)), max_size=8)
INSIDE = ("nDCG@3", "AP", "P@3", "Bpref", "SetF", "Judged@3", "RBP(p=0.8)", "Compat", "IPrec@0.5")


def test_known_example(value_of: Callable[..., float]) -> None:
    # Ranking 3 ? 1 ? 0, one more judged 2: condensed 3 1 0 against the ideal 3 2 1, with gains
    # 2^grade - 1: (7 + 1/1.585) / (7 + 3/1.585 + 1/2) = 7.6309 / 9.3928.
    value = value_of("Condensed(nDCG(gain=exp)@5)", (3, None, 1, None, 0), (2,))
    assert value == pytest.approx(0.8124242482, abs=1e-9)


@FEW
@given(RANKED)
def test_it_is_the_measure_of_the_judged_documents(
    by_rank: Callable[..., Evidence], grades: list[float | None]
) -> None:
    case = by_rank(grades, (1,))
    for name in INSIDE:
        condensed, inner = parse(f"Condensed({name})"), parse(name)
        assert condensed(case).tobytes() == inner(case.only_judged()).tobytes()
        # Twice is as good as once.
        assert parse(f"Condensed(Condensed({name}))")(case).tobytes() == condensed(case).tobytes()


@FEW
@given(RANKED)
def test_shares_stand_with_the_documents_they_are_of(
    by_rank: Callable[..., Evidence], grades: list[float | None]
) -> None:
    case = by_rank(grades, (1,))
    terms = parse("Condensed(nDCG@3)").terms(case)
    assert terms is not None
    assert terms.term.shape == case.rank.shape
    assert not terms.term[case.grade <= 0].any()
    total = math.fsum(terms.term / terms.norm[0])
    assert total == pytest.approx(float(parse("Condensed(nDCG@3)")(case)[0]), abs=1e-12)
    assert parse("Condensed(SetF)").terms(case) is None


def test_no_judged_document_is_an_empty_list(value_of: Callable[..., float]) -> None:
    assert value_of("Condensed(nDCG@3)", (None, None), (1,)) == 0.0
    assert np.isnan(value_of("Condensed(Judged@3)", (None, None), (1,)))


@pytest.mark.parametrize(
    ("typed", "printed"),
    [
        ("nDCG(judged_only=True)@10", "Condensed(nDCG@10)"),
        ("nDCG(dcg='exp-log2',judged_only=True)@10", "Condensed(nDCG(gain=exp)@10)"),
        ("AP(judged_only=True, rel=2)", "Condensed(AP(rel=2))"),
        ("P(judged_only=False)@5", "P@5"),
        ("P:judged_only=true@5", "Condensed(P@5)"),
        ("condensed(ndcg_cut_10)", "Condensed(nDCG@10)"),
        ("Ceiling(Condensed(nDCG@10), depth=100)", "Ceiling(Condensed(nDCG@10), depth=100)"),
    ],
)
def test_spellings(typed: str, printed: str) -> None:
    assert str(parse(typed)) == printed
    assert parse(printed) == parse(typed)


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("Condensed", "Condensed needs of"),
        ("Condensed(nDGC@10)", "did you mean nDCG"),
        ("Condensed:nDCG@10", "Condensed takes another measure, in brackets"),
        ("nDCG(judged_only=maybe)@10", "judged_only=maybe is not True or False"),
    ],
)
def test_refusals(typed: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(typed)
    assert says in str(caught.value)
