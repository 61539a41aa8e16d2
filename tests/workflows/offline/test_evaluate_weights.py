"""Evaluate, with queries of weight 0: they change no number over all, and have their slices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.choosing import FEW

from karat.errors import InputError
from karat.tables import Queries, Result, Results
from karat.workflows.offline.evaluate import evaluate

MEASURES = ["nDCG@5", "RR", "P@2", "R@3", "AP", "NumRelRet", "GMAP"]
LOG = [f"q{n:02}" for n in range(12)]
HARD = [f"h{n:02}" for n in range(7)]
SCALE = (0, 2)  # else a grade of a query that does not count could move the top of it

# Where the documents a and b stand, and how both are judged; None: the query failed.
query = st.tuples(
    st.one_of(st.none(), st.lists(st.sampled_from("abxyz"), unique=True, max_size=5)),
    st.tuples(st.integers(0, 2), st.integers(0, 2)),
)


def tables(found: dict[str, Any], *, missing: str = "") -> tuple[Any, Any]:
    """Judgments and run of queries drawn; one that is not in the run."""
    qrels = {q: {"a": a, "b": b, "y": 0} for q, (_, (a, b)) in found.items()}
    run = {
        q: None if docs is None else {doc: float(-place // 2) for place, doc in enumerate(docs)}
        for q, (docs, _) in found.items()
        if q != missing
    }
    return qrels, run


def about(hard: int, weights: list[float] | None, **more: list[Any]) -> Queries:
    ids = LOG + HARD[:hard]
    columns: dict[str, list[Any]] = {"query_id": ids, "kind": ["log"] * 12 + ["hard"] * hard}
    if weights is not None:
        columns["weight"] = weights + [0.0] * hard
    return Queries(pl.DataFrame(columns | more))


def told(rows: Any) -> list[Any]:
    """Rows without what a geometric mean expects of ties.

    It is known only where nothing is tied in any query, those of weight 0 among them.
    """
    return [
        replace(row, tie_expected=None) if row.aggregate == "geometric" else row for row in rows
    ]


@FEW
@given(
    counted=st.lists(query, min_size=12, max_size=12),
    others=st.lists(query, min_size=1, max_size=7),
    weights=st.lists(st.sampled_from([0.3, 1.0, 4.0]), min_size=12, max_size=12),
    interval=st.sampled_from(["t", "t", "bca"]),
)
def test_queries_of_weight_0_change_no_number_over_all(
    counted: list[Any], others: list[Any], weights: list[float], interval: str
) -> None:
    first = {"q00": (["a", "x"], (2, 1))}  # else perhaps no query has anything to find
    own = dict(zip(LOG, counted, strict=True)) | first
    hard = dict(zip(HARD, others, strict=False))
    settled: dict[str, Any] = {"interval": interval, "scale": SCALE, "bounds": True}
    without = evaluate(*tables(own), MEASURES, queries=about(0, weights), **settled)
    beside = about(len(hard), weights)
    found = evaluate(
        *tables(own | hard, missing="h01"), MEASURES, queries=beside, by="kind", **settled
    )
    assert told(found.results) == told(without.results)
    # The slice of what counts is the whole; nothing in it is said of the others.
    log = [row for row in found.slices if row.slice == "log"]
    assert told(replace(row, attribute=None, slice=None, unjudged=0) for row in log) == told(
        replace(row, unjudged=0) for row in without.results
    )
    if interval == "t":
        # Their own slice is the one that there is without weights.
        plain = about(len(hard), None)
        unweighted = evaluate(
            *tables(own | hard, missing="h01"), MEASURES, queries=plain, by="kind", **settled
        )
        assert told(part(found)) == told(part(unweighted))


def part(results: Results) -> list[Result]:
    return [row for row in results.slices if row.slice == "hard"]


FOUND = {q: (["a"], (1, 0)) for q in LOG}
LOST = {q: (["x", "a"], (1, 0)) for q in HARD}


def test_a_note_says_how_many_count() -> None:
    notes = evaluate(*tables(FOUND | LOST), "RR", queries=about(7, [1.0] * 12)).notes
    assert notes[0] == "12 of 19 queries count; 7 with zero weight are shown in their slices only"
    one = evaluate(*tables(FOUND | {"h00": LOST["h00"]}), "RR", queries=about(1, [1.0] * 12))
    assert one.notes[0] == "12 of 13 queries count; 1 with zero weight is shown in its slices only"
    assert not any("weight" in note for note in evaluate(*tables(FOUND), "RR").notes)


def test_notes_tell_what_became_of_those_that_count() -> None:
    # Of weight 0 one is missing, one failed, one empty, one has nothing to find, one no judgment.
    odd = {"h01": (["a"], (1, 0)), "h02": (None, (1, 0)), "h03": ([], (1, 0)), "h04": ([], (0, 0))}
    qrels, run = tables(FOUND | odd, missing="h01")
    run["h05"] = {"a": 1.0}
    [row] = (found := evaluate(qrels, run, "RR", queries=about(7, [1.0] * 12))).results
    assert (row.n, row.value, row.unjudged) == (12, 1.0, 0)
    assert (row.missing, row.failed, row.empty, row.undefined) == (0, 0, 0, 0)
    said = "\n".join(found.notes)
    assert "12 of 15 queries count" in said
    for word in ("not in the run", "no answer", "nothing", "without", "trec_eval differs"):
        assert word not in said
    # The same of queries that count is said.
    said = "\n".join(evaluate(qrels, run, "RR", queries=about(7, None)).notes)
    for word in ("not in the run", "no answer", "nothing", "without", "trec_eval differs"):
        assert word in said


def test_a_slice_in_which_any_query_weighs_is_of_those() -> None:
    qrels, run = tables(FOUND | LOST)
    language = ["de"] * 6 + ["en"] * 6 + ["de"] * 3 + ["fr"] * 4
    found = evaluate(
        qrels, run, "RR", queries=about(7, [1.0] * 12, lang=language), by=["lang", "kind,lang"]
    )
    rows = {row.slice: (row.n, row.value) for row in found.slices}
    # Of de the three hard ones are out; of fr all are hard; and so of hard, de.
    assert rows == {
        "de": (6, 1.0),
        "en": (6, 1.0),
        "fr": (4, 0.5),
        "log, de": (6, 1.0),
        "log, en": (6, 1.0),
        "hard, de": (3, 0.5),
        "hard, fr": (4, 0.5),
    }


def test_queries_without_an_answer_count_in_the_same_way() -> None:
    silent = {"h05": (["x"], (0, 0)), "h06": ([], (0, 0))}
    qrels, run = tables(FOUND | silent)
    marked = {"no_answer": [False] * 17 + [True, True]}
    weights = [1.0] * 12 + [0.0] * 5
    both = about(7, None, **marked).frame.with_columns(weight=pl.Series([*weights, 1.0, 0.0]))
    [row] = evaluate(qrels, run, "RR", queries=both).no_answer
    assert (row.n, row.silent) == (1, 0)
    hard = about(7, [1.0] * 12, **marked)  # both of weight 0: the row is of these
    [row] = evaluate(qrels, run, "RR", queries=hard).no_answer
    assert (row.n, row.silent) == (2, 1)


def test_outcomes_are_those_of_queries_that_count() -> None:
    mixed = FOUND | dict.fromkeys(LOG[:5], LOST["h00"]) | LOST
    sold = [n % 3 for n in range(12)]
    own = about(0, [1.0] * 12, sold=sold)
    beside = about(7, [1.0] * 12, sold=sold + [9] * 7)
    [row] = evaluate(*tables(mixed), "RR", queries=beside, outcomes="sold").outcomes
    lone = tables({q: mixed[q] for q in LOG})
    assert [row] == evaluate(*lone, "RR", queries=own, outcomes="sold").outcomes


def test_values_of_single_queries_are_all_there() -> None:
    found = evaluate(*tables(FOUND | LOST), "RR", queries=about(7, [1.0] * 12), per_query=True)
    assert {row.query_id: row.value for row in found.per_query} == (
        dict.fromkeys(LOG, 1.0) | dict.fromkeys(HARD, 0.5)
    )


def test_weights_of_0_alone_are_refused_and_trec_eval_knows_none() -> None:
    with pytest.raises(InputError, match="every judged query has weight 0"):
        evaluate(*tables(FOUND), "RR", queries=about(0, [0.0] * 12))
    [row] = evaluate(
        *tables(FOUND | LOST), "map", queries=about(7, [1.0] * 12), compat="trec_eval-9"
    ).results
    assert row.n == 19
