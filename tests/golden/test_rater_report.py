"""One rater: against the others, the known grades, and the same rater earlier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from sklearn.metrics import cohen_kappa_score

from karat.golden.reliability import agreement
from karat.tables.golden.agreement import Agreement, Drift, OneRater
from karat.tables.judgments import Judgments

Vote = tuple[str, str, str, float | None]


def table(
    *votes: Vote, kinds: Sequence[str] = (), seconds: Sequence[float | None] = ()
) -> Judgments:
    """(query, doc, rater, grade or None) in the order they came; kind is rating if not said."""
    frame = pl.DataFrame(
        {
            "judgment": range(len(votes)),
            "query_id": [query for query, _, _, _ in votes],
            "doc_id": [doc for _, doc, _, _ in votes],
            "grade": [grade for *_, grade in votes],
            "state": ["cannot_judge" if g is None else "graded" for *_, g in votes],
            "rater": [rater for _, _, rater, _ in votes],
            "source": ["human"] * len(votes),
            "kind": [*kinds, *["rating"] * (len(votes) - len(kinds))],
            "time_us": range(len(votes)),
            "seconds": [*seconds, *[None] * (len(votes) - len(seconds))],
        },
        schema_overrides={"grade": pl.Float64, "seconds": pl.Float64},
    )
    return Judgments(frame, (0, 3))


def of(found: Agreement, rater: str) -> OneRater:
    (row,) = (row for row in found.one_rater if row.rater == rater)
    return row


def test_a_rater_beside_the_others() -> None:
    """Three documents. ann 2, 3, 1; bob 1, 3; cid 0, -, 2; and one of bob's alone.

    ann minus the others' mean: 2 - .5, 3 - 3, 1 - 2: .5 / 3. bob: 1 - 1, 3 - 3.
    cid: 0 - 1.5, 2 - 1.
    """
    found = agreement(
        table(
            ("q", "1", "ann", 2),
            ("q", "2", "ann", 3),
            ("r", "3", "ann", 1),
            ("q", "1", "bob", 1),
            ("q", "2", "bob", 3),
            ("q", "1", "cid", 0),
            ("r", "3", "cid", 2),
            ("r", "4", "bob", 0),
        ),
        weights="none",
    )
    ann, bob, cid = (of(found, name) for name in ("ann", "bob", "cid"))
    assert ann.leniency.value == pytest.approx(0.5 / 3)
    assert bob.leniency.value == pytest.approx(0.0)
    assert cid.leniency.value == pytest.approx(-0.25)
    # ann against each other grade of her documents: 2 to 1, 2 to 0, 3 to 3, 1 to 2.
    assert ann.kappa.value == pytest.approx(
        cohen_kappa_score([2, 2, 3, 1], [1, 0, 3, 2], labels=[0, 1, 2, 3])
    )
    assert (ann.kappa.pairs, ann.leniency.pairs, bob.kappa.pairs) == (3, 3, 2)
    assert [row.judged for row in found.one_rater] == [3, 3, 2]


def test_what_could_not_be_judged_and_how_long_it_took() -> None:
    votes: list[Vote] = [("q", "1", "ann", None), ("q", "2", "ann", 1), ("q", "3", "ann", 2)]
    votes += [("q", "4", "ann", None), ("q", "1", "bob", 1)]
    found = agreement(table(*votes, seconds=[30.0, 2.0, 4.0, 9.0]))
    assert (of(found, "ann").cannot_judge, of(found, "ann").seconds) == (0.5, 6.5)
    assert (of(found, "bob").cannot_judge, of(found, "bob").seconds) == (0.0, None)


def test_against_the_same_rater_earlier() -> None:
    """Of five hidden repeats, four with the same grade; bob's rating is none of ann's business."""
    votes: list[Vote] = []
    for at, grade in enumerate([0, 1, 2, 3, 3]):
        votes.append((f"q{at}", "d", "ann", grade))
    votes.append(("q0", "d", "bob", 3))
    votes += [(f"q{at}", "d", "ann", grade) for at, grade in enumerate([0, 1, 2, 3, 1])]
    votes.append(("q9", "d", "ann", 1))  # of what was never rated before
    found = agreement(table(*votes, kinds=["rating"] * 6 + ["repeat"] * 6), weights="linear")
    ann, bob = of(found, "ann"), of(found, "bob")
    assert ann.self_equal.value == pytest.approx(0.8)
    assert ann.self_kappa.value == pytest.approx(
        cohen_kappa_score([0, 1, 2, 3, 3], [0, 1, 2, 3, 1], weights="linear")
    )
    assert (ann.self_kappa.pairs, ann.judged) == (5, 5)
    assert (bob.self_equal.value, bob.self_equal.reason) == (None, "nothing was judged again")


def test_against_known_grades() -> None:
    votes: list[Vote] = [("q", "g1", "ann", 3), ("q", "g2", "ann", 2), ("r", "g3", "ann", 0)]
    votes += [("r", "g4", "ann", 1), ("q", "d", "bob", 1)]
    known = pl.DataFrame(
        {
            "query_id": ["q", "q", "r"],
            "doc_id": ["g1", "g2", "g3"],
            "grade": [3, 0, 0],
        }
    )
    judgments = table(*votes, kinds=["gold"] * 4)
    ann = of(agreement(judgments, gold=known), "ann")
    assert ann.gold.value == pytest.approx(2 / 3)  # g4 is not known
    assert ann.gold_leniency.value == pytest.approx(2 / 3)  # 0, 2, 0
    assert of(agreement(judgments, gold=known), "bob").gold.reason == (
        "no pair of known grade was judged"
    )
    assert of(agreement(judgments), "ann").gold.reason == "no known grades were given"


def drift(found: Agreement, rater: str, what: str) -> Drift:
    (row,) = (row for row in found.drift if (row.rater, row.what) == (rater, what))
    return row


def raising(since: int) -> Agreement:
    """40 queries of 4: from one query on, ann gives a grade more, in half of the pairs."""
    votes: list[Vote] = []
    for query in range(40):
        for doc in range(4):
            grade = (query * 7 + doc * 3) % 3
            other = (query * 5 + doc) % 4 == 0
            raised = query >= since and (query * 4 + doc) % 10 < 5
            votes.append((f"q{query:02}", f"d{doc}", "ann", grade + raised))
            votes.append((f"q{query:02}", f"d{doc}", "bob", min(3, grade + other)))
    return agreement(table(*votes))


def test_drift_is_seen_and_who_drifted() -> None:
    found = raising(since=20)
    ann = drift(found, "ann", "leniency")
    assert ann.change.value is not None
    assert ann.change.value == pytest.approx((ann.second.value or 0) - (ann.first.value or 0))
    assert ann.change.value == pytest.approx(0.5)
    assert ann.change.ci_low is not None
    assert ann.change.ci_low > 0
    assert (ann.first.pairs, ann.second.pairs) == (80, 80)
    agreed = drift(found, "ann", "agreement").change
    assert agreed.value is not None
    assert agreed.value < 0


def test_without_drift_the_interval_holds_zero() -> None:
    change = drift(raising(since=0), "ann", "leniency").change
    assert change.ci_low is not None
    assert change.ci_high is not None
    assert change.ci_low <= 0 <= change.ci_high


def test_one_pair_in_common_has_no_halves() -> None:
    assert agreement(table(("q", "d", "ann", 1), ("q", "d", "bob", 1))).drift == ()


def test_nobody_is_told_apart_by_what_others_never_saw() -> None:
    votes: dict[str, Any] = {"ann": 1.0, "bob": 2.0}
    alone = agreement(table(*((f"q{rater}", "d", rater, g) for rater, g in votes.items())))
    for row in alone.one_rater:
        assert (row.kappa.value, row.leniency.value) == (None, None)
        assert row.leniency.reason == row.kappa.reason == "nothing was graded by two raters"
