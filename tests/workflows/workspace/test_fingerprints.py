"""Fingerprints: equal for equal content, and for nothing else."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from karat.tables import Qrels, Queries, Run
from karat.workflows.workspace.fingerprints import fingerprint

QRELS: dict[str, Any] = {"q1": {"a": 1, "b": 0}, "q2": {"a": 2}}
RUN: dict[str, Any] = {"q1": {"a": 2.0, "b": 1.0}, "q2": {"a": 1.0}}


def test_the_order_of_rows_does_not_matter() -> None:
    turned = {query: dict(reversed(docs.items())) for query, docs in reversed(QRELS.items())}
    assert fingerprint(Qrels.from_dict(QRELS)) == fingerprint(Qrels.from_dict(turned))
    turned = dict(reversed(RUN.items()))
    assert fingerprint(Run.from_dict(RUN)) == fingerprint(Run.from_dict(turned).named("other"))


@pytest.mark.parametrize(
    "other",
    [
        QRELS | {"q2": {"a": 1}},
        QRELS | {"q2": {"b": 2}},
        QRELS | {"q3": {"a": 0}},
        {"q1": {"a": 1}, "q2": {"a": 2}},
    ],
)
def test_other_judgments_differ(other: dict[str, Any]) -> None:
    assert fingerprint(Qrels.from_dict(QRELS)) != fingerprint(Qrels.from_dict(other))


def test_the_scale_counts() -> None:
    plain = Qrels.from_dict(QRELS)
    assert fingerprint(plain) != fingerprint(plain.on_scale((0, 3)))
    assert fingerprint(plain) == fingerprint(plain.on_scale((0, 2)))


@pytest.mark.parametrize("other", [{"q1": {"a": 1.0, "b": 2.0}}, {"q2": None}, {"q3": {}}])
def test_other_answers_differ(other: dict[str, Any]) -> None:
    assert fingerprint(Run.from_dict(RUN)) != fingerprint(Run.from_dict(RUN | other))


def test_queries_count_with_all_their_columns() -> None:
    frame = pl.DataFrame({"query_id": ["q1", "q2"], "class": ["x", "y"]})
    plain = Queries(frame)
    assert fingerprint(plain) == fingerprint(Queries(frame.reverse()))
    assert fingerprint(plain) != fingerprint(Queries(frame.with_columns(weight=1.0)))
    lists = frame.with_columns(tags=pl.Series([["a"], ["b"]]))
    assert fingerprint(Queries(lists)) != fingerprint(plain)
    assert fingerprint(None) is None
