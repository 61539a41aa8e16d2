"""Pools against the same rules written out in plain Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.choosing import FEW

from karat.errors import UsageError
from karat.fusion import reciprocal_rank
from karat.golden.pooling import (
    Budget,
    depth_pool,
    move_to_front,
    rbp_pool,
    reciprocal_rank_pool,
)
from karat.tables import Pairs, Run

Lists = dict[str, dict[str, list[str]]]
"""System → query → documents, best first."""


def runs_of(lists: Lists) -> list[Run]:
    return [
        Run.from_dict(
            {
                query: {doc: float(len(docs) - at) for at, doc in enumerate(docs)}
                for query, docs in by_query.items()
            },
            name,
        )
        for name, by_query in lists.items()
    ]


def held(pairs: Pairs) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for query, doc in pairs.frame.select("query_id", "doc_id").iter_rows():
        out.setdefault(query, []).append(doc)
    return out


rankings = st.lists(st.sampled_from("abcdefghij"), unique=True, max_size=10)
several = st.dictionaries(
    st.sampled_from(["one", "two", "three"]),
    st.dictionaries(st.sampled_from(["q1", "q2"]), rankings, min_size=1),
    min_size=1,
)

BM25 = {"q1": ["a", "b", "c", "d"], "q2": ["x"]}
DENSE = {"q1": ["c", "e", "a"], "q2": []}
TWO: Lists = {"bm25": BM25, "dense": DENSE}


def brute(lists: Lists, share: Callable[[int], float], size: int) -> dict[str, list[str]]:
    """The definition of trectools' rrf and rbp pools: sum of shares of ranks, best ``size``."""
    sums: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for by_query in lists.values():
        for query, docs in by_query.items():
            for rank, doc in enumerate(docs, start=1):
                sums[query][doc].append(share(rank))
    out = {}
    for query, found in sums.items():
        # Ties: the greater id first. Summed from the smallest, as floats tell the difference.
        scores = {doc: sum(sorted(shares)) for doc, shares in found.items()}
        out[query] = sorted(scores, key=lambda doc: (scores[doc], doc), reverse=True)[:size]
    return out


@FEW
@given(several, st.integers(1, 6))
def test_a_depth_pool_is_the_union_of_the_tops(lists: Lists, k: int) -> None:
    expected: dict[str, set[str]] = defaultdict(set)
    for by_query in lists.values():
        for query, docs in by_query.items():
            expected[query] |= set(docs[:k])
    pool = held(depth_pool(runs_of(lists), k))
    assert {q: set(docs) for q, docs in pool.items()} == {q: d for q, d in expected.items() if d}
    assert all(len(docs) == len(set(docs)) for docs in pool.values())


@FEW
@given(several, st.integers(1, 6), st.sampled_from([0, 60]))
def test_reciprocal_ranks_as_trectools_defines_them(lists: Lists, size: int, k: int) -> None:
    expected = brute(lists, lambda rank: 1.0 / (k + rank), size)
    assert held(reciprocal_rank_pool(runs_of(lists), size, k=k)) == expected


@FEW
@given(several, st.integers(1, 6), st.sampled_from([0.5, 0.8]))
def test_rbp_as_trectools_defines_it(lists: Lists, size: int, p: float) -> None:
    # Sums of powers of .8 tie only when the ranks are the same; rounding then is the same too.
    expected = brute(lists, lambda rank: (1.0 - p) * p ** (rank - 1), size)
    found = held(rbp_pool(runs_of(lists), size, p=p))
    # Powers may differ in the last bit from Python's, so that near ties are in either order.
    scores = rbp_pool(runs_of(lists), p=p).frame
    for query, docs in expected.items():
        if found[query] != docs:
            value = dict(scores.filter(query_id=query).select("doc_id", "score").iter_rows())
            pairs = zip(found[query], docs, strict=True)
            assert all(value[one] == pytest.approx(value[other]) for one, other in pairs)


