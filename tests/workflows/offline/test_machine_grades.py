"""Means from people's grades and a machine's: units, refusals, and coverage by simulation."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from karat.errors import InputError, UsageError
from karat.tables import Qrels, Queries, Run
from karat.workflows.offline.evaluate import evaluate
from karat.workflows.offline.machine_grades import Costs, machine_means, read_machine_grades

DOCS, QUERIES = 6, 40


def world(seed=0, queries=QUERIES, noise=1):
    """True grades, a machine's, and two runs."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, (queries, DOCS))
    machine = np.clip(truth + rng.integers(-noise, noise + 1, truth.shape), 0, 3)
    good = np.argsort(-(truth + rng.normal(0, 1, truth.shape)), axis=1)
    poor = np.argsort(-(truth + rng.normal(0, 3, truth.shape)), axis=1)
    return truth, machine, good, poor


def run_of(order, name):
    return Run.from_dict(
        {
            f"q{q}": {f"d{d}": float(DOCS - r) for r, d in enumerate(row)}
            for q, row in enumerate(order)
        },
        name,
    )


def grades_of(table, queries=None):
    rows = [
        (f"q{q}", f"d{d}", float(grade), "m@1")
        for q, row in enumerate(table)
        for d, grade in enumerate(row)
        if queries is None or q in queries
    ]
    return pl.DataFrame(rows, schema=["query_id", "doc_id", "grade", "rater"], orient="row")


def qrels_of(table, queries):
    return Qrels(grades_of(table, queries).drop("rater"))


def test_what_more_judging_would_buy():
    # 6 pairs a query: at $.01 a pair $10 are 166.7 queries, at 5 s a pair 10 minutes are 20.
    truth, machine, good, _ = world()
    people, run = qrels_of(truth, range(12)), run_of(good, "good")
    costs = Costs(dollars=0.01, seconds=5)
    (row,) = machine_means(people, [run], grades_of(machine), ["nDCG@3"], costs=costs)
    assert row.dollars_queries == pytest.approx(10 / 0.06)
    assert row.minutes_queries == pytest.approx(20)
    assert row.minutes_effective > row.dollars_effective > row.effective
    (row,) = machine_means(people, [run], grades_of(machine), ["nDCG@3"])
    assert (row.dollars_queries, row.minutes_effective) == (None, None)


def test_whole_queries_are_combined_by_hand():
    """λ = cov(Y, F) / ((1 + n/N) var F): the formula on the values that evaluate gives."""
    truth, machine, good, _ = world()
    people, run = qrels_of(truth, range(12)), run_of(good, "good")
    row = machine_means(people, [run], grades_of(machine), ["nDCG@3"])[0]

    def values(qrels):
        found = evaluate(qrels, run, ["nDCG@3"], per_query=True, bounds=False).per_query
        return {each.query_id: each.value for each in found}

    human, by_machine = values(people), values(qrels_of(machine, range(QUERIES)))
    y = np.array([human[f"q{q}"] for q in range(12)])
    f = np.array([by_machine[f"q{q}"] for q in range(12)])
    rest = np.array([by_machine[f"q{q}"] for q in range(12, QUERIES)])
    spread = np.var(np.concatenate([f, rest]), ddof=1)
    lam = np.mean((y - y.mean()) * (f - f.mean())) / ((1 + 12 / 28) * spread)
    assert row.weight == pytest.approx(np.clip(lam, 0, 1))
    assert row.estimate == pytest.approx(lam * rest.mean() + (y - lam * f).mean())
    assert row.people == pytest.approx(y.mean())
    assert row.machine == pytest.approx(np.concatenate([f, rest]).mean())
    assert (row.unit, row.judged, row.machine_only, row.judge) == ("query", 12, 28, "m@1")
    assert row.rho == pytest.approx(np.corrcoef(y, f)[0, 1])


