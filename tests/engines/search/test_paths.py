"""JSON paths: those to one value are walked, the others evaluated, with equal results."""

from __future__ import annotations

import pytest

from karat.engines.search.json_api import path
from karat.errors import UsageError

REPLY = {"a": {"b c": [{"id": 0}, {"id": None}]}, "n": [1, 2], "": 7}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("$.a['b c'][0].id", [0]),
        ("$.a['b c'][-1].id", [None]),
        ("$.a['b c'][2].id", []),
        ("$.n.id", []),
        ("n", [[1, 2]]),
        ("$['']", [7]),
        ("$.n[*]", [1, 2]),
        ("$.a[*]", [REPLY["a"]["b c"]]),
        ("$.x[*]", []),
        ("$[*].x", []),
        ("$.a['b c'][*].id", [0, None]),
        ("$", [REPLY]),
    ],
)
def test_values_at_a_path(text, values):
    assert path(text, "hits")(REPLY) == values


def test_what_is_not_a_path_is_refused_with_an_example():
    with pytest.raises(UsageError, match=r"(?s)\[engine\.x\] hits is not a JSON path.*\$\.results"):
        path("$.results[", "[engine.x] hits")
