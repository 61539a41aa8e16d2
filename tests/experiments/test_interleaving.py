"""Team draft: vectors of mpkato/interleaving, and unbiasedness by enumeration."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.errors import UsageError
from karat.experiments import interleaving
from karat.experiments.interleaving import Interleaved, credit, interleave


def every_list(a: str, b: str, k: int) -> dict[Interleaved, float]:
    """Every list that team draft can make, with its probability: each way that k coins can fall."""
    lists: dict[Interleaved, float] = {}
    for tosses in product((0.0, 0.9), repeat=k):
        coins = SimpleNamespace(random=iter(tosses).__next__)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(interleaving.random, "Random", lambda _seed, coins=coins: coins)
            made = interleave(a, b, k=k)
        lists[made] = lists.get(made, 0.0) + 0.5**k
    return lists


def test_every_list() -> None:
    # mpkato/interleaving 7907f7d, tests/test_team_draft.py.
    assert {made.doc_ids for made in every_list("12", "23", 2)} == {("1", "2"), ("2", "1")}
    assert len(every_list("12", "34", 3)) == 4


@pytest.mark.parametrize(
    ("clicked", "expected"),
    # The same: A picked the first, B the others.
    [({0, 1, 2}, (1, 2)), ({0, 1}, (1, 1)), ({0}, (1, 0)), (set(), (0, 0))],
)
def test_credit(clicked: set[int], expected: tuple[int, int]) -> None:
    assert credit(("A", "B", "B"), clicked) == expected


def test_a_shared_top_is_neutral() -> None:
    made = interleave("xyab", "xycd", k=4, seed=1)
    assert made.doc_ids[:2] == ("x", "y")
    assert made.teams[:2] == (None, None)
    assert set(made.teams[2:]) == {"A", "B"}


def test_equal_rankings_show_nothing() -> None:
    assert interleave("abc", "abc", k=3).teams == (None, None, None)


def test_pinned_documents_keep_their_place() -> None:
    made = interleave("abc", "dbe", k=4, seed=2, pinned={1: "ad", 3: "b"})
    assert made.doc_ids[0] == "ad"
    assert made.doc_ids[2] == "b"
    assert made.teams[0] is made.teams[2] is None
    assert made.doc_ids.count("b") == 1


def test_a_seed_gives_the_same_list() -> None:
    lists = {interleave("abcdef", "fedcba", seed="q|u").doc_ids for _ in range(20)}
    assert len(lists) == 1
    assert len({interleave("abcdef", "fedcba", seed=n).doc_ids for n in range(20)}) > 1


def test_a_list_that_ends_early() -> None:
    assert sorted(interleave("a", "b", k=10).doc_ids) == ["a", "b"]
    assert interleave("", "", k=10) == Interleaved((), ())


@pytest.mark.parametrize(("k", "pinned"), [(0, None), (3, {4: "x"})])
def test_no_list(k: int, pinned: dict[int, str] | None) -> None:
    with pytest.raises(UsageError, match="do not make a list"):
        interleave("ab", "cd", k=k, pinned=pinned)


@given(st.permutations("abcdef"), st.permutations("abcdef"), st.integers(1, 4), st.integers(0, 9))
def test_made_of_both(a: list[str], b: list[str], k: int, seed: int) -> None:
    made = interleave(a, b, k=k, seed=seed)
    assert len(set(made.doc_ids)) == len(made.doc_ids) == k
    assert abs(made.teams.count("A") - made.teams.count("B")) <= 1


@pytest.mark.parametrize(("a", "b"), list(product(["abcd", "bacd"], ["badc", "efgh", "acbd"])))
def test_clicks_at_random_prefer_neither(a: str, b: str) -> None:
    """Over every list, a user who clicks one place at random gives both the same credit."""
    total = 0.0
    for made, chance in every_list(a, b, 4).items():
        for at in range(len(made.doc_ids)):
            to_a, to_b = credit(made.teams, {at})
            total += chance * (to_a - to_b) / len(made.doc_ids)
    assert total == pytest.approx(0.0, abs=1e-12)
