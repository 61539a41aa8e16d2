"""Objects whose fields become columns."""

from __future__ import annotations

import polars as pl

from karat.formats.events.fields import spread


def test_of_two_fields_of_one_name_the_outer_counts_where_it_has_a_value() -> None:
    rows = [
        {"query_id": "outer", "_source": {"query_id": "inner", "user_query": "sql"}},
        {"query_id": None, "_source": {"query_id": "inner", "user_query": None}},
    ]
    found = spread(pl.DataFrame(rows), set())
    assert found["query_id"].to_list() == ["outer", "inner"]
    assert found["user_query"].to_list() == ["sql", None]
    # Of two types, each is text.
    mixed = spread(pl.DataFrame({"page": [7], "_source": [{"page": "8"}]}), set())
    assert mixed["page"].to_list() == ["7"]
