"""Disagreement: measures that point in opposite directions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from karat.diagnosis.disagreement import disagreements
from karat.diagnosis.slices import Slice
from karat.measures import parse
from karat.measures.scores import Rules, score
from karat.stats.verdicts import Contrast
from karat.stats.weighing import Weighing
from karat.tables import Qrels, Run

N = 20
QUERIES = [f"q{n:02}" for n in range(N)]
QRELS = Qrels.from_dict({query: {"a": 1, "b": 1} for query in QUERIES})
TOP = {"a": 9.0, "x": 8.0, "y": 7.0}  # RR 1, one of two found
WIDE = {"x": 9.0, "a": 8.0, "b": 7.0}  # RR 1/2, both found


def contrasts(changed: int) -> list[Contrast]:
    """The candidate finds more and later in so many queries."""
    measures = [parse("RR"), parse("R@3")]
    runs = [
        Run.from_dict(dict.fromkeys(QUERIES, TOP)).named("old"),
        Run.from_dict(
            {query: WIDE if i < changed else TOP for i, query in enumerate(QUERIES)}
        ).named("new"),
    ]
    old, new = (score(run, QRELS, measures, Rules()) for run in runs)
    return [Contrast(old, new, measure) for measure in measures]


def all_queries() -> Slice:
    return Slice(None, None, np.ones(N, np.bool_))


def test_up_by_one_and_down_by_the_other() -> None:
    [row] = disagreements(contrasts(10), [all_queries()], Weighing(None, None, N))
    assert (row.better, row.worse, row.candidate) == ("R@3", "RR", "new")
    assert (row.better_difference, row.worse_difference) == (
        pytest.approx(0.25),
        pytest.approx(-0.25),
    )  # half of ±.5
    assert (row.n, row.opposed) == (N, 10)
    # Ten differences of .5 and ten of 0: SciPy 1.17's ttest_1samp.
    assert row.p == pytest.approx(stats.ttest_1samp([0.5] * 10 + [0.0] * 10, 0).pvalue)
    assert row.p_corrected == row.p


def test_two_queries_in_twenty_may_be_chance() -> None:
    # Two differences of ±.5 and 18 of 0: mean .05, error .0344, t 1.45, p .16.
    [row] = disagreements(contrasts(2), [all_queries()], Weighing(None, None, N))
    assert row.p == pytest.approx(stats.ttest_1samp([0.5] * 2 + [0.0] * 18, 0).pvalue)
    assert row.opposed == 2
    assert disagreements(contrasts(1), [all_queries()], Weighing(None, None, N)) == []  # t is 1


def test_without_spread_the_sign_tells() -> None:
    # Every query gains .5 by the one and loses .5 by the other: no t, and 2 / 2^20 by sign.
    [row] = disagreements(contrasts(N), [all_queries()], Weighing(None, None, N))
    assert (row.better_difference, row.worse_difference, row.opposed) == (0.5, -0.5, N)
    assert row.p == pytest.approx(2 / 2**N)


def test_the_surest_stands_first() -> None:
    first = np.arange(N) < 10
    slices = [
        Slice("kind", "some", np.arange(N) < 18),
        Slice("kind", "half", first),
        all_queries(),
    ]
    rows = disagreements(contrasts(9), slices, Weighing(None, None, N))
    # 9 of 10 queries, 9 of 18, 9 of 20: the rarer, the larger is p.
    assert [row.slice for row in rows] == ["half", "some", None]
    # Benjamini and Hochberg over three: the largest p is its own, the smallest is tripled.
    assert rows[2].p_corrected == rows[2].p
    assert rows[0].p_corrected == pytest.approx(3 * rows[0].p)


def test_few_queries_and_equal_signs_say_nothing() -> None:
    few = Slice("kind", "few", np.arange(N) < 4)
    assert disagreements(contrasts(3), [few], Weighing(None, None, N)) == []
    one, other = contrasts(10)
    assert disagreements([one, one], [all_queries()], Weighing(None, None, N)) == []
    assert disagreements([other], [all_queries()], Weighing(None, None, N)) == []
