"""The weighted sum: the normalisations by hand and as in ranx, its laws, and what it refuses."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.choosing import FEW

from karat.errors import InputError, UsageError
from karat.fusion import NORMALISATIONS, weighted_sum
from karat.tables import Run

Scored = dict[str, float]

numbers = st.integers(-50, 50).map(float)
rankings = st.dictionaries(st.sampled_from("abcdefgh"), numbers)
systems = st.lists(st.tuples(rankings, st.floats(0.1, 10)), min_size=1, max_size=5)
kinds = st.sampled_from(list(NORMALISATIONS))

BM25 = {"a": 10.0, "b": 7.0, "c": 4.0, "d": 2.0}
DENSE = {"a": 0.2, "b": 0.9, "c": 0.5, "d": 0.4}
SHORT = {"b": 0.9, "e": 0.4}


def fused(*scored: Scored, **options: Any) -> Scored:
    """The fusion of the scores of one query: document → score, best first."""
    runs = [Run.from_dict({"q": each}) for each in scored]
    return weighted_sum(runs, **options).to_dict()["q"]


def normalised(scored: Scored, kind: str) -> Scored:
    """The definitions, one query at a time."""
    low, high, n = min(scored.values()), max(scored.values()), len(scored)
    mean = math.fsum(scored.values()) / n
    deviation = math.sqrt(math.fsum((each - mean) ** 2 for each in scored.values()) / n)
    total = math.fsum(each - low for each in scored.values())
    of: dict[str, Any] = {
        "min-max": lambda s: (s - low) / (high - low) if high > low else 1.0,
        "z-score": lambda s: (s - mean) / deviation if high > low else 0.0,
        "sum": lambda s: (s - low) / total if high > low else 1 / n,
        "none": lambda s: s,
    }
    return {doc: of[kind](each) for doc, each in scored.items()}


def test_min_max() -> None:
    # b: .7 · (7-2)/(10-2) + .3 · (.9-.2)/(.9-.2) = .7 · .625 + .3 = .7375; a: .7 · 1 + .3 · 0;
    # c: .7 · 2/8 + .3 · .3/.7 = .175 + .1285714; d: .7 · 0 + .3 · .2/.7 = .0857143.
    # ranx 0.3.21, fuse(norm="min-max", method="wsum"), gives the same:
    wanted = {"b": 0.7375, "a": 0.7, "c": 0.3035714285714286, "d": 0.08571428571428573}
    found = fused(BM25, DENSE, weights=[0.7, 0.3])
    assert found == pytest.approx(wanted, rel=1e-14)
    assert list(found) == ["b", "a", "c", "d"]


def test_min_max_takes_what_is_lacking_as_0() -> None:
    # ranx 0.3.21 likewise. e is the last of its run, with 0, and lacking in the other.
    found = fused(BM25, SHORT, weights=[0.7, 0.3])
    assert found == pytest.approx({"b": 0.7375, "a": 0.7, "c": 0.175, "e": 0, "d": 0}, rel=1e-14)


def test_z_score() -> None:
    # bm25: mean 23/4 = 5.75, variance (4.25² + 1.25² + 1.75² + 3.75²)/4 = 36.75/4 = 9.1875, so a
    # has 4.25/3.03109 = 1.40214; dense: mean .5, variance (.09 + .16 + 0 + .01)/4 = .065, so a has
    # -.3/.254951 = -1.17670. Their sum, .7 · 1.40214 - .3 · 1.17670 = .62849.
    # ranx 0.3.21, norm="zmuv":
    wanted = {
        "b": 0.7593538589264546,
        "a": 0.6284864143736326,
        "c": -0.40414518843273795,
        "d": -0.9836950848673489,
    }
    assert fused(BM25, DENSE, weights=[0.7, 0.3], normalise="z-score") == pytest.approx(
        wanted, rel=1e-14
    )


def test_z_score_takes_what_is_lacking_as_the_lowest() -> None:
    # The second run gives b 1 and e -1, so a, c and d have -1 there too; ranx 0.3.21 takes them
    # as 0, between b and e, and prints a .98149546 = .68149546 + .3 · 1.
    found = fused(BM25, SHORT, weights=[0.7, 0.3], normalise="z-score")
    assert found["a"] == pytest.approx(0.9814954576223638 - 0.3, rel=1e-14)
    assert found["b"] == pytest.approx(0.5886751345948129, rel=1e-14)
    # e has the lowest of the first run, that of d: .7 · -3.75/3.03109 - .3 · 1.
    assert found["e"] == found["d"] == pytest.approx(-0.8660254037844386 - 0.3, rel=1e-14)


def test_sum() -> None:
    # bm25 above its lowest: 8 + 5 + 2 + 0 = 15; dense: 0 + .7 + .3 + .2 = 1.2.
    # b: .7 · 5/15 + .3 · .7/1.2 = .233333 + .175. ranx 0.3.21, norm="sum":
    wanted = {
        "b": 0.4083333333333333,
        "a": 0.3733333333333333,
        "c": 0.16833333333333333,
        "d": 0.05,
    }
    found = fused(BM25, DENSE, weights=[0.7, 0.3], normalise="sum")
    assert found == pytest.approx(wanted, rel=1e-14)


def test_none_takes_what_is_lacking_as_the_lowest_score() -> None:
    # a: .7 · 10 + .3 · .4; b: .7 · 7 + .3 · .9; e: .7 · 2 + .3 · .4, as d.
    found = fused(BM25, SHORT, weights=[0.7, 0.3], normalise="none")
    wanted = {"a": 7.12, "b": 5.17, "c": 2.92, "e": 1.52, "d": 1.52}
    assert found == pytest.approx(wanted, rel=1e-14)


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("min-max", {"a": 1, "b": 1, "c": 0}),  # c has 0 of its own, the lowest of d, c
        ("z-score", {"a": -1, "b": -1, "c": -1}),
        ("sum", {"a": 0.5, "b": 0.5, "c": 0}),
    ],
)
def test_scores_that_are_all_equal(kind: str, wanted: Scored) -> None:
    found = fused({"a": 0.1, "b": 0.1}, {"d": 3, "c": 1}, normalise=kind)
    assert found.pop("d") == 1
    assert found == pytest.approx(wanted)


def test_a_run_without_the_query_adds_nothing() -> None:
    one = Run.from_dict({"q": {"a": 3, "b": 1}, "other": {"c": 1}})
    two = Run.from_dict({"other": {"c": 2, "d": -1}})
    found = weighted_sum([one, two], normalise="z-score").to_dict()
    assert found["q"] == pytest.approx({"a": 1, "b": -1})
    # c and d are 1 and -1 in the second; in the first c is alone, which says nothing.
    assert found["other"] == pytest.approx({"c": 1, "d": -1})


def test_depth_cuts_before_normalising_and_after_adding() -> None:
    # Of bm25 a and b are read, with 1 and 0; of dense b and c, with 1 and 0. b 1 and a 1 stay.
    assert fused(BM25, DENSE, depth=2) == {"b": 1.0, "a": 1.0}


def test_what_the_run_says_of_itself() -> None:
    one, two = Run.from_dict({"q": {"a": 1}}, "one"), Run.from_dict({}, "two")
    found = weighted_sum([one, two], [0.7, 0.3], normalise="z-score", name="both")
    assert found.name == "both"
    assert found.about == {
        "fusion": "weighted sum, scores normalised by z-score",
        "weights": "0.7, 0.3",
        "fused": "one, two",
    }


@pytest.mark.parametrize(
    ("one", "two", "state"),
    [({"a": 1}, None, "ok"), ({}, None, "empty"), (None, None, "failed"), ({}, {}, "empty")],
)
def test_the_state_of_a_query(one: Any, two: Any, state: str) -> None:
    runs = [Run.from_dict({"q": one}), Run.from_dict({"q": two})]
    for pair in (runs, runs[::-1]):
        answers = weighted_sum(pair).answers
        assert answers.select("query_id", "state").rows() == [("q", state)]


def test_runs_without_anything() -> None:
    found = weighted_sum([Run.from_dict({}), Run.from_dict({})])
    assert len(found) == found.answers.height == 0


@pytest.mark.parametrize("score", [math.inf, -math.inf, 1e101])
def test_scores_that_cannot_be_added_are_refused(score: float) -> None:
    bad = Run.from_dict({"q1": {"z": 1}, "q": {"a": 1, "b": score}}, "bad")
    for kind in NORMALISATIONS:
        with pytest.raises(InputError, match=r"bad: the score of document b is .*\(query q\)") as e:
            weighted_sum([Run.from_dict({"q": BM25}), bad], normalise=kind)
        assert "reciprocal rank" in str(e.value)


def test_an_infinite_score_below_the_depth_is_not_read() -> None:
    assert fused({"a": 1, "b": -math.inf}, depth=1) == {"a": 1.0}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"normalise": "minmax"}, "unknown normalisation 'minmax'; did you mean min-max"),
        ({"normalise": None}, "unknown normalisation None"),
        ({"weights": [1]}, "there is 1 weight for 2 runs"),
        ({"weights": [1, 0]}, "the weight 0 is not a number above 0"),
        ({"weights": [1, math.nan]}, "the weight nan"),
        ({"depth": 0}, "a depth of 0"),
    ],
)
def test_what_is_out_of_range_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        fused(BM25, DENSE, **options)


@FEW
@given(systems, kinds)
def test_law_it_is_the_sum(given: list[tuple[Scored, float]], kind: str) -> None:
    docs = {doc for scored, _ in given for doc in scored}
    shares: dict[str, list[float]] = {doc: [] for doc in docs}
    for scored, weight in given:
        values = normalised(scored, kind) if scored else {}
        lowest = 0.0 if kind in {"min-max", "sum"} else min(values.values(), default=0.0)
        for doc in docs:
            shares[doc].append(weight * values.get(doc, lowest))
    found = fused(*(s for s, _ in given), weights=[w for _, w in given], normalise=kind)
    wanted = {doc: math.fsum(each) for doc, each in shares.items()}
    assert found == pytest.approx(wanted, rel=1e-12, abs=1e-12)
    assert list(found) == sorted(found, key=lambda doc: (found[doc], doc), reverse=True)


@FEW
@given(systems, kinds, st.randoms(use_true_random=False))
def test_law_the_order_of_the_runs_changes_no_bit(
    given: list[tuple[Scored, float]], kind: str, random: Any
) -> None:
    one, other = (
        fused(*(s for s, _ in each), weights=[w for _, w in each], normalise=kind)
        for each in (given, random.sample(given, len(given)))
    )
    assert list(one.items()) == list(other.items())


@FEW
@given(st.lists(rankings, min_size=1, max_size=4), st.integers(-3, 6), st.integers(-64, 64))
def test_law_the_units_of_scores_do_not_matter(
    scored: list[Scored], power: int, shift: int
) -> None:
    # Powers of two and small whole numbers: the arithmetic is exact, and so is the law.
    moved = [{doc: 2.0**power * s + shift for doc, s in scored[0].items()}, *scored[1:]]
    for kind in ("min-max", "z-score", "sum"):
        assert fused(*moved, normalise=kind) == fused(*scored, normalise=kind)


@FEW
@given(rankings, kinds)
def test_law_one_run_keeps_its_order(scored: Scored, kind: str) -> None:
    assert list(fused(scored, normalise=kind)) == list(Run.from_dict({"q": scored}).to_dict()["q"])


@FEW
@given(systems, st.data())
def test_law_a_better_score_never_lowers_a_document(
    given: list[tuple[Scored, float]], data: st.DataObject
) -> None:
    # Under min-max a document between the ends moves nobody else.
    which = data.draw(st.integers(0, len(given) - 1))
    scored, weights = given[which][0], [weight for _, weight in given]
    assume(len(set(scored.values())) > 1)
    doc = data.draw(st.sampled_from(sorted(scored)))
    others = [value for other, value in scored.items() if other != doc]
    assume(min(others) < scored[doc] < max(others))
    raised = {**scored, doc: data.draw(st.integers(int(scored[doc]), int(max(others))))}
    before = fused(*(s for s, _ in given), weights=weights)
    all_after = [raised if at == which else s for at, (s, _) in enumerate(given)]
    after = fused(*all_after, weights=weights)
    assert after[doc] >= before[doc]
    assert {d: v for d, v in after.items() if d != doc} == {
        d: v for d, v in before.items() if d != doc
    }
