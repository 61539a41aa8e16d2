"""Agreement of a golden set's raters, from raw judgments."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import cohen_kappa_score

from karat.errors import UsageError
from karat.golden.reliability import UNCLASSED, agreement
from karat.tables.golden.agreement import Agreement, Drift, Figure, OneRater
from karat.tables.judgments import Judgments


def judged(*rows: dict[str, Any]) -> Judgments:
    """Each row says query, doc, rater, grade (None: cannot judge), and what else is not usual."""
    usual = {"source": "human", "kind": "rating", "seconds": 4.0, "guideline": "1"}
    full = []
    for number, row in enumerate(rows):
        state = "cannot_judge" if row["grade"] is None else "graded"
        full.append({"judgment": number, "time_us": number, "state": state, **usual, **row})
    return Judgments(pl.DataFrame(full, infer_schema_length=None), (0, 3))


def rows(grades: dict[str, list[float | None]], each: int = 3, **more: Any) -> list[dict[str, Any]]:
    """Grades by rater, pair by pair; so many pairs of a query."""
    return [
        {"query_id": f"q{at // each}", "doc_id": f"d{at % each}", "rater": rater, "grade": grade}
        | more
        for at in range(max(map(len, grades.values())))
        for rater, of in grades.items()
        if at < len(of) and (grade := of[at]) != -1
    ]


ANN: list[float | None] = [0, 0, 1, 3, 2, 2, 0, 1, 3, 3, 0, 2]
BOB: list[float | None] = [0, 1, 1, 3, 2, 1, 0, 1, 3, 2, 0, 0]


def test_two_raters_have_cohens_kappa_and_everything_beside_it() -> None:
    found = agreement(judged(*rows({"ann": ANN, "bob": BOB})))
    expected = cohen_kappa_score(ANN, BOB, labels=[0, 1, 2, 3], weights="quadratic")
    assert found.headline.value == pytest.approx(expected)
    assert (found.headline.name, found.headline.weights) == ("κ, quadratic weights", "quadratic")
    assert (found.queries, found.pairs, found.raters) == (4, 12, ("ann", "bob"))
    assert [figure.name for figure in found.figures] == [
        "κ, quadratic weights",
        "κ, no weights",
        "κ, linear weights",
        "Fleiss' κ",
        "Krippendorff's α, nominal",
        "Krippendorff's α, ordinal",
        "Krippendorff's α, interval",
        "Gwet's AC1",
        "share equal",
    ]
    assert found.figures[-1].value == pytest.approx(8 / 12)
    (pair,) = found.two_raters
    assert (pair.kappa, pair.confusion) == (found.headline, found.confusion)
    assert found.confusion.grades == (0.0, 1.0, 2.0, 3.0)
    assert found.confusion.counts == ((3, 1, 0, 0), (0, 2, 0, 0), (1, 1, 1, 0), (0, 0, 1, 2))
    assert "fewer than 25 queries" in found.notes[0]
    assert json.loads(json.dumps(found.to_dict()))["queries"] == 4


def test_only_first_ratings_that_were_graded_count() -> None:
    """Not what was settled, repeated, known beforehand, or could not be judged."""
    base = rows({"ann": ANN, "bob": BOB})
    settled = rows({"eve": ANN, "ann": ANN, "bob": ANN}, kind="adjudication")
    known = rows({"ann": ANN, "bob": ANN}, kind="gold", doc_id="known")
    again = rows({"ann": BOB}, kind="repeat")
    unsure = [
        {"query_id": "q9", "doc_id": "d", "rater": rater, "grade": grade}
        for rater, grade in (("ann", None), ("bob", 3.0))
    ]
    found = agreement(judged(*base, *settled, *known, *again, *unsure))
    assert found.headline == agreement(judged(*base)).headline
    assert (found.pairs, found.queries) == (12, 4)


def test_sources_are_not_mixed() -> None:
    base, theirs = rows({"ann": ANN, "bob": BOB}), rows({"model": ANN}, source="llm")
    found = agreement(judged(*base, *theirs))
    assert found.headline == agreement(judged(*base)).headline
    assert "12 ratings from llm do not count here" in found.notes


def test_more_raters_have_the_mean_weighted_by_what_they_share() -> None:
    cid: list[float | None] = [-1] * 6 + [0, 2, 3, 3, 1, 2]
    found = agreement(judged(*rows({"ann": ANN, "bob": BOB, "cid": cid})), weights="none")
    each = [
        (cohen_kappa_score(ANN, BOB), 12),
        (cohen_kappa_score(ANN[6:], cid[6:]), 6),
        (cohen_kappa_score(BOB[6:], cid[6:]), 6),
    ]
    assert found.headline.value == pytest.approx(sum(k * n for k, n in each) / 24)
    assert [(p.first, p.second, p.kappa.pairs) for p in found.two_raters] == [
        ("ann", "bob", 12),
        ("ann", "cid", 6),
        ("bob", "cid", 6),
    ]
    counts = np.array(found.confusion.counts)
    assert (found.confusion.first, counts.sum()) == (None, 48)  # 24, each both ways round
    assert (counts == counts.T).all()


def test_a_pair_rated_twice_by_one_rater_counts_once_and_is_said() -> None:
    first = rows({"ann": [3, *ANN[1:]]})
    found = agreement(judged(*first, *rows({"ann": ANN, "bob": BOB})))
    assert found.headline == agreement(judged(*rows({"ann": ANN, "bob": BOB}))).headline
    assert "12 times a rater rated a pair more than once: the last grade counts" in found.notes


def test_classes_and_guidelines() -> None:
    early = rows({"ann": ANN[:6], "bob": BOB[:6]})
    late = [
        {**row, "query_id": f"r{row['query_id']}", "guideline": "2"}
        for row in rows({"ann": ANN[6:], "bob": BOB[6:]})
    ]
    mixed = [
        {"query_id": "rq0", "doc_id": "m", "rater": rater, "grade": 0.0, "guideline": version}
        for rater, version in (("ann", "1"), ("bob", "2"))
    ]
    by = {"q0": "plain", "q1": "plain", "rq0": "hard"}
    found = agreement(judged(*early, *late, *mixed), by=by, weights="none")
    expected = cohen_kappa_score(ANN[:6], BOB[:6]), cohen_kappa_score(ANN[6:], BOB[6:])
    assert [(f.name, f.pairs) for f in found.classes] == [
        (UNCLASSED, 3),
        ("hard", 4),
        ("plain", 6),
    ]
    assert found.classes[2].value == pytest.approx(expected[0])
    assert [f.value for f in found.guidelines] == pytest.approx(list(expected))
    assert [f.pairs for f in found.guidelines] == [6, 6]  # the pair graded under both is out


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, "nothing was graded by two raters"),
        ({"ann": ANN}, "nothing was graded by two raters"),
        ({"ann": ANN[:6], "bob": [-1] * 6 + BOB[6:]}, "nothing was graded by two raters"),
        (
            {"ann": [2.0] * 12, "bob": [2.0] * 12},
            "every grade is the same, so agreement cannot be distinguished from chance",
        ),
    ],
)
def test_where_nothing_can_be_told_it_says_why(
    given: dict[str, list[float | None]], reason: str
) -> None:
    table = judged(*rows({"ann": ANN})) if not given else judged(*rows(given))
    if not given:
        table = Judgments(table.frame.clear(), (0, 3))
    found = agreement(table)
    assert found.sentence == f"agreement not available: {reason}"
    assert (found.headline.value, found.headline.reason, found.needed) == (None, reason, None)
    json.dumps(found.to_dict(), allow_nan=False)


def test_every_number_in_it_is_a_number_or_has_a_reason() -> None:
    found = agreement(judged(*rows({"ann": ANN, "bob": BOB, "cid": [2]})))

    def figures(of: object) -> list[Figure]:
        if isinstance(of, Figure):
            return [of]
        if isinstance(of, tuple):
            return [figure for one in of for figure in figures(one)]
        names = getattr(of, "__dataclass_fields__", ())
        return [figure for name in names for figure in figures(getattr(of, name))]

    assert isinstance(found, Agreement)
    for figure in figures(found):
        assert (figure.ci_low is None) == bool(figure.reason), figure
    json.dumps(found.to_dict(), allow_nan=False)


def test_recovers_what_raters_were_made_to_agree_on() -> None:
    """Two raters who give the true grade with probability .8, else any of the four.

    Equal with .64 + .36 / 4 = .73, and by chance, grades being equally frequent, with .25, so κ is
    .48 / .75 = .64 = .8².
    """
    rng = np.random.default_rng(7)
    truth = rng.integers(0, 4, 4000)
    given = [
        np.where(rng.random(4000) < 0.8, truth, rng.integers(0, 4, 4000)).astype(float).tolist()
        for _ in range(2)
    ]
    found = agreement(
        judged(*rows({"ann": given[0], "bob": given[1]}, each=20)), weights="none", target=0.5
    ).headline
    assert found.value == pytest.approx(0.64, abs=0.03)
    assert found.ci_low is not None
    assert found.ci_high is not None
    assert found.ci_low <= 0.64 <= found.ci_high


@pytest.mark.parametrize("wrong", [{"weights": "cubic"}, {"target": 1.0}])
def test_what_it_is_asked_is_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        agreement(judged(*rows({"ann": ANN, "bob": BOB})), **wrong)


# One rater: compared with the others, the known grades, and the same rater earlier.

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
