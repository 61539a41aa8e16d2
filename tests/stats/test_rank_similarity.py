"""How alike runs rank: by hand, against the authors' numbers, over all orders of ties, and laws."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from functools import partial

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.choosing import FEW

from karat.errors import UsageError
from karat.stats.rank_similarity import Similarity, Ties, overlap, rank_biased_overlap
from karat.tables import Run

TIES: list[Ties] = ["corrected", "expected", "equal"]


def scores(ranking: str) -> dict[str, float]:
    """Documents with a score each, best first; those in brackets are tied."""
    groups = re.findall(r"\([^)]*\)|\w+", ranking)
    return {
        doc: float(-place)
        for place, group in enumerate(groups)
        for doc in group.strip("()").split()
    }


def run(*rankings: str) -> Run:
    return Run.from_dict({f"q{at}": scores(ranking) for at, ranking in enumerate(rankings)})


def rbo(left: str, right: str, p: float = 0.9, ties: Ties = "corrected") -> float:
    (value,) = rank_biased_overlap(run(left), run(right), p, ties).values
    return float(value)


# --- rank-biased overlap by hand ---


def test_rbo_by_hand() -> None:
    # Agreement at depths 1 to 5: 0, 1/2, 2/3, 1, 1, and 1 below.
    # .1 x (.9/2 + .81 x 2/3 + .729 + .6561) + .9^5 = .23751 + .59049.
    assert rbo("a b c d e", "b c d a e") == pytest.approx(0.828, rel=1e-12)


def test_uneven_lengths_by_hand() -> None:
    # Agreement 0 and 1/2. The third document of the shorter one is taken to be half in common:
    # (2 + 1/2) / 3 = 5/6 there, and below. With p = 1/2: 1/4 x 1/2 + 1/8 x 5/6 + 1/8 x 5/6.
    assert rbo("a b", "b c a", 0.5) == pytest.approx(1 / 3, rel=1e-12)
    assert rbo("b c a", "a b", 0.5) == pytest.approx(1 / 3, rel=1e-12)


def test_ties_by_hand() -> None:
    # Half the orders are a b, whose RBO with a b is 1, half b a, with 1/2 at p = 1/2: 3/4.
    # Corrected, depth 1 has 1/2 / sqrt(1/2 x 1) = sqrt(1/2). Equal, it has 2 x 1 / (2 + 1).
    assert rbo("(a b)", "a b", 0.5, "expected") == pytest.approx(3 / 4, rel=1e-12)
    assert rbo("(a b)", "a b", 0.5, "corrected") == pytest.approx((1 + 0.5**0.5) / 2, rel=1e-12)
    assert rbo("(a b)", "a b", 0.5, "equal") == pytest.approx(5 / 6, rel=1e-12)


# --- the authors' numbers ---

# Rows of rbo/test.csv of github.com/julian-urbano/sigir2024-rbo at 0338fd9, of Corsi & Urbano:
# p, and RBO extrapolated as w (equal), a (expected) and b (corrected).
ROWS = [
    (
        "i2 i10 (i1 i4 i5 i6)",
        "(i2 i4 i6) i10 i7 i1 i5 i12",
        0.975209133774857,
        (0.915421890198304, 0.90398769646913, 0.917668318216977),
    ),
    (
        "(i1 i3 i6 i11 i15) i17 (i5 i8)",
        "(i1 i2 i3 i4 i5 i6 i7 i8 i9 i10 i11 i12)",
        0.966485585840186,
        (0.647993254615828, 0.56593642947334, 0.658581961799868),
    ),
    (
        "i3 (i1 i5 i7) i9",
        "(i1 i9) i7 i3 i4",
        0.930093081332594,
        (0.697096710334179, 0.678580739450433, 0.684614956129899),
    ),
    (
        "i2 i5 i3 (i1 i4)",
        "i5 i8 i2 (i3 i9)",
        0.968922741966306,
        (0.580287544332462, 0.580994268838527, 0.583518284931614),
    ),
    (
        "i6 i5 (i2 i4 i7)",
        "i4 i18 i2 (i1 i5 i6 i7 i9 i14 i15 i17) i13 i11",
        0.984365085297715,
        (0.734068963712944, 0.680057896807246, 0.747819806375568),
    ),
    (
        "i4 (i1 i2 i5 i6)",
        "(i2 i4 i5 i9) i6",
        0.958872553418738,
        (0.7684144959859, 0.742930085066008, 0.775188675791486),
    ),
    (
        "(i1 i2 i6) i7 i3",
        "(i4 i7) i5 i9 i8",
        0.93922751642515,
        (0.168225212119702, 0.168225212119702, 0.168225212119702),
    ),
    (
        "(i4 i5 i6 i8 i13 i14 i15)",
        "(i5 i8) i14 i4 i13 i12 i10 i15",
        0.97385391047262,
        (0.805737783528198, 0.781738537840552, 0.812764161720161),
    ),
]


@pytest.mark.parametrize(("left", "right", "p", "expected"), ROWS)
def test_as_the_authors(
    left: str, right: str, p: float, expected: tuple[float, float, float]
) -> None:
    for ties, value in zip(("equal", "expected", "corrected"), expected, strict=True):
        assert rbo(left, right, p, ties) == pytest.approx(value, abs=1e-13)
        assert rbo(right, left, p, ties) == pytest.approx(value, abs=1e-13)


def test_many_ties_are_gone_through_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karat.stats.rank_similarity._BLOCK", 3)
    for left, right, p, expected in ROWS:
        assert rbo(left, right, p, "expected") == pytest.approx(expected[1], abs=1e-13)


# --- every order of the ties ---


@st.composite
def rankings(draw: st.DrawFn, size: int | None = None) -> str:
    docs = draw(st.permutations("abcdef"))
    docs = docs[: draw(st.integers(1, 6)) if size is None else size]
    places = sorted(draw(st.lists(st.integers(0, 3), min_size=len(docs), max_size=len(docs))))
    groups = itertools.groupby(zip(places, docs, strict=True), key=lambda pair: pair[0])
    return " ".join(f"({' '.join(doc for _, doc in group)})" for _, group in groups)


def orders(ranking: str) -> list[str]:
    groups = [group.split() for group in re.findall(r"\(([^)]*)\)", ranking)]
    ways = itertools.product(*[itertools.permutations(group) for group in groups])
    return [" ".join(itertools.chain(*way)) for way in ways]


def test_orders_is_every_order() -> None:
    assert orders("(a) (b c)") == ["a b c", "a c b"]


def untied(left: list[str], right: list[str], p: float) -> float:
    """The definition, depth by depth, for two rankings of one length."""
    total = agreement = 0.0
    for depth in range(1, len(left) + 1):
        agreement = len({*left[:depth]} & {*right[:depth]}) / depth
        total += (1 - p) * p ** (depth - 1) * agreement
    return total + p ** len(left) * agreement


@FEW
@given(rankings(4), rankings(4), st.floats(0.1, 0.99))
def test_expected_is_the_mean_over_every_order(left: str, right: str, p: float) -> None:
    every = [untied(a.split(), b.split(), p) for a in orders(left) for b in orders(right)]
    assert rbo(left, right, p, "expected") == pytest.approx(sum(every) / len(every), abs=1e-12)


# --- laws ---


@FEW
@given(rankings(), rankings(), st.floats(0.05, 0.99), st.sampled_from(TIES))
def test_laws(left: str, right: str, p: float, ties: Ties) -> None:
    value = rbo(left, right, p, ties)
    assert 0 <= value <= 1
    assert value == pytest.approx(rbo(right, left, p, ties), abs=1e-14)
    assert rbo(left, left.upper(), p, ties) == 0  # no document in common
    itself = rbo(left, left, p, ties)
    if ties == "expected":
        # All there is to lose is the order of ties.
        assert (itself < 1 - 1e-12) == (len(orders(left)) > 1)
        assert value <= rbo(left, right, p, "corrected") + 1e-12
    else:
        assert itself == pytest.approx(1, abs=1e-14)


@FEW
@given(st.permutations("abcdef"), st.permutations("abcdef"), st.sampled_from(TIES))
def test_without_ties_their_treatment_does_not_matter(
    left: list[str], right: list[str], ties: Ties
) -> None:
    value = rbo(" ".join(left), " ".join(right), 0.8, ties)
    assert value == pytest.approx(untied(left, right, 0.8), abs=1e-14)


def test_persistence_moves_the_weight_down() -> None:
    # The first two differ at the top and agree below, the others agree at the top only.
    steps = np.linspace(0.05, 0.95, 19)
    rising = [rbo("a b c d", "b a c d", p) for p in steps]
    falling = [rbo("a b c d", "a x y z", p) for p in steps]
    assert (np.diff(rising) > 0).all()
    assert (np.diff(falling) < 0).all()


@FEW
@given(
    st.lists(rankings(), min_size=1, max_size=3),
    st.lists(rankings(), min_size=1, max_size=3),
    st.floats(0.3, 0.95),
    st.integers(1, 8),
    st.sampled_from(TIES),
)
def test_what_stands_deep_weighs_so_little(
    left: list[str], right: list[str], p: float, depth: int, ties: Ties
) -> None:
    # No more than p^D if nothing below rank D is looked at, ties that D cuts included.
    runs = run(*left), run(*right)
    whole = rank_biased_overlap(*runs, p, ties).values
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("karat.stats.rank_similarity._LEAST", p ** (depth - 0.5))
        cut = rank_biased_overlap(*runs, p, ties).values
    assert np.abs(cut - whole).max() <= p**depth + 1e-15


@pytest.mark.parametrize("ties", TIES)
def test_long_rankings_lose_nothing_to_rounding(
    ties: Ties, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With p = .5 only 60 of 300 ranks are looked at; without a least weight, all of them.
    rng = np.random.default_rng(5)

    def deep(levels: int) -> Run:
        docs = (rng.permutation(350)[: rng.integers(1, 300)] for _ in range(20))
        return Run.from_dict(
            {
                f"q{at}": {f"d{doc}": float(rng.integers(levels)) for doc in chosen}
                for at, chosen in enumerate(docs)
            }
        )

    runs = deep(100_000), deep(20)
    values = rank_biased_overlap(*runs, 0.5, ties).values
    monkeypatch.setattr("karat.stats.rank_similarity._LEAST", 1e-300)
    whole = rank_biased_overlap(*runs, 0.5, ties).values
    np.testing.assert_allclose(values, whole, rtol=0, atol=1e-15)


def test_queries_are_gone_through_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = run(*[left for left, *_ in ROWS]), run(*[right for _, right, *_ in ROWS])
    whole = rank_biased_overlap(*runs).values.tolist()
    for cells in (1, 40):
        monkeypatch.setattr("karat.stats.rank_similarity._CELLS", cells)
        assert rank_biased_overlap(*runs).values.tolist() == whole


def test_an_exchange_at_the_top_costs_more() -> None:
    assert rbo("a b c d", "b a c d") < rbo("a b c d", "a b d c") < 1


# --- overlap ---


def test_overlap_by_hand() -> None:
    # q0: b and c of the top 3 stay, d takes the place of a. q1: the same two in another order.
    # q2: the only document of one is among the two of the other. q3: nothing in common.
    left = run("a b c", "a b", "a", "a b c d")
    right = run("c d b a", "b a", "b a", "e f g h")
    shared = overlap(left, right, 3)
    assert shared.query_ids == ["q0", "q1", "q2", "q3"]
    assert shared.values == pytest.approx([2 / 3, 1, 1 / 2, 0], rel=1e-15)
    assert shared.mean == pytest.approx(13 / 24, rel=1e-15)
    assert overlap(left, right, 1).values.tolist() == [0, 0, 0, 0]
    assert overlap(left, right, 4).values == pytest.approx([3 / 4, 1, 1 / 2, 0], rel=1e-15)


@FEW
@given(rankings(), rankings(), st.integers(1, 8))
def test_laws_of_overlap(left: str, right: str, k: int) -> None:
    (value,) = overlap(run(left), run(right), k).values
    assert 0 <= value <= 1
    assert value == overlap(run(right), run(left), k).values[0]
    assert overlap(run(left), run(left), k).values[0] == 1
    assert overlap(run(left), run(left.upper()), k).values[0] == 0


# --- queries ---


def test_queries_are_paired_by_id() -> None:
    left = Run.from_dict({"x": scores("a b"), "y": scores("c d"), "z": scores("(e f) g")})
    right = Run.from_dict({"z": scores("(e f) g"), "x": scores("c d"), "y": scores("a c")})
    assert overlap(left, right, 2).values.tolist() == [0, 0.5, 1]
    values = rank_biased_overlap(left, right).values
    assert values == pytest.approx([0, rbo("c d", "a c"), 1], abs=1e-15)


def test_only_some_queries() -> None:
    left = Run.from_dict({"x": scores("a b"), "y": scores("c d"), "lost": None, "gone": None})
    right = Run.from_dict({"y": scores("c x"), "x": scores("a b"), "lost": {"a": 1}})
    functions: list[Callable[..., Similarity]] = [
        partial(overlap, left, right, 2),
        partial(rank_biased_overlap, left, right),
    ]
    for function in functions:
        every, some = function(), function(query_ids=["unknown", "y", "lost"])
        assert some.query_ids == ["y"]
        assert some.values.tolist() == every.values[1:].tolist()
        assert some.left_out == ["lost"]
        assert every.left_out == ["lost", "gone"]
        assert function(query_ids=[]).mean is None


def test_documents_are_joined_by_id_and_not_by_hash() -> None:
    left, right = run("a b", "c d"), run("b a", "d e")
    values = overlap(left, right, 2).values.tolist(), rank_biased_overlap(left, right).values
    for each in (left, right):
        each.rows = each.rows.with_columns(doc_hash=pl.lit(7, pl.UInt64))
    assert overlap(left, right, 2).values.tolist() == values[0] == [1, 0.5]
    assert rank_biased_overlap(left, right).values.tolist() == values[1].tolist()


def test_many_queries_as_one_by_one() -> None:
    pairs = [(left, right) for left, right, _, _ in ROWS]
    together = rank_biased_overlap(run(*[a for a, _ in pairs]), run(*[b for _, b in pairs]))
    assert together.values.tolist() == [rbo(a, b) for a, b in pairs]


def test_empty_failed_and_unknown_queries() -> None:
    left = Run.from_dict(
        {"both": {}, "one": {}, "lost": {"a": 1}, "mine": {"a": 1}, "ok": {"a": 1}}
    )
    right = Run.from_dict({"both": {}, "one": {"a": 1}, "lost": None, "ok": {"a": 1}, "yours": {}})
    for alike in (overlap(left, right, 5), rank_biased_overlap(left, right)):
        assert dict(zip(alike.query_ids, alike.values, strict=True)) == {
            "ok": 1,
            "both": 1,
            "one": 0,
        }
        assert set(alike.left_out) == {"lost", "mine", "yours"}


def test_no_query_in_common_has_no_mean() -> None:
    nothing = rank_biased_overlap(Run.from_dict({"x": {"a": 1}}), Run.from_dict({}))
    assert (nothing.query_ids, nothing.mean, nothing.left_out) == ([], None, ["x"])
    assert overlap(Run.from_dict({}), Run.from_dict({}), 3).mean is None


# --- refusals ---


def test_refusals() -> None:
    with pytest.raises(UsageError, match="k is 0"):
        overlap(run("a"), run("a"), 0)
    with pytest.raises(UsageError, match="p is 1"):
        rank_biased_overlap(run("a"), run("a"), 1)
    with pytest.raises(UsageError, match="unknown value 'random' of ties"):
        rank_biased_overlap(run("a"), run("a"), ties="random")  # type: ignore[arg-type]