@FEW
@given(several)
def test_reciprocal_ranks_are_those_of_the_fusion(lists: Lists) -> None:
    runs = runs_of(lists)
    fused = reciprocal_rank(runs).frame().select("query_id", "doc_id", "score")
    pool = reciprocal_rank_pool(runs).frame.select("query_id", "doc_id", again="score")
    both = fused.join(pool, on=["query_id", "doc_id"], how="full", coalesce=True)
    assert both["score"].to_list() == pytest.approx(both["again"].to_list())


def test_a_pool_by_hand() -> None:
    frame = depth_pool(runs_of(TWO), 2).frame
    # q1: a and c are first somewhere; 1/1 each in the top two, and the greater id goes first. b and
    # e are second, likewise.
    assert frame.rows() == [
        ("q1", "c", 1, "depth 2", None, 1.0, 1, ["dense"]),
        ("q1", "a", 1, "depth 2", None, 1.0, 1, ["bm25"]),
        ("q1", "e", 1, "depth 2", None, 0.5, 2, ["dense"]),
        ("q1", "b", 1, "depth 2", None, 0.5, 2, ["bm25"]),
        ("q2", "x", 1, "depth 2", None, 1.0, 1, ["bm25"]),
    ]
    assert reciprocal_rank_pool(runs_of(TWO), 1).frame.row(0, named=True) == {
        "query_id": "q1",
        "doc_id": "c",  # 1/63 + 1/61, as much as a has
        "priority": 1,
        "chosen_by": "reciprocal rank 1, k=60",
        "chance": None,
        "score": pytest.approx(1 / 63 + 1 / 61),
        "best_rank": 1,
        "systems": ["bm25", "dense"],
    }
    assert rbp_pool(runs_of(TWO), 5).frame["chosen_by"][0] == "RBP 5, p=0.8"


@FEW
@given(several, st.integers(1, 6))
def test_the_order_of_the_runs_changes_nothing(lists: Lists, size: int) -> None:
    runs = runs_of(lists)
    for make in (depth_pool, reciprocal_rank_pool, rbp_pool):
        one, other = make(runs, size).frame, make(runs[::-1], size).frame
        assert one.sort("query_id", maintain_order=True).equals(
            other.sort("query_id", maintain_order=True)
        )


def test_what_is_judged_costs_nothing_and_is_not_asked_again() -> None:
    judged = pl.DataFrame({"query_id": ["q1", "q1"], "doc_id": ["c", "zz"], "grade": [1.0, 0.0]})
    # The pool of the best two is c and a, judged or not: a size does not grow by judging.
    assert held(reciprocal_rank_pool(runs_of(TWO), 2, judged=judged)) == {"q1": ["a"], "q2": ["x"]}
    # A budget is for what is new.
    within = depth_pool(runs_of(TWO), 4, judged=judged, budget=Budget(per_query=2))
    assert held(within) == {"q1": ["a", "e"], "q2": ["x"]}


def test_a_total_goes_evenly_to_the_queries() -> None:
    lists: Lists = {"s": {f"q{n}": [f"d{i}" for i in range(9)] for n in range(3)}}
    pool = held(depth_pool(runs_of(lists), 9, budget=Budget(total=7)))
    assert pool == {"q0": ["d0", "d1", "d2"], "q1": ["d0", "d1"], "q2": ["d0", "d1"]}
    assert len(depth_pool(runs_of(lists), 9, budget=Budget(total=100))) == 27
    assert len(depth_pool(runs_of(lists), 9, budget=Budget(total=7, per_query=1))) == 3


def test_bands_part_each_query_evenly() -> None:
    lists: Lists = {"s": {"q1": [f"d{i}" for i in range(7)], "q2": ["d0"]}}
    frame = depth_pool(runs_of(lists), 9, bands=3).frame
    assert frame["priority"].to_list() == [1, 1, 1, 2, 2, 3, 3, 1]


def test_only_the_queries_asked_for() -> None:
    assert held(depth_pool(runs_of(TWO), 1, queries=["q2", "q9", "q2"])) == {"q2": ["x"]}
    assert not len(depth_pool(runs_of({"s": {"q": []}}), 3))


