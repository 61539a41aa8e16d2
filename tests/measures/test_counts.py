"""Counts, by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from karat.measures import parse

# Relevant, non-relevant, unjudged, pooled and not judged, grade 2; missed: 1 and 0.
RETRIEVED, MISSED = (1, 0, None, -1, 2), (1, 0)


@pytest.mark.parametrize(
    ("measure", "value"),
    [
        ("NumRet", 5),
        ("NumRel", 3),  # 1, 2 and the missed 1
        ("NumRel(rel=2)", 1),
        ("NumRelRet", 2),
        ("NumRelRet(rel=2)", 1),
        ("NumNonrelRet", 1),  # the 0; a negative grade is no judgment
        ("NumNonrelRet(rel=2)", 2),  # the 0 and the 1
    ],
)
def test_counts(measure: str, value: float, value_of: Callable[..., float]) -> None:
    assert value_of(measure, RETRIEVED, MISSED) == value
    assert parse(measure).entry.aggregate == "sum"
    assert parse(measure).entry.integer
