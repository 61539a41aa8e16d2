"""A search function held against a policy, and asked one query."""

from __future__ import annotations

from pathlib import Path

import pytest

from karat.errors import InputError, UsageError
from karat.tables import Run
from karat.workflows.golden.golden_set import GoldenSet
from karat.workflows.release.expectations import NoAnswer, answer, hold

ITEMS = [{"query": "one", "relevant_docs": ["a"]}, {"query": "two", "relevant_docs": ["b"]}]
POLICY = {"rule": [{"measure": "RR", "max_drop": 0.1}]}
GOOD = {"q1": {"a": 2.0, "b": 1.0}, "q2": {"b": 2.0, "a": 1.0}}


def search(text: str) -> list[str]:
    return ["b", "a"]


@pytest.mark.parametrize("form", ["list", "set", "pair"])
def test_golden_sets_of_every_form_are_taken(form: str) -> None:
    golden = GoldenSet.from_list(ITEMS)
    forms = {"list": ITEMS, "set": golden, "pair": (golden.queries, golden.qrels)}
    held = hold(search, forms[form], POLICY, GOOD)
    # "one" had its page first and has it second: 1 to 1/2; the mean drops by 0.25, more than 0.1.
    assert held.verdict == "fail"
    assert [(row.query_id, row.text, row.candidate_value) for row in held.lost] == [
        ("q1", "one", 0.5)
    ]
    [row] = held.lost
    assert [(move.doc_id, move.baseline_rank) for move in row.moves or ()] == [("a", 1)]


def test_a_run_stands_in_for_the_function() -> None:
    assert hold(Run.from_dict(GOOD, "now"), ITEMS, POLICY, GOOD).verdict == "pass"
    assert hold(GOOD, ITEMS, POLICY, GOOD).candidate == "candidate"


def test_without_a_baseline_nothing_moves() -> None:
    held = hold(search, ITEMS, {"rule": [{"measure": "RR", "min": 0.9}]}, None)
    assert (held.verdict, held.lost) == ("fail", [])


def test_why_queries_failed_is_told_with_the_verdict() -> None:
    def dead(text: str) -> list[str]:
        raise OSError("refused")

    held = hold(dead, ITEMS, POLICY, GOOD)
    assert held.verdict == "unhealthy"
    assert held.checks[0].reason == "2 of 2 got no answer (2 × OSError: refused)"


def test_rules_reach_asking_and_measuring() -> None:
    held = hold(search, ITEMS, POLICY, GOOD, asking={"name": "mine"}, rules={"depth": 1})
    assert held.candidate == "mine"
    assert held.checks[0].candidate_value == 0.5  # at depth 1 "one" has no page at all


def test_what_is_wrong_is_said_before_the_search_is_asked() -> None:
    def never(text: str) -> list[str]:
        pytest.fail("it was asked")

    with pytest.raises(UsageError, match="and none is given"):
        hold(never, ITEMS, POLICY, None)
    with pytest.raises(InputError):
        hold(never, ITEMS, POLICY, "not-there.jsonl")
    with pytest.raises(InputError, match="not among the judged queries"):
        hold(never, ITEMS, {**POLICY, "known_failure": [{"query": "x", "min": 1}]}, GOOD)


def test_one_query_is_asked_and_put_in_order() -> None:
    found = answer(lambda text: [("low", 0.1), (text, 0.9)], "high")
    assert found.doc_ids == ("high", "low")
    with pytest.raises(NoAnswer, match="it returned None; expected a list; what came back"):
        answer(lambda text: None, "q")
    with pytest.raises(NoAnswer, match="ZeroDivisionError"):
        answer(lambda text: [str(1 // 0)], "q")


def test_no_search_at_all_is_told() -> None:
    with pytest.raises(UsageError, match="the search is None"):
        hold(None, ITEMS, POLICY, GOOD)


def test_an_empty_baseline_file_lets_nothing_pass(tmp_path: Path) -> None:
    (tmp_path / "old.jsonl").write_text("")
    held = hold(search, ITEMS, POLICY, tmp_path / "old.jsonl")
    assert held.verdict == "cannot_tell"
    assert held.checks[0].rule == "baseline old: some document is returned"