def test_a_difference_is_of_the_queries_differences():
    truth, machine, good, poor = world()
    runs = [run_of(poor, "poor"), run_of(good, "good")]
    people = qrels_of(truth, range(15))
    row = machine_means(people, runs, grades_of(machine), ["P@3"], difference=True)[0]
    assert (row.run, row.baseline) == ("good", "poor")
    alone = [machine_means(people, [run], grades_of(machine), ["P@3"])[0].people for run in runs]
    assert row.people == pytest.approx(alone[1] - alone[0])


def test_pairs_with_chances_give_the_truth_when_all_are_judged():
    truth, machine, good, _ = world()
    run, everything = run_of(good, "good"), qrels_of(truth, range(QUERIES))
    chances = grades_of(truth).select("query_id", "doc_id", chance=pl.lit(1.0))
    for measure in ("DCG@3", "P@2", "RBP(p=0.8)"):
        row = machine_means(everything, [run], grades_of(machine), [measure], chances=chances)[0]
        plain = evaluate(everything, run, [measure], complete=True, bounds=False).results[0].value
        assert row.estimate == pytest.approx(plain), measure
        assert row.unit == "pair"


def test_samples_of_pairs_hold_the_truth_whatever_the_machine_says(deep):
    """A machine that is wrong by one grade everywhere, .4 of the pairs judged: 95 %."""
    truth, _, good, _ = world(queries=60)
    run = run_of(good, "good")
    everything = qrels_of(truth, range(60))
    right = evaluate(everything, run, ["DCG@3"], complete=True, bounds=False).results[0].value
    machine, chances = grades_of(np.clip(truth + 1, 0, 3)), None
    chances = grades_of(truth).select("query_id", "doc_id", chance=pl.lit(0.4))
    rng, held, rounds = np.random.default_rng(1), 0, 400 if deep else 40
    for _ in range(rounds):
        some = everything.frame.filter(pl.Series(rng.random(len(everything.frame)) < 0.4))
        row = machine_means(Qrels(some), [run], machine, ["DCG@3"], chances=chances)[0]
        held += row.ci_low <= right <= row.ci_high
    # The queries are all that there are, so the interval, which is about queries in general,
    # holds their mean more often than in 95 % of samples.
    assert held >= 0.93 * rounds


def test_a_measure_that_is_not_linear_is_refused_for_pairs():
    truth, machine, good, _ = world()
    chances = grades_of(truth).select("query_id", "doc_id", chance=pl.lit(0.5))
    people = qrels_of(truth, range(10))
    row = machine_means(people, [run_of(good, "g")], grades_of(machine), ["AP"], chances=chances)[0]
    assert row.estimate is None
    assert "judge whole queries, or use DCG, P or RBP" in row.reason


def test_ndcg_of_pairs_is_the_mean_dcg_over_the_mean_ideal():
    truth, machine, good, poor = world()
    runs = [run_of(good, "good"), run_of(poor, "poor")]
    chances = grades_of(truth).select("query_id", "doc_id", chance=pl.lit(1.0))
    best = run_of(np.argsort(-truth, axis=1), "best")
    people = qrels_of(truth, range(QUERIES))
    found = evaluate(people, [*runs, best], ["DCG@3"], complete=True, bounds=False)
    dcg = {row.run: row.value for row in found.results}
    mean, other = machine_means(people, runs, grades_of(machine), ["nDCG@3"], chances=chances)
    assert mean.aggregate == "ratio"
    assert mean.estimate == pytest.approx(dcg["good"] / dcg["best"])
    assert mean.ci_low < mean.estimate < mean.ci_high
    (row,) = machine_means(
        people, runs, grades_of(machine), ["nDCG@3"], difference=True, chances=chances
    )
    assert row.estimate == pytest.approx(other.estimate - mean.estimate)