def test_what_is_refused() -> None:
    runs = runs_of(TWO)
    for wrong in (0, -1, True, 2.5):
        with pytest.raises(UsageError, match="not a whole number from 1"):
            depth_pool(runs, wrong)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="not a whole number from 1"):
            Budget(total=wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no runs"):
        rbp_pool([])
    with pytest.raises(UsageError, match="two runs are called 'bm25'"):
        depth_pool([runs[0], runs[0]], 3)
    for p in (0, 1, float("nan")):
        with pytest.raises(UsageError, match="not above 0 and below 1"):
            rbp_pool(runs, p=p)
    with pytest.raises(UsageError, match="not a number from 0"):
        reciprocal_rank_pool(runs, k=-1)


class Front:
    """Local move-to-front, one judgment after the other, as the paper tells it."""

    def __init__(self, docs: dict[str, list[str]], order: list[str]) -> None:
        self.docs = {name: list(ranked) for name, ranked in docs.items()}
        self.moved = dict.fromkeys(docs, 0)
        self.order, self.now, self.judged = order, order[0], set[str]()

    def next(self) -> str | None:
        while self.docs:
            left = [doc for doc in self.docs[self.now] if doc not in self.judged]
            if left:
                return left[0]
            del self.docs[self.now]
            if self.docs:
                self.jump()
        return None

    def jump(self) -> None:
        least = min(self.moved[name] for name in self.docs)
        self.now = next(n for n in self.order if n in self.docs and self.moved[n] == least)

    def tell(self, doc: str, grade: float) -> None:
        self.judged.add(doc)
        if grade < 1:
            self.moved[self.now] += 1
            self.jump()


@FEW
@given(
    st.dictionaries(st.sampled_from("stu"), rankings, min_size=1),
    st.sets(st.sampled_from("abcdefghij")),
)
def test_move_to_front_is_the_course_of_the_paper(
    docs: dict[str, list[str]], relevant: set[str]
) -> None:
    runs = runs_of({name: {"q": ranked} for name, ranked in docs.items()})
    # Which run leads among equals is told by documents that only one run has.
    alone = runs_of({name: {"q": [name]} for name in docs})
    order: list[str] = []
    while found := held(move_to_front(alone, {"q": dict.fromkeys(order, 0.0)}, salt="s")):
        order += found["q"]
    course = Front(docs, order)
    grades: dict[str, float] = {}
    while (expected := course.next()) is not None:
        pool = held(move_to_front(runs, {"q": grades}, salt="s"))
        assert pool == {"q": [expected]}
        grades[expected] = float(expected in relevant)
        course.tell(expected, grades[expected])
    assert not len(move_to_front(runs, {"q": grades}, salt="s"))
    assert set(grades) == {doc for ranked in docs.values() for doc in ranked}


def front(grades: Mapping[str, Mapping[str, float | None]]) -> dict[str, list[str]]:
    lists: Lists = {"s": {"q": ["a", "b", "c", "d"]}, "t": {"q": ["m", "n", "o"]}}
    return held(move_to_front(runs_of(lists), grades, salt="s"))


def test_move_to_front_stays_with_what_finds() -> None:
    first = front({})["q"][0]
    assert first in {"a", "m"}
    mine, other = (["a", "b", "c"], ["m", "n", "o"])[:: 1 if first == "a" else -1]
    assert front({"q": {first: 2}}) == {"q": [mine[1]]}
    assert front({"q": {first: 0}}) == {"q": [other[0]]}
    # What could not be judged says nothing of the run.
    assert front({"q": {first: None}}) == {"q": [mine[1]]}
    # After what is not relevant the runs take turns.
    bad = dict.fromkeys([mine[0], other[0], mine[1]], 0.0)
    assert front({"q": bad}) == {"q": [other[1]]}
    found = move_to_front(runs_of(TWO), {}, salt="s").frame
    assert found.columns == [
        *("query_id", "doc_id", "priority", "chosen_by", "chance", "best_rank", "systems")
    ]
    assert found["query_id"].to_list() == ["q1", "q2"]
    assert set(found["chosen_by"]) == {"move to front"}
