"""Compare: differences query by query, with what may be said of them."""

from __future__ import annotations

import json
import math

import numpy as np
import polars as pl
import pytest
from scipy import stats
from tests.choosing import deep_but

from karat.errors import UsageError
from karat.reports.offline.comparison import to_json
from karat.stats import bca_interval, resample
from karat.stats.paired import bootstrap
from karat.stats.power import smallest_difference
from karat.tables import Queries
from karat.workflows.offline.compare import compare

N = 40
QUERIES = [f"q{n:02}" for n in range(N)]
QRELS = {query: {"good": 1} for query in QUERIES}


def ranked(places: list[int]) -> dict[str, dict[str, float]]:
    """A run with the good document at these ranks."""
    return {
        query: {"good": -float(place)} | {f"x{i}": -i - 0.5 for i in range(place)}
        for query, place in zip(QUERIES, places, strict=True)
    }


def values(places: list[int]) -> np.ndarray:
    return 1.0 / (np.array(places) + 1)


RNG = np.random.default_rng(4)
OLD = RNG.integers(1, 6, N).tolist()
BETTER = [max(0, place - 1) for place in OLD]
NOISE = [int(max(0, place + RNG.integers(-1, 2))) for place in OLD]


def test_a_steady_gain_is_better() -> None:
    [row] = compare(QRELS, ranked(OLD), ranked(BETTER), "RR").differences
    difference = values(BETTER) - values(OLD)
    assert row.verdict == "better"
    assert row.difference == pytest.approx(difference.mean())
    assert (row.wins, row.ties, row.losses) == (N, 0, 0)
    assert row.n == N
    # SciPy 1.17: the paired t interval.
    low, high = stats.ttest_1samp(difference, 0).confidence_interval()
    assert (row.ci_low, row.ci_high) == (pytest.approx(low), pytest.approx(high))
    assert row.standardised == pytest.approx(difference.mean() / difference.std(ddof=1))
    back = compare(QRELS, ranked(BETTER), ranked(OLD), "RR").differences[0]
    assert (back.verdict, back.p) == ("worse", row.p)


@pytest.mark.parametrize("test", ["t", "wilcoxon", "randomisation"])
def test_p_values_are_those_of_scipy(test: str) -> None:
    [row] = compare(QRELS, ranked(OLD), ranked(NOISE), "RR", test=test).differences
    difference = values(NOISE) - values(OLD)
    expected = {
        "t": stats.ttest_1samp(difference, 0).pvalue,
        "wilcoxon": stats.wilcoxon(difference, correction=True, method="approx").pvalue,
        "randomisation": stats.ttest_1samp(difference, 0).pvalue,
    }[test]
    assert row.p == pytest.approx(expected, abs=0.05 if test == "randomisation" else 1e-9)


def test_identical_runs_are_identical_and_not_nan() -> None:
    [row] = compare(QRELS, ranked(OLD), ranked(OLD), "RR").differences
    assert (row.verdict, row.p, row.difference, row.queries_needed) == (
        "identical",
        None,
        0.0,
        None,
    )
    json.loads(to_json(compare(QRELS, ranked(OLD), ranked(OLD))))


def test_noise_cannot_be_told_and_says_what_it_would_take() -> None:
    nearly = [*OLD[:-1], OLD[-1] + 1]
    [row] = compare(QRELS, ranked(OLD), ranked(nearly), "RR").differences
    assert row.verdict == "cannot tell"
    assert row.queries_needed is not None
    assert row.queries_needed > N
    assert f"takes {row.queries_needed - N:,} more" in row.reason


def test_equivalent_needs_a_margin() -> None:
    nearly = [*OLD[:-1], OLD[-1] + 1]
    [row] = compare(QRELS, ranked(OLD), ranked(nearly), "RR", margin=0.05).differences
    assert row.verdict == "equivalent"
    assert "smaller than 0.05" in row.reason


def test_p_values_are_corrected_over_measures_and_candidates() -> None:
    found = compare(
        QRELS, ranked(OLD), [ranked(BETTER), ranked(NOISE)], ["RR", "nDCG@5"]
    ).differences
    assert [row.candidate for row in found] == [
        "candidate",
        "candidate",
        "candidate-2",
        "candidate-2",
    ]
    p, corrected = ([getattr(row, name) for row in found] for name in ("p", "p_corrected"))
    # Holm: the smallest of four is multiplied by four, and so on, never falling.
    order = np.argsort(p)
    held = np.maximum.accumulate([min(1, p[i] * (4 - place)) for place, i in enumerate(order)])
    assert [corrected[i] for i in order] == pytest.approx(held.tolist())


