"""Tukey's test against every arrangement, against its promise, and by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.errors import InputError, UsageError
from karat.stats.tukey import Tukey, tukey, tukey_each

RNG_SEED = 20_260_301


def rng() -> np.random.Generator:
    return np.random.default_rng(RNG_SEED)


def table(*rows: tuple[float, ...]) -> np.ndarray:
    return np.array(rows, dtype=np.float64)


# --- by hand ---


def test_two_systems_by_hand() -> None:
    # Differences 1, 2 and 4: of the 8 signs, 2 give a sum as far from 0 as 7. The sums without
    # regard to sign are 7, 5, 3, 1 (twice each), so the p-value is 2/8 and at 30 % a mean
    # difference must be more than 5/3; at 24 % more than 7/3, which no arrangement has.
    got = tukey(table((1, 0), (2, 0), (4, 0)), rng(), alpha=0.3)
    assert got.exact
    assert got.arrangements == 4  # the first query need not turn
    assert got.p_values == pytest.approx(np.array([[1, 0.25], [0.25, 1]]), rel=1e-15)
    assert got.honest_difference == pytest.approx(5 / 3, rel=1e-12)
    assert got.groups == ((0,), (1,))
    strict = tukey(table((1, 0), (2, 0), (4, 0)), rng(), alpha=0.24)
    assert strict.honest_difference == pytest.approx(7 / 3, rel=1e-12)
    assert strict.groups == ((0, 1),)


def test_too_few_arrangements_tell_nothing_apart() -> None:
    # With 18 drawn the smallest p-value is 1/19, above .05; with 19 it is 1/20.
    values = rng().random((9, 2)) + np.array([0, 5])
    assert tukey(values, rng(), resamples=18).honest_difference == math.inf
    assert tukey(values, rng(), resamples=18).groups == ((1, 0),)
    assert math.isfinite(tukey(values, rng(), resamples=19).honest_difference)


def test_tie_groups_may_overlap() -> None:
    # Noise in the first eight queries, and steps of .5 between systems: neighbours are alike,
    # those two steps apart are not. Found by the p-values, as printed here.
    base = np.tile([0.0, 0.5, 1.0], (8, 1))
    noise = np.array([[1, -1, 0], [-1, 1, 0], [0, 1, -1], [0, -1, 1]] * 2) * 0.35
    got = tukey(base + noise, rng())
    assert got.p_values[0, 1] > 0.05
    assert got.p_values[1, 2] > 0.05
    assert got.p_values[0, 2] <= 0.05
    assert got.groups == ((2, 1), (1, 0))


# --- every arrangement ---

CELL = st.integers(0, 4).map(lambda level: level / 4)
TABLES = st.tuples(st.integers(1, 4), st.integers(2, 3)).flatmap(
    lambda shape: st.lists(st.tuples(*[CELL] * shape[1]), min_size=shape[0], max_size=shape[0])
)


@given(TABLES)
def test_exact_is_every_arrangement(rows: list[tuple[float, ...]]) -> None:
    values = table(*rows)
    n = len(rows)
    every = list(itertools.product(*[list(itertools.permutations(row)) for row in rows]))
    ranges = np.array([np.ptp(np.sum(rows, axis=0)) / n for rows in every])
    got = tukey(values, rng())
    assert got.exact
    means = values.mean(axis=0)
    for a, b in itertools.combinations(range(values.shape[1]), 2):
        expected = (ranges >= abs(means[a] - means[b]) - 1e-12).mean()
        assert got.p_values[a, b] == pytest.approx(expected, rel=1e-12)


def test_drawn_comes_close_to_every_arrangement() -> None:
    values = rng().random((5, 3)) + np.array([0, 0.2, 0.5])
    exact = tukey(values, rng())  # 6 ** 4 = 1296 arrangements
    drawn = tukey(values, rng(), resamples=1295)
    assert (exact.exact, drawn.exact) == (True, False)
    assert (exact.arrangements, drawn.arrangements) == (1296, 1295)
    # The standard error of a share of 1295 is at most .014.
    assert drawn.p_values == pytest.approx(exact.p_values, abs=0.05)
    assert drawn.honest_difference == pytest.approx(exact.honest_difference, abs=0.04)


# --- the promise ---


def test_the_family_wise_error_is_what_it_says() -> None:
    # 1000 sets of 12 queries and 5 systems that differ by skewed luck only, hard and easy queries
    # among them. 199 arrangements make the level exactly 10/200; its standard error here is
    # .0069. Testing the best against the worst alone, as if they were the only two, errs far
    # more often: the simulation can tell.
    source = np.random.default_rng(RNG_SEED)
    found = found_uncorrected = 0
    for _ in range(1000):
        values = source.random((12, 1)) + 0.3 * source.exponential(size=(12, 5))
        got = tukey(values, source, resamples=199)
        found += got.p_values.min() <= 0.05
        ends = values[:, [got.means.argmax(), got.means.argmin()]]
        found_uncorrected += tukey(ends, source, resamples=199).p_values[0, 1] <= 0.05
    assert 0.03 <= found / 1000 <= 0.07
    assert found_uncorrected / 1000 > 0.12


# --- laws ---


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(2, 6), st.booleans())
def test_laws(seed: int, n: int, systems: int, weighed: bool) -> None:
    source = np.random.default_rng(seed)
    values = source.integers(0, 5, (n, systems)) / 4
    weights = source.random(n) + 0.1 if weighed else None
    got = tukey(values, rng(), weights=weights, resamples=99)
    again = tukey(values, rng(), weights=weights, resamples=99)
    assert (got.p_values == again.p_values).all()  # one seed, one answer
    assert (got.p_values == got.p_values.T).all()
    assert (got.p_values > 0).all()
    assert (got.p_values <= 1).all()
    gaps = np.abs(got.means[:, None] - got.means)
    # A larger difference has no larger p-value, and the honest difference parts them.
    by_gap = got.p_values.ravel()[np.argsort(-gaps.ravel(), kind="stable")]
    near = np.isclose(np.diff(np.sort(-gaps.ravel())), 0)
    assert (np.diff(by_gap)[~near] >= 0).all()
    clear = np.abs(gaps - got.honest_difference) > 1e-9
    assert ((gaps > got.honest_difference) == (got.p_values <= 0.05))[clear].all()
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


def test_a_clear_winner_stands_alone() -> None:
    values = rng().random((30, 4)) * 0.1
    values[:, 2] += 0.5
    got = tukey(values, rng(), resamples=999)
    assert got.groups[0] == (2,)
    assert got.p_values[2, 0] == pytest.approx(1 / 1000)  # (c + 1) / (999 + 1), c = 0
    assert set(got.groups[1]) == {0, 1, 3}


def test_weights_count_as_repeated_queries() -> None:
    # A weight is not a repetition (the copies would turn one by one), but the means are.
    values = rng().random((4, 3))
    got = tukey(values, rng(), weights=np.array([1.0, 2.0, 1.0, 4.0]))
    repeated = np.repeat(values, [1, 2, 1, 4], axis=0)
    assert got.means == pytest.approx(repeated.mean(axis=0), rel=1e-15)
    # By every arrangement of the weighted rows.
    weighted = values * [[1], [2], [1], [4]]
    rows = [list(itertools.permutations(row)) for row in weighted]
    ranges = np.array([np.ptp(np.sum(each, axis=0)) / 8 for each in itertools.product(*rows)])
    gap = abs(got.means[0] - got.means[1])
    assert got.p_values[0, 1] == pytest.approx((ranges >= gap - 1e-12).mean(), rel=1e-12)


# --- several measures ---


def same(one: Tukey, other: Tukey) -> bool:
    """Sums taken in another order may differ in their last digits."""
    assert one.honest_difference == pytest.approx(other.honest_difference, rel=1e-12)
    kept = ("groups", "alpha", "arrangements", "exact")
    arrays = (one.means == other.means).all() and (one.p_values == other.p_values).all()
    return arrays and all(getattr(one, name) == getattr(other, name) for name in kept)


@given(st.integers(0, 2**32), st.integers(1, 9), st.integers(2, 5), st.booleans())
def test_measures_together_are_what_they_are_alone(
    seed: int, n: int, systems: int, weighed: bool
) -> None:
    source = np.random.default_rng(seed)
    values = source.random((n, systems, 4))  # all systems differ on every query
    weights = source.random(n) + 0.1 if weighed else None
    together = tukey_each(values, rng(), weights=weights, resamples=199)
    assert len(together) == 4
    for k, got in enumerate(together):
        assert same(got, tukey(values[:, :, k], rng(), weights=weights, resamples=199))


def test_a_measure_with_few_arrangements_goes_through_them_all_among_others() -> None:
    values = rng().random((40, 3, 3))
    values[3:, :, 1] = 0.5  # three queries differ: 6 ** 2 arrangements
    values[:, :, 2] = 1
    many, few, none = tukey_each(values, rng(), resamples=99)
    assert (many.exact, few.exact, none.exact) == (False, True, True)
    assert (many.arrangements, few.arrangements, none.arrangements) == (99, 36, 1)
    assert same(few, tukey(values[:, :, 1], rng(), resamples=99))
    assert (none.p_values == 1).all()
    assert tukey_each(values[:, :, :0], rng()) == []


def test_a_query_is_turned_alike_under_every_measure() -> None:
    # Twice the measure, and its reverse, have the same ranges but for size: the p-values say so
    # only if the arrangements are the same ones.
    values = rng().random((30, 4, 1)) + np.array([0.0, 0.0, 0.05, 0.1])[:, None]
    one, twice, less = tukey_each(values * [1, 2, -1], rng(), resamples=199)
    assert (one.p_values == twice.p_values).all()
    assert (one.p_values == less.p_values).all()
    assert len(set(one.p_values.ravel())) > 3


def test_queries_alike_under_all_measures_change_nothing() -> None:
    values = rng().random((8, 3, 2))
    values[2, :, 0] = 0.5  # alike under one measure only: it is turned for the other
    padded = np.insert(values, [0, 4, 8], 0.25, axis=0)
    found = tukey_each(values, rng(), resamples=99)
    again = tukey_each(padded, rng(), resamples=99)
    for one, other in zip(found, again, strict=True):
        assert not one.exact
        assert (one.p_values == other.p_values).all()


@pytest.mark.parametrize("table", [1, 50, 1 << 20])
def test_how_many_queries_are_looked_up_at_once_does_not_show(
    table: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = rng().random((13, 3, 2))
    expected = tukey_each(values, rng(), resamples=300)
    monkeypatch.setattr("karat.stats.tukey._TABLE", table)
    found = tukey_each(values, rng(), resamples=300)
    assert all(same(one, other) for one, other in zip(found, expected, strict=True))


def test_the_family_wise_error_holds_under_each_of_several_measures() -> None:
    # As above: 1000 sets, 199 arrangements. The second measure sees the first by steps, so that
    # it ties; the third is another one.
    source = np.random.default_rng(RNG_SEED)
    found = np.zeros(3)
    for _ in range(1000):
        values = source.random((12, 1, 3)) + 0.3 * source.exponential(size=(12, 5, 3))
        values[:, :, 1] = np.round(2 * values[:, :, 0])
        each = tukey_each(values, source, resamples=199)
        found += [got.p_values.min() <= 0.05 for got in each]
    assert (found / 1000 <= 0.07).all()
    assert (found[[0, 2]] / 1000 >= 0.03).all()  # ties make the second one careful


def test_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    values = rng().random((12, 4))
    whole = tukey(values, rng(), resamples=400)
    monkeypatch.setattr("karat.stats.tukey._BLOCK", 300)
    parts = tukey(values, rng(), resamples=400)
    # Another order of draws: not the same p-values, but as good ones. Standard error at most .025.
    assert parts.p_values == pytest.approx(whole.p_values, abs=0.12)
    assert parts.arrangements == 400


# --- alike ---


def test_identical_systems_are_one_group() -> None:
    same = np.repeat(rng().random((50, 1)), 4, axis=1)
    got = tukey(same, rng())
    assert (got.p_values == 1).all()
    assert (got.honest_difference, got.groups) == (0, ((0, 1, 2, 3),))
    assert (got.exact, got.arrangements) == (True, 1)


def test_two_identical_systems_among_others() -> None:
    values = rng().random((25, 3))
    values[:, 1] = values[:, 0]
    values[:, 2] += 1
    got = tukey(values, rng(), resamples=999)
    assert got.p_values[0, 1] == 1
    assert got.groups == ((2,), (0, 1))


def test_one_query_tells_nothing_apart() -> None:
    got = tukey(table((0, 0.5, 1)), rng())
    assert got.p_values[0, 2] == 1
    assert got.groups == ((2, 1, 0),)


def test_queries_without_a_difference_change_nothing() -> None:
    values = rng().random((4, 3))
    padded = np.vstack([values, np.full((4, 3), 0.25)])
    assert (tukey(padded, rng()).p_values == tukey(values, rng()).p_values).all()


# --- refusals ---


@pytest.mark.parametrize(
    ("values", "options", "error", "says"),
    [
        (np.zeros((3, 1)), {}, UsageError, r"shape \(3, 1\)"),
        (np.zeros(3), {}, UsageError, r"shape \(3,\)"),
        (np.zeros((0, 2)), {}, UsageError, "no query"),
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
