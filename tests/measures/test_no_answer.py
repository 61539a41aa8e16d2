"""No-answer queries against plain loops: what is silent, and what a threshold would do."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.errors import InputError, UsageError
from karat.measures import no_answer as subject
from karat.measures.no_answer import MOST_POINTS, best_threshold, no_answer
from karat.tables import Run
from karat.tables.results import Silence

# Best scores: n1 .9, n2 .5, a1 .5, a2 .7. Nothing for n3 and a3, no answer for n4 and a4; n5 and
# a5 are not in the run.
RUN = Run.from_dict(
    {
        "n1": {"d1": 0.9, "d2": 0.1},
        "n2": {"d1": 0.2, "d2": 0.5},
        "n3": {},
        "n4": None,
        "a1": {"d3": 0.5},
        "a2": {"d3": 0.7, "d4": 0.7},
        "a3": {},
        "a4": None,
        "other": {"d1": 99.0},
    },
    name="system",
)
MARKED = ["n1", "n2", "n3", "n4", "n5"]
ANSWERABLE = ["a1", "a2", "a3", "a4", "a5"]


# --- by hand ---


def test_silent_is_empty_or_missing_and_failed_is_left_out() -> None:
    got = no_answer(RUN, MARKED, ANSWERABLE)
    # n1 n2 n3 n5 got an answer or could have; n3 is empty and n5 missing.
    assert (got.run, got.n, got.silent, got.share) == ("system", 4, 2, 0.5)
    assert (got.missing, got.failed, got.threshold) == (1, 1, None)


@pytest.mark.parametrize(
    ("threshold", "silent"), [(-1.0, 2), (0.5, 2), (0.51, 3), (0.9, 3), (0.95, 4)]
)
def test_below_a_threshold_is_silent_and_at_it_is_not(threshold: float, silent: int) -> None:
    got = no_answer(RUN, MARKED, ANSWERABLE, threshold)
    assert (got.silent, got.share, got.threshold) == (silent, silent / 4, threshold)
    # The curve is the same whatever was asked.
    assert got.curve == no_answer(RUN, MARKED, ANSWERABLE).curve


def test_the_curve_goes_from_no_threshold_to_all_withheld() -> None:
    # Silent at any threshold: 2 of 4 and (a3, a5) 2 of 4. Then .5 is below .7: n2 and a1; .7 is
    # below .9: a2; .9 is below what comes just after: n1.
    above = math.nextafter(0.9, 1)
    assert no_answer(RUN, MARKED, ANSWERABLE).curve == [
        Silence(0.5, 2 / 4, 2 / 4),
        Silence(0.7, 3 / 4, 3 / 4),
        Silence(0.9, 3 / 4, 4 / 4),
        Silence(above, 4 / 4, 4 / 4),
    ]


def test_without_answerable_queries_there_is_half_a_curve() -> None:
    for answerable in ([], ["a4"]):
        curve = no_answer(RUN, MARKED, answerable).curve
        assert [(point.silent_no_answer, point.silent_answerable) for point in curve] == [
            (0.5, None), (0.75, None), (1.0, None)
        ]  # fmt: skip
        assert best_threshold(curve) is None


def test_without_no_answer_queries_there_is_nothing() -> None:
    for marked, failed in (([], 0), (["n4"], 1)):
        got = no_answer(RUN, marked, ANSWERABLE, 0.6)
        assert (got.n, got.silent, got.share, got.failed, got.curve) == (0, 0, None, failed, [])


def test_a_query_given_twice_counts_once() -> None:
    assert no_answer(RUN, MARKED * 2, ANSWERABLE * 2) == no_answer(RUN, MARKED, ANSWERABLE)


def test_no_threshold_makes_a_difference_where_nothing_was_answered() -> None:
    for scores in ({}, {"n": {}, "a": {}}, {"n": {"d": math.inf}, "a": {}}):
        got = no_answer(Run.from_dict(scores), ["n"], ["a"])
        assert got.n == 1
        assert got.curve == []
        assert best_threshold(got.curve) is None


def test_infinite_scores_are_no_thresholds() -> None:
    scores = {"n1": -math.inf, "n2": 1.0, "n3": math.inf, "a1": math.inf, "a2": 2.0}
    run = Run.from_dict({query: {"d": score} for query, score in scores.items()})
    curve = no_answer(run, ["n1", "n2", "n3"], ["a1", "a2"]).curve
    assert curve == [
        Silence(1.0, 1 / 3, 0),
        Silence(2.0, 2 / 3, 0),
        Silence(math.nextafter(2, 3), 2 / 3, 1 / 2),
    ]
    # Every finite threshold withholds -inf, so one stands for all.
    assert no_answer(run, ["n1", "n3"], ["a1"]).curve == [Silence(0.0, 1 / 2, 0)]
    assert no_answer(run, ["n1", "n3"], ["a1"]).silent == 0
    assert no_answer(run, ["n1", "n3"], ["a1"], -1e308).silent == 1
    # Nothing finite lies above the largest number there is.
    highest = Run.from_dict({"n": {"d": 1.7976931348623157e308}})
    assert no_answer(highest, ["n"], []).curve == [Silence(1.7976931348623157e308, 0, None)]


def test_zero_is_one_threshold_and_has_no_sign() -> None:
    run = Run.from_dict({"n": {"d": -0.0}, "a": {"d": 0.0}})
    curve = no_answer(run, ["n"], ["a"]).curve
    assert [point.threshold for point in curve] == [0.0, math.nextafter(0, 1)]
    assert math.copysign(1, curve[0].threshold) == 1


@pytest.mark.parametrize("threshold", [math.nan, math.inf, -math.inf])
def test_a_threshold_is_a_finite_number(threshold: float) -> None:
    with pytest.raises(UsageError, match="is not a finite number"):
        no_answer(RUN, MARKED, ANSWERABLE, threshold)


def test_a_query_cannot_be_both() -> None:
    with pytest.raises(InputError, match="marked no_answer but has") as caught:
        no_answer(RUN, MARKED, [*ANSWERABLE, "n2"])
    assert caught.value.query == "n2"


# --- against plain loops ---

SCORES = st.sampled_from([-math.inf, -2.0, -0.5, 0.0, 0.25, 0.5, 1.0, 3.0, math.inf])
REPLIES = st.lists(st.one_of(SCORES, st.sampled_from(["empty", "missing", "failed"])), max_size=7)


def run_of(replies: dict[str, float | str]) -> Run:
    """A run in which each query gets a document of that best score, and a lower one."""
    scores: dict[str, dict[str, float] | None] = {}
    for query, reply in replies.items():
        if reply == "failed":
            scores[query] = None
        elif reply == "empty":
            scores[query] = {}
        elif reply != "missing":
            scores[query] = {"low": min(-3.0, float(reply)), "best": float(reply)}
    return Run.from_dict(scores)


def plain_share(replies: list[float | str], threshold: float) -> float | None:
    """Share of the queries that did not fail and get nothing."""
    silent = [
        reply in {"empty", "missing"} or (not isinstance(reply, str) and reply < threshold)
        for reply in replies
        if reply != "failed"
    ]
    return sum(silent) / len(silent) if silent else None


THRESHOLDS = (-1e9, -2.0, -1.0, -0.5, 0.0, 0.1, 0.25, 0.3, 0.5, 0.7, 1.0, 2.0, 3.0, 9.0)


@given(REPLIES, REPLIES, st.sampled_from(THRESHOLDS))
def test_every_point_and_every_threshold_is_what_loops_say(
    marked: list[float | str], answerable: list[float | str], asked: float
) -> None:
    right = {f"n{i}": reply for i, reply in enumerate(marked)}
    wrong = {f"a{i}": reply for i, reply in enumerate(answerable)}
    run = run_of(right | wrong)
    got = no_answer(run, list(right), list(wrong))
    assert got.missing == marked.count("missing")
    assert got.failed == marked.count("failed")
    assert got.silent == marked.count("missing") + marked.count("empty")

    thresholds = [point.threshold for point in got.curve]
    assert all(math.isfinite(threshold) for threshold in thresholds)
    assert all(low < high for low, high in pairwise(thresholds))
    shares = [(point.silent_no_answer, point.silent_answerable) for point in got.curve]
    assert shares == [(plain_share(marked, t), plain_share(answerable, t)) for t in thresholds]
    assert len(set(shares)) == len(shares)  # every one of them makes a difference
    for low, high in pairwise(shares):
        assert 0 <= low[0] <= high[0] <= 1
        if low[1] is not None and high[1] is not None:
            assert 0 <= low[1] <= high[1] <= 1

    with_threshold = no_answer(run, list(right), list(wrong), asked)
    assert with_threshold.share == plain_share(marked, asked)
    assert with_threshold.curve == got.curve
    # A threshold between two of the curve does what the higher one does, one above all what the
    # last does: no trade-off is left out.
    for threshold in THRESHOLDS if shares else ():
        at = min(sum(t < threshold for t in thresholds), len(shares) - 1)
        assert shares[at] == (plain_share(marked, threshold), plain_share(answerable, threshold))

    best = best_threshold(got.curve)
    if best is not None:
        point, youden = best
        values = [one - other for one, other in shares if other is not None]
        assert youden == pytest.approx(max(values), abs=1e-12)
        first = next(i for i, value in enumerate(values) if value > max(values) - 1e-9)
        assert point == got.curve[first]


# --- the best threshold ---


def test_the_best_threshold_parts_the_two() -> None:
    scores = {"n1": 0.1, "n2": 0.3, "n3": 0.6, "a1": 0.4, "a2": 0.5, "a3": 0.8, "a4": 0.9}
    run = Run.from_dict({query: {"d": score} for query, score in scores.items()})
    curve = no_answer(run, ["n1", "n2", "n3"], ["a1", "a2", "a3", "a4"]).curve
    # At .4 two of three no-answer queries are below and no other: J = 2/3. At .8 all three and
    # two of four: J = 1/2.
    point, youden = best_threshold(curve) or pytest.fail("there is one")
    assert point == Silence(0.4, 2 / 3, 0)
    assert youden == 2 / 3


def test_of_equally_good_thresholds_the_lowest_is_taken() -> None:
    # J is 1/3 at both, but 2/3 - 1/3 and 1/3 - 0 differ in the last bit.
    curve = [Silence(0.1, 0, 0), Silence(0.2, 1 / 3, 0), Silence(0.3, 2 / 3, 1 / 3)]
    for share in (1 / 3, math.nextafter(1 / 3, 0), math.nextafter(1 / 3, 1)):
        curve[2] = Silence(0.3, 2 / 3, share)
        assert (best_threshold(curve) or pytest.fail("there is one"))[0].threshold == 0.2


def test_a_threshold_that_only_harms_is_not_recommended() -> None:
    run = Run.from_dict({"n": {"d": 0.9}, "a": {"d": 0.1}})
    point, youden = best_threshold(no_answer(run, ["n"], ["a"]).curve) or pytest.fail("there is")
    assert (point, youden) == (Silence(0.1, 0, 0), 0)


# --- thinning ---


def many(count_marked: int, count_answerable: int) -> tuple[Run, list[str], list[str]]:
    """A run with as many distinct best scores, those of answerable queries higher on the whole."""
    rng = np.random.default_rng(20_260_101)
    scores = {f"n{i}": score for i, score in enumerate(rng.normal(0, 1, count_marked).tolist())}
    scores |= {f"a{i}": s for i, s in enumerate(rng.normal(1, 1, count_answerable).tolist())}
    run = Run.from_dict({query: {"d": score} for query, score in scores.items()})
    return run, [q for q in scores if q[0] == "n"], [q for q in scores if q[0] == "a"]


@pytest.mark.parametrize(("marked", "answerable"), [(30, 1500), (700, 900), (500, 0), (1, 400)])
def test_a_thinned_curve_keeps_what_matters(
    marked: int, answerable: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, right, wrong = many(marked, answerable)
    thin = no_answer(run, right, wrong).curve
    monkeypatch.setattr(subject, "MOST_POINTS", 10**6)
    full = no_answer(run, right, wrong).curve
    assert len(full) == marked + answerable + 1  # distinct scores, and all withheld
    assert len(thin) == MOST_POINTS
    assert [point for point in full if point in set(thin)] == thin  # some of them, in order
    assert (thin[0], thin[-1]) == (full[0], full[-1])
    assert best_threshold(thin) == best_threshold(full)
    changes = {b for a, b in pairwise(full) if b.silent_no_answer != a.silent_no_answer}
    if marked < 100:
        assert changes <= set(thin)
        # No share of silent no-answer queries is lost, nor its least harm.
        assert {p.silent_no_answer for p in thin} == {p.silent_no_answer for p in full}
        # The rest is evenly spaced: no gap is wider than twice what as many points need.
        index = {point: at for at, point in enumerate(full)}
        gaps = np.diff([index[point] for point in thin])
        assert gaps.max() <= 2 * len(full) / (MOST_POINTS - marked - 3)
    else:
        assert (
            max(b.silent_no_answer - a.silent_no_answer for a, b in pairwise(thin))
            <= 2 / MOST_POINTS
        )


def test_a_curve_that_just_fits_is_whole() -> None:
    run, right, wrong = many(99, 100)
    assert len(no_answer(run, right, wrong).curve) == MOST_POINTS
