"""Where judged documents stand in runs."""

from __future__ import annotations

import dataclasses

import numpy as np

from karat.diagnosis.movement import places
from karat.measures.run_pair import Pair
from karat.tables import Qrels, Run

QRELS = Qrels.from_dict(
    {
        "p": {"a": 1.0, "x": -1.0, "far": 2.0, "z": 0.0},
        "q": {"b": 0.0, "a": 3.0},
        "r": {"a": 1.0},
    }
)
# Tied: b before a, as documents go by id descending.
BASELINE = Run.from_dict({"q": {"b": 1.0, "a": 1.0}, "p": {"x": 3.0, "u": 2.0, "a": 1.0}})
CANDIDATE = Run.from_dict({"p": {"far": 9.0, "x": 8.0, "z": 7.0}, "other": {"a": 1.0}, "r": {}})


def test_places_in_both_runs() -> None:
    pair = Pair.of(BASELINE, CANDIDATE, QRELS)
    assert places(pair, np.array([0, 1])).rows() == [
        (0, "a", 1.0, 3, None),
        (0, "far", 2.0, None, 1),
        (0, "z", 0.0, None, 3),
        (1, "a", 3.0, 2, None),
        (1, "b", 0.0, 1, None),
    ]
    assert places(pair, np.array([2])).rows() == [(0, "a", 1.0, None, None)]
    assert places(pair, np.array([], np.int64)).rows() == []


def test_places_down_to_a_depth() -> None:
    pair = Pair.of(BASELINE, CANDIDATE, QRELS, depth=2)
    assert [row[3:] for row in places(pair, np.array([0])).rows()] == [
        (None, None), (None, 1), (None, None),
    ]  # fmt: skip


def test_places_among_judged_documents_only() -> None:
    # Without x and u, which nobody judged, a is first and z second.
    whole = Pair.of(BASELINE, CANDIDATE, QRELS)
    pair = dataclasses.replace(
        whole,
        of_baseline=whole.of_baseline.only_judged(),
        of_candidate=whole.of_candidate.only_judged(),
    )
    assert [row[3:] for row in places(pair, np.array([0])).rows()] == [
        (1, None), (None, 1), (None, 2),
    ]  # fmt: skip
