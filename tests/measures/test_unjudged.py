"""Bounds over what unjudged documents could be: worked examples, and deep lists.

Small cases are enumerated in tests/laws/test_bands.py.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable

import numpy as np
import pytest

from karat.measures import Evidence, parse, reduce, unjudged
from karat.measures.unjudged import gaps
from karat.tables import Qrels, Run

ByRank = Callable[..., Evidence]


def ends(measure: str, evidence: Evidence, high: float = 3.0) -> tuple[float, float]:
    found = parse(measure).bounds(dataclasses.replace(evidence, scale=(0.0, high)))
    assert found is not None
    return float(found[0][0]), float(found[1][0])


def test_zero_is_not_the_lower_bound_of_ndcg(by_rank: ByRank) -> None:
    # Grades 1 1 ?, gain 2^g - 1. With ? = 0: 1. With ? = 3 (gain 7) the ideal is 7 1 1:
    # (1 + 1/log2(3) + 7/2) / (7 + 1/log2(3) + 1/2) = 5.1309 / 8.1309 = 0.6310385.
    low, high = ends("nDCG(gain=exp)@3", by_rank([1, 1, None]))
    assert low == pytest.approx(0.6310385047, abs=1e-10)
    assert high == 1.0


def test_both_naive_ends_of_ndcg_lie_inside(by_rank: ByRank) -> None:
    # Run 3 ? 1 ? 0 and a 2 that was missed, exponential gain. All ? = 0 gives .7985, all ? = 3
    # gives .8997; over all 16 pairs of grades the least is (0, 3) and the greatest (3, 2).
    low, high = ends("nDCG(gain=exp)@5", by_rank([3, None, 1, None, 0], [2]))
    assert low == pytest.approx(0.7877867908, abs=1e-10)
    assert high == pytest.approx(0.9049800838, abs=1e-10)


def test_precision_and_success(by_rank: ByRank) -> None:
    evidence = by_rank([1, None, 0, None, None])
    assert ends("P@4", evidence) == (0.25, 0.75)  # two gaps of four places
    assert ends("Success@1", by_rank([None, 0])) == (0.0, 1.0)
    assert ends("Success@1", evidence) == (1.0, 1.0)
    assert ends("P(rel=2)@4", evidence, high=1.0) == (0.0, 0.0)  # no gap can reach grade 2


def test_recall_counts_what_is_found_good_as_relevant(by_rank: ByRank) -> None:
    # 1 of 2 relevant found; the gap good: 2 of 3.
    assert ends("R@2", by_rank([1, None], [1])) == (0.5, pytest.approx(2 / 3))


def test_reciprocal_rank_goes_up_to_the_first_gap(by_rank: ByRank) -> None:
    assert ends("RR", by_rank([0, None, 0, 1])) == (0.25, 0.5)
    assert ends("RR@2", by_rank([0, 0, None, 1])) == (0.0, 0.0)


def test_average_precision_can_fall(by_rank: ByRank) -> None:
    # Grades 1 0 ?: 1/1 = 1; the gap good: (1/1 + 2/3) / 2 = .8333, which is less.
    low, high = ends("AP", by_rank([1, 0, None]))
    assert low == pytest.approx(5 / 6)
    assert high == 1.0


def test_scale_decides_how_much_dcg_can_gain(by_rank: ByRank) -> None:
    # 1 at rank 1, a gap at rank 3 with discount 1/2.
    assert ends("DCG@3", by_rank([1, 0, None]), high=3.0) == (1.0, 2.5)
    assert ends("DCG@3", by_rank([1, 0, None]), high=5.0) == (1.0, 3.5)


def test_a_grade_below_zero_is_a_gap(by_rank: ByRank) -> None:
    assert ends("P@2", by_rank([1, -1])) == (0.5, 1.0)


def test_a_fully_judged_list_has_no_room(by_rank: ByRank) -> None:
    evidence = by_rank([1, 0, 2], [3])
    for name in ("nDCG@3", "AP", "RR", "P@3", "DCG", "R@3"):
        low, high = ends(name, evidence)
        assert low == high == pytest.approx(float(parse(name)(evidence)[0]))


def test_an_empty_list_stays_at_nothing(by_rank: ByRank) -> None:
    for name in ("nDCG@3", "nDCG", "AP", "RR", "P@3", "DCG", "R@3", "Success@3"):
        assert ends(name, by_rank([], [1])) == (0.0, 0.0)


def test_fractions_between_the_grades_change_nothing(by_rank: ByRank) -> None:
    # The ends are reached at grades of the judgments and at the ends of the scale: trying all
    # tenths for the two gaps finds nothing outside, and the ends themselves.
    evidence = by_rank([2, None, 0, None], [3])
    low, high = ends("nDCG@4", evidence)
    tenths = [tenth / 10 for tenth in range(31)]
    judged = {
        f"{i:03}": {"d0": 2.0, "d1": first, "d2": 0.0, "d3": second, "missed": 3.0}
        for i, (first, second) in enumerate(itertools.product(tenths, tenths))
    }
    run = Run.from_dict({query: {f"d{p}": -p for p in range(4)} for query in judged})
    values = parse("nDCG@4")(reduce(run, Qrels.from_dict(judged)))
    assert values.min() == pytest.approx(low, abs=1e-12)
    assert values.max() == pytest.approx(high, abs=1e-12)


def test_twenty_ranks_equal_enumeration_of_five_gaps(by_rank: ByRank) -> None:
    rng = np.random.default_rng(5)
    measures = [parse("nDCG@20"), parse("nDCG(gain=exp)@20")]
    for _ in range(4):
        grades: list[float | None] = rng.integers(0, 4, 20).astype(float).tolist()
        gap = rng.choice(20, 5, replace=False).tolist()
        missed = rng.integers(1, 4, 3).astype(float).tolist()
        done = []
        for chosen in itertools.product((0.0, 1.0, 2.0, 3.0), repeat=len(gap)):
            filled = list(grades)
            for place, grade in zip(gap, chosen, strict=True):
                filled[place] = grade
            done.append(filled)
        for place in gap:
            grades[place] = None
        run = Run.from_dict({f"{i:04}": {f"d{p:02}": -p for p in range(20)} for i in range(1024)})
        missing = {f"m{place}": grade for place, grade in enumerate(missed)}
        judged = {
            f"{i:04}": {f"d{p:02}": grade for p, grade in enumerate(filled)} | missing
            for i, filled in enumerate(done)
        }
        every = reduce(run, Qrels.from_dict(judged))
        for measure in measures:
            value = measure(every)
            low, high = ends(str(measure), by_rank(grades, missed))
            assert low == pytest.approx(value.min(), abs=1e-12)
            assert high == pytest.approx(value.max(), abs=1e-12)


def test_deep_lists_lie_between_random_completions(deep: bool) -> None:
    # Half of 20 unjudged, where enumeration is out of reach: no completion may lie outside.
    rng = np.random.default_rng(3)
    n, depth, scale = 40, 20, 3
    run = {f"q{i:02}": {f"d{d}": -float(d) for d in range(depth)} for i in range(n)}
    judged = {
        query: {doc: float(rng.integers(0, scale + 1)) for doc in docs if rng.random() < 0.5}
        | {"missed": 2.0}
        for query, docs in run.items()
    }
    table = Run.from_dict(run)
    evidence = dataclasses.replace(
        reduce(table, Qrels.from_dict(judged)), scale=(0.0, float(scale))
    )
    measure = parse("nDCG(gain=exp)@20")
    found = measure.bounds(evidence)
    assert found is not None
    low, high = found
    for trial in range(200 if deep else 30):
        done = {}
        for query, docs in run.items():
            gap = [doc for doc in docs if doc not in judged[query]]
            grades = rng.integers(0, scale + 1, len(gap)).astype(float)
            if trial % 3 == 1:
                grades = np.sort(grades)[::-1]  # best first: near the top
            elif trial % 3 == 2:
                grades = np.where(np.arange(len(gap)) >= rng.integers(0, len(gap) + 1), 3.0, 0.0)
            done[query] = judged[query] | dict(zip(gap, grades.tolist(), strict=True))
        value = measure(reduce(table, Qrels.from_dict(done)))
        assert (value >= low - 1e-12).all()
        assert (value <= high + 1e-12).all()
    assert (low < high).all()


def test_blocks_of_queries_do_not_show(by_rank: ByRank, monkeypatch: pytest.MonkeyPatch) -> None:
    run = {f"q{i}": {f"d{d}": -float(d) for d in range(i % 5 + 1)} for i in range(23)}
    qrels = Qrels.from_dict({query: {"d0": 1.0, "d2": 2.0} for query in run})
    evidence = reduce(Run.from_dict(run), qrels)
    names = ("nDCG@3", "nDCG", "AP", "DCG@2")
    whole = [parse(name).bounds(evidence) for name in names]
    monkeypatch.setattr(unjudged, "_CELLS", 7)
    assert len(list(gaps(evidence, 3))) > 5
    np.testing.assert_equal([parse(name).bounds(evidence) for name in names], whole)


def test_a_gain_of_ones_own_counts_at_the_grades_it_names(by_rank: ByRank) -> None:
    # 0.5 gains 10: the gap at rank 1 can gain 10, though the ends of the scale gain 0 and 1.
    low, high = ends("DCG(gain={0.5: 10})@2", by_rank([None, 1]), high=1.0)
    known = 1 / np.log2(3)
    assert (low, high) == (pytest.approx(known), pytest.approx(10 + known))


def test_many_levels_are_no_burden(by_rank: ByRank) -> None:
    # Grades of a model, all different, over many queries: each query goes by its own levels.
    rng = np.random.default_rng(1)
    docs = [f"d{place}" for place in range(30)]
    run = {f"q{i}": dict(zip(docs, rng.random(30).tolist(), strict=True)) for i in range(200)}
    judged = {q: {doc: float(rng.random()) for doc in docs[:15]} for q in run}
    evidence = reduce(Run.from_dict(run), Qrels.from_dict(judged))
    found = parse("nDCG@10").bounds(evidence)
    assert found is not None
    for index in (0, 77, 199):
        alone = parse("nDCG@10").bounds(evidence.at(np.array([index])))
        assert alone is not None
        assert found[0][index] == pytest.approx(alone[0][0])
        assert found[1][index] == pytest.approx(alone[1][0])


@pytest.mark.parametrize("scale", [(0.0, 1.0), (0.0, 0.5), (1.0, 2.0)])
def test_missed_documents_count_in_the_r_of_average_precision(
    by_rank: ByRank, scale: tuple[float, float]
) -> None:
    # Two of any grade that were not retrieved: least with both of the greatest grade, greatest
    # with both of the least.
    grades: list[float | None] = [1, None, 0, None, 1]
    evidence = dataclasses.replace(by_rank(grades, [1]), scale=scale)
    found = unjudged.average_precision_bounds(evidence, None, 1.0, np.array([2]))
    parts = [dataclasses.replace(by_rank(grades, [1, end, end]), scale=scale) for end in scale]
    fewest, most = (unjudged.average_precision_bounds(each, None, 1.0) for each in parts)
    assert [end.tolist() for end in found] == [most[0].tolist(), fewest[1].tolist()]
