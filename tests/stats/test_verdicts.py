"""Verdicts of differences made by hand: what is said, why, and with which numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from karat.errors import UsageError
from karat.measures import parse
from karat.measures.difference import DifferenceBounds
from karat.measures.scores import Rules, Scores, score
from karat.stats import verdicts
from karat.stats.intervals import bca_interval, resample
from karat.stats.multiplicity import benjamini_hochberg, holm
from karat.stats.power import queries_needed, smallest_difference
from karat.stats.verdicts import LEVEL, MOST_RESAMPLES, Contrast
from karat.stats.weighing import Weighing
from karat.tables import Qrels, Run
from karat.tables.comparison import Difference

UP = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
"""All up: 2 of the 2^6 arrangements of signs are as far from 0, so randomisation gives 1 / 32."""
P_UP = 1 / 32
AROUND = [0.1, -0.1, 0.2, -0.2, 0.1, -0.1]
MIXED = [0.3, -0.1, 0.2, 0.5, -0.2, 0.1, 0.4, 0.0, 0.3, -0.1, 0.2, 0.05]


def scores_of(values: Sequence[float], name: str, measure: str, lowest: float) -> Scores:
    """Scores of a run of one document to a query, its values replaced by those given."""
    ids = [f"q{place:02}" for place in range(len(values))]
    asked = parse(measure)
    scored = score(
        Run.from_dict({query: {"d": 1.0} for query in ids}, name),
        Qrels.from_dict({query: {"d": 2.0} for query in ids}),
        [asked],
        Rules(),
    )
    evidence = replace(scored.evidence, scale=(lowest, 3.0))
    return replace(scored, evidence=evidence, values={asked: np.array(values, np.float64)})


def contrast(
    difference: Sequence[float],
    measure: str = "P@1",
    bounds: tuple[float, float, bool] | None = None,
    lowest: float = 0.0,
) -> Contrast:
    """Candidate minus a baseline of 0; bounds are so far below and above each query's."""
    values = np.array(difference, np.float64)
    held = None
    if bounds is not None:
        down, up, exact = bounds
        held = DifferenceBounds(values + down, values + up, exact)
    return Contrast(
        scores_of([0.0] * len(values), "old", measure, lowest),
        scores_of(difference, "new", measure, lowest),
        parse(measure),
        held,
    )


def settled(n: int, test: str = "randomisation", **settings: Any) -> verdicts.Testing:
    weights = settings.pop("weights", None)
    weighing = Weighing(None if weights is None else np.array(weights, np.float64), None, n)
    given = {"drawn": None, "margin": None, "resamples": 10_000, "seed": 0} | settings
    return verdicts.Testing(test=test, weighing=weighing, **given)


def rows_of(
    contrasts: Sequence[Contrast],
    how: verdicts.Testing,
    chosen: Sequence[bool] | None = None,
    correct: Any = holm,
    level: float | None = None,
) -> list[Difference]:
    mask = np.ones(how.weighing.n, np.bool_) if chosen is None else np.array(chosen)
    return how.decided(how.measured(contrasts, mask), correct, level)


def row_of(difference: Sequence[float], test: str = "randomisation", **settings: Any) -> Difference:
    made = {
        name: settings.pop(name) for name in ("measure", "bounds", "lowest") if name in settings
    }
    [row] = rows_of([contrast(difference, **made)], settled(len(difference), test, **settings))
    return row


# --- better, worse, identical ---


def test_better_and_worse() -> None:
    row = row_of(UP)
    assert (row.verdict, row.reason) == ("better", "p 0.0312")
    assert (row.p, row.p_corrected, row.family) == (P_UP, P_UP, 1)
    assert (row.baseline_value, row.candidate_value) == (0.0, pytest.approx(0.35))
    assert row.difference == pytest.approx(0.35)
    assert (row.wins, row.ties, row.losses, row.superiority) == (6, 0, 0, 1.0)
    # The mean of .1 to .6 is .35; squares about it sum to .175, by 5 the variance .035.
    assert row.standard_error == pytest.approx(math.sqrt(0.035 / 6))
    assert row.standardised == pytest.approx(0.35 / math.sqrt(0.035))
    # SciPy 1.17: t.ppf.
    reach = float(stats.t.ppf(0.975, 5)) * math.sqrt(0.035 / 6)
    assert (row.ci_low, row.ci_high) == (pytest.approx(0.35 - reach), pytest.approx(0.35 + reach))
    assert row.ci_method == "t"
    assert (row.baseline, row.candidate, row.measure, row.n) == ("old", "new", "P@1", 6)
    back = row_of([-value for value in UP])
    assert (back.verdict, back.p, back.superiority) == ("worse", P_UP, 0.0)
    assert (back.wins, back.losses) == (0, 6)


