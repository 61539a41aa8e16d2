"""What the demo says follows from its numbers, and from nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from karat.demo.build import Demo
from karat.demo.words import conclusions, lead
from karat.workflows.evaluate import evaluate

QUERIES = [f"q{n:02}" for n in range(12)]
CLASSES = {query: "first" if n < 6 else "second" for n, query in enumerate(QUERIES)}
QRELS = {query: {"good": 1, "other": 0} for query in QUERIES}
AT_1, AT_2, AT_3 = ["good", "other", "x"], ["other", "good", "x"], ["other", "x", "good"]
MADE = Demo(Path(), Path(), Path(), Path(), Path(), (), 3, 12, 24, judged_count=2, absent_count=0)


def system(first: list[str], second: list[str]) -> dict[str, dict[str, float]]:
    return {
        query: {doc: -float(rank) for rank, doc in enumerate(first if n < 6 else second)}
        for n, query in enumerate(QUERIES)
    }


def said(made: Demo = MADE, **systems: dict[str, dict[str, float]]) -> str:
    frame = {"query_id": QUERIES, "class": list(CLASSES.values())}
    import polars as pl

    results = evaluate(QRELS, systems, queries=pl.DataFrame(frame), by="class", per_query=True)
    return "\n".join(conclusions(results, CLASSES, made))


def test_says_who_wins_which_class_and_how_surely() -> None:
    # a is first throughout the first class and third in the second, b the other way round; no
    # spread within a class, so there is no interval and nothing is clear.
    text = said(a=system(AT_1, AT_3), b=system(AT_3, AT_1))
    assert "a is best at first; last at second." in text
    assert "b is best at second; last at first." in text
    assert "cannot tell them apart" in text


def test_a_steady_lead_is_more_than_chance() -> None:
    # b puts it second in all but one query: differences 0 and 1 - 1/log2(3) = .369, 11 times.
    slower = system(AT_2, AT_2) | {"q00": {"good": 1.0}}
    text = said(a=system(AT_1, AT_1), b=slower)
    assert "a minus b is 0.338 (" in text  # 11/12 of .36907
    assert "more than chance explains" in text
    assert "a is best at first (clearly)" in text


def test_says_what_the_unjudged_could_change() -> None:
    assert "could be anything from" in said(a=system(AT_3, AT_3), b=system(AT_1, AT_1))
    judged = {query: {"good": 1.0, "other": 0.5} for query in QUERIES}
    assert "could be anything from" not in said(a=judged, b=judged)


def test_counts_what_this_python_lacks() -> None:
    assert "None of the 2 judged documents is missing from this Python." in said(
        a=system(AT_1, AT_2), b=system(AT_2, AT_1)
    )
    lacking = replace(MADE, absent_count=1)
    assert "1 of 2 judged documents are not in this Python" in said(
        lacking, a=system(AT_1, AT_2), b=system(AT_2, AT_1)
    )


def test_a_lead_is_paired_over_shared_queries() -> None:
    values = {"a": {"q1": 0.2, "q2": 0.4, "q3": 1.0}, "b": {"q1": 0.5, "q2": 0.5}}
    found = lead(values, "a", "b", {"q1", "q2", "q3"})
    assert (found.ahead, found.behind, found.n) == ("b", "a", 2)
    assert found.mean == pytest.approx(0.2)  # (.3 + .1) / 2
    assert not found.clear
