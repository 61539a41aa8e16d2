"""What each run finds: by hand, against sets, and what a fusion gains and loses."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.choosing import FEW

from karat.diagnosis.retrieval import OnlyFound, finds, only_found, overlaps
from karat.errors import UsageError
from karat.fusion import reciprocal_rank
from karat.stats.rank_similarity import overlap, rank_biased_overlap
from karat.tables import Qrels, Run
from karat.tables.comparison import Finds, Overlap

Rankings = dict[str, list[str]]


def run(rankings: Rankings, name: str) -> Run:
    return Run.from_dict(
        {
            query: {doc: -float(rank) for rank, doc in enumerate(docs)}
            for query, docs in rankings.items()
        },
        name,
    )


QRELS = Qrels.from_dict(
    {
        "p": {"a": 2.0, "b": 1.0, "c": 1.0, "x": 0.0, "y": -1.0, "far": 1.0},
        "q": {"a": 1.0, "b": 3.0},
        "other": {"a": 1.0},
    }
)
WORDS = run({"p": ["a", "x", "b"], "q": ["z", "a"], "other": ["a"]}, "words")
MEANING = run({"q": ["b", "z"], "p": ["c", "a", "b"]}, "meaning")
LINKS = run({"p": ["x", "y"], "unasked": ["a"]}, "links")


def test_finds_by_hand() -> None:
    # Of six relevant ones, in the top 2: words has a of p and a of q; meaning c and a of p, and b
    # of q. b of p is third in both. a of p is in two of them.
    runs = [WORDS, MEANING, LINKS]
    assert finds(runs, QRELS, ["p", "q"], 2, 1.0) == [
        Finds("words", k=2, relevant=6, found=2, found_only=1, n=2),
        Finds("meaning", k=2, relevant=6, found=3, found_only=2, n=2),
        Finds("links", k=2, relevant=6, found=0, found_only=0, n=2),
    ]
    assert only_found(runs, QRELS, ["p", "q"], 2, 1.0) == [
        OnlyFound("words", "q", "a", 1.0, 2),
        OnlyFound("meaning", "q", "b", 3.0, 1),
        OnlyFound("meaning", "p", "c", 1.0, 1),
    ]
    # From grade 2 on there are two: a of p and b of q.
    assert finds(runs[:2], QRELS, ["p", "q"], 2, 2.0) == [
        Finds("words", k=2, relevant=2, found=1, found_only=0, n=2),
        Finds("meaning", k=2, relevant=2, found=2, found_only=1, n=2),
    ]
    assert finds(runs[:1], QRELS, ["p"], 3, 1.0) == [
        Finds("words", k=3, relevant=4, found=2, found_only=2, n=1)
    ]


def test_overlaps_by_hand() -> None:
    (row,) = overlaps([WORDS, MEANING], QRELS, ["p", "q"], 2, 1.0)
    # Top 2 of p: a of a x and c a; of q: z of z a and b z. Both have one of two.
    assert row == Overlap(
        "words",
        "meaning",
        k=2,
        overlap=0.5,
        rbo=row.rbo,
        relevant_both=1,
        relevant_left=1,
        relevant_right=2,
    )
    # By depth, p: 0, 1/2, 2/3, and so below; q: 0, 1/2, and so below.
    p = 0.1 * (0.9 / 2 + 0.81 * 2 / 3) + 0.9**3 * 2 / 3
    q = 0.1 * 0.9 / 2 + 0.9**2 / 2
    assert row.rbo == pytest.approx((p + q) / 2, rel=1e-14)


def test_pairs_come_in_order() -> None:
    rows = overlaps([WORDS, MEANING, LINKS], QRELS, ["q"], 2, 1.0)
    assert [(row.left, row.right) for row in rows] == [
        ("words", "meaning"), ("words", "links"), ("meaning", "links"),
    ]  # fmt: skip
    # Links was not asked q.
    assert [(row.overlap, row.rbo is None) for row in rows] == [
        (0.5, False), (None, True), (None, True),
    ]  # fmt: skip
    assert [(row.relevant_both, row.relevant_left, row.relevant_right) for row in rows] == [
        (0, 1, 1), (0, 1, 0), (0, 1, 0),
    ]  # fmt: skip


def test_nothing_to_find() -> None:
    assert finds([], QRELS, ["p"], 2, 1.0) == []
    assert overlaps([WORDS], QRELS, ["p"], 2, 1.0) == []
    assert finds([WORDS], QRELS, [], 2, 1.0) == [
        Finds("words", 2, relevant=0, found=0, found_only=0, n=0)
    ]
    assert only_found([WORDS], QRELS, [], 2, 1.0) == []
    (row,) = overlaps([WORDS, MEANING], QRELS, [], 2, 1.0)
    assert row == Overlap("words", "meaning", 2, None, None, 0, 0, 0)
    for function in (finds, overlaps, only_found):
        with pytest.raises(UsageError, match="k is 0"):
            function([WORDS, MEANING], QRELS, ["p"], 0, 1.0)


def test_equal_runs_are_wholly_alike() -> None:
    (row,) = overlaps([WORDS, WORDS.named("again")], QRELS, ["p", "q"], 2, 1.0)
    assert (row.overlap, row.rbo) == (1.0, pytest.approx(1, abs=1e-14))
    assert row.rbo is not None
    assert row.rbo <= 1
    assert (row.relevant_both, row.relevant_left, row.relevant_right) == (2, 0, 0)


def test_what_a_fusion_gains_and_loses() -> None:
    # By 1 / (60 + rank) p goes a b c x and q goes z b a (b first, a second). Its top 2 are a b and
    # z b. On words (a; a) it gains b of p and b of q and loses a of q.
    fused = reciprocal_rank([WORDS, MEANING]).named("fused")
    assert fused.of("p")["doc_id"].to_list()[:2] == ["a", "b"]
    assert fused.of("q")["doc_id"].to_list()[:2] == ["z", "b"]
    (row,) = overlaps([fused, WORDS], QRELS, ["p", "q"], 2, 1.0)
    assert (row.relevant_both, row.relevant_left, row.relevant_right) == (1, 2, 1)


@st.composite
def several(draw: st.DrawFn) -> tuple[list[Rankings], dict[str, dict[str, float]]]:
    docs = st.lists(st.sampled_from("abcdefg"), unique=True, max_size=7)
    runs = [{query: draw(docs) for query in "pqr"} for _ in range(draw(st.integers(1, 4)))]
    grade = st.sampled_from([-1.0, 0.0, 1.0, 2.0])
    grades = {q: draw(st.dictionaries(st.sampled_from("abcdefgh"), grade)) for q in "pqr"}
    return runs, grades | {"s": {"a": 1.0}}


@FEW
@given(several(), st.integers(1, 5), st.sampled_from([1.0, 2.0]), st.permutations("pqr"))
def test_as_sets(
    given_: tuple[list[Rankings], dict[str, dict[str, float]]], k: int, rel: float, order: list[str]
) -> None:
    rankings, grades = given_
    qrels, asked = Qrels.from_dict(grades), order[:2]
    runs = [run(ranking, f"r{place}") for place, ranking in enumerate(rankings)]
    relevant = {(q, d) for q in asked for d, grade in grades[q].items() if grade >= rel}
    found = [
        {(q, d) for q in asked for d in ranking[q][:k] if (q, d) in relevant}
        for ranking in rankings
    ]
    only = [
        held.difference(*(other for at, other in enumerate(found) if at != place))
        for place, held in enumerate(found)
    ]
    assert finds(runs, qrels, asked, k, rel) == [
        Finds(each.name, k, len(relevant), len(held), len(alone), n=len(asked))
        for each, held, alone in zip(runs, found, only, strict=True)
    ]
    rows = only_found(runs, qrels, asked, k, rel)
    assert [(row.run, row.query_id, row.doc_id) for row in rows] == [
        (each.name, q, d)
        for place, each in enumerate(runs)
        for q, d in sorted(
            only[place],
            key=lambda pair: (
                -grades[pair[0]][pair[1]],
                rankings[place][pair[0]].index(pair[1]),
                asked.index(pair[0]),
                pair[1],
            ),
        )
    ]
    assert all(row.rank == rankings[int(row.run[1:])][row.query_id].index(row.doc_id) + 1
               for row in rows)  # fmt: skip
    assert all(row.grade == grades[row.query_id][row.doc_id] for row in rows)
    for row, (left, right) in zip(
        overlaps(runs, qrels, asked, k, rel),
        itertools.combinations(range(len(runs)), 2),
        strict=True,
    ):
        assert row.relevant_both == len(found[left] & found[right])
        assert row.relevant_left == len(found[left] - found[right])
        assert row.relevant_right == len(found[right] - found[left])
        # Of the queries in question only.
        for mean, alike in (
            (row.overlap, overlap(runs[left], runs[right], k)),
            (row.rbo, rank_biased_overlap(runs[left], runs[right])),
        ):
            values = dict(zip(alike.query_ids, alike.values.tolist(), strict=True))
            assert mean == pytest.approx(sum(values[q] for q in asked) / 2, abs=1e-14)
