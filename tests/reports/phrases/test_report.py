"""The answer in words."""

from __future__ import annotations

from dataclasses import replace

from karat.reports.phrases.report import (
    cut,
    headline,
    listed,
    means,
    number,
    span,
    still_failing,
    unanswered,
    verdicts,
)
from karat.tables import Run
from karat.tables.comparison import Comparison
from karat.tables.release.gate import Check, Gate, KnownFailure
from karat.workflows.offline.compare import compare
from karat.workflows.offline.evaluate import evaluate

QRELS = {f"q{n}": {"good": 1, "x": 0} for n in range(12)}
OLD = {query: {"x": 2.0, "good": 1.0} for query in QRELS}  # x is not relevant, and judged so
NEW = {query: {"good": 2.0, "x": 1.0} for query in QRELS}


def found() -> Comparison:
    return compare(QRELS, {"old": OLD}, {"new": NEW}, ["RR", "R@2"])


def test_a_sentence_says_what_may_be_said_by_which_measure() -> None:
    made = found()
    assert verdicts(made) == ["new is better than old by RR; is the same as old by R@2."]
    rows = [replace(made.differences[0], verdict="cannot tell"), made.differences[1]]
    again = replace(made, differences=rows)
    assert verdicts(again) == ["new is the same as old by R@2; cannot tell by RR."]


def test_where_nobody_can_tell_the_sentence_still_reads() -> None:
    row = replace(found().differences[0], verdict="cannot tell")
    only = replace(found(), differences=[row])
    assert verdicts(only) == ["new: cannot tell by RR."]


def test_what_the_unjudged_could_turn_is_said_with_the_verdict() -> None:
    made = found()
    row = replace(made.differences[0], unjudged_low=-0.5, unjudged_high=0.5)
    assert "unjudged documents could reverse RR" in verdicts(replace(made, differences=[row]))[0]


def test_the_first_number_comes_with_its_interval_and_count() -> None:
    row = replace(found().differences[0], ci_low=0.25, ci_high=0.75)
    said = "RR went from 0.500 to 1.000 (+0.500, 95 % interval +0.250 to +0.750) over 12 queries."
    assert headline(row) == said
    assert "no query has a value" in headline(replace(row, difference=None))


def test_means_of_runs() -> None:
    results = evaluate(QRELS, {"old": OLD}, ["RR"])
    assert means(results.results) == ["old: RR 0.500 over 12 queries."]  # all equal: no interval
    nothing = replace(results.results[0], value=None)
    assert "has no value" in means([nothing])[0]


def test_queries_without_an_answer_come_before_any_verdict() -> None:
    half: dict[str, dict[str, float] | None] = dict(NEW)
    half |= dict.fromkeys(list(NEW)[:5])
    (row,) = evaluate(QRELS, Run.from_dict(half, "half"), ["RR"]).results
    (said,) = unanswered([row], compared=True)
    assert said == (
        "half got no answer to 5 of 12 queries: every number is over the queries that both "
        "answered."
    )
    dead = evaluate(QRELS, Run.from_dict(dict.fromkeys(QRELS), "dead"), ["RR"]).results
    assert unanswered(dead, compared=False) == [
        "dead got no answer to all 12 queries: it has no number."
    ]


def test_many_empty_answers_are_said_and_a_few_are_left_to_the_notes() -> None:
    (row,) = evaluate(QRELS, {"new": NEW}, ["RR"]).results
    assert unanswered([row], compared=True) == []
    assert unanswered([replace(row, n=100, empty=5)], compared=True) == []  # 5 % and no more
    (said,) = unanswered([replace(row, n=100, empty=4, missing=2)], compared=True)
    assert said == (
        "new has nothing for 6 of 100 queries (2 not in the run and 4 answered with nothing): "
        "they count as 0."
    )
    assert unanswered([replace(row, n=1, empty=1)], compared=True) == [
        "new has nothing for its only query (answered with nothing): it counts as 0."
    ]


def test_a_gate_says_what_became_of_known_failures() -> None:
    check = Check("nDCG@10 drops by at most 5%", "fail", "it drops by 9%", "nDCG@10")
    gate = Gate("fail", "old", "new", "gate.toml", [check])
    known = [
        KnownFailure("q1", "RR", 0.0, passes=False),
        KnownFailure("q2", "RR", 1.0, passes=True),
    ]
    assert still_failing(replace(gate, known_failures=known[:1])) == (
        "1 query is known to fail, and left out of every rule."
    )
    assert still_failing(replace(gate, known_failures=known)) == (
        "2 queries are known to fail, and left out of every rule; 1 passes now and can be "
        "removed from the list."
    )


def test_no_name_takes_the_place_of_a_sentence() -> None:
    assert cut(f"{'x' * 900} wins.", ["x" * 900]) == f"{'x' * 59}… wins."


def test_none_is_a_dash() -> None:
    assert [number(None), span(None, 1.0)] == ["–", "–"]
    assert [number(-0.25), span(-0.5, 0.5, signs=True)] == ["−0.250", "−0.500 to +0.500"]
    assert [listed(["a"]), listed(["a", "b", "c"])] == ["a", "a, b and c"]