def test_where_less_is_better() -> None:
    row = row_of(UP, measure="NumNonrelRet", margin=0.3)
    assert row.verdict == "worse"
    assert (row.wins, row.losses, row.superiority) == (0, 6, 0.0)
    assert row.difference == pytest.approx(0.35)  # as it is: candidate minus baseline
    # Worse by .35, against a loss of .3 or more: SciPy 1.17's t.sf((.3 - .35) / error).
    error = math.sqrt(0.035 / 6)
    assert row.not_worse_p == pytest.approx(float(stats.t.sf((0.3 - 0.35) / error, 5)))
    down = row_of([-value for value in UP], measure="NumNonrelRet")
    assert (down.verdict, down.wins) == ("better", 6)


def test_identical_is_no_test_and_takes_no_part_in_the_correction() -> None:
    same, up = rows_of([contrast([0.0, 1e-13] * 3), contrast(UP)], settled(6, margin=0.5))
    assert same.verdict == "identical"
    assert same.reason == "every query has the same value in both"
    assert (same.p, same.p_corrected, same.equivalence_p) == (None, None, None)
    assert (same.ties, same.smallest_detected, same.queries_needed) == (6, None, None)
    assert (same.family, up.family) == (1, 1)
    assert up.p_corrected == P_UP


# --- families ---


def test_holm_and_benjamini_hochberg_over_a_family() -> None:
    family = [contrast(UP), contrast(UP), contrast(AROUND)]
    # AROUND sums to 0, so every arrangement is as far: p 1. Holm triples the smallest of three;
    # the second, doubled, may not be smaller. BH: 1/32 times 3 / 2, for both.
    found = rows_of(family, settled(6))
    assert [row.p_corrected for row in found] == [3 * P_UP, 3 * P_UP, 1.0]
    assert [row.family for row in found] == [3, 3, 3]
    assert [row.verdict for row in found] == ["cannot tell"] * 3
    assert found[0].reason.startswith("p 0.0938 corrected over 3 comparisons (0.0312 alone); 6 que")
    found = rows_of(family, settled(6), correct=benjamini_hochberg, level=LEVEL)
    assert [row.p_corrected for row in found] == [1.5 * P_UP, 1.5 * P_UP, 1.0]
    assert [row.verdict for row in found] == ["better", "better", "cannot tell"]
    assert found[0].reason == "p 0.0469 corrected over 3 comparisons (0.0312 alone)"


def test_power_is_that_of_the_level_a_family_leaves() -> None:
    family = [contrast(MIXED), contrast(MIXED[::-1]), contrast([0.0] * 12)]
    sd, mean = np.std(MIXED, ddof=1), np.mean(MIXED)
    for level, alpha in ((None, LEVEL / 2), (LEVEL, LEVEL)):
        row, _, same = rows_of(family, settled(12), level=level)
        assert same.smallest_detected is None
        assert row.smallest_detected == pytest.approx(smallest_difference(sd, 12, alpha=alpha))
        assert row.queries_needed == queries_needed(sd, mean, alpha=alpha)
        # SciPy 1.17's noncentral t: a power of .8 at that difference, and from so many queries on.
        assert row.smallest_detected is not None
        assert row.queries_needed is not None
        assert power(row.smallest_detected / sd, 12, alpha) == pytest.approx(0.8, abs=1e-6)
        assert power(mean / sd, row.queries_needed, alpha) >= 0.8
        assert power(mean / sd, row.queries_needed - 1, alpha) < 0.8


def power(size: float, n: int, alpha: float) -> float:
    beyond, shift = stats.t.ppf(1 - alpha / 2, n - 1), size * math.sqrt(n)
    return float(stats.nct.sf(beyond, n - 1, shift) + stats.nct.cdf(-beyond, n - 1, shift))


