"""Tie bands and unjudged bounds against exhaustive enumeration, on random cases.

Every order of tied documents, and every grade of every unjudged document, is a query of its own
in one large evidence; the measure itself says what each is worth.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
import pytest

from karat.measures import Evidence, Measure, parse, reduce
from karat.measures.ties import Band, tie_band
from karat.tables import Qrels, Run

CASES, DEEP_CASES = 200, 1500
CLOSE = 1e-12
GRADES: tuple[float | None, ...] = (None, None, 0.0, 0.0, 1.0, 1.0, 2.0, 3.0, -1.0)
Grades = Sequence[float | None]
Case = tuple[Grades, Sequence[float], Sequence[float]]  # by place: grades, scores; grades missed

TIED = (
    *("P@1", "P@3", "P(rel=2)@4", "R@2", "R@5", "Rcap@3", "Success@1", "Success(rel=2)@3"),
    *("RR", "RR@2", "RR(rel=3)@4", "AP", "AP@3", "AP(rel=2)", "GMAP", "Rprec", "RprecMult@2"),
    *("nDCG", "nDCG@1", "nDCG@3", "nDCG(gain=exp)@4", "nDCG(discount=jk, base=2)@5"),
    *("nDCG(gain={1: 5, 2: 1, 3: 2})@4", "DCG", "DCG@3", "Bpref", "Bpref(rel=2)", "GMBpref"),
    *("IPrec@0.4", "IPrec11", "SetP", "SetR", "SetF", "Ceiling(nDCG@3, depth=4)"),
    *("ERR", "ERR@2", "ERR(max=4)@4", "RBP(p=0.8)", "RBP(p=0.5, rel=2)@3", "RBP(p=0.9, max=3)"),
    *("Compat", "Compat(p=0.5)", "Condensed(nDCG@3)", "Condensed(AP)"),
)
WITHOUT_MEAN = {"GMAP", "GMBpref", "IPrec", "IPrec11", "Ceiling", "Compat"}
UNJUDGED = (
    *("P@1", "P@3", "P(rel=2)@4", "R@2", "Rcap@2", "Success@1", "Success(rel=2)@3", "SetP"),
    *("SetR", "RR", "RR@2", "RR(rel=3)@4", "AP", "AP@2", "AP@3", "AP(rel=2)@4", "GMAP"),
    *("nDCG", "nDCG@1", "nDCG@3", "nDCG(gain=exp)@4", "nDCG(discount=jk, base=2)@5"),
    *("nDCG(gain={1: 5, 2: 1, 3: 2})@4", "DCG", "DCG@3", "DCG(gain=exp)@2"),
    *("nDCG(gain={2: 0, 3: 1})@3", "DCG(gain={1: 4, 2: 0})@2"),
    *("ERR(max=4)", "ERR(max=4)@3", "RBP(p=0.8)", "RBP(p=0.5, rel=2)@3", "RBP(p=0.9, max=3)@4"),
)


def reduced(cases: Sequence[Case]) -> Evidence:
    """Evidence with a query for each case, in their order."""
    run = {name(i): dict(zip(names(c[0]), c[1], strict=True)) for i, c in enumerate(cases)}
    judged = {name(i): grades_of(c) for i, c in enumerate(cases)}
    return reduce(Run.from_dict(run), Qrels.from_dict(judged))


def name(index: int) -> str:
    return f"q{index:07}"


def names(grades: Grades) -> list[str]:
    # Descending, so that tied documents stand in the order written.
    return [f"d{9 - place}" for place in range(len(grades))]


def grades_of(case: Case) -> dict[str, float]:
    grades, _, missed = case
    held = {d: g for d, g in zip(names(grades), grades, strict=True) if g is not None}
    return held | {"z": 0.0} | {f"m{i}": g for i, g in enumerate(missed)}


def drawn(rng: np.random.Generator, longest: int) -> Case:
    length = int(rng.integers(1, longest + 1))
    grades = [GRADES[i] for i in rng.integers(0, len(GRADES), length)]
    scores = np.sort(rng.integers(0, 4, length))[::-1].astype(float).tolist()
    missed = rng.choice([0.0, 1.0, 2.0, 3.0], rng.integers(0, 3)).tolist()
    return grades, scores, missed


def orders(case: Case) -> Iterator[Case]:
    """Every order of the tied documents, none of them tied any more."""
    grades, scores, missed = case
    groups = [
        [grade for grade, score in zip(grades, scores, strict=True) if score == level]
        for level in sorted(set(scores), reverse=True)
    ]
    for order in itertools.product(*(itertools.permutations(group) for group in groups)):
        ranked = list(itertools.chain(*order))
        yield ranked, [-float(place) for place in range(len(ranked))], missed


def completions(case: Case, k: int | None, scale: tuple[int, int]) -> Iterator[Case]:
    """Every grade on the scale for each unjudged document of the top k."""
    grades, _, missed = case
    scores = [-float(place) for place in range(len(grades))]
    options = [
        range(scale[0], scale[1] + 1)
        if (grade is None or grade < 0) and place < (k or len(grades))
        else [grade]
        for place, grade in enumerate(grades)
    ]
    for chosen in itertools.product(*options):
        yield list(chosen), scores, missed


def enumerated(measure: Measure, evidence: Evidence, groups: np.ndarray) -> list[np.ndarray]:
    value = np.nan_to_num(measure(evidence))  # nothing relevant: 0 of 0 counts as 0
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    low, high = np.minimum.reduceat(value, starts), np.maximum.reduceat(value, starts)
    mean = np.add.reduceat(value, starts) / np.diff(np.append(starts, len(value)))
    return [low, mean, high]


@pytest.fixture(scope="module")
def tied_cases(deep: bool) -> tuple[Evidence, Evidence, np.ndarray]:
    rng = np.random.default_rng(7)
    cases = [drawn(rng, 6) for _ in range(DEEP_CASES if deep else CASES)]
    every = [(i, order) for i, case in enumerate(cases) for order in orders(case)]
    return reduced(cases), reduced([order for _, order in every]), np.array([i for i, _ in every])


@pytest.mark.parametrize("text", TIED)
def test_tie_bands_equal_enumeration(
    text: str, tied_cases: tuple[Evidence, Evidence, np.ndarray]
) -> None:
    evidence, every, groups = tied_cases
    measure = parse(text)
    low, mean, high = enumerated(measure, every, groups)
    band = tie_band(measure, evidence, None, condensed=False)
    np.testing.assert_allclose(np.nan_to_num(band.low), low, atol=CLOSE)
    np.testing.assert_allclose(np.nan_to_num(band.high), high, atol=CLOSE)
    symbol = measure.entry.symbol
    assert (band.expected is None) == (symbol in WITHOUT_MEAN), "a closed form got lost, or is new"
    if band.expected is not None:
        np.testing.assert_allclose(np.nan_to_num(band.expected), mean, atol=CLOSE)


@pytest.mark.parametrize(
    "text", ["nDCG@3", "nDCG", "AP", "RR", "P@2", "Bpref", "SetP", "SetR", "SetF", "NumRelRet"]
)
@pytest.mark.parametrize(("depth", "condensed"), [(3, False), (None, True), (3, True)])
def test_tie_bands_of_cut_rankings_equal_enumeration(
    text: str,
    depth: int | None,
    condensed: bool,
    tied_cases: tuple[Evidence, Evidence, np.ndarray],
) -> None:
    evidence, every, groups = tied_cases
    measure = parse(text)
    read = every if depth is None else every.to_depth(depth)
    read = read.only_judged() if condensed else read
    low, mean, high = enumerated(measure, read, groups)
    band = tie_band(measure, evidence, depth, condensed=condensed)
    if depth is not None and condensed:  # nobody knows the best order of what is dropped
        assert band == Band(None, None, None)
        return
    assert band.low is not None
    assert band.high is not None
    np.testing.assert_allclose(np.nan_to_num(band.low), low, atol=CLOSE)
    np.testing.assert_allclose(np.nan_to_num(band.high), high, atol=CLOSE)
    # A cut through a tied group leaves no closed form, unless the measure looks no deeper.
    known = depth is None or (measure.depth or 99) <= depth
    assert (band.expected is not None) == known
    if band.expected is not None:
        np.testing.assert_allclose(np.nan_to_num(band.expected), mean, atol=CLOSE)


@cache
def completed(
    depth: int | None, scale: tuple[int, int], count: int
) -> tuple[Evidence, Evidence, np.ndarray]:
    """Cases with unjudged documents, all their completions, and the case of each of these."""
    rng = np.random.default_rng(11)
    cases = [drawn(rng, 4 if depth is None else 5) for _ in range(count)]
    every = [(i, done) for i, case in enumerate(cases) for done in completions(case, depth, scale)]
    untied = [(g, [-float(place) for place in range(len(g))], m) for g, _, m in cases]
    evidence = dataclasses.replace(reduced(untied), scale=tuple(map(float, scale)))
    return evidence, reduced([done for _, done in every]), np.array([i for i, _ in every])


@pytest.mark.parametrize("text", UNJUDGED)
@pytest.mark.parametrize(
    "scale", [(0, 3), *(pytest.param(each, marks=pytest.mark.deep) for each in ((0, 4), (1, 3)))]
)
def test_unjudged_bounds_equal_enumeration(text: str, scale: tuple[int, int], deep: bool) -> None:
    measure = parse(text)
    evidence, every, of = completed(measure.depth, scale, DEEP_CASES // 2 if deep else CASES)
    low, _, high = enumerated(measure, every, of)
    found = measure.bounds(evidence)
    assert found is not None
    np.testing.assert_allclose(found[0], low, atol=CLOSE)
    np.testing.assert_allclose(found[1], high, atol=CLOSE)
