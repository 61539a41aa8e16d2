"""Expectations of one answer."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.errors import UsageError
from karat.release.expectations import Answer, absent, before, best_first, nothing, top

ABC = Answer("q", ("a", "b", "7"))
EMPTY = Answer("q", ())
ids = st.sampled_from("abcdef")
answers = st.lists(ids, unique=True).map(lambda docs: Answer("q", tuple(docs)))


@pytest.mark.parametrize(
    ("check", "found"),
    [
        (lambda: top(ABC, 1, "a", because="r"), None),
        (lambda: top(ABC, 3, 7, because="r"), None),
        (lambda: top(ABC, 1, "b", because="r"), '"b" is at rank 2 of 3'),
        (lambda: top(ABC, 9, "x", because="r"), '"x" is not among the 3 returned'),
        (lambda: top(EMPTY, 1, "a", because="r"), "the search returned nothing at all"),
        (lambda: absent(ABC, "x", because="r"), None),
        (lambda: absent(ABC, "b", within=1, because="r"), None),
        (lambda: absent(ABC, "b", within=2, because="r"), '"b" is at rank 2 of 3'),
        (lambda: absent(ABC, 7, because="r"), '"7" is at rank 3 of 3'),
        (lambda: before(ABC, "a", "b", because="r"), None),
        (lambda: before(ABC, "b", "x", because="r"), None),
        (
            lambda: before(ABC, "b", "a", because="r"),
            '"b" is at rank 2 of 3; "a" is at rank 1 of 3',
        ),
        (
            lambda: before(ABC, "x", "y", because="r"),
            '"x" is not among the 3 returned; "y" is not among the 3 returned',
        ),
        (lambda: before(EMPTY, "a", "b", because="r"), "the search returned nothing at all"),
        (lambda: nothing(EMPTY, because="r"), None),
        (lambda: nothing(ABC, because="r"), "3 documents were returned"),
        (lambda: nothing(Answer("q", ("a",)), because="r"), "1 document was returned"),
    ],
)
def test_an_expectation_is_kept_or_says_what_is_so(
    check: Callable[[], object], found: str | None
) -> None:
    broken = check()
    assert getattr(broken, "found", None) == found
    assert getattr(broken, "because", "r") == "r"


def test_a_dead_search_keeps_no_absence() -> None:
    broken = absent(EMPTY, "a", because="r")
    assert broken is not None
    assert "expect nothing" in broken.found


@pytest.mark.parametrize(
    "check",
    [
        lambda: top(ABC, 0, "a", because="r"),
        lambda: top(ABC, True, "a", because="r"),
        lambda: top(ABC, 1.5, "a", because="r"),
        lambda: top(ABC, 1, "", because="r"),
        lambda: top(ABC, 1, True, because="r"),
        lambda: top(ABC, 1, None, because="r"),
        lambda: top(ABC, 1, "a", because=" "),
        lambda: absent(ABC, "x", within=0, because="r"),
        lambda: absent(EMPTY, "x", because=""),
        lambda: before(ABC, "a", "a", because="r"),
        lambda: before(ABC, "a", 7.0, because="r"),
        lambda: nothing(EMPTY, because=None),
    ],
)
def test_what_cannot_be_expected_is_refused(check: Callable[[], object]) -> None:
    with pytest.raises(UsageError):
        check()


@given(answers, ids, ids, st.integers(1, 6))
def test_expectations_agree_with_each_other(answer: Answer, one: str, two: str, k: int) -> None:
    if answer.doc_ids:  # in the top k or not
        kept = top(answer, k, one, because="r") is None
        assert kept != (absent(answer, one, within=k, because="r") is None)
    if one != two:  # not both before the other; and one of them, if either is returned
        both = [before(answer, *pair, because="r") is None for pair in ((one, two), (two, one))]
        assert sum(both) == bool({one, two} & set(answer.doc_ids))


def test_scores_make_the_order_and_equal_ones_stay_as_returned() -> None:
    assert best_first(["c", "a", "b", "d"], [1.0, 2.0, 1.0, 3.0]) == ("d", "a", "c", "b")
