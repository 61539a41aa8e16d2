"""The passport of a judge: people's agreement next to the judge's, orders of systems."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from karat.golden.judge_family import family_note, family_of
from karat.golden.judge_order import Compared, order_tests
from karat.golden.judge_tests import sample_queries
from karat.golden.passport import passport
from karat.tables.golden.machine_judges import JudgeConfig, Judged, JudgePair, Spent, Verdict

CONFIG = JudgeConfig(name="j", kind="python", root=Path(), grades=(0.0, 1.0))


def judged(grades):
    """What a judge said of pairs, by (query, document)."""
    return [
        (JudgePair(q, d, f"text of {q}", f"text of {d}"), Judged("", q, d, Verdict("ok", grade)))
        for (q, d), grade in grades.items()
    ]


def test_people_agree_with_each_other_and_the_judge_with_each_of_them():
    # Ann and Bob graded 8 pairs: 2 × (1, 1), 4 × (0, 0), 2 × (1, 0). Equal in 6 of 8; by chance
    # 4/8 · 2/8 + 4/8 · 6/8 = 1/2: κ = (3/4 - 1/2) / (1/2) = 1/2. The judge says what Ann says:
    # κ is 1 with her and 1/2 with him, on average 3/4, and people have 1/4 less.
    ann = [1, 1, 0, 0, 0, 0, 1, 1]
    bob = [1, 1, 0, 0, 0, 0, 0, 0]
    keys = [(f"q{n % 4}", f"d{n}") for n in range(8)]
    ratings = [(*key, "ann", float(a)) for key, a in zip(keys, ann, strict=True)]
    ratings += [(*key, "bob", float(b)) for key, b in zip(keys, bob, strict=True)]
    ratings.append(("q0", "alone", "ann", 1.0))  # one person graded it: it says nothing of both
    machine = {key: float(a) for key, a in zip(keys, ann, strict=True)} | {("q0", "alone"): 0.0}
    human = dict(machine)
    found = passport(CONFIG, judged(machine), human, Spent(), slices={}, ratings=ratings)
    assert found.agreement["people_pairs"] == 8
    assert found.agreement["people_kappa"] == pytest.approx(0.5)
    assert found.agreement["each_person_kappa"] == pytest.approx(0.75)
    rows = {test.name: test for test in found.tests}
    assert rows["agreement people"].ci_low == found.agreement["people_kappa_low"]
    assert rows["agreement below people"].value == pytest.approx(-0.25)


def test_without_a_pair_that_two_people_graded_nothing_is_said_of_people():
    machine = {("q", f"d{n}"): float(n % 2) for n in range(4)}
    ratings = [(*key, "ann", grade) for key, grade in machine.items()]
    found = passport(CONFIG, judged(machine), machine, Spent(), slices={}, ratings=ratings)
    assert "people_kappa" not in found.agreement


def compared(people, machine):
    runs = ["base", *(f"r{n}" for n in range(1, len(people[0])))]
    return Compared(runs, "nDCG@10", np.array(people, float), np.array(machine, float))


def test_a_judge_that_flatters_one_run_reverses_the_order_and_its_bias_is_shown():
    # Means by people .5 .6 .3 .2, by the judge .5 .4 .3 .2: of 6 pairs one is the other way round,
    # τ = 4/6; of the best two it is the only one, τ = -1. r1 - base is +.1 and -.1: bias -.2.
    people = [[0.4, 0.5, 0.3, 0.1], [0.6, 0.7, 0.3, 0.3]]
    machine = [[0.4, 0.3, 0.3, 0.1], [0.6, 0.5, 0.3, 0.3]]
    rows = {test.name: test for test in order_tests(compared(people, machine))}
    assert rows["order tau"].value == pytest.approx(4 / 6)
    assert rows["order of the top"].value == pytest.approx(-1)
    assert rows["order AP"].value == pytest.approx(1 / 3)
    assert rows["bias r1 - base"].value == pytest.approx(-0.2)
    assert "+0.100 by people, -0.100 by the judge" in rows["bias r1 - base"].detail
    assert rows["bias r2 - base"].value == pytest.approx(0)


def test_the_interval_of_a_bias_is_that_of_student_over_queries():
    # Differences of differences 0, .1, .2: mean .1, standard error .1 / √3, t(2) = 4.302653.
    people = [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    machine = [[0.0, 0.0], [0.0, 0.1], [0.0, 0.2]]
    (row,) = order_tests(compared(people, machine))  # two runs have a difference and no order
    assert (row.ci_low, row.ci_high) == pytest.approx(
        (0.1 - 4.302653 * 0.1 / 3**0.5, 0.1 + 4.302653 * 0.1 / 3**0.5)
    )


def test_orders_that_agree_in_every_query_have_intervals_of_one():
    values = [[0.1 * n, 0.2 + 0.1 * n, 0.4 + 0.1 * n] for n in range(5)]
    rows = {test.name: test for test in order_tests(compared(values, values))}
    assert (rows["order tau"].value, rows["order tau"].ci_low) == (1, 1)


def test_an_effective_query_costs_more_the_less_the_judge_knows():
    # 4 queries of 2 pairs; the mean grades are those of people: ρ is 1, and a query that it grades
    # is worth one. 8 pairs at $.01 each are $.02 a query.
    grades = {(f"q{n}", f"d{m}"): float(n > 1 or m) for n in range(4) for m in range(2)}
    spent = Spent(attempts=8, cost_nano=80_000_000)
    found = passport(CONFIG, judged(grades), grades, spent, slices={}, of_pairs=spent)
    assert found.price == pytest.approx(0.01)
    assert found.per_effective_query == pytest.approx(0.02)
    # The mean grades of people 0 0 1 1, of the judge 0 1 1 1: ρ² = 1/3, (2 - 1/3) / (1/3) = 5.
    people = {(f"q{n}", "d"): float(n > 1) for n in range(4)}
    machine = {(f"q{n}", "d"): float(n > 0) for n in range(4)}
    found = passport(CONFIG, judged(machine), people, spent, slices={}, of_pairs=spent)
    assert found.per_effective_query == pytest.approx(5 * 0.08 / 4)


def test_whole_queries_are_chosen_until_there_are_enough_pairs():
    pairs = [JudgePair(f"q{n}", f"d{m}", "", "") for n in range(10) for m in range(4)]
    chosen = sample_queries(pairs, 13, "salt")
    assert len(chosen) == 12
    assert all([p.query_id for p in chosen].count(p.query_id) == 4 for p in chosen)
    assert len(sample_queries(pairs, 1, "salt")) == 4


# --- families ---


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("gpt-4o-mini", "gpt"), ("openai/gpt-oss-20b", "gpt"), ("o3-mini", "gpt"),
        ("text-embedding-3-small", "gpt"), ("claude-haiku-4-5", "claude"),
        ("gemini-2.5-flash", "gemini"), ("gemma-3-4b", "gemini"), ("Meta-Llama-3-8B", "llama"),
        ("mistral-small", "mistral"), ("Mixtral-8x7B", "mistral"), ("qwen2.5-7b", "qwen"),
        ("rerank-v3.5", "command"), ("my-own-model", ""), ("proto3", ""), ("morphia-2", ""),
    ],
)  # fmt: skip
def test_the_family_of_a_model(model, family):
    assert family_of(model) == family


def test_a_run_of_the_judges_family_is_named_with_its_model():
    judge = replace(CONFIG, kind="chat", model="gpt-4o-mini")
    abouts = [
        ("bm25", {"engine": "gpt-search"}),  # the name of an engine is no model
        ("dense", {"parameters.embedding_model": "text-embedding-3-large"}),
        ("hybrid", {"model": "bge-small", "reranker": "rerank-v3.5"}),
    ]
    note = family_note(judge, abouts)
    assert "of the same family of models as dense (text-embedding-3-large)" in note
    assert "hybrid" not in note
    assert "hybrid" in family_note(replace(judge, family="Command"), abouts)
    assert family_note(replace(judge, model="house-model"), abouts) is None


def test_the_interval_of_a_share_is_within_0_and_1():
    # The retest gives another grade in one of six queries: 5/6, and the interval of Student would
    # reach 5/6 + 2.57 · 1/6 = 1.26.
    keys = [(f"q{n}", "d") for n in range(6)]
    again = [
        (replace(pair, probe="retest"), replace(each, verdict=Verdict("ok", float(n == 0))))
        for n, (pair, each) in enumerate(judged(dict.fromkeys(keys, 0.0)))
    ]
    human = dict.fromkeys(keys, 0.0)
    found = passport(CONFIG, judged(human) + again, human, Spent(), slices={})
    [row] = [test for test in found.tests if test.name == "retest"]
    assert (row.value, row.ci_high) == (pytest.approx(5 / 6), 1.0)