def test_the_queries_that_decide_stand_first() -> None:
    found = compare(QRELS, ranked(OLD), ranked(NOISE), "RR")
    sizes = [abs(row.difference) for row in found.queries]
    assert sizes == sorted(sizes, reverse=True)
    assert math.fsum(row.share for row in found.queries) == pytest.approx(
        found.differences[0].difference
    )


def test_slices_are_corrected_and_shrunk() -> None:
    kinds = ["small" if n < 4 else "large" for n in range(N)]
    about = Queries(pl.DataFrame({"query_id": QUERIES, "kind": kinds}))
    found = compare(QRELS, ranked(OLD), ranked(BETTER), "RR", queries=about, by="kind")
    whole = found.differences[0].difference
    assert whole is not None
    assert [(row.slice, row.n) for row in found.slices] == [("large", 36), ("small", 4)]
    # Two tests: the smaller p is doubled, and no larger than the other.
    p = [row.p for row in found.slices]
    low, high = sorted(p)  # type: ignore[type-var]
    assert sorted(row.p_corrected for row in found.slices) == [  # type: ignore[type-var]
        pytest.approx(min(2 * low, high)),  # type: ignore[operator, type-var]
        pytest.approx(high),
    ]
    for row in found.slices:
        assert row.difference is not None
        assert row.shrunk is not None
        assert min(whole, row.difference) - 1e-9 <= row.shrunk <= max(whole, row.difference) + 1e-9


def test_two_runs_of_the_same_seed_agree() -> None:
    again = [compare(QRELS, ranked(OLD), ranked(NOISE), seed=3).to_dict() for _ in range(2)]
    assert again[0] == again[1]


def test_the_unjudged_could_turn_the_sign() -> None:
    # BETTER moves the good document up past x documents nobody judged; were they all relevant,
    # both runs would have RR 1 everywhere: the difference lies between 0 and what it is.
    found = compare(QRELS, ranked(OLD), ranked(BETTER), "RR")
    [row] = found.differences
    assert row.unjudged_exact is True
    assert row.unjudged_low is not None
    assert row.unjudged_low <= 0
    assert "but the unjudged could flip it" in row.reason
    judged = {q: {"good": 1} | {f"x{i}": 0 for i in range(9)} for q in QUERIES}
    [sure] = compare(judged, ranked(OLD), ranked(BETTER), "RR").differences
    assert sure.unjudged_low == pytest.approx(sure.difference)
    assert "no grades of the unjudged flip the sign" in sure.reason
    [dropped] = compare(QRELS, ranked(OLD), ranked(BETTER), "P@3", judged_only=True).differences
    assert dropped.unjudged_low is None


