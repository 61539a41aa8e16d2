"""Tie bands: worked examples. Small cases are enumerated in tests/laws/test_bands.py."""

from __future__ import annotations

import pytest

from karat.measures import Evidence, parse, reduce
from karat.measures.ties import Band, tie_band
from karat.tables import Qrels, Run


def evidence(scores: dict[str, float], grades: dict[str, float]) -> Evidence:
    return reduce(Run.from_dict({"q": scores}), Qrels.from_dict({"q": grades}))


def band(measure: str, of: Evidence, depth: int | None = None, condensed: bool = False) -> Band:
    return tie_band(parse(measure), of, depth, condensed)


def one(found: object) -> float:
    return float(found[0])  # type: ignore[index]


CONSTANT = evidence({f"d{i}": 1.0 for i in range(10)}, {"d3": 1.0, "gone": 1.0})


def test_a_constant_scorer_gets_no_perfect_reciprocal_rank() -> None:
    # One relevant document of ten, all tied: it stands at each rank with 1/10.
    found = band("RR@10", CONSTANT)
    assert one(found.low) == pytest.approx(1 / 10)
    assert one(found.high) == 1.0
    assert one(found.expected) == pytest.approx(sum(1 / r for r in range(1, 11)) / 10)


def test_cutoff_within_a_tied_group() -> None:
    found = band("Success@3", CONSTANT)
    assert (one(found.low), one(found.high)) == (0.0, 1.0)
    assert one(found.expected) == pytest.approx(3 / 10)


def test_a_tied_group_that_begins_at_the_cutoff_counts() -> None:
    # Ranks 2-3 tied, one of them relevant: at rank 2 with 1/2, else beyond the cutoff.
    of = evidence({"x": 2, "a": 1, "b": 1}, {"a": 1})
    assert one(band("RR@2", of).expected) == pytest.approx(1 / 2 * 1 / 2)


def test_average_precision_of_two_tied_pairs() -> None:
    # Ranks 1-2 tied, one of them relevant; 3-4 tied, one relevant; R = 2.
    of = evidence({"a": 2, "b": 2, "c": 1, "d": 1}, {"a": 1, "c": 1})
    found = band("AP", of)
    assert one(found.high) == pytest.approx((1 / 1 + 2 / 3) / 2)
    assert one(found.low) == pytest.approx((1 / 2 + 2 / 4) / 2)
    # Two choices in each pair, independent: (1 + 1/2)/2 and (2/3 + 2/4)/2, halved.
    assert one(found.expected) == pytest.approx(((1 + 1 / 2) / 2 + (2 / 3 + 2 / 4) / 2) / 2)


def test_without_ties_all_three_are_the_value_itself() -> None:
    of = evidence({"a": 3, "b": 2, "c": 1}, {"a": 1, "c": 2})
    for name in ("nDCG@3", "AP", "RR", "infAP", "P@2"):
        found, value = band(name, of), one(parse(name)(of))
        assert one(found.low) == one(found.expected) == one(found.high) == value


def test_ties_of_documents_that_nobody_judged_do_not_matter() -> None:
    of = evidence({"a": 3, "x": 2, "y": 2}, {"a": 1})
    assert one(band("infAP", of).low) == 1.0


def test_a_measure_that_does_not_say_how_order_moves_it_has_no_band() -> None:
    assert band("Accuracy@3", CONSTANT) == Band(None, None, None)


def test_a_set_does_not_care() -> None:
    found = band("SetP", CONSTANT)
    assert one(found.low) == one(found.expected) == one(found.high) == pytest.approx(1 / 10)


def test_a_cut_through_a_tied_group_lets_others_in() -> None:
    # Cut after 2 of 10 tied: the relevant one may be first, second, or out.
    found = band("RR", CONSTANT, depth=2)
    assert (one(found.low), one(found.high)) == (0.0, 1.0)
    assert found.expected is None


def test_the_ceiling_depends_on_who_is_handed_to_the_reranker() -> None:
    found = band("Ceiling(RR, depth=5)", CONSTANT)
    assert one(found.high) == 1.0
    assert one(found.low) == pytest.approx(1 / 10)  # below the head, it stays where it is
