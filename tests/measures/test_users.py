"""ERR, RBP and its residual, Compat, Accuracy: vectors, brute force, and what they refuse."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.choosing import FEW

from karat.errors import InputError, UsageError
from karat.measures import Evidence, parse, reduce
from karat.tables import Qrels, Run

Value = Callable[..., float]
Grades = Sequence[float | None]
RANKED = st.lists(st.sampled_from((None, -1, 0, 0.5, 1, 2, 3)), max_size=8)
MISSED = st.lists(st.sampled_from((-1, 0, 1, 2, 3)), min_size=1, max_size=3)

# The judgments and rankings that the frozen numbers of other tools are of.
QRELS: dict[str, dict[str, float]] = {
    "1": {"a": 2, "b": 0, "c": 1, "d": 3, "e": 1, "z": 1},
    "2": {"a": 1, "c": 0, "y": 2},
    "3": {"a": 4, "b": 3},
}
RANKINGS = {"1": "baxdcwe", "2": "xabcy", "3": "ba"}


def evidence(queries: str = "123") -> Evidence:
    run = {q: {doc: -float(i) for i, doc in enumerate(RANKINGS[q])} for q in queries}
    return reduce(Run.from_dict(run), Qrels.from_dict({q: QRELS[q] for q in queries}))


# --- ERR ---


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # gdeval 1.2a, as ir_measures 0.4.3 calls it (ERR@K): five decimals, max is always 4.
        ("ERR(max=4)@2", [0.09375, 0.03125, 0.70117]),
        ("ERR(max=4)@5", [0.18833, 0.06641, 0.70117]),
        ("ERR(max=4)@20", [0.19216, 0.06641, 0.70117]),
        ("ERR(max=4)", [0.19216, 0.06641, 0.70117]),
    ],
)
def test_err_is_gdevals(name: str, expected: list[float]) -> None:
    assert parse(name)(evidence()).round(5).tolist() == expected


def test_err_goes_by_the_top_of_the_scale(value_of: Value) -> None:
    # Grade 1 on a scale to 1 satisfies with (2 - 1)/2 = 1/2; to 3 with 1/8.
    assert value_of("ERR@5", (1,)) == 0.5
    assert value_of("ERR@5", (1,), (3,)) == 0.125
    assert value_of("ERR(max=3)@5", (1,)) == 0.125
    # The declared scale counts, whatever the largest grade there is.
    run = Run.from_dict({"q": {"a": 1.0}})
    declared = Qrels.from_dict({"q": {"a": 1.0}}).on_scale((0, 3))
    assert parse("ERR")(reduce(run, declared)).tolist() == [0.125]


def test_a_grade_above_max_is_refused(value_of: Value) -> None:
    with pytest.raises(InputError, match=r"grade 3 is above 2.*\(query q\)"):
        value_of("ERR(max=2)", (1,), (3,))


def test_err_of_no_grade_above_0_is_0(value_of: Value) -> None:
    assert value_of("ERR", (0, None, -1)) == 0.0
    assert value_of("ERR", (), (1,)) == 0.0


@FEW
@given(RANKED, MISSED, st.sampled_from((None, 1, 3)))
def test_err_by_the_formula(
    value_of: Value, grades: Grades, missed: list[int], k: int | None
) -> None:
    going, expected = 1.0, 0.0
    for rank, grade in enumerate(grades[:k], 1):
        stop = (2 ** max(grade or 0, 0) - 1) / 2**3
        expected += going * stop / rank
        going *= 1 - stop
    at = "" if k is None else f"@{k}"
    assert value_of(f"ERR(max=3){at}", grades, missed) == pytest.approx(expected, abs=1e-15)


# --- RBP ---


@pytest.mark.parametrize(
    ("p", "retrieved", "rbp", "residual"),
    [
        # Worked by hand from the paper's formulas: one document in two unjudged …
        (0.5, (1, 0, None, 1, None), 0.5625, 0.1875),
        (0.8, (1, 0, None, 1, None), 0.3024, 0.5376),
        (0.9, (1, 0, None, 1, None), 0.1729, 0.7371),
        # … and all judged: what is left is the tail p^5, which trec_eval 10 forgets.
        (0.5, (1, 0, 1, 0, 1), 0.65625, 0.03125),
        (0.8, (1, 0, 1, 0, 1), 0.40992, 0.32768),
        (0.9, (1, 0, 1, 0, 1), 0.24661, 0.59049),
        # A grade below 0 is pooled and not judged.
        (0.5, (1, 0, -1, 1, -2), 0.5625, 0.1875),
        # Nothing returned: nothing is known.
        (0.8, (), 0.0, 1.0),
    ],
)
def test_rbp_and_its_residual(
    value_of: Value, p: float, retrieved: Grades, rbp: float, residual: float
) -> None:
    assert value_of(f"RBP(p={p})", retrieved, (1,)) == pytest.approx(rbp, abs=1e-12)
    assert value_of(f"RBPresid(p={p})", retrieved, (1,)) == pytest.approx(residual, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # ir_measures 0.4.3 with cwl-eval 1.0.12: RBP(p=…, rel=…).
        ("RBP(p=0.5)", [0.3515625, 0.28125]),
        ("RBP(p=0.5, rel=2)", [0.3125, 0.03125]),
        ("RBP(p=0.8)", [0.39674879999999996, 0.24191999999999994]),
        ("RBP(p=0.8, rel=2)", [0.26239999999999997, 0.08191999999999999]),
        ("RBP(p=0.95)", [0.16784865703125013, 0.08822531250000007]),
        ("RBP(p=0.95, rel=2)", [0.09036875000000008, 0.04072531250000003]),
    ],
)
def test_rbp_is_cwl_evals(name: str, expected: list[float]) -> None:
    assert parse(name)(evidence("12")).tolist() == pytest.approx(expected, abs=1e-14)


def test_graded_rbp(value_of: Value) -> None:
    # Gains 2/3, 0, 1: .2 x (2/3 + .64) = .2613; a grade above max counts as max.
    assert value_of("RBP(p=0.8, max=3)", (2, 0, 3)) == pytest.approx(0.2 * (2 / 3 + 0.64))
    assert value_of("RBP(p=0.8, max=2)", (2, 0, 3)) == pytest.approx(0.2 * 1.64)
    assert value_of("RBP(p=0.8, max=1)", (0.3, -1)) == pytest.approx(0.06)
    # With a cutoff the third is not seen.
    assert value_of("RBP(p=0.8, max=3)@2", (2, 0, 3)) == pytest.approx(0.2 * 2 / 3)


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("RBP", "RBP needs p: probability"),
        ("RBPresid", "RBPresid needs p"),
        ("RBP(p=1)", "p=1 is not a number above 0 and below 1"),
        ("RBP(p=0)", "p=0 is not a number above 0 and below 1"),
        ("Compat(p=2)", "p=2 is not a number above 0 and below 1"),
        ("RBP(p=0.8, rel=2, max=3)", "does not support rel"),
        ("ERR(max=0)", "max=0 is not a number above 0"),
    ],
)
def test_refusals(typed: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(typed)
    assert says in str(caught.value)


@FEW
@given(RANKED, st.sampled_from((0.3, 0.8)), st.sampled_from((None, 1, 3, 20)))
def test_rbp_and_its_residual_are_what_judges_could_still_make_of_it(
    value_of: Value, grades: Grades, p: float, k: int | None
) -> None:
    at = "" if k is None else f"@{k}"
    low = value_of(f"RBP(p={p}){at}", grades, (1,))
    seen = list(grades)[:k]
    # Everything unjudged relevant, and relevant documents on and on below what was looked at.
    best = [1 if grade is None or grade < 0 else grade for grade in seen] + [1] * 400
    high = value_of(f"RBP(p={p})", best)
    assert low + value_of(f"RBPresid(p={p}){at}", grades, (1,)) == pytest.approx(high, abs=1e-9)


# --- Compat ---


def rbo(ranking: Sequence[str], ideal: Sequence[str], p: float) -> float:
    """Truncated rank-biased overlap by the formula, not divided by the sum of its weights."""
    depths = range(1, max(len(ranking), len(ideal)) + 1)
    return math.fsum(p ** (d - 1) * len({*ranking[:d]} & {*ideal[:d]}) / d for d in depths)


def compat(grades: Mapping[str, float], ranking: list[str], p: float) -> float:
    wanted = [doc for doc in grades if grades[doc] > 0]
    there = {doc: place for place, doc in enumerate(ranking)}
    ideal = sorted(wanted, key=lambda doc: (-grades[doc], there.get(doc, math.inf)))
    depth = max(len(ranking), len(ideal))
    padded = [*ideal, *(f"none{i}" for i in range(depth - len(ideal)))]
    best = rbo(padded, ideal, p)
    return rbo(ranking, ideal, p) / best if best else math.nan


@FEW
@given(
    st.dictionaries(st.sampled_from("abcdefg"), st.sampled_from((-1, 0, 0.5, 1, 2)), min_size=1),
    st.lists(st.sampled_from("abcdefgxyz"), unique=True),
    st.sampled_from((0.5, 0.9, 0.95)),
)
def test_compat_by_the_formula(grades: dict[str, float], ranking: list[str], p: float) -> None:
    run = Run.from_dict({"q": {doc: -float(i) for i, doc in enumerate(ranking)}})
    got = float(parse(f"Compat(p={p})")(reduce(run, Qrels.from_dict({"q": grades})))[0])
    assert got == pytest.approx(compat(grades, ranking, p), abs=1e-12, nan_ok=True)


def test_compat_takes_the_runs_side_where_grades_tie(value_of: Value) -> None:
    # Any order of the two best is ideal; the one not retrieved comes after those that are.
    assert value_of("Compat", (2, 2)) == pytest.approx(1.0)
    # Ideal: first, third, missed. Overlaps 1, 1, 2 of 1, 2, 3 ideally.
    by_hand = (1 + 0.5 / 2 + 0.25 * 2 / 3) / (1 + 0.5 + 0.25)
    assert value_of("Compat(p=0.5)", (1, 0, 1), (1,)) == pytest.approx(by_hand)


# --- Accuracy ---


@FEW
@given(RANKED, MISSED, st.sampled_from((None, 1, 3)), st.sampled_from((1, 2)))
def test_accuracy_by_counting_pairs(
    value_of: Value, grades: Grades, missed: list[int], k: int | None, rel: int
) -> None:
    relevant = [grade is not None and grade >= rel for grade in grades[:k]]
    pairs = [
        good < bad
        for good in range(len(relevant))
        for bad in range(len(relevant))
        if relevant[good] and not relevant[bad]
    ]
    expected = sum(pairs) / len(pairs) if pairs else math.nan
    at = "" if k is None else f"@{k}"
    got = value_of(f"Accuracy(rel={rel}){at}", grades, missed)
    assert got == pytest.approx(expected, abs=1e-15, nan_ok=True)


def test_accuracy_without_unjudged_documents(value_of: Value) -> None:
    # 1 above 0: 1 of 1; with the unjudged in between the second is above none of two: 2 of 4.
    assert value_of("Accuracy", (1, None, 0, 1)) == 0.5
    assert value_of("Condensed(Accuracy)", (1, None, 0, 1)) == 0.5
    assert value_of("Condensed(Accuracy)", (None, 1, 0)) == 1.0
    assert value_of("Accuracy", (None, 1, 0)) == 0.5


# --- for all of them ---


@pytest.mark.parametrize("name", ["ERR@3", "RBP(p=0.8)", "Compat", "Accuracy", "RBP(p=.5, max=3)"])
def test_terms_add_up(name: str, by_rank: Callable[..., Any]) -> None:
    case = by_rank((3, None, 0, 1, 2), (1, 0))
    terms = parse(name).terms(case)
    assert terms is not None
    assert math.fsum(terms.term) / terms.norm[0] == pytest.approx(parse(name)(case)[0])
    counted = terms.term > 0
    assert (terms.gain * terms.discount)[counted] == pytest.approx(terms.term[counted])