def test_what_to_judge_next() -> None:
    # One query: x stands first in the old run and second in the new; the new has it lower, so a
    # good x speaks for the old one: by 1/2 of RBP's first weight minus the second.
    qrels = {"q1": {"a": 1}, "q2": {"b": 1}}
    old = {"q1": {"x": 2.0, "a": 1.0}, "q2": {"b": 1.0}}
    new = {"q1": {"a": 2.0, "x": 1.0}, "q2": {"b": 1.0}}
    found = compare(qrels, old, new, "RBP(p=0.5)", judge_next=5)
    [pair] = found.judge_next
    assert (pair.query_id, pair.doc_id) == ("q1", "x")
    assert (pair.baseline_rank, pair.candidate_rank) == (1, 2)
    assert pair.effect == pytest.approx((0.25 - 0.5) / 2)
    assert found.to_dict()["judge_next"][0]["doc_id"] == "x"
    assert compare(qrels, old, new, "RBP(p=0.5)").to_dict()["judge_next"] == []


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"test": "anova"}, "unknown test 'anova'"),
        ({"margin": 0}, "a margin of 0 is not above 0"),
        ({"measures": "GMAP"}, "not a mean over queries"),
        ({"measures": "NumRet"}, "not a mean over queries"),
        ({"seed": -1}, "out of range"),
        ({"resamples": 5}, "100 to 10,000,000 resamples"),
        ({"by": "kind"}, "needs the queries"),
        ({"measures": []}, "no measure to compute"),
        ({"measures": "Judged@3"}, "has no direction"),
        ({"test": None}, "unknown test None"),
        ({"interval": "normal"}, "unknown interval"),
        ({"review": -1}, "review and judge_next must be 0 or more"),
        ({"judge_next": 3, "judged_only": True}, "judged_only drops"),
    ],
)
def test_what_cannot_be_is_told(settings: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        compare(QRELS, ranked(OLD), ranked(NOISE), **settings)  # type: ignore[arg-type]


def test_not_worse_by_more_than_a_margin() -> None:
    [row] = compare(QRELS, ranked(OLD), ranked(NOISE), "RR", margin=0.05).differences
    difference = values(NOISE) - values(OLD)
    # SciPy 1.17: one-sided t test of the difference against -0.05.
    expected = stats.ttest_1samp(difference, -0.05, alternative="greater").pvalue
    assert row.not_worse_p == pytest.approx(expected)
    [bare] = compare(QRELS, ranked(OLD), ranked(NOISE), "RR").differences
    assert bare.not_worse_p is None
    noisy = [*OLD[:-1], OLD[-1] + 1]
    [row] = compare(QRELS, ranked(OLD), ranked(noisy), "RR", margin=0.01).differences
    assert row.verdict == "equivalent"


def test_bca_intervals_are_those_of_the_differences() -> None:
    [row] = compare(
        QRELS, ranked(OLD), ranked(NOISE), "RR", interval="bca", resamples=2000, seed=3
    ).differences
    drawn = resample(N, 2000, np.random.default_rng(3))
    span = bca_interval(values(NOISE) - values(OLD), drawn)
    assert (row.ci_low, row.ci_high) == (pytest.approx(span.low), pytest.approx(span.high))


def test_the_bootstrap_test_is_that_of_the_differences() -> None:
    [row] = compare(QRELS, ranked(OLD), ranked(NOISE), "RR", test="bootstrap", seed=5).differences
    expected = bootstrap(values(NOISE) - values(OLD), resamples=10_000, seed=5)
    assert row.p == pytest.approx(float(expected))


def test_weights_count_in_the_difference_its_error_and_what_it_would_take() -> None:
    weight = np.where(np.arange(N) < 10, 5.0, 1.0)
    about = Queries(pl.DataFrame({"query_id": QUERIES, "weight": weight}))
    found = compare(QRELS, ranked(OLD), ranked(NOISE), "RR", queries=about)
    [row] = found.differences
    difference = values(NOISE) - values(OLD)
    centre = np.average(difference, weights=weight)
    assert row.difference == pytest.approx(centre)
    # Linearised: n / (n - 1) times the sum of squares of w (d - mean) / sum of w.
    pull = weight * (difference - centre) / weight.sum()
    error = np.sqrt((pull**2).sum() * N / (N - 1))
    assert row.standard_error == pytest.approx(error)
    assert row.smallest_detected == pytest.approx(smallest_difference(error * np.sqrt(N), N))
    assert sum(query.share for query in found.queries) == pytest.approx(centre)


def test_several_runs_are_put_in_order() -> None:
    found = compare(QRELS, ranked(OLD), [ranked(BETTER), ranked(NOISE)], ["RR", "P@1"])
    assert next(row.run for row in found.standings if row.measure == "RR") == "candidate"
    assert {row.measure for row in found.standings} == {"RR", "P@1"}
    assert [(row.left, row.right, row.runs) for row in found.orders] == [("RR", "P@1", 3)]
    assert [(row.left, row.right) for row in found.overlaps] == [
        ("baseline", "candidate"),
        ("baseline", "candidate-2"),
        ("candidate", "candidate-2"),
    ]
    assert compare(QRELS, ranked(OLD), ranked(BETTER), "RR").standings == []


def several(seed: int) -> list[list[int]]:
    """A baseline, and three candidates that are nearly as good, or better."""
    drawn = np.random.default_rng(seed)
    steps = [drawn.integers(-2, 2, N), drawn.integers(-3, 2, N), drawn.integers(-4, 2, N)]
    return [OLD, *(np.maximum(np.array(OLD) + step, 0).tolist() for step in steps)]


@pytest.mark.parametrize("seed", deep_but([0], range(8)))
def test_nothing_shown_contradicts_a_verdict(seed: int) -> None:
    # Of eight sets, some have candidates that are better than the baseline by Holm, and share a
    # letter with it by all pairs: two answers to one question.
    first, *others = several(seed)
    runs = ranked(first), {f"c{i}": ranked(places) for i, places in enumerate(others)}
    found = compare(QRELS, *runs, ["RR", "P@1"])
    assert {row.groups for row in found.standings} == {None}
    assert not found.settings.all_pairs
    every = compare(QRELS, *runs, ["RR", "P@1"], all_pairs=True)
    letters = {(row.run, row.measure): row.groups for row in every.standings}
    for row in every.differences:
        mine, base = letters[row.candidate, row.measure], letters["baseline", row.measure]
        apart = not set(mine or "") & set(base or "")
        assert apart == (row.verdict in {"better", "worse"}), row
        assert row.family == 6 * 2  # pairs of four runs, under two measures
        assert (row.p or 1) <= (row.p_corrected or 1)


def test_all_pairs_correct_for_more_than_the_baseline_does() -> None:
    first, *others = several(1)
    runs = ranked(first), [ranked(places) for places in others]
    one, every = (compare(QRELS, *runs, "RR", all_pairs=ask) for ask in (False, True))
    assert every.settings.test == "bootstrap"
    told = [row.verdict in {"better", "worse"} for row in one.differences]
    assert sum(told) >= sum(row.verdict in {"better", "worse"} for row in every.differences)
    assert any("for each candidate against the baseline" in note for note in one.notes)
    assert any("for all pairs of runs" in note for note in every.notes)
    assert any("read the verdict" in note for note in one.notes)
    again = compare(QRELS, *runs, "RR", all_pairs=True)
    assert every.to_dict() == again.to_dict()


def test_all_pairs_are_over_the_queries_that_every_run_answered() -> None:
    first, second, third, _ = (ranked(places) for places in several(2))
    failing = third | {"q00": None}
    found = compare(QRELS, {"a": first}, {"b": second, "c": failing}, "RR", all_pairs=True)
    assert {row.n for row in found.differences} == {row.n for row in found.standings} == {N - 1}
    value = {row.run: row.value for row in found.standings}
    for row in found.differences:
        assert row.candidate_value == pytest.approx(value[row.candidate])
        assert row.baseline_value == pytest.approx(value["a"])


def test_a_slice_of_all_queries_says_what_the_whole_does() -> None:
    first, *others = several(1)
    about = Queries(pl.DataFrame({"query_id": QUERIES, "kind": "any"}))
    runs = ranked(first), [ranked(places) for places in others]
    found = compare(QRELS, *runs, ["RR", "P@1", "R@3"], queries=about, by="kind")
    whole = {(row.candidate, row.measure): row for row in found.differences}
    assert len(found.slices) == len(whole)
    for row in found.slices:
        same = whole[row.candidate, row.measure]
        assert (row.verdict, row.p_corrected, row.family) == (
            same.verdict, same.p_corrected, same.family,
        )  # fmt: skip


def test_measures_disagree_for_certain_only_where_the_verdicts_do() -> None:
    places = [place + (3 if n < 28 else -place) for n, place in enumerate([1, 2] * 20)]
    found = compare(QRELS, ranked([1, 2] * 20), ranked(places), ["P@1", "R@3", "RR", "AP"])
    verdicts = {row.measure: row.verdict for row in found.differences}
    assert found.disagreements
    for row in found.disagreements:
        both = {verdicts[row.better], verdicts[row.worse]}
        assert found.certain(row) == (both == {"better", "worse"})


def test_all_pairs_take_no_other_test() -> None:
    runs = ranked(OLD), [ranked(BETTER), ranked(NOISE)]
    with pytest.raises(UsageError, match="use the bootstrap, not the sign test"):
        compare(QRELS, *runs, "RR", all_pairs=True, test="sign")


def test_two_identical_runs_stay_identical_among_all_pairs() -> None:
    found = compare(QRELS, ranked(OLD), [ranked(OLD), ranked(BETTER)], "RR", all_pairs=True)
    assert [row.verdict for row in found.differences] == ["identical", "better"]
    assert found.differences[0].p is None


def test_what_moved_is_told_of_the_queries_that_decide_and_of_all_if_asked() -> None:
    found = compare(QRELS, ranked(OLD), ranked(BETTER), "RR")
    assert len({row.query_id for row in found.moves}) == 5
    top = found.queries[0].query_id
    [move] = [row for row in found.moves if row.query_id == top]
    place = QUERIES.index(top)
    assert (move.doc_id, move.grade) == ("good", 1.0)
    assert (move.baseline_rank, move.candidate_rank) == (OLD[place] + 1, BETTER[place] + 1)
    everything = compare(QRELS, ranked(OLD), ranked(BETTER), "RR", full=True)
    assert len({row.query_id for row in everything.moves}) == N


def test_pairs_to_judge_are_a_table() -> None:
    qrels = {query: {"good": 1, "bad": 0} for query in QUERIES}
    found = compare(qrels, ranked(OLD), ranked(NOISE), "P@3", judge_next=4)
    table = found.to_judge().frame
    assert table.columns[:3] == ["query_id", "doc_id", "grade"]
    assert table["grade"].null_count() == 4  # for whoever judges them
    assert table.height == 4
    assert compare(qrels, ranked(OLD), ranked(NOISE), "P@3").to_judge().frame.height == 0
