"""The passport of a judge: people's agreement next to the judge's, orders of systems."""

from __future__ import annotations

from pathlib import Path

import pytest

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