def test_what_it_would_take() -> None:
    row = row_of([0.3, -0.1, 0.2, -0.2, 0.1, -0.1])
    assert row.verdict == "cannot tell"
    assert row.queries_needed is not None
    more = row.queries_needed - 6
    assert more > 0
    assert row.p is not None
    assert row.reason == (
        f"6 queries detect {row.smallest_detected:.3f} or more (power 80 %); "
        f"to detect 0.033 takes {more:,} more"
    )
    none = row_of(AROUND)  # a mean of 0 is never detected
    assert none.queries_needed is None
    assert none.reason.endswith("or more (power 80 %)")


# --- margins ---


def test_equivalence_is_corrected_over_the_family() -> None:
    # AROUND: mean 0, squares sum to .12, error sqrt(.12 / 5 / 6) = .0632; a margin of .2 is
    # sqrt(10) of it: p .0125 on 5 degrees of freedom, by 3 still below .05, by 5 no more.
    alone = float(stats.t.sf(math.sqrt(10), 5))
    assert 3 * alone < LEVEL < 5 * alone
    for size, verdict in ((1, "equivalent"), (3, "equivalent"), (5, "cannot tell")):
        row, *_ = rows_of([contrast(AROUND)] * size, settled(6, margin=0.2))
        assert row.verdict == verdict
        assert row.equivalence_p == pytest.approx(size * alone)
        assert row.not_worse_p == pytest.approx(size * alone)
    assert row_of(AROUND, margin=0.2).reason == f"smaller than 0.2 (p {alone:.4f})"
    assert row_of(AROUND).equivalence_p is None
    assert row_of(AROUND).verdict == "cannot tell"


def test_not_worse_is_said_and_corrected() -> None:
    # Mean .7 / 6, against a loss of .1: not worse, though neither better nor equivalent.
    rather = [0.5, -0.1, 0.2, -0.05, 0.1, 0.05]
    p = float(stats.ttest_1samp(rather, -0.1, alternative="greater").pvalue)  # SciPy 1.17
    assert p < LEVEL < 2 * p
    row = row_of(rather, margin=0.1)
    assert row.verdict == "cannot tell"
    assert row.not_worse_p == pytest.approx(p)
    assert row.reason.endswith(f"; not more than 0.1 worse (p {p:.4f})")
    two, _ = rows_of([contrast(rather)] * 2, settled(6, margin=0.1))
    assert two.not_worse_p == pytest.approx(2 * p)
    assert "worse" not in two.reason


def test_better_by_less_than_matters() -> None:
    row = row_of(UP, margin=2.0)
    assert row.verdict == "better"
    assert row.reason == "p 0.0312; yet smaller than 2, so it may not matter"
    assert row_of(UP, margin=0.35).reason == "p 0.0312"


# --- the mean, the signs and the ranks ---


def test_better_on_fewer_queries() -> None:
    difference = [1.0 - 0.01 * i for i in range(8)] + [-0.01 * (i + 1) for i in range(9)]
    p = float(stats.ttest_1samp(difference, 0).pvalue)  # SciPy 1.17
    row = row_of(difference, "t")
    assert (row.wins, row.losses, row.verdict) == (8, 9, "better")
    assert row.reason == f"p {p:.4f}, though on fewer queries than it is not"
    level = row_of([*difference, 0.0, -0.0], "t")  # ties are on no side
    assert level.reason.endswith("though on fewer queries than it is not")
    back = row_of([-value for value in difference], "t")
    assert back.verdict == "worse"
    assert back.reason == row.reason
    # As many won as lost is not fewer.
    assert "though" not in row_of(difference[:-1], "t").reason


@pytest.mark.parametrize("test", ["sign", "wilcoxon"])
def test_a_test_that_finds_the_contrary_of_the_mean_tells_nothing(test: str) -> None:
    difference = [0.1 + 0.01 * i for i in range(15)] + [-9.0]
    # SciPy 1.17. Signs: 1 of 16 down. Ranks: 16 of 136 down.
    exact = stats.wilcoxon(difference, method="exact").pvalue
    expected = float(exact if test == "wilcoxon" else stats.binomtest(1, 16).pvalue)
    assert expected < LEVEL
    for turned in (1, -1):
        row = row_of([turned * value for value in difference], test)
        assert row.p == pytest.approx(expected)
        assert row.verdict == "cannot tell"
        assert (
            row.reason
            == f"the {test} test contradicts the direction of the mean (p {expected:.4f})"
        )
    along = row_of([*difference[:-1], 0.05], test)
    assert along.verdict == "better"


# --- weights, slices, intervals ---


