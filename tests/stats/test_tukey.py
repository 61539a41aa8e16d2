"""All pairs of systems: against a plain computation, against its promise, and by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.choosing import FEW, deep_but

from karat.errors import InputError, UsageError
from karat.stats._tukey import Tukey, tukey, tukey_each
from karat.stats.intervals import resample
from karat.stats.paired import bootstrap

RNG_SEED = 20_260_301


def rng(seed: int = RNG_SEED) -> np.random.Generator:
    return np.random.default_rng(seed)


def table(*rows: tuple[float, ...]) -> np.ndarray:
    return np.array(rows, dtype=np.float64)


# --- against a plain computation ---


def t_of(differences: np.ndarray, error: float | None = None) -> float:
    own = float(differences.std(ddof=1)) / math.sqrt(len(differences))
    return abs(float(differences.mean())) / (own if own > 1e-9 else error or math.inf)


def plainly(values: np.ndarray, resamples: int) -> tuple[np.ndarray, np.ndarray]:
    """P-values of every pair and measure, alone and corrected, resample by resample."""
    n, systems, measures = values.shape
    pairs = list(itertools.combinations(range(systems), 2))
    columns = [values[:, a, m] - values[:, b, m] for a, b in pairs for m in range(measures)]
    drawn = resample(n, resamples, np.random.default_rng(rng().integers(2**63)))
    errors = [float(column.std(ddof=1)) / math.sqrt(n) for column in columns]
    luck = np.array(
        [
            [
                t_of(np.repeat(column - column.mean(), counts.astype(int)), error)
                for column, error in zip(columns, errors, strict=True)
            ]
            for counts in drawn
        ]
    )
    ranks = [[(luck[:, k] >= value * (1 - 1e-7)).sum() for k, value in enumerate(r)] for r in luck]
    smallest = np.min(ranks, axis=1)
    alone, corrected = np.empty((2, len(columns)))
    for k, column in enumerate(columns):
        beyond = (luck[:, k] >= t_of(column) * (1 - 1e-7)).sum()
        least = 2.0 ** (1 - np.count_nonzero(column))
        alone[k] = max((beyond + 1) / (resamples + 1), least)
        reached = (smallest <= beyond + 1).sum()
        corrected[k] = max((reached + 1) / (resamples + 1), min(1, len(columns) * least))
    return alone.reshape(-1, measures), corrected.reshape(-1, measures)


@pytest.mark.parametrize("n", [6, 20])
def test_p_values_are_those_of_a_plain_computation(n: int) -> None:
    values = rng().random((n, 3, 2)) + np.array([0, 0.1, 0.5])[:, None]
    values[:, :, 1] = np.round(2 * values[:, :, 1])  # ties
    alone, corrected = plainly(values, 99)
    got = tukey_each(values, rng(), resamples=99)
    pairs = np.triu_indices(3, 1)
    for k, one in enumerate(got):
        assert one.alone[pairs] == pytest.approx(alone[:, k], rel=1e-12)
        assert one.p_values[pairs] == pytest.approx(corrected[:, k], rel=1e-12)
        assert one.family == 6


def test_alone_a_pair_has_the_p_value_of_the_bootstrap_test() -> None:
    values = rng().random((40, 4)) + np.array([0, 0.05, 0.1, 0.15])
    got = tukey(values, rng(), resamples=4999)
    for a, b in itertools.combinations(range(4), 2):
        expected = bootstrap(values[:, a] - values[:, b], resamples=4999, seed=5)
        # Other draws: the standard error of a share of 4,999 is at most .007, of two .01.
        assert got.alone[a, b] == pytest.approx(float(expected), abs=0.03)


def test_groups_may_overlap() -> None:
    # Steps of .2 between three systems, each with noise of its own, uniform of width 1: for n = 30
    # a difference has a standard error of .0745, so neighbours are 2.7 of these apart and the
    # ends 5.4; of three pairs the corrected 5 % is near 2.5. With a step of .15: 2.0 and 4.0.
    got = tukey(rng(3).random((30, 3)) + np.array([0.0, 0.15, 0.3]), rng())
    assert got.p_values[0, 1] > 0.05
    assert got.p_values[1, 2] > 0.05
    assert got.p_values[0, 2] <= 0.05
    assert got.groups == ((2, 1), (1, 0))


def test_of_two_pairs_the_nearer_may_be_the_significant_one() -> None:
    # The third system is the first one less .1, nearly; the second lies between their means, and
    # has a noise of its own as large as that takes.
    source = rng()
    first = source.random(40)
    steady = first - 0.1 + 0.01 * source.standard_normal(40)
    noisy = first - 0.3 + 2 * source.standard_normal(40)
    noisy += first.mean() - 0.12 - noisy.mean()
    got = tukey(np.stack([first, noisy, steady], axis=1), rng())
    assert got.p_values[0, 2] <= 0.05
    assert got.p_values[0, 1] > 0.05
    assert got.means[0] - got.means[1] > got.means[0] - got.means[2]
    hold_groups(got)
    assert got.groups == ((0, 1), (2, 1))


# --- the promise ---


def errs(population: str, n: int, sets: int, seed: int) -> float:
    """Share of the sets in which any pair of six systems of equal means is found different."""
    source, found = rng(seed), 0
    for _ in range(sets):
        if population == "exchangeable":
            values = source.random((n, 1)) + 0.3 * source.exponential(size=(n, 6))
        else:  # four variants of one system, and two strangers
            spread = np.array([0.02, 0.02, 0.02, 0.02, 0.5, 0.5])
            values = source.random((n, 1)) + spread * source.standard_normal((n, 6))
        found += tukey(values, source, resamples=199).p_values.min() <= 0.05
    return found / sets


@pytest.mark.parametrize(
    "population", deep_but(["exchangeable"], ["exchangeable", "unequal spread"])
)
def test_the_family_wise_error_is_what_it_says(population: str) -> None:
    # At 5 % a share of 400 sets has a standard error of .011. Held against the largest range of
    # six systems exchanged within each query, 12.5 % of these sets of unequal spread fail.
    assert errs(population, 50, 400, 7) <= 0.05 + 3 * 0.011


@pytest.mark.deep  # a simulation, as the one above
def test_few_queries_make_it_careful() -> None:
    assert errs("exchangeable", 10, 200, 8) <= 0.05
    assert errs("unequal spread", 10, 200, 8) <= 0.05


def test_it_finds_what_is_there() -> None:
    # One of six variants is better by a standard deviation of the noise: at n = 50 five standard
    # errors of a difference.
    values = rng().random((50, 1)) + 0.1 * rng().standard_normal((50, 6))
    values[:, 2] += 0.1
    got = tukey(values, rng(), resamples=1999)
    assert got.groups[0] == (2,)
    assert len(got.groups) == 2


def test_two_systems_that_hardly_differ_hide_nothing_of_the_others() -> None:
    # They differ by next to nothing, and by .5 on one query. A third of all resamples miss that
    # query, and have a large mean for their spread: with one critical value for all pairs, it
    # would be out of reach for everything.
    values = rng().random((50, 5)) + np.array([0, 0, 0, 0, 0.5])
    values[:, 1] = values[:, 0] + 1e-6 * rng().standard_normal(50)
    values[7, 1] += 0.5
    got = tukey(values, rng(), resamples=1999)
    assert (got.p_values[4, :4] <= 0.05).all()
    assert got.p_values[0, 1] > 0.05


def test_one_family_over_all_measures() -> None:
    values = rng().random((30, 4, 3)) + np.array([0, 0.05, 0.1, 0.2])[:, None]
    together = tukey_each(values, rng(), resamples=999)
    alone = [tukey(values[:, :, k], rng(), resamples=999) for k in range(3)]
    for one, other in zip(together, alone, strict=True):
        assert (one.alone == other.alone).all()  # on the same resamples
        assert (one.p_values >= other.p_values).all()
        assert (one.family, other.family) == (18, 6)
    assert any((a.p_values > b.p_values).any() for a, b in zip(together, alone, strict=True))


def test_pairs_tested_elsewhere_are_corrected_for() -> None:
    values = rng().random((30, 3, 1)) + np.array([0, 0.1, 0.2])[:, None]
    [one] = tukey_each(values, rng(), resamples=999)
    [half] = tukey_each(values, rng(), resamples=999, others=3)
    assert half.family == 6
    assert half.p_values == pytest.approx(np.minimum(1, 2 * one.p_values))


# --- laws ---


@FEW
@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(2, 6), st.booleans(), st.booleans())
def test_laws(seed: int, n: int, systems: int, weighed: bool, stratified: bool) -> None:
    source = np.random.default_rng(seed)
    values = source.integers(0, 5, (n, systems)) / 4
    given = {
        "weights": source.random(n) + 0.1 if weighed else None,
        "strata": source.integers(0, 2, n) if stratified else None,
    }
    got = tukey(values, rng(), resamples=99, **given)
    again = tukey(values, rng(), resamples=99, **given)
    assert (got.p_values == again.p_values).all()  # one seed, one answer
    assert (got.p_values == got.p_values.T).all()
    assert (got.alone > 0).all()
    assert (got.alone <= got.p_values).all()
    assert (got.p_values <= 1).all()
    # No system's size or direction counts for anything.
    turned = tukey(1 - 2 * values, rng(), resamples=99, **given)
    assert turned.p_values == pytest.approx(got.p_values, abs=1e-12)
    if n < 6:  # signs of five queries come out alike in 1 of 16 cases
        assert (got.p_values > 0.05).all()
    hold_groups(got)


def hold_groups(got: Tukey) -> None:
    """Groups hold every system, only pairs that are together, and are as large as can be."""
    systems = len(got.means)
    assert {system for group in got.groups for system in group} == set(range(systems))
    grouped = {frozenset(pair) for g in got.groups for pair in itertools.combinations(g, 2)}
    together = {
        frozenset(pair)
        for pair in itertools.combinations(range(systems), 2)
        if got.p_values[pair] > 0.05
    }
    assert grouped == together
    assert not any(set(a) < set(b) for a in got.groups for b in got.groups)
    assert all((np.diff(got.means[list(group)]) <= 0).all() for group in got.groups)


@FEW
@given(st.integers(0, 2**32), st.integers(2, 8))
def test_groups_of_any_pairs(seed: int, systems: int) -> None:
    from karat.stats._tukey import _tie_groups

    source = np.random.default_rng(seed)
    p = np.where(source.random((systems, systems)) < 0.5, 1.0, 0.01)
    p = np.maximum(p, np.eye(systems))
    p = np.triu(p) + np.triu(p, 1).T
    means = source.random(systems)
    hold_groups(Tukey(means, p, p, p < 1, _tie_groups(means, p > 0.05), 1, 0.05))


def test_equal_weights_are_none() -> None:
    values = rng().random((20, 3)) + np.array([0, 0.1, 0.2])
    even = tukey(values, rng(), weights=np.full(20, 2.0), resamples=499)
    assert even.p_values == pytest.approx(tukey(values, rng(), resamples=499).p_values, abs=0.003)
    heavy = tukey(values, rng(), weights=1.0 + np.arange(20), resamples=499)
    assert heavy.means == pytest.approx(np.average(values, axis=0, weights=1 + np.arange(20)))


@pytest.mark.parametrize("name", ["_BLOCK", "_HELD"])
def test_blocks_do_not_show(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values = rng().random((12, 4, 2))
    whole = tukey_each(values, rng(), resamples=400)
    monkeypatch.setattr(f"karat.stats._tukey.{name}", 1000)
    parts = tukey_each(values, rng(), resamples=400)
    for one, other in zip(whole, parts, strict=True):
        assert (one.p_values == other.p_values).all()


# --- alike ---


def test_identical_systems_are_one_group() -> None:
    same = np.repeat(rng().random((50, 1)), 4, axis=1)
    got = tukey(same, rng())
    assert (got.p_values == 1).all()
    assert got.groups == ((0, 1, 2, 3),)


def test_two_identical_systems_among_others() -> None:
    values = rng().random((25, 3))
    values[:, 1] = values[:, 0]
    values[:, 2] += 1
    got = tukey(values, rng(), resamples=999)
    assert got.p_values[0, 1] == 1
    assert got.groups == ((2,), (0, 1))


def test_one_query_finds_nothing() -> None:
    got = tukey(table((0, 0.5, 1)), rng())
    assert (got.p_values == 1).all()
    assert got.groups == ((2, 1, 0),)


def test_the_same_difference_everywhere_is_judged_by_its_sign() -> None:
    # No spread, no t. Of the signs of 12 queries 2 in 4,096 are all alike; three pairs.
    values = np.repeat(rng().random((12, 1)), 3, axis=1) + np.array([0, 0, 0.25])
    got = tukey(values, rng())
    assert got.alone[0, 2] == pytest.approx(2**-11)
    assert got.p_values[0, 2] == pytest.approx(3 * 2**-11)
    assert got.groups == ((2,), (0, 1))


def test_one_exception_to_a_constant_difference_does_not_hide_it() -> None:
    # One system finds the answer of all 30 queries first, the other of one only. A third of all
    # resamples hold no exception, and have no spread of their own.
    values = np.zeros((30, 2))
    values[:, 0] = 1
    values[4, 1] = 1
    assert tukey(values, rng(), resamples=1999).p_values[0, 1] <= 0.005


def test_few_differing_queries_find_nothing() -> None:
    values = np.repeat(rng().random((50, 1)), 3, axis=1)
    values[:5, 2] += np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    assert (tukey(values, rng()).p_values > 0.05).all()


# --- refusals ---


@pytest.mark.parametrize(
    ("values", "options", "error", "says"),
    [
        (np.zeros((3, 1)), {}, UsageError, r"shape \(3, 1\)"),
        (np.zeros(3), {}, UsageError, r"shape \(3,\)"),
        (np.zeros((0, 2)), {}, UsageError, "no queries"),
        (table((1, 2), (math.nan, 1)), {}, InputError, "system 0 for query 1 is nan"),
        (np.zeros((3, 2)), {"alpha": 1.0}, UsageError, "alpha is 1.0"),
        (np.zeros((3, 2)), {"resamples": 0}, UsageError, "resamples is 0"),
    ],
)
def test_refusals(values: np.ndarray, options: dict, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        tukey(values, rng(), **options)


def test_refusals_of_several_measures() -> None:
    with pytest.raises(UsageError, match=r"shape \(3, 2\)"):
        tukey_each(np.zeros((3, 2)), rng())
    values = np.zeros((3, 2, 2))
    values[2, 1, 1] = math.inf
    with pytest.raises(InputError, match="system 1 for query 2 under measure 1 is inf"):
        tukey_each(values, rng())
