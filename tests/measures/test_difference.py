"""Differences over what the unjudged could be: against enumeration, and worked examples."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import numpy as np
import pytest

from karat.measures import Measure, linear_numerators, parse
from karat.measures.difference import difference_bounds, greatest_difference
from karat.measures.evidence import Floats
from karat.measures.run_pair import Pair
from karat.tables import Qrels, Run

CLOSE = 1e-12
EXACT = (
    *("P@1", "P@3", "P(rel=2)@4", "P(rel=3)@2", "SetP", "RBP(p=0.8)", "RBP(p=0.5, rel=2)@3"),
    *("RBP(p=0.9, max=3)@4", "RBP(p=0.7, max=1)", "DCG", "DCG@3", "DCG(gain=exp)@2"),
    *("R@1", "R@3", "R(rel=2)@2", "SetR", "Rcap@1", "Rcap@2", "Rcap(rel=2)@3"),
    *("RR", "RR@2", "RR(rel=2)@3", "Success@1", "Success@3", "Success(rel=2)@2"),
    *("nDCG", "nDCG@1", "nDCG@2", "nDCG@3", "nDCG(gain=exp)@3", "nDCG(gain=exp)"),
    *("nDCG(discount=jk, base=2)@4", "nDCG(gain={1: 5, 2: 1})@3", "DCG(gain={1: 4, 2: 0})@2"),
    "nDCG(gain={1: 0, 2: 1})@3",
)
OUTER = ("AP", "AP@2", "AP(rel=2)@3", "ERR", "ERR@2", "ERR(max=3)@3")
Ranking = Sequence[str]
Case = tuple[Ranking, Ranking, Mapping[str, float]]  # baseline, candidate, judged


def paired(cases: Sequence[Case], scale: tuple[float, float]) -> Pair:
    """A pair of runs with a query for each case, in their order."""
    baseline, candidate = (
        Run.from_dict({name(i): scores(case[run]) for i, case in enumerate(cases)})
        for run in (0, 1)
    )
    # A judgment of 0 that no run shows keeps the query, and changes nothing.
    judged = {name(i): {**case[2], "none": 0.0} for i, case in enumerate(cases)}
    frame = Qrels.from_dict(judged).frame
    if scale[0] > 0:
        frame = Qrels.from_dict({q: d | {"none": -1.0} for q, d in judged.items()}).frame
    return Pair.of(baseline, candidate, Qrels(frame, scale=scale))


def name(index: int) -> str:
    return f"q{index:07}"


def scores(ranking: Ranking) -> dict[str, float]:
    return {doc: -float(place) for place, doc in enumerate(ranking)}


def drawn(rng: np.random.Generator, grades: Sequence[float], most: int) -> Case:
    """Two short rankings that share documents, at most so many of them unjudged."""
    docs = [f"d{i}" for i in range(int(rng.integers(2, 8)))]
    first, second = (
        rng.permutation(docs)[: int(rng.integers(0, len(docs) + 1))].tolist() for _ in range(2)
    )
    open_ones = set(rng.permutation(docs)[: int(rng.integers(0, most + 1))].tolist())
    judged = {doc: float(rng.choice(grades)) for doc in docs if doc not in open_ones}
    judged |= {doc: -1.0 for doc in open_ones if rng.random() < 0.1}
    judged |= {f"missed{i}": float(rng.choice(grades)) for i in range(int(rng.integers(0, 3)))}
    return first, second, judged


def completions(case: Case, grades: Sequence[float]) -> Iterator[tuple[int, Case]]:
    """Every grading of the unjudged, and the depth down to which it graded anything but 0."""
    first, second, judged = case
    gaps = [doc for doc in sorted({*first, *second}) if judged.get(doc, -1.0) < 0]
    depth = {
        doc: min(list(run).index(doc) + 1 for run in (first, second) if doc in run) for doc in gaps
    }
    for chosen in itertools.product(grades, repeat=len(gaps)):
        given = dict(zip(gaps, chosen, strict=True))
        deepest = max((depth[doc] for doc in gaps if given[doc] > 0), default=0)
        yield deepest, (first, second, {**judged, **given})


def differences(measure: Measure, pair: Pair) -> Floats:
    """Candidate minus baseline; 0 / 0 counts as 0."""
    return np.nan_to_num(measure(pair.of_candidate)) - np.nan_to_num(measure(pair.of_baseline))


def enumerated(
    cases: Sequence[Case], grades: Sequence[float], names: Sequence[str], deep: bool = False
) -> Iterator[tuple[str, Floats, Floats]]:
    """Each measure with the lowest and the highest difference of each case."""
    done = [list(completions(case, grades)) for case in cases]
    of = np.repeat(np.arange(len(cases)), [len(some) for some in done])
    depth = np.array([depth for some in done for depth, _ in some])
    pair = paired([case for some in done for _, case in some], (grades[0], grades[-1]))
    for each in names:
        measure = parse(each)
        looked = np.inf if measure.depth is None or deep else measure.depth
        value, allowed = differences(measure, pair), depth <= looked
        low, high = np.full(len(cases), np.inf), np.full(len(cases), -np.inf)
        np.minimum.at(low, of[allowed], value[allowed])
        np.maximum.at(high, of[allowed], value[allowed])
        yield each, low, high


def found(measure: str, pair: Pair) -> tuple[Floats, Floats]:
    bounds = difference_bounds(parse(measure), pair)
    assert bounds.low is not None
    assert bounds.high is not None
    return bounds.low, bounds.high


def test_bounds_equal_enumeration(deep: bool) -> None:
    rng = np.random.default_rng(11)
    grades = (0.0, 1.0, 2.0)
    cases = [drawn(rng, grades, 5) for _ in range(1200 if deep else 120)]
    pair = paired(cases, (0.0, 2.0))
    for measure, low, high in enumerated(cases, grades, EXACT):
        least, most = found(measure, pair)
        assert difference_bounds(parse(measure), pair).exact
        np.testing.assert_allclose(least, low, rtol=0, atol=CLOSE, err_msg=measure)
        np.testing.assert_allclose(most, high, rtol=0, atol=CLOSE, err_msg=measure)
        if measure == "nDCG@3":  # all cases of sign: decided one way, the other way, open
            of_each = (high < 0).sum(), (low > 0).sum(), ((low < 0) & (high > 0)).sum()
            assert min(of_each) > len(cases) / 24


def test_bounds_equal_enumeration_on_a_scale_that_begins_above_zero(deep: bool) -> None:
    # Every unjudged document in the top k gains at least as a grade of 1 does.
    rng = np.random.default_rng(12)
    grades = (1.0, 2.0, 3.0)
    cases = [drawn(rng, grades, 4) for _ in range(300 if deep else 100)]
    pair = paired(cases, (1.0, 3.0))
    whole = [each for each in EXACT if parse(each).depth is None]
    for measure, low, high in enumerated(cases, grades, [*whole, "nDCG@9", "R@9"], deep=True):
        least, most = found(measure, pair)
        np.testing.assert_allclose(least, low, rtol=0, atol=CLOSE, err_msg=measure)
        np.testing.assert_allclose(most, high, rtol=0, atol=CLOSE, err_msg=measure)


def test_outer_bounds_hold_every_completion(deep: bool) -> None:
    rng = np.random.default_rng(13)
    grades = (0.0, 1.0, 2.0)
    cases = [drawn(rng, grades, 5) for _ in range(400 if deep else 150)]
    pair = paired(cases, (0.0, 2.0))
    for measure, low, high in enumerated(cases, grades, OUTER):
        bounds = difference_bounds(parse(measure), pair)
        least, most = found(measure, pair)
        assert not bounds.exact
        assert "outer" in bounds.reason
        assert (least <= low + CLOSE).all(), measure
        assert (most >= high - CLOSE).all(), measure


def test_bounds_of_each_run_alone_would_be_wrong_for_ndcg() -> None:
    # Baseline: a (grade 1). Candidate: the unjudged b, then a. Bounds of the baseline alone: it
    # shows no gap, so nDCG@2 is 1. But a b of grade 2 raises its ideal too: 1 / (2 + 1/log2(3))
    # = .38009, while the candidate is ideal: a difference of .61991, which 1 - 1 = 0 rules out.
    pair = paired([(["a"], ["b", "a"], {"a": 1.0})], (0.0, 2.0))
    alone = [parse("nDCG@2").bounds(e) for e in (pair.of_baseline, pair.of_candidate)]
    assert alone[0] is not None
    assert alone[1] is not None
    assert alone[1][1][0] - alone[0][0][0] == 0.0
    _, high = found("nDCG@2", pair)
    assert high[0] == pytest.approx(1 - 1 / (2 + 1 / np.log2(3)), abs=1e-12)


def test_v25_of_rank_biased_precision() -> None:
    # A = d1 … d5 minus B = d3 d1 d6 d2 d7, d1 = 1, d4 = 0, p = .8. Weights (1 - p) p^(rank - 1):
    # .2, .16, .128, .1024, .08192. Known: d1, .2 - .16 = .04. Unjudged: d2 .16 - .1024, d3
    # .128 - .2, d5 .08192, d6 -.128, d7 -.08192: up to .04 + .0576 + .08192 = .17952, down to
    # .04 - .072 - .128 - .08192 = -.24192.
    pair = v25()
    low, high = found("RBP(p=0.8)", pair)
    assert low[0] == pytest.approx(-0.24192, abs=1e-12)
    assert high[0] == pytest.approx(0.17952, abs=1e-12)


def v25() -> Pair:
    baseline, candidate = ["d3", "d1", "d6", "d2", "d7"], ["d1", "d2", "d3", "d4", "d5"]
    return paired([(baseline, candidate, {"d1": 1.0, "d4": 0.0})], (0.0, 1.0))


def test_a_document_that_both_rank_alike_changes_no_dcg() -> None:
    # Each run by itself could be anything from 0 to 2 / log2(2); the difference cannot.
    pair = paired([(["x", "a"], ["x", "b"], {"a": 1.0, "b": 0.0})], (0.0, 2.0))
    low, high = found("DCG@2", pair)
    assert low[0] == high[0] == pytest.approx(-1 / np.log2(3))
    # It does change nDCG, by its ideal: x = 2 makes it 2 + 1/log2(3), x = 0 leaves it 1.
    low, high = found("nDCG@2", pair)
    third = 1 / np.log2(3)
    assert (low[0], high[0]) == (pytest.approx(-third), pytest.approx(-third / (2 + third)))


def test_the_other_way_round_is_the_negative() -> None:
    rng = np.random.default_rng(4)
    cases = [drawn(rng, (0.0, 1.0, 2.0), 5) for _ in range(200)]
    there = paired(cases, (0.0, 2.0))
    back = Pair.of(there.candidate, there.baseline, there.qrels)
    for measure in (*EXACT, *OUTER):
        (low, high), (least, most) = found(measure, there), found(measure, back)
        np.testing.assert_array_equal(low, -most)
        np.testing.assert_array_equal(high, -least)


def test_runs_that_are_the_same_cannot_differ() -> None:
    rng = np.random.default_rng(5)
    cases = [(run, run, judged) for run, _, judged in (drawn(rng, (0, 1, 2), 5) for _ in range(99))]
    pair = paired(cases, (0.0, 2.0))
    for measure in EXACT:
        low, high = found(measure, pair)
        assert not low.any(), measure
        assert not high.any(), measure


def test_deep_lists_lie_between_random_completions(deep: bool) -> None:
    # Twenty ranks, half of them unjudged: no completion may lie outside.
    rng = np.random.default_rng(6)
    docs = [f"d{i:02}" for i in range(30)]
    cases: list[Case] = []
    for _ in range(20):
        judged = {doc: float(rng.integers(0, 4)) for doc in docs if rng.random() < 0.5}
        cases.append((rng.permutation(docs).tolist(), rng.permutation(docs).tolist(), judged))
    measures = ("nDCG@10", "nDCG(gain=exp)@20", "nDCG", "RR@10", "R@10", "AP@20", "ERR@20")
    pair = paired(cases, (0.0, 3.0))
    pools = {each: pair.pool(parse(each)) for each in measures}
    bounds = {each: found(each, pair) for each in measures}
    for trial in range(15 if deep else 3):
        odds = [(0.25, 0.25, 0.25, 0.25), (0.7, 0, 0, 0.3), (0.9, 0.1, 0, 0)][trial % 3]
        for each in measures:
            pool = pools[each]
            done = [dict(judged) for *_, judged in cases]
            for row in np.flatnonzero(pool.unjudged).tolist():
                done[pool.query[row]][pool.doc_id(np.array([row]))[0]] = float(
                    rng.choice(4, p=odds)
                )
            full = paired(
                [(a, b, judged) for (a, b, _), judged in zip(cases, done, strict=True)], (0.0, 3.0)
            )
            value, (low, high) = differences(parse(each), full), bounds[each]
            assert (value >= low - CLOSE).all(), each
            assert (value <= high + CLOSE).all(), each


def test_blocks_of_queries_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    pair = paired([drawn(rng, (0.0, 1.0, 2.0), 5) for _ in range(50)], (0.0, 2.0))
    names = ("nDCG@3", "nDCG", "R@3")
    whole = [found(each, pair) for each in names]
    monkeypatch.setattr(linear_numerators, "_CELLS", 7)
    np.testing.assert_equal([found(each, pair) for each in names], whole)


def test_the_mean_is_that_of_the_ends() -> None:
    cases: list[Case] = [
        (["a"], ["x"], {"a": 1.0}),  # -1 or 0
        (["x"], ["a"], {"a": 1.0}),  # 0 or 1
        (["a"], ["b"], {"a": 0.0, "b": 1.0}),  # 1
    ]
    bounds = difference_bounds(parse("P@1"), paired(cases, (0.0, 1.0)))
    assert bounds.mean() == (0.0, pytest.approx(2 / 3))
    assert bounds.mean(np.array([True, True, False])) == (-0.5, 0.5)
    weights = np.array([3.0, 1.0, 1.0])
    assert bounds.mean(weights=weights) == (pytest.approx(-2 / 5), pytest.approx(2 / 5))
    assert bounds.mean(np.zeros(3, np.bool_)) is None


def test_what_nobody_knows_has_a_reason() -> None:
    pair = v25()
    for measure in ("Bpref", "Rprec", "Condensed(nDCG@3)", "Compat", "GMAP"):
        bounds = difference_bounds(parse(measure), pair)
        assert bounds.low is None
        assert bounds.high is None
        assert not bounds.exact
        assert measure in bounds.reason
        assert bounds.mean() is None


def test_a_cut_leaves_out_what_stands_below_it() -> None:
    baseline, candidate = Run.from_dict({"q": scores("ab")}), Run.from_dict({"q": scores("axy")})
    qrels = Qrels.from_dict({"q": {"a": 1.0, "b": 0.0}})
    low, high = found("DCG", Pair.of(baseline, candidate, qrels, depth=2))
    assert (low[0], high[0]) == (0.0, pytest.approx(1 / np.log2(3)))
    low, high = found("SetP", Pair.of(baseline, candidate, qrels, depth=2))
    assert (low[0], high[0]) == (0.0, 0.5)


def test_a_query_that_one_run_lacks_is_all_the_other_s() -> None:
    baseline, candidate = Run.from_dict({"p": {"a": 1.0}}), Run.from_dict({"q": scores("x")})
    qrels = Qrels.from_dict({"p": {"a": 1.0}, "q": {"b": 1.0}})
    low, high = found("P@1", Pair.of(baseline, candidate, qrels))
    assert low.tolist() == [-1.0, 0.0]
    assert high.tolist() == [-1.0, 1.0]


def test_unseen_documents_are_as_if_judged_best_and_shown_by_neither() -> None:
    rng = np.random.default_rng(14)
    cases = [drawn(rng, (0.0, 1.0, 2.0), 5) for _ in range(150)]
    pair = paired(cases, (0.0, 2.0))

    @cache
    def judged_too(unseen: int, best: float) -> Pair:
        more = {f"unseen{i}": best for i in range(unseen)}
        return paired([(a, b, {**judged, **more}) for a, b, judged in cases], (0.0, 2.0))

    for each in (*EXACT, "nDCG(gain={1: 5, 2: 1})"):
        measure = parse(each)
        greatest = greatest_difference(measure, pair)
        gain = measure.settings.get("gain")
        best = 1.0 if isinstance(gain, dict) and gain.get(1.0, 0.0) > gain.get(2.0, 2.0) else 2.0
        for unseen in (1, 4):
            same = greatest_difference(measure, judged_too(unseen, best))
            for sign in (1.0, -1.0):
                found, wanted = greatest(sign, unseen), same(sign, 0)
                np.testing.assert_allclose(found, wanted, rtol=0, atol=CLOSE, err_msg=each)
