"""Compare, with queries of weight 0: they change nothing over all, and have their slices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.errors import InputError
from karat.tables import Queries
from karat.tables.comparison import Comparison, Difference
from karat.workflows.offline.compare import compare
from karat.workflows.release.certify import certify, verify_certificate

LOG = [f"q{n:02}" for n in range(10)]
HARD = [f"h{n:02}" for n in range(6)]
MEASURES = ["nDCG@5", "RR", "P@2"]

ranking = st.lists(st.sampled_from("abxyz"), unique=True, max_size=5)


@st.composite
def query(draw: st.DrawFn) -> tuple[Any, ...]:
    """Rankings of three runs, of which one may have failed, and the grade of a."""
    failed = draw(st.sampled_from([None, None, None, 0, 1, 2]))
    rankings = [draw(ranking) for _ in range(3)]
    shown = [None if place == failed else docs for place, docs in enumerate(rankings)]
    return (*shown, draw(st.integers(0, 2)))


def tables(found: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Judgments, the baseline, and two candidates by name."""
    qrels = {q: {"a": grade, "b": 1, "y": 0} for q, (*_, grade) in found.items()}
    old, new, other = (
        {
            q: None if of[place] is None else {d: -float(n) for n, d in enumerate(of[place])}
            for q, of in found.items()
        }
        for place in range(3)
    )
    return qrels, {"old": old}, {"new": new, "other": other}


def about(hard: int, weights: list[float] | None) -> Queries:
    columns: dict[str, list[Any]] = {"query_id": LOG + HARD[:hard]}
    columns["kind"] = ["log"] * 10 + ["hard"] * hard
    if weights is not None:
        columns["weight"] = weights + [0.0] * hard
    return Queries(pl.DataFrame(columns))


def bare(row: Difference) -> Difference:
    return replace(row, attribute=None, slice=None, shrunk=None, p_corrected=None, family=0)


def told(found: Comparison) -> dict[str, Any]:
    """All that is said over all queries."""
    return {
        "differences": found.differences,
        "standings": found.standings,
        "orders": found.orders,
        "disagreements": found.disagreements,
        "moves": found.moves,
        "finds": found.finds,
        "only_found": found.only_found,
        "overlaps": found.overlaps,
        "review": found.review,
        "judge_next": found.judge_next,
    }


@settings(
    max_examples=settings.default.max_examples // 4 if settings.default.max_examples > 25 else 3
)
@given(
    counted=st.lists(query(), min_size=10, max_size=10),
    others=st.lists(query(), min_size=1, max_size=6),
    weights=st.lists(st.sampled_from([0.3, 1.0, 4.0]), min_size=10, max_size=10),
    test=st.sampled_from(["randomisation", "bootstrap", "t"]),
    interval=st.sampled_from(["t", "bca"]),
)
def test_queries_of_weight_0_change_nothing_over_all(
    counted: list[Any], others: list[Any], weights: list[float], test: str, interval: str
) -> None:
    own = dict(zip(LOG, counted, strict=True)) | {"q00": (["a", "x"], ["x", "a"], ["b"], 2)}
    hard = dict(zip(HARD, others, strict=False))
    settled: dict[str, Any] = {
        "test": test,
        "interval": interval,
        "resamples": 100,
        "margin": 0.1,
        "scale": (0, 2),  # else a grade of a query that does not count could move the top of it
        "review": 4,
        "judge_next": 5,
    }
    without = compare(*tables(own), MEASURES, queries=about(0, weights), **settled)
    found = compare(
        *tables(own | hard), MEASURES, queries=about(len(hard), weights), by="kind", **settled
    )
    plain = compare(*tables(own | hard), MEASURES, queries=about(len(hard), weights), **settled)
    for key, value in told(without).items():
        assert told(plain)[key] == value, key
    # Query by query: as before, and then those that add nothing.
    assert [row for row in plain.queries if row.query_id in own] == without.queries
    assert all(row.share == 0 for row in plain.queries if row.query_id in hard)
    log = [bare(row) for row in found.slices if row.slice == "log"]
    assert [row.difference for row in log] == [row.difference for row in without.differences]
    assert [row.p for row in log] == [row.p for row in without.differences]
    if interval == "t":
        unweighted = compare(
            *tables(own | hard), MEASURES, queries=about(len(hard), None), by="kind", **settled
        )
        assert hardest(found) == hardest(unweighted)