@pytest.mark.parametrize("test", ["sign", "wilcoxon"])
def test_tests_without_weights_refuse_them(test: str) -> None:
    with pytest.raises(UsageError, match=f"the {test} test does not support weights"):
        settled(6, test, weights=[1, 1, 1, 1, 1, 2])


@pytest.mark.parametrize("drawn", [False, True])
def test_weights_in_a_slice(*, drawn: bool) -> None:
    weights, chosen = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [True, False, True, True, True, True]
    samples = resample(6, 500, np.random.default_rng(1)) if drawn else None
    how = settled(6, weights=weights, drawn=samples)
    held = contrast(UP, bounds=(-0.1, 0.3, True))
    assert held.bounds is not None
    assert held.bounds.high is not None
    held.bounds.high[3] = 5.0  # one query weighs in the ends as it does in the mean
    found = how.measured([held], np.array(chosen), "kind", "some")
    [row] = how.decided(found, benjamini_hochberg, LEVEL)
    assert (row.n, row.attribute, row.slice) == (5, "kind", "some")
    # Of weights 1, 3, 4, 5, 6: (.1 + .9 + 1.6 + 2.5 + 3.6) / 19.
    assert row.difference == row.candidate_value == pytest.approx(8.7 / 19)
    assert row.unjudged_low == pytest.approx(8.7 / 19 - 0.1)
    # The highest: .4, .6, 5, .8 and .9: (.4 + 1.8 + 20 + 4 + 5.4) / 19.
    assert row.unjudged_high == pytest.approx(31.6 / 19)
    assert row.p == 2 / 2**5
    if samples is not None:
        span = bca_interval(
            np.array(UP)[chosen], samples[:, chosen], np.array(weights)[np.array(chosen)]
        )
        assert span.low is not None
        assert (row.ci_low, row.ci_high, row.ci_method) == (span.low, span.high, "bca")


def test_a_query_without_a_value_is_left_out() -> None:
    row, other = rows_of([contrast([*UP, math.nan]), contrast([*UP, -0.6])], settled(7))
    assert (row.n, other.n) == (6, 7)
    assert row.p == P_UP
    assert row.difference == pytest.approx(0.35)


# --- the unjudged ---


@pytest.mark.parametrize(
    ("down", "up", "exact", "says"),
    [
        (-0.5, 0.25, True, "; but the unjudged could flip it (−0.150 to +0.600)"),
        (-0.5, 0.25, False, "; but the unjudged might flip it (−0.150 to +0.600)"),
        (-0.25, 0.25, True, "; no grades of the unjudged flip the sign"),
        (-0.35, 0.0, True, "; but the unjudged could flip it"),  # 0 is no gain
    ],
)
def test_what_the_unjudged_could_do(down: float, up: float, exact: bool, says: str) -> None:
    row = row_of(UP, bounds=(down, up, exact))
    assert row.verdict == "better"
    assert row.unjudged_exact is exact
    assert row.reason.startswith(f"p 0.0312{says}")
    assert row.sign_could_flip is ("flip it" in says)


def test_an_equivalent_difference_that_the_unjudged_could_make_matter() -> None:
    row = row_of(AROUND, margin=0.2, bounds=(-0.1, 0.2, True))
    assert row.verdict == "equivalent"
    assert row.reason.endswith("; the unjudged could make it −0.100 to +0.200")
    assert row_of(AROUND, margin=0.2, bounds=(-0.2, 0.1, True)).reason.endswith("−0.200 to +0.100")
    assert "unjudged" not in row_of(AROUND, margin=0.2, bounds=(-0.1, 0.19, True)).reason


def test_ends_hold_the_difference_unless_0_is_off_the_scale() -> None:
    # Ends that rounding or an odd bound puts on one side of what was seen are drawn to it; where
    # the lowest grade is above 0, what was seen (unjudged as 0) may truly lie outside.
    on = row_of(UP, bounds=(0.1, 0.2, True))
    assert (on.unjudged_low, on.unjudged_high) == (on.difference, pytest.approx(0.55))
    below = row_of(UP, bounds=(-0.2, -0.1, True))
    assert (below.unjudged_low, below.unjudged_high) == (pytest.approx(0.15), below.difference)
    off = row_of(UP, bounds=(0.1, 0.2, True), lowest=1.0)
    assert (off.unjudged_low, off.unjudged_high) == (pytest.approx(0.45), pytest.approx(0.55))
    unknown = row_of(UP)
    assert (unknown.unjudged_low, unknown.unjudged_high, unknown.unjudged_exact) == (None,) * 3
    assert unknown.sign_could_flip is None


