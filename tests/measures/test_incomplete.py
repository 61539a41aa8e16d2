"""Bpref, infAP and the judged share, by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

Value = Callable[..., float]
E = 0.00001


def test_bpref_counts_judged_nonrelevant_above(value_of: Value) -> None:
    # R = 2, N = 3. Rank 1: one; rank 4 has two non-relevant above: 1 - min(2,2)/min(3,2) = 0.
    assert value_of("Bpref", (1, 0, 0, 1), (0,)) == 0.5
    # R = 3 (one missed), N = 2: 1 + (1 - 1/2) + 0, over 3.
    assert value_of("Bpref", (1, 0, None, 1), (1, 0)) == 0.5
    # Unjudged and pooled-but-unjudged documents above do not count.
    assert value_of("Bpref", (None, -1, 1), (0,)) == 1
    # No judged non-relevant document at all.
    assert value_of("Bpref", (None, 1), (1,)) == 0.5


def test_a_lower_grade_is_judged_nonrelevant_for_a_higher_level(value_of: Value) -> None:
    # At level 2: R = 1, N = 1 (the grade 1), which stands above: 1 - 1/1.
    assert value_of("Bpref(rel=2)", (1, 2)) == 0


def test_geometric_bpref_is_bpref_of_each_query(value_of: Value) -> None:
    assert value_of("GMBpref", (1, 0, None, 1), (1, 0)) == 0.5


def test_inferred_average_precision(value_of: Value) -> None:
    # All judged: rank 3 has one relevant and one non-relevant above, both pooled:
    # 1/3 + 2/3 x 2/2 x (1 + e)/(2 + 2e) = 2/3, as AP has it; (1 + 2/3) / 2.
    assert value_of("infAP", (1, 0, 1)) == pytest.approx(5 / 6)
    # Rank 2 below a pooled, unjudged one: 1/2 + 1/2 x 1/1 x e/2e = 3/4.
    assert value_of("infAP", (-1, 1)) == pytest.approx(0.75)
    # Rank 2 below one that was not pooled: 1/2 + 1/2 x 0.
    assert value_of("infAP", (None, 1)) == 0.5
    # Rank 3 below non-relevant, pooled unjudged: 1/3 + 2/3 x 2/2 x e/(1 + 2e).
    assert value_of("infAP", (0, -1, 1)) == pytest.approx(1 / 3 + 2 / 3 * E / (1 + 2 * E))


def test_judged_share(value_of: Value) -> None:
    assert value_of("Judged@3", (2, None, 0, None)) == pytest.approx(2 / 3)
    # Only two were returned: divided by two.
    assert value_of("Judged@10", (0, None)) == 0.5
    # Pooled and not judged is not judged.
    assert value_of("Judged@2", (-1, 1)) == 0.5
    assert np.isnan(value_of("Judged@10", (), (1,)))
    assert value_of("Judged@10", (None,), (1,)) == 0


@pytest.mark.parametrize("measure", ["Bpref", "GMBpref", "infAP"])
def test_no_relevant_document_is_no_value(measure: str, value_of: Value) -> None:
    assert np.isnan(value_of(measure, (0, None)))
    assert value_of(measure, (0,), (1,)) == 0
