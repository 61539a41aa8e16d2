"""Diversity: ndeval's numbers, brute force, k = 1, and what is refused."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.errors import InputError, UsageError
from karat.measures import Evidence, parse, reduce
from karat.measures.diversity import _most
from karat.measures.ties import perfectly_reranked
from karat.tables import Qrels, Run

Rows = Sequence[tuple[str, str, str, float]]


def qrels_of(rows: Rows) -> Qrels:
    columns = ["query_id", "subtopic", "doc_id", "grade"]
    return Qrels(pl.DataFrame(rows, schema=columns, orient="row"))


def evidence_of(rows: Rows, rankings: Mapping[str, Sequence[str]]) -> Evidence:
    run = {q: {doc: -float(i) for i, doc in enumerate(docs)} for q, docs in rankings.items()}
    return reduce(Run.from_dict(run), qrels_of(rows))


def rows_of(text: str) -> Rows:
    return [(q, s, d, float(g)) for q, s, d, g in (line.split() for line in text.split(","))]


ROWS = rows_of(
    "1 1 a 1,1 2 a 1,1 3 a 0,1 1 b 1,1 2 c 1,1 3 d 1,1 1 d 0,1 4 e 0,1 2 f 1,1 3 f 1,"
    "2 1 a 2,2 1 b 1,2 2 b 1,2 2 c 2,2 3 x 1"
)
RANKINGS = {"1": ["b", "a", "u", "f", "d", "c"], "2": ["c", "v", "a", "b"]}

# pyndeval 0.0.8 on ROWS and RANKINGS: queries 1 and 2, K = 1, 2, 3, 5, 20. Its ERR-IA@1 lacks
# the division by the number of subtopics (3), so that column is not its own.
KS = (1, 2, 3, 5, 20)
NDEVAL = {
    "alphanDCG": (
        (0.5, 0.6606021509485401, 0.6089343949810363, 0.7940369561867668, 0.819419075208821),
        (0.5, 0.3800937667159343, 0.5206652463984818, 0.623549556349965, 0.6235495563499649),
    ),
    "alphanDCG(alpha=0.25)": (
        (0.5, 0.6778482395043597, 0.6047859210574916, 0.7831231084741027, 0.8329687659182984),
        (0.5, 0.38009376671593426, 0.49901365732775166, 0.6446546528660468, 0.6446546528660467),
    ),
    "ERRIA": (
        (1 / 3, 0.4666666666666667, 0.4375, 0.5385779122541604, 0.5450181607688962),
        (1 / 3, 0.26666666666666666, 0.3333333333333333, 0.3832576903681291, 0.380711215242979),
    ),
    "ERRIA(alpha=0.25)": (
        (1 / 3, 0.45454545454545453, 0.4, 0.4741275571600482, 0.4611202662471692),
        (1 / 3, 0.24242424242424243, 0.28444444444444444, 0.3289209787404733, 0.30816513310731763),
    ),
    "StRecall": ((1 / 3, 2 / 3, 2 / 3, 1, 1), (1 / 3, 1 / 3, 2 / 3, 2 / 3, 2 / 3)),
    # Query 1 has no grade 2: ndeval prints 0, with us it has no value.
    "alphanDCG(rel=2)": (
        (math.nan,) * 5,
        (1, 0.6131471927654585, *(0.9197207891481877,) * 3),
    ),
    "StRecall(rel=2)": ((math.nan,) * 5, (0.5, 0.5, 1, 1, 1)),
}


@pytest.mark.parametrize("name", NDEVAL)
def test_ndevals_numbers(name: str) -> None:
    evidence = evidence_of(ROWS, RANKINGS)
    for place, k in enumerate(KS):
        expected = [of_query[place] for of_query in NDEVAL[name]]
        assert parse(f"{name}@{k}")(evidence).tolist() == pytest.approx(
            expected, abs=1e-14, nan_ok=True
        ), k


def test_right_at_1() -> None:
    # Three subtopics; the first document covers two of them. Its gain is 1 + 1, at rank 1, so
    # its ERR-IA is 2/1. A document relevant to all three would have 3/1, so ERR-IA@1 = 2/3.
    # ndeval divides from the second rank on only, and prints 2 (pyndeval 0.0.8: 2.0).
    evidence = evidence_of(rows_of("q 1 a 1,q 2 a 1,q 3 b 1"), {"q": ["a"]})
    assert parse("ERRIA@1")(evidence).tolist() == pytest.approx([2 / 3])
    # At 2: (2/1 + 0/2) / (3/1 + 1.5/2) = .5333, which is ndeval's.
    assert parse("ERRIA@2")(evidence).tolist() == pytest.approx([0.5333333333333333])
    assert parse("alphanDCG@1")(evidence).tolist() == [1.0]
    assert parse("StRecall@1")(evidence).tolist() == pytest.approx([2 / 3])


# --- brute force ---


def novel(ranking: Sequence[str], covers: Mapping[str, set[str]], alpha: float) -> list[float]:
    seen: Counter[str] = Counter()
    out = []
    for doc in ranking:
        out.append(math.fsum((1 - alpha) ** seen[s] for s in covers.get(doc, ())))
        seen.update(covers.get(doc, ()))
    return out


def greedy(covers: Mapping[str, set[str]], alpha: float) -> list[float]:
    left, ranking = sorted(covers, reverse=True), list[str]()
    while left:
        gains = [novel([*ranking, doc], covers, alpha)[-1] for doc in left]
        best = next(i for i, gain in enumerate(gains) if gain > max(gains) - 1e-9)
        ranking.append(left.pop(best))
    return novel(ranking, covers, alpha)


def dcg(gains: Sequence[float], k: int | None) -> float:
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains[:k], 1))


JUDGED = st.dictionaries(
    st.tuples(st.sampled_from("123"), st.sampled_from("abcdé")),
    st.sampled_from((-2, 0, 0.5, 1, 1, 2)),
    min_size=1,
)


@given(
    st.lists(JUDGED, min_size=1, max_size=3),
    st.lists(st.permutations("abcdéxy"), min_size=3, max_size=3),
    st.integers(0, 7),
    st.sampled_from((0, 0.3, 0.5, 1)),
    st.sampled_from((1, 2)),
    st.sampled_from((None, 1, 2, 5, 30)),
)
def test_by_the_formula(
    judged: list[dict[tuple[str, str], float]],
    orders: list[list[str]],
    length: int,
    alpha: float,
    rel: int,
    k: int | None,
) -> None:
    rows = [(f"q{i}", s, d, g) for i, of in enumerate(judged) for (s, d), g in of.items()]
    rows.append(("zz", "another", "a", 1.0))  # so that there are two subtopics at least
    rankings = {f"q{i}": order[:length] for i, order in enumerate(orders)}
    evidence = evidence_of(rows, rankings)
    at = "" if k is None else f"@{k}"
    names = [f"alphanDCG(alpha={alpha}, rel={rel}){at}", f"StRecall(rel={rel}){at}"]
    names += [f"ERRIA(alpha={alpha}, rel={rel}){at}"] if k else []
    got = [parse(name)(evidence).tolist() for name in names]
    # One query alone has the same value as among others.
    alone = evidence.at(np.array([0]))
    for name, values in zip(names, got, strict=True):
        assert parse(name)(alone).tolist() == pytest.approx(values[:1], abs=0, nan_ok=True)
    for index, query in enumerate(evidence.query_ids[:-1]):
        covers: dict[str, set[str]] = {}
        for q, subtopic, doc, grade in rows:
            if q == query and grade >= rel:
                covers.setdefault(doc, set()).add(subtopic)
        subtopics = set().union(*covers.values()) if covers else set()
        gains = novel(rankings[query], covers, alpha)
        shown = set().union(*(covers.get(doc, set()) for doc in rankings[query][:k]))
        expected = [math.nan] * len(names)
        if subtopics:
            expected[0] = dcg(gains, k) / dcg(greedy(covers, alpha), k)
            expected[1] = len(shown) / len(subtopics)
            if k:
                best = math.fsum((1 - alpha) ** (i - 1) / i for i in range(1, k + 1))
                found = math.fsum(gain / rank for rank, gain in enumerate(gains[:k], 1))
                expected[2] = found / (best * len(subtopics))
        for values, value in zip(got, expected, strict=True):
            assert values[index] == pytest.approx(value, abs=1e-12, nan_ok=True)


def test_a_ranking_better_than_the_greedy_ideal_has_more_than_1() -> None:
    # p covers 1 and 2, b 1 and 3, a 2 and 4. Greedily p goes first (the highest id), and then b
    # and a bring one more each: 2 + .6309 + .5. But a and b first bring 2 + 2 x .6309.
    rows = rows_of("q 1 p 1,q 2 p 1,q 1 b 1,q 3 b 1,q 2 a 1,q 4 a 1")
    evidence = evidence_of(rows, {"q": ["a", "b", "p"]})
    value = float(parse("alphanDCG(alpha=1)")(evidence)[0])
    assert value == pytest.approx((2 + 2 / math.log2(3)) / (2 + 1 / math.log2(3) + 0.5))
    assert value > 1


@pytest.mark.parametrize("alpha", [0, 0.001, 0.5, 1])
@pytest.mark.parametrize("k", [1, 20, 100_000])
def test_the_most_a_subtopic_can_bring(alpha: float, k: int) -> None:
    exact = math.fsum((1 - alpha) ** (i - 1) / i for i in range(1, k + 1))
    assert _most(k, alpha) == pytest.approx(exact, rel=1e-13)


def test_the_most_without_alpha_at_any_depth() -> None:
    # H(2,000,000) = ln 2000000 + .5772156649 + 1/4000000 = 15.0858736…
    exact = math.fsum(1 / i for i in range(1, 2_000_001))
    assert _most(2_000_000, 0.0) == pytest.approx(exact, rel=1e-13)
    assert _most(10**15, 0.5) == pytest.approx(2 * math.log(2))


# --- evidence ---


def test_cut_and_condensed() -> None:
    evidence = evidence_of(ROWS, RANKINGS)
    # Without unjudged u and v; and cut after the second.
    condensed = evidence_of(ROWS, {"1": ["b", "a", "f", "d", "c"], "2": ["c", "a", "b"]})
    cut = evidence_of(ROWS, {"1": ["b", "a"], "2": ["c", "v"]})
    for name in ("alphanDCG@3", "ERRIA@3", "StRecall@3", "alphanDCG", "StRecall"):
        expected = parse(name)(condensed).tolist()
        assert parse(name)(evidence.only_judged()).tolist() == expected
        assert parse(f"Condensed({name})")(evidence).tolist() == expected
        assert parse(name)(evidence.to_depth(2)).tolist() == parse(name)(cut).tolist()


def test_documents_keep_their_subtopics_when_they_are_reranked() -> None:
    # Query 2 by grade: c and a (2), b (1); v, unjudged, is pushed down.
    evidence = evidence_of(ROWS, RANKINGS)
    reranked = perfectly_reranked(evidence, evidence.grade, 4).at(np.array([1]))
    by_hand = evidence_of(ROWS, {"2": ["c", "a", "b", "v"]}).at(np.array([1]))
    for name in ("alphanDCG", "ERRIA@4", "StRecall@2"):
        assert parse(name)(reranked).tolist() == parse(name)(by_hand).tolist()


def test_shares_stand_with_the_documents_they_are_of() -> None:
    # b covers 1; a 1 again and 2, f 2 again and 3: gains 1, 1.5, 1.5.
    terms = parse("alphanDCG").terms(evidence_of(ROWS, RANKINGS).at(np.array([0])))
    assert terms is not None
    assert terms.gain.tolist() == [1.0, 1.5, 1.5, 0.5, 0.25]
    new = parse("StRecall").terms(evidence_of(ROWS, RANKINGS).at(np.array([0])))
    assert new is not None
    assert new.gain.tolist() == [1.0, 1.0, 1.0, 0.0, 0.0]


def test_grades_of_other_measures_are_the_best_over_subtopics() -> None:
    evidence = evidence_of(ROWS, RANKINGS)
    once = {"1": {"a": 1.0, "b": 1, "c": 1, "d": 1, "e": 0, "f": 1}}
    once["2"] = {"a": 2.0, "b": 1, "c": 2, "x": 1}
    run = {q: {doc: -float(i) for i, doc in enumerate(docs)} for q, docs in RANKINGS.items()}
    plain = reduce(Run.from_dict(run), Qrels.from_dict(once))
    for name in ("nDCG", "AP", "RR", "R@3", "Bpref", "ERR", "Compat"):
        assert parse(name)(evidence).tobytes() == parse(name)(plain).tobytes()


def test_an_empty_run() -> None:
    evidence = evidence_of(ROWS, {})
    for name in ("alphanDCG@3", "ERRIA@3", "StRecall"):
        assert parse(name)(evidence).tolist() == [0.0, 0.0]


# --- names and refusals ---


@pytest.mark.parametrize("name", ["alphanDCG@5", "ERRIA@5", "StRecall@5", "StRecall"])
def test_qrels_without_subtopics_are_refused(name: str) -> None:
    evidence = reduce(Run.from_dict({"q": {"a": 1.0}}), Qrels.from_dict({"q": {"a": 1.0}}))
    with pytest.raises(InputError) as caught:
        parse(name)(evidence)
    said = str(caught.value)
    assert "needs judgments by subtopic, and the qrels have none" in said
    assert "second column of TREC qrels" in said
    assert "a column called subtopic" in said


@pytest.mark.parametrize(
    ("typed", "printed"),
    [
        ("alpha_nDCG(alpha=0.5)@10", "alphanDCG@10"),
        ("alpha-nDCG@10", "alphanDCG@10"),
        ("ALPHA-NDCG(alpha=0.3)@5", "alphanDCG(alpha=0.3)@5"),
        ("alphandcg", "alphanDCG"),
        ("alpha-nDCG:alpha=0.3@5", "alphanDCG(alpha=0.3)@5"),
        ("ERR-IA@20", "ERRIA@20"),
        ("ERR_IA(rel=2)@20", "ERRIA(rel=2)@20"),
        ("strec@5", "StRecall@5"),
        ("subtopic_recall@5", "StRecall@5"),
        ("alpha_nDCG(judged_only=True)@5", "Condensed(alphanDCG@5)"),
    ],
)
def test_spellings(typed: str, printed: str) -> None:
    assert str(parse(typed)) == printed


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("alphanDCG(alpha=1.5)@5", "alpha=1.5 is not 0, or a number from 0.0001 to 1"),
        ("alphanDCG(alpha=-1)@5", "alpha=-1 is not 0, or a number from 0.0001 to 1"),
        ("ERRIA", "ERRIA needs a rank from 1"),
        ("StRecall(alpha=0.5)", "StRecall has no parameter 'alpha'"),
    ],
)
def test_refusals(typed: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(typed)
    assert says in str(caught.value)