def hardest(found: Comparison) -> list[Difference]:
    """Rows of the hard queries, without what depends on the other slices."""
    corrected: dict[str, Any] = {
        "verdict": "cannot tell",
        "reason": "",
        "equivalence_p": None,
        "not_worse_p": None,
    }
    return [replace(bare(row), **corrected) for row in found.slices if row.slice == "hard"]


GAIN = (["x", "b"], ["b"], ["b"], 0)
LOSS = (["b"], ["x", "b"], ["b"], 0)
FLAT = (["b"], ["b"], ["b"], 0)


def test_power_and_counts_are_of_the_queries_that_count() -> None:
    few = dict.fromkeys(LOG, FLAT) | {"q00": GAIN, "q01": GAIN, "q02": LOSS}
    worse = dict.fromkeys(HARD, LOSS)
    [row] = compare(*of_two(few | worse), "RR", queries=about(6, [1.0] * 10)).differences
    # Two gain 1/2 and one loses it: (1/2 + 1/2 - 1/2) / 10.
    assert row.difference == pytest.approx(0.05)
    assert (row.n, row.wins, row.ties, row.losses) == (10, 2, 7, 1)
    [alone] = compare(*of_two(few), "RR", queries=about(0, [1.0] * 10)).differences
    assert row == alone
    assert "10 queries detect" in row.reason


def of_two(found: dict[str, Any]) -> tuple[Any, Any, Any]:
    qrels, old, new = tables(found)
    return qrels, old, {"new": new["new"]}


def test_a_slice_of_weight_0_is_drawn_to_nothing_and_named_in_a_note() -> None:
    mixed = dict.fromkeys(LOG, FLAT) | {"q00": GAIN, "q01": GAIN, "q02": LOSS}
    hard = {q: LOSS if n else FLAT for n, q in enumerate(HARD)}
    found = compare(*of_two(mixed | hard), "RR", queries=about(6, [1.0] * 10), by="kind")
    shown = {row.slice: row for row in found.slices}
    assert (shown["hard"].n, shown["hard"].losses, shown["hard"].shrunk) == (6, 5, None)
    assert shown["log"].shrunk == pytest.approx(0.05)  # one slice: no spread between slices
    assert (
        "10 of 16 queries count; 6 with zero weight are shown in their slices only" in found.notes
    )
    # What moved most is of queries that count; listed are all, these last.
    assert {move.query_id for move in found.moves} == {"q00", "q01", "q02"}
    assert [row.query_id for row in found.queries][-6:] == [*HARD[1:], "h00"]
    full = compare(*of_two(mixed | hard), "RR", queries=about(6, [1.0] * 10), full=True)
    assert {move.query_id for move in full.moves} == {"q00", "q01", "q02", *HARD[1:]}


def test_a_certificate_is_of_the_queries_that_count() -> None:
    better = dict.fromkeys(LOG, (["y", "b"], ["b", "y"], ["b"], 0))
    hard = dict.fromkeys(HARD, LOSS)
    qrels, old, new = of_two(better | hard)
    weighed = about(6, [1.0] * 10)
    made = certify(qrels, old, new, "RR", queries=weighed, scale=(0, 1))
    assert [query.query_id for query in made.queries] == LOG
    assert made.difference == 0.5
    assert verify_certificate(made, qrels, old, new, queries=weighed).holds
    other = verify_certificate(made, qrels, old, new, queries=about(6, None))
    assert "query h00 counts now" in other.findings[0]


def test_weights_of_0_alone_are_refused() -> None:
    with pytest.raises(InputError, match="every judged query has weight 0"):
        compare(*of_two(dict.fromkeys(LOG, GAIN)), "RR", queries=about(0, [0.0] * 10))


def test_shares_stay_sums_of_the_difference() -> None:
    mixed = dict.fromkeys(LOG, FLAT) | {"q00": GAIN, "q02": LOSS} | dict.fromkeys(HARD, LOSS)
    found = compare(*of_two(mixed), "RR", queries=about(6, [3.0, *[1.0] * 9]))
    shares = np.array([row.share for row in found.queries])
    assert shares.sum() == pytest.approx(found.differences[0].difference)
    assert found.differences[0].difference == pytest.approx((3 * 0.5 - 0.5) / 12)
