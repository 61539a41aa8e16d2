"""One grade out of several, and what is to be settled."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.errors import UsageError
from karat.golden.aggregation import contradictions, disagreements, grades
from karat.tables.judgments import Judgments

SOURCES = {"model1": "llm", "model2": "llm", "import": "import"}


def judged(*votes: tuple[str, str, float | None]) -> Judgments:
    """(rater, kind, grade or None) of one pair, in the order they came."""
    frame = pl.DataFrame(
        [
            {
                "judgment": number,
                "query_id": "q",
                "doc_id": "d",
                "grade": grade,
                "state": "cannot_judge" if grade is None else "graded",
                "rater": rater,
                "source": SOURCES.get(rater, "human"),
                "kind": kind,
                "time_us": number,
                "reason": f"{rater} says",
            }
            for number, (rater, kind, grade) in enumerate(votes)
        ],
        infer_schema_length=None,
    )
    return Judgments(frame, (0, 3))


def rated(*grade: float | None) -> Judgments:
    return judged(*((f"r{n}", "rating", g) for n, g in enumerate(grade)))


def one(judgments: Judgments, rule: str | None = None, **more: Any) -> dict[str, Any]:
    found = grades(judgments, **({} if rule is None else {"rule": rule}), **more)
    assert found.height == 1
    return found.row(0, named=True)


@pytest.mark.parametrize(
    ("given_grades", "grade", "rule", "spread"),
    [
        ((2.0,), 2.0, "majority", 0.0),
        ((2.0, 2.0), 2.0, "majority", 0.0),
        ((1.0, 3.0), 1.0, "median", 2.0),  # the lower of the middle two
        ((0.0, 3.0, 3.0), 3.0, "majority", 3.0),
        ((0.0, 1.0, 3.0), 1.0, "median", 3.0),
        ((0.0, 0.0, 3.0, 3.0), 0.0, "median", 3.0),  # half is not more than half
        ((3.0, 2.0, 0.0, 1.0), 1.0, "median", 3.0),
        ((2.0, None), 2.0, "majority", 0.0),
    ],
)
def test_majority_then_median(
    given_grades: tuple[float | None, ...], grade: float, rule: str, spread: float
) -> None:
    found = one(rated(*given_grades))
    assert (found["grade"], found["rule"], found["spread"]) == (grade, rule, spread)
    assert found["votes"] == sum(g is not None for g in given_grades)


def test_what_was_settled_comes_first_and_names_who_settled_it() -> None:
    found = one(judged(("a", "rating", 0), ("b", "rating", 0), ("eve", "adjudication", 3)))
    assert found == {
        "query_id": "q",
        "doc_id": "d",
        "grade": 3.0,
        "votes": 2,
        "rule": "adjudicated",
        "raters": ["eve"],
        "spread": 0.0,
        "source": "human",
    }


def test_an_adjudicator_who_cannot_judge_settles_nothing() -> None:
    votes = (("a", "rating", 1.0), ("b", "rating", 3.0))
    found = judged(*votes, ("eve", "adjudication", 2.0), ("eve", "adjudication", None))
    assert (one(found)["rule"], one(found)["raters"]) == ("median", ["a", "b"])
    assert disagreements(found)["settled"].to_list() == [False]


def test_a_grade_that_was_settled_without_any_rating() -> None:
    found = one(judged(("eve", "adjudication", 2.0)))
    assert (found["grade"], found["votes"], found["spread"]) == (2.0, 0, None)


def test_repeats_and_known_pairs_have_no_vote_and_a_rater_has_one() -> None:
    found = judged(
        ("a", "rating", 1),
        ("b", "rating", 1),
        ("a", "repeat", 3),
        ("b", "gold", 3),
        ("a", "rating", 0),  # later than the first
        ("c", "rating", 2),
        ("c", "rating", None),  # and in the end could not judge
    )
    row = one(found)
    assert (row["grade"], row["votes"], row["raters"]) == (0.0, 2, ["a", "b"])


def test_sources_are_not_mixed_unless_they_are_named() -> None:
    votes = judged(("a", "rating", 1.0), ("model1", "rating", 3.0), ("model2", "rating", 3.0))
    assert (one(votes)["grade"], one(votes)["source"]) == (1.0, "human")
    both = one(votes, sources=("human", "llm"))
    assert (both["grade"], both["votes"], both["source"]) == (3.0, 3, "human+llm")
    assert grades(votes, sources=("clicks",)).is_empty()
    with pytest.raises(UsageError, match="people"):
        grades(votes, sources=("people",))


def test_a_rule_of_fewer_steps_leaves_out_what_it_does_not_decide() -> None:
    assert grades(rated(1.0, 3.0), "majority").is_empty()
    assert one(rated(1.0, 1.0, 3.0), "median, majority")["rule"] == "median"
    ignored = judged(("a", "rating", 0.0), ("eve", "adjudication", 3.0))
    assert one(ignored, "majority")["grade"] == 0.0


@pytest.mark.parametrize("rule", ["mean", "", "majority, adjudicated"])
def test_an_unknown_rule_is_refused(rule: str) -> None:
    with pytest.raises(UsageError):
        grades(rated(1.0), rule)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=7), st.randoms())
def test_the_grade_is_one_that_was_given_whatever_the_order(votes: list[int], luck: Any) -> None:
    found = one(rated(*map(float, votes)))
    assert found["grade"] in votes
    below = sum(vote < found["grade"] for vote in votes)
    above = sum(vote > found["grade"] for vote in votes)
    assert 2 * below <= len(votes)
    assert 2 * above <= len(votes)
    shuffled = list(votes)
    luck.shuffle(shuffled)
    again = one(rated(*map(float, shuffled)))
    assert (again["grade"], again["rule"]) == (found["grade"], found["rule"])


@pytest.mark.parametrize(
    ("given_grades", "disagree"),
    [
        ((1.0, 2.0), False),
        ((2.0, 3.0), False),
        ((0.0, 1.0), True),  # either side of relevant
        ((1.0, 3.0), True),  # two apart
        ((0.0, 0.0), False),
        ((2.0,), False),
        ((2.0, None), False),
    ],
)
def test_what_somebody_has_to_settle(
    given_grades: tuple[float | None, ...], disagree: bool
) -> None:
    assert (disagreements(rated(*given_grades)).height == 1) == disagree


def test_a_disagreement_shows_both_sides() -> None:
    votes = judged(("b", "rating", 3.0), ("a", "rating", 0.0), ("eve", "adjudication", 1.0))
    (row,) = disagreements(votes).to_dicts()
    assert row == {
        "query_id": "q",
        "doc_id": "d",
        "votes": 2,
        "low": 0.0,
        "high": 3.0,
        "spread": 3.0,
        "raters": ["a", "b"],
        "grades": [0.0, 3.0],
        "reasons": ["a says", "b says"],
        "settled": True,
    }


def test_of_nothing_there_is_nothing() -> None:
    none = Judgments(rated(1.0).frame.clear(), (0, 3))
    assert grades(none).is_empty()
    assert disagreements(none).is_empty()
    assert contradictions(none).is_empty()


@pytest.mark.parametrize(
    ("imported", "people", "spread"),
    [
        (0.0, (2.0, 3.0), 2.0),  # the lower of 2 and 3 counts
        (0.0, (1.0,), 1.0),  # on either side of relevant
        (3.0, (1.0, 1.0), 2.0),
        (2.0, (3.0,), None),  # as near as raters are to each other
        (0.0, (0.0, 3.0), None),  # they disagree among themselves: it is listed as that
        (0.0, (None,), None),  # nobody graded, so the imported grade counts
        (0.0, (), None),
    ],
)
def test_an_imported_grade_that_raters_contradict(
    imported: float, people: tuple[float | None, ...], spread: float | None
) -> None:
    votes = [(f"r{n}", "rating", grade) for n, grade in enumerate(people)]
    said = judged(("import", "rating", imported), *votes)
    found = contradictions(said)
    assert found["spread"].to_list() == ([] if spread is None else [spread])
    assert found["imported"].to_list() == ([] if spread is None else [imported])
    assert found.columns == [*disagreements(said).columns, "imported"]
    for row in found.rows(named=True):
        assert row["raters"] == [rater for rater, _, _ in votes]
        assert row["grades"] == list(people)
        assert not row["settled"]
    settled = judged(
        ("import", "rating", imported), *votes, ("eve", "adjudication", 3.0 - imported)
    )
    assert contradictions(settled)["settled"].all()
