"""Certificate fit: the parts of what takes a certificate's ground away."""

from __future__ import annotations

from dataclasses import replace

import pytest

from karat.diagnosis.certificate_fit import (
    judged_by_query,
    judgment_findings,
    pool_findings,
    topic_findings,
    tops,
)
from karat.measures import parse
from karat.tables import Qrels, Run
from karat.tables.release.certificate import Certificate, CertifiedQuery

QUERIES = (
    CertifiedQuery("q1", 1.0, ("a", "b"), ("b", "a"), {"b": 1.0}, 0.5, 0.5, None, None),
    CertifiedQuery("q2", 3.0, (), ("c",), {"c": 1.0}, 0.5, 0.5, None, None),
)


@pytest.fixture
def stated(certificate: Certificate) -> Certificate:
    """Of recall at 2, with room for one unseen document."""
    return replace(certificate, measure="R@2", depth=None, unseen=1, queries=QUERIES)


def test_tops_end_where_the_measure_or_the_depth_does() -> None:
    run = Run.from_dict({"q1": {"a": 3.0, "b": 2.0, "c": 1.0}, "q2": {"x": 1.0}, "q3": {}})
    assert tops(run, parse("P@2"), None) == {"q1": ("a", "b"), "q2": ("x",)}
    assert tops(run, parse("P@2"), 1) == {"q1": ("a",), "q2": ("x",)}
    assert tops(run, parse("P@9"), 2) == {"q1": ("a", "b"), "q2": ("x",)}
    assert tops(run, parse("SetP"), None)["q1"] == ("a", "b", "c")


def test_judged_by_query_leaves_out_what_was_only_pooled() -> None:
    qrels = Qrels.from_dict({"q1": {"b": 1, "a": 0, "c": -1}, "q2": {"x": 1}})
    assert judged_by_query(qrels, ["q1"]) == {"q1": {"a": 0.0, "b": 1.0}}
    assert list(judged_by_query(qrels, ["q3", "q2", "q1"])) == ["q2", "q1"]
    assert list(judged_by_query(qrels, ["q1"])["q1"]) == ["a", "b"]


def test_runs_against_the_pool(stated: Certificate) -> None:
    old, new = (
        Run.from_dict({"q1": {"a": 2, "b": 1}}),
        Run.from_dict({"q1": {"b": 2, "a": 1, "deeper": 0}, "q2": {"c": 1}, "q9": {"z": 1}}),
    )
    assert pool_findings(stated, parse("R@2"), [old, new]) == []
    [found] = pool_findings(stated, parse("R@2"), [new, old])
    assert "the other way round: old is the baseline" in found
    first, second = (
        pool_findings(stated, parse("R@2"), [new, new]),
        pool_findings(stated, parse("R@2"), [old, old]),
    )
    assert len(first) == len(second) == 1
    assert first[0].startswith("the baseline is another: query q1 has b at rank 1, where the")
    assert first[0].endswith("certificate has a (2 queries in all)")
    assert second[0].startswith("the candidate is another: query q1 has a at rank 1")


@pytest.mark.parametrize(
    ("measure", "unseen", "grade", "covered"),
    [
        ("R@2", 1, 1.0, True),
        ("R@2", 0, 1.0, False),
        ("R@2", 0, 0.0, True),
        ("R(rel=2)@2", 0, 1.0, True),
        ("R@2", None, 1.0, False),
        ("R@2", "any", 2.0, True),
        ("R@2", "any", 2.5, False),
        ("nDCG@2", 0, 0.5, False),
        ("P@2", "any", 2.0, True),
        ("P@2", "any", 3.0, False),
        ("nDCG(gain={2: 1})@2", 5, 1.5, False),
        ("nDCG(gain={1.5: 1})@2", 5, 1.5, True),
    ],
)
def test_one_document_outside_the_pool(
    stated: Certificate, measure: str, unseen: int | str | None, grade: float, covered: bool
) -> None:
    number = unseen if isinstance(unseen, int) else None
    made = replace(stated, measure=measure, unseen=number, unseen_unlimited=unseen == "any")
    qrels = Qrels.from_dict({"q1": {"b": 1, "outside": grade}, "q2": {"c": 1}})
    found, notes = judgment_findings(made, parse(measure), qrels)
    assert (not found) == covered
    assert ("the judgments it rests on are as they were" in notes) == covered


def test_queries_and_weights(stated: Certificate) -> None:
    assert topic_findings(stated, {"q1": 2.0, "q2": 6.0}) == []
    [found] = topic_findings(stated, {"q1": 1.0, "q2": 1.0})
    assert found.startswith("query q1 weighs 1 now, and 1 in the certificate (2 queries")
    more, fewer = topic_findings(stated, {"q1": 1.0, "q3": 1.0})
    assert more == "query q3 counts now, and is not in the certificate"
    assert fewer == "query q2 of the certificate does not count any more"
