"""The answer in words."""

from __future__ import annotations

from dataclasses import replace

from karat.reports.html.words import chance, headline, listed, means, number, span, verdicts
from karat.tables.comparison import Comparison
from karat.workflows.compare import compare
from karat.workflows.evaluate import evaluate

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
    assert verdicts(again) == ["new is the same as old by R@2; by RR nobody can tell."]


def test_where_nobody_can_tell_the_sentence_still_reads() -> None:
    row = replace(found().differences[0], verdict="cannot tell")
    only = replace(found(), differences=[row])
    assert verdicts(only) == ["new: by RR nobody can tell."]


def test_what_the_unjudged_could_turn_is_said_with_the_verdict() -> None:
    made = found()
    row = replace(made.differences[0], unjudged_low=-0.5, unjudged_high=0.5)
    assert "documents nobody judged might turn RR" in verdicts(replace(made, differences=[row]))[0]


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


def test_none_is_a_dash() -> None:
    assert [number(None), span(None, 1.0), chance(None)] == ["–", "–", "–"]
    assert [number(-0.25), span(-0.5, 0.5, signs=True), chance(0.0001)] == [
        "−0.250",
        "−0.500 to +0.500",
        "<.001",
    ]
    assert [listed(["a"]), listed(["a", "b", "c"])] == ["a", "a, b and c"]
