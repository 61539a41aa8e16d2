"""What a failing search test says."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from karat.release.expectations import Answer, Broken
from karat.reports.release.assertion import of_expectation, of_failure, of_gate, of_known, of_order
from karat.tables import Run
from karat.tables.comparison import RankChange
from karat.tables.release.gate import Check, Gate, KnownFailure, Regression
from karat.workflows.release import gate as gates

DROP = Check(
    "AP drops by at most 0.01",
    "fail",
    "dropped by 0.1000, allowed 0.0100",
    measure="AP",
    attribute="class",
    slice="name",
    n=1,
    baseline_value=0.5,
    candidate_value=0.4,
    drop=0.1,
    limit=0.01,
)


def gate(**parts: object) -> Gate:
    """A gate that failed."""
    known = {"verdict": "fail", "baseline": "old", "candidate": "new", "policy": "gate.toml"}
    return Gate(**{**known, "checks": [DROP], **parts})  # type: ignore[arg-type]


def test_it_says_the_verdict_the_rule_the_slice_and_the_reason() -> None:
    assert of_gate(gate()).splitlines() == [
        "fail: new against old, by gate.toml",
        "  fail: AP drops by at most 0.01 (class name)",
        "    dropped by 0.1000, allowed 0.0100",
        "    0.5000 → 0.4000 over 1 query",
    ]


def test_what_is_long_is_cut_and_counted() -> None:
    lost = [Regression("AP", f"q{n}", None, 1.0, 0.0) for n in range(7)]
    told = of_gate(gate(checks=[DROP] * 12, lost=lost)).splitlines()
    assert "  and 2 more checks" in told
    assert "  and 2 more" in told
    assert sum("1.000 → 0.000" in line for line in told) == 5
    assert any("the baseline has saved values only" in line for line in told)


def test_moves_stand_below_the_query_and_measure_they_belong_to() -> None:
    moves = {
        ("AP", "q2"): [RankChange("new", "AP", "q2", "x", 1.0, 3, None, None)],
        ("RR", "q1"): [RankChange("new", "RR", "q1", "y", 0.5, None, 1200, None)],
    }
    lost = [
        Regression(
            m, q, "text", 1.0, 0.5, "class" * (m == "AP") or None, "name", moves.get((m, q), [])
        )
        for m in ("AP", "RR")
        for q in ("q1", "q2")
    ]
    told = of_gate(gate(lost=lost))
    assert (
        '  1.000 → 0.500  q2 "text" (class name)\n          3 → –    1  x\nqueries that lost'
    ) in told
    assert '  1.000 → 0.500  q1 "text"\n      – → 1,200  0.5  y\n' in told


def test_known_failures_that_pass_are_told() -> None:
    failures = [KnownFailure(f"q{n}", "AP", 1.0, n > 1) for n in (1, 2, 3)]
    assert of_known(gate(known_failures=failures[:1])) == ""
    one = of_known(gate(known_failures=failures[:2]))
    assert one == "q2 passes now (AP 1.000): remove it from the list in gate.toml"
    both = of_known(gate(known_failures=failures))
    assert "; q3 passes now (AP 1.000): remove it from the list in gate.toml" in both


def test_only_what_is_named_is_shown_below_the_first_documents() -> None:
    answer = Answer("a  long\nquery " * 9, tuple(f"d{n}" for n in range(1, 21)))
    told = of_expectation(Broken('"d9" on top', "r", "it is not", answer, ("d9",)))
    assert told.splitlines()[3:] == [
        "       1  d1",
        "       2  d2",
        "       3  d3",
        "       4  d4",
        "       5  d5",
        "         …",
        "  >    9  d9",
        "         …",
    ]
    assert told.startswith('"a long query a long query')


def test_ids_and_errors_of_strangers_cannot_repaint_the_screen() -> None:
    answer = Answer("\x1b[2J", ("a\x1b[31m", "b\nfail: x"))
    told = of_expectation(Broken("no document", "r", "2 were returned", answer))
    assert "\x1b" not in told + of_failure("q", "\x1b]0;x")
    assert "\nfail" not in told


@pytest.mark.parametrize("count", ["1 query", "1,200 queries"])
def test_another_order_than_the_scores_is_told_of_the_candidate(count: str) -> None:
    note = f"ranks contradict scores in {count}: ordered by score, ranks ignored"
    gate = Gate("pass", "old", "new", "gate.toml", [], notes=[f"new: {note}"])
    assert of_order(gate).startswith(
        f"new returned documents out of the order of their scores in {count}; karat ranks by score"
    )
    assert of_order(replace(gate, notes=[f"old: {note}", "new: x"])) == ""


def test_that_order_is_noted_by_a_gate() -> None:
    # The words that of_order looks for are those of the notes.
    frame = pl.DataFrame(
        {"query_id": ["q"] * 2, "doc_id": ["a", "b"], "score": [1.0, 2.0], "rank": [1, 2]}
    )
    run = Run.from_batches("new", [frame])
    policy = {"rule": [{"measure": "RR", "min": 0.1}]}
    assert "in 1 query; karat" in of_order(gates.gate(policy, {"q": {"a": 1}}, None, run))
