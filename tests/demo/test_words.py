"""What the demo says follows from its numbers, and from nothing else."""

from __future__ import annotations

import polars as pl

from karat.demo.words import MEASURES, conclusions
from karat.workflows.offline.compare import compare
from karat.workflows.offline.evaluate import evaluate

QUERIES = [f"q{n:02}" for n in range(12)]
CLASSES = {query: "first" if n < 6 else "second" for n, query in enumerate(QUERIES)}
QRELS = {query: {"good": 1, "other": 0} for query in QUERIES}
AT_1, AT_2, AT_3 = ["good", "other", "x"], ["other", "good", "x"], ["other", "x", "good"]

System = dict[str, dict[str, float]]


def system(first: list[str], second: list[str]) -> System:
    return {
        query: {doc: -float(rank) for rank, doc in enumerate(first if n < 6 else second)}
        for n, query in enumerate(QUERIES)
    }


def said(**systems: System) -> str:
    about = pl.DataFrame({"query_id": QUERIES, "class": list(CLASSES.values())})
    results = evaluate(QRELS, systems, queries=about, by="class")
    first, *others = results.runs.values()
    found = compare(QRELS, first, others, MEASURES, queries=about, by="class")
    return "\n".join(conclusions(results, found))


def test_a_steady_lead_is_more_than_chance() -> None:
    # a puts it second in all but one query: differences 0 and 1 - 1/log2(3) = .369, 11 times.
    slower = system(AT_2, AT_2) | {"q00": {"good": 1.0}}
    text = said(a=slower, b=system(AT_1, AT_1))
    assert "By nDCG@10 b is better than a: +0.338 (" in text  # 11/12 of .36907
    assert "By R@100 b and a are identical." in text


def test_what_cannot_be_told_says_what_it_would_take() -> None:
    # One query of twelve differs, so nothing can be told of so few.
    nearly = system(AT_1, AT_1) | {"q00": {"other": 2.0, "good": 1.0}}
    text = said(a=system(AT_1, AT_1), b=nearly)
    assert "these 12 queries cannot tell b from a: −0.031" in text  # .36907 / 12
    assert "or more; 0.031 would take " in text


def test_the_newest_is_told_of_first_and_alone_at_length() -> None:
    text = said(a=system(AT_1, AT_3), b=system(AT_2, AT_2), c=system(AT_3, AT_1))
    assert text.index("cannot tell c from a") < text.index("cannot tell b from a")
    assert "Where, by nDCG@10: c is worse at first (−0.500) and better at second (+0.500)" in text


def test_says_whether_the_unjudged_could_turn_it() -> None:
    # x stands at rank 2 or 3 and nobody judged it: as good as "good", it could turn nDCG's sign.
    assert "could be anything from" in said(a=system(AT_3, AT_3), b=system(AT_2, AT_2))
    judged = {query: {"good": 1.0, "other": 0.5} for query in QUERIES}
    other_way = {query: {"good": 0.5, "other": 1.0} for query in QUERIES}
    text = said(a=other_way, b=judged)
    assert "could be anything from" not in text
    assert "By nDCG@10 and R@100, no grades of unjudged documents reverse a sign." in text