def test_ndcg_of_pairs_says_what_its_ideal_needs():
    truth, machine, good, _ = world()
    few = [(q, d) for q in range(QUERIES) for d in range(2)]
    rows = [(f"q{q}", f"d{d}", float(truth[q, d])) for q, d in few]
    people = Qrels(pl.DataFrame(rows, schema=["query_id", "doc_id", "grade"], orient="row"))
    every = grades_of(truth).select("query_id", "doc_id", chance=pl.lit(0.3))
    for chances, reason in (
        (every, "people judged 2.0 pairs a query, and nDCG needs 3"),
        (people.frame.select("query_id", "doc_id", chance=pl.lit(0.3)), "160 pairs that the mach"),
    ):
        (row,) = machine_means(
            people, [run_of(good, "g")], grades_of(machine), ["nDCG@3"], chances=chances
        )
        assert row.estimate is None
        assert reason in row.reason


def test_parts_of_queries_without_chances_are_refused():
    truth, machine, good, _ = world()
    part = Qrels(grades_of(truth, range(5)).drop("rater")[:-2])
    with pytest.raises(InputError, match="people judged a part of 1 queries: 2 pairs"):
        machine_means(part, [run_of(good, "g")], grades_of(machine), ["P@3"])


def test_people_and_machine_without_a_common_query_are_refused():
    _, machine, good, _ = world()
    with pytest.raises(InputError, match="people judged none of the queries"):
        machine_means(
            Qrels.from_dict({"other": {"d1": 1}}),
            [run_of(good, "g")],
            grades_of(machine),
            ["P@3"],
        )


def test_grades_of_two_judges_are_refused():
    truth, machine, good, _ = world()
    both = pl.concat([grades_of(machine), grades_of(machine).with_columns(rater=pl.lit("n@2"))])
    with pytest.raises(InputError, match="grades of 2 judges"):
        machine_means(qrels_of(truth, range(9)), [run_of(good, "g")], both, ["P@3"])


def test_weights_without_strata_are_refused_and_strata_are_weighted():
    truth, machine, good, _ = world()
    ids = [f"q{q}" for q in range(QUERIES)]
    weighted = pl.DataFrame({"query_id": ids, "weight": [1.0 + q % 2 for q in range(QUERIES)]})
    people, run = qrels_of(truth, range(20)), run_of(good, "g")
    with pytest.raises(UsageError, match="different weights, and no strata"):
        machine_means(people, [run], grades_of(machine), ["P@3"], queries=Queries(weighted))
    strata = Queries(
        weighted.with_columns(stratum=pl.Series([f"s{q % 2}" for q in range(QUERIES)]))
    )
    row = machine_means(people, [run], grades_of(machine), ["P@3"], queries=strata)[0]
    found = evaluate(people, run, ["P@3"], per_query=True, bounds=False).per_query
    value = {each.query_id: each.value for each in found}
    odd, even = ([value[f"q{q}"] for q in range(20) if q % 2 == side] for side in (1, 0))
    # Strata of 20 queries each, of weights 2 and 1
    assert row.people == pytest.approx((2 * np.mean(odd) + np.mean(even)) / 3)


def test_files_of_grades(tmp_path):
    path = tmp_path / "g.csv"
    path.write_text("query_id,doc_id,grade,state,rater\nq,a,2,graded,m@1\nq,b,,cannot_judge,m@1\n")
    given = read_machine_grades(str(path), None)
    assert given.frame.rows() == [("q", "a", 2.0, "m@1")]
    assert (given.chances, given.judge, given.costs) == (None, None, None)
    path.write_text("query_id,doc_id,grade\nq,a,two\n")
    with pytest.raises(InputError, match="the grade 'two' is not a number"):
        read_machine_grades(str(path), None)
    path.write_text("query_id,doc_id,grade\nq,a,2\n")
    chance = tmp_path / "c.csv"
    for text, reason in (("0", "above 0"), ("1.5", "above 0"), ("x", "above 0")):
        chance.write_text(f"query_id,doc_id,chance\nq,a,{text}\n")
        with pytest.raises(InputError, match=reason):
            read_machine_grades(str(path), str(chance))
