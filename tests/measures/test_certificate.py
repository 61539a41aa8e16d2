"""Certificates: against every completion of the pool, with every few documents outside it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.choosing import deep_but

from karat.errors import UsageError
from karat.measures import Measure, parse
from karat.measures.certificate import (
    SLACK,
    Proof,
    certified_pair,
    counts_unseen,
    ideal_with,
    prove,
)
from karat.measures.evidence import Floats
from karat.measures.gains import ideal_dcg
from karat.tables.release.certificate import CertifiedQuery

HIGHEST = 2.0
GRADES = (0.0, 1.0, 2.0)
UNSEEN = 3
CLOSE = 1e-12
MEASURES = (
    *("nDCG", "nDCG@1", "nDCG@2", "nDCG@3", "nDCG(gain=exp)@2", "nDCG(gain={1: 5, 2: 1})@3"),
    *("nDCG(gain={1: 4, 2: 1})", "R@2", "R(rel=2)@3", "SetR", "Rcap@1", "Rcap@2"),
    *("P@2", "SetP", "DCG@3", "RR@2", "RBP(p=0.8)", "Success@2", "ERR@3", "AP@3", "AP"),
)
EACH_KIND = ("nDCG", "nDCG(gain=exp)@2", "R(rel=2)@3", "Rcap@1", "P@2", "DCG@3", "RR@2", "AP@3")


def of(
    baseline: Sequence[str], candidate: Sequence[str], judgments: dict[str, float], name: str = "q"
) -> CertifiedQuery:
    return CertifiedQuery(
        name, 1.0, tuple(baseline), tuple(candidate), judgments, 0.0, 0.0, None, None
    )


def drawn(rng: np.random.Generator, k: int, gaps: int) -> CertifiedQuery:
    """Two short rankings cut at k, at most so many of their documents unjudged."""
    docs = [f"d{i}" for i in range(int(rng.integers(2, 6)))]
    first, second = (
        rng.permutation(docs)[: int(rng.integers(0, len(docs) + 1))].tolist()[:k] for _ in range(2)
    )
    judged = {d: float(rng.choice(GRADES)) for d in docs if d in first or d in second}
    for doc in rng.permutation(sorted(judged))[: int(rng.integers(0, gaps + 1))].tolist():
        del judged[doc]
    missed = {f"m{i}": float(rng.choice(GRADES[1:])) for i in range(int(rng.integers(0, 3)))}
    return of(first, second, judged | missed)


def completions(query: CertifiedQuery) -> Iterator[tuple[int, CertifiedQuery]]:
    """Every grading of the pool, with every few documents outside it, and how many these are."""
    gaps = [d for d in sorted({*query.baseline, *query.candidate}) if d not in query.judgments]
    for chosen in itertools.product(GRADES, repeat=len(gaps)):
        known = {**query.judgments, **dict(zip(gaps, chosen, strict=True))}
        for unseen in range(UNSEEN + 1):
            for more in itertools.combinations_with_replacement(GRADES[1:], unseen):
                outside = {f"u{i}": grade for i, grade in enumerate(more)}
                yield unseen, replace(query, judgments={**known, **outside})


def named(queries: Sequence[CertifiedQuery]) -> list[CertifiedQuery]:
    return [replace(query, query_id=f"q{i:06}") for i, query in enumerate(queries)]


def differences(measure: Measure, queries: Sequence[CertifiedQuery]) -> Floats:
    pair = certified_pair(named(queries), HIGHEST)
    first, second = (np.nan_to_num(measure(e)) for e in (pair.of_baseline, pair.of_candidate))
    return second - first


def ends(measure: Measure, queries: Sequence[CertifiedQuery]) -> tuple[Floats, Floats]:
    """Lowest and highest difference with up to so many documents unseen; shape (u + 1, n)."""
    done = [list(completions(query)) for query in queries]
    value = differences(measure, [full for some in done for _, full in some])
    at = np.repeat(np.arange(len(queries)), [len(some) for some in done])
    number = np.array([unseen for some in done for unseen, _ in some])
    low = np.full((UNSEEN + 1, len(queries)), np.inf)
    high = -low
    for unseen in range(UNSEEN + 1):
        here = number <= unseen
        np.minimum.at(low[unseen], at[here], value[here])
        np.maximum.at(high[unseen], at[here], value[here])
    return low, high


@pytest.mark.parametrize("name", deep_but(EACH_KIND, MEASURES))
def test_what_is_proven_is_what_every_completion_shows(name: str, deep: bool) -> None:
    measure, enough = parse(name), 25 if deep else 12
    rng = np.random.default_rng(21)
    queries = [drawn(rng, measure.depth or 9, 3) for _ in range(40 if deep else 30)]
    low, high = ends(measure, queries)
    tried = unbounded = 0
    seen: set[int] = set()
    for _ in range(2000):
        if tried == enough:
            break
        chosen = rng.integers(0, len(queries), 3)
        weights = np.array([1.0, 1.0, float(rng.integers(1, 4))])
        lowest = np.average(low[:, chosen], axis=1, weights=weights)
        highest = np.average(high[:, chosen], axis=1, weights=weights)
        sign = int(lowest[0] > SLACK) - int(highest[0] < -SLACK)
        if not sign and rng.random() > 0.02:
            continue
        pair = certified_pair(named([queries[i] for i in chosen]), HIGHEST)
        proof = prove(measure, pair, weights)
        if proof.exact:
            assert proof.sign == sign
            assert proof.ends == (pytest.approx(lowest[0]), pytest.approx(highest[0]))
        else:  # an outer interval proves less, and nothing wrong
            assert proof.sign in (sign, 0)
        tried += proof.sign != 0
        if not proof.sign:
            continue
        holds = (lowest if sign > 0 else -highest) > SLACK
        if name.startswith("AP"):
            assert (proof.unseen, proof.unseen_unlimited) == (None, False)
            assert "not known" in proof.reason
            continue
        largest = int(np.flatnonzero(holds)[-1])
        assert holds[: largest + 1].all()
        if proof.unseen_unlimited:
            unbounded += 1
            assert proof.unseen is None
            assert largest == UNSEEN
        else:
            assert proof.unseen is not None
            assert min(proof.unseen, UNSEEN) == largest
            seen.add(largest)
    assert tried == enough
    if name in {"nDCG", "nDCG@3", "R@2", "SetR", "R(rel=2)@3"}:
        assert unbounded
        # That some number turns it was seen, and mostly different numbers.
        assert len(seen) > (name != "nDCG@3")


@pytest.mark.parametrize(
    "name",
    deep_but(["nDCG"], ["nDCG", "nDCG@3", "nDCG(gain=exp)@2", "R@2", "SetR", "Rcap@2"]),
)
def test_many_unseen_turn_nothing_that_is_said_to_hold(name: str, deep: bool) -> None:
    measure = parse(name)
    rng = np.random.default_rng(22)
    queries = [drawn(rng, measure.depth or 9, 3) for _ in range(25)]
    numbers = (0, 1, 2, 3, 7, 40, 200)
    low, high = np.full((2, len(numbers), len(queries)), np.inf)
    for row, unseen in enumerate(numbers):
        more = {f"u{i}": HIGHEST for i in range(unseen)}
        done = [[c for number, c in completions(query) if not number] for query in queries]
        full = [replace(c, judgments={**c.judgments, **more}) for some in done for c in some]
        at, value = (
            np.repeat(np.arange(25), [len(some) for some in done]),
            differences(measure, full),
        )
        np.minimum.at(low[row], at, value)
        np.minimum.at(high[row], at, -value)
    tried = 0
    for _ in range(60 if deep else 20):
        chosen = rng.integers(0, 25, 3)
        pair = certified_pair(named([queries[i] for i in chosen]), HIGHEST)
        proof = prove(measure, pair)
        most = 200 if proof.unseen_unlimited else proof.unseen
        if proof.sign and most is not None:
            tried += most > UNSEEN
            allowed = [row for row, number in enumerate(numbers) if number <= most]
            side = low if proof.sign > 0 else high
            assert side[allowed][:, chosen].min(axis=0).mean() > 0
    assert tried > (5 if deep else 1)


def test_the_ideal_with_unseen_documents_is_that_of_the_measure() -> None:
    rng = np.random.default_rng(23)
    for name in ("nDCG", "nDCG@3", "nDCG(gain=exp)@2", "nDCG(discount=jk, base=2)@4"):
        measure = parse(name)
        queries = named([drawn(rng, 9, 3) for _ in range(60)])
        for unseen in (0, 1, 5):
            more = {f"u{i}": HIGHEST for i in range(unseen)}
            known = [replace(q, judgments={**q.judgments, **more}) for q in queries]
            wanted = ideal_dcg(
                certified_pair(known, HIGHEST).of_baseline, k=measure.cutoff, **measure.settings
            )
            found = ideal_with(measure, certified_pair(queries, HIGHEST).of_baseline, unseen)
            np.testing.assert_allclose(found, np.nan_to_num(wanted), rtol=0, atol=CLOSE)


def proof_of(name: str, *queries: CertifiedQuery) -> Proof:
    return prove(parse(name), certified_pair(named(queries), HIGHEST))


def test_how_many_unseen_recall_bears() -> None:
    # q0: the candidate finds the only relevant document: 1 / (1 + u). q1: it misses one of two
    # that the baseline finds: -1/2 with none unseen, the worst. (1 / (1 + u) - 1/2) / 2 > 0 as
    # long as u < 1. With a third query like q0: 2 / (1 + u) > 1/2 as long as u < 3.
    won = of("x", "a", {"a": 1.0, "x": 0.0})
    lost = of("bc", "b", {"b": 1.0, "c": 1.0})
    found = proof_of("R@2", won, lost)
    assert (found.sign, found.unseen) == (1, 0)
    assert found.ends == (0.25, 0.25)
    found = proof_of("R@2", won, won, lost)
    assert found.unseen == 2
    assert found.ideal is not None
    assert found.allowed is not None
    assert (found.ideal.tolist(), found.allowed.tolist()) == ([1, 1, 2], [3, 3, 4])
    # The other way round, the candidate is worse just as surely.
    back = [replace(q, baseline=q.candidate, candidate=q.baseline) for q in (won, won, lost)]
    assert (proof_of("R@2", *back).sign, proof_of("R@2", *back).unseen) == (-1, 2)
    # Without a query that could turn, no number does.
    assert proof_of("R@2", won).unseen_unlimited
    assert proof_of("R@2", won).unseen is None
    assert proof_of("R@2", won).allowed is None


def test_the_ideal_of_a_cut_measure_is_full_at_the_cut() -> None:
    # nDCG@1: 1 / 1 each for two, -2 / 2 for one; the worst unseen document (grade 2) halves the
    # first two and nothing more: (1/2 + 1/2 - 1) / 3 = 0. With a third winner: 1/2 is left.
    won, lost = of("x", "a", {"a": 1.0, "x": 0.0}), of("b", "y", {"b": 2.0, "y": 0.0})
    found = proof_of("nDCG@1", won, won, lost)
    assert (found.unseen, found.unseen_unlimited) == (0, False)
    found = proof_of("nDCG@1", won, won, won, lost)
    assert (found.unseen, found.unseen_unlimited) == (None, True)
    assert found.allowed is not None
    assert found.allowed.tolist() == [2.0] * 4


def test_without_a_sign_there_is_no_more_to_say() -> None:
    found = proof_of("nDCG@2", of("a", "x", {"a": 1.0}))
    assert (found.sign, found.unseen, found.allowed) == (0, None, None)
    assert not found.unseen_unlimited
    same = of("ab", "ab", {"a": 1.0})
    assert proof_of("nDCG@2", same).sign == 0


def test_measures_without_a_proof_are_refused() -> None:
    query = of("a", "b", {"a": 1.0, "b": 2.0})
    for name in ("Bpref", "Rprec", "Condensed(nDCG@3)", "Compat"):
        with pytest.raises(UsageError, match="not known"):
            proof_of(name, query)
    with pytest.raises(UsageError, match="gives a gain to documents that are not relevant"):
        proof_of("nDCG(gain={0: 1, 2: 3})@3", query)


def test_a_query_without_judgments_is_kept() -> None:
    pair = certified_pair([of(["none"], ["none-"], {})], HIGHEST)
    assert pair.query_ids == ["q"]
    assert pair.pool(parse("P@1")).unjudged.all()


def test_what_counts_outside_the_pool() -> None:
    assert counts_unseen(parse("nDCG@5"), 0.5)
    assert not counts_unseen(parse("nDCG@5"), 0.0)
    assert not counts_unseen(parse("nDCG(gain={1: 0, 2: 3})"), 1.0)
    assert counts_unseen(parse("R(rel=2)@5"), 2.0)
    assert not counts_unseen(parse("R(rel=2)@5"), 1.0)
    assert counts_unseen(parse("AP"), 1.0)
    assert not counts_unseen(parse("P@5"), 2.0)
    assert not counts_unseen(parse("ERR@5"), 2.0)