# --- too little to tell ---


def test_a_constant_difference_has_no_spread() -> None:
    row = row_of([0.25] * 6, "t", margin=0.5)
    assert (row.verdict, row.p, row.family) == ("cannot tell", None, 0)
    assert row.reason == "the difference has no spread for a test"
    assert (row.standard_error, row.ci_low, row.ci_high, row.ci_method) == (None,) * 4
    assert (row.standardised, row.smallest_detected, row.queries_needed) == (None,) * 3
    assert (row.equivalence_p, row.not_worse_p) == (None, None)
    assert row.difference == 0.25
    assert row_of([0.25] * 6, "bootstrap").p is None
    # Signs need no spread.
    signs = row_of([0.25] * 6)
    assert (signs.verdict, signs.p) == ("better", P_UP)


def test_one_query_and_none() -> None:
    one = [True, False, False, False, False, False]
    [row] = rows_of([contrast(UP)], settled(6, margin=0.5), one)
    assert (row.n, row.verdict, row.reason) == (
        1,
        "cannot tell",
        "one query is not enough for a test",
    )
    assert (row.difference, row.wins, row.superiority) == (0.1, 1, 1.0)
    assert (row.ci_low, row.equivalence_p, row.smallest_detected) == (None, None, None)
    for drawn in (None, resample(6, 100, np.random.default_rng(0))):
        how = settled(6, margin=0.5, drawn=drawn)
        [row] = rows_of([contrast(UP, bounds=(-0.1, 0.1, True))], how, [False] * 6)
        assert (row.n, row.verdict, row.reason) == (
            0,
            "cannot tell",
            "no query has a value in both",
        )
        assert (row.difference, row.baseline_value, row.p, row.superiority) == (None,) * 4
        assert (row.unjudged_low, row.unjudged_high, row.family) == (None, None, 0)


def test_few_queries() -> None:
    assert row_of([0.1, 0.2, -0.1, 0.3]).reason == "4 queries are too few to detect anything"
    assert row_of([0.1, 0.2, -0.1, 0.3, 0.1]).reason.startswith("5 queries detect")
    # So sure alone that the level is passed, and not over nine comparisons.
    sure = [0.1, 0.11, 0.13]
    p = float(stats.ttest_1samp(sure, 0).pvalue)  # SciPy 1.17
    assert p < LEVEL < 9 * p
    row, *_ = rows_of([contrast(sure)] * 9, settled(3, "t"))
    assert row.reason == (
        f"p {9 * p:.4f} corrected over 9 comparisons ({p:.4f} alone); "
        "3 queries are too few to detect anything"
    )


# --- what cannot be ---


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"test": "wilcoxn"}, "unknown test 'wilcoxn'"),
        ({"margin": 0.0}, "a margin of 0 is not above 0"),
        ({"margin": -0.1}, "a margin of -0.1 is not above 0"),
        ({"margin": math.nan}, "a margin of nan is not above 0"),
        ({"margin": math.inf}, "a margin of inf is not above 0"),
        ({"seed": -1}, "seed -1 or 10,000 resamples out of range"),
        ({"resamples": 99}, "seed 0 or 99 resamples out of range"),
        ({"resamples": MOST_RESAMPLES + 1}, "10,000,001 resamples out of range"),
    ],
)
def test_settings_out_of_range(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        settled(6, **settings)


def test_settings_at_the_ends_of_their_range() -> None:
    assert settled(6, resamples=100, margin=1e-9).resamples == 100
    assert settled(6, resamples=MOST_RESAMPLES).resamples == MOST_RESAMPLES
    with pytest.raises(UsageError) as told:
        settled(6, test="wilcoxn")
    assert told.value.nearest[0] == "wilcoxon"


# --- rounding ---


def test_a_mean_of_nothing_but_rounding_has_no_direction() -> None:
    # Ten times .1 and once -1 sum to 5e-17 or so: sign says p .012, the mean says nothing.
    row = row_of([0.1] * 10 + [-1.0], "sign")
    assert row.p is not None
    assert row.p < LEVEL
    assert row.verdict == "cannot tell"


def test_a_difference_constant_but_for_rounding_has_no_interval() -> None:
    row = row_of([(place / 10 + 0.1) - place / 10 for place in range(12)], "t")
    assert (row.standard_error, row.ci_low, row.ci_high, row.ci_method) == (None,) * 4
