"""Which pairs people should look at: chances by hand, and an estimate that stays unbiased."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from karat.golden.judge_doubts import disagreements, drawn


def graded(rows, name="machine", spread=0.0):
    frame = pl.DataFrame(rows, schema=["query_id", "doc_id", name], orient="row")
    frame = frame.with_columns(pl.col(name).cast(pl.Float64))
    return frame.with_columns(spread=pl.lit(spread)) if name == "machine" else frame


NONE = graded([], "people").cast({"query_id": pl.String, "doc_id": pl.String})


def test_a_pair_that_moves_the_result_has_the_higher_chance():
    # Errors are unknown: 1 each. Weights 1, .5, -.5: mean 2/3, of which a tenth is the floor. The
    # chances are (1 + .0667, .5 + .0667, .5 + .0667) / 2.2; a document of no run is not drawn.
    machine = graded([("q", "a", 3), ("q", "b", 1), ("q", "c", 0), ("q", "d", 2)])
    weights = pl.DataFrame(
        {"query_id": ["q"] * 3, "doc_id": ["a", "b", "c"], "weight": [1.0, 0.5, -0.5]}
    )
    found = drawn(machine, NONE, 1, "salt", weights)
    assert found["doc_id"].to_list() == ["a", "b", "c"]
    chances = np.array([16, 8.5, 8.5]) / 33
    assert found["chance"].to_list() == pytest.approx(chances.tolist())
    assert found["chosen_by"].unique().to_list() == ["it moves the result"]


def test_judges_that_disagree_and_grades_that_were_wrong_raise_the_chance():
    # People agreed with every 0 and were 2 away from every 3: the error is 0 and 2.
    known = [("k", f"d{n}", 3 * (n % 2)) for n in range(20)]
    people = graded([(q, d, grade / 3) for q, d, grade in known], "people")
    machine = graded([*known, ("q", "low", 0), ("q", "high", 3), ("q", "split", 0)])
    split = pl.when(pl.col("doc_id") == "split").then(1.5).otherwise("spread")
    machine = machine.with_columns(spread=split)
    found = drawn(machine, people, 1, "salt")
    assert found["doc_id"].to_list() == ["high", "split", "low"]
    assert found["chosen_by"].to_list() == ["likely error", "judges disagree", "likely error"]
    assert found["chance"].sum() == pytest.approx(1)
    assert found["chance"].min() > 0


def test_what_people_judged_is_not_drawn_and_what_is_far_apart_is_listed():
    machine = graded([("q", "a", 3), ("q", "b", 1), ("q", "c", 0)])
    people = graded([("q", "a", 0), ("q", "b", 0), ("q", "other", 2)], "people")
    assert drawn(machine, people, 9, "salt")["doc_id"].to_list() == ["c"]
    assert disagreements(machine, people)["doc_id"].to_list() == ["a"]


def test_the_same_salt_draws_the_same_pairs_and_about_as_many_as_asked():
    machine = graded([(f"q{n % 20}", f"d{n}", n % 4) for n in range(400)])
    first, again = (drawn(machine, NONE, 60, "salt") for _ in range(2))
    assert first.equals(again)
    assert 40 <= first["drawn"].sum() <= 80
    assert not first.equals(drawn(machine, NONE, 60, "other"))


def test_over_all_draws_the_estimate_is_the_truth_whatever_the_machine_says():
    # Total of w · g as in the difference estimator: w f + the drawn w (g - f) / chance.
    rng = np.random.default_rng(1)
    truth, wrong = rng.integers(0, 4, 60), rng.integers(0, 4, 60)
    machine = graded([(f"q{n % 6}", f"d{n:02}", int(g)) for n, g in enumerate(wrong)])
    weight = dict(zip(machine["doc_id"], rng.normal(size=60), strict=True))
    weights = machine.select("query_id", "doc_id").with_columns(
        weight=pl.Series(list(weight.values()))
    )
    true_of = dict(zip(machine["doc_id"], truth.tolist(), strict=True))
    totals = []
    for salt in range(400):
        found = drawn(machine, NONE, 20, str(salt), weights)
        w = np.array([weight[d] for d in found["doc_id"]])
        g = np.array([true_of[d] for d in found["doc_id"]])
        f, kept = found["machine"].to_numpy(), found["drawn"].to_numpy()
        totals.append((w * f).sum() + (w * (g - f) * kept / found["chance"].to_numpy()).sum())
    exact = sum(weight[d] * true_of[d] for d in weight)
    assert abs(np.mean(totals) - exact) < 4 * np.std(totals) / len(totals) ** 0.5
