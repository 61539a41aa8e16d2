"""Disagreement: measures that point in opposite directions."""

from __future__ import annotations

import numpy as np
import pytest

from karat.diagnosis.disagreement import disagreements
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


def all_queries() -> tuple[None, None, np.ndarray]:
    return (None, None, np.ones(N, np.bool_))


def test_up_by_one_and_down_by_the_other() -> None:
    [row] = disagreements(contrasts(10), [all_queries()], Weighing(None, None, N))
    assert (row.better, row.worse, row.candidate) == ("R@3", "RR", "new")
    assert (row.gain, row.loss) == (pytest.approx(0.25), pytest.approx(-0.25))  # half of ±.5
    assert (row.n, row.opposed, row.sure) == (N, 10, True)


def test_two_queries_in_twenty_may_be_chance() -> None:
    # Two differences of ±.5 and 18 of 0: mean .05, error .0344, t 1.45, p .16.
    [row] = disagreements(contrasts(2), [all_queries()], Weighing(None, None, N))
    assert not row.sure
    assert row.opposed == 2
    assert disagreements(contrasts(1), [all_queries()], Weighing(None, None, N)) == []  # t is 1


def test_without_spread_the_sign_tells() -> None:
    # Every query gains .5 by the one and loses .5 by the other: no t, and 2 / 2^20 by sign.
    [row] = disagreements(contrasts(N), [all_queries()], Weighing(None, None, N))
    assert (row.gain, row.loss, row.opposed, row.sure) == (0.5, -0.5, N, True)


def test_the_whole_stands_first_then_the_sure() -> None:
    first = np.arange(N) < 10
    slices = [("kind", "some", np.arange(N) < 18), ("kind", "half", first), all_queries()]
    rows = disagreements(contrasts(9), slices, Weighing(None, None, N))
    assert [row.slice for row in rows] == [None, "half", "some"]
    assert all(row.sure for row in rows)


def test_few_queries_and_equal_signs_say_nothing() -> None:
    few = ("kind", "few", np.arange(N) < 4)
    assert disagreements(contrasts(3), [few], Weighing(None, None, N)) == []
    one, other = contrasts(10)
    assert disagreements([one, one], [all_queries()], Weighing(None, None, N)) == []
    assert disagreements([other], [all_queries()], Weighing(None, None, N)) == []
