"""Templates: values are inserted as values, never as source text."""

from __future__ import annotations

import json
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.engines.search.template import (
    Values,
    check_params,
    fill_json,
    fill_url,
    names_in,
    sql_parameters,
)
from karat.errors import UsageError
from karat.tables.engines import EngineQuery

RED = Values(EngineQuery("red shoes", {"lang": "de"}, [1.0, 2.5]), 10, 20, {"boost": 3.0})


def test_a_placeholder_alone_keeps_the_type_of_its_value():
    template = {"size": "{size}", "from": "{from}", "q": "{query}", "v": "{vector}"}
    assert fill_json(template, RED) == {"size": 10, "from": 20, "q": "red shoes", "v": [1.0, 2.5]}


def test_placeholders_within_a_text_are_text():
    assert fill_json("title:{query}^{params.boost} {other}", RED) == "title:red shoes^3.0 {other}"


def test_an_element_of_a_list_whose_filter_is_missing_is_left_out():
    template = {"filter": [{"term": {"l": "{filters.lang}"}}, {"term": {"s": "{filters.shop}"}}]}
    assert fill_json(template, RED) == {"filter": [{"term": {"l": "de"}}]}


def test_a_missing_filter_outside_a_list_is_an_error_that_names_it():
    with pytest.raises(UsageError, match=r"\{filters\.shop\}, which this query does not have"):
        fill_json({"term": {"s": "{filters.shop}"}}, RED)


def test_a_url_is_percent_encoded():
    values = Values(EngineQuery("a&b=c/ü #"), 5)
    # RFC 3986: everything but the unreserved characters, in UTF-8.
    assert fill_url("/s?q={query}&n={size}&l={filters.x}", values) == (
        "/s?q=a%26b%3Dc%2F%C3%BC%20%23&n=5&l="
    )


def test_a_parameter_without_a_value_is_named_with_the_nearest():
    with pytest.raises(UsageError, match="did you mean boost_title"):
        check_params({"q": "{params.bost_title}"}, {"boost_title": 1}, "[engine.prod]")


def test_names_are_found_at_every_depth():
    template = {"a": [{"b": "{query} {params.x}"}], "c": "{filters.shop-id}"}
    assert names_in(template) == {"query", "params.x", "filters.shop-id"}


def test_the_words_of_a_query_are_quoted_for_fts5():
    # FTS5 reads AND, NEAR, - and * as operators only outside quotation marks.
    values = Values(EngineQuery('what\'s "up" AND x* -y'), 1)
    assert values.of("words") == '"what" OR "s" OR "up" OR "AND" OR "x" OR "y"'


@given(st.text(), st.text())
def test_no_query_changes_the_request(query, value):
    """A filled template is the template with the value at its place: nothing is added to it."""
    values = Values(EngineQuery(query, {"x": value}), 3)
    template = {"query": {"match": {"t": "{query}"}}, "filter": [{"x": "{filters.x}"}]}
    filled = json.loads(json.dumps(fill_json(template, values)))
    assert filled == {"query": {"match": {"t": query}}, "filter": [{"x": value}]}


@given(st.text())
def test_no_query_changes_the_sql(query):
    sql, names = sql_parameters(
        "SELECT {query} AS q, {size} AS n, {query} AS again", lambda n: f":{n}"
    )
    assert sql == "SELECT :p0 AS q, :p1 AS n, :p0 AS again"
    values = Values(EngineQuery(query.encode("utf-8", "replace").decode().replace("\0", "")), 3)
    bound = {f"p{at}": values.of(name) for at, name in enumerate(names)}
    assert sqlite3.connect(":memory:").execute(sql, bound).fetchone() == (
        values.query.text,
        3,
        values.query.text,
    )
